//! (u64, u64) at random, all in one transaction, without syncs, then looked up: the work of the Sanakirja article.

use super::{Entry, Scale};
use crate::data::Keys;
use crate::goal::{Figure, Row, times};
use crate::work::{Picks, Step, Work};

/// Not Go's bbolt nor its ports: they keep a node's entries in one array until the commit.
const FIELD: [&str; 5] = ["boltkv", "lmdb", "redb", "fjall", "sanakirja"];

pub(super) fn entries(scale: Scale) -> Vec<Entry> {
    let count = scale.of(1_000_000);
    let work = Work::new("integers", Keys::Random, 8)
        .unsynced()
        .timed("insert", Step::Put { picks: Picks::first(count), batch: count, nested: false })
        .timed("insert", Step::Sync)
        .timed("get", Step::Get { picks: Picks::random(count, count), batch: count, threads: 1 });
    vec![
        Entry::new(
            work,
            [
                Row::of("(u64, u64), 1M random inserts in one transaction, no sync", Figure::Rate("insert"))
                    .bar(times(0.8, "lmdb"))
                    .aim(times(1.0, "sanakirja")),
                Row::of("then 1M random gets", Figure::Rate("get")).bar(times(0.8, "lmdb")).aim(times(1.0, "lmdb")),
            ],
        )
        .by(&FIELD),
    ]
}
