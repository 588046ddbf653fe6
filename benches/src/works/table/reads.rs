//! Reads of 1 M entries with values of 32 bytes. One load in key order, of keys of 8 bytes, serves most of them.

use super::{Entry, Scale};
use crate::data::Keys;
use crate::goal::{Figure, Row, plainly, times};
use crate::work::{Picks, Step, Work};

pub(super) fn entries(scale: Scale) -> Vec<Entry> {
    let loaded = scale.of(1_000_000);
    let get = |count, batch, threads| Step::Get { picks: Picks::random(count, loaded), batch, threads };
    let half = scale.of(500_000);
    let load = |name, keys, batch| {
        Work::new(name, keys, 32)
            .unsynced()
            .then(Step::Put { picks: Picks::first(loaded), batch: scale.of(batch), nested: false })
            .then(Step::Sync)
    };
    let gets = |work: Work| work.then(get(half, half, 1)).timed("get", get(loaded, loaded, 1));
    // The first scan is the first to touch most of the map: it has to have its pages mapped, which the others find done.
    let work = gets(load("reads", Keys::Sequential, 100_000).timed("first-scan-bytes", Step::Scan { times: 1 }))
        .timed("get-tx", get(half, 1, 1))
        .timed("scan-bytes", Step::Scan { times: 30 })
        .timed("one-thread", get(loaded, loaded, 1))
        .timed("two-threads", get(loaded, loaded, 2));
    let rate = Figure::Rate;
    // The goals are for consecutive integers, which suit best a search that guesses where a key stands. How others do
    // has no goal: it shows what of that is left. They are loaded out of order, in batches that Go's bbolt stands.
    let others = [
        ("reads-random", Keys::Random, "random get, random keys"),
        ("reads-clumped", Keys::Clumped, "random get, keys in clumps"),
    ];
    let others = others.map(|(name, keys, title)| {
        Entry::new(gets(load(name, keys, 10_000)), [Row::of(title, rate("get"))]).by(&["boltkv", "bbolt", "lmdb"])
    });
    let rows = [
        Row::of("random get", rate("get")).bar(times(1.25, "bbolt")).aim(times(1.0, "lmdb")),
        Row::of("random get, each in its own transaction", rate("get-tx"))
            .bar(times(1.4, "bbolt"))
            .aim(times(1.0, "lmdb")),
        Row::of("full scan, every byte read", rate("scan-bytes")).bar(times(1.2, "bbolt")).aim(times(1.0, "lmdb")),
        Row::of("full scan, every byte read, the first one", rate("first-scan-bytes")),
        Row::of("2 reader threads over 1", Figure::Ratio("two-threads", "one-thread"))
            .bar(plainly(1.8))
            .aim(plainly(2.0)),
    ];
    let mut entries = vec![Entry::new(work, rows)];
    entries.extend(others);
    entries
}
