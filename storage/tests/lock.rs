//! One writer or many readers: a file is never open for writing in two places, be the other this engine or Go's bbolt,
//! and those who race to make it end with one database.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use boltkv_storage::{Db, Error, Options};
use common::{assert_check_clean, committed};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::Duration;
use std::{fs, thread};

const BRIEFLY: Duration = Duration::from_millis(120);

fn writer(file: &Path) -> boltkv_storage::Result<Db> {
    Options::new().timeout(BRIEFLY).open(file)
}

fn reader(file: &Path) -> boltkv_storage::Result<Db> {
    Options::new().read_only(true).timeout(BRIEFLY).open(file)
}

fn assert_locked(opened: boltkv_storage::Result<Db>) {
    match opened {
        Err(Error::LockTimeout { .. }) => {}
        Err(other) => panic!("not a lock timeout: {other}"),
        Ok(_) => panic!("the file is locked, and was opened"),
    }
}

fn new_file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("locked.db");
    drop(Db::open(&file).unwrap());
    (folder, file)
}

fn put(db: &Db, bucket: &str, key: impl AsRef<[u8]>) {
    let mut tx = db.begin_mut().unwrap();
    let mut bucket = tx.create_bucket_if_not_exists(bucket).unwrap();
    bucket.put(key, "here").unwrap();
    tx.commit().unwrap();
}

#[test]
fn a_writer_keeps_out_writers_and_readers() {
    let (_folder, file) = new_file();
    let first = writer(&file).unwrap();
    assert_locked(writer(&file));
    assert_locked(reader(&file));
    drop(first);
    writer(&file).unwrap();
}

#[test]
fn readers_share_and_keep_out_writers() {
    let (_folder, file) = new_file();
    let first = reader(&file).unwrap();
    let second = reader(&file).unwrap();
    assert_locked(writer(&file));
    drop(first);
    assert_locked(writer(&file));
    drop(second);
    writer(&file).unwrap();
}

#[test]
fn the_lock_is_held_until_the_last_handle_is_gone() {
    let (_folder, file) = new_file();
    let first = writer(&file).unwrap();
    let clone = first.clone();
    drop(first);
    assert_locked(writer(&file));
    drop(clone);
    writer(&file).unwrap();
}

#[test]
fn without_a_timeout_an_opener_waits_for_the_lock() {
    let (_folder, file) = new_file();
    let first = writer(&file).unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| Db::open(&file).unwrap());
        put(&first, "b", "before the waiter came in");
        drop(first);
        let second = waiter.join().unwrap();
        assert_eq!(committed(&second).bucket_paths().len(), 1);
    });
}

#[test]
fn a_writer_here_keeps_out_bbolt() {
    let Some(peer) = common::peer::peer() else {
        return;
    };
    let (_folder, file) = new_file();
    let here = writer(&file).unwrap();
    assert!(!peer.can_lock(&file, false, "100ms"));
    assert!(!peer.can_lock(&file, true, "100ms"));
    drop(here);
    assert!(peer.can_lock(&file, false, "10s"));
}

#[test]
fn a_reader_here_shares_with_bbolts_readers_only() {
    let Some(peer) = common::peer::peer() else {
        return;
    };
    let (_folder, file) = new_file();
    let _here = reader(&file).unwrap();
    assert!(peer.can_lock(&file, true, "10s"));
    assert!(!peer.can_lock(&file, false, "100ms"));
}

#[test]
fn a_writing_bbolt_keeps_this_engine_out() {
    let Some(peer) = common::peer::peer() else {
        return;
    };
    let (_folder, file) = new_file();
    let held = peer.hold_lock(&file, false);
    assert_locked(writer(&file));
    assert_locked(reader(&file));
    drop(held);
    writer(&file).unwrap();
}

#[test]
fn a_reading_bbolt_shares_with_readers_here_only() {
    let Some(peer) = common::peer::peer() else {
        return;
    };
    let (_folder, file) = new_file();
    let _held = peer.hold_lock(&file, true);
    reader(&file).unwrap();
    assert_locked(writer(&file));
}

#[test]
fn starters_racing_to_make_a_file_end_with_one_database() {
    const STARTERS: u8 = 6;
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("raced.db");
        race(&file, STARTERS);

        let db = reader(&file).unwrap();
        let content = committed(&db);
        let bucket = content.bucket(&[b"b".to_vec()]).unwrap();
        assert_eq!(bucket.items.len(), usize::from(STARTERS), "a write is lost");
        assert_check_clean(&db, "after the race");
        let files = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files, 1, "something is left beside the database");
    }
}

#[test]
fn starters_racing_to_fill_an_empty_file_end_with_one_database() {
    const STARTERS: u8 = 6;
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("raced.db");
        fs::write(&file, "").unwrap();
        race(&file, STARTERS);

        let content = committed(&reader(&file).unwrap());
        let bucket = content.bucket(&[b"b".to_vec()]).unwrap();
        assert_eq!(bucket.items.len(), usize::from(STARTERS), "a write is lost");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

/// Several open a file at once; each puts one entry and closes.
fn race(file: &Path, starters: u8) {
    let start = Barrier::new(usize::from(starters));
    thread::scope(|scope| {
        for number in 0..starters {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                let db = Db::open(file).unwrap();
                put(&db, "b", [number]);
            });
        }
    });
}

/// A backup is put back by renaming it over the file: who waited for the lock of the old file must not write to that.
#[test]
fn a_file_replaced_while_an_opener_waits_is_opened_as_what_it_is_now() {
    let (folder, file) = new_file();
    let replacement = folder.path().join("replacement.db");
    put(&Db::open(&replacement).unwrap(), "of the replacement", "key");

    let old = writer(&file).unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| Db::open(&file).unwrap());
        // Long enough for the waiter to wait, most of the time; whenever it comes, the outcome is to be the same.
        thread::sleep(BRIEFLY);
        fs::rename(&replacement, &file).unwrap();
        drop(old);
        let db = waiter.join().unwrap();
        put(&db, "of the waiter", "key");
        drop(db);
    });

    let content = committed(&reader(&file).unwrap());
    let names: Vec<_> = content.items.keys().map(Vec::as_slice).collect();
    assert_eq!(names, [b"of the replacement".as_slice(), b"of the waiter"]);
}
