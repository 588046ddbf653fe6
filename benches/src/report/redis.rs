//! How boltkv's rates stand to Redis', row by row, on one machine and on the others, in one picture.

use std::path::Path;

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::plot::{COLOURS, PANEL, ROW, said};
use super::servers::beside_redis;
use crate::servers::{Row, Servers, Who, rows};
use crate::stats::Summary;

/// Pixels that the names of rows take, and that stay free at the right.
const NAMES: u32 = 340;
const MARGIN: u32 = 24;
/// Where the axis has its labels.
const TICKS: [f64; 9] = [0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 5.0, 10.0, 20.0];
/// Pixels before the first machine's name, from one to the next, and how many stand side by side.
const LEGEND: (u32, u32) = (100, 140);
const BESIDE: u32 = (NAMES + PANEL.0 + MARGIN - LEGEND.0) / LEGEND.1;

/// From a ratio to a place on the logarithmic axis.
struct Axis {
    least: f64,
    most: f64,
}

impl Axis {
    /// An axis on which all these have their places, with 1.
    fn over(values: impl Iterator<Item = f64>) -> Self {
        let (least, most) = values.fold((1.0_f64, 1.0_f64), |(least, most), at| (least.min(at), most.max(at)));
        Self { least: least / 1.1, most: most * 1.1 }
    }

    fn has(&self, ratio: f64) -> bool {
        (self.least..=self.most).contains(&ratio)
    }

    #[expect(clippy::cast_possible_truncation, reason = "within the picture")]
    fn at(&self, ratio: f64) -> i32 {
        let share = (ratio / self.least).ln() / (self.most / self.least).ln();
        (f64::from(NAMES) + share * f64::from(PANEL.0)) as i32
    }
}

/// Draws a bar for each row of the first of these, from what Redis has to what boltkv has, with its spread, and dots for what
/// it was for the others; which are told apart by how much their disks do.
///
/// # Errors
/// The file cannot be written.
pub(super) fn draw(file: &Path, all: &[&Servers]) -> Result<()> {
    let Some((first, others)) = all.split_first() else { return Ok(()) };
    let bars: Vec<_> = rows().iter().filter_map(|row| Some((row, ratio(first, row)?))).collect();
    let dots = |row: &Row| -> Vec<_> {
        let dots = others.iter().enumerate().filter_map(|(at, servers)| Some((at, ratio(servers, row)?.median)));
        dots.collect()
    };
    let reached = bars.iter().flat_map(|(row, bar)| {
        dots(row).into_iter().map(|dot| dot.1).chain([bar.median, bar.min, bar.max]).collect::<Vec<_>>()
    });
    let axis = Axis::over(reached);
    let bottom = i32::try_from(ROW * (u32::try_from(bars.len())? + 1))?;
    let machines = u32::try_from(all.len())?;
    let size = (NAMES + PANEL.0 + MARGIN, u32::try_from(bottom)? + (2 + machines.div_ceil(BESIDE)) * ROW);
    let root = SVGBackend::new(file, size).into_drawing_area();
    root.fill(&WHITE).map_err(said)?;
    let text = |size: i32, from: HPos| TextStyle::from(("sans-serif", size)).pos(Pos::new(from, VPos::Center));
    let middle = i32::try_from(ROW / 2)?;
    for tick in TICKS.into_iter().filter(|tick| axis.has(*tick)) {
        let (at, top) = (axis.at(tick), i32::try_from(ROW)?);
        let is_even = (tick - 1.0).abs() < f64::EPSILON;
        let line = PathElement::new([(at, top), (at, bottom)], BLACK.mix(if is_even { 0.6 } else { 0.12 }));
        root.draw(&line).map_err(said)?;
        let label = if is_even { "Redis".to_owned() } else { format!("{tick} ×") };
        root.draw(&Text::new(label, (at, bottom + middle), text(15, HPos::Center))).map_err(said)?;
    }
    let colour = |machine: usize| COLOURS[machine % COLOURS.len()];
    for ((row, bar), at) in bars.iter().zip(1_u32..) {
        let line = i32::try_from(at * ROW)? + middle;
        root.draw(&Text::new(row.title, (8, line), text(15, HPos::Left))).map_err(said)?;
        let corners = [(axis.at(1.0), line - 8), (axis.at(bar.median), line + 8)];
        root.draw(&Rectangle::new(corners, colour(0).filled())).map_err(said)?;
        let ends = [(axis.at(bar.min), line), (axis.at(bar.max), line)];
        root.draw(&PathElement::new(ends, BLACK.stroke_width(2))).map_err(said)?;
        for (machine, value) in dots(row) {
            let dot = EmptyElement::at((axis.at(value), line))
                + Circle::new((0, 0), 5, WHITE.filled())
                + Circle::new((0, 0), 4, colour(machine + 1).filled());
            root.draw(&dot).map_err(said)?;
        }
    }
    let line = bottom + 2 * i32::try_from(ROW)?;
    root.draw(&Text::new("on a disk of", (8, line), text(15, HPos::Left))).map_err(said)?;
    for (machine, servers) in all.iter().enumerate() {
        let place = u32::try_from(machine)?;
        let at = i32::try_from(LEGEND.0 + LEGEND.1 * (place % BESIDE))?;
        let line = line + i32::try_from(place / BESIDE * ROW)?;
        if machine == 0 {
            root.draw(&Rectangle::new([(at, line - 6), (at + 12, line + 6)], colour(0).filled())).map_err(said)?;
        } else {
            root.draw(&Circle::new((at + 6, line), 5, colour(machine).filled())).map_err(said)?;
        }
        root.draw(&Text::new(disk(servers), (at + 18, line), text(15, HPos::Left))).map_err(said)?;
    }
    root.present().map_err(said)
}

