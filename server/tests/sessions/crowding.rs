//! Scans that stand still end where the snapshots they are of keep what writes need, the oldest first.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::net::TcpStream;
use std::time::Duration;

use crate::common::binary::{get, scan_all, set};
use crate::common::{Binary, TestFile, TestServer, connect, eventually, read_to_end, send};
use crate::snapshots::{LONG, close, of, open};
use boltkv_protocol::{ErrorCode, ErrorReply, Expect, Frame, Reply};
use boltkv_storage::{Db, JournalOptions, Options, Result};

/// Entries of the bucket, each of so many bytes: together more than the buffers of a socket hold.
const ENTRIES: u32 = 40_000;
const VALUE: usize = 1_000;

fn key(n: u32) -> String {
    format!("{:08}", n % ENTRIES)
}

/// How long a client may take nothing; a fifth of it where its scan is in the way.
const PATIENCE: Duration = Duration::from_secs(20);

/// Serves a database that keeps little of what is new in memory.
fn serve(file: &TestFile) -> TestServer {
    let journal = JournalOptions::new().memory(128 << 10);
    serve_with(&Options::new().journal(journal), file)
}

fn serve_with(options: &Options, file: &TestFile) -> TestServer {
    let db = options.open(&file.path).unwrap();
    db.update(|tx| {
        let mut keys = tx.create_bucket("default")?;
        let mut bucket = keys.create_bucket("b")?;
        (0..ENTRIES).try_for_each(|n| bucket.put(key(n), [b'v'; VALUE]))
    })
    .unwrap();
    TestServer::serve(db, |config| config.timeouts.stream_stall = PATIENCE)
}

/// Overwrites entries here and there.
fn overwrite(db: &Db, n: &mut u32) -> Result<()> {
    db.update(|tx| {
        let mut keys = tx.bucket_mut("default")?;
        let mut bucket = keys.bucket_mut("b")?;
        (0..20).try_for_each(|_| {
            *n = n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bucket.put(key(*n), [b'n'; VALUE])
        })
    })
}

/// The same until that is so.
fn write_until(db: &Db, mut is_so: impl FnMut() -> bool) {
    let mut n = 0;
    eventually(|| {
        (0..20).try_for_each(|_| overwrite(db, &mut n)).unwrap();
        is_so()
    });
}

fn is_kept(db: &Db) -> bool {
    db.stats().journal.unwrap().memory_kept
}

/// A scan that has begun, of a client that gives no credit.
fn scanning(server: &TestServer) -> (Binary, u32) {
    let mut client = server.binary();
    client.gives_credit = false;
    let id = client.send_all(&[scan_all("default/b")])[0];
    assert_eq!(client.frame().id, id);
    (client, id)
}

/// How the stream has ended: with an error.
fn error(client: &mut Binary, id: u32) -> ErrorReply {
    match Reply::decode(Expect::Written, after_entries(client, id)).unwrap() {
        Reply::Error(error) => error,
        other => panic!("{other:?}"),
    }
}

fn assert_is_in_the_way(error: &ErrorReply) {
    assert_eq!(error.code, ErrorCode::SnapshotExpired);
    assert!(error.message.contains("memory that writes need"), "{error:?}");
}

/// The first frame of an answer that is none of its entries.
fn after_entries(client: &mut Binary, id: u32) -> Frame {
    loop {
        let frame = client.frame();
        assert_eq!(frame.id, id);
        if frame.op != 0 || !frame.has_more() {
            return frame;
        }
    }
}

/// A connection that has sent this, and reads nothing.
fn asking(server: &TestServer, bytes: &[u8]) -> TcpStream {
    let mut client = connect(server.address);
    send(&mut client, bytes);
    client
}

/// Beside so many states that are held open, has four clients begin, in one state after the other, and the memory kept by them; the oldest, once one has ended.
fn oldest<T>(server: &TestServer, held: usize, begin: impl Fn() -> T) -> (T, Vec<T>) {
    let db = &server.db;
    let mut clients = Vec::new();
    for open in 1..=4 {
        clients.push(begin());
        eventually(|| db.stats().open_readers == open + held);
        write_until(db, || true);
    }
    write_until(db, || is_kept(db));
    // As many of the others go as it takes.
    write_until(db, || db.stats().open_readers < clients.len() + held);
    write_until(db, || !is_kept(db));
    (clients.remove(0), clients)
}

// Promises: wire-stream-crowding.
#[test]
fn scans_without_credit_end_where_writes_need_the_memory_that_their_snapshots_keep() {
    let file = TestFile::new();
    let server = serve(&file);
    let ((mut client, id), _others) = oldest(&server, 0, || scanning(&server));
    assert_is_in_the_way(&error(&mut client, id));
    assert_eq!(client.ask_code(&get("default/b", "none")), ErrorCode::KeyNotFound, "the connection goes on");
}

