//! What strangers leave undone has an end, and what they take of the server's memory others get again.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::common::binary::{create, frame, get, ping, scan_all, set};
use crate::common::txn::{count, done, txn};
use crate::common::{Binary, TestServer, connect, read_to_end};
use boltkv_protocol::{ErrorCode, Path, ReadRequest, Reply, Request};
use boltkv_server::Config;
use bytes::Bytes;

/// Nothing in these tests that is to end by itself takes longer than it must.
const SHORT: Duration = Duration::from_millis(50);
const MAX_FRAME: usize = 1 << 20;
/// The longest value that fits, under a short key in bucket `b`.
const LONG: usize = MAX_FRAME - 100;

/// As little memory as a server can have.
fn tight(config: &mut Config) {
    config.limits.max_frame = MAX_FRAME;
    config.limits.memory = Some(4 * MAX_FRAME);
}

fn figure(server: &TestServer, name: &str) -> usize {
    let figures = server.text().ask_all("STATS");
    let line = figures.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap().parse().unwrap()
}

/// Waits until nothing is taken of the memory.
fn all_is_given_back(server: &TestServer) {
    crate::common::eventually(|| figure(server, "memory_used") == 0);
}

/// A connection that has sent all of a long frame but its last byte, and holds the memory for it.
fn holding(server: &TestServer) -> Binary {
    holding_of(server, LONG)
}

fn holding_of(server: &TestServer, len: usize) -> Binary {
    let before = figure(server, "memory_used");
    let mut client = server.binary();
    let whole = frame(9, 0x02, 0, &vec![b'p'; len]);
    client.send(&whole[..whole.len() - 1]);
    crate::common::eventually(|| figure(server, "memory_used") > before);
    client
}

fn is_reset(socket: &mut TcpStream) -> bool {
    socket.set_read_timeout(Some(crate::common::PATIENCE)).unwrap();
    std::io::copy(socket, &mut std::io::sink()).is_err()
}

#[test]
fn who_says_nothing_is_closed_in_time_and_who_has_spoken_stays() {
    let server = TestServer::start_with(|config| config.timeouts.first_byte = 4 * SHORT);
    let (mut text, mut binary) = (server.text(), server.binary());
    assert_eq!(text.ask("PING"), "PONG");
    assert_eq!(read_to_end(&mut connect(server.address)), b"");
    assert_eq!(text.ask("PING"), "PONG");
    assert_eq!(binary.ping(b"x"), &b"x"[..]);
}

// Promises: wire-silent.
#[test]
fn where_all_places_are_taken_the_one_that_was_silent_for_longest_goes() {
    let server = TestServer::start_with(|config| config.limits.max_connections = 3);
    let mut spoke = server.text();
    assert_eq!(spoke.ask("PING"), "PONG");
    let mut silent = connect(server.address);
    let mut later = server.text();
    let mut new = server.text();
    assert_eq!(new.ask("PING"), "PONG");
    assert_eq!(read_to_end(&mut silent), b"");
    assert_eq!(later.ask("PING"), "PONG");
    assert_eq!(spoke.ask("PING"), "PONG");
    // Now all have spoken.
    let mut over = server.text();
    over.send("PING\n");
    assert!(over.line().starts_with("ERR OVERLOADED "));
}

#[test]
fn a_request_that_does_not_arrive_is_told_so_and_closed() {
    let server = TestServer::start_with(|config| config.timeouts.request = 2 * SHORT);
    let mut binary = server.binary();
    binary.send(&frame(9, 0x02, 0, b"body")[..12]);
    let (id, error) = binary.error();
    assert_eq!((id, error.code), (0, ErrorCode::Malformed));
    assert_eq!(binary.rest(), b"");
    for line in ["SET k ".to_owned(), format!("SET k {}", "x".repeat(40_000)), "x".repeat(100_000)] {
        let mut text = server.text();
        text.send(format!("SET a 1\r\n{line}"));
        assert_eq!(text.line(), "OK");
        assert!(text.line().starts_with("ERR MALFORMED "));
        assert_eq!(text.rest(), "");
    }
    assert_eq!(server.text().ask("EXISTS k"), "0");
    all_is_given_back(&server);
}

