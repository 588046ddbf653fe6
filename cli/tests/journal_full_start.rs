//! A server that was killed starts again where no file of the journal finds room.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::Ran;
use common::server::Server;

/// What the journal's header begins with.
const MAGIC: &[u8] = b"boltkvJ\n";

/// A server whose files get no larger than that; the system says so as it does on a full disk.
fn serve_up_to(db: &Path, bytes: u64) -> Command {
    let mut command = Command::new("prlimit");
    command.arg(format!("--fsize={bytes}:{bytes}")).arg(env!("CARGO_BIN_EXE_boltkv"));
    command.args(args!["serve", "--listen", "127.0.0.1:0", "--db", db]);
    command
}

/// A killed server's files, as it leaves them where the disk had no room to make the next file of the journal ahead.
fn killed_on_a_full_disk(folder: &Path) -> std::path::PathBuf {
    let db = folder.join("a.db");
    let server = Server::start(&db);
    for number in 0..50 {
        assert_eq!(server.text(&format!("SET k{number} v\n")), "OK\n");
    }
    server.kill();
    for segment in fs::read_dir(folder.join("a.db-journal")).unwrap() {
        let segment = segment.unwrap().path();
        if !fs::read(&segment).unwrap().starts_with(MAGIC) {
            fs::remove_file(segment).unwrap();
        }
    }
    db
}

// Promises: ops-journal-full-start.
#[test]
#[boltkv_needs::program("prlimit")]
fn a_killed_server_starts_again_with_32_kib_more_and_otherwise_says_what_is_missing_where() {
    let folder = tempfile::tempdir().unwrap();
    let db = killed_on_a_full_disk(folder.path());
    let said = Ran::from(serve_up_to(&db, 30_000).output().unwrap()).failed(3);
    assert!(said.contains("32768 bytes has to be made there") && said.contains("a.db-journal"), "{said}");
    assert!(said.contains("make room") && !said.contains("--journal off"), "{said}");

    let server = Server::spawn(&mut serve_up_to(&db, 100_000));
    assert!(server.ready.contains("50 transactions done again"), "{}", server.ready);
    assert_eq!(server.text("COUNT\nSET after 1\nDELETE k0\n"), "50\nOK\nOK\n");
    server.kill();
    assert_eq!(Server::start(&db).text("COUNT\nGET after\n"), "50\n1\n");
}
