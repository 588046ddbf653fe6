//! One writer or many readers: a file is never open for writing in two places, be the other this engine or Go's bbolt,
//! and those who race to make it end with one database.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use boltkv_storage::{Db, Error, JournalOptions, Options};
use common::{assert_check_clean, committed, open_when_closed};
use std::fs::File;
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

/// A lock on the file as another process would hold it.
fn elsewhere(file: &Path, shared: bool) -> File {
    let file = File::open(file).unwrap();
    if shared {
        file.lock_shared().unwrap();
    } else {
        file.lock().unwrap();
    }
    file
}

fn assert_open_here(opened: boltkv_storage::Result<Db>) {
    match opened {
        Err(Error::AlreadyOpen { .. }) => {}
        Err(other) => panic!("not what it is: {other}"),
        Ok(_) => panic!("the file is open, and was opened"),
    }
}

#[test]
fn a_writer_keeps_out_writers_and_readers() {
    let (_folder, file) = new_file();
    let first = elsewhere(&file, false);
    assert_locked(writer(&file));
    assert_locked(reader(&file));
    drop(first);
    writer(&file).unwrap();
}

#[test]
fn readers_share_and_keep_out_writers() {
    let (_folder, file) = new_file();
    let first = elsewhere(&file, true);
    let second = reader(&file).unwrap();
    drop(second);
    assert_locked(writer(&file));
    drop(first);
    writer(&file).unwrap();
}

// Promises: ops-once.
#[test]
fn who_opens_a_file_that_is_open_in_this_process_is_told_at_once() {
    let (folder, file) = new_file();
    let (link, other_name) = (folder.path().join("link"), folder.path().join("other"));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    fs::hard_link(&file, &other_name).unwrap();
    let first = Db::open(&file).unwrap();
    for path in [&file, &link, &other_name] {
        // Without a timeout: this would wait for ever, for this very thread.
        assert_open_here(Db::open(path));
        assert_open_here(Options::new().read_only(true).open(path));
    }
    drop(first);
    let readers = [&file, &link].map(|path| reader(path).unwrap());
    assert_open_here(Db::open(&other_name));
    let [first, second] = readers;
    drop(first);
    assert_open_here(Db::open(&file));
    drop(second);
    writer(&link).unwrap();
}

#[test]
fn a_link_that_leads_nowhere_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("missing.db", &link).unwrap();
    let message = Db::open(&link).unwrap_err().to_string();
    assert!(message.contains("symbolic link to missing.db, which is not there"), "{message}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was made");
}

#[test]
fn a_file_is_open_until_the_last_handle_is_gone() {
    let (_folder, file) = new_file();
    let first = writer(&file).unwrap();
    let clone = first.clone();
    drop(first);
    assert_open_here(writer(&file));
    drop(clone);
    writer(&file).unwrap();
}

#[test]
fn without_a_timeout_an_opener_waits_for_the_lock() {
    let (_folder, file) = new_file();
    let first = elsewhere(&file, false);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| put(&Db::open(&file).unwrap(), "b", "by the waiter"));
        thread::sleep(BRIEFLY);
        drop(first);
        waiter.join().unwrap();
    });
    assert_eq!(committed(&reader(&file).unwrap()).bucket_paths().len(), 1);
}

#[boltkv_needs::program("go")]
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

#[boltkv_needs::program("go")]
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

#[boltkv_needs::program("go")]
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

#[boltkv_needs::program("go")]
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
                put(&open_when_closed(file), "b", [number]);
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

    let old = elsewhere(&file, false);
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

// Promises: ops-empty-link.
#[test]
fn an_empty_file_that_a_link_leads_to_is_filled_and_the_link_stays_one() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real/a.db"), folder.path().join("link.db"));
    fs::create_dir(real.parent().unwrap()).unwrap();
    fs::write(&real, "").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    Options::new().journal(JournalOptions::new()).open(&link).unwrap().close().unwrap();
    assert!(link.is_symlink());
    assert!(real.with_file_name("a.db-journal").is_dir());
    assert_eq!(fs::metadata(&real).unwrap().len(), 16_384);
}
