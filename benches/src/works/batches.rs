//! Experiment (a), bbolt in Rust against bbolt in Go: loads in one bucket or one bucket a batch, in order or at random,
//! with ever larger batches; then reads.

use super::{Entry, Scale};
use crate::data::Keys;
use crate::work::{Picks, Step, Work};

/// The bolts that were compared, and ours.
pub const FIELD: [&str; 3] = ["boltkv", "bbolt", "bbolt-rs"];

/// The kinds of load, as they were named.
pub const KINDS: [(&str, Keys, bool); 4] = [
    ("seq", Keys::Sequential, false),
    ("rnd", Keys::Random, false),
    ("seq-nest", Keys::Sequential, true),
    ("rnd-nest", Keys::Random, true),
];

/// Entries that are loaded.
pub const COUNTS: [u64; 2] = [100_000, 1_000_000];

/// Entries a commit.
pub const BATCHES: [u64; 6] = [5_000, 10_000, 25_000, 50_000, 100_000, 250_000];

/// Entries that are read in order, and at random: about as many as are in a second.
const SCANNED: u64 = 100_000_000;
const GETS: u64 = 3_000_000;

/// The name of a load.
#[must_use]
pub fn load(kind: &str, count: u64, batch: u64) -> String {
    format!("{kind}-{count}-by-{batch}")
}

/// The name of the reads after a load.
#[must_use]
pub fn reads(count: u64) -> String {
    format!("read-{count}")
}

pub(super) fn entries(scale: Scale) -> Vec<Entry> {
    let mut entries = Vec::new();
    for count in COUNTS {
        for (kind, keys, nested) in KINDS {
            for batch in BATCHES.into_iter().filter(|batch| *batch <= count) {
                let put = Step::Put { picks: Picks::first(scale.of(count)), batch: scale.of(batch), nested };
                entries.push(Work::new(load(kind, count, batch), keys, 32).timed("put", put));
            }
        }
        let loaded = scale.of(count);
        let work = Work::new(reads(count), Keys::Sequential, 32)
            .unsynced()
            .then(Step::Put { picks: Picks::first(loaded), batch: loaded, nested: false })
            .then(Step::Sync)
            .timed("seq", Step::Scan { times: scale.of(SCANNED) / loaded })
            .timed("rnd", Step::Get { picks: Picks::random(scale.of(GETS), loaded), batch: loaded, threads: 1 });
        entries.push(work);
    }
    entries.into_iter().map(|work| Entry::new(work, []).by(&FIELD)).collect()
}
