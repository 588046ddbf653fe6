//! What is said where a journal cannot be kept, made or read, and which of these errors are about it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use boltkv_storage::{Db, Error, JournalOptions, Options};

#[test]
fn a_journal_too_small_to_work_with_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.db");
    let least = JournalOptions::LEAST_CHECKPOINT_SIZE;
    let open = |size| Options::new().journal(JournalOptions::new().checkpoint_size(size)).open(&file);
    assert!(matches!(open(least - 1), Err(Error::InvalidJournalSize { found, .. }) if found == least - 1));
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    open(least).unwrap();
}

#[test]
fn the_folder_of_the_file_is_no_folder_for_its_journal_whatever_leads_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("app.db"), folder.path().join("link"));
    std::os::unix::fs::symlink(folder.path(), &link).unwrap();
    for is_there in [false, true] {
        for journal in [folder.path(), &link, &link.join(".")] {
            let error = Options::new().journal(JournalOptions::new().folder(journal)).open(&file).unwrap_err();
            assert!(matches!(error, Error::JournalIo { op: "keep a journal in", .. }), "{error}");
            assert!(error.to_string().contains("one of its own"), "{error}");
            assert_eq!(file.exists(), is_there, "nothing was made");
        }
        Db::open(&file).unwrap();
    }
    let own = JournalOptions::new().folder(folder.path().join("journal"));
    Options::new().journal(own).open(&file).unwrap();
}

#[test]
fn a_folder_for_the_journal_that_is_none_or_cannot_be_made_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (file, other) = (folder.path().join("app.db"), folder.path().join("other"));
    std::fs::write(&other, "a file").unwrap();
    for journal in [other.clone(), other.join("journal"), folder.path().join("missing/journal")] {
        let open = || Options::new().journal(JournalOptions::new().folder(&journal)).open(&file);
        let error = open().unwrap_err();
        assert!(matches!(error, Error::JournalIo { op: "keep a journal in", .. }), "{error}");
        assert!(!file.exists(), "{}", journal.display());
        let reader = Options::new().read_only(true).journal(JournalOptions::new().folder(&journal)).open(&file);
        assert!(!reader.unwrap_err().is_of_journal(), "it is the file that is missed");
        Db::open(&file).and_then(Db::close).unwrap();
        assert!(matches!(open().unwrap_err(), Error::JournalIo { .. }));
        std::fs::remove_file(&file).unwrap();
    }
}

#[test]
fn what_is_wrong_with_a_journal_is_told_from_what_is_wrong_with_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.db");
    let kept = || Options::new().journal(JournalOptions::new());
    kept().open(&file).unwrap().update(|tx| tx.create_bucket("b").map(drop)).unwrap();
    // No folder can be made in what is none.
    let inside = JournalOptions::new().folder(file.join("journal"));
    let error = Options::new().journal(inside).open(&file).unwrap_err();
    assert!(matches!(error, Error::JournalIo { .. }) && error.is_of_journal(), "{error}");
    assert!(!error.can_discard_journal(), "without its folder nothing is given up");
    let missing = Options::new().create(false).open(folder.path().join("missing")).unwrap_err();
    assert!(!missing.is_of_journal(), "{missing}");
    std::fs::remove_file(&file).unwrap();
    let orphan = Db::open(&file).unwrap_err();
    assert!(matches!(orphan, Error::JournalWithoutFile { .. }) && orphan.can_discard_journal(), "{orphan}");
}
