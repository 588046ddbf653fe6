//! `boltkv serve` and its journal: what it says, what a kill leaves, what it refuses, and how one goes on.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;
use std::path::Path;

use crate::common::server::Server;
use crate::common::{Ran, journal_of, run};
use serde_json::Value;

fn refused<A: AsRef<std::ffi::OsStr>>(db: &Path, more: impl IntoIterator<Item = A>) -> String {
    let mut command = crate::common::boltkv(args!["serve", "--listen", "127.0.0.1:0", "--timeout", "0.1", "--db", db]);
    Ran::from(command.args(more).output().unwrap()).failed(3)
}

/// A file whose server was killed before it could bring the file up to date.
fn killed(db: &Path) {
    let server = Server::start(db);
    assert_eq!(server.text("SET k acknowledged\n"), "OK\n");
    server.kill();
}

// Promises: ops-modes, ops-clean-end.
#[test]
fn the_first_line_and_stats_tell_when_writes_are_answered_and_where_the_journal_is() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join("elsewhere");
    let place = format!("journal {}", elsewhere.display());
    let cases: [(&[&str], &str, &str); 4] = [
        (&["--journal", "off"], "durability always, no journal", "durability always\nunsynced_commits 0"),
        (
            &["--durability", "interval=50ms", "--journal", "off"],
            "durability interval=50ms, no",
            "durability_interval_ms 50",
        ),
        (&["--durability", "never"], "durability never, journal ", "durability never"),
        (&["--journal", elsewhere.to_str().unwrap(), "--journal-keep", "1MiB"], &place, "journal on"),
    ];
    for (number, (args, line, stats)) in cases.into_iter().enumerate() {
        let server = Server::start_with(&folder.path().join(format!("{number}.db")), args);
        assert!(server.ready.contains(line), "{}", server.ready);
        let said = server.text("SET k v\nSTATS\n");
        assert!(said.contains(stats), "{said}");
        assert_eq!(said.contains("\njournal_bytes "), !args.contains(&"off"), "{said}");
        server.stop().done();
        let db = folder.path().join(format!("{number}.db"));
        assert_eq!(Server::start_with(&db, ["--journal", "off"]).text("GET k\n"), "v\n", "the file has everything");
    }
    assert!(elsewhere.read_dir().unwrap().next().is_some(), "the journal is where it was to be");
}

// Promises: ops-journal-killed, ops-journal-stopped.
#[test]
fn what_only_the_journal_has_is_not_served_without_it_and_is_there_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    killed(&db);
    for args in [["--journal", "off"], ["--read-only", "--journal=on"]] {
        let said = refused(&db, args);
        assert!(said.contains("a.db-journal") && said.contains("serve it once with"), "{said}");
    }
    let server = Server::start(&db);
    assert!(server.ready.ends_with("a.db-journal, 1 transaction done again from it\n"), "{}", server.ready);
    let said = server.text("GET k\nSTATS\n");
    assert!(said.starts_with("acknowledged\n") && said.contains("\njournal_replayed 1\n"), "{said}");
    server.stop().done();

    let alone = folder.path().join("alone.db");
    fs::copy(&db, &alone).unwrap();
    fs::remove_dir_all(journal_of(&db)).unwrap();
    for db in [&db, &alone] {
        run(args!["file", "check", db]).done();
        assert_eq!(Server::start_with(db, ["--journal", "off"]).text("GET k\n"), "acknowledged\n");
    }
}

#[test]
fn the_room_that_a_killed_server_has_kept_in_the_file_is_given_back_when_the_next_one_ends() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("db");
    let lines: Vec<_> = (0..20_000_u64).map(|n| format!("SET {:016x} {n:0100}\n", n.reverse_bits())).collect();
    let lines = lines.concat();
    for _ in 0..2 {
        let server = Server::start(&db);
        assert_eq!(server.text(&lines).lines().filter(|line| *line == "OK").count(), 20_000);
        server.kill();
        let killed = fs::metadata(&db).unwrap().len();
        Server::start(&db).stop().done();
        let info: Value = serde_json::from_slice(&run(args!["file", "info", "--json", &db]).done()).unwrap();
        let used = info["pages"].as_u64().unwrap() * info["page_size"].as_u64().unwrap();
        assert_eq!(fs::metadata(&db).unwrap().len(), used);
        assert!(used < killed, "{used} of {killed}");
    }
}

