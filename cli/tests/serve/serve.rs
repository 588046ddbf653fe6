//! `boltkv serve`: how it starts, what it refuses, how it ends.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::server::{PATIENCE, Server};
use crate::common::{boltkv, feed, run};

/// Serves a file that is not to be served, and returns what is said.
#[track_caller]
fn refused(db: &Path) -> String {
    run(args!["serve", "--listen", "127.0.0.1:0", "--timeout", "0.1", "--db", db]).failed(3)
}

// Promises: ops-ready.
#[test]
fn it_makes_a_file_and_says_in_one_line_what_it_serves_where_and_how_safely() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("new.db");
    let server = Server::start(&db);
    let (file, addr) = (db.display(), server.addr());
    let expected = format!("boltkv: serving {file} on {addr}, durability always, journal {file}-journal\n");
    assert_eq!(server.ready, expected);
    assert!(!server.addr().ends_with(":0"), "the line names the port that was taken");
    assert!(db.exists());
    assert_eq!(server.text("PING\n"), "PONG\n");
    assert_eq!(server.stop().done_text(), "", "nothing else is said");
}

#[test]
fn a_ready_line_that_is_lost_is_logged() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = boltkv(args!["serve", "--listen", "127.0.0.1:0", "--db", folder.path().join("a.db")]);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut child = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let mut logged = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut logged).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(logged.contains("boltkv: serving ") && logged.contains("No space left"), "{logged}");
}

// Promises: ops-log-lost.
#[test]
fn a_log_that_cannot_be_written_does_not_end_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$@\" 2>/dev/full", "sh", env!("CARGO_BIN_EXE_boltkv")]);
    command.args(args!["serve", "--listen", "127.0.0.1:0", "--log", "trace", "--db", folder.path().join("a.db")]);
    let server = Server::spawn(&mut command);
    assert_eq!(server.text("SET k v\nGET k\n"), "OK\nv\n");
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn a_hangup_does_not_end_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("a.db"));
    server.signal("HUP");
    assert_eq!(server.text("PING\n"), "PONG\n");
    let ended = server.stop();
    assert_eq!(ended.code, Some(0));
    assert!(ended.stderr.contains("SIGHUP"), "{}", ended.stderr);
}

/// A server in a shell whose limits of open files these are, the one that counts and the highest there may be.
fn start_within(db: &Path, soft: u32, hard: u32, connections: u32) -> Server {
    let mut command = Command::new("sh");
    let script = format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$0\" \"$@\"");
    command.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_boltkv"));
    command.args(args!["serve", "--listen", "127.0.0.1:0", "--max-connections", connections.to_string(), "--db", db]);
    Server::spawn(&mut command)
}

#[test]
fn the_limit_of_open_files_is_raised_as_far_as_it_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let server = start_within(&folder.path().join("a.db"), 64, 512, 200);
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.id())).unwrap();
    let files: Vec<_> = limits.lines().find(|line| line.starts_with("Max open files")).unwrap().split(' ').collect();
    assert_eq!(files.iter().filter(|word| **word == "512").count(), 2, "{files:?}");
    assert_eq!(server.stop().done_text(), "", "200 connections fit: nothing is said");
}

#[test]
fn connections_for_which_there_are_no_descriptors_are_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let ended = start_within(&folder.path().join("a.db"), 64, 128, 200).stop();
    assert_eq!(ended.code, Some(0));
    let said = ["--max-connections is 200", "128 files"];
    assert!(said.iter().all(|words| ended.stderr.contains(words)), "{}", ended.stderr);
}

#[test]
fn without_arguments_it_serves_boltkv_db_here() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = boltkv(["serve", "--listen", "localhost:0"]);
    let server = Server::spawn(command.current_dir(folder.path()));
    assert!(server.ready.starts_with("boltkv: serving ./boltkv.db on "), "{}", server.ready);
    assert!(folder.path().join("boltkv.db").exists());
}

/// `boltkv serve`, which may write only so many KiB of a file.
fn limited(kib: u32, db: &Path) -> Command {
    let mut command = Command::new("sh");
    // In blocks of 512 bytes.
    let script = format!("ulimit -f {} && exec \"$@\"", 2 * kib);
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_boltkv")]);
    command.args(["serve", "--listen", "127.0.0.1:0", "--journal-size", "256KiB", "--db"]).arg(db);
    command
}

