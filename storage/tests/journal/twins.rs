//! Two copies of one file that were changed apart, in ways of the same shape: their metas say the same, but for the number that
//! boltkv gives the state of a journal. The journal of one is never taken for that of the other.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::copy_as_killed;
use boltkv_storage::tools::Restore;
use boltkv_storage::{Db, Error, JournalKeep, JournalOptions, Options};

fn options() -> Options {
    Options::new().journal(JournalOptions::new().keep(JournalKeep::Bytes(1 << 30)))
}

fn put(db: &Db, key: &str) {
    db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(key, "value")).unwrap();
}

/// Changes a file, and closes it.
fn change(file: &Path, key: &str) {
    let db = options().open(file).unwrap();
    put(&db, key);
    db.close().unwrap();
}

/// What the metas of a file say, all but the number in question and the checksum.
fn metas(file: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(file).unwrap();
    let meta = |page: usize| [&bytes[4096 * page + 16..][..12], &bytes[4096 * page + 32..][..40]].concat();
    vec![meta(0), meta(1)]
}

fn journal(file: &Path) -> PathBuf {
    format!("{}-journal", file.display()).into()
}

/// Neither an opening nor a restore takes the second file for the first one, whose journal goes on.
fn are_told_apart(one: &Path, other: &Path) {
    assert_eq!(metas(one), metas(other), "they are not of the same shape");
    let db = options().open(one).unwrap();
    put(&db, "more");
    let place = tempfile::tempdir().unwrap();
    let mixed = place.path().join("mixed.db");
    copy_as_killed(one, &mixed);
    fs::copy(other, &mixed).unwrap();
    let is_refused = |error: &Error| matches!(error, Error::JournalDoesNotFit { .. });
    let opened = options().open(&mixed).map(drop);
    assert!(opened.as_ref().is_err_and(is_refused), "{opened:?}");
    let restored = Restore::find(other, journal(one));
    assert!(restored.as_ref().is_err_and(is_refused), "{restored:?}");
    drop(db);
}

fn two_copies(folder: &Path) -> (PathBuf, PathBuf) {
    let (one, other) = (folder.join("one.db"), folder.join("other.db"));
    change(&one, "base");
    // Both openings are alike: with a journal beside the file from the beginning.
    copy_as_killed(&one, &other);
    (one, other)
}

#[test]
fn that_were_changed_with_journals_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = two_copies(folder.path());
    change(&one, "this");
    change(&other, "that");
    are_told_apart(&one, &other);
}

#[test]
fn whose_journals_were_done_again_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = two_copies(folder.path());
    for (file, key) in [(&one, "this"), (&other, "that")] {
        let db = options().open(file).unwrap();
        put(&db, key);
        let left = folder.path().join(format!("left-{key}.db"));
        copy_as_killed(file, &left);
        drop(db);
        options().open(&left).unwrap().close().unwrap();
    }
    are_told_apart(&folder.path().join("left-this.db"), &folder.path().join("left-that.db"));
}

/// After a clean stop others may have written to the file. One that counts no further than the journal is not that file.
#[test]
fn the_journal_of_another_file_is_not_taken_over_after_a_clean_close() {
    let folder = tempfile::tempdir().unwrap();
    let (mine, other) = (folder.path().join("mine.db"), folder.path().join("other.db"));
    for key in ["a", "b", "c"] {
        change(&mine, key);
    }
    let db = Db::open(&other).unwrap();
    put(&db, "other");
    db.close().unwrap();
    let misled = Options::new().journal(JournalOptions::new().folder(journal(&mine)));
    let refused = misled.clone().open(&other);
    assert!(matches!(refused, Err(Error::JournalDoesNotFit { .. })), "{refused:?}");
    change(&mine, "d");
    // Its own file may have been written to.
    let db = Db::open(&mine).unwrap();
    put(&db, "elsewhere");
    db.close().unwrap();
    assert!(options().open(&mine).unwrap().stats().journal.unwrap().changed_since.is_some());
}
