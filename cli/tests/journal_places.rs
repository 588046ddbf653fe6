//! Where a journal lies: another device, a full one, a folder that is somebody else's, lost, or left behind. File systems of
//! a test's own are mounted where only its server sees them; that takes root, or leave to be root in a namespace.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::server::Server;
use common::{Ran, boltkv, run};
use tempfile::TempDir;

#[track_caller]
fn refused<A: AsRef<OsStr>>(db: &Path, more: impl IntoIterator<Item = A>) -> String {
    let mut command = boltkv(args!["serve", "--listen", "127.0.0.1:0", "--timeout", "0.1", "--db", db]);
    Ran::from(command.args(more).output().unwrap()).failed(3)
}

fn journal_of(db: &Path) -> PathBuf {
    let mut name = db.as_os_str().to_owned();
    name.push("-journal");
    name.into()
}

/// Writes, and kills the server.
#[track_caller]
fn killed_after<A: AsRef<OsStr>>(db: &Path, more: impl IntoIterator<Item = A>, line: &str) {
    let server = Server::start_with(db, more);
    assert_eq!(server.text(line), "OK\n");
    server.kill();
}

/// A folder on a small file system of its own, beside a database that is not on it.
struct Mounted {
    folder: TempDir,
    size: &'static str,
}

impl Mounted {
    /// `None` (said on standard error) where nothing may be mounted; with `BOLTKV_REQUIRE_TOOLS=1` that is a failure.
    fn new(size: &'static str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Self { folder, size };
        fs::create_dir(mounted.small()).unwrap();
        let tried = mounted.command("true", [""; 0]).output();
        if tried.as_ref().is_ok_and(|tried| tried.status.success()) {
            return Some(mounted);
        }
        let required = std::env::var("BOLTKV_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        assert!(!required, "BOLTKV_REQUIRE_TOOLS=1, but nothing can be mounted: {tried:?}");
        eprintln!("skipped: nothing can be mounted");
        None
    }

    /// Where the small file system is mounted.
    fn small(&self) -> PathBuf {
        self.folder.path().join("a.db-journal")
    }

    fn db(&self) -> PathBuf {
        self.folder.path().join("a.db")
    }

    /// A command that finds the small file system mounted, empty; it is gone with the command.
    fn command<A: AsRef<OsStr>>(&self, program: impl AsRef<OsStr>, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new("unshare");
        let script = "mount -t tmpfs -o size=$0 none \"$1\" && shift && exec \"$@\"";
        command.args(["--map-root-user", "--mount", "sh", "-c", script, self.size]);
        command.arg(self.small()).arg(program).args(args);
        command
    }

    fn serve<A: AsRef<OsStr>>(&self, more: impl IntoIterator<Item = A>) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_boltkv"), ["serve", "--listen", "127.0.0.1:0", "--db"]);
        command.arg(self.db()).args(more);
        command
    }
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

// Promises: ops-journal-full.
#[test]
#[boltkv_needs::program("unshare")]
fn a_full_disk_under_the_journal_alone_refuses_what_finds_no_room_and_nothing_else() {
    let Some(mounted) = Mounted::new("1m") else { return };
    let journal = || args!["--journal", mounted.small()];
    let said = Ran::from(mounted.serve(journal()).output().unwrap()).failed(3);
    assert!(said.contains("No space left") && said.contains("a.db-journal"), "{said}");
    assert!(said.contains("--journal DIR") && said.contains("--journal off"), "{said}");

    let server = Server::spawn(mounted.serve(journal()).args(["--journal-size=256KiB", "--max-frame=8MiB"]));
    assert_eq!(server.text("SET small 1\n"), "OK\n");
    let large = server.run_with_input(["set", "large", "-"], &vec![b'x'; 4 << 20]).failed(1);
    assert!(large.contains("NO_SPACE") && large.contains("the disk of the journal has "), "{large}");
    for round in 0..200 {
        assert_eq!(server.text(&format!("SET small {round}\n")), "OK\n", "round {round}");
    }
    assert_eq!(server.text("GET small\nEXISTS large\n"), "199\n0\n");
    // It has logged that a write found no room.
    assert_eq!(server.stop().code, Some(0));
    run(args!["file", "check", mounted.db()]).done();
    fs::remove_dir(mounted.small()).unwrap();
    assert_eq!(Server::start(&mounted.db()).text("GET small\n"), "199\n");
}

// Promises: ops-full-file.
#[test]
#[boltkv_needs::program("unshare")]
fn a_full_disk_under_the_file_alone_takes_deletions_and_a_clean_end() {
    let Some(mounted) = Mounted::new("6m") else { return };
    for memory in ["--journal-memory=1MiB", "--journal-memory=0"] {
        let (db, journal) = (mounted.small().join("small.db"), mounted.folder.path().join("journal"));
        let serve = args!["serve", "--listen", "127.0.0.1:0", "--db", db, "--journal", &journal];
        let mut serve = mounted.command(env!("CARGO_BIN_EXE_boltkv"), serve);
        let server = Server::spawn(serve.args(["--journal-size=1MiB", memory]));
        let text =
            |line: &dyn Fn(u32) -> String, keys: std::ops::Range<u32>| server.text(&keys.map(line).collect::<String>());
        let set = |key: u32| format!("SET {:08x} {key:0200}\n", key.wrapping_mul(0x9e37_79b9));
        let delete = |key: u32| format!("DELETE {:08x}\n", key.wrapping_mul(0x9e37_79b9));
        let mut keys = 0;
        let refused = loop {
            let answers = text(&set, keys..keys + 500);
            if answers.lines().any(|line| line != "OK") {
                break answers;
            }
            keys += 500;
            assert!(keys < 100_000, "{memory}: it has no end");
        };
        assert!(refused.contains("NO_SPACE"), "{memory}: {refused}");
        // What is there already may change in place of what was, as far as there is room; what goes, may.
        text(&set, 0..keys);
        for from in (0..keys).step_by(500) {
            let answers = text(&delete, from..from + 500);
            assert!(answers.lines().all(|line| line == "OK"), "{memory}: {from} of {keys}: {answers}");
        }
        assert!(text(&set, 0..500).lines().all(|line| line == "OK"), "{memory}");
        // The file is brought up to date, and so the journal has nothing that the file has not.
        assert_eq!(server.stop().code, Some(0), "{memory}");
        fs::remove_dir_all(journal).unwrap();
    }
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
fn a_file_that_is_moved_alone_is_as_old_as_its_last_checkpoint_and_its_old_place_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let [db, moved] = ["a.db", "moved.db"].map(|name| folder.path().join(name));
    Server::start(&db).stop().done();
    killed_after(&db, [""; 0], "SET k v\n");
    fs::rename(&db, &moved).unwrap();
    let said = refused(&db, [""; 0]);
    assert!(said.contains("file is missing") && said.contains("a.db-journal"), "{said}");
    assert!(!db.exists());
    assert_eq!(Server::start_with(&moved, ["--read-only"]).text("COUNT\n"), "0\n");
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
    killed_after(&copy, ["--journal=off"], "SET k other\n");
    fs::rename(&copy, &db).unwrap();
    let before = fs::read(&db).unwrap();
    let said = refused(&db, [""; 0]);
    assert!(
        said.contains("does not fit") && said.contains("boltkv file journal") && said.contains("--discard-journal"),
        "{said}"
    );
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
    let go = common::peer::bbolt().unwrap();
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

// Promises: ops-journal-together.
#[test]
fn a_journal_that_is_lost_leaves_the_file_of_its_last_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    let server = Server::start(&db);
    assert_eq!(server.text("SET k checkpoint\n"), "OK\n");
    server.stop().done();
    killed_after(&db, [""; 0], "SET k lost\n");
    fs::remove_dir_all(journal_of(&db)).unwrap();
    run(args!["file", "check", &db]).done();
    assert_eq!(Server::start(&db).text("GET k\n"), "checkpoint\n");
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
