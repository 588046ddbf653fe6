//! Where a journal lies: another device, a folder that is somebody else's, lost, or left behind.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use crate::common::mounted::Mounted;
use crate::common::server::Server;
use crate::common::{Ran, boltkv, journal_of, run};

#[track_caller]
fn refused<A: AsRef<OsStr>>(db: &Path, more: impl IntoIterator<Item = A>) -> String {
    let mut command = boltkv(args!["serve", "--listen", "127.0.0.1:0", "--timeout", "0.1", "--db", db]);
    Ran::from(command.args(more).output().unwrap()).failed(3)
}

/// Writes, and kills the server.
#[track_caller]
fn killed_after<A: AsRef<OsStr>>(db: &Path, more: impl IntoIterator<Item = A>, line: &str) {
    let server = Server::start_with(db, more);
    assert_eq!(server.text(line), "OK\n");
    server.kill();
}

// Promises: ops-journal-place.
#[test]
#[boltkv_needs::program("unshare")]
fn a_journal_on_another_device_is_refused_unless_it_is_named() {
    let Some(mounted) = Mounted::new("16m") else { return };
    let said = Ran::from(mounted.serve([""; 0]).output().unwrap()).failed(3);
    assert!(said.contains("a.db-journal") && said.contains("another device"), "{said}");
    let named =
        [OsStr::new("--journal"), mounted.small().as_os_str(), OsStr::new("--journal-size=1MiB")].map(OsStr::to_owned);
    let server = Server::spawn(&mut mounted.serve(named));
    assert_eq!(server.text("SET k v\nGET k\n"), "OK\nv\n");
    server.stop().done();
}

// Promises: ops-journal-place.
#[test]
fn one_folder_is_not_two_journals() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second, shared] = ["first.db", "second.db", "shared"].map(|name| folder.path().join(name));
    let server = Server::start_with(&first, args!["--journal", &shared]);
    assert_eq!(server.text("SET k first\n"), "OK\n");
    let said = refused(&second, args!["--journal", &shared]);
    assert!(said.contains("another database that is open") && said.contains("shared"), "{said}");
    assert_eq!(server.text("SET k again\nGET k\n"), "OK\nagain\n");
    server.kill();
    // Also where it is not open, and waits for its file.
    let said = refused(&second, args!["--journal", &shared]);
    assert!(said.contains("shared"), "{said}");
    assert_eq!(Server::start_with(&first, args!["--journal", &shared]).text("GET k\n"), "again\n");
}

// Promises: ops-journal-place.
#[test]
fn the_usual_folder_may_be_named_however_its_path_is_written_or_be_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    let usual = folder.path().join("a.db-journal");
    for (round, named) in ["a.db-journal", "./a.db-journal", "x/../a.db-journal"].into_iter().enumerate() {
        fs::create_dir_all(folder.path().join("x")).unwrap();
        let server = Server::start_with(&db, args!["--journal", folder.path().join(named)]);
        assert_eq!(server.text(&format!("SET {round} {round}\n")), "OK\n");
        server.kill();
    }
    // Somewhere else, with a link to it beside the file.
    fs::rename(&usual, folder.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", &usual).unwrap();
    for journal in [&usual, &folder.path().join("elsewhere")] {
        let server = Server::start_with(&db, args!["--journal", journal]);
        assert_eq!(server.text("GET 0\nGET 2\n"), "0\n2\n");
        server.kill();
    }
    assert_eq!(Server::start(&db).text("GET 0\nGET 2\n"), "0\n2\n");
}

#[test]
fn a_word_that_is_no_folder_is_not_taken_for_one_and_a_journal_elsewhere_is_named_in_advice() {
    let folder = tempfile::tempdir().unwrap();
    let [db, other] = ["a.db", "other.db"].map(|name| folder.path().join(name));
    for word in ["OFF", "false", "No", "0"] {
        let command = args!["serve", "--db", &db, "--listen", "127.0.0.1:0", "--journal", word];
        let ran = boltkv(command).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && said.contains("`on`, `off` or a folder"), "{said}");
    }
    let elsewhere = folder.path().join("else where");
    killed_after(&db, args!["--journal", &elsewhere], "SET k v\n");
    killed_after(&other, ["--journal=off"], "SET k other\n");
    let said = refused(&other, args!["--journal", &elsewhere]);
    assert!(said.contains("boltkv file journal --folder '") && said.contains("else where' "), "{said}");
}

