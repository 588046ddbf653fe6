//! The credit of streams: what a client that takes nothing costs, and that nobody waits for it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::time::Duration;

use crate::common::binary::{get, scan_all};
use crate::common::{Binary, TestServer, eventually};
use boltkv_protocol::{ErrorCode, INITIAL_CREDIT, Request, StreamRequest};
use boltkv_storage::{Db, Options};

/// Nothing in these tests that is to end by itself takes longer than it must.
const SHORT: Duration = Duration::from_millis(300);
/// The length of a value; a frame of a scan has some of them, 64 KiB or a little more.
const VALUE: usize = 10_000;
/// What a frame may have at most, when it is sent as soon as it has 64 KiB.
const FRAME: usize = 64 * 1024 + VALUE + 100;

/// A database far larger than the credit that a stream begins with.
fn large() -> Db {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..1_000_u32).try_for_each(|n| bucket.put(n.to_be_bytes(), vec![b'v'; VALUE]))
    })
    .unwrap();
    db
}

/// A client that gives credit only where it is told to.
fn careful(server: &TestServer) -> Binary {
    let mut client = server.binary();
    client.gives_credit = false;
    client
}

/// What comes of the streams until a PING that is sent now is answered, in bytes of bodies; and that the answer comes.
fn drain(client: &mut Binary, mut seen: impl FnMut(u32, u8)) -> usize {
    let mark = client.send_all(&[crate::common::binary::ping(b"mark")])[0];
    let mut bytes = 0;
    loop {
        let frame = client.frame();
        if frame.id == mark {
            return bytes;
        }
        seen(frame.id, frame.op);
        bytes += frame.body.len();
    }
}

/// All that a stream sends before it waits for credit, which is this at the least: nothing comes between many answers any
/// more. What a thread has to make may take longer than many answers.
fn all_of_it(client: &mut Binary, least: usize) -> usize {
    let mut bytes = 0;
    let (mut quiet, mut rounds) = (0, 0);
    while quiet < 50 || bytes < least {
        rounds += 1;
        assert!(rounds < 200_000, "of {least} bytes {bytes} came");
        let more = drain(client, |_, status| assert_eq!(status, 0));
        quiet = if more == 0 { quiet + 1 } else { 0 };
        bytes += more;
    }
    bytes
}

// Promises: wire-credit.
#[test]
fn a_client_that_gives_no_credit_gets_what_it_began_with_and_one_frame_and_is_answered_meanwhile() {
    let server = TestServer::serve(large(), |_| {});
    let mut client = careful(&server);
    let initial = INITIAL_CREDIT as usize;
    for request in [scan_all("b"), Request::Stream(StreamRequest::Backup)] {
        let id = client.send_all(&[request])[0];
        let first = all_of_it(&mut client, initial);
        assert!((initial..initial + FRAME).contains(&first), "{first}");
        for n in 0..100_u32 {
            assert_eq!(client.ask_code(&get("b", &n.to_string())), ErrorCode::KeyNotFound);
        }
        // What is overdrawn is paid back first.
        let overdrawn = u32::try_from(first - initial).unwrap();
        client.credit(id, 0);
        client.credit(id, overdrawn);
        assert_eq!(all_of_it(&mut client, 0), 0);
        client.credit(id, 1);
        let frame = all_of_it(&mut client, 1);
        assert!(frame > 0 && frame < FRAME, "{frame}");
        client.credit(id, 3 * INITIAL_CREDIT);
        let more = all_of_it(&mut client, 2 * initial);
        assert!(more >= 2 * initial && more < 3 * initial + FRAME, "{more}");
        client.cancel(id);
        let (ended, error) = client.error();
        assert_eq!((ended, error.code), (id, ErrorCode::Cancelled));
    }
    eventually(|| server.db.stats().open_readers == 0);
}

#[test]
fn credit_beyond_what_a_balance_holds_is_lost_and_does_no_harm() {
    let server = TestServer::serve(large(), |_| {});
    let mut client = careful(&server);
    let id = client.send_all(&[scan_all("b")])[0];
    (0..5).for_each(|_| client.credit(id, u32::MAX));
    // And for what is no stream.
    client.credit(id + 1, u32::MAX);
    client.credit(0, 1);
    let mut bytes = 0;
    loop {
        let frame = client.frame();
        assert_eq!((frame.id, frame.op), (id, 0));
        bytes += frame.body.len();
        if !frame.has_more() {
            break;
        }
    }
    assert!(bytes > 1_000 * VALUE);
    assert_eq!(client.ping(b"alive"), &b"alive"[..]);
}

#[test]
fn streams_with_credit_go_on_beside_one_without() {
    let server = TestServer::serve(large(), |_| {});
    let mut client = careful(&server);
    let held = client.send_all(&[scan_all("b")])[0];
    all_of_it(&mut client, INITIAL_CREDIT as usize);
    let id = client.send_all(&[scan_all("b")])[0];
    client.credit(id, u32::MAX);
    loop {
        let frame = client.frame();
        assert_eq!((frame.id, frame.op), (id, 0));
        if !frame.has_more() {
            break;
        }
    }
    client.credit(held, u32::MAX);
    all_of_it(&mut client, 900 * VALUE);
}

// Promises: wire-stream-expired.
#[test]
fn a_stream_without_credit_expires_also_while_its_client_asks_for_other_things() {
    let server = TestServer::serve(large(), |config| config.timeouts.stream_stall = SHORT);
    let mut client = careful(&server);
    let ids = client.send_all(&[scan_all("b"), scan_all("b")]);
    let mut expired = Vec::new();
    eventually(|| {
        // A balance that stays below 0 is none.
        client.credit(ids[0], 1);
        drain(&mut client, |id, status| {
            if status != 0 {
                assert_eq!(status, ErrorCode::SnapshotExpired.to_u8());
                expired.push(id);
            }
        });
        expired.len() == 2
    });
    expired.sort_unstable();
    assert_eq!(expired, ids);
    eventually(|| server.db.stats().open_readers == 0);
    assert_eq!(client.ping(b"alive"), &b"alive"[..]);
}

// Promises: wire-credit-end.
#[test]
fn who_has_ended_its_sending_side_gets_all_of_a_stream() {
    let server = TestServer::serve(large(), |_| {});
    let mut client = careful(&server);
    client.send_all(&[scan_all("b")]);
    client.end();
    assert!(client.rest().len() > 1_000 * VALUE);
}
