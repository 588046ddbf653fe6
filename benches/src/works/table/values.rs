//! Keys of 16 bytes with values of 100 and of 100,000, without syncs: the work of bugfruit's micro-benchmark.

use super::{Entry, Scale};
use crate::data::Keys;
use crate::goal::{Figure, Row, times};
use crate::work::{Picks, Step, Work};

const SET: Figure = Figure::Rate("set");
const GET: Figure = Figure::Rate("get");
const DELETE: Figure = Figure::Rate("delete");

/// Sets, gets and deletes `count` entries. The gets are repeated until there are enough to time.
fn work(name: &str, value_bytes: usize, count: u64, batch: u64, gets: u64) -> Work {
    Work::new(name, Keys::Random16, value_bytes)
        .unsynced()
        .timed("set", Step::Put { picks: Picks::first(count), batch, nested: false })
        .timed("set", Step::Sync)
        .timed("get", Step::Get { picks: Picks::random(gets, count), batch: gets, threads: 1 })
        .timed("delete", Step::Delete { picks: Picks::first(count), batch })
        .timed("delete", Step::Sync)
}

pub(super) fn entries(scale: Scale) -> Vec<Entry> {
    let million = scale.of(1_000_000);
    vec![
        Entry::new(
            work("values-100", 100, million, 1_000, million),
            [
                Row::of("1M values of 100 bytes, no sync, 1k a commit: set", SET)
                    .bar(times(1.5, "bbolt"))
                    .aim(times(1.0, "lmdb")),
                Row::of("1M values of 100 bytes: get", GET).bar(times(1.5, "bbolt")).aim(times(1.0, "lmdb")),
                Row::of("1M values of 100 bytes, no sync, 1k a commit: delete", DELETE)
                    .bar(times(1.5, "bbolt"))
                    .aim(times(1.0, "lmdb")),
                Row::of("1M values of 100 bytes, all deleted: size of the file", Figure::File),
            ],
        )
        .and_bugfruit(),
        Entry::new(
            work("values-100k", 100_000, scale.of(2_000), 1, scale.of(1_000_000)),
            [
                Row::of("2,000 values of 100,000 bytes, no sync, one a commit: set", SET)
                    .bar(times(4.0, "bbolt"))
                    .aim(times(1.0, "lmdb")),
                Row::of("2,000 values of 100,000 bytes: get", GET).bar(times(2.0, "bbolt")).aim(times(1.0, "lmdb")),
                Row::of("2,000 values of 100,000 bytes, no sync, one a commit: delete", DELETE)
                    .bar(times(20.0, "bbolt"))
                    .aim(times(1.0, "lmdb")),
            ],
        )
        .and_bugfruit(),
    ]
}
