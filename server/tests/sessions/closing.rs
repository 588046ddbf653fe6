//! How connections and servers end: what was taken is answered, what was answered is kept.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::time::Duration;

use crate::common::binary::{create, scan_all, set};
use crate::common::{Binary, PATIENCE, TestFile, TestServer, Text, exchange};
use boltkv_protocol::{ErrorCode, Expect, Reply};
use boltkv_server::{Config, Error, Listen, Server};
use boltkv_storage::Options;

/// Longer than a server with these timeouts lingers.
const LATER: Duration = Duration::from_millis(400);

// Promises: text-fin.
#[test]
fn a_text_client_that_ends_its_side_is_answered_in_full_and_then_closed() {
    let server = TestServer::start();
    let script: Vec<_> = (0..1_000).map(|n| format!("SET k{n} {n}\nGET k{n}\n")).collect();
    let replies: Vec<_> = (0..1_000).map(|n| format!("OK\n{n}\n")).collect();
    let got = exchange(server.address, script.concat().as_bytes());
    assert_eq!(String::from_utf8(got).unwrap(), replies.concat());
}

#[test]
fn a_binary_client_that_ends_its_side_is_answered_in_full_and_then_closed() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.write(&create("b"));
    let sets: Vec<_> = (0..500).map(|n| set("b", &n.to_string(), vec![b'v'; 1_000])).collect();
    let mut ids = client.send_all(&sets);
    ids.extend(client.send_all(&[scan_all("b")]));
    client.end();
    let mut answered = Vec::new();
    while answered.len() < ids.len() {
        let frame = client.frame();
        assert_eq!(frame.op, 0);
        if !frame.has_more() {
            answered.push(frame.id);
        }
    }
    answered.sort_unstable();
    assert_eq!(answered, ids);
    assert_eq!(client.rest(), b"");
}

#[test]
fn quit_closes_after_everything_before_it_and_executes_nothing_after_it() {
    let server = TestServer::start();
    let mut client = server.text();
    client.send("SET a 1\nGET a\nQUIT\nSET b 2\n");
    assert_eq!(client.rest(), "OK\n1\n");
    assert_eq!(server.text().ask("EXISTS b"), "0");
}

// Promises: text-linger, text-late.
#[test]
fn a_one_shot_client_is_ended_by_the_server_and_a_write_that_it_sends_later_is_reset_and_not_done() {
    let server = TestServer::start_with(|config| config.timeouts.text_linger = Duration::from_millis(50));
    let mut client = one_shot(&server, "SET hello world\nGET hello\n", "OK\nworld\n");
    client.send("\n \n");
    client.send("SET later yes\nSET last yes\n");
    assert!(client.is_reset_within(PATIENCE), "a script that pauses hears of it");
    assert_eq!(server.text().ask("MGET later last"), "(nil)");
    assert_eq!(server.text().ask("GET hello"), "world", "what was answered is there");
    crate::common::eventually(|| server.text().ask_all("STATS").contains(&"connections 1".to_owned()));
}

#[test]
fn a_one_shot_client_that_says_quit_or_nothing_after_its_end_is_closed_quietly() {
    let server = TestServer::start_with(|config| config.timeouts.text_linger = Duration::from_millis(50));
    for rest in ["", "QUIT\n", "\r\n"] {
        let mut client = one_shot(&server, "SET hello world\n", "OK\n");
        client.send(rest);
        client.end();
        assert!(!client.is_reset_within(LATER), "{rest:?}");
    }
}

/// A client whose script is answered and whose connection the server has then ended by itself. On a machine that is busy a
/// script can arrive later after connecting than the rule allows; then another client tries.
fn one_shot(server: &TestServer, script: &str, replies: &str) -> Text {
    for _ in 0..10 {
        let mut client = server.text();
        client.send(script);
        if let Some(rest) = client.rest_within(Duration::from_secs(3)) {
            assert_eq!(rest, replies);
            return client;
        }
    }
    panic!("the server does not end its side");
}

// Promises: text-linger-off, ops-linger.
#[test]
fn crlf_a_late_line_or_the_option_keep_the_connection_open() {
    let server = TestServer::start_with(|config| config.timeouts.text_linger = Duration::from_millis(50));
    let mut crlf = server.text();
    assert_eq!(crlf.ask("PING"), "PONG");
    let mut late = server.text();
    std::thread::sleep(LATER);
    late.send("PING\n");
    assert_eq!(late.line(), "PONG");
    let never = TestServer::start_with(|config| config.timeouts.text_linger = Duration::ZERO);
    let mut off = never.text();
    off.send("PING\n");
    assert_eq!(off.line(), "PONG");
    std::thread::sleep(LATER);
    for client in [&mut crlf, &mut late, &mut off] {
        client.send("PING\n");
        assert_eq!(client.line(), "PONG");
    }
}

