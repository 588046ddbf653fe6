//! WATCH: what is committed, complete and in order, from a position on; and what it costs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::time::Duration;

use crate::common::binary::{create, create_if_missing, delete, delete_bucket, path, set};
use crate::common::watch::{all, begin, frame, request, told, transaction, watch};
use crate::common::{Binary, TestFile, TestServer, eventually};
use boltkv_protocol::{ChangeKind, ErrorCode, ErrorReply, Request, Watch, WatchFrom, WatchPosition, WriteRequest};
use boltkv_server::Config;
use boltkv_storage::{Db, Durability, JournalKeep, JournalOptions, Options};
use bytes::Bytes;

const LEAST: u64 = JournalOptions::LEAST_CHECKPOINT_SIZE;

fn options(keep: JournalKeep) -> Options {
    Options::new().journal(JournalOptions::new().checkpoint_size(LEAST).keep(keep))
}

fn database(file: &TestFile) -> Db {
    options(JournalKeep::Bytes(1 << 30)).open(&file.path).unwrap()
}

// Promises: wire-watch, wire-watch-kinds, wire-watch-first.
#[test]
fn what_is_committed_is_told_in_order_from_now_or_from_any_position() {
    let file = TestFile::new();
    let server = TestServer::serve(database(&file), |_| {});
    let (mut watcher, mut writer) = (server.binary(), server.binary());
    let start = begin(&mut watcher, all(WatchFrom::Now));
    let requests = [
        create("a"),
        set("a", "k", "v"),
        delete("a", "k"),
        create("b"),
        Request::Write(WriteRequest::MoveBucket { path: path("a"), to: path("b/a") }),
        Request::Write(WriteRequest::SetSequence { path: path("b"), sequence: 9 }),
        delete_bucket("b/a"),
    ];
    let txids: Vec<_> = requests.iter().map(|request| writer.write(request)).collect();
    let expected: [(ChangeKind, &str, &[u8], &[u8]); 7] = [
        (ChangeKind::BucketCreated, "/", b"a", b""),
        (ChangeKind::Put, "a", b"k", b"v"),
        (ChangeKind::Deleted, "a", b"k", b""),
        (ChangeKind::BucketCreated, "/", b"b", b""),
        (ChangeKind::BucketMoved, "/", b"a", &[2, 0, 1, b'b', 0, 1, b'a']),
        (ChangeKind::Sequence, "b", b"", &[0, 0, 0, 0, 0, 0, 0, 9]),
        (ChangeKind::BucketDeleted, "b", b"a", b""),
    ];
    let mut positions = vec![start];
    for ((kind, bucket, key, value), txid) in expected.into_iter().zip(&txids) {
        let (changes, _) = transaction(&mut watcher);
        assert_eq!(told(&changes), [(kind, bucket.to_owned(), key, value)]);
        assert_eq!((changes.position.epoch, changes.position.txid), (start.epoch, *txid));
        assert!(changes.time_ms > 1_700_000_000_000);
        positions.push(changes.position);
    }
    for (from, position) in positions.iter().enumerate() {
        let mut again = server.binary();
        assert_eq!(begin(&mut again, all(WatchFrom::Position(*position))), *position);
        for txid in &txids[from..] {
            assert_eq!(transaction(&mut again).0.position.txid, *txid);
        }
    }
    let mut oldest = server.binary();
    assert_eq!(begin(&mut oldest, all(WatchFrom::Oldest)), start);
}

