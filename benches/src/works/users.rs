//! Experiment (c), ways to store a record in Bolt: users in six layouts, loaded one a transaction or all in one.

use super::{Entry, Scale};
use crate::data::Keys;
use crate::records::{Layout, Task};
use crate::work::{Step, Work};

/// The bolt that was measured, and ours.
pub const FIELD: [&str; 2] = ["boltkv", "bbolt"];

/// The two ways to load.
pub const LOADS: [(Task, &str); 2] = [(Task::WriteEach, "each"), (Task::WriteAll, "all")];

/// What is timed, with what it is.
pub const FIGURES: [(&str, &str); 6] = [
    ("make", "made"),
    ("write", "Write"),
    ("read", "Read"),
    ("read-many", "ReadMany"),
    ("field-sum", "FieldSum"),
    ("update", "Update"),
];

const COUNTS: [u64; 12] =
    [10, 100, 1_000, 10_000, 25_000, 50_000, 75_000, 100_000, 250_000, 500_000, 750_000, 1_000_000];

/// Numbers of records. More than 100,000 are for those who wait.
#[must_use]
pub fn counts(scale: Scale) -> &'static [u64] {
    if scale == Scale::Large { &COUNTS } else { &COUNTS[..8] }
}

/// The name of a work.
#[must_use]
pub fn name(layout: &str, load: &str, count: u64) -> String {
    format!("{layout}-{load}-{count}")
}

pub(super) fn entries(scale: Scale) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (layout, named) in Layout::ALL {
        for (load, how) in LOADS {
            for &full in counts(scale) {
                let count = scale.of(full);
                let records = |task| Step::Records { layout, task, count };
                let work = Work::new(name(named, how, full), Keys::Sequential, 0)
                    .unsynced()
                    .timed("make", records(Task::Make))
                    .timed("write", records(load))
                    .timed("write", Step::Sync)
                    .timed("read", records(Task::Read))
                    .timed("read-many", records(Task::ReadMany))
                    .timed("field-sum", records(Task::FieldSum))
                    .timed("update", records(Task::Update))
                    .timed("update", Step::Sync);
                entries.push(Entry::new(work, []).by(&FIELD).once(full > 100_000));
            }
        }
    }
    entries
}
