//! What one client, or many, can make the server hold or wait for is bounded, and hurts nobody else.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::time::Duration;

use crate::common::binary::{create, frame, get, scan_all, set};
use crate::common::{Binary, TestServer, Text, connect, read_to_end};
use boltkv_protocol::ErrorCode;
use boltkv_storage::{Db, Options};

/// Nothing in these tests that is to end by itself takes longer than it must.
const SHORT: Duration = Duration::from_millis(50);

/// A database with 24 MiB in bucket `default`: more than any socket takes at once.
fn large() -> Db {
    of_values(24, 1 << 20)
}

fn of_values(number: u16, len: usize) -> Db {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("default")?;
        (0..number).try_for_each(|n| bucket.put([&b"k"[..], &n.to_be_bytes()].concat(), vec![b'v'; len]))
    })
    .unwrap();
    db
}

// Promises: ops-connections.
#[test]
fn a_connection_over_the_limit_is_told_so_and_the_place_of_one_that_ends_is_free() {
    let server = TestServer::start_with(|config| config.limits.max_connections = 2);
    let (first, mut second) = (server.binary(), server.text());
    assert_eq!(second.ask("PING"), "PONG");

    let mut text = server.text();
    text.send("PING\n");
    assert!(text.line().starts_with("ERR OVERLOADED "));
    assert_eq!(text.rest(), "");
    let mut binary = Binary::connect(server.address);
    binary.send(frame(1, 0x01, 0, b"BKV1\x01\x01\0\0\0\0\0\0\0\0"));
    let (id, error) = binary.error();
    assert_eq!((id, error.code), (0, ErrorCode::Overloaded));
    assert_eq!(binary.rest(), b"");
    let mut resp = connect(server.address);
    crate::common::send(&mut resp, b"*1\r\n$4\r\nPING\r\n");
    assert!(read_to_end(&mut resp).starts_with(b"-ERR max number of clients reached\r\n"));

    drop(first);
    crate::common::eventually(|| {
        let mut third = server.text();
        third.send("PING\r\n");
        third.try_line().is_some_and(|line| line == "PONG")
    });
    assert_eq!(second.ask("PING"), "PONG", "who was there stays");
}

// Promises: ops-hello.
#[test]
fn who_does_not_say_hello_in_time_is_told_so() {
    let server = TestServer::start_with(|config| config.timeouts.hello = SHORT);
    let mut client = Binary::connect(server.address);
    client.send(b"\0\0");
    let (id, error) = client.error();
    assert_eq!((id, error.code), (0, ErrorCode::HelloRequired));
    assert_eq!(client.rest(), b"");
}

#[test]
fn the_deadline_for_hello_ends_with_hello() {
    let server = TestServer::start_with(|config| config.timeouts.hello = Duration::from_secs(1));
    let mut client = server.binary();
    std::thread::sleep(Duration::from_millis(1_200));
    assert_eq!(client.ping(b"x"), &b"x"[..]);
}

// Promises: ops-idle.
#[test]
fn an_idle_connection_is_closed_in_every_dialect_and_before_any() {
    let server = TestServer::start_with(|config| {
        config.timeouts.idle = Duration::from_secs(1);
        config.timeouts.text_linger = Duration::ZERO;
    });
    let (mut silent, mut binary, mut text) = (connect(server.address), server.binary(), server.text());
    assert_eq!(text.ask("PING"), "PONG");
    assert_eq!(read_to_end(&mut silent), b"");
    assert_eq!(binary.rest(), b"");
    assert_eq!(text.rest(), "");
}