/// How much the disk does, as it is told in the headings.
fn disk(servers: &Servers) -> String {
    servers
        .disk_writes
        .map_or_else(|| format!("{} syncs/s", servers.machine.syncs), |writes| format!("{writes} writes/s"))
}

/// boltkv's rate, on a fresh file, as so many times Redis'.
fn ratio(servers: &Servers, row: &Row) -> Option<Summary> {
    beside_redis(servers, row, Who::Fresh, |run| run.rate)
}

#[cfg(test)]
mod tests {
    use super::super::servers::made_up;
    use super::*;

    #[test]
    fn each_row_has_a_bar_and_a_dot_for_each_other_machine() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("redis.svg");
        let other = Servers { disk_writes: Some(70), ..made_up() };
        draw(&file, &[&made_up(), &other]).unwrap();
        let drawn = std::fs::read_to_string(file).unwrap();
        assert!(rows().iter().all(|row| drawn.contains(&row.title.replace('&', "&amp;"))));
        assert!(["70 writes/s", "syncs/s", "Redis"].iter().all(|word| drawn.contains(word)));
        assert_eq!(drawn.matches("<rect").count(), rows().len() + 2, "the ground, the bars and the legend's");
        assert_eq!(drawn.matches("<circle").count(), 2 * rows().len() + 1);
    }

    #[test]
    fn however_many_machines_there_are_their_names_are_within_the_picture() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("redis.svg");
        let all: Vec<_> = (1..=9).map(|writes| Servers { disk_writes: Some(writes), ..made_up() }).collect();
        draw(&file, &all.iter().collect::<Vec<_>>()).unwrap();
        let drawn = std::fs::read_to_string(file).unwrap();
        let number = |text: &str, name: &str| -> u32 {
            let from = text.split_once(&format!("{name}=\"")).unwrap().1;
            from.split_once('"').unwrap().0.parse().unwrap()
        };
        let (wide, high) = (number(&drawn, "width"), number(&drawn, "height"));
        let of = |writes: u32| {
            let end = drawn.find(&format!("\n{writes} writes/s\n")).unwrap();
            let element = &drawn[drawn[..end].rfind("<text").unwrap()..end];
            (number(element, " x"), number(element, " y"))
        };
        let places: Vec<_> = (1..=9).map(of).collect();
        assert!(places.iter().all(|&(x, y)| x + LEGEND.1 - 18 <= wide && y + ROW / 2 <= high), "{places:?}");
        assert!(places.windows(2).all(|two| two[0] != two[1]));
    }

    #[test]
    fn what_is_as_fast_as_redis_has_its_place_on_the_axis() {
        let axis = Axis::over([2.0, 4.0].into_iter());
        assert!(axis.has(1.0) && axis.at(1.0) > i32::try_from(NAMES).unwrap() && axis.at(4.0) > axis.at(2.0));
        assert!(!axis.has(0.5) && !axis.has(5.0));
    }
}
