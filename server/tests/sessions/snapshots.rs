//! Snapshots that clients hold open: one state for as long as they are used, and nothing of them afterwards.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::common::binary::{create, delete_bucket, frame, get, list, path, ping, scan, scan_all, set};
use crate::common::{Binary, TestFile, TestServer, eventually};
use boltkv_protocol::{
    Cond, ErrorCode, Expect, KeyRange, Reply, Request, ScanMode, ScanOptions, SessionRequest, SnapshotRead,
    SnapshotRequest, StreamRequest, Txn, WriteRequest,
};
use boltkv_storage::{Db, Options};

pub(crate) const LONG: u32 = 60_000;

pub(crate) struct Opened {
    pub(crate) id: u64,
    txid: u64,
    lease_ms: u32,
}

fn open_request(lease_ms: u32) -> Request {
    Request::Session(SessionRequest::Snapshot(SnapshotRequest::Open { lease_ms }))
}

pub(crate) fn close(id: u64) -> Request {
    Request::Session(SessionRequest::Snapshot(SnapshotRequest::Close { snapshot: id }))
}

pub(crate) fn open(client: &mut Binary, lease_ms: u32) -> Opened {
    match client.ask(&open_request(lease_ms)) {
        Reply::Snapshot { id, txid, lease_ms } => Opened { id, txid, lease_ms },
        other => panic!("{other:?}"),
    }
}

/// A request, as of a snapshot.
pub(crate) fn of(snapshot: u64, request: Request) -> Request {
    let read = match request {
        Request::Read(read) => SnapshotRead::Read(read),
        Request::Stream(stream) => SnapshotRead::Stream(stream),
        other => panic!("{other:?} is not of a snapshot"),
    };
    Request::OfSnapshot { snapshot, read }
}

fn value(client: &mut Binary, snapshot: u64, bucket: &str, key: &str) -> String {
    match client.ask(&of(snapshot, get(bucket, key))) {
        Reply::Value(value) => String::from_utf8(value.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn count(bucket: &str) -> Request {
    scan(bucket, KeyRange::ALL, ScanOptions { mode: ScanMode::Count, ..ScanOptions::default() })
}

fn figure(server: &TestServer, name: &str) -> u64 {
    let figures = server.text().ask_all("STATS");
    let line = figures.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap().parse().unwrap()
}

// Promises: wire-snapshot, wire-snapshot-flag.
#[test]
fn a_snapshot_is_one_state_for_everything_that_reads_from_it() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.write(&create("b"));
    let txid = client.write(&set("b", "k", "old"));
    let held = open(&mut client, LONG);
    assert_eq!((held.txid, held.lease_ms), (txid, LONG));
    client.write(&set("b", "k", "new"));
    client.write(&set("b", "l", "more"));
    client.write(&create("b/inner"));
    let later = open(&mut client, LONG);
    assert!(later.id != held.id && later.txid > held.txid);
    client.write(&delete_bucket("b"));

    assert_eq!(value(&mut client, held.id, "b", "k"), "old");
    assert_eq!(value(&mut client, later.id, "b", "k"), "new");
    assert_eq!(client.ask_code(&of(held.id, get("b", "l"))), ErrorCode::KeyNotFound);
    assert_eq!(client.keys(&of(held.id, scan_all("b"))), ["k"]);
    assert_eq!(client.keys(&of(later.id, scan_all("b"))), ["inner", "k", "l"]);
    assert_eq!(client.keys(&of(later.id, list("b"))), ["inner"]);
    assert_eq!(client.ask(&of(later.id, count("b"))), Reply::Count(3));
    assert_eq!(client.ask_code(&get("b", "k")), ErrorCode::BucketNotFound, "the newest state has none");

    let mut txn = Txn::builder();
    txn.condition(&path("b"), b"k", &Cond::IfEquals("old")).unwrap();
    txn.request(&get("b", "k")).unwrap();
    let txn = of(held.id, Request::Stream(StreamRequest::Txn(txn.build())));
    match client.ask(&txn) {
        Reply::Txn { txid, results } => {
            assert_eq!(txid, held.txid);
            let replies: Vec<_> = results.replies([Expect::Value]).map(Result::unwrap).collect();
            assert_eq!(replies, [Reply::Value("old".into())]);
        }
        other => panic!("{other:?}"),
    }
    let Request::OfSnapshot { read, .. } = txn else { unreachable!() };
    assert_eq!(client.ask_code(&Request::OfSnapshot { snapshot: later.id, read }), ErrorCode::ConditionFailed);
}

// Promises: wire-snapshot-flag.
#[test]
fn what_does_not_read_cannot_be_of_a_snapshot() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.write(&create("b"));
    let held = open(&mut client, LONG);
    let mut writing = Txn::builder();
    writing.request(&set("b", "k", "v")).unwrap();
    let writing = Request::Write(WriteRequest::Txn(writing.build()));
    for request in [set("b", "k", "v"), create("c"), ping(b"x"), writing, open_request(0), close(held.id)] {
        let mut plain = bytes::BytesMut::new();
        request.encode(70, &mut plain).unwrap();
        let body = [&held.id.to_be_bytes()[..], &plain[10..]].concat();
        client.send(frame(70, plain[8], 0x08, &body));
        let (id, error) = client.error();
        assert_eq!((id, error.code), (70, ErrorCode::Unsupported), "{request:?}");
    }
    assert_eq!(client.value("b", "k"), None);
    assert_eq!(client.ask_code(&of(held.id, get("b", "k"))), ErrorCode::KeyNotFound);
}

// Promises: wire-snapshot-own.
#[test]
fn a_snapshot_is_of_its_own_connection_and_ends_with_it() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.binary(), server.binary());
    client.write(&create("b"));
    client.write(&set("b", "k", "v"));
    let (first, second) = (open(&mut client, LONG), open(&mut client, LONG));
    assert_eq!(other.ask_code(&of(first.id, get("b", "k"))), ErrorCode::SnapshotExpired);
    assert_eq!(other.ask_code(&close(first.id)), ErrorCode::SnapshotExpired);
    assert_eq!(figure(&server, "snapshots"), 2);
    assert_eq!(client.ask(&close(first.id)), Reply::Closed);
    assert_eq!(client.ask_code(&close(first.id)), ErrorCode::SnapshotExpired);
    assert_eq!(client.ask_code(&of(first.id, get("b", "k"))), ErrorCode::SnapshotExpired);
    assert_eq!(client.ask_code(&of(first.id, scan_all("b"))), ErrorCode::SnapshotExpired);
    assert_eq!(value(&mut client, second.id, "b", "k"), "v");
    assert_eq!(server.db.stats().open_readers, 1);
    drop(client);
    eventually(|| server.db.stats().open_readers == 0);
    eventually(|| figure(&server, "snapshots") == 0);
}

