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
}

impl Figure {
    /// The figure of one run; `None` where the engine did not get that far.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "bytes, far below 2^52")]
    pub fn of(self, run: &Run) -> Option<f64> {
        let rate = |name: &str| run.costs.get(name).map(super::results::Total::rate);
        match self {
            Self::Rate(name) => rate(name),
            Self::Ratio(over, under) => Some(rate(over)? / rate(under)?),
            Self::Growth(names) => {
                let rates: Vec<_> = names.iter().map(|name| rate(name)).collect::<Option<_>>()?;
                Summary::of(rates).map(|rates| rates.max / rates.min)
            }
            Self::PeakPrivate => run.peak_private.map(|bytes| bytes as f64),
            Self::Used => run.used.map(|bytes| bytes as f64),
        }
    }

    /// The figure over all rounds.
    #[must_use]
    pub fn over(self, results: &Results, work: &str, contestant: &str) -> Option<Summary> {
        Summary::of(results.of(work, contestant).filter_map(|run| self.of(run)))
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
            Self::Ratio(..) | Self::Growth(_) => format!("{} ×", digits(value)),
            Self::PeakPrivate | Self::Used => format!("{} MiB", digits(value / f64::from(1 << 20))),
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
    /// The goal.
    pub goal: Goal,
    /// How many times the other's it is.
    pub reached: f64,
    /// Whether the goal is reached.
    pub holds: bool,
}

impl Row {
    /// A row of ours in its default setting.
    #[must_use]
    pub const fn new(title: &'static str, figure: Figure, bar: Goal, aim: Goal) -> Self {
        Self { title, ours: "boltkv", figure, bar: Some(bar), aim: Some(aim) }
    }

    /// Where it stands; `None` where one of the two was not measured.
    #[must_use]
    pub fn standing(&self, goal: Goal, results: &Results, work: &str) -> Option<Standing> {
        let ours = self.figure.over(results, work, self.ours)?.median;
        let theirs = goal.of.map_or(Some(1.0), |of| Some(self.figure.over(results, work, of)?.median))?;
        let reached = ours / theirs;
        let holds = if self.figure.more_is_better() { reached >= goal.times } else { reached <= goal.times };
        Some(Standing { goal, reached, holds })
    }
}