// Promises: ops-journal-misfit.
#[test]
fn a_journal_that_does_not_fit_is_given_up_only_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (db, older) = (folder.path().join("a.db"), folder.path().join("older.db"));
    assert_eq!(Server::start_with(&db, ["--journal", "off"]).text("SET k older\n"), "OK\n");
    fs::copy(&db, &older).unwrap();
    killed(&db);
    // The older copy alone would fit: the journal has all that came after it. Not so once it was written elsewhere.
    let server = Server::start_with(&older, ["--journal", "off"]);
    assert_eq!(server.text("SET other 1\n"), "OK\n");
    server.stop().done();
    fs::copy(&older, &db).unwrap();

    let said = refused(&db, [""; 0]);
    assert!(said.contains("does not fit the file") && said.contains("--discard-journal"), "{said}");
    let server = Server::start_with(&db, ["--discard-journal"]);
    assert_eq!(server.text("GET k\nSET k new\n"), "older\nOK\n");
    server.kill();
    // One that fits is not given up.
    let server = Server::start_with(&db, ["--discard-journal"]);
    assert_eq!(server.text("GET k\n"), "new\n");
    drop(server.stop());

    killed(&db);
    fs::remove_file(&db).unwrap();
    let said = refused(&db, [""; 0]);
    assert!(said.contains("file is missing") && said.contains("bring the file back"), "{said}");
    assert_eq!(Server::start_with(&db, ["--discard-journal"]).text("GET k\n"), "(nil)\n");
}

#[test]
fn a_journal_that_cannot_be_kept_and_arguments_that_cannot_be_used_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    fs::write(journal_of(&db), "a file").unwrap();
    let said = refused(&db, [""; 0]);
    assert!(said.contains("a.db-journal") && said.contains("--journal off"), "{said}");
    for (args, names) in [
        (vec!["--journal-size", "4KiB"], "64KiB at least"),
        (vec!["--journal-keep", "7"], "10GiB"),
        (vec!["--journal", "off", "--discard-journal"], "needs a journal"),
        (vec!["--journal", "off", "--journal-memory", "8MiB"], "journal-memory needs a journal"),
        (vec!["--durability", "interval"], "interval=100ms"),
        (vec!["--durability", "interval=0"], "always"),
    ] {
        let mut command = crate::common::boltkv(args!["serve", "--db", &db]);
        let ran = Ran::from(command.args(&args).output().unwrap());
        assert!(ran.code == Some(2) && ran.stderr.contains(names), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_file_that_is_no_database_gets_no_folder_for_a_journal() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("notes.txt");
    fs::write(&db, "notes, and no database\n".repeat(1000)).unwrap();
    let said = refused(&db, [""; 0]);
    assert!(said.contains("notes.txt"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "beside it is nothing");
}

#[test]
fn what_is_asked_of_a_journal_that_is_off_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    for (option, value) in [
        ("checkpoint-interval", Some("5s")),
        ("journal-keep", Some("7d")),
        ("journal-memory", Some("8MiB")),
        ("journal-size", Some("1MiB")),
        ("discard-journal", None),
    ] {
        let mut command =
            crate::common::boltkv(args!["serve", "--listen", "127.0.0.1:0", "--journal", "off", "--db", &db]);
        command.arg(format!("--{option}")).args(value);
        let said = Ran::from(command.output().unwrap()).failed(2);
        assert!(said.contains(option) && said.contains("needs a journal, and --journal is off"), "{said}");
    }
    assert!(!db.exists());
}
