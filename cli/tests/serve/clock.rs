//! A clock that jumps: only what people read by the calendar follows it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::Command;

use crate::common::server::Server;
use crate::common::text::Text;
use crate::common::{boltkv, run, shim};
use tempfile::TempDir;

/// Adds to the calendar's clock the seconds that a file tells.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    int done = (int)syscall(SYS_clock_gettime, clock, now);
    const char *jump = getenv("CLOCK_JUMP");
    FILE *file = clock == CLOCK_REALTIME && done == 0 && jump ? fopen(jump, "r") : NULL;
    long seconds = 0;
    if (file) {
        if (fscanf(file, "%ld", &seconds) == 1)
            now->tv_sec += seconds;
        fclose(file);
    }
    return done;
}
"#;

const DAY: i64 = 86_400;

struct Clock {
    folder: TempDir,
    shim: PathBuf,
}

impl Clock {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let shim = shim::build(folder.path(), SHIM)?;
        Some(Self { folder, shim })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// From now on it is so many seconds later than it is.
    fn jump(&self, seconds: i64) {
        fs::write(self.path("new"), seconds.to_string()).unwrap();
        fs::rename(self.path("new"), self.path("jump")).unwrap();
    }

    fn serve(&self, more: &[&str]) -> Server {
        let mut command = boltkv(args!["serve", "--listen", "127.0.0.1:0", "--db", self.path("a.db")]);
        Server::spawn(command.args(more).env("LD_PRELOAD", &self.shim).env("CLOCK_JUMP", self.path("jump")))
    }
}

// Promises: ops-clock.
#[test]
fn deadlines_and_writes_do_not_mind_a_clock_that_jumps_and_tokens_follow_it() {
    let Some(clock) = Clock::new() else { return };
    let tokens = clock.path("tokens");
    let token = |name: &str, more: &[&str]| {
        let args = args!["token", "create", name, "--right", "admin", "--tokens", &tokens];
        run(args.into_iter().chain(more.iter().map(Into::into))).done_text().trim().to_owned()
    };
    let (soon, ever) = (token("soon", &["--expires", "1h"]), token("ever", &[]));
    let server = clock.serve(&["--tokens", tokens.to_str().unwrap(), "--idle-timeout", "1h"]);
    let (mut of_soon, mut of_ever) = (Text::connect(server.addr()), Text::connect(server.addr()));
    assert_eq!(of_soon.ask(&format!("AUTH {soon}")), "OK");
    assert_eq!(of_ever.ask(&format!("AUTH {ever}")), "OK");
    for (round, jump) in [400 * DAY, -400 * DAY, 0, i64::from(i32::MAX)].into_iter().enumerate() {
        clock.jump(jump);
        for client in [&mut of_soon, &mut of_ever] {
            assert_eq!(client.ask(&format!("SET k {round}")), "OK", "{jump}");
            assert_eq!(client.ask("GET k"), round.to_string(), "{jump}");
        }
        let mut late = Text::connect(server.addr());
        let answer = late.ask(&format!("AUTH {soon}"));
        let expired = answer.starts_with("ERR UNAUTHENTICATED ") && answer.contains("expired");
        assert_eq!((expired, answer == "OK"), (jump > 0, jump <= 0), "{jump}: {answer}");
        let up = of_ever.ask("STATS");
        assert!(up.starts_with("version"), "{up}");
        let uptime = of_ever.line();
        let seconds: u64 = uptime.strip_prefix("uptime_seconds ").unwrap().parse().unwrap();
        assert!(seconds < 3_600, "{jump}: {uptime}");
        // The rest of the figures.
        assert!((0..200).any(|_| of_ever.line() == "END"), "{jump}: STATS does not end");
    }
    assert_eq!(server.stop().code, Some(0));
}

// Promises: ops-clock.
#[test]
fn a_restore_to_a_moment_ends_before_the_first_transaction_that_was_later() {
    let Some(clock) = Clock::new() else { return };
    let server = clock.serve(&["--journal-keep", "1GiB"]);
    let backup = clock.path("backup.db");
    server.run(args!["backup", &backup]).done();
    for (key, jump) in [("a", 0), ("b", 10 * DAY), ("c", 1)] {
        clock.jump(jump);
        server.run(["set", key, "v"]).done();
    }
    assert_eq!(server.stop().code, Some(0));
    clock.jump(0);
    let restore = |to: &str, name: &str| {
        let (journal, restored) = (clock.path("a.db-journal"), clock.path(name));
        let done = run(args!["restore", "--backup", &backup, "--journal", journal, "--to", to, &restored]);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        run(args!["file", "keys", &restored, "default"]).done_text()
    };
    let now = fs::metadata(clock.path("backup.db")).unwrap().mtime().unsigned_abs();
    let moment = |days: u64| {
        let mut date = Command::new("date");
        let said = date.args(["-u", "+%Y-%m-%dT%H:%M:%SZ", "-d"]).arg(format!("@{}", now + days * 86_400)).output();
        let said = said.unwrap().stdout;
        String::from_utf8(said).unwrap().trim().to_owned()
    };
    assert_eq!(restore(&moment(1), "one.db"), "a\n", "c was written by then, behind b, which was not");
    assert_eq!(restore(&moment(20), "all.db"), "a\nb\nc\n");
}
