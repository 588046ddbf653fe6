//! Bars in rows, over an axis from 0 on: what each thing takes, and how far that varies.

use std::path::Path;

use anyhow::Result;
use plotters::prelude::*;

use super::plot::{COLOURS, PANEL, ROW, said};
use crate::goal::short;

/// Pixels that the names of bars take.
const NAMES: u32 = 220;

/// A bar.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    /// What it shows.
    pub(super) name: String,
    /// How long it is.
    pub(super) value: f64,
    /// How far a line reaches to both sides of its end.
    pub(super) spread: f64,
    /// Bars of a kind have a colour; a number below that of colours.
    pub(super) kind: usize,
}

/// Draws bars, the first on top; `axis` says what their length is.
///
/// # Errors
/// The file cannot be written.
pub(super) fn draw(file: &Path, axis: &str, bars: &[Bar]) -> Result<()> {
    let height = u32::try_from(bars.len())? * ROW;
    let root = SVGBackend::new(file, (NAMES + PANEL.0, height + 3 * ROW)).into_drawing_area();
    root.fill(&WHITE).map_err(said)?;
    let longest = bars.iter().map(|bar| bar.value + bar.spread).fold(f64::MIN_POSITIVE, f64::max);
    let (left, right) = root.split_horizontally(NAMES);
    let mut chart = ChartBuilder::on(&right)
        .x_label_area_size(2 * ROW)
        .margin_right(16)
        .margin_top(ROW)
        .build_cartesian_2d(0.0..longest * 1.05, 0.0..f64::from(height))
        .map_err(said)?;
    let mut mesh = chart.configure_mesh();
    mesh.disable_y_mesh().disable_y_axis().light_line_style(TRANSPARENT).bold_line_style(BLACK.mix(0.12));
    mesh.x_label_formatter(&|value| if *value > 0.0 { short(*value) } else { "0".to_owned() });
    mesh.x_desc(axis).label_style(("sans-serif", 14)).draw().map_err(said)?;
    for (bar, at) in bars.iter().zip(0_u32..) {
        let from_top = at * ROW + ROW / 2;
        let below = i32::try_from(ROW + from_top)? - 7;
        left.draw(&Text::new(bar.name.as_str(), (8, below), ("sans-serif", 14))).map_err(said)?;
        let middle = f64::from(height - from_top);
        let corners = [(0.0, middle - 8.0), (bar.value, middle + 8.0)];
        let ends = [(bar.value - bar.spread, middle), (bar.value + bar.spread, middle)];
        let area = chart.plotting_area();
        area.draw(&Rectangle::new(corners, COLOURS[bar.kind % COLOURS.len()].filled())).map_err(said)?;
        area.draw(&PathElement::new(ends, BLACK.stroke_width(2))).map_err(said)?;
    }
    root.present().map_err(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_named_and_have_an_axis() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bars.svg");
        let bar = |name: &str, value, kind| Bar { name: name.to_owned(), value, spread: 0.1, kind };
        draw(&file, "ms", &[bar("echo", 1.2, 0), bar("boltkv", 1.4, 1)]).unwrap();
        let drawn = std::fs::read_to_string(file).unwrap();
        assert!(["echo", "boltkv", "ms"].iter().all(|word| drawn.contains(word)));
        assert_eq!(drawn.matches("<rect").count(), 3, "the ground and two bars");
    }
}
