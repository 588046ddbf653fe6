//! The engine's hot paths, without syncs: `cargo bench -p boltkv-benches`.
#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::expect_used, reason = "a benchmark that cannot run has nothing to say")]

use std::hint::black_box;
use std::time::Duration;

use boltkv_benches::{BUCKET, VALUE, load, random, sequential, unsynced};
use boltkv_storage::Db;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const KEYS: u64 = 1_000_000;

type Key = fn(u64) -> [u8; 8];

fn writes(c: &mut Criterion) {
    let mut group = c.benchmark_group("write");
    group.sample_size(10).warm_up_time(Duration::from_millis(500));
    let cases: [(&str, u64, u64, Key); 4] = [
        ("sequential, 100k a commit", KEYS, 100_000, sequential),
        ("random, 10k a commit", 200_000, 10_000, random),
        ("random, 100k a commit", KEYS, 100_000, random),
        ("random, 100k in one commit", 100_000, 100_000, random),
    ];
    for (name, count, batch, key) in cases {
        group.throughput(Throughput::Elements(count));
        group.bench_function(name, |b| {
            b.iter_batched(
                || tempfile::tempdir().expect("a folder"),
                |folder| {
                    let db = unsynced(&folder.path().join("db")).expect("a new file opens");
                    load(&db, count, batch, key).expect("the disk has room");
                    (folder, db)
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn loaded(key: Key) -> (tempfile::TempDir, Db) {
    let folder = tempfile::tempdir().expect("a folder");
    let db = unsynced(&folder.path().join("db")).expect("a new file opens");
    load(&db, KEYS, 100_000, key).expect("the disk has room");
    (folder, db)
}

fn reads(c: &mut Criterion) {
    let (_folder, db) = loaded(random);
    let mut numbers = (0..).map(|n: u64| u64::from_be_bytes(random(n)) % KEYS);
    let mut next = move || random(numbers.next().unwrap_or(0));
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
    let (_folder, db) = loaded(random);
    let mut n = 0;
    c.bench_function("one put a commit, not synced, 1M loaded", |b| {
        b.iter(|| {
            n += 1;
            let key = random(u64::from_be_bytes(random(n)) % KEYS);
            db.update(|tx| tx.bucket_mut(BUCKET)?.put(key, VALUE)).expect("the disk has room");
        });
    });
}

criterion_group!(benches, writes, reads, commits);
criterion_main!(benches);
