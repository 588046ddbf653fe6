//! Whatever arrives, the server goes on serving and nothing is executed that nobody asked for.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::io::Write;

use crate::common::binary::{create, frame, set};
use crate::common::{Binary, TestServer, connect, exchange, read_to_end};
use boltkv_protocol::{ErrorCode, Hello, Request, SessionRequest};
use boltkv_server::{Grant, Proof};
use boltkv_storage::Options;
use bytes::BytesMut;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

fn hello() -> Vec<u8> {
    let mut out = BytesMut::new();
    Request::from(SessionRequest::Hello(Hello::new("test"))).encode(1, &mut out).unwrap();
    out.to_vec()
}

/// Sends bytes and waits for the end, whether the server takes them all or not.
fn throw(server: &TestServer, bytes: &[u8]) -> Vec<u8> {
    let mut socket = connect(server.address);
    // The server may close before it has everything.
    let _ = socket.write_all(bytes);
    let _ = socket.shutdown(std::net::Shutdown::Write);
    read_to_end(&mut socket)
}

#[test]
fn random_bytes_leave_the_server_serving() {
    let server = TestServer::start();
    let mut runner = TestRunner::new(Config { cases: 200, ..Config::default() });
    let bytes = (any::<bool>(), prop::collection::vec(any::<u8>(), 0..2_000));
    let thrown = runner.run(&bytes, |(after_hello, bytes)| {
        let bytes = if after_hello { [hello(), bytes].concat() } else { bytes };
        throw(&server, &bytes);
        Ok(())
    });
    thrown.unwrap();
    server.assert_serving();
}

#[test]
fn frames_with_random_bodies_leave_the_server_serving() {
    let server = TestServer::start();
    server.binary().write(&create("b"));
    let op = prop::sample::select(&[0x01_u8, 0x02, 0x10, 0x11, 0x12, 0x20, 0x30, 0x31, 0x40, 0x70, 0x71, 0xff][..]);
    let body = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        prop::collection::vec(0..4_u8, 0..40).prop_map(|rest| [b"\x01\0\x01b", &rest[..]].concat()),
    ];
    let frames = prop::collection::vec((1..9_u32, op, 0..2_u8, body), 1..20);
    let mut runner = TestRunner::new(Config { cases: 200, ..Config::default() });
    let thrown = runner.run(&frames, |frames| {
        let frames = frames.iter().flat_map(|(id, op, flags, body)| frame(*id, *op, *flags, body));
        throw(&server, &hello().into_iter().chain(frames).collect::<Vec<_>>());
        Ok(())
    });
    thrown.unwrap();
    server.assert_serving();
    assert!(server.db.check().unwrap().is_empty());
}

#[test]
fn what_strangers_send_changes_nothing_and_shows_nothing() {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| tx.create_bucket("default")?.put("k", "secret")).unwrap();
    let server = TestServer::serve(db, |config| {
        let proof = Proof::Token(Grant::digest(b"token"));
        config.grants = Some(vec![Grant { name: "friend".into(), proof, rights: vec![], expires: None }]);
    });
    let before = server.db.stats().txid;
    let line = prop::sample::select(
        &[
            "GET k",
            "SET k mine",
            "MULTI",
            "EXEC",
            "SCAN",
            "BUCKET USE default",
            "BUCKET LIST",
            "DEL k",
            "STATS",
            "COUNT",
            "HELP",
            "auth",
            "",
            "\"",
            "DISCARD",
            "INCR n",
            "MGET k k",
            "BUCKET DELETE default",
        ][..],
    );
    let lines = prop::collection::vec(line, 0..20).prop_map(|lines| lines.join("\n").into_bytes());
    let frames = prop::collection::vec((1..9_u32, 0x02..0x80_u8, 0..2_u8), 1..9).prop_map(|frames| {
        let body = b"\x01\0\x07default\0\x01k\0\0\0\0\0\0\0\0";
        frames.iter().flat_map(|(id, op, flags)| frame(*id, *op, *flags, body)).collect()
    });
    let bytes = prop_oneof![lines, frames, prop::collection::vec(any::<u8>(), 0..2_000)];
    let mut runner = TestRunner::new(Config { cases: 300, ..Config::default() });
    let thrown = runner.run(&bytes, |bytes| {
        let answer = String::from_utf8_lossy(&throw(&server, &bytes)).into_owned();
        prop_assert!(!answer.contains("secret") && !answer.contains("default\n"), "{answer}");
        Ok(())
    });
    thrown.unwrap();
    assert_eq!(server.db.stats().txid, before);
}