// Promises: wire-stream-crowding.
#[test]
fn so_do_those_whose_clients_take_nothing() {
    let file = TestFile::new();
    let server = serve(&file);
    let (mut client, _others) = oldest(&server, 0, || asking(&server, b"BUCKET USE default/b\nSCAN\nQUIT\n"));
    let all = String::from_utf8(read_to_end(&mut client)).unwrap();
    let last = all.lines().last().unwrap();
    assert!(last.starts_with("ERR SNAPSHOT_EXPIRED ") && last.contains("memory that writes need"), "{last}");
}

// Promises: resp-crowding.
#[test]
fn what_has_begun_and_cannot_end_with_an_error_ends_with_the_connection() {
    let file = TestFile::new();
    let server = serve(&file);
    let (mut client, _others) = oldest(&server, 0, || asking(&server, b"*2\r\n$7\r\nHGETALL\r\n$1\r\nb\r\n"));
    assert!(std::io::copy(&mut client, &mut std::io::sink()).is_err(), "it is reset");
}

// Promises: wire-stream-crowding.
#[test]
fn who_goes_on_or_holds_the_snapshot_open_keeps_the_scan() {
    let file = TestFile::new();
    let server = serve(&file);
    let (mut slow, id) = scanning(&server);
    let (idle, _) = scanning(&server);
    write_until(&server.db, || {
        // A frame and a bit, each time it is asked.
        slow.credit(id, 100_000);
        let frame = slow.frame();
        assert_eq!((frame.id, frame.op), (id, 0), "{:?}", Reply::decode(Expect::Written, frame.clone()));
        server.db.stats().open_readers == 1
    });
    drop(idle);
    slow.credit(id, u32::MAX);
    assert_eq!(after_entries(&mut slow, id).op, 0);
}

// Promises: wire-stream-crowding.
#[test]
fn that_the_oldest_state_is_held_by_who_may_does_not_keep_others_from_ending() {
    let file = TestFile::new();
    let server = serve(&file);
    let mut holder = server.binary();
    let held = open(&mut holder, LONG);
    // Far older than all others.
    (0..50).for_each(|_| write_until(&server.db, || true));
    let ((mut client, id), _others) = oldest(&server, 1, || scanning(&server));
    assert_is_in_the_way(&error(&mut client, id));
    assert_eq!(holder.ask(&of(held.id, get("default/b", "none"))), holder.ask(&get("default/b", "none")));
}

// Promises: wire-stream-crowding.
#[test]
fn scans_of_one_snapshot_end_as_well_once_their_client_has_closed_it() {
    let file = TestFile::new();
    let server = serve(&file);
    let mut client = server.binary();
    client.gives_credit = false;
    let held = open(&mut client, LONG);
    let scan = || of(held.id, scan_all("default/b"));
    client.send_all(&[scan(), scan(), close(held.id)]);
    write_until(&server.db, || true);
    let _others: Vec<_> = (0..3).map(|_| (scanning(&server), write_until(&server.db, || true)).0).collect();
    let before = server.db.begin().unwrap().id();
    write_until(&server.db, || server.db.stats().oldest_reader.is_none_or(|oldest| oldest > before));
    let mut errors = 0;
    while errors < 2 {
        let frame = client.frame();
        if frame.op != 0 {
            let Reply::Error(error) = Reply::decode(Expect::Written, frame).unwrap() else { panic!() };
            assert_is_in_the_way(&error);
            errors += 1;
        }
    }
}

// Promises: wire-stream-crowding, ops-max-size-scans.
#[test]
fn a_scan_that_keeps_the_pages_of_a_file_that_may_not_grow_ends_and_writes_go_on() {
    let file = TestFile::new();
    let server = serve_with(&Options::new().max_size(64 << 20), &file);
    let (mut client, id) = scanning(&server);
    let mut writer = server.binary();
    let mut write = |n: u32| match writer.ask(&set("default/b", &key(n * 3), vec![b'n'; VALUE])) {
        Reply::Written { .. } => true,
        Reply::Error(error) if error.code == ErrorCode::NoSpace => false,
        other => panic!("{other:?}"),
    };
    let mut n = 0;
    eventually(|| (0..100).any(|_| (n += 1, !write(n)).1));
    // Who stops writing lacks nothing.
    eventually(|| (write(n), server.db.stats().open_readers == 0).1);
    eventually(|| write(n));
    let error = error(&mut client, id);
    assert_eq!(error.code, ErrorCode::SnapshotExpired);
    assert!(error.message.contains("a file that cannot grow"), "{error:?}");
}
