//! Small commits on a large file, each synced: keys of 8 bytes, values of 32.

use super::{Entry, Scale};
use crate::data::Keys;
use crate::goal::{Figure, Row, times};
use crate::work::{Picks, Step, Work};

const ON_CLOSE: &str = "boltkv+on-close";
const JOURNAL: &str = "boltkv+journal";
const NOT_STORED: &str = "bbolt+not-stored";

/// Not Sanakirja: a put does not replace there.
const FIELD: [&str; 11] = [
    "boltkv",
    ON_CLOSE,
    JOURNAL,
    "bbolt",
    NOT_STORED,
    "bbolt+not-stored-map",
    "lmdb",
    "redb",
    "fjall",
    "jammdb",
    "bbolt-rs",
];

const COMMITS: Figure = Figure::Rate("commit");

pub(super) fn entries(scale: Scale) -> Vec<Entry> {
    let loaded = scale.of(1_000_000);
    let batch = scale.of(100_000);
    let load = |name| {
        Work::new(name, Keys::Sequential, 32).then(Step::Put { picks: Picks::first(loaded), batch, nested: false })
    };
    let one_put = Step::Put { picks: Picks::random(scale.of(3_000), loaded), batch: 1, nested: false };
    let every_second = Picks { stride: 2, ..Picks::first(loaded / 2) };
    let on_close = |title| Row::of(title, COMMITS).ours(ON_CLOSE).bar(times(1.0, NOT_STORED)).aim(times(1.0, "lmdb"));
    vec![
        Entry::new(
            load("one-put").timed("commit", one_put.clone()),
            [
                on_close("one put a commit, 1M loaded, freelist stored on a clean close"),
                Row::of("one put a commit, 1M loaded, freelist stored", COMMITS)
                    .bar(times(1.1, "bbolt"))
                    .aim(times(1.0, "lmdb")),
                Row::of("one put a commit, 1M loaded, with a journal", COMMITS)
                    .ours(JOURNAL)
                    .bar(times(1.5, "lmdb"))
                    .aim(times(0.8, "fjall")),
            ],
        )
        .by(&FIELD),
        Entry::new(
            load("one-put-half-deleted").then(Step::Delete { picks: every_second, batch }).timed("commit", one_put),
            [on_close("one put a commit, 1M loaded, half deleted, freelist stored on a clean close")],
        )
        .by(&FIELD),
    ]
}
