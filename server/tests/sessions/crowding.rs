//! Scans whose clients take nothing end where the snapshots they are of keep memory that writes need, the oldest first.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::time::Duration;

use crate::common::binary::{get, scan_all};
use crate::common::{Binary, TestFile, TestServer, connect, eventually, read_to_end, send};
use boltkv_protocol::{ErrorCode, Expect, Frame, Reply};
use boltkv_storage::{Db, JournalOptions, Options, Result};

/// Entries of the bucket, each of so many bytes: together more than the buffers of a socket hold.
const ENTRIES: u32 = 40_000;
const VALUE: usize = 1_000;

/// Serves a database that keeps little of what is new in memory. Who takes nothing loses a scan after half a minute, or
/// after 2 s where it is in the way.
fn serve(file: &TestFile) -> TestServer {
    let journal = JournalOptions::new().memory(128 << 10);
    let db = Options::new().journal(journal).open(&file.path).unwrap();
    db.update(|tx| {
        let mut keys = tx.create_bucket("default")?;
        let mut bucket = keys.create_bucket("b")?;
        (0..ENTRIES).try_for_each(|n| bucket.put(n.to_be_bytes(), [b'v'; VALUE]))
    })
    .unwrap();
    TestServer::serve(db, |config| config.timeouts.stream_stall = Duration::from_secs(30))
}

/// Overwrites entries here and there until that is so.
fn write_until(db: &Db, mut is_so: impl FnMut() -> bool) {
    let mut n = 0_u32;
    let mut write = || -> Result<()> {
        db.update(|tx| {
            let mut keys = tx.bucket_mut("default")?;
            let mut bucket = keys.bucket_mut("b")?;
            (0..20).try_for_each(|_| {
                n = n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                bucket.put((n % ENTRIES).to_be_bytes(), [b'n'; VALUE])
            })
        })
    };
    eventually(|| {
        (0..20).try_for_each(|_| write()).unwrap();
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

/// Has four clients begin, in one state after the other, and the memory kept by them; the oldest, once one has ended.
fn oldest<T>(server: &TestServer, begin: impl Fn() -> T) -> (T, Vec<T>) {
    let db = &server.db;
    let mut clients = Vec::new();
    for open in 1..=4 {
        clients.push(begin());
        eventually(|| db.stats().open_readers == open);
        write_until(db, || true);
    }
    write_until(db, || is_kept(db));
    // As many of the others go as it takes.
    write_until(db, || db.stats().open_readers < clients.len());
    write_until(db, || !is_kept(db));
    (clients.remove(0), clients)
}

// Promises: wire-stream-crowding.
#[test]
fn scans_without_credit_end_where_writes_need_the_memory_that_their_snapshots_keep() {
    let file = TestFile::new();
    let server = serve(&file);
    let ((mut client, id), _others) = oldest(&server, || scanning(&server));
    let Reply::Error(error) = Reply::decode(Expect::Written, after_entries(&mut client, id)).unwrap() else { panic!() };
    assert_eq!(error.code, ErrorCode::SnapshotExpired);
    assert!(error.message.contains("memory that writes need"), "{error:?}");
    assert_eq!(client.ask_code(&get("default/b", "none")), ErrorCode::KeyNotFound, "the connection goes on");
}

// Promises: wire-stream-crowding.
#[test]
fn so_do_those_whose_clients_take_nothing() {
    let file = TestFile::new();
    let server = serve(&file);
    let begin = || {
        let mut client = connect(server.address);
        send(&mut client, b"BUCKET USE default/b\nSCAN\nQUIT\n");
        client
    };
    let (mut client, _others) = oldest(&server, begin);
    let all = String::from_utf8(read_to_end(&mut client)).unwrap();
    let last = all.lines().last().unwrap();
    assert!(last.starts_with("ERR SNAPSHOT_EXPIRED ") && last.contains("memory that writes need"), "{last}");
}

// Promises: resp-crowding.
#[test]
fn what_has_begun_and_cannot_end_with_an_error_ends_with_the_connection() {
    let file = TestFile::new();
    let server = serve(&file);
    let begin = || {
        let mut client = connect(server.address);
        send(&mut client, b"*2\r\n$7\r\nHGETALL\r\n$1\r\nb\r\n");
        client
    };
    let (mut client, _others) = oldest(&server, begin);
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
