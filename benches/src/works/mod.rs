//! All works: the table's and the experiments'. A work here is only data; nothing may be measured here.

pub mod batches;
pub mod growth;
pub mod microbench;
pub mod millions;
mod table;
pub mod users;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::contestant::ENGINES;
use crate::goal::Row;
use crate::work::Work;

/// A work, who does it, and what is read off it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The work.
    pub work: Work,
    /// The contestants' names.
    pub field: Vec<&'static str>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Whether it is done in one round only, because of its size.
    pub once: bool,
}

impl Entry {
    fn new(work: Work, rows: impl Into<Vec<Row>>) -> Self {
        // bugfruit has only what its own micro-benchmark asks for.
        let field = ENGINES.into_iter().filter(|engine| *engine != "bugfruit").collect();
        Self { work, field, rows: rows.into(), once: false }
    }

    /// Only these take part.
    fn by(mut self, field: &[&'static str]) -> Self {
        self.field = field.to_vec();
        self
    }

    /// All but this one.
    fn but(mut self, engine: &str) -> Self {
        self.field.retain(|name| *name != engine);
        self
    }

    /// bugfruit takes part, too.
    fn and_bugfruit(mut self) -> Self {
        self.field.push("bugfruit");
        self
    }

    /// It is done in one round, if so.
    fn once(mut self, once: bool) -> Self {
        self.once = once;
        self
    }
}

/// How large the works are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// As the table says.
    Full,
    /// A hundredth of that: whether all of it runs, not how fast.
    Quick,
    /// With sizes that take hours and gigabytes.
    Large,
}

impl Scale {
    /// A number of entries or operations of the table.
    fn of(self, full: u64) -> u64 {
        match self {
            Self::Full | Self::Large => full,
            Self::Quick => (full / 100).max(10),
        }
    }
}

/// A set of works that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Suite {
    /// The table.
    #[value(skip)]
    Peers,
    /// bbolt in Rust against bbolt in Go: batches of 5k to 250k.
    A,
    /// Sanakirja rethought: (u64, u64) and (UUID, u64) by the million.
    B,
    /// Ways to store a record in bolt: six of them.
    C,
    /// bugfruit's LMDB micro-benchmark: set, get, delete.
    D,
    /// What grows with the number of entries, and how.
    #[value(skip)]
    Growth,
}

impl Suite {
    /// Its works.
    #[must_use]
    pub fn entries(self, scale: Scale) -> Vec<Entry> {
        match self {
            Self::Peers => table::entries(scale),
            Self::A => batches::entries(scale),
            Self::B => millions::entries(scale),
            Self::C => users::entries(scale),
            Self::D => microbench::entries(scale),
            Self::Growth => growth::entries(scale),
        }
    }

    /// Whether it is told how long an operation takes, and not how many there are in a second.
    #[must_use]
    pub fn is_shown_as_time(self) -> bool {
        matches!(self, Self::C | Self::Growth)
    }

    /// How often each work is done, if nobody says otherwise.
    #[must_use]
    pub fn rounds(self) -> usize {
        if matches!(self, Self::Peers | Self::A) { 5 } else { 3 }
    }

    /// How many seconds a run may take, if nobody says otherwise.
    #[must_use]
    pub fn limit(self, scale: Scale) -> u64 {
        match (self, scale) {
            // Sanakirja's commits sync, and it takes part in works of a thousand commits.
            (Self::Peers, _) => 180,
            // Large ones, too: who needs more for one of its many cells is left out of it.
            (Self::C, _) | (_, Scale::Full | Scale::Quick) => 120,
            (_, Scale::Large) => 1200,
        }
    }
}
