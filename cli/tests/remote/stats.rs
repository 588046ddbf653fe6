//! `boltkv stats`: a server's figures, for people and for programs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::common::server::Server;

#[test]
fn figures_are_lines_or_one_object_of_json() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("stats.db"));
    server.run(["set", "k", "v"]).done();
    let lines = server.run(["stats"]).done_text();
    assert!(lines.lines().any(|line| line == "writable 1"), "{lines}");
    let json = server.run(["stats", "--json"]).done_text();
    let object: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(object["writable"], 1);
    assert_eq!(object["version"], env!("CARGO_PKG_VERSION"));
    let names: Vec<_> = lines.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(object.as_object().unwrap().len(), names.len(), "{names:?}");
}

#[test]
fn they_are_printed_again_and_again_until_the_server_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("stats.db"));
    let mut watch = server.command(["stats", "--watch", "20ms", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut writes = || {
        let object: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        object["writes"].as_u64().unwrap()
    };
    assert_eq!(writes(), 0);
    server.run(["set", "k", "v"]).done();
    // Some may have been told before it was written.
    assert!((0..10_000).any(|_| writes() > 0), "what is told stays as it was");
    server.kill();
    assert_eq!(watch.wait().unwrap().code(), Some(3));
}
