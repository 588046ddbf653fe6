//! A file that was left open says so: without the journal that was kept of it nobody takes it for the newest state.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{committed, copy_as_killed};
use boltkv_storage::tools::{FileJournal, Restore, RestoreTo};
use boltkv_storage::{Db, Error, JournalOptions, Options, Result};

/// A file, and the folder of its journal.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("app.db")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn journal(&self) -> PathBuf {
        self.at("app.db-journal")
    }

    /// What a kill leaves behind the first commit, but for the journal.
    fn file_left_alone() -> Self {
        let (place, left) = (Self::new(), Self::new());
        let db = kept().open(place.file()).unwrap();
        put(&db, "a");
        copy_as_killed(&place.file(), &left.file());
        fs::remove_dir_all(left.journal()).unwrap();
        left
    }

    /// What a kill leaves that has nothing in its journal beyond the file.
    fn left_up_to_date() -> Self {
        let (place, left) = (Self::new(), Self::new());
        let db = kept().open(place.file()).unwrap();
        put(&db, "a");
        db.checkpoint().unwrap();
        copy_as_killed(&place.file(), &left.file());
        left
    }

    /// Refused by all who open it, in silence by none.
    fn is_refused(&self) {
        let before = fs::read(self.file()).unwrap();
        let elsewhere = JournalOptions::new().folder(self.at("elsewhere"));
        for options in [Options::new(), Options::new().read_only(true), kept(), Options::new().journal(elsewhere)] {
            let opened = options.open(self.file());
            assert!(matches!(opened, Err(Error::JournalMissing { .. })), "{options:?}: {opened:?}");
        }
        let found = FileJournal::find(self.file(), None).unwrap().expect("the file lacks one");
        assert!(matches!(found.state(), Err(Error::JournalMissing { .. })), "{found:?}");
        assert_eq!(fs::read(self.file()).unwrap(), before);
        // Who is refused makes nothing.
        assert!(!self.journal().exists() && !self.at("elsewhere").exists());
    }
}

fn kept() -> Options {
    Options::new().journal(JournalOptions::new())
}

fn given_up() -> Options {
    Options::new().journal(JournalOptions::new().discard(true))
}

fn put(db: &Db, key: &str) {
    db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(key, "value")).unwrap();
}

fn keys(db: &Db) -> usize {
    db.view(|tx| Ok(tx.bucket("b").map_or(0, |bucket| bucket.iter().count()))).unwrap()
}

/// Opened for reading, whatever the journal may have.
fn keys_of(file: &Path) -> Result<usize> {
    Ok(keys(&Options::new().read_only(true).open(file)?))
}

#[test]
fn is_told_from_the_first_commit_on() {
    let left = Place::file_left_alone();
    left.is_refused();
    // Who has decided that the file is what is wanted.
    let db = given_up().open(left.file()).unwrap();
    assert_eq!(keys(&db), 0);
    put(&db, "b");
    db.close().unwrap();
    fs::remove_dir_all(left.journal()).unwrap();
    assert_eq!(keys_of(&left.file()).unwrap(), 1);
}

#[test]
fn is_told_behind_a_checkpoint_and_in_a_second_opening() {
    let (place, left) = (Place::new(), Place::new());
    let db = kept().open(place.file()).unwrap();
    put(&db, "a");
    db.checkpoint().unwrap();
    let leave = |place: &Place| {
        copy_as_killed(&place.file(), &left.file());
        fs::remove_dir_all(left.journal()).unwrap();
        left.is_refused();
    };
    leave(&place);
    db.close().unwrap();
    let db = kept().open(place.file()).unwrap();
    put(&db, "b");
    leave(&place);
}

#[test]
fn who_only_reads_or_takes_back_what_he_did_leaves_no_word_of_it() {
    let place = Place::new();
    kept().open(place.file()).unwrap().close().unwrap();
    let before = fs::read(place.file()).unwrap();
    let db = kept().open(place.file()).unwrap();
    assert_eq!(keys(&db), 0);
    drop(db);
    assert_eq!(fs::read(place.file()).unwrap(), before);
}

#[test]
fn a_closed_file_a_backup_and_what_was_restored_need_none() {
    let (place, other) = (Place::new(), Place::new());
    let db = kept().open(place.file()).unwrap();
    put(&db, "a");
    let checkpointed = db.begin_checkpointed().unwrap();
    for (name, tx) in [("checkpointed", checkpointed), ("hot", db.begin().unwrap())] {
        tx.copy_file(other.at(name), 0o600).unwrap();
        assert_eq!(keys_of(&other.at(name)).unwrap(), 1, "{name}");
    }
    put(&db, "b");
    let found = Restore::find(other.at("checkpointed"), place.journal()).unwrap();
    found.to_file(RestoreTo::Newest, other.file(), 0o600, &mut |_, _| ()).unwrap();
    assert_eq!(keys_of(&other.file()).unwrap(), 2);
    let newest = committed(&db);
    db.close().unwrap();
    fs::remove_dir_all(place.journal()).unwrap();
    assert_eq!(committed(&Options::new().read_only(true).open(place.file()).unwrap()), newest);
}

