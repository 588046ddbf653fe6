//! The engine's hot paths, without syncs: `cargo bench -p boltkv-benches`.
#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::expect_used, reason = "a benchmark that cannot run has nothing to say")]

use std::hint::black_box;
use std::time::Duration;

use boltkv_benches::data::{Key, Keys, splitmix};
use boltkv_storage::{Db, Durability, Error, Options};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const KEYS: u64 = 1_000_000;
const VALUE: [u8; 32] = [0xB5; 32];
const BUCKET: &str = "bench";

fn unsynced(folder: &tempfile::TempDir) -> Db {
    Options::new().durability(Durability::Never).open(folder.path().join("db")).expect("a new file opens")
}

fn load(db: &Db, keys: Keys, count: u64, batch: usize) {
    for start in (0..count).step_by(batch) {
        db.update(|tx| {
            let mut bucket = tx.create_bucket_if_not_exists(BUCKET)?;
            (start..count).take(batch).try_for_each(|n| bucket.put(keys.key(n), VALUE))?;
            Ok::<_, Error>(())
        })
        .expect("the disk has room");
    }
}

/// A key that was loaded, another with every `n`.
fn any(n: u64) -> Key {
    Keys::Random.key(splitmix(n) % KEYS)
}

fn writes(c: &mut Criterion) {
    let mut group = c.benchmark_group("write");
    group.sample_size(10).warm_up_time(Duration::from_millis(500));
    let cases: [(&str, u64, usize, Keys); 4] = [
        ("sequential, 100k a commit", KEYS, 100_000, Keys::Sequential),
        ("random, 10k a commit", 200_000, 10_000, Keys::Random),
        ("random, 100k a commit", KEYS, 100_000, Keys::Random),
        ("random, 100k in one commit", 100_000, 100_000, Keys::Random),
    ];
    for (name, count, batch, keys) in cases {
        group.throughput(Throughput::Elements(count));
        group.bench_function(name, |b| {
            b.iter_batched(
                || tempfile::tempdir().expect("a folder"),
                |folder| {
                    let db = unsynced(&folder);
                    load(&db, keys, count, batch);
                    (folder, db)
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn loaded() -> (tempfile::TempDir, Db) {
    let folder = tempfile::tempdir().expect("a folder");
    let db = unsynced(&folder);
    load(&db, Keys::Random, KEYS, 100_000);
    (folder, db)
}

fn reads(c: &mut Criterion) {
    let (_folder, db) = loaded();
    let mut keys = (0..).map(any);
    let mut next = move || keys.next().expect("numbers do not end");
    let mut group = c.benchmark_group("read");
    group.throughput(Throughput::Elements(1));
    group.bench_function("random get", |b| {
        let tx = db.begin().expect("a reader");
        let bucket = tx.bucket(BUCKET).expect("the bucket was loaded");
        b.iter(|| black_box(bucket.get(next()).expect("a sound file")));
    });
    group.bench_function("random get, each in its own transaction", |b| {
        b.iter(|| {
            let tx = db.begin().expect("a reader");
            let bucket = tx.bucket(BUCKET).expect("the bucket was loaded");
            black_box(bucket.get(next()).expect("a sound file").is_some())
        });
    });
    group.bench_function("begin", |b| b.iter(|| black_box(db.begin().expect("a reader"))));
    group.throughput(Throughput::Elements(KEYS));
    group.sample_size(20).bench_function("full scan", |b| {
        let tx = db.begin().expect("a reader");
        let bucket = tx.bucket(BUCKET).expect("the bucket was loaded");
        b.iter(|| bucket.iter().flatten().count());
    });
    group.finish();
}

fn commits(c: &mut Criterion) {
    let (_folder, db) = loaded();
    let mut n = 0;
    c.bench_function("one put a commit, not synced, 1M loaded", |b| {
        b.iter(|| {
            n += 1;
            db.update(|tx| tx.bucket_mut(BUCKET)?.put(any(n), VALUE)).expect("the disk has room");
        });
    });
}

criterion_group!(benches, writes, reads, commits);
criterion_main!(benches);
