//! Bulk writes, each commit synced: keys of 8 bytes, values of 32.

use super::{Entry, Scale};
use crate::data::Keys;
use crate::goal::{Figure, Row, times};
use crate::work::{Picks, Step, Work};

/// It never syncs.
const UNSYNCED: &str = "nut";

/// Those whose buckets nest.
const BOLTS: [&str; 4] = ["boltkv", "bbolt", "jammdb", "bbolt-rs"];

const PUT: Figure = Figure::Rate("put");

pub(super) fn entries(scale: Scale) -> Vec<Entry> {
    let million = scale.of(1_000_000);
    let (ten, hundred) = (scale.of(10_000), scale.of(100_000));
    let write = |name, keys, count, batch| {
        Work::new(name, keys, 32).timed("put", Step::Put { picks: Picks::first(count), batch, nested: false })
    };
    let nested = |name, keys| {
        Work::new(name, keys, 32).timed("put", Step::Put { picks: Picks::first(million), batch: ten, nested: true })
    };
    vec![
        Entry::new(
            write("sequential", Keys::Sequential, million, hundred),
            [
                Row::of("sequential write, 100k a commit", PUT).bar(times(2.5, "bbolt")).aim(times(1.0, "lmdb")),
                Row::of("pages in use, 1M sequential", Figure::Used).bar(times(0.6, "bbolt")).aim(times(1.2, "lmdb")),
            ],
        )
        .but(UNSYNCED),
        Entry::new(
            write("random-10k", Keys::Random, million, ten),
            [Row::of("random write, 10k a commit", PUT).bar(times(1.6, "bbolt")).aim(times(1.1, "lmdb"))],
        )
        .but(UNSYNCED),
        Entry::new(
            write("random-100k", Keys::Random, million, hundred),
            [
                Row::of("random write, 100k a commit", PUT).bar(times(5.0, "bbolt")).aim(times(1.0, "lmdb")),
                Row::of("peak private memory, random, 100k a commit", Figure::PeakPrivate).bar(times(0.5, "bbolt")),
            ],
        )
        .but(UNSYNCED),
        Entry::new(
            write("random-one-commit", Keys::Random, hundred, hundred),
            [Row::of("random write, 100k entries in one commit", PUT)
                .bar(times(70.0, "bbolt"))
                .aim(times(1.0, "lmdb"))],
        )
        .but(UNSYNCED),
        Entry::new(
            nested("nested-sequential", Keys::Sequential),
            [Row::of("sequential into nested buckets, 10k a commit", PUT)
                .bar(times(1.3, "bbolt"))
                .aim(times(2.0, "bbolt"))],
        )
        .by(&BOLTS),
        Entry::new(
            nested("nested-random", Keys::Random),
            [Row::of("random into nested buckets, 10k a commit", PUT)
                .bar(times(1.3, "bbolt"))
                .aim(times(2.0, "bbolt"))],
        )
        .by(&BOLTS),
    ]
}
