//! The newest meta of a served file is damaged: what the journal knows of it is used, and said.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::server::Server;
use crate::common::{Ran, boltkv, run};
use boltkv_storage::tools::{FileJournal, RawFile};
use boltkv_storage::{Db, JournalOptions, Options};

/// Kills a server after a stop and a write; then the newest meta has no bytes left.
fn killed_with_a_damaged_meta(folder: &Path) -> PathBuf {
    let db = folder.join("a.db");
    for key in ["a", "b"] {
        let server = Server::start(&db);
        assert_eq!(server.text(&format!("SET {key} v\n")), "OK\n");
        server.stop().done();
    }
    let server = Server::start(&db);
    assert_eq!(server.text("SET c v\n"), "OK\n");
    server.kill();
    damage_newest_meta(&db);
    db
}

fn damage_newest_meta(db: &Path) {
    let page = RawFile::open(db, None).unwrap().newest_meta().unwrap().txid % 2;
    let mut bytes = fs::read(db).unwrap();
    bytes[usize::try_from(page).unwrap() * 4096..][..4096].fill(0);
    fs::write(db, bytes).unwrap();
}

/// The same of a file whose journal has let go of all that was before its newest meta.
fn killed_without_its_past(folder: &Path) -> PathBuf {
    let (db, journal) = (folder.join("a.db"), folder.join("a.db-journal"));
    let open = || Options::new().journal(JournalOptions::new().folder(&journal)).open(&db).unwrap();
    let first = open();
    for _ in 0..2 {
        first.update(|tx| tx.create_bucket_if_not_exists("b")?.put("k", "v")).unwrap();
        first.checkpoint().unwrap();
    }
    // As a kill leaves it, with nothing that waits.
    let left: Vec<_> = fs::read_dir(&journal).unwrap().map(|file| file.unwrap().path()).collect();
    let left: Vec<_> = left.into_iter().map(|file| (fs::read(&file).unwrap(), file)).collect();
    let file = fs::read(&db).unwrap();
    first.close().unwrap();
    for (bytes, file) in left {
        fs::write(file, bytes).unwrap();
    }
    fs::write(&db, file).unwrap();
    let server = Server::start(&db);
    assert_eq!(server.text("SET k v\n"), "OK\n");
    server.kill();
    let segments: Vec<_> = FileJournal::find(&db, None).unwrap().unwrap().segments().collect();
    let newest = segments.last().unwrap().epoch;
    for old in segments.iter().filter(|segment| segment.epoch != newest) {
        fs::remove_file(journal.join(&old.file)).unwrap();
    }
    damage_newest_meta(&db);
    db
}

// Promises: ops-doubt-journal.
#[test]
fn a_meta_that_the_journal_has_is_put_back_and_that_is_said_by_whoever_does_it() {
    let folder = tempfile::tempdir().unwrap();
    let db = killed_with_a_damaged_meta(folder.path());
    let saved = fs::read(&db).unwrap();
    let repaired = run(args!["file", "repair", &db, "--output", folder.path().join("new.db")]).done_text();
    assert!(repaired.contains("whose meta is damaged in the file and whole in its journal"), "{repaired}");
    assert!(fs::read(&db).unwrap() == saved, "a repair only reads");
    assert_eq!(Server::start_with(&folder.path().join("new.db"), ["--journal=off"]).text("COUNT\n"), "3\n");

    let applied = run(args!["file", "journal", "--apply", &db]).done_text();
    assert!(applied.contains("the journal has it, of transaction ") && applied.contains("put back"), "{applied}");
    assert!(applied.contains("1 transaction applied"), "{applied}");
    assert_eq!(Db::open(&db).unwrap().damaged_meta(), None);

    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&killed_with_a_damaged_meta(folder.path()));
    assert_eq!(server.text("COUNT\n"), "3\n");
    let said = server.stop().stderr;
    assert!(said.contains("it was put back: check the disk") && !said.contains("the next write"), "{said}");
}

// Promises: ops-doubt-lost.
#[test]
fn an_older_state_whose_pages_may_be_written_over_is_not_served_whatever_becomes_of_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let db = killed_without_its_past(folder.path());
    let before = fs::read(&db).unwrap();
    for more in [&[][..], &["--discard-journal"], &["--read-only"]] {
        let mut command = boltkv(args!["serve", "--listen", "127.0.0.1:0", "--db", &db]);
        let said = Ran::from(command.args(more).output().unwrap()).failed(3);
        assert!(said.contains("may be written over") && said.contains("boltkv file repair"), "{said}");
    }
    let looked = run(args!["file", "journal", &db]).failed(1);
    assert!(looked.contains("boltkv file repair") && !looked.contains("--discard"), "{looked}");
    run(args!["file", "journal", "--discard", &db]).failed(3);
    assert!(fs::read(&db).unwrap() == before, "the file was changed");
}