// Promises: wire-len, ops-frame.
#[test]
fn before_hello_frames_are_short_and_after_it_as_long_as_was_agreed() {
    let limit = 100_000;
    let server = TestServer::start_with(|config| config.limits.max_frame = limit);
    let mut early = Binary::connect(server.address);
    early.send(65_533_u32.to_be_bytes());
    early.send([0; 6]);
    let (id, error) = early.error();
    assert_eq!((id, error.code), (0, ErrorCode::FrameTooLarge));
    assert_eq!(early.rest(), b"");

    let mut client = Binary::connect(server.address);
    assert_eq!(client.hello().max_frame as usize, limit);
    assert_eq!(client.ping(&vec![b'p'; limit - 10]).len(), limit - 10);
    client.send(frame(9, 0x02, 0, &vec![b'p'; limit - 9]));
    let (id, error) = client.error();
    assert_eq!((id, error.code), (0, ErrorCode::FrameTooLarge));
    assert!(error.message.contains("100000"), "{}", error.message);
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_client_that_does_not_read_holds_up_nobody_else() {
    let server = TestServer::serve(large(), |_| {});
    let mut deaf = server.binary();
    deaf.send_all(&vec![scan_all("default"); 3]);
    let mut deaf_to_gets = server.binary();
    deaf_to_gets.send_all(&vec![get("default", "k\0\0"); 100]);
    let mut deaf_text = server.text();
    deaf_text.send("SCAN\r\n".repeat(3));
    // It has begun, so that it does not see what is written now.
    deaf_text.line();
    for n in 0..100 {
        let mut client = server.binary();
        client.write(&set("default", "new", n.to_string()));
        assert_eq!(client.value("default", "new").unwrap(), n.to_string());
    }
    // Once they listen, they get everything.
    let mut ends = 0;
    while ends < 3 {
        ends += usize::from(!deaf.frame().has_more());
    }
    for _ in 0..100 {
        assert_eq!(deaf_to_gets.frame().body.len(), 4 + (1 << 20));
    }
    assert_eq!(deaf_text.ask_all("PING").len(), 23, "the rest of the first of three scans");
}

// Promises: wire-stream-expired.
#[test]
fn the_scans_of_a_client_that_does_not_read_are_given_up_and_its_snapshots_let_go() {
    let server = TestServer::serve(of_values(2_400, 10_000), |config| config.timeouts.stream_stall = 10 * SHORT);
    let given_up = || {
        crate::common::eventually(|| server.db.stats().open_readers > 0);
        crate::common::eventually(|| server.db.stats().open_readers == 0);
    };
    let mut deaf = server.binary();
    let ids = deaf.send_all(&[scan_all("default"), scan_all("default")]);
    given_up();
    let mut deaf_text = server.text();
    deaf_text.send("SCAN\r\nPING\r\n");
    given_up();

    let mut ended = Vec::new();
    while ended.len() < 2 {
        let frame = deaf.frame();
        if !frame.has_more() {
            assert_eq!(frame.op, ErrorCode::SnapshotExpired.to_u8());
            ended.push(frame.id);
        }
    }
    ended.sort_unstable();
    assert_eq!(ended, ids);
    assert_eq!(deaf.ping(b"alive"), &b"alive"[..]);

    let expired = |text: &mut Text| loop {
        let line = text.line();
        if line.starts_with("ERR ") {
            return line;
        }
    };
    assert!(expired(&mut deaf_text).starts_with("ERR SNAPSHOT_EXPIRED "));
    assert_eq!(deaf_text.line(), "PONG");
}

#[test]
fn a_long_count_holds_up_nobody_else() {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("default")?;
        (0..200_000_u32).try_for_each(|n| bucket.put(n.to_be_bytes(), ""))
    })
    .unwrap();
    let server = TestServer::serve(db, |_| {});
    let mut counting = server.text();
    counting.send("COUNT\r\n".repeat(200));
    let mut client = server.binary();
    for _ in 0..100 {
        assert_eq!(client.ping(b"x"), &b"x"[..]);
    }
    assert_eq!(counting.line(), "200000");
}

#[test]
fn a_thousand_connections_are_served_and_leave_nothing_behind() {
    let server = TestServer::start();
    server.binary().write(&create("b"));
    for _ in 0..10 {
        let mut clients: Vec<_> = (0..100).map(|_| server.binary()).collect();
        for (n, client) in clients.iter_mut().enumerate() {
            client.send_all(&[set("b", &n.to_string(), "v")]);
        }
        for client in &mut clients {
            assert_eq!(client.frame().op, 0);
        }
    }
    crate::common::eventually(|| server.text().ask_all("STATS").contains(&"connections 1".to_owned()));
    assert_eq!(server.db.stats().open_readers, 0);
}
