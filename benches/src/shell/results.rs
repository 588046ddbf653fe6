//! What was measured from the shell, as it is kept in a JSON file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::process::Resident;
use crate::results::LeftOut;
use crate::stats::Summary;

/// Everything that one call of the program has measured from the shell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shell {
    /// Where.
    pub machine: Machine,
    /// The command that does it again.
    pub command: String,
    /// Whether the files were small ones, to try the program.
    pub quick: bool,
    /// The tools, with their versions.
    pub versions: BTreeMap<String, String>,
    /// The servers, in the order in which they took turns.
    pub targets: Vec<Target>,
    /// What was not measured, and why.
    pub left_out: Vec<LeftOut>,
}

/// A server, and what was measured of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// `echo`, `boltkv` or `Redis`.
    pub name: String,
    /// What it serves; `None` but for boltkv.
    pub file: Option<File>,
    /// Seconds from its start until it said that it is ready; `None` where it is no process of its own.
    pub start: Option<Summary>,
    /// Its memory after all commands; `None` where it is no process of its own.
    pub resident: Option<Resident>,
    /// What each command took.
    pub timings: BTreeMap<String, Timing>,
}

/// A file that was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// About so many bytes of entries were asked for; in titles.
    pub asked: u64,
    /// Entries at the start.
    pub entries: u64,
    /// Its length at the start, in bytes.
    pub bytes: u64,
}

/// What a command took, in seconds, without the start of its shell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// How often it was run.
    pub runs: u64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// The median, the shortest and the longest.
    #[serde(flatten)]
    pub summary: Summary,
}

impl Timing {
    /// Sums up; `None` where there is nothing.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a count of runs, far below 2^52")]
    pub fn of(seconds: &[f64]) -> Option<Self> {
        let summary = Summary::of(seconds.iter().copied())?;
        let count = seconds.len() as f64;
        let mean = seconds.iter().sum::<f64>() / count;
        let variance = seconds.iter().map(|each| (each - mean).powi(2)).sum::<f64>() / count;
        Some(Self { runs: seconds.len() as u64, mean, deviation: variance.sqrt(), summary })
    }
}

impl Target {
    /// What a reader takes it for.
    #[must_use]
    pub fn title(&self) -> String {
        match self.file {
            None => self.name.clone(),
            Some(File { asked: 0, .. }) => format!("{}, empty file", self.name),
            Some(file) => format!("{}, {}", self.name, file.size()),
        }
    }
}

impl File {
    /// The bytes that were asked for, with a unit.
    #[must_use]
    pub fn size(&self) -> String {
        let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"), (1, "bytes")];
        let (unit, name) = units.into_iter().find(|(unit, _)| self.asked >= *unit).unwrap_or((1, "bytes"));
        format!("{} {name}", self.asked / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_named_by_the_size_of_its_file() {
        let target = |asked| Target {
            name: "boltkv".to_owned(),
            file: Some(File { asked, entries: 0, bytes: 0 }),
            start: None,
            resident: None,
            timings: BTreeMap::new(),
        };
        let titles = [0, 10_000, 1_000_000, 1_000_000_000].map(|asked| target(asked).title());
        assert_eq!(titles, ["boltkv, empty file", "boltkv, 10 kB", "boltkv, 1 MB", "boltkv, 1 GB"]);
    }

    #[test]
    fn a_timing_has_mean_deviation_and_median() {
        let timing = Timing::of(&[1.0, 2.0, 6.0]).unwrap();
        assert_eq!((timing.runs, timing.summary.median), (3, 2.0));
        assert!((timing.mean - 3.0).abs() < 1e-9 && (timing.deviation - (14.0_f64 / 3.0).sqrt()).abs() < 1e-9);
        assert_eq!(Timing::of(&[]), None);
    }
}
