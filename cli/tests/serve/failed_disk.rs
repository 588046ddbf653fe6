//! A disk on which syncing, or writing the journal, fails: a server must not look healthy with it. A small library that is
//! loaded before the others makes `fdatasync` or `pwrite64` fail once a file is there; it takes a C compiler. Where it is to
//! be `fdatasync`, the file system seems to be one that takes no direct writes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::http;
use crate::common::server::Server;
use crate::common::{boltkv, run, shim};
use tempfile::TempDir;

const SHIM: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_failing(const char *call, int fd) {
    const char *when = getenv("FAILING_WHEN"), *what = getenv("FAILING_CALL"), *of = getenv("FAILING_FILE");
    char link[64], name[4096] = "";
    if (!when || access(when, F_OK) != 0 || strcmp(call, what) != 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, name, sizeof name - 1) < 0 || !strstr(name, of))
        return 0;
    /* A name with a slash before it is that of the file itself, and not of a folder. */
    if (of[0] == '/' && strcmp(strrchr(name, '/'), of) != 0)
        return 0;
    errno = EIO;
    return 1;
}

int fdatasync(int fd) {
    return is_failing("fdatasync", fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t offset) {
    return is_failing("pwrite64", fd) ? -1 : syscall(SYS_pwrite64, fd, data, len, offset);
}

/* What goes past the cache needs no fdatasync. */
int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    unsigned mode = flags & O_CREAT ? va_arg(rest, unsigned) : 0;
    va_end(rest);
    if ((flags & O_DIRECT) && strcmp(getenv("FAILING_CALL"), "fdatasync") == 0) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
"#;

/// A server's disk, which works until it is told to fail.
struct Disk {
    folder: TempDir,
    shim: PathBuf,
    /// The call that fails, and a part of the path of the files that it fails for.
    failing: [&'static str; 2],
}

impl Disk {
    /// `None` (said on standard error) where there is no C compiler; with `BOLTKV_REQUIRE_TOOLS=1` that is a failure.
    fn new(failing: [&'static str; 2]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let shim = shim::build(folder.path(), SHIM)?;
        Some(Self { folder, shim, failing })
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
        command.env("FAILING_CALL", self.failing[0]).env("FAILING_FILE", self.failing[1]);
        Server::spawn(&mut command)
    }
}

fn figure(server: &Server, name: &str) -> String {
    let figures = server.text("STATS\n");
    let line = figures.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} is not in {figures}")).to_owned()
}

/// What can fail once a server serves: with a journal nothing else is synced or written for an answer.
const FAILURES: [([&str; 2], &str); 3] = [
    (["fdatasync", ""], "--journal=off"),
    (["fdatasync", "-journal/segment-"], "--journal=on"),
    (["pwrite64", "-journal/segment-"], "--journal=on"),
];

// Promises: ops-failed-disk.
#[test]
fn a_server_whose_disk_fails_ends_with_1_and_says_why_and_what_was_answered_is_there() {
    for (failing, journal) in FAILURES {
        let Some(disk) = Disk::new(failing) else { return };
        let server = disk.serve(&[journal]);
        server.run(["set", "before", "1"]).done();
        disk.fail();
        let refused = server.run(["set", "after", "2"]);
        assert_ne!(refused.code, Some(0), "{failing:?}: it is not on disk");
        let ended = server.wait();
        assert_eq!(ended.code, Some(1), "{failing:?}: {}", ended.stderr);
        let says = if failing[1].is_empty() { "could not sync" } else { "the journal of" };
        assert!(
            ended.stderr.contains(says) && ended.stderr.contains("until the file is opened again"),
            "{failing:?}: {}",
            ended.stderr
        );
        disk.mend();
        let server = disk.serve(&[journal]);
        assert_eq!(server.run(["get", "before"]).done_text(), "1");
        server.run(["set", "again", "3"]).done();
        assert_eq!(server.stop().code, Some(0));
    }
}

// Promises: ops-failed-close.
#[test]
fn one_that_cannot_bring_its_file_up_to_date_at_its_end_says_whether_the_journal_has_everything() {
    for (failing, says) in [
        (["fdatasync", "/a.db"], "the journal has everything that was committed"),
        (["fdatasync", ""], "the newest writes may be missing in the journal, too"),
    ] {
        let Some(disk) = Disk::new(failing) else { return };
        // One that has just been made has the name under which that was done.
        assert_eq!(disk.serve(&[]).stop().code, Some(0));
        // Nothing is synced before the end.
        let server = disk.serve(&["--durability=never"]);
        server.run(["set", "k", "v"]).done();
        disk.fail();
        let ended = server.stop();
        assert_eq!(ended.code, Some(1), "{failing:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains("could not close") && ended.stderr.contains(says),
            "{failing:?}: {}",
            ended.stderr
        );
        disk.mend();
        assert_eq!(disk.serve(&[]).run(["get", "k"]).done_text(), "v");
    }
}

#[test]
fn one_that_is_to_serve_reads_all_the_same_says_so_everywhere_and_ends_with_1() {
    for (failing, journal) in FAILURES {
        let Some(disk) = Disk::new(failing) else { return };
        let server = disk.serve(&["--on-write-failure", "serve-reads", journal]);
        server.run(["set", "before", "1"]).done();
        assert_eq!(figure(&server, "writable"), "1");
        server.run(["health"]).done();
        disk.fail();
        let refused = server.run(["set", "after", "2"]);
        assert!(refused.stderr.contains("STORAGE_FAILED"), "{failing:?}: {}", refused.stderr);
        assert_eq!(server.run(["get", "before"]).done_text(), "1");
        assert_eq!((figure(&server, "writable"), figure(&server, "read_only")), ("0".into(), "0".into()));
        let unhealthy = server.run(["health"]).failed(1);
        assert!(unhealthy.contains("writes have failed"), "{failing:?}: {unhealthy}");
        // Of what is acknowledged there is a copy to be had, now that it is wanted most.
        let copy = disk.folder.path().join("copy.db");
        server.run(args!["backup", &copy]).done();
        assert_eq!(run(args!["file", "get", &copy, "default", "before"]).done_text(), "1\n");
        assert_eq!(server.stop().code, Some(1), "the same at its end");
    }
}

// Promises: ops-admin-disk.
#[test]
fn one_that_serves_reads_with_a_failed_disk_lives_and_is_not_ready() {
    for (failing, journal) in FAILURES {
        let Some(disk) = Disk::new(failing) else { return };
        let server = disk.serve(&["--on-write-failure", "serve-reads", "--admin", "127.0.0.1:0", journal]);
        server.run(["set", "before", "1"]).done();
        assert_eq!(http::get(server.admin(), "/readyz"), (200, "ready\n".into()));
        disk.fail();
        assert_ne!(server.run(["set", "after", "2"]).code, Some(0));
        let (status, why) = http::get(server.admin(), "/readyz");
        assert_eq!((status, why.lines().count()), (503, 1), "{failing:?}: {why}");
        assert!(why.starts_with("disk: could not "), "{failing:?}: {why}");
        assert_eq!(http::get(server.admin(), "/livez"), (200, "ok\n".into()));
        let (_, metrics) = http::get(server.admin(), "/metrics");
        let samples = ["boltkv_writable 0", "boltkv_read_only 0"];
        assert!(samples.iter().all(|sample| metrics.lines().any(|line| line == *sample)), "{failing:?}: {metrics}");
        let failed = "boltkv_requests_total{command=\"SET\",result=\"STORAGE_FAILED\"} 1";
        assert!(metrics.lines().any(|line| line == failed), "{failing:?}: {metrics}");
    }
}

/// Nobody waits for such a sync, and so nobody is answered with its failure: it is noticed all the same.
#[test]
fn a_late_sync_that_fails_is_noticed_without_a_write() {
    for journal in ["--journal=off", "--journal=on"] {
        let Some(disk) = Disk::new(["fdatasync", ""]) else { return };
        let server = disk.serve(&["--durability=interval=1s", journal]);
        // The first write of all is synced.
        server.run(["set", "first", "1"]).done();
        disk.fail();
        server.run(["set", "late", "1"]).done();
        let ended = server.wait();
        assert!(ended.code == Some(1) && ended.stderr.contains("could not sync"), "{journal}: {}", ended.stderr);
    }
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
