//! Plots as SVG, over logarithmic axes: lines in panels beside each other, and rows of dots. What is plotted is its
//! caller's affair.

use std::ops::Range;
use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::contestant::ENGINES;
use crate::goal::short;

/// Pixels of a panel.
pub(super) const PANEL: (u32, u32) = (480, 320);

/// Pixels of a row of dots, from the next one.
pub(super) const ROW: u32 = 24;

/// Pixels that the names of rows take.
const NAMES: u32 = 520;

/// A colour for each engine, the same in every plot, that also those tell apart who see colours otherwise.
pub(super) const COLOURS: [RGBColor; ENGINES.len()] = [
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x56, 0xB4, 0xE9),
    RGBColor(0x77, 0x77, 0x77),
    RGBColor(0x99, 0x66, 0x33),
    RGBColor(0x33, 0x33, 0x99),
    RGBColor(0x00, 0x00, 0x00),
];

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    /// Whose.
    pub(super) contestant: String,
    /// Its points, both numbers above 0.
    pub(super) points: Vec<(f64, f64)>,
}

/// Lines over common axes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Panel {
    /// What is seen.
    pub(super) title: String,
    /// The horizontal axis.
    pub(super) x: &'static str,
    /// The vertical axis.
    pub(super) y: &'static str,
    /// The lines.
    pub(super) series: Vec<Series>,
}

/// Draws panels, so many in a row.
///
/// # Errors
/// The file cannot be written.
pub(super) fn draw(file: &Path, columns: u32, panels: &[Panel]) -> Result<()> {
    let panels: Vec<_> =
        panels.iter().filter(|panel| panel.series.iter().any(|line| !line.points.is_empty())).collect();
    let columns = columns.min(u32::try_from(panels.len())?).max(1);
    let rows = u32::try_from(panels.len())?.div_ceil(columns).max(1);
    let root = SVGBackend::new(file, (PANEL.0 * columns, PANEL.1 * rows)).into_drawing_area();
    root.fill(&WHITE).map_err(said)?;
    for (area, panel) in root.split_evenly((rows as usize, columns as usize)).iter().zip(panels) {
        one(area, panel)?;
    }
    root.present().map_err(said)
}

fn one(area: &DrawingArea<SVGBackend<'_>, Shift>, panel: &Panel) -> Result<()> {
    let points = || panel.series.iter().flat_map(|line| &line.points);
    let (xs, ys) = (around(points().map(|point| point.0)), around(points().map(|point| point.1)));
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(xs.log_scale(), ys.log_scale())
        .map_err(said)?;
    chart
        .configure_mesh()
        .x_desc(panel.x)
        .y_desc(panel.y)
        .label_style(("sans-serif", 14))
        .x_labels(6)
        .y_labels(6)
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_label_formatter(&|value| short(*value))
        .y_label_formatter(&|value| short(*value))
        .draw()
        .map_err(said)?;
    for line in &panel.series {
        let colour = colour(&line.contestant);
        let dots = line.points.iter().map(|&point| Circle::new(point, 3, colour.filled()));
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), colour.stroke_width(2)))
            .map_err(said)?
            .label(&line.contestant)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], colour.stroke_width(2)));
        chart.draw_series(dots).map_err(said)?;
    }
    // Costs grow to the right and rates mostly fall: there is room at the left.
    let room =
        if panel.y.ends_with("a second") { SeriesLabelPosition::LowerLeft } else { SeriesLabelPosition::UpperLeft };
    chart
        .configure_series_labels()
        .position(room)
        .label_font(("sans-serif", 14))
        .background_style(WHITE.mix(0.85))
        .draw()
        .map_err(said)
}

