//! Experiment (b), Sanakirja rethought: millions of small entries at random in one transaction, then all looked up.

use super::{Entry, Scale};
use crate::data::Keys;
use crate::work::{Picks, Step, Work};

/// Those whose nodes stand a million entries before a commit.
pub const FIELD: [&str; 5] = ["boltkv", "lmdb", "redb", "fjall", "sanakirja"];

/// The two kinds of entries, with their keys.
pub const KINDS: [(&str, Keys); 2] = [("u64", Keys::Random), ("uuid", Keys::Random16)];

/// Entries that are inserted.
#[must_use]
pub fn counts(scale: Scale) -> &'static [u64] {
    if scale == Scale::Large { &[1_000_000, 2_000_000, 5_000_000, 10_000_000] } else { &[1_000_000, 2_000_000] }
}

/// The name of a work.
#[must_use]
pub fn name(kind: &str, count: u64) -> String {
    format!("{kind}-{count}")
}

pub(super) fn entries(scale: Scale) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (kind, keys) in KINDS {
        for &full in counts(scale) {
            let count = scale.of(full);
            let work = Work::new(name(kind, full), keys, 8)
                .unsynced()
                .timed("insert", Step::Put { picks: Picks::first(count), batch: count, nested: false })
                .timed("insert", Step::Sync)
                .timed("get", Step::Get { picks: Picks::random(count, count), batch: count, threads: 1 });
            entries.push(Entry::new(work, []).by(&FIELD).once(full > 2_000_000));
        }
    }
    entries
}
