//! Rows of the table: what of a work is looked at, and what it should come to.

use crate::results::{Results, Run};
use crate::stats::Summary;

/// What of a run is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Operations per second.
    Rate(&'static str),
    /// The first's operations per second over the second's.
    Ratio(&'static str, &'static str),
    /// The longest time per operation (or the most instructions) over the shortest.
    Growth(&'static [&'static str]),
    /// The most private memory, in bytes.
    PeakPrivate,
    /// Bytes of the file in use.
    Used,
    /// Bytes of the file.
    File,
    /// Bytes of the file after what this figure counts.
    Size(&'static str),
    /// The first's bytes over the second's.
    Sizes(&'static str, &'static str),
}

impl Figure {
    /// The figure of one run; `None` where the engine did not get that far.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "bytes, far below 2^52")]
    pub fn of(self, run: &Run) -> Option<f64> {
        let rate = |name: &str| run.costs.get(name).map(super::results::Total::rate);
        let size = |name: &str| Some(run.costs.get(name)?.file_bytes? as f64);
        match self {
            Self::Rate(name) => rate(name),
            Self::Ratio(over, under) => Some(rate(over)? / rate(under)?),
            Self::Growth(names) => {
                let rates: Vec<_> = names.iter().map(|name| rate(name)).collect::<Option<_>>()?;
                Summary::of(rates).map(|rates| rates.max / rates.min)
            }
            Self::PeakPrivate => run.peak_private.map(|bytes| bytes as f64),
            Self::Used => run.used.map(|bytes| bytes as f64),
            Self::File => run.file_bytes.map(|bytes| bytes as f64),
            Self::Size(name) => size(name),
            Self::Sizes(over, under) => Some(size(over)? / size(under)?),
        }
    }

    /// The figure over all rounds.
    #[must_use]
    pub fn over(self, results: &Results, work: &str, contestant: &str) -> Option<Summary> {
        Summary::of(self.rounds(results, work, contestant))
    }

    /// The figure of each round.
    fn rounds(self, results: &Results, work: &str, contestant: &str) -> Vec<f64> {
        results.of(work, contestant).filter_map(|run| self.of(run)).collect()
    }

    /// Whether more is better.
    #[must_use]
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::Rate(_) | Self::Ratio(..))
    }

    /// A value of the figure with its unit.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Rate(_) => per_second(value),
            Self::Ratio(..) | Self::Sizes(..) | Self::Growth(_) => format!("{} ×", digits(value)),
            Self::PeakPrivate | Self::Used | Self::File | Self::Size(_) => {
                format!("{} MiB", digits(value / f64::from(1 << 20)))
            }
        }
    }
}

/// A rate with its unit.
#[must_use]
pub fn per_second(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{} M/s", digits(v / 1e6)),
        v if v >= 1e4 => format!("{} k/s", digits(v / 1e3)),
        v if v >= 100.0 => format!("{v:.0} /s"),
        v => format!("{} /s", digits(v)),
    }
}

/// Three digits, or all before the point.
#[must_use]
pub fn digits(value: f64) -> String {
    match value {
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// A share, in percent.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A number with the prefix of its unit, as an axis has room for.
#[must_use]
pub fn short(value: f64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (0.0, "n")];
    let (unit, name) = units.into_iter().find(|(unit, _)| value >= *unit).unwrap_or((1.0, ""));
    let unit = if unit == 0.0 { 1e-9 } else { unit };
    let number = digits(value / unit);
    let plain = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
    format!("{plain}{name}")
}

/// What a row should come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// So many times …
    pub times: f64,
    /// … what this contestant has; `None`: the figure itself.
    pub of: Option<&'static str>,
}

/// So many times what a contestant has.
#[must_use]
pub const fn times(times: f64, of: &'static str) -> Goal {
    Goal { times, of: Some(of) }
}

/// The figure itself.
#[must_use]
pub const fn plainly(times: f64) -> Goal {
    Goal { times, of: None }
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// What it says.
    pub title: &'static str,
    /// The contestant that is us.
    pub ours: &'static str,
    /// What is looked at.
    pub figure: Figure,
    /// What must hold.
    pub bar: Option<Goal>,
    /// Where we are going.
    pub aim: Option<Goal>,
}

/// Where a row stands against a goal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// How many times the other's it is: the median over the other's median, and the least and the most of any round.
    pub reached: Summary,
    /// Whether the goal is reached, by the medians.
    pub holds: bool,
    /// Whether it is reached in every round.
    pub holds_in_every_round: bool,
}

impl Row {
    /// A row of ours in its default setting, without goals.
    #[must_use]
    pub const fn of(title: &'static str, figure: Figure) -> Self {
        Self { title, ours: "boltkv", figure, bar: None, aim: None }
    }

    /// This must hold.
    #[must_use]
    pub const fn bar(mut self, bar: Goal) -> Self {
        self.bar = Some(bar);
        self
    }

    /// There we are going.
    #[must_use]
    pub const fn aim(mut self, aim: Goal) -> Self {
        self.aim = Some(aim);
        self
    }

    /// That contestant is us.
    #[must_use]
    pub const fn ours(mut self, contestant: &'static str) -> Self {
        self.ours = contestant;
        self
    }

    /// Where it stands; `None` where one of the two was not measured, or only on trial.
    #[must_use]
    pub fn standing(&self, goal: Goal, results: &Results, work: &str) -> Option<Standing> {
        if results.quick {
            return None;
        }
        let ours = self.figure.rounds(results, work, self.ours);
        let theirs = match goal.of {
            Some(of) => self.figure.rounds(results, work, of),
            None => vec![1.0; ours.len()],
        };
        let median = Summary::of(ours.iter().copied())?.median / Summary::of(theirs.iter().copied())?.median;
        let rounds = Summary::of(ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs))?;
        let more = self.figure.more_is_better();
        let holds = |reached: f64| if more { reached >= goal.times } else { reached <= goal.times };
        let worst = if more { rounds.min } else { rounds.max };
        let reached = Summary { median, ..rounds };
        Some(Standing { reached, holds: holds(median), holds_in_every_round: holds(worst) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_on_axes_are_short() {
        let shown = [0.000_002, 0.01, 1.0, 250.0, 5_000.0, 1_250_000.0].map(short);
        assert_eq!(shown, ["2µ", "10m", "1", "250", "5k", "1.25M"]);
    }
}