// Promises: wire-watch-within.
#[test]
fn a_watch_of_a_bucket_and_a_prefix_tells_nothing_else_and_the_way_to_it() {
    let file = TestFile::new();
    let server = TestServer::serve(database(&file), |_| {});
    let (mut watcher, mut writer) = (server.binary(), server.binary());
    writer.write(&create_if_missing("a/b"));
    writer.write(&create("c"));
    let keys = Watch { keys_only: true, ..watch(WatchFrom::Now, "a/b", "k") };
    begin(&mut watcher, request(keys));
    for other in [set("c", "k", "v"), set("a", "k", "v"), set("a/b", "j", "v"), create("a/c")] {
        writer.write(&other);
    }
    writer.write(&set("a/b", "key", "value"));
    writer.write(&create("a/b/kc"));
    writer.write(&set("a/b/kc", "x", "value"));
    writer.write(&delete_bucket("a"));
    let expected: [(ChangeKind, &str, &[u8]); 4] = [
        (ChangeKind::Put, "a/b", b"key"),
        (ChangeKind::BucketCreated, "a/b", b"kc"),
        (ChangeKind::Put, "a/b/kc", b"x"),
        (ChangeKind::BucketDeleted, "/", b"a"),
    ];
    for (kind, bucket, key) in expected {
        assert_eq!(told(&transaction(&mut watcher).0), [(kind, bucket.to_owned(), key, &b""[..])]);
    }
}

#[test]
fn a_transaction_takes_as_many_frames_as_it_has_to_and_a_value_that_fits_none_is_told_by_its_size() {
    let file = TestFile::new();
    let server = TestServer::serve(database(&file), |config| config.limits.max_frame = 1 << 20);
    let mut watcher = server.binary();
    begin(&mut watcher, all(WatchFrom::Now));
    let db = &server.db;
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..5_000_u32).try_for_each(|key| bucket.put(key.to_be_bytes(), [7; 100]))?;
        bucket.put("large", vec![8; 500_000])?;
        bucket.put("too large", vec![9; 1 << 20])
    })
    .unwrap();
    let (changes, frames) = transaction(&mut watcher);
    assert_eq!(changes.changes.len(), 5_003);
    assert!(frames > 10, "{frames}");
    for (change, key) in changes.changes[1..].iter().zip(0..5_000_u32) {
        assert_eq!((&change.key[..], &change.value[..]), (&key.to_be_bytes()[..], &[7; 100][..]));
    }
    let [.., large, too_large] = &changes.changes[..] else { panic!() };
    assert_eq!((large.kind, &large.value[..]), (ChangeKind::Put, &vec![8; 500_000][..]));
    assert_eq!((too_large.kind, too_large.number()), (ChangeKind::PutTooLarge, Some(1 << 20)));
}

// Promises: wire-watch-durable.
#[test]
fn what_is_not_on_the_disk_is_not_told() {
    let file = TestFile::new();
    let db = options(JournalKeep::UntilCheckpoint).durability(Durability::Never).open(&file.path).unwrap();
    let server = TestServer::serve(db, |_| {});
    let (mut watcher, mut writer) = (server.binary(), server.binary());
    // The first write of all brings a state to the disk.
    writer.write(&create("first"));
    server.db.sync().unwrap();
    let start = begin(&mut watcher, all(WatchFrom::Now));
    let txid = writer.write(&create("b"));
    // The sign that the server is there says how far it is.
    assert_eq!(frame(&mut watcher).unwrap().position, start);
    server.db.sync().unwrap();
    assert_eq!(transaction(&mut watcher).0.position.txid, txid);
}

/// The oldest position that it tells is one after `start`, and was the oldest when it was told: what is kept moves on while
/// others write, and while a checkpoint is made.
fn expired(error: &ErrorReply, start: WatchPosition, server: &TestServer) {
    assert_eq!(error.code, ErrorCode::SnapshotExpired, "{}", error.message);
    let told = WatchPosition::from_detail(&error.detail).unwrap();
    let oldest = server.db.oldest_position().unwrap().unwrap();
    assert_eq!(told.epoch, oldest.epoch);
    assert!((start.txid + 1..=oldest.txid).contains(&told.txid), "{told:?}, now {oldest:?}");
}

/// Writes more than a journal of these tests keeps; the numbers of the transactions.
fn fill(writer: &mut Binary) -> Vec<u64> {
    (0..60).map(|_| writer.write(&set("b", "k", vec![1; 60_000]))).collect()
}

