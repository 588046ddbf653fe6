//! The folder of a journal that is named: whatever is there instead is an error, and never taken for an empty journal.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::fs;
use std::path::Path;

use crate::common::{copy_as_killed, folder_in_memory};

use boltkv_storage::tools::FileJournal;
use boltkv_storage::{Db, Displaced, Error, JournalOptions, Options};

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
    // In the usual place, too, nobody waits for who writes to it.
    fs::rename(&pipe, folder.path().join("a.db-journal")).unwrap();
    let error = Options::new().journal(JournalOptions::new()).open(&file).unwrap_err();
    assert!(error.to_string().contains("Not a directory"), "{error}");
    assert!(FileJournal::find(&file, None).unwrap().is_none());
    Db::open(&file).unwrap().close().unwrap();
}

#[test]
fn a_journal_that_is_removed_while_it_is_used_ends_the_writes_with_everything_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (file, journal) = (folder.path().join("a.db"), folder.path().join("a.db-journal"));
    let options = Options::new().journal(JournalOptions::new());
    let db = options.open(&file).unwrap();
    let put = |key: &str| {
        let mut tx = db.begin_mut().unwrap();
        tx.create_bucket_if_not_exists("b").unwrap().put(key, "v").unwrap();
        tx.commit()
    };
    put("before").unwrap();
    assert_eq!(db.displaced(), None);
    // The next segment is made by a thread beside, maybe just after the folder was listed: then it is not empty.
    while let Err(error) = fs::remove_dir_all(&journal) {
        assert_eq!(error.kind(), std::io::ErrorKind::DirectoryNotEmpty);
    }
    put("after").unwrap();
    assert_eq!(db.displaced(), Some(Displaced::Journal));
    let error = db.checkpoint().unwrap_err();
    assert!(error.to_string().contains("a.db-journal, or its newest segment, was removed"), "{error}");
    assert!(matches!(db.begin_mut(), Err(Error::Poisoned { .. })));
    drop(db);

    let db = options.open(&file).unwrap();
    assert_eq!(db.displaced(), None);
    let tx = db.begin().unwrap();
    let bucket = tx.bucket("b").unwrap();
    assert!(["before", "after"].iter().all(|key| bucket.get(key).unwrap().is_some()));
}

#[test]
fn a_clean_close_needs_no_journal_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let (file, journal) = (folder.path().join("a.db"), folder.path().join("a.db-journal"));
    let options = Options::new().journal(JournalOptions::new());
    let db = options.open(&file).unwrap();
    let mut tx = db.begin_mut().unwrap();
    tx.create_bucket("b").unwrap();
    tx.commit().unwrap();
    fs::rename(&journal, folder.path().join("moved")).unwrap();
    db.close().unwrap();
    assert!(Db::open(&file).unwrap().begin().unwrap().bucket("b").is_ok());
}

#[test]
fn a_file_that_is_moved_while_it_is_used_is_told_and_written_on() {
    let folder = tempfile::tempdir().unwrap();
    let (file, moved) = (folder.path().join("a.db"), folder.path().join("moved.db"));
    let db = Db::open(&file).unwrap();
    fs::rename(&file, &moved).unwrap();
    assert_eq!(db.displaced(), Some(Displaced::File));
    fs::write(&file, "another").unwrap();
    assert_eq!(db.displaced(), Some(Displaced::File));
    let mut tx = db.begin_mut().unwrap();
    tx.create_bucket("b").unwrap();
    tx.commit().unwrap();
    db.close().unwrap();
    assert!(Db::open(&moved).unwrap().begin().unwrap().bucket("b").is_ok());
}

#[test]
fn segments_of_two_journals_are_refused_and_none_is_left_by_who_gives_them_up() {
    let folder = folder_in_memory();
    let small = || JournalOptions::new().checkpoint_size(256 << 10);
    let put = |db: &Db, key: u32| {
        db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(key.to_be_bytes(), vec![7; 30_000])).unwrap();
    };
    let [ours, theirs] = ["ours", "theirs"].map(|name| {
        let [file, killed] = ["db", "killed"].map(|end| folder.path().join(name).with_extension(end));
        let db = Options::new().journal(small()).open(&file).unwrap();
        (0..40).for_each(|key| put(&db, key));
        copy_as_killed(&file, &killed);
        killed
    });
    let journal = |file: &Path| file.with_extension("killed-journal");
    for (nth, segment) in fs::read_dir(journal(&theirs)).unwrap().enumerate() {
        fs::copy(segment.unwrap().path(), journal(&ours).join(format!("segment-9{nth}"))).unwrap();
    }
    let error = Options::new().journal(small()).open(&ours).unwrap_err();
    assert!(error.to_string().contains("another journal") && error.can_discard_journal(), "{error}");
    let db = Options::new().journal(small().discard(true)).open(&ours).unwrap();
    put(&db, 40);
    let again = folder.path().join("again.db");
    copy_as_killed(&ours, &again);
    db.close().unwrap();
    for file in [again, ours] {
        let db = Options::new().journal(small()).open(&file).unwrap();
        let tx = db.begin().unwrap();
        assert!(tx.bucket("b").unwrap().get(40_u32.to_be_bytes()).unwrap().is_some(), "what came after is done again");
    }
}

#[test]
fn a_journal_that_was_left_beside_a_link_to_the_file_is_told() {
    let folder = folder_in_memory();
    let (file, moved) = (folder.path().join("a.db"), folder.path().join("moved.db"));
    let options = || Options::new().journal(JournalOptions::new());
    options().open(&file).unwrap().close().unwrap();
    fs::rename(&file, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &file).unwrap();
    let told = |error: Error| assert!(error.to_string().contains("a.db-journal lies beside a link"), "{error}");
    told(options().open(&file).unwrap_err());
    told(Db::open(&file).unwrap_err());
    told(FileJournal::find(&file, None).unwrap_err());
    let left = folder.path().join("a.db-journal");
    Options::new().journal(JournalOptions::new().folder(&left)).open(&file).unwrap().close().unwrap();
    fs::rename(&left, folder.path().join("moved.db-journal")).unwrap();
    options().open(&file).unwrap().close().unwrap();
    assert!(FileJournal::find(&file, None).unwrap().is_some());
}
