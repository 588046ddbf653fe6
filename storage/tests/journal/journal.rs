//! A database with a journal: what a crash leaves is the file and the journal, and together they are every commit that was
//! acknowledged. A killed process leaves what a copy of both would hold, because nothing else outlasts it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::{assert_check_clean, committed};
use boltkv_storage::{Db, Durability, Error, FreelistStored, JournalKeep, JournalOptions, Options, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file and its journal in a folder of their own.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(crate::common::folder_in_memory())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("app.db")
    }

    fn journal(&self) -> PathBuf {
        self.0.path().join("app.db-journal")
    }

    /// What a process leaves that is killed now.
    fn after_a_kill(&self) -> Self {
        let copy = Self::new();
        std::fs::copy(self.file(), copy.file()).unwrap();
        copy_folder(&self.journal(), &copy.journal());
        copy
    }

    fn open(&self) -> Db {
        options().open(self.file()).unwrap()
    }

    /// Goes on with the file as it is.
    fn give_up(&self) {
        Options::new().journal(small().discard(true)).open(self.file()).unwrap().close().unwrap();
    }

    fn open_without(&self) -> Result<Db> {
        Db::open(self.file())
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

const CHECKPOINT_SIZE: u64 = 256 << 10;

fn small() -> JournalOptions {
    JournalOptions::new().checkpoint_size(CHECKPOINT_SIZE)
}

fn options() -> Options {
    Options::new().journal(small())
}

/// Waits until no checkpoint is being done: what is copied then is what a kill leaves.
fn without_a_checkpoint_under_way(db: &Db) {
    for _ in 0..10_000 {
        if db.stats().journal.unwrap().since_checkpoint < CHECKPOINT_SIZE / 4 * 3 {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("the checkpoint does not come");
}

fn put(db: &Db, key: &str) {
    db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(key, vec![7; 100])).unwrap();
}

fn keys(db: &Db) -> Vec<String> {
    let tx = db.begin().unwrap();
    match tx.bucket("b") {
        Ok(bucket) => bucket.iter().map(|entry| String::from_utf8_lossy(entry.unwrap().0).into_owned()).collect(),
        Err(Error::BucketNotFound { .. }) => Vec::new(),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn what_was_committed_is_there_after_a_kill_in_every_durability() {
    let interval = Durability::Interval { every: Duration::from_secs(3600), commits: u64::MAX };
    for durability in [Durability::Always, interval, Durability::Never] {
        for freelist in [FreelistStored::Always, FreelistStored::OnCleanClose, FreelistStored::Never] {
            let place = Place::new();
            let options = options().durability(durability).freelist(freelist);
            let db = options.open(place.file()).unwrap();
            for number in 0..300 {
                put(&db, &format!("{number:03}"));
            }
            db.update(|tx| tx.bucket_mut("b")?.delete_range(.."100", usize::MAX).map(drop)).unwrap();
            without_a_checkpoint_under_way(&db);
            let left = place.after_a_kill();
            let again = options.open(left.file()).unwrap();
            assert_eq!(committed(&again), committed(&db), "{durability:?}, {freelist:?}");
            // The checkpoint of the opening may have taken one.
            let (number, before) = (again.begin().unwrap().id(), db.begin().unwrap().id());
            assert!((before..=before + 1).contains(&number), "numbers go on: {number} after {before}");
            assert_check_clean(&again, "after a kill");
            put(&again, "more");
            drop(again);
            assert_eq!(keys(&left.open_without().unwrap()).last().unwrap(), "more");
        }
    }
}

#[test]
fn a_crash_between_two_openings_and_again_loses_nothing() {
    let mut place = Place::new();
    for round in 0..12 {
        let db = place.open();
        assert_eq!(keys(&db).len(), round * 3);
        (0..3).for_each(|n| put(&db, &format!("{round:02}-{n}")));
        let left = place.after_a_kill();
        drop(db);
        place = left;
    }
    assert_check_clean(&place.open(), "at last");
}

#[test]
fn a_clean_close_leaves_an_ordinary_file() {
    let place = Place::new();
    let db = place.open();
    put(&db, "a");
    db.close().unwrap();
    assert_eq!(keys(&place.open_without().unwrap()), ["a"]);
    // It was changed without its journal, which was told that it may be.
    put(&place.open_without().unwrap(), "b");
    let db = place.open();
    assert_eq!(keys(&db), ["a", "b"]);
    put(&db, "c");
    drop(db);
    std::fs::remove_dir_all(place.journal()).unwrap();
    assert_eq!(keys(&place.open_without().unwrap()), ["a", "b", "c"]);
    assert_eq!(keys(&place.open()), ["a", "b", "c"], "a new journal is begun");
}

#[test]
fn who_does_not_keep_the_journal_is_told_that_it_waits() {
    let place = Place::new();
    let db = place.open();
    let newest = {
        put(&db, "a");
        db.begin().unwrap().id()
    };
    let left = place.after_a_kill();
    for options in [Options::new(), Options::new().read_only(true), options().read_only(true)] {
        let before = crate::common::file_hash(&left.file());
        match options.open(left.file()) {
            Err(Error::JournalWaits { file, newest: found, .. }) => assert_eq!((file, found), (newest - 1, newest)),
            other => panic!("{other:?}"),
        }
        assert_eq!(crate::common::file_hash(&left.file()), before);
    }
    left.open().close().unwrap();
    for options in [Options::new(), Options::new().read_only(true)] {
        assert_eq!(keys(&options.open(left.file()).unwrap()), ["a"]);
    }
}

/// Nothing waits behind a checkpoint, also where the process was killed then: the file may be used without the journal, and
/// with it again.
#[test]
fn a_file_that_was_just_brought_up_to_date_may_be_changed_without_its_journal() {
    let place = Place::new();
    let db = place.open();
    put(&db, "a");
    db.checkpoint().unwrap();
    let left = place.after_a_kill();
    put(&left.open_without().unwrap(), "b");
    assert_eq!(keys(&left.open()), ["a", "b"]);
}

#[test]
fn a_file_that_was_changed_while_its_journal_waited_is_refused_until_that_is_given_up() {
    let place = Place::new();
    let db = place.open();
    put(&db, "a");
    db.checkpoint().unwrap();
    put(&db, "b");
    let left = place.after_a_kill();
    // Somebody who knows nothing of journals.
    let aside = left.journal().with_extension("aside");
    std::fs::rename(left.journal(), &aside).unwrap();
    assert!(matches!(left.open_without(), Err(Error::JournalMissing { .. })));
    left.give_up();
    put(&left.open_without().unwrap(), "c");
    std::fs::remove_dir_all(left.journal()).unwrap();
    std::fs::rename(&aside, left.journal()).unwrap();
    for refused in [options().open(left.file()), left.open_without()] {
        assert!(matches!(refused, Err(Error::JournalDoesNotFit { .. })), "{refused:?}");
    }
    let db = Options::new().journal(small().discard(true)).open(left.file()).unwrap();
    assert_eq!(keys(&db), ["a", "c"]);
    put(&db, "d");
    assert_eq!(keys(&left.after_a_kill().open()), ["a", "c", "d"]);
}

#[test]
fn a_new_file_does_not_take_the_journal_of_one_that_is_gone() {
    let place = Place::new();
    let db = place.open();
    put(&db, "a");
    let left = place.after_a_kill();
    for _ in 0..2 {
        std::fs::remove_file(left.file()).unwrap();
        for refused in [options().open(left.file()), left.open_without()] {
            assert!(matches!(refused, Err(Error::JournalWithoutFile { .. })), "{refused:?}");
        }
        assert!(!left.file().exists());
        std::fs::write(left.file(), "").unwrap();
    }
    assert!(matches!(left.open_without(), Err(Error::JournalWithoutFile { .. })));
}

#[test]
fn a_checkpoint_comes_with_the_bytes_with_time_and_when_asked() {
    let place = Place::new();
    let db = place.open();
    let journal = || db.stats().journal.unwrap();
    while journal().checkpoints < 5 {
        put(&db, &format!("{}", journal().records));
        // A quarter more while a thread makes one.
        assert!(journal().since_checkpoint <= (256 + 64) << 10);
        assert!(journal().records < 1000);
    }
    // Four times what counts: records of one block count half of it.
    assert!(journal().bytes <= 16 << 16, "segments are used again: {:?}", journal());
    put(&db, "asked");
    assert!(journal().since_checkpoint > 0);
    db.checkpoint().unwrap();
    assert_eq!(journal().since_checkpoint, 0);
    let (folder, other) = (crate::common::folder_in_memory(), Duration::from_millis(1));
    let db = Options::new().journal(small().checkpoint_every(other)).open(folder.path().join("db")).unwrap();
    put(&db, "with time");
    for _ in 0..10_000 {
        if db.stats().journal.unwrap().checkpoints > 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("no checkpoint came");
}

#[test]
fn a_checkpoint_is_done_beside_the_commits_before_one_would_have_to_wait_for_it() {
    let place = Place::new();
    let db = place.open();
    let journal = || db.stats().journal.unwrap();
    while journal().since_checkpoint < CHECKPOINT_SIZE / 4 * 3 && journal().checkpoints == 0 {
        put(&db, &format!("{}", journal().records));
    }
    for _ in 0..10_000 {
        if journal().checkpoints > 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("no checkpoint came");
}

#[test]
fn a_commit_with_a_journal_is_one_sync() {
    let place = Place::new();
    let db = Options::new().journal(JournalOptions::new()).open(place.file()).unwrap();
    put(&db, "a");
    let before = db.stats().commits.syncs;
    (0..100).for_each(|n| put(&db, &n.to_string()));
    assert_eq!(db.stats().commits.syncs - before, 100);
    assert_eq!(db.stats().unsynced_commits, 0);
}

#[test]
fn in_the_looser_durabilities_a_sync_is_asked_of_the_journal_alone() {
    let place = Place::new();
    let db = options().durability(Durability::Never).open(place.file()).unwrap();
    put(&db, "a");
    put(&db, "b");
    assert_eq!(db.stats().unsynced_commits, 2);
    let before = db.stats().journal.unwrap().checkpoints;
    db.sync().unwrap();
    let stats = db.stats();
    assert_eq!((stats.unsynced_commits, stats.journal.unwrap().checkpoints), (0, before));
}

#[test]
fn a_transaction_larger_than_all_segments_and_a_large_value_are_recorded() {
    let place = Place::new();
    let db = place.open();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        bucket.put("large", vec![1; 3 << 20])?;
        (0..20_000_u32).try_for_each(|n| bucket.put(n.to_be_bytes(), n.to_le_bytes()))
    })
    .unwrap();
    put(&db, "after");
    let again = place.after_a_kill().open();
    assert_eq!(committed(&again), committed(&db));
}

#[test]
fn shrinking_and_a_large_bucket_that_goes_over_time_are_survived() {
    let place = Place::new();
    let db = Options::new().journal(JournalOptions::new()).page_size(1024).open(place.file()).unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("large")?;
        (0..40_000_u32).try_for_each(|n| bucket.put(n.to_be_bytes(), [1; 40]))
    })
    .unwrap();
    put(&db, "a");
    db.checkpoint().unwrap();
    db.update(|tx| tx.delete_bucket("large")).unwrap();
    (0..20).for_each(|n| put(&db, &n.to_string()));
    let again = place.after_a_kill().open();
    assert_eq!(committed(&again), committed(&db));
    assert_check_clean(&again, "after a kill");
    let shrunk = db.shrink().unwrap();
    assert!(shrunk.after < shrunk.before / 4, "{shrunk:?}");
    put(&db, "last");
    let again = place.after_a_kill().open();
    assert_eq!(committed(&again), committed(&db));
    assert_check_clean(&again, "after a kill");
}

#[test]
fn a_journal_in_another_folder_is_kept_there_and_one_in_the_usual_place_is_not_passed_over() {
    let place = Place::new();
    let elsewhere = place.0.path().join("elsewhere");
    let there = || Options::new().journal(small().folder(&elsewhere));
    let db = there().open(place.file()).unwrap();
    put(&db, "a");
    assert!(!place.journal().exists());
    let newest = committed(&db);
    let left = Place::new();
    std::fs::copy(place.file(), left.file()).unwrap();
    copy_folder(&elsewhere, &left.0.path().join("elsewhere"));
    let again = Options::new().journal(small().folder(left.0.path().join("elsewhere"))).open(left.file()).unwrap();
    assert_eq!(committed(&again), newest);
    drop(again);
    let db = left.open();
    put(&db, "b");
    let left = left.after_a_kill();
    let other = Options::new().journal(small().folder(left.0.path().join("other"))).open(left.file());
    assert!(matches!(other, Err(Error::JournalWaits { .. })), "{other:?}");
    assert!(!left.0.path().join("other").exists(), "what was refused leaves nothing");
}

#[test]
fn what_a_transaction_has_undone_does_not_come_back() {
    let place = Place::new();
    let db = place.open();
    put(&db, "a");
    let mut tx = db.begin_mut().unwrap();
    tx.bucket_mut("b").unwrap().put("kept", "v").unwrap();
    let savepoint = tx.savepoint();
    tx.bucket_mut("b").unwrap().put("undone", "v").unwrap();
    tx.rollback_to(&savepoint).unwrap();
    tx.commit().unwrap();
    db.begin_mut().unwrap().rollback();
    db.batch(|tx| tx.bucket_mut("b")?.put("undone too", "v").and(Err::<(), _>(Error::ReadOnly))).unwrap_err();
    db.batch(|tx| tx.bucket_mut("b")?.put("batched", "v")).unwrap();
    assert_eq!(keys(&place.after_a_kill().open()), ["a", "batched", "kept"]);
}

#[test]
fn a_kept_journal_grows_to_what_it_may_take() {
    let place = Place::new();
    let keep = JournalKeep::Bytes(1 << 20);
    let db = Options::new().journal(small().keep(keep)).durability(Durability::Never).open(place.file()).unwrap();
    (0..2000).for_each(|n| put(&db, &n.to_string()));
    let bytes = db.stats().journal.unwrap().bytes;
    assert!((1 << 20..3 << 20).contains(&bytes), "{bytes}");
    let again = Options::new().journal(small().keep(keep)).open(place.after_a_kill().file()).unwrap();
    assert_eq!(keys(&again).len(), 2000);
}

#[test]
fn a_backup_of_what_the_file_does_not_hold_yet_is_whole() {
    let place = Place::new();
    let db = place.open();
    (0..20).for_each(|n| put(&db, &n.to_string()));
    let copy = place.0.path().join("copy.db");
    db.begin().unwrap().copy_file(&copy, 0o600).unwrap();
    let copy = Db::open(&copy).unwrap();
    assert_eq!(committed(&copy), committed(&db));
    assert_check_clean(&copy, "the backup");
}
