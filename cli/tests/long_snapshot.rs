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
use common::server::{PATIENCE, Server};
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

/// Waits until the server holds no more snapshots than these open. Nothing is asked of them meanwhile, which would be a use.
async fn come_to(client: &Client, snapshots: u64) {
    let given_up = Instant::now() + PATIENCE;
    while figure(client, "snapshots").await > snapshots {
        assert!(Instant::now() < given_up, "a snapshot that nobody uses stays");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_is_one_transaction_for_as_long_as_it_is_used_and_then_its_pages_come_back() {
    let seconds = std::env::var("BOLTKV_SNAPSHOT_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(4);
    let folder = tempfile::tempdir().unwrap();
    // What is written anew is brought to the file meanwhile, however few writes there are on a slow machine.
    let server = Server::start_with(&folder.path().join("a.db"), ["--checkpoint-interval", "1s"]);
    let client = Client::builder(server.addr()).timeout(PATIENCE).connect().await.unwrap();
    let bucket = client.bucket("all").unwrap();
    bucket.create().await.unwrap();
    let all = (0..KEYS).fold(client.transaction(), |tx, number| tx.set(&bucket, key(number), value(0)));
    let begun = all.commit().await.unwrap().txid;

    // The one that is used is held for longer than its lease where it is held for a minute.
    let used = client.snapshot(Duration::from_secs(20)).await.unwrap();
    let unused = client.snapshot(Duration::from_secs(1)).await.unwrap();
    let written = Arc::<AtomicU64>::default();
    let mut writers = tokio::task::JoinSet::new();
    for first in 0..WRITERS {
        let own = Client::builder(server.addr()).timeout(PATIENCE).connect().await.unwrap().bucket("all").unwrap();
        writers.spawn(writer(own, first, Arc::clone(&written)));
    }
    // For so long, and until enough was written, however slow the machine is.
    let (until, given_up) = (Instant::now() + Duration::from_secs(seconds), Instant::now() + PATIENCE);
    let mut looks = 0;
    while Instant::now() < until || looks < 3 || written.load(Ordering::Relaxed) < 2 * KEYS {
        assert_unchanged(&used, &bucket).await;
        looks += 1;
        assert!(Instant::now() < until.max(given_up), "{looks} looks, {written:?} writes");
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(used.txid(), begun);
    come_to(&client, 1).await;
    let error = unused.get(&bucket, key(0)).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::SnapshotExpired), "{error}");
    assert_unchanged(&used, &bucket).await;
    // What it was when it began, and none of it is in the newest state.
    let held = figure(&client, "pending_pages").await;
    assert!(held > KEYS * 200 / 4096, "{held} pages are held");

    writers.shutdown().await;
    drop(used);
    come_to(&client, 0).await;
    // What is free is known with the next commits, the first of which frees what the last one wrote over.
    let given_up = Instant::now() + PATIENCE;
    loop {
        server.run(args!["backup", "--force", folder.path().join("copy.db")]).done();
        bucket.set(key(0), value(1)).await.unwrap();
        let (waiting, free) = (figure(&client, "pending_pages").await, figure(&client, "free_pages").await);
        if waiting < held / 2 && free > held / 2 {
            break;
        }
        assert!(Instant::now() < given_up, "{held} pages were held, {waiting} are, and {free} are free");
    }
}