#[test]
fn a_second_server_waits_for_the_file_and_not_for_its_journal() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    let server = Server::start(&db);
    assert_eq!(server.text("SET k v\n"), "OK\n");
    for more in [&[][..], &["--journal=off"], &["--read-only"]] {
        let said = refused(&db, more);
        assert!(said.contains("locked by another process") && said.contains(&server.id().to_string()), "{said}");
    }
    server.kill();
    assert_eq!(Server::start(&db).text("GET k\n"), "v\n");
}

// Promises: ops-journal-place.
#[test]
fn a_folder_that_cannot_be_made_or_is_none_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    // The folder that the file is in is its journal's no more than a file is.
    fs::write(folder.path().join("file"), "no folder").unwrap();
    for journal in ["", "no/such/folder", "file", "file/journal"] {
        let said = refused(&db, args!["--journal", folder.path().join(journal)]);
        assert!(said.contains(journal) && said.contains("--journal DIR") && said.contains("--journal off"), "{said}");
    }
    assert_eq!(Server::start_with(&db, ["--journal=off"]).text("SET k v\nGET k\n"), "OK\nv\n");
}

// Promises: ops-journal-together.
#[test]
fn file_and_journal_go_together_also_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let [db, moved] = ["a.db", "moved.db"].map(|name| folder.path().join(name));
    killed_after(&db, [""; 0], "SET k v\n");
    fs::rename(&db, &moved).unwrap();
    fs::rename(journal_of(&db), journal_of(&moved)).unwrap();
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(&moved, &link).unwrap();
    let server = Server::start(&link);
    assert!(server.ready.contains("moved.db-journal"), "{}", server.ready);
    assert_eq!(server.text("GET k\n"), "v\n");
    assert!(!journal_of(&link).exists());
}

// Promises: ops-journal-together.
#[test]
fn a_file_that_is_moved_alone_is_refused_and_its_old_place_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let [db, moved] = ["a.db", "moved.db"].map(|name| folder.path().join(name));
    Server::start(&db).stop().done();
    killed_after(&db, [""; 0], "SET k v\n");
    fs::rename(&db, &moved).unwrap();
    let said = refused(&db, [""; 0]);
    assert!(said.contains("file is missing") && said.contains("a.db-journal"), "{said}");
    assert!(!db.exists());
    for option in ["--read-only", "--journal=on", "--journal=off"] {
        let said = refused(&moved, [option]);
        assert!(said.contains("not closed") && said.contains("moved.db-journal"), "{said}");
    }
    assert!(!journal_of(&moved).exists());
    // Nothing was written to it: back beside its journal it has all.
    fs::rename(&moved, &db).unwrap();
    assert_eq!(Server::start(&db).text("GET k\n"), "v\n");
}

// Promises: ops-journal-misfit.
#[test]
fn a_file_that_another_program_wrote_to_since_the_kill_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let [db, copy] = ["a.db", "copy.db"].map(|name| folder.path().join(name));
    killed_after(&db, [""; 0], "SET k v\n");
    // Another program knows of no journal, as one does not that is beside a file of another name.
    fs::rename(&db, &copy).unwrap();
    run(args!["file", "journal", "--discard", &copy]).done();
    killed_after(&copy, ["--journal=off"], "SET k other\n");
    fs::rename(&copy, &db).unwrap();
    let before = fs::read(&db).unwrap();
    let said = refused(&db, [""; 0]);
    assert!(
        said.contains("does not fit") && said.contains("boltkv file journal") && said.contains("--discard-journal"),
        "{said}"
    );
    let server = Server::start_with(&db, ["--discard-journal", "--read-only"]);
    assert_eq!(server.text("GET k\n"), "other\n");
    let ended = server.stop();
    assert!(ended.code == Some(0) && ended.stderr.contains("the journal is passed over"), "{}", ended.stderr);
    assert_eq!(refused(&db, [""; 0]), said, "the journal was changed");
    assert!(fs::read(&db).unwrap() == before, "the file was changed");
    let server = Server::start_with(&db, ["--discard-journal"]);
    assert_eq!(server.text("GET k\n"), "other\n");
    let ended = server.stop();
    assert!(ended.code == Some(0) && ended.stderr.contains("the journal is given up"), "{}", ended.stderr);
}

