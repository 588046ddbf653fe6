//! `kill -9` at any moment, under writers that never pause, and of servers that open what a killed one has left: what was
//! acknowledged is there after a restart, what was not is there wholly or not at all, and the file stays sound, for Go's
//! bbolt too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use boltkv_client::{Bucket, Client, Error, ErrorCode};
use common::peer::{Peer, peer};
use common::server::{PATIENCE, Server};
use common::{boltkv, check_alone};
use tokio::sync::Notify;
use tokio::time::timeout;

const ROUNDS: u32 = 12;
const WRITERS: u64 = 8;
/// Keys of one writer: few, so that most writes replace or delete what an earlier one wrote.
const KEYS: u64 = 40;
/// A round is over after so many acknowledged writes at most.
const MOST_WRITES: u64 = 1_000;
/// A server that opens a file is killed within so many microseconds: before, while and after it has done again what the
/// journal has.
const OPENING: u64 = 40_000;
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
    /// What was there when the server was started, and the number of the first write since then.
    first: (BTreeMap<u64, u64>, u64),
}

/// How a server is to keep what it acknowledges.
#[derive(Clone, Copy)]
struct Mode {
    args: &'static [&'static str],
    /// A kill may take the newest acknowledged writes: they were in the server's memory only.
    may_lose_the_newest: bool,
}

