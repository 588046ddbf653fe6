//! Random inserts into an empty bucket, ever more of them in one transaction, without syncs: what an insert costs must
//! not depend on how many came before it in its transaction.

use super::{Entry, Scale};
use crate::data::Keys;
use crate::goal::{Figure, Row, plainly};
use crate::work::{Picks, Step, Work};

/// Not Go's bbolt nor its ports: a million in one transaction takes them time with the square of that.
const FIELD: [&str; 5] = ["boltkv", "lmdb", "redb", "fjall", "sanakirja"];

/// Entries a transaction, as the figures are called.
const SIZES: [(&str, u64); 4] = [("1k", 1_000), ("10k", 10_000), ("100k", 100_000), ("1M", 1_000_000)];

/// Inserts `size` entries in one transaction into an empty bucket, again and again, for the figure of that name; the last
/// ones are synced, and stay.
fn insert(mut work: Work, figure: &str, size: u64, times: u64) -> Work {
    for time in 0..times {
        work = work.then(Step::Clear);
        let picks = Picks { from: time * size, ..Picks::first(size) };
        work = work.timed(figure, Step::Put { picks, batch: size, nested: false });
        if time + 1 == times {
            work = work.timed(figure, Step::Sync);
        }
    }
    work
}

pub(super) fn entries(scale: Scale) -> Vec<Entry> {
    let growing = |name: &str| {
        let work = Work::new(name, Keys::Random, 32).unsynced();
        let work = insert(work, "1k", scale.of(1_000), 100);
        let work = insert(work, "10k", scale.of(10_000), 10);
        insert(work, "100k", scale.of(100_000), 1)
    };
    vec![
        Entry::new(
            growing("flat-100k"),
            [Row::of(
                "random insert at 1k, 10k, 100k a transaction: the longest time over the shortest",
                Figure::Growth(&["1k", "10k", "100k"]),
            )],
        ),
        Entry::new(
            insert(growing("flat"), "1M", scale.of(1_000_000), 1),
            [Row::of(
                "random insert at 1k, 10k, 100k, 1M a transaction: the longest time over the shortest",
                Figure::Growth(&["1k", "10k", "100k", "1M"]),
            )
            .bar(plainly(4.0))
            .aim(plainly(2.0))],
        )
        .by(&FIELD),
        Entry::new(
            SIZES.iter().fold(
                Work::new("flat-counted", Keys::Random, 32).unsynced().counted(),
                |work, (figure, size)| {
                    let size = scale.of(*size);
                    work.timed(*figure, Step::Put { picks: Picks::first(size), batch: size, nested: false })
                },
            ),
            [Row::of(
                "random insert at 1k, 10k, 100k, 1M a transaction: the most instructions over the fewest",
                Figure::Growth(&["1k", "10k", "100k", "1M"]),
            )
            .bar(plainly(2.0))
            .aim(plainly(1.5))],
        )
        .by(&["boltkv"]),
    ]
}