// Promises: wire-watch-expired.
#[test]
fn a_position_that_is_not_kept_is_expired_and_so_is_a_client_that_is_too_slow() {
    let file = TestFile::new();
    let db = options(JournalKeep::UntilCheckpoint).open(&file.path).unwrap();
    let server = TestServer::serve(db, |_| {});
    let (mut slow, mut writer) = (server.binary(), server.binary());
    slow.gives_credit = false;
    writer.write(&create("b"));
    let start = begin(&mut slow, all(WatchFrom::Now));
    // Its credit is used up, and what is read ahead is full.
    let mut written = fill(&mut writer).into_iter();
    let mut late = server.binary();
    for lost in [start, WatchPosition { epoch: start.epoch ^ 1, ..start }, WatchPosition { txid: u64::MAX, ..start }] {
        late.send_all(&[all(WatchFrom::Position(lost))]);
        expired(&frame(&mut late).unwrap_err(), start, &server);
    }
    slow.gives_credit = true;
    slow.credit(1, 1 << 30);
    slow.credit(2, 1 << 30);
    let error = loop {
        match frame(&mut slow) {
            Ok(changes) if changes.changes.is_empty() => {}
            Ok(changes) => assert_eq!(Some(changes.position.txid), written.next()),
            Err(error) => break error,
        }
    };
    assert!(written.next().is_some());
    expired(&error, start, &server);
}

// Promises: wire-watch-alive.
#[test]
fn a_watch_of_what_does_not_change_lives_on_and_tells_how_far_it_is() {
    let file = TestFile::new();
    let server = TestServer::serve(database(&file), |config| {
        config.timeouts.stream_stall = Duration::from_millis(300);
        config.timeouts.idle = Duration::from_millis(300);
    });
    let (mut watcher, mut writer) = (server.binary(), server.binary());
    let start = begin(&mut watcher, request(watch(WatchFrom::Now, "elsewhere", "")));
    assert_eq!(frame(&mut watcher).unwrap().position, start);
    drop(writer);
    writer = server.binary();
    let txid = writer.write(&create("b"));
    eventually(|| frame(&mut watcher).unwrap().position.txid == txid);
    // What nobody is told of takes numbers, too, and replies name them.
    server.db.shrink().unwrap();
    let newest = server.db.stats().txid;
    assert!(newest > txid);
    eventually(|| frame(&mut watcher).unwrap().position.txid == newest);
    begin(&mut server.binary(), all(WatchFrom::Position(WatchPosition { epoch: start.epoch, txid: newest })));
}

// Promises: wire-watch-journal.
#[test]
fn without_a_journal_there_is_nothing_to_watch() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.send_all(&[all(WatchFrom::Now)]);
    assert_eq!(frame(&mut client).unwrap_err().code, ErrorCode::Unsupported);
    let mut within = Vec::from([0; 2]);
    within.extend([0, 1, 0x80, 0, 0, 0, 5, 0, 0, 0, 0, 0]);
    client.send(crate::common::binary::frame(9, 0x40, 0, &within));
    assert_eq!(client.error().1.code, ErrorCode::Unsupported, "nor is it part of a transaction");
}

// Promises: wire-watch-limit.
#[test]
fn one_more_than_the_server_does_is_overloaded_and_a_cancelled_one_makes_room() {
    let file = TestFile::new();
    let server = TestServer::serve(database(&file), |config| config.limits.max_watches = 1);
    let (mut first, mut second) = (server.binary(), server.binary());
    let ids = first.send_all(&[all(WatchFrom::Now)]);
    frame(&mut first).unwrap();
    second.send_all(&[all(WatchFrom::Now)]);
    assert_eq!(frame(&mut second).unwrap_err().code, ErrorCode::Overloaded);
    first.cancel(ids[0]);
    while frame(&mut first).map_err(|error| assert_eq!(error.code, ErrorCode::Cancelled)).is_ok() {}
    eventually(|| {
        second.send_all(&[all(WatchFrom::Now)]);
        frame(&mut second).is_ok()
    });
    drop(second);
    let line = || server.text().ask_all("STATS").into_iter().find(|line| line.starts_with("watches "));
    eventually(|| line().unwrap() == "watches 0");
}