// Promises: ops-file-limit.
#[test]
fn a_file_that_may_not_grow_refuses_what_does_not_fit_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("limited.db");
    let server = Server::spawn(&mut limited(1024, &db));
    let value = "v".repeat(30_000);
    let answers: Vec<String> = (0..200).map(|key| server.text(&format!("SET k{key} {value}\n"))).collect();
    let (written, refused): (Vec<&String>, Vec<_>) = answers.iter().partition(|answer| *answer == "OK\n");
    let written = written.len();
    assert!(!refused.is_empty() && refused.iter().all(|answer| answer.starts_with("ERR NO_SPACE ")), "{refused:?}");
    assert_eq!(server.text("COUNT\nPING\n"), format!("{written}\nPONG\n"));
    let room = format!("BUCKET DELETE default\nSET again {value}\n");
    assert_eq!(server.text(&room), "OK\nOK\n", "what was freed can be used");
    // It has logged that writes failed.
    drop(server.stop());
    assert_eq!(Server::start(&db).text("COUNT\n"), "1\n");
    run(args!["file", "check", &db]).done();
}

// Promises: ops-file-limit.
#[test]
fn a_file_of_which_not_every_byte_may_be_written_is_served_only_for_reading() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("large.db");
    let server = Server::start(&db);
    server.run_with_input(["set", "large", "-"], &vec![b'v'; 500_000]).done();
    server.stop().done();
    let len = fs::metadata(&db).unwrap().len();

    let said = feed(&mut limited(64, &db), b"").failed(3);
    let expected = format!("it has {len} bytes already, and this process may write only the first 65536 of a file");
    assert!(said.contains(&expected), "{said}");

    let said = feed(&mut limited(16, &folder.path().join("new.db")), b"").failed(3);
    assert!(said.contains("ulimit -f") && !said.contains("--journal DIR"), "{said}");

    let server = Server::spawn(limited(64, &db).arg("--read-only"));
    assert_eq!(server.text("COUNT\n"), "1\n");
    server.stop().done();
}

// Promises: ops-stop.
#[test]
fn both_signals_end_it_with_0_and_what_was_answered_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("kept.db");
    for (signal, key) in [("TERM", "first"), ("INT", "second")] {
        let server = Server::start(&db);
        assert_eq!(server.text(&format!("SET {key} value\n")), "OK\n");
        server.signal(signal);
        server.wait().done();
    }
    assert_eq!(Server::start(&db).text("SCAN\n"), "first value\nsecond value\nEND\n");
    run(args!["file", "check", &db]).done();
}

// Promises: ops-freelist.
#[test]
fn the_free_pages_are_written_down_on_a_clean_stop_and_not_with_every_commit() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    let server = Server::start_with(&db, ["--journal", "off"]);
    assert_eq!(server.text("SET a 1\nSET a 2\n"), "OK\nOK\n");
    server.kill();
    let meta_in_use = || {
        let info = run(args!["file", "info", &db]).done_text();
        info.lines().find(|line| line.ends_with(", in use")).unwrap().to_owned()
    };
    assert!(meta_in_use().contains("freelist not stored"), "{}", meta_in_use());

    let server = Server::start(&db);
    assert_eq!(server.text("GET a\n"), "2\n");
    server.stop().done();
    assert!(meta_in_use().contains("freelist page "), "{}", meta_in_use());
    run(args!["file", "check", &db]).done();
}

// Promises: ops-second-signal.
#[test]
fn a_second_signal_ends_it_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("busy.db");
    let server = Server::start(&db);
    server.run_with_input(["set", "large", "-"], &vec![b'x'; 8 << 20]).done();
    // A client that asks for much and reads next to nothing: a graceful end waits for it for a while.
    let mut stuck = TcpStream::connect(server.addr()).unwrap();
    stuck.set_read_timeout(Some(PATIENCE)).unwrap();
    stuck.write_all("GET large\r\n".repeat(8).as_bytes()).unwrap();
    stuck.read_exact(&mut [0]).unwrap();
    server.signal("TERM");
    // What comes with the first is the same wish; one of those that follow is not.
    let ran = server.end_by("INT");
    assert!(matches!(ran.code, Some(130 | 143)), "{ran:?}");
    Server::start(&db).stop().done();
    run(args!["file", "check", &db]).done();
}

