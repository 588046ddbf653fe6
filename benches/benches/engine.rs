//! The engine's hot paths, without syncs but for one: `cargo bench -p boltkv-benches`.
#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::expect_used, reason = "a benchmark that cannot run has nothing to say")]

mod loaded;

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use boltkv_benches::data::{Key, Keys, splitmix};
use boltkv_storage::{Db, Durability};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use loaded::{BUCKET, KEYS, VALUE, load, unsynced};

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

/// What so many begins take each of two threads that begin together: the time of the later one.
fn on_two_threads(db: &Db, times: u64) -> Duration {
    let ready = Barrier::new(2);
    let begin = || {
        ready.wait();
        let start = Instant::now();
        (0..times).for_each(|_| drop(black_box(db.begin().expect("a reader"))));
        start.elapsed()
    };
    thread::scope(|scope| {
        let other = scope.spawn(begin);
        begin().max(other.join().expect("the other thread"))
    })
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
        b.iter(|| black_box(bucket.get(next()).expect("a sound file").expect("all were loaded")));
    });
    group.bench_function("random get, each in its own transaction", |b| {
        b.iter(|| {
            let tx = db.begin().expect("a reader");
            let bucket = tx.bucket(BUCKET).expect("the bucket was loaded");
            black_box(bucket.get(next()).expect("a sound file").expect("all were loaded").len())
        });
    });
    group.bench_function("random seek, one cursor", |b| {
        let tx = db.begin().expect("a reader");
        let mut cursor = tx.bucket(BUCKET).expect("the bucket was loaded").cursor();
        b.iter(|| black_box(cursor.seek(next()).expect("a sound file").expect("all were loaded")));
    });
    group.bench_function("random seek and the next ten entries", |b| {
        let tx = db.begin().expect("a reader");
        let mut cursor = tx.bucket(BUCKET).expect("the bucket was loaded").cursor();
        b.iter(|| {
            black_box(cursor.seek(next()).expect("a sound file"));
            for _ in 0..10 {
                black_box(cursor.next().expect("a sound file"));
            }
        });
    });
    group.bench_function("begin", |b| b.iter(|| black_box(db.begin().expect("a reader"))));
    group.bench_function("begin, two threads at once", |b| b.iter_custom(|times| on_two_threads(&db, times)));
    group.throughput(Throughput::Elements(KEYS));
    group.sample_size(20).bench_function("full scan", |b| {
        let tx = db.begin().expect("a reader");
        let bucket = tx.bucket(BUCKET).expect("the bucket was loaded");
        b.iter(|| {
            let entries = bucket.iter().inspect(|entry| assert!(entry.is_ok(), "a sound file")).count();
            assert_eq!(entries as u64, KEYS);
        });
    });
    group.sample_size(10).bench_function("check", |b| b.iter(|| assert_eq!(db.check().expect("a sound file"), [])));
    group.finish();
}

/// What so many puts take, 10,000 a transaction, so that it does not grow with their number; its end is not counted.
fn in_transactions(db: &Db, times: u64) -> Duration {
    let mut time = Duration::ZERO;
    for from in (0..times).step_by(10_000) {
        let mut tx = db.begin_mut().expect("the only writer");
        let mut bucket = tx.bucket_mut(BUCKET).expect("the bucket was loaded");
        let start = Instant::now();
        for n in from..times.min(from + 10_000) {
            bucket.put(any(n), VALUE).expect("memory has room");
        }
        time += start.elapsed();
    }
    time
}

fn commits(c: &mut Criterion) {
    let (_folder, db) = loaded();
    let mut n = 0;
    let mut put = |durability| {
        n += 1;
        let mut tx = db.begin_mut().expect("the only writer");
        tx.bucket_mut(BUCKET).and_then(|mut bucket| bucket.put(any(n), VALUE)).expect("memory has room");
        tx.commit_with(durability).expect("the disk has room");
    };
    c.bench_function("one put a commit, not synced, 1M loaded", |b| b.iter(|| put(Durability::Never)));
    c.bench_function("one put a commit, synced, 1M loaded", |b| b.iter(|| put(Durability::Always)));
    c.bench_function("put in an open transaction, 1M loaded", |b| b.iter_custom(|times| in_transactions(&db, times)));
}

criterion_group!(benches, writes, reads, commits);
criterion_main!(benches);
