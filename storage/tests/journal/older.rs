//! An older copy of a file beside a journal that was kept from then on, in which nothing is recorded since: states that were
//! closed have numbers all the same.

use std::fs;
use std::path::Path;

use crate::common::copy_as_killed;
use boltkv_storage::{Db, JournalKeep, JournalOptions, Options};

fn open(file: &Path) -> Db {
    Options::new().journal(JournalOptions::new().keep(JournalKeep::Bytes(1 << 30))).open(file).unwrap()
}

fn put(db: &Db, key: &str) {
    db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(key, "value")).unwrap();
}

fn keys(db: &Db) -> usize {
    db.view(|tx| Ok(tx.bucket("b").map_or(0, |bucket| bucket.iter().count()))).unwrap()
}

fn number(db: &Db) -> u64 {
    db.begin().unwrap().id()
}

/// Opens the older copy, whose journal ends with a close or a kill; writes to it, and looks at what a kill leaves.
fn goes_on(ends_with_kill: bool) {
    let place = tempfile::tempdir().unwrap();
    let [file, old, killed] = ["app.db", "old.db", "killed.db"].map(|name| place.path().join(name));
    let db = open(&file);
    put(&db, "a");
    db.close().unwrap();
    fs::copy(&file, &old).unwrap();
    let before = number(&open(&file));
    for _ in 0..3 {
        let db = open(&file);
        drop(db.begin_mut().unwrap());
        db.close().unwrap();
    }
    let db = open(&file);
    let last = number(&db);
    assert!(last > before, "closing took no number");
    if ends_with_kill {
        copy_as_killed(&file, &killed);
        drop(db);
        copy_as_killed(&killed, &file);
    } else {
        drop(db);
    }
    fs::copy(&old, &file).unwrap();

    // Whoever opens it first is interrupted: no checkpoint has come to the file, but a record to the journal.
    let db = open(&file);
    put(&db, "b");
    copy_as_killed(&file, &killed);
    drop(db);
    copy_as_killed(&killed, &file);
    fs::copy(&old, &file).unwrap();

    for (had, key) in [(2, "c"), (3, "d")] {
        let db = open(&file);
        assert_eq!(keys(&db), had);
        assert!(number(&db) >= last, "numbers would be used again");
        put(&db, key);
        copy_as_killed(&file, &killed);
        assert_eq!(keys(&open(&killed)), had + 1);
    }
}

#[test]
fn a_copy_of_before_closes_that_recorded_nothing_goes_on_with_other_numbers() {
    goes_on(false);
}

#[test]
fn a_copy_of_before_closes_and_a_kill_goes_on_with_other_numbers() {
    goes_on(true);
}
