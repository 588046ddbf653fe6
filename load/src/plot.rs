//! What was measured as an SVG: latency by percentile beside the rate over time, a line a test.

use std::path::Path;

use hdrhistogram::Histogram;
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::{Error, Measured};

/// Pixels of each of the two charts.
const CHART: (u32, u32) = (560, 380);
/// Colours that also those tell apart who see colours otherwise.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x56, 0xB4, 0xE9),
    RGBColor(0x77, 0x77, 0x77),
    RGBColor(0x00, 0x00, 0x00),
];
/// How many steps the axis of percentiles has: each is ten times nearer to all.
const NINES: f64 = 4.0;
const STEPS_A_NINE: u32 = 20;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A line: a name, and points.
struct Line<'a> {
    name: &'a str,
    points: Vec<(f64, f64)>,
}

/// Draws runs, each under its name.
///
/// # Errors
/// The file cannot be written.
pub fn plot(file: &Path, title: &str, runs: &[(String, &Measured)]) -> Result<(), Error> {
    let mut percentiles = Vec::new();
    let mut rates = Vec::new();
    for (name, measured) in runs {
        percentiles.push(Line { name, points: by_percentile(&measured.latencies()?) });
        rates.push(Line { name, points: over_time(measured) });
    }
    draw(file, title, &percentiles, &rates)
        .map_err(|why| Error::Impossible(format!("cannot draw {}: {why}", file.display())))
}

/// Milliseconds by the number of nines: 1 is 90 %, 2 is 99 %.
#[expect(clippy::cast_precision_loss, reason = "pixels are coarser")]
fn by_percentile(latencies: &Histogram<u64>) -> Vec<(f64, f64)> {
    if latencies.is_empty() {
        return Vec::new();
    }
    let steps = 0..=STEPS_A_NINE * 4;
    let nines = steps.map(|step| f64::from(step) / f64::from(STEPS_A_NINE));
    // One of so many requests is seen as far as there are as many.
    let seen = (latencies.len() as f64).log10();
    let point = |nines: f64| (nines, latencies.value_at_quantile(1.0 - 0.1_f64.powf(nines)).max(1) as f64 / 1e6);
    nines.take_while(|nines| *nines <= seen).map(point).collect()
}

/// Requests a second by seconds. The last slice may not be over, and is left out where there are others.
#[expect(clippy::cast_precision_loss, reason = "pixels are coarser")]
fn over_time(measured: &Measured) -> Vec<(f64, f64)> {
    let width = measured.series.width().as_secs_f64();
    let slices = measured.series.slices();
    let whole = slices.len().saturating_sub(1).max(usize::from(!slices.is_empty()));
    let slices = slices.iter().take(whole).enumerate();
    slices.map(|(number, slice)| (number as f64 * width, slice.answered as f64 / width)).collect()
}

fn draw(file: &Path, title: &str, percentiles: &[Line<'_>], rates: &[Line<'_>]) -> Result<(), String> {
    let root = SVGBackend::new(file, (CHART.0 * 2, CHART.1 + 30)).into_drawing_area();
    root.fill(&WHITE).map_err(said)?;
    let root = root.titled(title, ("sans-serif", 18)).map_err(said)?;
    let (left, right) = root.split_horizontally(CHART.0);
    latency_chart(&left, percentiles)?;
    rate_chart(&right, rates)?;
    root.present().map_err(said)
}