#[test]
fn under_timeout_it_ends_as_told_though_that_signals_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut timeout = Command::new("timeout");
    timeout.args(["--preserve-status", "60"]).arg(env!("CARGO_BIN_EXE_boltkv"));
    timeout.args(args!["serve", "--listen", "127.0.0.1:0", "--db", folder.path().join("app.db")]);
    // Asked to end, it does what it does when the time is over, and the server is ready by then.
    assert_eq!(Server::spawn(&mut timeout).stop().done_text(), "");
}

// Promises: ops-loopback.
#[test]
fn it_does_not_listen_beyond_loopback_unless_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("open.db");
    let args = args!["serve", "--listen", "0.0.0.0:0", "--db", &db];
    let said = run(&args).failed(2);
    assert!(said.contains("beyond loopback") && said.contains("BOLTKV_INSECURE=1"), "{said}");
    for no in ["0", "false", "maybe", ""] {
        assert_eq!(boltkv(&args).env("BOLTKV_INSECURE", no).output().unwrap().status.code(), Some(2), "{no:?}");
    }
    assert!(!db.exists(), "and it has made no file");

    let server = Server::spawn(boltkv(&args).env("BOLTKV_INSECURE", "1"));
    assert!(server.ready.contains(" on 0.0.0.0:"), "{}", server.ready);
    server.stop().done();
    let server = Server::spawn(boltkv(&args).arg("--insecure"));
    assert!(server.ready.contains(" on 0.0.0.0:"), "{}", server.ready);
}

// Promises: ops-lock.
#[test]
fn a_second_server_on_the_same_file_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("taken.db");
    let server = Server::start(&db);
    let said = refused(&db);
    assert!(said.contains("taken.db") && said.contains("locked by another process"), "{said}");
    let holder = format!("pid {} (", server.id());
    assert!(said.contains(&holder) && said.contains("serve") && said.contains("--lock-timeout TIME"), "{said}");
    assert_eq!(server.text("PING\n"), "PONG\n");
    // It is not only at the end that whoever waits learns for whom.
    let ran = run(args!["serve", "--listen", "127.0.0.1:0", "--lock-timeout", "2s", "--db", &db]);
    let notice = ran.stderr.lines().find(|line| line.contains("is not open after 1 s")).unwrap();
    if cfg!(target_os = "linux") {
        assert!(
            notice.contains("it waits for another process to let go of it: ") && notice.contains(&holder),
            "{notice}"
        );
        assert!(!notice.contains("free pages"), "{notice}");
    }
}

#[test]
fn a_port_that_is_taken_is_told_and_no_file_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first.db"), folder.path().join("second.db"));
    let server = Server::start(&first);
    let said = run(args!["serve", "--listen", server.addr(), "--db", &second]).failed(3);
    assert!(said.contains(server.addr()) && said.contains("in use"), "{said}");
    assert!(said.ends_with("; --listen HOST:PORT names another place\n"), "{said}");
    assert!(!second.exists());
}

#[test]
fn what_is_no_database_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    fs::write(&text, "no database\n".repeat(1000)).unwrap();
    let cut = folder.path().join("cut.db");
    drop(boltkv_storage::Db::open(&cut).unwrap());
    fs::File::options().write(true).open(&cut).unwrap().set_len(10_000).unwrap();

    for (path, why) in [(&text, "not a bolt file"), (&cut, "the file is cut")] {
        let before = fs::read(path).unwrap();
        let said = refused(path);
        assert!(said.contains(why) && said.contains(path.to_str().unwrap()), "{said}");
        assert!(fs::read(path).unwrap() == before, "{} was changed", path.display());
    }
    let said = refused(folder.path());
    assert!(said.contains(folder.path().to_str().unwrap()), "{said}");
    let said = refused(&folder.path().join("no/such/folder.db"));
    assert!(said.contains("no/such/folder.db") && said.contains("No such file"), "{said}");
    assert!(said.ends_with("no/such is not there\n") && said.contains("; its folder "), "{said}");
}

#[test]
fn an_empty_file_becomes_a_new_database() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("empty.db");
    fs::write(&db, "").unwrap();
    let server = Server::start(&db);
    assert_eq!(server.text("SET hello world\nGET hello\n"), "OK\nworld\n");
    server.stop().done();
    run(args!["file", "check", &db]).done();
}

