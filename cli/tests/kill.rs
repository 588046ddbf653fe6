//! `kill -9` at any moment, under writers that never pause: what was acknowledged is there after a restart, what was not is
//! there wholly or not at all, and the file stays sound, for Go's bbolt too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use boltkv_client::{Bucket, Client, Error};
use common::peer::{Peer, peer};
use common::run;
use common::server::{PATIENCE, Server};
use tokio::sync::Notify;
use tokio::time::timeout;

const ROUNDS: u32 = 30;
const WRITERS: u64 = 8;
/// Keys of one writer: few, so that most writes replace or delete what an earlier one wrote.
const KEYS: u64 = 40;
/// A round is over after so many acknowledged writes at most.
const MOST_WRITES: u64 = 1_000;
/// Every so many writes of a writer are deletions.
const DELETE_EVERY: u64 = 5;

/// What one writer knows of its keys: the number of the write whose value a key has; no number, no key.
#[derive(Debug, Clone, Default)]
struct Known {
    acknowledged: BTreeMap<u64, u64>,
    /// The next write's number. Never used twice, so that every value tells which write it is of.
    next: u64,
    /// The write whose outcome is unknown.
    in_doubt: Option<u64>,
}

/// A write by its number: which key it is for, and what it puts there (nothing: it deletes).
fn key_of(write: u64) -> u64 {
    // Neighbouring writes go to keys that are far apart.
    write.wrapping_mul(7_919) % KEYS
}

fn puts(write: u64) -> bool {
    !write.is_multiple_of(DELETE_EVERY)
}

/// A value that tells its writer and its write in every part of it, from a few bytes to several pages long.
fn value(writer: u64, write: u64) -> String {
    let stamp = format!("<{writer}.{write}>");
    let repeats = 1 + usize::try_from(write.wrapping_mul(2_654_435_761) % 499).unwrap();
    stamp.repeat(repeats)
}

impl Known {
    /// What the bucket may hold: what was acknowledged, and the write in doubt done or not done.
    fn may_be(&self) -> Vec<BTreeMap<u64, u64>> {
        let mut states = vec![self.acknowledged.clone()];
        if let Some(write) = self.in_doubt {
            let mut done = self.clone();
            done.acknowledge(write);
            states.push(done.acknowledged);
        }
        states
    }

    fn acknowledge(&mut self, write: u64) {
        if puts(write) {
            self.acknowledged.insert(key_of(write), write);
        } else {
            self.acknowledged.remove(&key_of(write));
        }
    }
}

/// Counts what is acknowledged, and calls when it is enough.
struct Round {
    left: AtomicU64,
    enough: Notify,
}

impl Round {
    fn acknowledged(&self) {
        // Wraps after the call; nobody looks any more.
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.enough.notify_one();
        }
    }
}

/// Writes until the server is gone.
async fn write_until_killed(client: Client, writer: u64, mut known: Known, round: Arc<Round>) -> Known {
    let bucket = bucket_of(&client, writer);
    loop {
        let write = known.next;
        known.next += 1;
        match write_one(&bucket, writer, write).await {
            Ok(()) => known.acknowledge(write),
            Err(Error::OutcomeUnknown(_)) => {
                known.in_doubt = Some(write);
                return known;
            }
            // The client promises that nothing was written.
            Err(Error::ConnectionLost(_) | Error::Connect { .. }) => return known,
            Err(error) => panic!("writer {writer}: {error}"),
        }
        round.acknowledged();
    }
}

async fn write_one(bucket: &Bucket, writer: u64, write: u64) -> Result<(), Error> {
    let key = key_of(write).to_string();
    if puts(write) { bucket.set(key, value(writer, write)).await.map(drop) } else { bucket.delete(key).await.map(drop) }
}

fn bucket_of(client: &Client, writer: u64) -> Bucket {
    client.bucket(&format!("writers/{writer}")).unwrap()
}

/// What a writer's bucket holds, every value looked at as a whole.
async fn read(client: &Client, writer: u64) -> BTreeMap<u64, u64> {
    let mut entries = bucket_of(client, writer).scan().stream().await.unwrap();
    let mut state = BTreeMap::new();
    while let Some(entry) = entries.next().await {
        let entry = entry.unwrap();
        let text = str::from_utf8(&entry.value).unwrap();
        let stamp =
            text.strip_prefix(&format!("<{writer}.")).and_then(|rest| rest.split_once('>')).map(|(write, _)| write);
        let Some(write) = stamp.and_then(|write| write.parse().ok()) else { panic!("writer {writer} wrote no {text}") };
        assert!(text == value(writer, write), "the value of write {write} by writer {writer} is not whole");
        assert_eq!(
            entry.key,
            key_of(write).to_string(),
            "the value of write {write} by writer {writer} is another key's"
        );
        state.insert(key_of(write), write);
    }
    state
}

/// Holds what is there against what the writers know; from then on they know it.
async fn verify(client: &Client, writers: &mut [Known]) {
    for (writer, known) in (0..).zip(writers) {
        let found = read(client, writer).await;
        let allowed = known.may_be();
        assert!(allowed.contains(&found), "writer {writer}: found {found:?}, allowed {allowed:?}");
        known.acknowledged = found;
        known.in_doubt = None;
    }
}

/// Starts a server, verifies what the last one left, writes, and kills it.
async fn one_round(db: &Path, random: u64, writers: &mut [Known]) {
    let server = Server::start(db);
    let client = Client::connect(server.addr()).await.unwrap();
    for writer in 0..WRITERS {
        bucket_of(&client, writer).create_if_missing().await.unwrap();
    }
    verify(&client, writers).await;

    let round = Arc::new(Round { left: AtomicU64::new(1 + random % MOST_WRITES), enough: Notify::new() });
    let mut tasks = Vec::new();
    for (writer, known) in (0..).zip(writers.iter()) {
        // A connection each: they are eight programs, not one.
        let client = Client::connect(server.addr()).await.unwrap();
        tasks.push(tokio::spawn(write_until_killed(client, writer, known.clone(), Arc::clone(&round))));
    }
    timeout(PATIENCE, round.enough.notified()).await.expect("the server takes writes");
    // Not always just after an answer: anywhere in the group of writes that follows.
    tokio::time::sleep(Duration::from_micros(random % 4_000)).await;
    server.kill();
    for (known, task) in writers.iter_mut().zip(tasks) {
        *known = timeout(PATIENCE, task).await.expect("a writer ends with its server").unwrap();
    }
}

/// Looks for damage in the file as it is, without what only its journal has: as another program does that knows of none.
fn assert_sound(db: &Path, peer: Option<&Peer>) {
    let alone = db.with_extension("alone");
    std::fs::copy(db, &alone).unwrap();
    run(args!["file", "check", alone]).done();
    if let Some(peer) = peer {
        peer.assert_check_clean(db);
    }
}

// Promises: wire-durable, ops-durable, ops-killed.
#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_write_is_lost_to_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("killed.db");
    let peer = peer();
    let mut writers = vec![Known::default(); usize::try_from(WRITERS).unwrap()];
    let chance = RandomState::new();
    for round in 0..ROUNDS {
        one_round(&db, chance.hash_one(round), &mut writers).await;
        assert_sound(&db, peer.as_ref());
    }

    let server = Server::start(&db);
    let client = Client::connect(server.addr()).await.unwrap();
    verify(&client, &mut writers).await;
    drop(client);
    server.stop().done();
    assert_sound(&db, peer.as_ref());
}