// Promises: wire-unread, ops-unread.
#[test]
fn who_takes_no_reply_is_reset_and_its_memory_given_back() {
    let server = TestServer::start_with(|config| {
        tight(config);
        config.timeouts.reply = 4 * SHORT;
        config.timeouts.stream_stall = 2 * SHORT;
    });
    server.binary().write(&create("b"));
    for n in 0..8 {
        server.binary().write(&set("b", &n.to_string(), vec![b'v'; LONG]));
    }
    let mut gets = server.binary();
    gets.send_all(&vec![get("b", "1"); 100]);
    let mut scans = server.binary();
    for id in scans.send_all(&vec![scan_all("b"); 10]) {
        scans.credit(id, u32::MAX);
    }
    let mut text = connect(server.address);
    crate::common::send(&mut text, "BUCKET USE b\r\nSCAN\r\nSCAN\r\n".repeat(10).as_bytes());
    crate::common::eventually(|| figure(&server, "connections") == 1);
    all_is_given_back(&server);
    assert!(is_reset(&mut text));
}

#[test]
fn the_longest_request_and_reply_get_through_with_the_least_memory() {
    let server = TestServer::start_with(tight);
    let mut client = server.binary();
    client.write(&create("b"));
    client.write(&set("b", "k", vec![b'v'; LONG]));
    assert_eq!(client.value("b", "k").unwrap().len(), LONG);
    assert_eq!(client.ping(&vec![b'p'; MAX_FRAME - 10]).len(), MAX_FRAME - 10);
    assert_eq!(client.entries(&scan_all("b")).0[0].value.len(), LONG);
    let mut text = server.text();
    assert_eq!(text.ask("BUCKET USE b"), "OK");
    assert_eq!(text.ask("GET k").len(), LONG);
    assert_eq!(text.ask(&format!("{}GET k", " ".repeat(60_000))).len(), LONG);
    all_is_given_back(&server);
}

// Promises: wire-memory.
#[test]
fn who_finds_no_memory_waits_until_others_give_theirs_back() {
    let server = TestServer::start_with(tight);
    server.binary().write(&create("b"));
    server.binary().write(&set("b", "k", vec![b'v'; LONG]));
    all_is_given_back(&server);
    let (mut first, second) = (holding(&server), holding(&server));
    let (mut writing, mut reading, mut scanning) = (server.binary(), server.binary(), server.binary());
    writing.send_all(&[set("b", "new", vec![b'n'; LONG])]);
    reading.send_all(&[get("b", "k")]);
    scanning.send_all(&[scan_all("b")]);
    // Small requests need none.
    for n in 0..100 {
        server.binary().write(&set("b", "small", n.to_string()));
    }
    assert_eq!(server.binary().value("b", "new"), None);
    first.send(b"p");
    let (id, error) = first.error();
    assert_eq!((id, error.code), (9, ErrorCode::Overloaded), "it holds memory, so its reply does not wait for more");
    drop(second);
    assert_eq!(writing.frame().op, 0);
    assert_eq!(reading.frame().body.len(), 4 + LONG);
    assert_eq!(scanning.frame().op, 0);
    drop((writing, reading, scanning));
    all_is_given_back(&server);
}

/// As text, four bytes for each that does not print.
// Promises: wire-memory.
#[test]
fn a_reply_that_is_longer_than_all_of_the_memory_is_too_large_and_not_to_be_tried_again() {
    let server = TestServer::start_with(tight);
    server.binary().write(&create("default"));
    server.binary().write(&set("default", "k", vec![0xff; LONG]));
    let mut text = server.text();
    for line in ["GET k", "SCAN"] {
        let reply = text.ask(line);
        assert!(reply.starts_with("ERR FRAME_TOO_LARGE the reply takes "), "{line}: {reply}");
    }
    assert_eq!(text.ask("PING"), "PONG");
    assert_eq!(server.binary().value("default", "k").unwrap().len(), LONG);
    all_is_given_back(&server);
}

#[test]
fn who_finds_no_memory_for_too_long_is_told_so_and_goes_on() {
    let server = TestServer::start_with(tight);
    server.binary().write(&create("default"));
    server.binary().write(&set("default", "k", vec![b'v'; LONG]));
    all_is_given_back(&server);
    let held = [holding(&server), holding(&server)];
    let mut clients = [server.resp(), server.resp()];
    for (client, request) in clients.iter_mut().zip([&b"GET k\r\n"[..], b"MGET k\r\n"]) {
        client.send(b"*1\r\n$4\r\nPING\r\n");
        assert_eq!(client.reply().text(), "PONG");
        client.send(request);
    }
    for mut client in clients {
        let refused = client.reply().text();
        assert!(refused.starts_with("ERR OVERLOADED there is no memory"), "{refused}");
        assert_eq!(client.say("PING"), "PONG");
    }
    drop(held);
    all_is_given_back(&server);
}