// Promises: ops-read-only.
#[test]
fn read_only_takes_no_writes_and_leaves_the_file_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("old.db");
    let missing = folder.path().join("missing.db");
    let server = Server::start(&db);
    assert_eq!(server.text("SET hello world\n"), "OK\n");
    server.stop().done();
    let before = fs::read(&db).unwrap();

    let server = Server::start_with(&db, ["--read-only"]);
    assert!(server.ready.ends_with(", read-only\n"), "{}", server.ready);
    let answer = server.text("GET hello\nSET hello you\n");
    assert!(answer.starts_with("world\nERR READ_ONLY "), "{answer}");
    let said = server.run(["set", "hello", "you"]).failed(1);
    assert!(said.contains("READ_ONLY"), "{said}");
    let second = Server::start_with(&db, ["--read-only"]);
    assert_eq!(second.text("GET hello\n"), "world\n", "readers share the file");
    second.stop().done();
    server.stop().done();
    assert!(fs::read(&db).unwrap() == before, "the file was changed");

    let said = run(args!["serve", "--read-only", "--listen", "127.0.0.1:0", "--db", &missing]).failed(3);
    assert!(said.contains("missing.db"), "{said}");
    assert!(!missing.exists());
}

#[test]
fn what_cannot_be_used_is_told_before_anything_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("never.db");
    let refused = |args: &[&str], why: &str| {
        let mut command = boltkv(["serve", "--listen", "127.0.0.1:0", "--db"]);
        let ran = crate::common::Ran::from(command.arg(&db).args(args).output().unwrap());
        assert_eq!(ran.code, Some(2), "{args:?} {}", ran.stderr);
        assert!(ran.stderr.contains(why), "{args:?} {}", ran.stderr);
    };
    refused(&["--durability", "interval"], "interval=100ms");
    refused(&["--durability", "sometimes"], "`always`, `interval=TIME` and `never` are known");
    refused(&["--memory", "32MiB"], "--memory is 32MiB, but must lie between 64MiB and 2TiB");
    refused(&["--max-frame", "1000"], "--max-frame is 1000, but must lie between 64KiB and 128MiB");
    refused(&["--max-frame", "1GiB"], "--max-frame is 1GiB");
    refused(&["--max-frame", "much"], "not a size");
    refused(&["--queue-bytes", "8GiB"], "--queue-bytes is 8GiB, which is not below 2^32 bytes");
    refused(&["--text-linger", "soon"], "--text-linger");
    refused(&["--timeout", "soon"], "--lock-timeout");
    refused(&["--log", "boltkv=shout"], "--log");
    refused(&["--log", "verbose"], "verbose is no level: the levels are off, error, warn, info, debug and trace");
    refused(&["--log", "info,tokio"], "tokio is no level");
    assert!(!db.exists());
}

#[test]
fn a_queue_that_is_smaller_than_was_asked_for_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let said = |more: &[&str]| Server::start_with(&folder.path().join("queue.db"), more).stop().stderr;
    let cut = said(&["--memory", "64MiB", "--queue-bytes", "1GiB"]);
    assert!(cut.contains("--queue-bytes is 1GiB, of which 16MiB are used: a quarter of --memory"), "{cut}");
    assert!(!said(&["--memory", "64MiB", "--queue-bytes", "16MiB"]).contains("--queue-bytes"));
    assert!(!said(&["--memory", "64MiB"]).contains("--queue-bytes"), "the default is nobody's wish");
}

// Promises: ops-units.
#[test]
fn sizes_and_times_have_units() {
    let folder = tempfile::tempdir().unwrap();
    let more = ["--max-frame", "64KiB", "--queue-bytes", "1M", "--text-linger", "1s", "--timeout", "200ms"];
    let server = Server::start_with(&folder.path().join("units.db"), more);
    let said = server.run(["set", "key", &"x".repeat(65_536)]).failed(1);
    assert!(said.contains("over the limit of 65536") && said.contains("--max-frame"), "{said}");
}

// Promises: ops-logs.
#[test]
fn logs_go_to_standard_error_when_asked_for_and_name_no_keys() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(&folder.path().join("log.db"), ["--log", "info"]);
    assert_eq!(server.text("SET secret-key secret-value\n"), "OK\n");
    let ran = server.stop();
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("INFO"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("secret"), "{}", ran.stderr);
    assert!(!ran.stderr.contains('\u{1b}'), "colours are for terminals: {}", ran.stderr);
}
