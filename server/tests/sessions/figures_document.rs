//! `docs/monitoring.md` lists what STATS shows.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::time::Duration;

use crate::common::TestServer;
use boltkv_server::{Grant, Proof};
use boltkv_storage::{Durability, JournalOptions, Options};

/// The first words of the lines of the document's table.
fn documented() -> Vec<String> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/monitoring.md")).unwrap();
    let (_, section) = text.split_once("\n## What STATS shows\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let names = section.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split('`').next()?.to_owned()));
    names.collect()
}

#[test]
fn every_figure_of_stats_is_in_the_document_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    // What is set so has every figure.
    let durability = Durability::Interval { every: Duration::from_secs(1), commits: u64::MAX };
    let options = Options::new().journal(JournalOptions::new()).durability(durability).max_size(1 << 30);
    let server = TestServer::serve(options.open(folder.path().join("db")).unwrap(), |config| {
        let proof = Proof::Token(Grant::digest(b"token"));
        config.grants = Some(vec![Grant { name: "anyone".into(), proof, rights: vec![], expires: None }]);
    });
    let mut client = server.text();
    assert_eq!(client.ask("AUTH token"), "OK");
    let lines = client.ask_all("STATS");
    let names: Vec<_> =
        lines.iter().filter(|line| *line != "END").map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, documented());
}
