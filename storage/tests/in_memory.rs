//! A database in memory: the same engine over the heap, small enough that Miri can watch every access it makes. What
//! holds here for the map's unsafe code (no page is written while a snapshot that reaches it is open) is seen, not argued.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use boltkv_storage::{Db, Options, Tx};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const KEYS: u8 = 12;

/// One commit that writes `version` into every value, of changing length, so that pages split, merge and are used again.
fn put_version(db: &Db, version: u8) {
    let mut tx = db.begin_mut().unwrap();
    let mut bucket = tx.create_bucket_if_not_exists("b").unwrap();
    for key in 0..KEYS {
        bucket.put([key], vec![version; 20 + 40 * usize::from(version % 5)]).unwrap();
    }
    tx.commit().unwrap();
}

/// Reads everything; fails unless it is one version throughout.
fn version_seen(tx: &Tx) -> u8 {
    let bucket = tx.bucket("b").unwrap();
    let values: Vec<&[u8]> = bucket.iter().map(|entry| entry.unwrap().1.unwrap()).collect();
    assert_eq!(values.len(), usize::from(KEYS));
    let version = values[0][0];
    assert!(values.iter().all(|value| value.iter().all(|&byte| byte == version)), "one snapshot, two versions");
    version
}

fn small_pages() -> Db {
    Options::new().page_size(1024).open_in_memory().unwrap()
}

#[test]
fn readers_of_every_age_see_their_own_state_while_pages_are_used_again() {
    let db = small_pages();
    let mut readers = Vec::new();
    for version in 1..=9 {
        put_version(&db, version);
        readers.push((version, db.begin().unwrap()));
        if version % 3 == 0 {
            readers.swap_remove(0);
        }
    }
    for (age, reader) in &readers {
        assert_eq!(version_seen(reader), *age);
    }
    assert_eq!(db.check().unwrap(), []);
}

#[test]
fn values_held_across_commits_that_replace_the_memory_stay_as_they_were() {
    let db = small_pages();
    put_version(&db, 1);
    let reader = db.begin().unwrap();
    let kept = reader.bucket("b").unwrap().get([0]).unwrap().unwrap();
    for number in 0..3_u8 {
        db.update(|tx| tx.create_bucket_if_not_exists("large")?.put([number], vec![7; 20_000])).unwrap();
    }
    assert!(kept.iter().all(|&byte| byte == 1));
    assert_eq!(version_seen(&reader), 1);
}

#[test]
fn reader_threads_each_see_one_state_and_never_an_older_one() {
    let db = small_pages();
    put_version(&db, 1);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(Ordering::Acquire) {
                    let version = version_seen(&db.begin().unwrap());
                    assert!(version >= last, "went back from {last} to {version}");
                    last = version;
                }
            });
        }
        for version in 2..=6 {
            put_version(&db, version);
        }
        done.store(true, Ordering::Release);
    });
    assert_eq!(version_seen(&db.begin().unwrap()), 6);
}

#[test]
fn nested_buckets_move_out_of_their_parents_and_back() {
    let db = small_pages();
    let grow = |tx: &mut boltkv_storage::TxMut| {
        let mut outer = tx.create_bucket_if_not_exists("outer")?;
        let mut inner = outer.create_bucket_if_not_exists("inner")?;
        (0..30_u8).try_for_each(|key| inner.put([key], [key; 60]))
    };
    db.update(grow).unwrap();
    let before = db.begin().unwrap();
    db.update(|tx| {
        let mut inner = tx.bucket_mut_path(["outer", "inner"])?;
        (1..30_u8).try_for_each(|key| inner.delete([key]).map(drop))
    })
    .unwrap();
    let count = |tx: &Tx| tx.bucket_path(["outer", "inner"]).unwrap().iter().count();
    assert_eq!((count(&before), count(&db.begin().unwrap())), (30, 1));
    drop(before);
    db.update(|tx| tx.delete_bucket("outer")).unwrap();
    assert_eq!(db.check().unwrap(), []);
}