/// Dots in rows: each row's name, and whose dot lies where.
pub(super) type Rows<'r> = Vec<(&'r str, Vec<(&'r str, f64)>)>;

/// Draws rows of dots, the first on top, with a line at 1 and a legend below.
///
/// # Errors
/// The file cannot be written.
pub(super) fn dots(file: &Path, rows: &Rows<'_>) -> Result<()> {
    let height = u32::try_from(rows.len())? * ROW;
    let root = SVGBackend::new(file, (NAMES + 2 * PANEL.0, height + 3 * ROW)).into_drawing_area();
    root.fill(&WHITE).map_err(said)?;
    let values = rows.iter().flat_map(|(_, dots)| dots.iter().map(|dot| dot.1));
    let (left, right) = root.split_horizontally(NAMES);
    let mut chart = ChartBuilder::on(&right)
        .x_label_area_size(2 * ROW)
        .margin_right(16)
        .margin_top(ROW)
        .build_cartesian_2d(around(values).log_scale(), 0.0..f64::from(height))
        .map_err(said)?;
    let light = BLACK.mix(0.12);
    let mut mesh = chart.configure_mesh();
    mesh.disable_y_mesh().disable_y_axis().light_line_style(TRANSPARENT).bold_line_style(light);
    mesh.label_style(("sans-serif", 14)).x_label_formatter(&|value| format!("{value} ×")).draw().map_err(said)?;
    let even = PathElement::new([(1.0, 0.0), (1.0, f64::from(height))], BLACK.mix(0.5));
    chart.plotting_area().draw(&even).map_err(said)?;
    for ((name, dots), at) in rows.iter().zip(0_u32..) {
        let from_top = at * ROW + ROW / 2;
        let below = i32::try_from(ROW + from_top)? - 7;
        left.draw(&Text::new((*name).to_owned(), (8, below), ("sans-serif", 14))).map_err(said)?;
        for (contestant, value) in dots {
            let dot = Circle::new((*value, f64::from(height - from_top)), 5, colour(contestant).filled());
            chart.plotting_area().draw(&dot).map_err(said)?;
        }
    }
    let drawn =
        |engine: &&&str| rows.iter().any(|(_, dots)| dots.iter().any(|(name, _)| colour(name) == colour(engine)));
    for (engine, at) in ENGINES.iter().filter(drawn).zip(0..) {
        let place = (8 + at * 100, i32::try_from(height + 2 * ROW)?);
        root.draw(&Circle::new((place.0 + 5, place.1 + 7), 5, colour(engine).filled())).map_err(said)?;
        root.draw(&Text::new(*engine, (place.0 + 16, place.1), ("sans-serif", 14))).map_err(said)?;
    }
    root.present().map_err(said)
}

/// The contestants' colour: that of their engine.
fn colour(contestant: &str) -> RGBColor {
    let engine = contestant.split('+').next().unwrap_or(contestant);
    ENGINES.iter().position(|known| *known == engine).map_or(BLACK, |at| COLOURS[at])
}

/// From a power of ten to a power of ten around all values, and a little more: an axis has its labels there.
fn around(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    let least = 10_f64.powf((low * 1.001).log10().floor());
    // Also where all values are one power of ten.
    let most = 10_f64.powf((high / 1.001).log10().ceil()).max(least * 10.0);
    least * 0.95..most * 1.05
}

pub(super) fn said(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_dots_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("dots.svg");
        dots(&file, &vec![("random get", vec![("lmdb", 1.2), ("redb", 0.3)]), ("scan", vec![])]).unwrap();
        let drawn = std::fs::read_to_string(file).unwrap();
        assert!(["random get", "scan"].iter().all(|word| drawn.contains(word)));
    }

    #[test]
    fn a_plot_names_its_lines_and_panels() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plot.svg");
        let line = Series { contestant: "lmdb".to_owned(), points: vec![(1.0, 2.0), (10.0, 3.0)] };
        let panel = Panel { title: "gets".to_owned(), x: "entries", y: "per second", series: vec![line] };
        draw(&file, 2, &[panel.clone(), panel]).unwrap();
        let drawn = std::fs::read_to_string(file).unwrap();
        assert!(["lmdb", "gets", "entries", "per second"].iter().all(|word| drawn.contains(word)));
    }
}
