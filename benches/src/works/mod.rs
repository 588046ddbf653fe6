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
}

impl Entry {
    fn new(work: Work, rows: impl Into<Vec<Row>>) -> Self {
        Self { work, field: ENGINES.to_vec(), rows: rows.into() }
    }

    /// Only these take part.
    fn by(mut self, field: &[&'static str]) -> Self {
        self.field = field.to_vec();
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

    /// How often each work is done, if nobody says otherwise.
    #[must_use]
    pub fn rounds(self) -> usize {
        if matches!(self, Self::Peers | Self::A) { 5 } else { 3 }
    }

    /// How many seconds a run may take, if nobody says otherwise.
    #[must_use]
    pub fn limit(self) -> u64 {
        if self == Self::Peers { 60 } else { 120 }
    }
}
