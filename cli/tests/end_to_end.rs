//! The whole path: text lines, the command line and the Rust client on one server, and Go's bbolt on its file.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

mod common;

use std::fmt::Write as _;
use std::time::Duration;

use boltkv_client::{Bucket, Client};
use common::peer::peer;
use common::run;
use common::server::Server;

#[tokio::test]
async fn what_one_face_writes_the_others_read() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("all.db");
    let server = Server::start(&db);
    let client = Client::connect(server.addr()).await.unwrap();
    let bucket = client.bucket("users/eu").unwrap();

    bucket.create_if_missing().await.unwrap();
    bucket.set("client", "by client").await.unwrap();
    assert_eq!(server.text("BUCKET USE users/eu\nSET text by text\n"), "OK\nOK\n");
    server.run(["set", "--bucket", "users/eu", "cli", "by cli"]).done();

    let all = "cli by cli\nclient by client\ntext by text\n";
    assert_eq!(server.text("BUCKET USE users/eu\nSCAN\n"), format!("OK\n{all}END\n"));
    assert_eq!(server.run(["scan", "--bucket", "users/eu"]).done_text(), all);
    let mut entries = bucket.scan().stream().await.unwrap();
    let mut seen = String::new();
    while let Some(entry) = entries.next().await {
        let entry = entry.unwrap();
        writeln!(seen, "{} {}", entry.key.escape_ascii(), entry.value.escape_ascii()).unwrap();
    }
    assert_eq!(seen, all);

    assert_eq!(server.text("BUCKET USE users/eu\nDEL client\n"), "OK\nOK\n");
    assert_eq!(bucket.get("client").await.unwrap(), None);
    server.run(["get", "--bucket", "users/eu", "client"]).failed(1);
    drop(client);
    server.stop().done();

    run(args!["file", "check", &db]).done();
    let Some(peer) = peer() else { return };
    peer.assert_check_clean(&db);
    let dump = peer.dump(&db);
    assert!(dump.contains(&format!("{} {}\n", hex("text"), hex("by text"))), "{dump}");
    assert!(!dump.contains(&hex("by client")), "{dump}");
}

#[tokio::test]
async fn more_counts_at_once_than_the_server_has_streams_are_all_answered() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(&folder.path().join("counts.db"), ["--max-streams", "2"]);
    let client = Client::connect(server.addr()).await.unwrap();
    let bucket = client.bucket("b").unwrap();
    bucket.create_if_missing().await.unwrap();
    let writes: Vec<_> = (0..500_u32)
        .map(|number| {
            let bucket = bucket.clone();
            tokio::spawn(async move { bucket.set(number.to_be_bytes(), b"value").await })
        })
        .collect();
    for write in writes {
        write.await.unwrap().unwrap();
    }
    let counts: Vec<_> = (0..40)
        .map(|_| {
            let bucket = bucket.clone();
            tokio::spawn(async move { bucket.scan().count().await })
        })
        .collect();
    for count in counts {
        assert_eq!(count.await.unwrap().unwrap(), 500);
    }
}

/// Begins scans one after the other, and gives each up after some of its entries.
async fn give_up(bucket: Bucket, times: usize) {
    for take in (0..times).map(|time| time * 37 % 300) {
        let mut entries = bucket.scan().stream().await.unwrap();
        for _ in 0..take {
            entries.next().await.unwrap().unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_that_are_given_up_cost_no_connection() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("given-up.db"));
    let client = Client::connect(server.addr()).await.unwrap();
    let bucket = client.bucket("b").unwrap();
    bucket.create_if_missing().await.unwrap();
    // Several times what a stream may send before its client has taken anything.
    let filled = (0..1000).fold(client.transaction(), |all, key: u32| all.set(&bucket, key.to_be_bytes(), [7; 1500]));
    filled.commit().await.unwrap();
    let accepted = async || {
        let figures = client.stats().await.unwrap();
        let accepted = figures.iter().find(|(name, _)| name == "connections_accepted").unwrap();
        accepted.1.parse::<usize>().unwrap()
    };
    give_up(bucket.clone(), 400).await;
    assert_eq!(accepted().await, 2, "one for requests, and one for scans");
    let together: Vec<_> = (0..4).map(|_| tokio::spawn(give_up(bucket.clone(), 200))).collect();
    for scans in together {
        scans.await.unwrap();
    }
    let before = accepted().await;
    assert!(before <= 5, "{before} for four scans at a time");
    // So it is with snapshots, whose scans share one connection with what else is asked of them.
    for take in 0..200 {
        let snapshot = client.snapshot(Duration::from_secs(60)).await.unwrap();
        let mut entries = snapshot.scan(bucket.scan()).await.unwrap();
        for _ in 0..take {
            entries.next().await.unwrap().unwrap();
        }
        drop(entries);
        assert_eq!(snapshot.get(&bucket, "none").await.unwrap(), None);
    }
    assert_eq!(accepted().await, before);
}

// Promises: ops-any-file.
#[boltkv_needs::program("go")]
#[test]
fn a_file_that_go_made_is_served_as_it_is() {
    let Some(peer) = peer() else { return };
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("theirs.db");
    peer.make_mixed(&db);
    let before = peer.dump(&db);

    let server = Server::start_with(&db, ["--read-only"]);
    let buckets = server.run(["bucket", "list"]).done_text();
    assert!(buckets.lines().count() > 5, "{buckets}");
    // Every bucket at the top holds as many entries as bbolt sees in it.
    for name in buckets.lines() {
        let name = name.trim_matches('"');
        let path = hex(name);
        let entries = before.lines().filter(|line| line.starts_with(&format!("entry {path} "))).count();
        let inner = before.lines().filter(|line| {
            let bucket = line.strip_prefix("bucket ").and_then(|rest| rest.split(' ').next());
            bucket.and_then(|bucket| bucket.strip_prefix(&format!("{path}/"))).is_some_and(|rest| !rest.contains('/'))
        });
        let counted = server.run(["scan", "--count", "--bucket", name]).done_text();
        assert_eq!(counted, format!("{}\n", entries + inner.count()), "{name}");
    }
    server.stop().done();
    assert!(peer.dump(&db) == before, "reading has changed the file");

    let server = Server::start(&db);
    server.run(["set", "--bucket", "nested/level 0", "written here", "read there"]).done();
    server.stop().done();
    peer.assert_check_clean(&db);
    let path = format!("{}/{}", hex("nested"), hex("level 0"));
    let added = format!("entry {path} {} {}", hex("written here"), hex("read there"));
    let after = peer.dump(&db);
    let without: Vec<&str> = after.lines().filter(|line| *line != added).collect();
    assert_eq!(after.lines().count(), without.len() + 1, "what was written here is there");
    assert!(without == before.lines().collect::<Vec<_>>(), "and nothing else has changed");
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}