// Promises: wire-gone.
#[test]
fn who_is_gone_before_there_is_memory_leaves_the_queue_for_it() {
    let server = TestServer::start_with(|config| {
        tight(config);
        config.timeouts.request = 100 * crate::common::PATIENCE;
    });
    let held = [holding(&server), holding_of(&server, LONG / 2)];
    let (mut gone, mut patient) = (server.binary(), server.binary());
    gone.send(&frame(9, 0x02, 0, &vec![b'p'; LONG])[..100]);
    // It is the first in the queue, and has been given what there is.
    crate::common::eventually(|| figure(&server, "memory_used") == figure(&server, "memory_limit"));
    drop(gone);
    // All of this request is there: the client has only ended its side, and waits for the answer.
    patient.send_all(&[ping(&vec![b'p'; 64 * 1024])]);
    patient.end();
    assert_eq!(patient.frame().body.len(), 64 * 1024);
    drop(held);
}

#[test]
fn many_long_pings_at_once_are_all_answered_one_way_or_the_other() {
    let server = TestServer::start_with(tight);
    let pings = ping(&vec![b'p'; LONG]);
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let (mut client, pings) = (server.binary(), vec![pings.clone(); 4]);
            std::thread::spawn(move || {
                let sender = pings.clone();
                let ids = client.send_all(&sender);
                for _ in ids {
                    match client.reply(&pings[0]).1 {
                        Reply::Pong(bytes) => assert_eq!(bytes.len(), LONG),
                        Reply::Error(error) => assert_eq!(error.code, ErrorCode::Overloaded),
                        other => panic!("{other:?}"),
                    }
                }
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    all_is_given_back(&server);
}

#[test]
fn what_cannot_be_named_in_a_path_of_its_own_length_does_not_keep_memory() {
    let server = TestServer::start_with(tight);
    let mut client = server.binary();
    let long: Vec<Bytes> = (0..30).map(|_| Bytes::from(vec![b'n'; 30_000])).collect();
    let path = Path::from_names(long).unwrap();
    let request = Request::Read(ReadRequest::Get { path, key: "k".into() });
    assert_eq!(client.ask_code(&request), ErrorCode::BucketNotFound);
    all_is_given_back(&server);
}

#[test]
fn a_server_stops_under_a_flood() {
    let mut server = TestServer::start();
    let mut pings = bytes::BytesMut::new();
    (2..20_000).for_each(|id| ping(b"").encode(id, &mut pings).unwrap());
    let floods: Vec<_> = (0..4)
        .map(|_| {
            let mut sender = server.binary().socket;
            let mut replies = sender.try_clone().unwrap();
            let pings = pings.clone();
            std::thread::spawn(move || while sender.write_all(&pings).is_ok() {});
            assert!(replies.read(&mut [0; 100]).unwrap() > 0, "the flood has begun");
            std::thread::spawn(move || std::io::copy(&mut replies, &mut std::io::sink()))
        })
        .collect();
    server.ask_to_stop();
    server.stop().unwrap();
    for replies in floods {
        let _ = replies.join().unwrap();
    }
}

#[test]
fn what_somebody_has_queued_who_can_not_have_it_done_any_more_keeps_no_memory() {
    let server = TestServer::start_with(|config| {
        tight(config);
        config.timeouts.text_linger = SHORT;
    });
    let mut client = connect(server.address);
    client.write_all(format!("MULTI\nSET k {}\n", "v".repeat(60_000)).as_bytes()).unwrap();
    // The server ends its sending side: nobody could be told of an EXEC.
    assert_eq!(read_to_end(&mut client), b"OK\nQUEUED\n");
    all_is_given_back(&server);
}

// Promises: wire-silent-end.
#[test]
fn nothing_goes_on_for_long_for_who_may_be_gone() {
    let server = TestServer::start_with(|config| config.timeouts.stream_stall = 4 * SHORT);
    let mut client = server.binary();
    client.write(&create("b"));
    let many: Vec<_> = (0..2000).map(|n| set("b", &n.to_string(), "v")).collect();
    done(&mut client, txn(&many));
    // Minutes of work, whose only answer comes at its end.
    let counts = vec![count("b"); 60_000];
    for is_closed in [false, true] {
        let mut client = server.binary();
        client.send_all(&[txn(&counts).into()]);
        crate::common::eventually(|| figure(&server, "open_readers") == 1);
        if !is_closed {
            client.end();
            assert!(client.is_reset());
        }
        drop(client);
        crate::common::eventually(|| figure(&server, "open_readers") == 0);
    }
}
