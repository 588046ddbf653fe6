//! The folder of a journal that is named: whatever is there instead is an error, and never taken for an empty journal.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use boltkv_storage::{Db, JournalOptions, Options};

#[test]
fn a_journal_that_is_named_and_not_there_or_no_folder_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (file, elsewhere, pipe) =
        (folder.path().join("a.db"), folder.path().join("elsewhere"), folder.path().join("pipe"));
    Db::open(&file).unwrap().close().unwrap();
    let error =
        Options::new().journal(JournalOptions::new().folder(&elsewhere)).read_only(true).open(&file).unwrap_err();
    assert!(error.to_string().contains("newest state is not known"), "{error}");
    assert!(!elsewhere.exists());
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let error = Options::new().journal(JournalOptions::new().folder(&pipe)).open(&file).unwrap_err();
    assert!(error.to_string().contains("Not a directory"), "{error}");
}