#[test]
fn a_conversation_cut_anywhere_leaves_the_server_serving_and_executes_no_part_of_a_frame() {
    let server = TestServer::start();
    server.binary().write(&create("b"));
    let mut out = BytesMut::from(&hello()[..]);
    set("b", "k", "value").encode(2, &mut out).unwrap();
    for cut in 0..out.len() {
        throw(&server, &out[..cut]);
    }
    assert_eq!(server.binary().value("b", "k"), None);
    throw(&server, &out);
    assert_eq!(server.binary().value("b", "k").as_deref(), Some(&b"value"[..]));
}

// Promises: wire-header.
#[test]
fn a_frame_with_an_impossible_length_is_answered_with_id_0_and_closed() {
    let server = TestServer::start();
    for (len, code) in [
        (0_u32, ErrorCode::Malformed),
        (5, ErrorCode::Malformed),
        (20 << 20, ErrorCode::FrameTooLarge),
        (u32::MAX, ErrorCode::FrameTooLarge),
    ] {
        let mut client = server.binary();
        client.send(len.to_be_bytes());
        client.send([0; 100]);
        let (id, error) = client.error();
        assert_eq!((id, error.code), (0, code), "{len}");
        assert_eq!(client.rest(), b"");
    }
    server.assert_serving();
}

// Promises: wire-http.
#[test]
fn a_line_of_http_closes_the_connection_and_nothing_behind_it_is_executed() {
    let server = TestServer::start();
    let long = "x".repeat(100_000);
    for request in [
        "POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET k v\r\n",
        "GET /k HTTP/1.1\r\nHost: localhost\r\n\r\nSET k v\r\n",
        "QUERY / HTTP/1.1\r\n\r\nSET k v\r\n",
        "SET / HTTP/1.1\r\n\r\nSET k v\r\n",
        "post / http/1.1\nSET k v\n",
        "POST / HTTP/1.1 \t\nSET k v\n",
        "POST / HTTP/2\nSET k v\n",
        " host : localhost\nSET k v\n",
        &format!("POST /{long} HTTP/1.1\r\n\r\nSET k v\r\n"),
        &format!("Host: {long}\r\n\r\nSET k v\r\n"),
    ] {
        for before in ["", "\r\n", "\n \n", "SET before 1\n"] {
            let answers = String::from_utf8(throw(&server, format!("{before}{request}").as_bytes())).unwrap();
            let expected = if before.starts_with('S') { "OK\nERR MALFORMED " } else { "ERR MALFORMED " };
            assert!(answers.starts_with(expected) && answers.contains("HTTP"), "{answers}");
            assert_eq!(answers.lines().count(), expected.lines().count(), "{answers}");
        }
        assert_eq!(server.text().ask("EXISTS k"), "0", "{}", &request[..12]);
    }
    server.assert_serving();
}

// Promises: wire-http-quoted.
#[test]
fn a_value_that_ends_like_http_is_taken_and_given_in_quotes() {
    let server = TestServer::start();
    let mut client = server.text();
    assert_eq!(client.ask("SET k \"see HTTP/1.1\""), "OK");
    assert_eq!(client.ask("GET k"), "\"see HTTP/1.1\"");
}

#[test]
fn a_tls_hello_gets_an_alert_and_is_closed() {
    let server = TestServer::start();
    let hello = b"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03";
    assert_eq!(exchange(server.address, hello), b"\x15\x03\x03\x00\x02\x02\x28");
    server.assert_serving();
}

// Promises: wire-first-byte.
#[test]
fn what_begins_with_an_array_is_the_redis_dialect_to_its_end() {
    let server = TestServer::start();
    assert_eq!(exchange(server.address, b"*1\r\n$4\r\nPING\r\nping\r\n*0\r\n"), b"+PONG\r\n+PONG\r\n");
    server.assert_serving();
}

#[test]
fn connections_that_end_without_a_byte_or_are_reset_leave_the_server_serving() {
    let server = TestServer::start();
    for _ in 0..50 {
        drop(connect(server.address));
        let mut client = Binary::connect(server.address);
        client.send(hello());
        // Closed with the reply unread: the server's next write meets a reset.
    }
    server.assert_serving();
}