/// With checkpoints every few rounds' worth of writes, so that kills meet them too.
const fn kept(args: &'static [&'static str]) -> Mode {
    Mode { args, may_lose_the_newest: false }
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
    fn may_be(&self, mode: Mode) -> Vec<BTreeMap<u64, u64>> {
        let mut states = vec![self.acknowledged.clone()];
        if let Some(write) = self.in_doubt {
            let mut done = self.clone();
            done.acknowledge(write);
            states.push(done.acknowledged);
        }
        if mode.may_lose_the_newest {
            let (mut earlier, first) = (self.clone(), self.first.1);
            earlier.acknowledged.clone_from(&self.first.0);
            states.push(earlier.acknowledged.clone());
            for write in first..self.next {
                earlier.acknowledge(write);
                states.push(earlier.acknowledged.clone());
            }
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
    loop {
        let write = known.next;
        known.next += 1;
        match write_one(&client, writer, write).await {
            Ok(()) => known.acknowledge(write),
            Err(Error::OutcomeUnknown(_)) => {
                known.in_doubt = Some(write);
                return known;
            }
            // The client promises that nothing was written.
            Err(Error::ConnectionLost(_) | Error::Connect { .. } | Error::NoAnswer { .. }) => return known,
            Err(error) if error.code() == Some(ErrorCode::ShuttingDown) => return known,
            Err(error) => panic!("writer {writer}: {error}"),
        }
        round.acknowledged();
    }
}

async fn write_one(client: &Client, writer: u64, write: u64) -> Result<(), Error> {
    let (bucket, key) = (bucket_of(client, writer), key_of(write).to_string());
    if writes_twice(writer) {
        return write_twice(client, &[bucket, twin_of(client, writer)], &key, writer, write).await;
    }
    if puts(write) { bucket.set(key, value(writer, write)).await.map(drop) } else { bucket.delete(key).await.map(drop) }
}

/// Every other writer's writes are transactions, each done in two buckets or in none.
const fn writes_twice(writer: u64) -> bool {
    writer % 2 == 1
}

async fn write_twice(client: &Client, buckets: &[Bucket; 2], key: &str, writer: u64, write: u64) -> Result<(), Error> {
    let both = buckets.iter().fold(client.transaction(), |txn, bucket| {
        if puts(write) { txn.set(bucket, key, value(writer, write)) } else { txn.delete(bucket, key) }
    });
    both.commit().await.map(drop)
}

fn twin_of(client: &Client, writer: u64) -> Bucket {
    client.bucket(&format!("twins/{writer}")).unwrap()
}

fn bucket_of(client: &Client, writer: u64) -> Bucket {
    client.bucket(&format!("writers/{writer}")).unwrap()
}

/// What a bucket of a writer's holds, every value looked at as a whole.
async fn read(bucket: Bucket, writer: u64) -> BTreeMap<u64, u64> {
    let mut entries = bucket.scan().stream().await.unwrap();
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
async fn verify(client: &Client, writers: &mut [Known], mode: Mode) {
    for (writer, known) in (0..).zip(writers) {
        let found = read(bucket_of(client, writer), writer).await;
        if writes_twice(writer) {
            assert_eq!(read(twin_of(client, writer), writer).await, found, "half of a transaction of writer {writer}");
        }
        let allowed = known.may_be(mode);
        assert!(allowed.contains(&found), "writer {writer}: found {found:?}, allowed {allowed:?}");
        known.first = (found.clone(), known.next);
        known.acknowledged = found;
        known.in_doubt = None;
    }
}

/// Kills servers while they open what the last one has left.
fn kill_while_opening(db: &Path, mode: Mode, random: u64) {
    for attempt in 0..random % 3 {
        let mut command = boltkv(args!["serve", "--listen", "127.0.0.1:0", "--db", db]);
        let mut child = command.args(mode.args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros((random >> (8 * (attempt + 1))) % OPENING));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// Starts a server, verifies what the last one left, writes, and ends it meanwhile.
async fn one_round(db: &Path, mode: Mode, random: u64, writers: &mut [Known], end: fn(Server)) {
    kill_while_opening(db, mode, random);
    let server = Server::start_with(db, mode.args);
    let client = Client::connect(server.addr()).await.unwrap();
    for writer in 0..WRITERS {
        bucket_of(&client, writer).create_if_missing().await.unwrap();
        twin_of(&client, writer).create_if_missing().await.unwrap();
    }
    verify(&client, writers, mode).await;

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
    end(server);
    for (known, task) in writers.iter_mut().zip(tasks) {
        *known = timeout(PATIENCE, task).await.expect("a writer ends with its server").unwrap();
    }
}

/// Looks for damage in the file as it is, also as another program does that knows of no journal.
fn assert_sound(db: &Path, peer: Option<&Peer>) {
    check_alone(db);
    if let Some(peer) = peer {
        peer.assert_check_clean(db);
    }
}

async fn rounds(mode: Mode) {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("killed.db");
    let peer = peer();
    let mut writers = vec![Known::default(); usize::try_from(WRITERS).unwrap()];
    let chance = RandomState::new();
    for round in 0..ROUNDS {
        one_round(&db, mode, chance.hash_one(round), &mut writers, Server::kill).await;
        assert_sound(&db, peer.as_ref());
    }

    one_round(&db, mode, u64::MAX, &mut writers, |server| drop(server.stop().done())).await;
    assert_sound(&db, peer.as_ref());
    // Stopped as told, while it had much to do, it leaves an ordinary file: nothing else is needed.
    let alone = folder.path().join("alone.db");
    std::fs::copy(&db, &alone).unwrap();
    let server = Server::start_with(&alone, ["--journal", "off"]);
    let client = Client::connect(server.addr()).await.unwrap();
    verify(&client, &mut writers, kept(&[])).await;
}

// Promises: wire-durable, wire-txn, ops-durable, ops-killed.
#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_write_is_lost_to_kill_9() {
    rounds(kept(&["--journal-size=2MiB"])).await;
}

// Promises: ops-durable, ops-killed.
#[tokio::test(flavor = "multi_thread")]
async fn none_is_lost_without_a_journal() {
    rounds(kept(&["--journal=off"])).await;
}

// Promises: ops-modes, ops-journal-killed.
#[tokio::test(flavor = "multi_thread")]
async fn with_a_journal_none_is_lost_that_was_to_be_synced_by_time() {
    rounds(kept(&["--durability=interval=20ms", "--journal-size=1MiB"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_journal_none_is_lost_that_was_never_to_be_synced() {
    rounds(kept(&["--durability=never", "--journal-size=2MiB"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn none_is_lost_where_the_journal_is_kept() {
    rounds(kept(&["--journal-keep=4MiB", "--journal-size=512KiB"])).await;
    rounds(kept(&["--durability=interval=5ms", "--journal-keep=1h", "--journal-size=1MiB"])).await;
    rounds(kept(&["--durability=never", "--journal-keep=4MiB", "--journal-size=512KiB"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_journal_and_synced_by_time_the_newest_are_lost_and_only_they() {
    let args = &["--durability=interval=20ms", "--journal=off"];
    rounds(Mode { args, may_lose_the_newest: true }).await;
}
