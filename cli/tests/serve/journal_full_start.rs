//! A server that was killed starts again where no file of the journal finds room.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::Ran;
use crate::common::mounted::Mounted;
use crate::common::server::Server;

/// What the journal's header begins with.
const MAGIC: &[u8] = b"boltkvJ\n";
/// Copies the journal at $1 to the disk at $0, fills that but for $2 bytes, and runs the rest.
const FILLED: &str = r#"cp "$1"/* "$0" && { cat /dev/zero >"$0/filler" 2>/dev/null; truncate -s "-$2" "$0/filler"; } && shift 2 && exec "$@""#;

/// A server of that file, whose journal is on a disk that has only so many bytes left.
fn serve_with(mounted: &Mounted, kept: &Path, bytes: u64) -> Command {
    let mut command = mounted.command("sh", ["-c", FILLED]);
    command.arg(mounted.small()).arg(kept).arg(bytes.to_string()).arg(env!("CARGO_BIN_EXE_boltkv"));
    command.args(args!["serve", "--listen", "127.0.0.1:0", "--db", mounted.db(), "--journal", mounted.small()]);
    command
}

/// A killed server's files, as it leaves them where the disk had no room to make the next file of the journal ahead, or
/// so much that one was kept back.
fn killed_on_a_full_disk(db: &Path, journal: &Path, most: u64) {
    let server = Server::start_with(db, args!["--journal", journal]);
    for number in 0..50 {
        assert_eq!(server.text(&format!("SET k{number} v\n")), "OK\n");
    }
    server.kill();
    for segment in fs::read_dir(journal).unwrap() {
        let segment = segment.unwrap().path();
        let content = fs::read(&segment).unwrap();
        if !content.starts_with(MAGIC) && content.len() as u64 > most {
            fs::remove_file(segment).unwrap();
        }
    }
}

// Promises: ops-journal-full-start.
#[test]
#[boltkv_needs::program("unshare")]
fn a_killed_server_starts_again_with_32_kib_more_and_otherwise_says_what_is_missing_where() {
    let Some(mounted) = Mounted::new("12m") else { return };
    let (db, journal) = (mounted.db(), mounted.folder.path().join("journal"));
    killed_on_a_full_disk(&db, &journal, 0);
    let said = Ran::from(serve_with(&mounted, &journal, 20_000).output().unwrap()).failed(3);
    assert!(said.contains("32768 bytes has to be made there") && said.contains("a.db-journal"), "{said}");
    assert!(said.contains("make room") && !said.contains("--journal"), "{said}");

    let server = Server::spawn(&mut serve_with(&mounted, &journal, 40_000));
    assert!(server.ready.contains("50 transactions done again"), "{}", server.ready);
    assert_eq!(server.text("COUNT\nSET after 1\nDELETE k0\n"), "50\nOK\nOK\n");
    assert_eq!(server.stop().code, Some(0));
    fs::remove_dir(mounted.small()).unwrap();
    assert_eq!(Server::start(&db).text("COUNT\nGET after\n"), "50\n1\n");
}

// Promises: ops-journal-full-start.
#[test]
#[boltkv_needs::program("unshare")]
fn a_killed_server_that_had_room_for_32_kib_once_starts_again_with_none() {
    let Some(mounted) = Mounted::new("12m") else { return };
    let (db, journal) = (mounted.db(), mounted.folder.path().join("journal"));
    killed_on_a_full_disk(&db, &journal, 32 << 10);
    let server = Server::spawn(&mut serve_with(&mounted, &journal, 0));
    assert!(server.ready.contains("50 transactions done again"), "{}", server.ready);
    assert_eq!(server.text("COUNT\nSET after 1\nDELETE k0\nCOUNT\n"), "50\nOK\nOK\n50\n");
    assert_eq!(server.stop().code, Some(0));
}
