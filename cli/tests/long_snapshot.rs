//! A snapshot that is held for long while everything is written anew at full speed: it reads one transaction to its end, one
//! that nobody uses ends by itself, and then the pages that they held come back.
//!
//! `BOLTKV_SNAPSHOT_SECONDS=60 cargo test -p boltkv --test long_snapshot` holds it for a minute.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use boltkv_client::{Bucket, Client, ErrorCode, Snapshot};
use common::server::Server;
use tokio::time::{Instant, sleep};

const KEYS: u64 = 2000;
const WRITERS: u64 = 8;

fn key(number: u64) -> String {
    format!("{number:04}")
}

/// Of some length, so that there are many pages.
fn value(number: u64) -> String {
    format!("{number:0200}")
}

/// Writes all keys anew, again and again, until it is dropped.
async fn writer(bucket: Bucket, first: u64, written: Arc<AtomicU64>) {
    for number in 1.. {
        let of = (first + number * WRITERS) % KEYS;
        bucket.set(key(of), value(number)).await.unwrap();
        written.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reads all of a snapshot, of which everything is as it was at first.
async fn assert_unchanged(snapshot: &Snapshot, bucket: &Bucket) {
    let mut entries = snapshot.scan(bucket.scan()).await.unwrap();
    let mut count = 0;
    while let Some(entry) = entries.next().await {
        let entry = entry.unwrap();
        assert_eq!((entry.key, entry.value), (key(count).into(), value(0).into()));
        count += 1;
    }
    assert_eq!(count, KEYS);
}

async fn figure(client: &Client, name: &str) -> u64 {
    let figures = client.stats().await.unwrap();
    figures.iter().find(|(its_name, _)| its_name == name).unwrap().1.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_is_one_transaction_for_as_long_as_it_is_used_and_then_its_pages_come_back() {
    let seconds = std::env::var("BOLTKV_SNAPSHOT_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(4);
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("a.db"));
    let client = Client::connect(server.addr()).await.unwrap();
    let bucket = client.bucket("all").unwrap();
    bucket.create().await.unwrap();
    let all = (0..KEYS).fold(client.transaction(), |tx, number| tx.set(&bucket, key(number), value(0)));
    all.commit().await.unwrap();

    let lease = Duration::from_secs(3);
    let (used, unused) = (client.snapshot(lease).await.unwrap(), client.snapshot(lease).await.unwrap());
    let written = Arc::<AtomicU64>::default();
    let mut writers = tokio::task::JoinSet::new();
    for first in 0..WRITERS {
        let own = Client::connect(server.addr()).await.unwrap().bucket("all").unwrap();
        writers.spawn(writer(own, first, Arc::clone(&written)));
    }
    let until = Instant::now() + Duration::from_secs(seconds).max(lease);
    let mut looks = 0;
    while Instant::now() < until {
        assert_unchanged(&used, &bucket).await;
        looks += 1;
        sleep(Duration::from_millis(100)).await;
    }
    let written = written.load(Ordering::Relaxed);
    assert!(looks > 2 && written > 2 * KEYS, "{looks} looks, {written} writes");
    writers.shutdown().await;

    sleep(lease + Duration::from_secs(1)).await;
    for expired in [&used, &unused] {
        let error = expired.get(&bucket, key(0)).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::SnapshotExpired), "{error}");
    }
    // What is free is known with the next commits, the first of which frees what the last one wrote over.
    let held = figure(&client, "pending_pages").await;
    server.run(args!["backup", folder.path().join("copy.db")]).done();
    for number in 0..10 {
        bucket.set(key(number), value(1)).await.unwrap();
    }
    let waiting = figure(&client, "pending_pages").await;
    assert!(waiting < held / 2, "{held} pages were held, and {waiting} are");
}