#[test]
fn a_server_that_stops_ends_its_watches_and_lets_go_of_the_journal() {
    let file = TestFile::new();
    let mut server = TestServer::serve(database(&file), |_| {});
    let mut watcher = server.binary();
    begin(&mut watcher, all(WatchFrom::Now));
    server.ask_to_stop();
    let error = loop {
        if let Err(error) = frame(&mut watcher) {
            break error;
        }
    };
    assert_eq!(error.code, ErrorCode::ShuttingDown);
    server.stop().unwrap();
    drop(database(&file));
}

#[test]
fn watches_of_many_values_at_once_stay_within_the_memory_or_say_so() {
    let file = TestFile::new();
    let server = TestServer::serve(database(&file), |config| {
        config.limits.max_frame = 1 << 20;
        config.limits.memory = Some(8 << 20);
    });
    let mut watcher = server.binary();
    begin(&mut watcher, all(WatchFrom::Now));
    let value = Bytes::from(vec![3; 450_000]);
    server.db.update(|tx| tx.create_bucket("b")?.put("k", &value)).unwrap();
    assert_eq!(transaction(&mut watcher).0.changes[1].value, value);
    // With its frame it is longer than a quarter of the 4 MiB that connections have.
    server.db.update(|tx| tx.bucket_mut("b")?.put("k", vec![0; 600_000])).unwrap();
    let error = loop {
        if let Err(error) = frame(&mut watcher) {
            break error;
        }
    };
    assert_eq!(error.code, ErrorCode::TxnTooLarge, "{}", error.message);
}

/// Nobody is given up, however long it takes: who waited for one of them would wait on.
fn patient(config: &mut Config) {
    config.limits.memory = Some(64 << 20);
    let never = Duration::from_secs(24 * 3600);
    (config.timeouts.stream_stall, config.timeouts.reply, config.timeouts.idle) = (never, never, never);
}

// Promises: wire-watch-memory.
#[test]
fn watches_that_nobody_takes_anything_of_keep_no_writer_waiting() {
    let file = TestFile::new();
    let server = TestServer::serve(database(&file), patient);
    let mut writer = server.binary();
    writer.write(&create("b"));
    let mut watching: Vec<Binary> = (0..100).map(|_| server.binary()).collect();
    let mut refused = 0;
    for client in &mut watching {
        client.send_all(&[all(WatchFrom::Now)]);
        match frame(client) {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.code, ErrorCode::Overloaded);
                refused += 1;
            }
        }
    }
    assert!((20..=80).contains(&refused), "they have a share of the memory: {refused} found none");
    let begun = watching.len() - refused;
    for key in 0..30 {
        writer.write(&set("b", &format!("{key}"), vec![7; 1 << 20]));
    }
    let figures = server.text().ask_all("STATS");
    assert!(figures.contains(&format!("watches {begun}")), "{figures:?}");
}

// Promises: wire-watch-memory.
#[test]
fn for_what_watches_tell_of_large_transactions_nobody_else_waits() {
    let file = TestFile::new();
    let server = TestServer::serve(database(&file), patient);
    server.db.update(|tx| tx.create_bucket("b")?.put("large", vec![7; 4_000_000])).unwrap();
    let watching: Vec<Binary> = (0..16)
        .map(|_| {
            let mut client = server.binary();
            client.send_all(&[all(WatchFrom::Oldest)]);
            client
        })
        .collect();
    let mut other = server.binary();
    let value = Bytes::from(vec![8; 15 << 20]);
    for key in 0..3 {
        other.write(&set("b", &format!("{key}"), value.to_vec()));
        assert_eq!(other.value("b", &format!("{key}")), Some(value.clone()));
    }
    drop(watching);
    eventually(|| server.text().ask_all("STATS").contains(&"memory_used 0".to_owned()));
}
