//! Experiment (d), bugfruit's LMDB micro-benchmark: keys of 16 bytes with values of 100 and of 100,000, without syncs.

use super::{Entry, Scale};
use crate::data::Keys;
use crate::work::{Picks, Step, Work};

/// How many entries a commit takes: each by itself where they are large.
const BATCHES: [(usize, u64); 2] = [(100, 1_000), (100_000, 1)];

/// Gets are as many as entries, but no fewer than these: ten thousand take a few milliseconds.
const GETS: u64 = 1_000_000;

/// Bytes of a value with the numbers of entries.
#[must_use]
pub fn sizes(scale: Scale) -> &'static [(usize, u64)] {
    if scale == Scale::Large {
        &[(100, 1_000_000), (100, 10_000_000), (100_000, 10_000)]
    } else {
        &[(100, 1_000_000), (100_000, 10_000)]
    }
}

/// The name of a work.
#[must_use]
pub fn name(value_bytes: usize, count: u64) -> String {
    format!("values-{value_bytes}-of-{count}")
}

pub(super) fn entries(scale: Scale) -> Vec<Entry> {
    let batch = |bytes| BATCHES.iter().find(|(size, _)| *size == bytes).map_or(1, |(_, batch)| *batch);
    let entry = |&(bytes, full): &(usize, u64)| {
        let (count, batch) = (scale.of(full), batch(bytes));
        let gets = count.max(scale.of(GETS));
        let work = Work::new(name(bytes, full), Keys::Random16, bytes)
            .unsynced()
            .timed("set", Step::Put { picks: Picks::first(count), batch, nested: false })
            .timed("set", Step::Sync)
            .timed("get", Step::Get { picks: Picks::random(gets, count), batch: gets, threads: 1 })
            .timed("delete", Step::Delete { picks: Picks::first(count), batch })
            .timed("delete", Step::Sync);
        Entry::new(work, []).and_bugfruit().once(full > 1_000_000)
    };
    sizes(scale).iter().map(entry).collect()
}
