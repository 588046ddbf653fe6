//! `kill -9` of a server whose keys expire: what was acknowledged is there with its time, or its time has come.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use boltkv_client::{Bucket, Client, Cond, Expiry, Lifetime};
use common::check_alone;
use common::peer::peer;
use common::server::{PATIENCE, Server};
use tokio::time::timeout;

const ROUNDS: u64 = 5;
const WRITERS: u64 = 4;
/// So many writes of each are acknowledged at least before the server is killed.
const WRITES: u64 = 100;

/// By key: when it expires.
type Times = BTreeMap<String, u64>;

fn now() -> u64 {
    u64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap()
}

/// Writes keys that expire soon, or in an hour, until the server is gone; what was acknowledged.
async fn write_until_killed(client: Client, name: String, tell: tokio::sync::mpsc::UnboundedSender<()>) -> Times {
    let bucket = client.bucket("keys").unwrap();
    let mut acknowledged = Times::new();
    for write in 0.. {
        let key = format!("{name}.{write}");
        let at = now() + if write % 2 == 0 { 20 + write % 700 } else { 3_600_000 + write };
        let written = match write % 3 {
            0 => client
                .transaction()
                .set_expiring(&bucket, &key, "v", &Cond::Always, Expiry::At(at))
                .commit()
                .await
                .err(),
            _ => bucket.set_expiring(&key, "v", Cond::Always, Expiry::At(at)).await.err(),
        };
        if written.is_some() {
            break;
        }
        acknowledged.insert(key, at);
        let _ = tell.send(());
    }
    acknowledged
}

/// Holds what the server has against what it had acknowledged.
async fn verify(bucket: &Bucket, times: &Times) {
    for (key, at) in times {
        let before = now();
        match bucket.lifetime(key).await.unwrap() {
            Some(Lifetime::Forever) => panic!("{key} has lost its time"),
            Some(Lifetime::Until { at_ms, .. }) => {
                assert_eq!(at_ms, *at, "{key}");
                assert!(before < *at, "{key} is seen after its time");
            }
            None => assert!(now() >= *at, "{key} is gone before its time"),
        }
    }
}

async fn rounds(args: &'static [&'static str]) {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("killed.db");
    let mut times = Times::new();
    for round in 0..ROUNDS {
        let server = Server::start_with(&db, args);
        let client = Client::connect(server.addr()).await.unwrap();
        let bucket = client.bucket("keys").unwrap();
        bucket.create_if_missing().await.unwrap();
        verify(&bucket, &times).await;
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let mut writers = Vec::new();
        for writer in 0..WRITERS {
            let client = Client::connect(server.addr()).await.unwrap();
            writers.push(tokio::spawn(write_until_killed(client, format!("{round}.{writer}"), tell.clone())));
        }
        for _ in 0..WRITES * WRITERS {
            timeout(PATIENCE, told.recv()).await.expect("the server takes writes").unwrap();
        }
        tokio::time::sleep(Duration::from_micros(round * 911 % 4_000)).await;
        server.kill();
        for writer in writers {
            times.extend(timeout(PATIENCE, writer).await.expect("a writer ends with its server").unwrap());
        }
        assert_sound(&db);
    }
    let server = Server::start_with(&db, args);
    let client = Client::connect(server.addr()).await.unwrap();
    let bucket = client.bucket("keys").unwrap();
    verify(&bucket, &times).await;
    // What was in doubt may be there, too.
    let lasting = times.values().filter(|at| **at > now() + 60_000).count() as u64;
    let most = lasting + ROUNDS * WRITERS;
    let begun = std::time::Instant::now();
    while !(lasting..=most).contains(&bucket.scan().count().await.unwrap()) {
        assert!(begun.elapsed() < PATIENCE, "what expires soon is gone soon");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(server.stop().done());
    assert_sound(&db);
}

fn assert_sound(db: &Path) {
    check_alone(db);
    if let Some(peer) = peer() {
        peer.assert_check_clean(db);
    }
}

// Promises: wire-expiry-durable.
#[tokio::test(flavor = "multi_thread")]
async fn no_time_is_lost_to_kill_9() {
    rounds(&["--journal-size=1MiB"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn none_is_lost_without_a_journal() {
    rounds(&["--journal=off"]).await;
}
