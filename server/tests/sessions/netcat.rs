//! `echo 'SET hello world' | nc 127.0.0.1 PORT` prints `OK` and ends by itself, with every netcat's default flags.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "test code: a panic is how it reports")]

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::TestServer;

/// The program and its first arguments; what follows are host and port.
fn netcat(words: &[&str]) -> Option<Command> {
    let (program, arguments) = words.split_first()?;
    let found = std::env::split_paths(&std::env::var_os("PATH")?).any(|folder| folder.join(program).is_file());
    if !found {
        assert!(std::env::var_os("BOLTKV_REQUIRE_TOOLS").is_none_or(|value| value != "1"), "{program} is required");
        // What `eprintln!` prints of a test that passes is swallowed.
        let _ =
            std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("skipped: {program} is not installed\n"));
        return None;
    }
    let mut command = Command::new(program);
    command.args(arguments);
    Some(command)
}

/// Pipes a script into a netcat, as the shell does, and answers what it printed; `None` if it did not end by itself.
fn pipe(mut netcat: Command, address: SocketAddr, script: &str) -> Option<String> {
    let netcat = netcat.arg(address.ip().to_string()).arg(address.port().to_string());
    let mut child = netcat.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    if !ends(&mut child) {
        return None;
    }
    let mut printed = String::new();
    child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    Some(printed)
}

fn ends(child: &mut Child) -> bool {
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > Duration::from_secs(5) {
            child.kill().unwrap();
            child.wait().unwrap();
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

fn prints_and_ends(words: &[&str]) {
    let server = TestServer::start();
    for (script, expected) in [
        ("SET hello world\n", "OK\n"),
        ("GET hello\n", "world\n"),
        ("SET a 1\nSET b 2\nSCAN\n", "OK\nOK\na 1\nb 2\nhello world\nEND\n"),
    ] {
        // On a busy machine a netcat can send its line later after connecting than the rule allows; then another tries.
        let mut printed = None;
        for _ in 0..5 {
            let Some(netcat) = netcat(words) else { return };
            printed = pipe(netcat, server.address, script);
            if printed.is_some() {
                break;
            }
        }
        assert_eq!(printed.expect("it ends by itself"), expected, "{words:?}: {script}");
    }
}

// Promises: text-netcat, ops-netcat.
#[boltkv_needs::program("nc.openbsd")]
#[test]
fn with_openbsds() {
    prints_and_ends(&["nc.openbsd"]);
}

#[boltkv_needs::program("nc.openbsd")]
#[test]
fn with_openbsds_told_to_end() {
    prints_and_ends(&["nc.openbsd", "-N"]);
}

#[boltkv_needs::program("nc.traditional")]
#[test]
fn with_the_traditional_one() {
    prints_and_ends(&["nc.traditional"]);
}

#[boltkv_needs::program("ncat")]
#[test]
fn with_nmaps() {
    prints_and_ends(&["ncat"]);
}

#[boltkv_needs::program("busybox")]
#[test]
fn with_busyboxs() {
    prints_and_ends(&["busybox", "nc"]);
}
