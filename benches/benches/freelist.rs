//! What a long freelist costs: every commit, and opening the file. The files lie in memory where the system has a folder
//! for that, so that syncs, without which no commit stores the list, cost next to nothing.
#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::expect_used, reason = "a benchmark that cannot run has nothing to say")]

mod loaded;

use std::path::Path;

use boltkv_benches::data::Keys;
use boltkv_storage::{Db, FreelistStored, Options};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use loaded::{BUCKET, KEYS, VALUE, load, unsynced};
use tempfile::TempDir;

/// Entries in a row that are deleted, and then kept: a few pages, so that the free ones lie in thousands of short runs.
const IN_A_ROW: usize = 256;

const STORED: [(&str, FreelistStored); 3] = [
    ("stored by every commit", FreelistStored::Always),
    ("stored on clean close", FreelistStored::OnCleanClose),
    ("never stored", FreelistStored::Never),
];

fn in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}

/// A loaded file, half of whose entries were deleted if `long`. Its folder, and how many pages are free.
fn file(long: bool) -> (TempDir, u64) {
    let folder = in_memory();
    let db = unsynced(&folder);
    load(&db, Keys::Sequential, KEYS, 100_000);
    if long {
        for start in (0..KEYS).step_by(2 * IN_A_ROW) {
            db.update(|tx| {
                let mut bucket = tx.bucket_mut(BUCKET)?;
                (start..KEYS).take(IN_A_ROW).try_for_each(|n| bucket.delete(Keys::Sequential.key(n)).map(drop))
            })
            .expect("the disk has room");
        }
    }
    db.sync().expect("the disk has room");
    let stats = db.stats();
    let free = stats.free_pages.zip(stats.pending_pages).map(|(free, pending)| free + pending);
    (folder, free.expect("a writer knows its free pages"))
}

fn open(folder: &Path, stored: FreelistStored) -> Db {
    Options::new().freelist(stored).open(folder.join("db")).expect("the file is sound")
}

fn freelist(c: &mut Criterion) {
    for long in [false, true] {
        let (folder, free) = file(long);
        let mut group = c.benchmark_group(if long { "freelist, long" } else { "freelist, short" });
        eprintln!("{free} free pages");
        for (name, stored) in STORED {
            let db = open(folder.path(), stored);
            let mut n = 0;
            group.bench_function(format!("one put a commit, {name}"), |b| {
                b.iter(|| {
                    n += 1;
                    db.update(|tx| tx.bucket_mut(BUCKET)?.put(Keys::Sequential.key(kept(n)), VALUE))
                        .expect("the disk has room");
                });
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