// Promises: wire-lease, ops-lease.
#[test]
fn a_lease_ends_by_itself_but_not_while_it_is_used() {
    let server = TestServer::serve(Options::new().open_in_memory().unwrap(), |config| {
        config.timeouts.snapshot_lease = Duration::from_secs(7);
        config.timeouts.longest_snapshot_lease = Duration::from_secs(20);
    });
    let mut client = server.binary();
    client.write(&create("b"));
    client.write(&set("b", "k", "v"));
    assert_eq!(open(&mut client, 0).lease_ms, 7_000);
    assert_eq!(open(&mut client, u32::MAX).lease_ms, 20_000);
    let short = open(&mut client, 300);
    assert_eq!(short.lease_ms, 300);
    eventually(|| server.db.stats().open_readers == 2);
    assert_eq!(client.ask_code(&of(short.id, get("b", "k"))), ErrorCode::SnapshotExpired);
    // The lease begins anew with each use: many of them are far longer than one.
    let used = open(&mut client, 1_000);
    for _ in 0..30 {
        assert_eq!(value(&mut client, used.id, "b", "k"), "v");
        std::thread::sleep(Duration::from_millis(50));
    }
    eventually(|| server.db.stats().open_readers == 2);
}

// Promises: wire-snapshot-stream.
#[test]
fn a_stream_keeps_the_snapshot_in_use_and_its_state_when_it_is_closed() {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..100_u8).try_for_each(|n| bucket.put([n], vec![n; 10_000]))
    })
    .unwrap();
    let server = TestServer::serve(db, |_| {});
    let mut client = server.binary();
    client.gives_credit = false;
    let held = open(&mut client, 200);
    let id = client.send_all(&[of(held.id, scan_all("b"))])[0];
    let mut writer = server.binary();
    // Some of the pages are used again by others, were they not kept.
    writer.write(&delete_bucket("b"));
    writer.write(&create("b"));
    (0..30).for_each(|n| _ = writer.write(&set("b", &n.to_string(), vec![0; 20_000])));
    let mut first = 0;
    while first < 256 * 1024 {
        let frame = client.frame();
        assert!(frame.has_more());
        first += frame.body.len();
    }
    // Longer than the lease, the stream waits for credit.
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(figure(&server, "snapshots"), 1);
    assert_eq!(client.ask(&close(held.id)), Reply::Closed);
    assert_eq!(figure(&server, "snapshots"), 0);
    assert_eq!(server.db.stats().open_readers, 1);
    client.credit(id, u32::MAX);
    let mut bytes = first;
    loop {
        let frame = client.frame();
        assert_eq!((frame.id, frame.op), (id, 0));
        bytes += frame.body.len();
        if !frame.has_more() {
            break;
        }
    }
    assert!(bytes > 1_000_000, "{bytes}");
    eventually(|| server.db.stats().open_readers == 0);
}

