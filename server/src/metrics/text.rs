//! The text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write as _};

use crate::counters::Buckets;

/// Metrics, as they are written down. One without a sample leaves nothing behind.
#[derive(Debug, Default)]
pub(super) struct Text {
    out: String,
    name: &'static str,
    /// What is said of the metric before its first sample.
    header: String,
}

/// A label and its value.
pub(super) type Label<'a> = (&'a str, &'a str);

impl Text {
    /// Begins a metric.
    pub(super) fn begin(&mut self, name: &'static str, kind: &str, help: &str) {
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        self.header = format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        self.name = name;
    }

    /// A sample without labels.
    pub(super) fn value(&mut self, value: impl Display) {
        self.labelled(&[], value);
    }

    /// A sample with labels.
    pub(super) fn labelled(&mut self, labels: &[Label<'_>], value: impl Display) {
        self.sample("", labels, &value);
    }

    /// A histogram, whose bounds and sum are in units of which `unit` make one of the metric's.
    pub(super) fn histogram<const N: usize>(
        &mut self,
        labels: &[Label<'_>],
        bounds: &[u64],
        buckets: &Buckets<N>,
        unit: u32,
    ) {
        let mut below = 0;
        let bounds = bounds.iter().map(|bound| scaled(*bound, unit).to_string()).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(buckets.counts) {
            below += count;
            let labels: Vec<_> = labels.iter().copied().chain([("le", &*bound)]).collect();
            self.sample("_bucket", &labels, &below);
        }
        self.sample("_sum", labels, &scaled(buckets.sum(), unit));
        self.sample("_count", labels, &buckets.count());
    }

    fn sample(&mut self, suffix: &str, labels: &[Label<'_>], value: &dyn Display) {
        self.out.push_str(&std::mem::take(&mut self.header));
        self.out.push_str(self.name);
        self.out.push_str(suffix);
        for (index, (label, value)) in labels.iter().enumerate() {
            let value = value.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
            // A string takes all that is written to it; here and below.
            let _ = write!(self.out, "{}{label}=\"{value}\"", if index == 0 { '{' } else { ',' });
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.out, "{end} {value}");
    }

    pub(super) fn into_string(self) -> String {
        self.out
    }
}

/// As precise as a double is, which is what Prometheus keeps.
fn scaled(value: u64, unit: u32) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "above 2^53 the last digits do not matter")]
    let value = value as f64;
    value / f64::from(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Histogram;

    #[test]
    fn a_metric_is_its_help_its_type_and_its_samples_and_one_without_samples_is_nothing() {
        let mut text = Text::default();
        text.begin("a_total", "counter", "With a \\ in it.");
        text.labelled(&[("x", "1"), ("y", "a \"b\"\n\\")], 7);
        text.begin("b", "gauge", "None.");
        text.begin("c_seconds", "gauge", "A time.");
        text.value(0.000_025);
        let expected = "# HELP a_total With a \\\\ in it.\n# TYPE a_total counter\n\
            a_total{x=\"1\",y=\"a \\\"b\\\"\\n\\\\\"} 7\n\
            # HELP c_seconds A time.\n# TYPE c_seconds gauge\nc_seconds 0.000025\n";
        assert_eq!(text.into_string(), expected);
    }

    #[test]
    fn a_histogram_counts_what_is_at_most_each_bound() {
        let histogram = Histogram::<3>::new(&[1_000, 2_500]);
        histogram.record(1_000, 2);
        histogram.record(2_000, 1);
        histogram.record(9_000, 1);
        let mut text = Text::default();
        text.begin("t_seconds", "histogram", "Times.");
        text.histogram(&[("kind", "read")], &[1_000, 2_500], &histogram.buckets(), 1_000);
        let samples = text.into_string();
        let samples: Vec<_> = samples.lines().skip(2).collect();
        let expected = [
            "t_seconds_bucket{kind=\"read\",le=\"1\"} 2",
            "t_seconds_bucket{kind=\"read\",le=\"2.5\"} 3",
            "t_seconds_bucket{kind=\"read\",le=\"+Inf\"} 4",
            "t_seconds_sum{kind=\"read\"} 13",
            "t_seconds_count{kind=\"read\"} 4",
        ];
        assert_eq!(samples, expected);
    }
}
