//! A disk on which syncing fails: a server must not look healthy with it. A small library that is loaded before the others
//! makes `fdatasync` fail once a file is there; it takes a C compiler.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::boltkv;
use common::server::Server;
use tempfile::TempDir;

const SHIM: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int fdatasync(int fd) {
    const char *failing = getenv("FAILING_WHEN");
    if (failing && access(failing, F_OK) == 0) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, fd);
}
"#;

/// A server's disk, which works until it is told to fail.
struct Disk {
    folder: TempDir,
    shim: PathBuf,
}

impl Disk {
    /// `None` (said on standard error) where there is no C compiler; with `BOLTKV_REQUIRE_TOOLS=1` that is a failure.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (source, shim) = (folder.path().join("shim.c"), folder.path().join("shim.so"));
        fs::write(&source, SHIM).unwrap();
        match Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&shim).arg(&source).output() {
            Ok(built) => assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr)),
            Err(error) => {
                let required = std::env::var("BOLTKV_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
                assert!(!required, "BOLTKV_REQUIRE_TOOLS=1, but cc does not run: {error}");
                eprintln!("skipped: cc does not run: {error}");
                return None;
            }
        }
        Some(Self { folder, shim })
    }

    fn failing_when(&self) -> PathBuf {
        self.folder.path().join("failing")
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("a.db")
    }

    fn fail(&self) {
        fs::write(self.failing_when(), "").unwrap();
    }

    fn mend(&self) {
        fs::remove_file(self.failing_when()).unwrap();
    }

    fn serve(&self, more: &[&str]) -> Server {
        let database: &Path = &self.database();
        let mut command = boltkv(args!["serve", "--listen", "127.0.0.1:0", "--db", database]);
        command.args(more).env("LD_PRELOAD", &self.shim).env("FAILING_WHEN", self.failing_when());
        Server::spawn(&mut command)
    }
}

fn figure(server: &Server, name: &str) -> String {
    let figures = server.text("STATS\n");
    let line = figures.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} is not in {figures}")).to_owned()
}

#[test]
fn a_server_whose_disk_fails_ends_with_1_and_says_why_and_what_was_answered_is_there() {
    let Some(disk) = Disk::new() else { return };
    let server = disk.serve(&[]);
    server.run(["set", "before", "1"]).done();
    disk.fail();
    let refused = server.run(["set", "after", "2"]);
    assert_ne!(refused.code, Some(0), "it is not on disk");
    let ended = server.wait();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("sync") && ended.stderr.contains("until the file is opened again"),
        "{}",
        ended.stderr
    );
    disk.mend();
    let server = disk.serve(&[]);
    assert_eq!(server.run(["get", "before"]).done_text(), "1");
    server.run(["set", "again", "3"]).done();
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn one_that_is_to_serve_reads_all_the_same_says_so_everywhere_and_ends_with_1() {
    let Some(disk) = Disk::new() else { return };
    let server = disk.serve(&["--on-write-failure", "serve-reads"]);
    server.run(["set", "before", "1"]).done();
    assert_eq!(figure(&server, "writable"), "1");
    server.run(["health"]).done();
    disk.fail();
    let refused = server.run(["set", "after", "2"]);
    assert!(refused.stderr.contains("STORAGE_FAILED"), "{}", refused.stderr);
    assert_eq!(server.run(["get", "before"]).done_text(), "1");
    assert_eq!((figure(&server, "writable"), figure(&server, "read_only")), ("0".into(), "0".into()));
    let unhealthy = server.run(["health"]).failed(1);
    assert!(unhealthy.contains("disk"), "{unhealthy}");
    assert_eq!(server.stop().code, Some(1), "the same at its end");
}

#[test]
fn one_that_is_read_only_by_choice_is_healthy() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("a.db");
    Server::start(&database).stop();
    let server = Server::start_with(&database, ["--read-only"]);
    assert_eq!((figure(&server, "writable"), figure(&server, "read_only")), ("0".into(), "1".into()));
    server.run(["health"]).done();
}
