//! Too few descriptors, and too little memory to map the file in: refused while it lasts, and nothing is lost by it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use crate::common::server::{PATIENCE, Server};
use crate::common::text::Text;
use crate::common::{Ran, http, run};

/// Changes what a process that runs may have.
fn prlimit(server: &Server, limit: &str) {
    let done = Command::new("prlimit").arg("--pid").arg(server.id().to_string()).arg(limit).status().unwrap();
    assert!(done.success(), "{limit}");
}

fn limited(limit: &str, db: &Path, more: &[&str]) -> Command {
    let mut command = Command::new("prlimit");
    command.arg(limit).arg(env!("CARGO_BIN_EXE_boltkv"));
    command.args(args!["serve", "--listen", "127.0.0.1:0", "--db", db]).args(more);
    command
}

fn metric(server: &Server, name: &str) -> u64 {
    let (_, metrics) = http::get(server.admin(), "/metrics");
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::to_owned);
    line.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().unwrap()
}

const JOURNAL: [&str; 4] = ["--journal-size", "1MiB", "--checkpoint-interval", "1s"];

// Promises: ops-descriptors.
#[test]
#[boltkv_needs::program("prlimit")]
fn a_process_that_may_open_nothing_more_refuses_what_needs_it_and_goes_on_when_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    let server = Server::start_with(&db, JOURNAL.iter().chain(&["--admin", "127.0.0.1:0"]));
    let (mut client, value) = (Text::connect(server.addr()), "v".repeat(60_000));
    assert_eq!(client.ask("SET before 1"), "OK");
    let answered = |client: &mut Text, keys: std::ops::Range<u32>| -> Vec<String> {
        let mut kept = Vec::new();
        for key in keys {
            match client.ask(&format!("SET k{key} {value}")) {
                answer if answer == "OK" => kept.push(format!("k{key}")),
                answer => assert!(answer.starts_with("ERR NO_SPACE "), "{answer}"),
            }
        }
        kept
    };
    // Less than it has open: what is open stays, and nothing more is opened. In 40 of these the journal needs files.
    prlimit(&server, "--nofile=3:");
    let mut kept = answered(&mut client, 0..40);
    assert!(kept.len() < 40, "some need a file");
    assert_eq!(client.ask("GET before"), "1");
    let waiting = [server.addr(), server.admin()].map(|address| TcpStream::connect(address).unwrap());
    // The admin address tries again five times meanwhile.
    std::thread::sleep(std::time::Duration::from_millis(500));
    prlimit(&server, "--nofile=4096:");
    let more = answered(&mut client, 40..80);
    assert_eq!(more.len(), 40, "all of them again");
    kept.extend(more);
    assert!(metric(&server, "boltkv_accept_failures_total") > 0);
    assert_eq!(metric(&server, "boltkv_writable"), 1);
    drop(waiting);
    assert_eq!(Text::connect(server.addr()).ask("PING"), "PONG");
    let stopped = server.stop();
    assert!(stopped.code == Some(0) && stopped.stderr.contains("cannot accept connections"), "{}", stopped.stderr);
    assert_eq!(stopped.stderr.matches("to the admin address").count(), 1, "once in a while: {}", stopped.stderr);
    let server = Server::start(&db);
    for key in kept {
        assert_eq!(server.text(&format!("EXISTS {key}\n")), "1\n", "{key}");
    }
    server.stop();
    run(args!["file", "check", &db]).done();
}

// Promises: ops-descriptors.
#[test]
#[boltkv_needs::program("prlimit")]
fn clients_cannot_take_the_descriptors_that_the_engine_needs() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    let few = Ran::from(limited("--nofile=50:50", &db, &[]).output().unwrap()).failed(2);
    assert!(few.contains("50 files open, and takes 64 at least"), "{few}");
    let server = Server::spawn(&mut limited("--nofile=128:128", &db, &JOURNAL));
    let mut client = Text::connect(server.addr());
    let (value, mut crowd) = ("v".repeat(60_000), Vec::new());
    for key in 0..100 {
        assert_eq!(client.ask(&format!("SET k{key} {value}")), "OK");
        let mut another = Text::connect(server.addr());
        let answer = another.ask("PING");
        assert!(answer == "PONG" || answer.starts_with("ERR OVERLOADED ") || answer.is_empty(), "{answer}");
        crowd.push(another);
    }
    drop(crowd);
    let copy = folder.path().join("copy.db");
    // Those who left are noticed a moment later.
    let given_up = std::time::Instant::now() + PATIENCE;
    while server.run(args!["backup", "--force", &copy]).code != Some(0) {
        assert!(std::time::Instant::now() < given_up, "no backup");
    }
    run(args!["file", "check", &copy]).done();
    let stopped = server.stop();
    assert!(stopped.code == Some(0) && stopped.stderr.contains("so it is 64"), "{}", stopped.stderr);
}

// Promises: ops-no-memory.
#[test]
#[boltkv_needs::program("prlimit")]
fn a_file_that_cannot_be_mapped_any_further_refuses_what_makes_it_grow_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    let server = Server::start(&db);
    assert_eq!(server.text("SET before 1\n"), "OK\n");
    let (mut client, value) = (Text::connect(server.addr()), "v".repeat(60_000));
    let mut set = |keys: std::ops::Range<usize>| -> Vec<_> {
        keys.map(|key| client.ask(&format!("SET k{key} {value}"))).collect()
    };
    // By then the threads run, each with an arena of 64 MiB or without, and what is new in memory has all that it takes.
    let warm = set(0..600);
    assert!(warm.iter().all(|answer| answer == "OK"), "{warm:?}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap().trim().trim_end_matches(" kB");
    // Room for the work itself; not for a larger map beside the one there is, of 64 MiB.
    prlimit(&server, &format!("--as={}:", size.parse::<u64>().unwrap() * 1024 + (48 << 20)));
    let answers = set(600..2_500);
    let kept = answers.iter().filter(|answer| *answer == "OK").count();
    let refused = answers.iter().find(|answer| *answer != "OK").unwrap();
    assert!(refused.starts_with("ERR NO_SPACE "), "{kept}: {refused}");
    assert!(refused.contains("memory"), "{refused}");
    assert_eq!(client.ask("GET before"), "1");
    assert_eq!(client.ask("DELETE before"), "OK");
    assert_eq!(client.ask("COUNT"), (warm.len() + kept).to_string());
    prlimit(&server, "--as=unlimited:");
    assert_eq!(client.ask(&format!("SET after {value}")), "OK");
    assert_eq!(server.stop().code, Some(0));
    run(args!["file", "check", &db]).done();
}
