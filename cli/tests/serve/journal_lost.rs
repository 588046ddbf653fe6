//! `boltkv serve`, and somebody who removes or moves the journal's folder under it: what was answered is in the file all the
//! same.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;
use std::path::Path;

use crate::common::logged::Logged;
use crate::common::server::Server;
use crate::common::{journal_of, run};

/// Requests that more than fill the segments that there are.
const MOST: usize = 20_000;

/// What the server says, which must have ended by itself, with 1; what was answered is in the file, whatever is beside it.
#[track_caller]
fn ended_with_all_of(keys: usize, server: Server, db: &Path) -> String {
    let ended = server.wait();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    if !journal_of(db).is_dir() {
        drop(fs::remove_file(journal_of(db)));
    }
    // An older journal that was put there does not fit.
    let server = Server::start_with(db, ["--discard-journal"]);
    assert_eq!(server.text("COUNT\nSET more v\n"), format!("{keys}\nOK\n"));
    assert_eq!(server.stop().code, Some(0));
    run(args!["file", "check", db]).done();
    ended.stderr
}

/// Removes the folder of a server's journal, which may just then make its next segment there.
fn remove_while_used(journal: &Path) {
    while let Err(error) = fs::remove_dir_all(journal) {
        assert_eq!(error.kind(), std::io::ErrorKind::DirectoryNotEmpty);
    }
}

// Promises: ops-journal-lost.
#[test]
fn a_folder_that_is_removed_ends_the_writes_once_the_file_has_everything() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    let journal = journal_of(&db);
    let moved = folder.path().join("moved");
    let everything = || remove_while_used(&journal);
    let contents =
        || while fs::read_dir(&journal).unwrap().any(|entry| fs::remove_file(entry.unwrap().path()).is_ok()) {};
    let away = || fs::rename(&journal, &moved).unwrap();
    let replaced = || {
        remove_while_used(&journal);
        fs::rename(&moved, &journal).unwrap();
    };
    let file = || {
        remove_while_used(&journal);
        fs::write(&journal, "no folder").unwrap();
    };
    let circle = || {
        remove_while_used(&journal);
        std::os::unix::fs::symlink(&journal, &journal).unwrap();
    };
    let ways: [(&str, &dyn Fn()); 6] = [
        ("removed", &everything),
        ("emptied", &contents),
        ("moved", &away),
        ("replaced", &replaced),
        ("replaced by a file", &file),
        ("replaced by a link to itself", &circle),
    ];
    for (nth, (way, lose)) in ways.into_iter().enumerate() {
        let server = Server::start_with(&db, ["--checkpoint-interval", "0"]);
        assert_eq!(server.text(&format!("SET {nth} before\n")), "OK\n", "{way}");
        lose();
        assert_eq!(server.text(&format!("SET {nth} after\n")), "OK\n", "{way}");
        // The key `more` is there from the second time on.
        let said = ended_with_all_of(nth + 1 + usize::from(nth > 0), server, &db);
        let expected = format!("{}, or its newest segment, was removed or replaced", journal.display());
        assert!(said.contains(&expected), "{way}: {said}");
    }
}

// Promises: ops-journal-lost.
#[test]
fn a_segment_that_cannot_be_made_there_loses_nothing_that_was_answered() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    let server = Server::start_with(&db, ["--journal-size", "1MiB", "--checkpoint-interval", "0"]);
    assert_eq!(server.text("PING\n"), "PONG\n");
    remove_while_used(&journal_of(&db));
    let lines: Vec<String> = (0..MOST).map(|key| format!("SET k{key} {}\n", "v".repeat(500))).collect();
    let answers = server.text(&lines.concat());
    let (written, refused): (Vec<&str>, Vec<_>) = answers.lines().partition(|&answer| answer == "OK");
    let written = written.len();
    assert!(!refused.is_empty(), "it goes on");
    let is_told =
        |answer: &str| ["ERR STORAGE_FAILED ", "ERR SHUTTING_DOWN "].iter().any(|told| answer.starts_with(told));
    let other = refused.into_iter().find(|answer| !is_told(answer));
    assert_eq!(other, None);
    ended_with_all_of(written, server, &db);
}

// Promises: ops-file-moved.
#[test]
fn a_file_that_is_moved_is_told_in_the_log_and_a_backup_has_everything() {
    let folder = tempfile::tempdir().unwrap();
    let [db, moved, saved] = ["a.db", "moved.db", "saved.db"].map(|name| folder.path().join(name));
    let logged = Logged::start(folder.path(), &[]);
    assert_eq!(logged.server.text("SET before v\n"), "OK\n");
    fs::rename(&db, &moved).unwrap();
    let told = format!("{} was moved or removed while it is served", db.display());
    logged.wait_for(&told, 1);
    assert_eq!(logged.server.text("SET after v\n"), "OK\n");
    logged.server.run(args!["backup", &saved]).done();
    assert_eq!(logged.server.stop().code, Some(1));
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(log.matches(&told).count(), 1, "{log}");
    for file in [moved, saved] {
        assert_eq!(Server::start_with(&file, ["--journal", "off"]).text("COUNT\n"), "2\n");
    }
}
