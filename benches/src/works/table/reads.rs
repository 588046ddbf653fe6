//! Reads of 1 M entries that were loaded in key order: keys of 8 bytes, values of 32. One load serves them all.

use super::{Entry, Scale};
use crate::data::Keys;
use crate::goal::{Figure, Row, plainly, times};
use crate::work::{Picks, Step, Work};

pub(super) fn entries(scale: Scale) -> Vec<Entry> {
    let loaded = scale.of(1_000_000);
    let get = |count, batch, threads| Step::Get { picks: Picks::random(count, loaded), batch, threads };
    let half = scale.of(500_000);
    let work = Work::new("reads", Keys::Sequential, 32)
        .unsynced()
        .then(Step::Put { picks: Picks::first(loaded), batch: scale.of(100_000), nested: false })
        .then(Step::Sync)
        .then(get(half, half, 1))
        .timed("get", get(loaded, loaded, 1))
        .timed("get-tx", get(half, 1, 1))
        .timed("scan", Step::Scan { times: 5 })
        .timed("one-thread", get(loaded, loaded, 1))
        .timed("two-threads", get(loaded, loaded, 2));
    let rate = Figure::Rate;
    vec![Entry::new(
        work,
        [
            Row::of("random get", rate("get")).bar(times(1.25, "bbolt")).aim(times(1.0, "lmdb")),
            Row::of("random get, each in its own transaction", rate("get-tx"))
                .bar(times(1.4, "bbolt"))
                .aim(times(1.0, "lmdb")),
            Row::of("full scan", rate("scan")).bar(times(1.2, "bbolt")).aim(times(1.0, "lmdb")),
            Row::of("2 reader threads over 1", Figure::Ratio("two-threads", "one-thread"))
                .bar(plainly(1.8))
                .aim(plainly(2.0)),
        ],
    )]
}
