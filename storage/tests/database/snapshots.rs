//! A read transaction sees one state, and only that, for as long as it lives; it never blocks the writer, and the pages
//! that it kept are used again once it is gone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::random::Random;
use crate::common::{assert_check_clean, content};
use boltkv_storage::{Db, Options, Tx};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const MIB: usize = 1 << 20;

const KEYS: u32 = 300;

fn small_pages(file: &Path) -> Db {
    Options::new().page_size(1024).open(file).unwrap()
}

/// One commit that puts the version into every value of the bucket.
fn put_version(db: &Db, version: u64) {
    let mut tx = db.begin_mut().unwrap();
    let mut bucket = tx.create_bucket_if_not_exists("b").unwrap();
    for key in 0..KEYS {
        // Of changing length, so that pages split and merge on the way.
        let len = 1 + usize::try_from(version % 12).unwrap();
        let value = version.to_be_bytes().repeat(len);
        bucket.put(key.to_be_bytes(), value).unwrap();
    }
    tx.commit().unwrap();
}

/// Reads all there is, and fails unless it is one version throughout.
fn version_seen(tx: &Tx) -> u64 {
    let bucket = tx.bucket("b").unwrap();
    let mut versions = bucket.iter().map(|entry| {
        let (_, value) = entry.unwrap();
        let words = value.unwrap().chunks(8);
        let mut words = words.map(|word| u64::from_be_bytes(word.try_into().unwrap()));
        let first = words.next().unwrap();
        assert!(words.all(|word| word == first), "one value, two versions");
        first
    });
    let first = versions.next().unwrap();
    let mut count = 1;
    for version in versions {
        assert_eq!(version, first, "one snapshot, two versions");
        count += 1;
    }
    assert_eq!(count, KEYS);
    first
}

fn grow_by_64_mib(db: &Db) {
    let size = |db: &Db| db.begin().unwrap().size();
    let before = size(db);
    let mut number = 0_u32;
    while size(db) < before + 64 * MIB as u64 {
        assert!(number < 200, "a MiB a commit has grown the file long ago");
        let mut tx = db.begin_mut().unwrap();
        let mut bucket = tx.create_bucket_if_not_exists("large").unwrap();
        bucket.put(number.to_be_bytes(), vec![7; MIB]).unwrap();
        tx.commit().unwrap();
        number += 1;
    }
}

#[test]
fn a_reader_in_the_writers_own_thread_sees_nothing_change_while_the_file_grows_by_64_mib() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("grows.db");
    let db = small_pages(&file);
    put_version(&db, 1);
    let reader = db.begin().unwrap();
    let before = content(&reader);
    let kept = reader.bucket("b").unwrap().get(0_u32.to_be_bytes()).unwrap();

    grow_by_64_mib(&db);
    put_version(&db, 2);

    assert!(std::fs::metadata(&file).unwrap().len() > 64 * MIB as u64);
    assert_eq!(kept, Some([1_u64.to_be_bytes(); 2].concat().as_slice()));
    assert!(content(&reader) == before, "the snapshot has changed");
    assert_eq!(version_seen(&db.begin().unwrap()), 2);
}

#[test]
fn readers_in_other_threads_see_nothing_change_while_the_file_grows_by_64_mib() {
    let folder = tempfile::tempdir().unwrap();
    let db = small_pages(&folder.path().join("grows.db"));
    put_version(&db, 1);
    let grown = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            let reader = db.begin().unwrap();
            let grown = &grown;
            scope.spawn(move || {
                while !grown.load(Ordering::Acquire) {
                    assert_eq!(version_seen(&reader), 1);
                }
                assert_eq!(version_seen(&reader), 1);
            });
        }
        grow_by_64_mib(&db);
        grown.store(true, Ordering::Release);
    });
}

#[test]
fn a_reader_of_a_database_in_memory_sees_nothing_change_while_it_grows() {
    let db = Options::new().page_size(1024).open_in_memory().unwrap();
    put_version(&db, 1);
    let reader = db.begin().unwrap();
    for version in 2..100 {
        put_version(&db, version);
        assert_eq!(version_seen(&reader), 1);
    }
    assert_eq!(version_seen(&db.begin().unwrap()), 99);
}

#[test]
fn readers_of_every_age_see_their_own_state_while_the_writer_churns() {
    let folder = tempfile::tempdir().unwrap();
    let db = small_pages(&folder.path().join("churn.db"));
    let mut random = Random::new(1);
    let mut readers: Vec<(u64, Tx)> = Vec::new();
    for version in 1..=400 {
        put_version(&db, version);
        readers.push((version, db.begin().unwrap()));
        // A few of any age go, so that the rest leave gaps of every width.
        while readers.len() > 12 {
            readers.swap_remove(random.below(readers.len()));
        }
        if version % 10 == 0 {
            for (age, reader) in &readers {
                assert_eq!(version_seen(reader), *age);
            }
            assert_check_clean(&db, "with readers open");
        }
    }
}

#[test]
fn reader_threads_that_come_and_go_each_see_one_state_and_never_an_older_one() {
    let folder = tempfile::tempdir().unwrap();
    let db = small_pages(&folder.path().join("churn.db"));
    put_version(&db, 1);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(Ordering::Acquire) {
                    let reader = db.begin().unwrap();
                    let version = version_seen(&reader);
                    assert!(version >= last, "went back from {last} to {version}");
                    assert_eq!(version_seen(&reader), version);
                    last = version;
                }
            });
        }
        for version in 2..=300 {
            put_version(&db, version);
        }
        done.store(true, Ordering::Release);
    });
    assert_check_clean(&db, "after the churn");
}

/// The greatest size, in bytes, that the data reaches while a number of versions is put.
fn greatest_size(db: &Db, versions: std::ops::Range<u64>) -> u64 {
    let sizes = versions.map(|version| {
        put_version(db, version);
        db.begin().unwrap().size()
    });
    sizes.max().unwrap()
}

#[test]
fn pages_are_used_again_once_the_readers_that_kept_them_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let db = small_pages(&folder.path().join("levels-off.db"));
    greatest_size(&db, 1..30);
    let readers: Vec<Tx> = (30..60)
        .map(|version| {
            put_version(&db, version);
            db.begin().unwrap()
        })
        .collect();
    let with_readers = db.begin().unwrap().size();
    drop(readers);

    // What thirty snapshots kept is room for all that comes.
    assert!(greatest_size(&db, 60..400) <= with_readers);
    assert_check_clean(&db, "after the churn");
}

#[test]
fn without_readers_the_file_stops_growing() {
    let folder = tempfile::tempdir().unwrap();
    let db = small_pages(&folder.path().join("levels-off.db"));
    let early = greatest_size(&db, 1..100);
    assert!(greatest_size(&db, 100..500) <= early + early / 10);
}

// Promises: ops-pinned.
#[test]
fn a_reader_held_for_ever_keeps_only_what_it_can_see() {
    let folder = tempfile::tempdir().unwrap();
    let db = small_pages(&folder.path().join("levels-off.db"));
    greatest_size(&db, 1..30);
    let reader = db.begin().unwrap();
    let early = greatest_size(&db, 30..130);
    assert!(greatest_size(&db, 130..530) <= early + early / 10);
    assert_eq!(version_seen(&reader), 29);
}