#[boltkv_needs::program("go")]
#[test]
fn what_go_sees_of_a_killed_servers_file_is_whole_and_what_it_writes_is_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    Server::start(&db).stop().done();
    killed_after(&db, [""; 0], "SET k v\n");
    let go = crate::common::peer::bbolt().unwrap();
    assert_eq!(go.run(args!["check", &db]).done_text(), "OK\n");
    assert_eq!(go.run(args!["buckets", &db]).done_text(), "", "the last checkpoint, without the newest write");
    go.run(args!["bench", "--path", &db, "--work", "--count", "10", "--batch-size", "10"]);
    assert_eq!(go.run(args!["buckets", &db]).done_text(), "bench\n");

    let before = fs::read(&db).unwrap();
    let said = refused(&db, [""; 0]);
    assert!(said.contains("does not fit"), "{said}");
    assert!(fs::read(&db).unwrap() == before, "the file was changed");
    let server = Server::start_with(&db, ["--discard-journal"]);
    assert_eq!(server.text("SET k new\n"), "OK\n");
    server.stop();
    assert_eq!(go.run(args!["check", &db]).done_text(), "OK\n");
    assert_eq!(go.run(args!["buckets", &db]).done_text(), "bench\ndefault\n");
}

// Promises: ops-journal-missing.
#[test]
fn a_file_whose_journal_is_lost_is_refused_until_that_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    let server = Server::start(&db);
    assert_eq!(server.text("SET k checkpoint\n"), "OK\n");
    server.stop().done();
    killed_after(&db, [""; 0], "SET k lost\n");
    fs::remove_dir_all(journal_of(&db)).unwrap();
    let said = refused(&db, [""; 0]);
    assert!(said.contains("--journal DIR") && said.contains("--discard-journal"), "{said}");
    let said = refused(&db, ["--journal=off"]);
    assert!(said.contains("boltkv file journal --discard") && !said.contains("--discard-journal"), "{said}");
    for command in [args!["file", "check", &db], args!["file", "stats", &db]] {
        let said = run(command).failed(3);
        assert!(said.contains("not closed") && said.contains("boltkv file journal"), "{said}");
    }
    let told = run(args!["file", "journal", &db]).failed(1);
    assert!(told.contains("--folder DIR") && told.contains("--discard"), "{told}");
    assert!(run(args!["file", "page", &db, "0"]).stderr.contains("not closed"));
    assert!(!journal_of(&db).exists());
    // As it is, by either way.
    let alone = db.with_extension("alone");
    fs::copy(&db, &alone).unwrap();
    run(args!["file", "journal", "--discard", &alone]).done();
    assert_eq!(run(args!["file", "get", &alone, "default", "k"]).done_text(), "checkpoint\n");
    assert_eq!(Server::start_with(&db, ["--discard-journal"]).text("GET k\n"), "checkpoint\n");
}

// Promises: ops-journal-older.
#[test]
fn an_older_copy_in_the_files_place_is_not_rolled_forward_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let [db, backup] = ["a.db", "backup.db"].map(|name| folder.path().join(name));
    for round in ["1", "2", "3"] {
        let server = Server::start(&db);
        assert_eq!(server.text(&format!("SET k {round}\n")), "OK\n");
        server.stop().done();
        if round == "1" {
            fs::copy(&db, &backup).unwrap();
        }
    }
    fs::copy(&backup, &db).unwrap();
    let said = refused(&db, [""; 0]);
    assert!(said.contains("an older copy") && said.contains("a.db-journal"), "{said}");
    assert!(said.contains("--discard-journal") && said.contains("boltkv restore"), "{said}");
    run(args!["file", "journal", &db]).failed(1);
    assert_eq!(fs::read(&db).unwrap(), fs::read(&backup).unwrap());
    assert_eq!(Server::start_with(&db, ["--discard-journal"]).text("GET k\n"), "1\n");
}

#[test]
fn a_folder_without_a_segment_is_not_called_closed_and_a_file_that_does_not_open_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    Server::start_with(&db, ["--journal=off"]).stop().done();
    fs::create_dir(journal_of(&db)).unwrap();
    let said = run(args!["file", "journal", &db]).done_text();
    assert!(said.contains("nothing is recorded") && !said.contains("closed"), "{said}");
    fs::write(&db, [7; 4096]).unwrap();
    run(args!["file", "journal", &db]).failed(3);
}