// Promises: wire-snapshot-limit, ops-snapshots.
#[test]
fn a_connection_and_the_server_hold_no_more_than_they_may() {
    let server = TestServer::serve(Options::new().open_in_memory().unwrap(), |config| {
        config.limits.max_snapshots = 3;
        config.limits.max_connection_snapshots = 2;
    });
    let overloaded = |client: &mut Binary| match client.ask(&open_request(LONG)) {
        Reply::Error(error) if error.code == ErrorCode::Overloaded => error.message,
        other => panic!("{other:?}"),
    };
    let (mut one, mut two) = (server.binary(), server.binary());
    let first = open(&mut one, LONG);
    open(&mut one, LONG);
    assert!(overloaded(&mut one).contains("a connection may hold 2"));
    open(&mut two, LONG);
    assert!(overloaded(&mut two).contains("--max-snapshots"));
    assert_eq!(one.ask(&close(first.id)), Reply::Closed);
    open(&mut two, LONG);
    drop((one, two));
    eventually(|| figure(&server, "snapshots") == 0);
}

// Promises: wire-snapshot-pages.
#[test]
fn pages_are_used_again_when_a_snapshot_that_its_client_sleeps_on_has_expired() {
    let file = TestFile::new();
    let server = TestServer::serve(file.open(), |_| {});
    let mut writer = server.binary();
    writer.write(&create("b"));
    let mut overwrite = |rounds: u32| {
        for n in 0..rounds {
            writer.write(&set("b", &format!("{}", n % 10), vec![b'v'; 20_000]));
        }
        server.db.stats().pages
    };
    let before = overwrite(100);
    let mut sleeping = server.binary();
    let held = open(&mut sleeping, LONG);
    let grown = overwrite(100);
    assert!(grown >= before + 10 * 20_000 / 4_096, "what it sees is not used again: {before}, {grown}");
    assert_eq!(sleeping.ask(&close(held.id)), Reply::Closed);
    // Each of these would keep as much, did it not expire.
    for _ in 0..5 {
        open(&mut sleeping, 100);
        eventually(|| server.db.stats().open_readers == 0);
        assert_eq!(overwrite(100), grown, "the file has levelled off");
    }
    assert_eq!(figure(&server, "snapshots"), 0);
}

/// Accounts between which money is moved, and how much there is together.
const ACCOUNTS: usize = 20;
const EACH: i64 = 1_000;

fn balance_of(value: &[u8]) -> i64 {
    std::str::from_utf8(value).unwrap().parse().unwrap()
}

fn bank() -> Db {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("bank")?;
        (0..ACCOUNTS).try_for_each(|n| bucket.put(format!("{n:02}"), EACH.to_string()))
    })
    .unwrap();
    db
}

#[test]
fn the_sum_of_all_accounts_is_the_same_in_every_snapshot_while_money_is_moved_at_full_speed() {
    let server = TestServer::serve(bank(), |_| {});
    let (is_over, moved) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for seed in 0..3_usize {
            let (server, is_over, moved) = (&server, &is_over, &moved);
            scope.spawn(move || {
                let mut client = server.binary();
                for n in seed.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let (from, to) = (n * 7 % ACCOUNTS, (n * 13 + 1) % ACCOUNTS);
                    let add = |account: usize, delta| {
                        let key = bytes::Bytes::from(format!("{account:02}"));
                        Request::Write(WriteRequest::Increment { path: path("bank"), key, delta })
                    };
                    let mut txn = Txn::builder();
                    txn.request(&add(from, -3)).unwrap();
                    txn.request(&add(to, 3)).unwrap();
                    let reply = client.ask(&Request::Write(WriteRequest::Txn(txn.build())));
                    assert!(matches!(reply, Reply::Txn { .. }), "{reply:?}");
                    moved.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut client = server.binary();
        let mut txids = std::collections::BTreeSet::new();
        for round in 0..20 {
            let held = open(&mut client, LONG);
            txids.insert(held.txid);
            let mut sums = Vec::new();
            for _ in 0..3 {
                let by_scan = client.entries(&of(held.id, scan_all("bank"))).0;
                sums.push(by_scan.iter().map(|entry| balance_of(&entry.value)).sum::<i64>());
                let by_get = (0..ACCOUNTS).map(|n| value(&mut client, held.id, "bank", &format!("{n:02}")));
                let by_get: Vec<_> = by_get.collect();
                assert!(by_get.iter().zip(&by_scan).all(|(one, other)| one.as_bytes() == other.value));
                let before = moved.load(Ordering::Relaxed);
                eventually(|| moved.load(Ordering::Relaxed) > before);
            }
            assert_eq!(sums, [EACH * i64::try_from(ACCOUNTS).unwrap(); 3], "round {round}");
            assert_eq!(client.ask(&close(held.id)), Reply::Closed);
        }
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(txids.len(), 20, "each is another state");
    });
}