#[test]
fn a_server_that_stops_answers_what_it_has_taken_and_every_acknowledged_write_is_kept() {
    let file = TestFile::new();
    for round in 0..5 {
        let mut server = TestServer::serve(file.open(), |config| config.limits.queue_requests = 50);
        let mut clients: Vec<Binary> = (0..4).map(|_| server.binary()).collect();
        clients[0].ask(&create("b"));
        for (number, client) in clients.iter_mut().enumerate() {
            let sets: Vec<_> = (0..500).map(|n| set("b", &format!("{round}-{number}-{n}"), "v")).collect();
            client.send_all(&sets);
        }
        // Some are answered, some are on their way, some have not arrived.
        let first = clients[0].frame();
        assert_eq!(first.op, 0);
        server.ask_to_stop();
        let mut acknowledged = vec![format!("{round}-0-0")];
        for (number, client) in clients.iter_mut().enumerate() {
            let base = if number == 0 { 3 } else { 2 };
            for (id, reply) in replies_to_end(client) {
                match reply {
                    Reply::Written { .. } => acknowledged.push(format!("{round}-{number}-{}", id - base)),
                    Reply::Error(error) => assert_eq!(error.code, ErrorCode::ShuttingDown),
                    other => panic!("{other:?}"),
                }
            }
        }
        drop(server.db.clone());
        server.stop().unwrap();
        let db = file.open();
        assert!(db.check().unwrap().is_empty());
        let tx = db.begin().unwrap();
        let bucket = tx.bucket("b").unwrap();
        for key in &acknowledged {
            assert_eq!(bucket.get(key).unwrap(), Some(&b"v"[..]), "{key} was acknowledged");
        }
    }
}

/// What is answered until the server ends the connection.
fn replies_to_end(client: &mut Binary) -> Vec<(u32, Reply)> {
    let mut rest = bytes::BytesMut::from(&client.rest()[..]);
    let mut codec = boltkv_protocol::FrameCodec::new(1 << 20);
    let mut replies = Vec::new();
    while let Some(frame) = tokio_util::codec::Decoder::decode(&mut codec, &mut rest).unwrap() {
        replies.push((frame.id, Reply::decode(Expect::Written, frame).unwrap()));
    }
    assert!(rest.is_empty(), "the last frame is whole");
    replies
}

// Promises: ops-stop-scans.
#[test]
fn a_server_that_stops_ends_scans_and_idle_connections_and_refuses_new_ones() {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("default")?;
        (0..64_u8).try_for_each(|n| bucket.put([n], vec![b'v'; 1 << 20]))
    })
    .unwrap();
    let mut server = TestServer::serve(db, |_| {});
    let (mut scanning, mut idle, mut silent) = (server.binary(), server.text(), crate::common::connect(server.address));
    scanning.send_all(&[scan_all("default")]);
    assert!(scanning.frame().has_more());
    assert_eq!(idle.ask("PING"), "PONG");
    server.ask_to_stop();
    assert_eq!(idle.rest(), "", "only now is the scan read on: what is left of it does not fit into the sockets");
    let last = loop {
        let frame = scanning.frame();
        if !frame.has_more() {
            break frame;
        }
    };
    assert_eq!(last.op, ErrorCode::ShuttingDown.to_u8());
    assert_eq!(scanning.rest(), b"");
    assert_eq!(crate::common::read_to_end(&mut silent), b"");
    let address = server.address;
    server.stop().unwrap();
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn what_cannot_be_bound_or_opened_is_a_clear_error() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = TestServer::start();
    let folder = tempfile::tempdir().unwrap();
    let bind = |path: &std::path::Path, port: u16| {
        let mut config = Config::for_file(path);
        config.listen = vec![Listen::Tcp(([127, 0, 0, 1], port).into())];
        config.timeouts.lock = Duration::from_millis(10);
        runtime.block_on(Server::bind(config)).map(|_| ())
    };
    let good = folder.path().join("good.db");
    assert!(matches!(bind(&good, server.address.port()), Err(Error::Listen { .. })));
    assert!(matches!(bind(folder.path(), 0), Err(Error::Open(_))));
    let text = folder.path().join("text");
    std::fs::write(&text, "not a database\n".repeat(1_000)).unwrap();
    let error = bind(&text, 0).unwrap_err();
    assert!(matches!(error, Error::Open(boltkv_storage::Error::NotABoltFile)), "{error}");
    assert_eq!(std::fs::read_to_string(&text).unwrap(), "not a database\n".repeat(1_000), "it is left as it was");
    let held = Options::new().open(&good).unwrap();
    assert!(matches!(bind(&good, 0), Err(Error::Open(boltkv_storage::Error::AlreadyOpen { .. }))));
    drop(held);
    bind(&good, 0).unwrap();
}
