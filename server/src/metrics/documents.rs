//! What documents say about the metrics is what the table says: the table of `docs/monitoring.md`, its alerts, and the
//! dashboard `docs/grafana.json`.

use std::collections::BTreeSet;

use super::table::{METRICS, Metric, MetricKind};

const MONITORING: &str = include_str!("../../../docs/monitoring.md");
const DASHBOARD: &str = include_str!("../../../docs/grafana.json");

fn row(metric: &Metric) -> String {
    format!("| `{}` | {} | {} | {} |", metric.name, metric.kind.name(), metric.unit, metric.help)
}

/// The words of a text that begin as names of metrics do.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("boltkv_") || word.starts_with("process_")).collect()
}

/// Names that no metric has, nor any series of a histogram.
fn unknown(text: &str) -> Vec<&str> {
    let is_series = |metric: &Metric, name: &str| match (name.strip_prefix(metric.name), metric.kind) {
        (Some("_bucket" | "_sum" | "_count"), MetricKind::Histogram) => true,
        (rest, kind) => rest == Some("") && kind != MetricKind::Histogram,
    };
    names(text).into_iter().filter(|name| !METRICS.iter().any(|metric| is_series(metric, name))).collect()
}

#[test]
fn names_follow_the_rules_of_prometheus() {
    let mut seen = BTreeSet::new();
    for Metric { name, kind, unit, help, .. } in METRICS {
        assert!(seen.insert(name), "{name} is there twice");
        assert!(name.starts_with("boltkv_") || name.starts_with("process_"), "{name}");
        assert_eq!(name.ends_with("_total"), *kind == MetricKind::Counter, "{name}");
        let base = name.trim_end_matches("_total");
        for unit_in_name in ["seconds", "bytes"] {
            let is_named = base.ends_with(&format!("_{unit_in_name}"));
            assert_eq!(*unit == unit_in_name, is_named, "{name} is in {unit}");
        }
        assert!(help.ends_with('.') && !help.contains('|'), "{name}: {help}");
    }
}

#[test]
fn the_document_lists_the_metrics_of_the_table() {
    let (_, section) = MONITORING.split_once("\n### Metrics\n").expect("the section is there");
    let (section, _) = section.split_once("\n### ").expect("another one follows");
    let documented: Vec<_> = section.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<_> = METRICS.iter().map(row).collect();
    assert_eq!(documented, expected, "it has to be:\n{}", expected.join("\n"));
}

// Promises: ops-dashboard.
#[test]
fn alerts_and_the_dashboard_ask_only_for_what_there_is() {
    assert_eq!(unknown("rate(boltkv_gone_total[5m]) boltkv_request_duration_seconds").len(), 2);
    let (_, alerts) = MONITORING.split_once("\n### Alerts\n").expect("the section is there");
    let (alerts, _) = alerts.split_once("\n### ").expect("another one follows");
    for text in [alerts, DASHBOARD] {
        assert!(names(text).len() > 3);
        assert!(unknown(text).is_empty(), "{:?}", unknown(text));
    }
}