/// What was kept in two folders one after the other is not gone on from where the first one was closed.
#[test]
fn a_journal_that_was_closed_before_another_was_kept_is_not_it() {
    let (place, left) = (Place::new(), Place::new());
    let in_folder = |name: &str| Options::new().journal(JournalOptions::new().folder(place.at(name)));
    let db = in_folder("one").open(place.file()).unwrap();
    put(&db, "a");
    db.close().unwrap();
    let db = in_folder("two").open(place.file()).unwrap();
    put(&db, "b");
    fs::copy(place.file(), left.file()).unwrap();
    for name in ["one", "two"] {
        fs::create_dir(left.at(name)).unwrap();
        for segment in fs::read_dir(place.at(name)).unwrap() {
            let segment = segment.unwrap();
            fs::copy(segment.path(), left.at(name).join(segment.file_name())).unwrap();
        }
    }
    let open = |name: &str| Options::new().journal(JournalOptions::new().folder(left.at(name))).open(left.file());
    let first = open("one");
    assert!(matches!(first, Err(Error::JournalMissing { .. })), "{first:?}");
    assert_eq!(keys(&open("two").unwrap()), 2);
}

/// A state that is left as a journal knows it is said anew by who keeps another one: the first is not gone on from.
#[test]
fn a_journal_that_held_nothing_more_is_not_gone_on_from_where_another_was_kept_since() {
    let left = Place::left_up_to_date();
    let other = || JournalOptions::new().folder(left.at("other"));
    let db = Options::new().journal(other()).open(left.file()).unwrap();
    put(&db, "b");
    let again = Place::new();
    copy_as_killed(&left.file(), &again.file());
    for options in [Options::new(), Options::new().read_only(true), kept()] {
        let opened = options.open(again.file());
        assert!(matches!(opened, Err(Error::JournalMissing { .. })), "{options:?}: {opened:?}");
    }
}

#[test]
fn what_was_given_up_does_not_come_back() {
    let (place, left, again) = (Place::new(), Place::new(), Place::new());
    let db = kept().open(place.file()).unwrap();
    put(&db, "given up");
    copy_as_killed(&place.file(), &left.file());
    fs::rename(left.journal(), left.at("away")).unwrap();
    let db = given_up().open(left.file()).unwrap();
    put(&db, "b");
    // The old one in the place of the one that was kept since.
    fs::copy(left.file(), again.file()).unwrap();
    fs::rename(left.at("away"), again.journal()).unwrap();
    let opened = kept().open(again.file());
    assert!(matches!(opened, Err(Error::JournalDoesNotFit { .. })), "{opened:?}");
}

/// Who gives up a journal elsewhere does not give up the one in the usual place with it.
#[test]
fn a_journal_that_fits_is_not_given_up_with_another() {
    let (place, left) = (Place::new(), Place::new());
    let db = kept().open(place.file()).unwrap();
    put(&db, "a");
    copy_as_killed(&place.file(), &left.file());
    let elsewhere = || JournalOptions::new().folder(left.at("elsewhere"));
    for journal in [elsewhere().discard(true), elsewhere().discard_unfit(true)] {
        let opened = Options::new().journal(journal).open(left.file());
        assert!(matches!(opened, Err(Error::JournalWaits { .. })), "{opened:?}");
    }
    // One that does not fit is not in the way of one that does.
    let other = Place::new();
    put(&kept().open(other.file()).unwrap(), "other");
    fs::rename(left.journal(), left.at("away")).unwrap();
    copy_as_killed(&other.file(), &left.at("other.db"));
    fs::rename(left.at("other.db-journal"), left.journal()).unwrap();
    let away = || JournalOptions::new().folder(left.at("away"));
    let opened = Options::new().journal(away()).open(left.file());
    assert!(matches!(opened, Err(Error::JournalDoesNotFit { .. })), "{opened:?}");
    let db = Options::new().journal(away().discard_unfit(true)).open(left.file()).unwrap();
    assert_eq!(keys(&db), 1);
}

#[test]
fn an_opening_that_keeps_no_journal_says_that_none_is_needed_with_its_first_commit() {
    let left = Place::left_up_to_date();
    put(&Db::open(left.file()).unwrap(), "b");
    fs::remove_dir_all(left.journal()).unwrap();
    assert_eq!(keys_of(&left.file()).unwrap(), 2);
}
