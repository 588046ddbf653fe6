//! What a long freelist costs: every commit, and opening the file. The files lie in memory where the system has a folder
//! for that, so that syncs, without which no commit stores the list, cost next to nothing.
#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::expect_used, reason = "a benchmark that cannot run has nothing to say")]

mod loaded;

use std::path::Path;

use boltkv_benches::data::Keys;
use boltkv_storage::{BucketMut, Db, Error, FreelistStored, Options};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use loaded::{BUCKET, KEYS, VALUE, load, unsynced};
use tempfile::TempDir;

/// How the free pages of a file lie.
#[derive(Clone, Copy)]
enum Free {
    /// There are few.
    Few,
    /// In thousands of short runs: entries in a row were deleted, a few pages' worth, and as many after them kept.
    Runs,
    /// Thousands, each by itself: a commit has put an entry of every third page or so anew, and so moved that page.
    Single,
}

/// Entries in a row that are deleted, and then kept.
const IN_A_ROW: usize = 256;

/// Entries from one that is put anew to the next: more than two pages hold.
const APART: usize = 200;

/// A value that needs a run of pages.
const LARGE: &[u8] = &[0xB5; 100_000];

const FREE: [(&str, Free); 3] =
    [("freelist, short", Free::Few), ("freelist, long", Free::Runs), ("freelist, single pages", Free::Single)];

const STORED: [(&str, FreelistStored); 3] = [
    ("stored by every commit", FreelistStored::Always),
    ("stored on clean close", FreelistStored::OnCleanClose),
    ("never stored", FreelistStored::Never),
];

fn in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}

/// A loaded file whose free pages lie so. Its folder, and how many there are.
fn file(lie: Free) -> (TempDir, u64) {
    let folder = in_memory();
    let db = unsynced(&folder);
    load(&db, Keys::Sequential, KEYS, 100_000);
    match lie {
        Free::Few => {}
        Free::Runs => (0..KEYS).step_by(2 * IN_A_ROW).for_each(|start| {
            update(&db, |bucket| {
                (start..KEYS).take(IN_A_ROW).try_for_each(|n| bucket.delete(Keys::Sequential.key(n)).map(drop))
            });
        }),
        Free::Single => update(&db, |bucket| {
            (0..KEYS).step_by(APART).try_for_each(|n| bucket.put(Keys::Sequential.key(n), [0; VALUE.len()]))
        }),
    }
    db.sync().expect("the disk has room");
    let stats = db.stats();
    let free = stats.free_pages.zip(stats.pending_pages).map(|(free, pending)| free + pending);
    (folder, free.expect("a writer knows its free pages"))
}

fn open(folder: &Path, stored: FreelistStored) -> Db {
    Options::new().freelist(stored).open(folder.join("db")).expect("the file is sound")
}

/// A commit of one change.
fn update(db: &Db, change: impl FnOnce(&mut BucketMut<'_>) -> Result<(), Error>) {
    db.update(|tx| change(&mut tx.bucket_mut(BUCKET)?)).expect("the disk has room");
}

fn freelist(c: &mut Criterion) {
    for (name, lie) in FREE {
        let (folder, free) = file(lie);
        let mut group = c.benchmark_group(name);
        eprintln!("{free} free pages");
        for (name, stored) in STORED {
            let db = open(folder.path(), stored);
            let mut n = 0;
            group.bench_function(format!("one put a commit, {name}"), |b| {
                b.iter(|| {
                    n += 1;
                    update(&db, |bucket| bucket.put(Keys::Sequential.key(kept(n)), VALUE));
                });
            });
            // One key for all: the pages of the value before it become free, so the file does not grow.
            group.bench_function(format!("one put of 100,000 bytes a commit, {name}"), |b| {
                b.iter(|| update(&db, |bucket| bucket.put("large", LARGE)));
            });
            db.close().expect("the disk has room");
            // Dropped before the next one: a file is locked as long as it is open.
            group.bench_function(format!("open, {name}"), |b| {
                b.iter_batched(|| (), |()| open(folder.path(), stored), BatchSize::PerIteration);
            });
        }
        group.finish();
    }
}

/// A key that was not deleted, another with every `n`.
fn kept(n: u64) -> u64 {
    let row = IN_A_ROW as u64;
    boltkv_benches::data::splitmix(n) % KEYS / (2 * row) * (2 * row) + row
}

criterion_group!(benches, freelist);
criterion_main!(benches);
