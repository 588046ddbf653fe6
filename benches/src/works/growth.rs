//! What grows with the number of entries: gets, puts, commits, and what is done to the file as a whole.

use super::{Entry, Scale};
use crate::data::Keys;
use crate::work::{Chore, Picks, Step, Work};

/// Those that have all of it.
pub const FIELD: [&str; 2] = ["boltkv", "bbolt"];

/// What is timed, with what it is.
pub const FIGURES: [(&str, &str); 7] = [
    ("get", "a random get"),
    ("put", "a random put, 1k a commit"),
    ("commit", "a commit of one put"),
    ("open", "opening the file"),
    ("check", "checking the file"),
    ("backup", "a backup"),
    ("compact", "compacting into a new file"),
];

/// How often what is done to the whole file is done.
const AGAIN: usize = 3;

/// Numbers of entries.
#[must_use]
pub fn counts(scale: Scale) -> &'static [u64] {
    if scale == Scale::Large { &[10_000, 100_000, 1_000_000, 10_000_000] } else { &[10_000, 100_000, 1_000_000] }
}

/// The name of a work.
#[must_use]
pub fn name(count: u64) -> String {
    format!("growth-{count}")
}

pub(super) fn entries(scale: Scale) -> Vec<Entry> {
    let entry = |&full: &u64| {
        let count = scale.of(full);
        let random = |picked| Picks::random(picked, count);
        let mut work = Work::new(name(full), Keys::Random, 32)
            .then(Step::Put { picks: Picks::first(count), batch: 10_000, nested: false })
            .timed("get", Step::Get { picks: random(scale.of(200_000)), batch: count, threads: 1 })
            .timed("put", Step::Put { picks: random(scale.of(20_000)), batch: 1_000, nested: false })
            .timed("commit", Step::Put { picks: random(scale.of(500)), batch: 1, nested: false });
        for _ in 0..AGAIN {
            work = work
                .timed("open", Step::Open)
                .timed("check", Step::Chore { chore: Chore::Check })
                .timed("backup", Step::Chore { chore: Chore::Backup })
                .timed("compact", Step::Chore { chore: Chore::Compact });
        }
        Entry::new(work, []).by(&FIELD).once(full > 1_000_000)
    };
    counts(scale).iter().map(entry).collect()
}