fn latency_chart(area: &Area<'_>, lines: &[Line<'_>]) -> Result<(), String> {
    let values = || lines.iter().flat_map(|line| &line.points).map(|point| point.1);
    let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    let range = if most > 0.0 { least / 1.5..most * 1.5 } else { 0.1..10.0 };
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..NINES, range.log_scale())
        .map_err(said)?;
    chart
        .configure_mesh()
        .x_desc("percentile")
        .y_desc("latency, ms")
        .label_style(("sans-serif", 13))
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_labels(5)
        .x_label_formatter(&|nines| percent(*nines))
        .y_label_formatter(&|value| short(*value))
        .draw()
        .map_err(said)?;
    for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let drawn = chart.draw_series(LineSeries::new(line.points.iter().copied(), colour.stroke_width(2)));
        drawn.map_err(said)?.label(line.name).legend(key(*colour));
    }
    let legend = &mut chart.configure_series_labels();
    legend.position(SeriesLabelPosition::UpperLeft).label_font(("sans-serif", 13));
    legend.background_style(WHITE.mix(0.85)).draw().map_err(said)
}

fn rate_chart(area: &Area<'_>, lines: &[Line<'_>]) -> Result<(), String> {
    let most = |of: fn(&(f64, f64)) -> f64| lines.iter().flat_map(|line| &line.points).map(of).fold(0.0, f64::max);
    let (seconds, rate) = (most(|point| point.0).max(0.1), most(|point| point.1).max(1.0));
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..seconds, 0.0..rate * 1.1)
        .map_err(said)?;
    chart
        .configure_mesh()
        .x_desc("seconds")
        .y_desc("requests a second")
        .label_style(("sans-serif", 13))
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_labels(6)
        .y_labels(6)
        .y_label_formatter(&|value| short(*value))
        .draw()
        .map_err(said)?;
    for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let drawn = chart.draw_series(LineSeries::new(line.points.iter().copied(), colour.stroke_width(2)));
        drawn.map_err(said)?;
    }
    Ok(())
}

/// A line's piece in the legend.
fn key(colour: RGBColor) -> impl Fn((i32, i32)) -> PathElement<(i32, i32)> {
    move |(x, y)| PathElement::new([(x, y), (x + 14, y)], colour.stroke_width(2))
}

fn percent(nines: f64) -> String {
    let digits = if nines < 2.5 { 0 } else { 2 };
    let percent = 100.0 * (1.0 - 0.1_f64.powf(nines));
    if (nines - 3.0).abs() < 0.01 { format!("{percent:.1} %") } else { format!("{percent:.digits$} %") }
}

fn short(value: f64) -> String {
    match value {
        1e6.. => format!("{}M", value / 1e6),
        1e3.. => format!("{}k", value / 1e3),
        _ => format!("{}", (value * 1e4).round() / 1e4),
    }
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;
    use crate::measured::OfOp;

    #[test]
    fn a_run_is_drawn_as_far_as_it_was_seen_and_one_without_answers_as_nothing() {
        let mut measured = Measured::new();
        let mut of = OfOp::new().unwrap();
        (1..=1000_u64).for_each(|number| {
            of.latencies.record(number * 10_000).unwrap();
            measured.series.note(number * 1_000_000, number);
        });
        measured.of.insert(Op::Get, of);
        let points = by_percentile(&measured.latencies().unwrap());
        assert_eq!(points.last().map(|point| point.0), Some(3.0), "a thousand requests tell of 99.9 %");
        assert!(
            (4.9..5.1).contains(&points[6].1) && (0.29..0.31).contains(&points[6].0),
            "half of them took 5 ms: {points:?}"
        );
        assert_eq!(over_time(&measured).len(), 10);

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plot.svg");
        plot(&file, "a <server>", &[("get".to_owned(), &measured), ("set".to_owned(), &Measured::new())]).unwrap();
        let svg = std::fs::read_to_string(&file).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("99.9 %") && svg.contains("a &lt;server&gt;"), "{svg}");
        assert!(plot(&folder.path().join("no/where.svg"), "", &[]).is_err());
    }

    #[test]
    fn axes_have_short_numbers() {
        assert_eq!([0.0, 1.0, 2.0, 3.0, 4.0].map(percent), ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        assert_eq!([0.05, 10.0, 25_000.0, 1e6].map(short), ["0.05", "10", "25k", "1M"]);
    }
}
