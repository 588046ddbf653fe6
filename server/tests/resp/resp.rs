//! The Redis dialect on its connections: ports, pieces, limits, clients that do not go on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::common::resp::{Value, encode};
use crate::common::{PATIENCE, Resp, TestServer, connect, eventually, read_to_end};
use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{MAX_ARGS, MAX_INLINE};
use boltkv_server::{Config, Grant, Listen, Proof};

/// Nothing in these tests that is to end by itself takes longer than it must.
const SHORT: Duration = Duration::from_millis(50);
const MAX_FRAME: usize = 1 << 20;
/// The longest value that fits, under a short key.
const LONG: usize = MAX_FRAME - 100;

fn of_redis(config: &mut Config) {
    config.listen = vec![Listen::Redis(([127, 0, 0, 1], 0).into())];
}

/// As little memory as a server can have.
fn tight(config: &mut Config) {
    config.limits.max_frame = MAX_FRAME;
    config.limits.memory = Some(4 * MAX_FRAME);
}

fn guarded(config: &mut Config) {
    let proof = Proof::Token(Grant::digest(b"token"));
    config.grants =
        Some(vec![Grant { name: "t".into(), proof, rights: vec!["admin".parse().unwrap()], expires: None }]);
}

/// What a server says to these bytes until it closes the connection, which it must.
fn told(server: &TestServer, bytes: &[u8]) -> String {
    let mut socket = connect(server.address);
    // It may have heard enough before the end.
    let _ = socket.write_all(bytes);
    String::from_utf8(read_to_end(&mut socket)).unwrap()
}

// Promises: ops-redis, resp-port.
#[test]
fn a_port_of_its_own_takes_lines_from_the_first_byte_on() {
    let server = TestServer::start_with(of_redis);
    let mut client = server.resp();
    client.send("PING\r\nset k \"a\\x62\"\nGET k\r\n\r\n");
    assert_eq!([client.reply(), client.reply()].map(|reply| reply.text()), ["PONG", "OK"]);
    assert_eq!((client.reply(), client.say("GET k")), (Value::Bulk(b"ab".to_vec()), "ab".to_owned()));
    client.send("PING\r\n");
    assert_eq!(client.reply().text(), "PONG", "lines and arrays by turns");
    let mut binary = crate::common::binary::Binary::connect(server.address);
    binary.send(b"\0\0\0\x06\0\0\0\x01\x02\0\n");
    let (id, error) = binary.error();
    assert_eq!((id, error.code), (0, ErrorCode::Unsupported), "it would wait for a frame in vain");
    assert!(error.message.contains("clients of Redis"), "{}", error.message);
    assert_eq!(binary.rest(), b"");
    assert_eq!(
        client.say("INFO server").lines().filter(|line| line.ends_with(&server.address.port().to_string())).count(),
        1
    );
}

// Promises: resp-first-byte.
#[test]
fn elsewhere_an_array_comes_first_and_lines_may_follow() {
    let server = TestServer::start();
    let mut client = server.resp();
    assert_eq!(client.say("PING"), "PONG");
    client.send("ping\r\n*1\r\n$4\r\nPING\r\n");
    assert_eq!([client.reply(), client.reply()].map(|reply| reply.text()), ["PONG", "PONG"]);
    assert_eq!(server.text().ask("PING"), "PONG", "another connection begins with a line, which is text");
}

// Promises: resp-http.
#[test]
fn nothing_is_done_of_what_a_browser_sends() {
    let server = TestServer::start_with(of_redis);
    let body = "\r\n\r\nSET k v\r\n";
    for request in ["POST / HTTP/1.1", "GET / HTTP/1.1", "PUT /x HTTP/1.1"] {
        let told = told(&server, format!("{request}\r\nHost: db.example.org:6379{body}").as_bytes());
        assert!(told.ends_with("-ERR that is HTTP, which is not spoken here\r\n"), "{told}");
    }
    assert_eq!(server.resp().say("GET k"), "(nil)");
}

// Promises: resp-limits.
#[test]
fn what_goes_beyond_a_limit_is_told_as_redis_tells_it_and_the_connection_ends() {
    let server = TestServer::start_with(|config| {
        of_redis(config);
        tight(config);
    });
    let many = "1".repeat(MAX_INLINE);
    let two_thirds = "x".repeat(MAX_FRAME / 3 * 2);
    let cases: [(String, &str); 14] = [
        ("*x\r\n".into(), "invalid multibulk length"),
        ("*+1\r\n$4\r\nPING\r\n".into(), "invalid multibulk length"),
        (format!("*{}\r\n", MAX_ARGS + 1), "invalid multibulk length: a request has at most 131072 words"),
        (format!("*{}\r\n", u64::MAX), "invalid multibulk length"),
        (format!("*{many}"), "too big mbulk count string"),
        ("*1\r\n$x\r\n".into(), "invalid bulk length"),
        ("*1\r\n$-1\r\n".into(), "invalid bulk length"),
        ("*1\r\n$04\r\nPING\r\n".into(), "invalid bulk length"),
        (
            format!("*1\r\n${}\r\n", MAX_FRAME + 1),
            "invalid bulk length: a request has at most 1048576 bytes (--max-frame)",
        ),
        (format!("*1\r\n${many}"), "too big bulk count string"),
        ("*1\r\nPING\r\n".into(), "expected '$', got 'P'"),
        (many.clone(), "too big inline request"),
        ("set \"a\r\n".into(), "unbalanced quotes in request"),
        (
            format!("*2\r\n${len}\r\n{two_thirds}\r\n${len}\r\n", len = two_thirds.len()),
            "a request has at most 1048576 bytes (--max-frame)",
        ),
    ];
    for (sent, error) in cases {
        let before = "*1\r\n$4\r\nPING\r\n";
        let told = told(&server, format!("{before}{sent}").as_bytes());
        let start: String = sent.chars().take(40).collect();
        assert_eq!(told, format!("+PONG\r\n-ERR Protocol error: {error}\r\n"), "{start}");
    }
    let words = vec!["k"; MAX_ARGS];
    assert_eq!(server.resp().ask(&words).text().split(',').next(), Some("ERR unknown command 'k'"), "as many as fit");
    assert_eq!(server.resp().say("PING"), "PONG");
}

// Promises: resp-strangers.
#[test]
fn who_has_not_said_who_he_is_has_less_room() {
    let server = TestServer::start_with(guarded);
    let error = |sent: &str| told(&server, sent.as_bytes());
    assert_eq!(error("*11\r\n"), "-ERR Protocol error: unauthenticated multibulk length\r\n");
    assert_eq!(error("*2\r\n$4\r\nAUTH\r\n$4097\r\n"), "-ERR Protocol error: unauthenticated bulk length\r\n");
    let long = format!("*10\r\n{}", format!("$1000\r\n{}\r\n", "x".repeat(1_000)).repeat(9));
    assert_eq!(error(&long), "-NOAUTH Authentication required.\r\n");
    assert_eq!(
        error(&format!("*1\r\n$4\r\nPING\r\n{}", "x".repeat(10_000))),
        "-NOAUTH Authentication required.\r\n".repeat(2)
    );
}

// Promises: resp-unfinished.
#[test]
fn an_array_that_does_not_end_is_told_so_and_closed() {
    let server = TestServer::start_with(|config| config.timeouts.request = 2 * SHORT);
    for rest in [
        "*",
        "*3\r\n",
        "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nva",
        &format!("*2\r\n$4\r\nECHO\r\n$100000\r\n{}", "x".repeat(50_000)),
    ] {
        let mut client = server.resp();
        client.send(format!("*1\r\n$4\r\nPING\r\n{rest}"));
        assert_eq!(client.reply().text(), "PONG");
        let text = client.reply().text();
        assert!(text.starts_with("ERR MALFORMED "), "{text}");
        assert_eq!(client.try_reply(), None);
    }
    eventually(|| server.text().ask_all("STATS").contains(&"memory_used 0".to_owned()));
}

fn connections(server: &TestServer) -> usize {
    server.resp().say("CLIENT LIST").lines().count() - 1
}

// Promises: resp-unread.
#[test]
fn who_takes_no_reply_is_reset_and_others_are_served() {
    let server = TestServer::start_with(|config| {
        tight(config);
        // What a client could not send is not whole.
        config.timeouts.request = 4 * SHORT;
        config.timeouts.idle = 10 * SHORT;
        config.timeouts.reply = 4 * SHORT;
        config.timeouts.stream_stall = 2 * SHORT;
    });
    let value = vec![b'v'; LONG];
    server.resp().ask(&[&b"SET"[..], b"k", &value]);
    let gets = encode(&["GET", "k"]).repeat(100);
    let echoes = encode(&[&b"ECHO"[..], &value]).repeat(20);
    let stuffed = |sent: &[u8]| {
        let mut socket = connect(server.address);
        socket.set_write_timeout(Some(2 * SHORT)).unwrap();
        // What the server does not take stays here.
        let _ = socket.write_all(sent);
        socket
    };
    let mut clients = [stuffed(&gets), stuffed(&echoes), stuffed(&echoes)];
    assert_eq!(server.resp().say("PING"), "PONG");
    eventually(|| connections(&server) == 0);
    eventually(|| server.text().ask_all("STATS").contains(&"memory_used 0".to_owned()));
    let first: &mut TcpStream = &mut clients[0];
    let mut buffer = Vec::new();
    assert!(first.read_to_end(&mut buffer).is_err() || buffer.len() < 100 * LONG);
}

// Promises: resp-memory.
#[test]
fn half_requests_take_no_more_than_the_memory_there_is_and_others_are_served() {
    let server = TestServer::start_with(tight);
    let whole = encode(&[&b"SET"[..], b"k", &vec![b'v'; LONG]]);
    let halves: Vec<_> = (0..30)
        .map(|_| {
            let mut client = server.resp();
            client.socket.set_write_timeout(Some(2 * SHORT)).unwrap();
            // What the server does not take stays with the system.
            let _ = client.socket.write_all(&whole[..LONG / 2]);
            client
        })
        .collect();
    let mut client = server.resp();
    assert_eq!((client.say("SET small v"), client.say("GET small")), ("OK".to_owned(), "v".to_owned()));
    let used = server.text().ask_all("STATS");
    let used = used.iter().find_map(|line| line.strip_prefix("memory_used ")).unwrap().parse::<usize>().unwrap();
    assert!(used > 0 && used <= 4 * MAX_FRAME, "{used}");
    drop(halves);
    let mut longest = server.resp();
    longest.send(&whole);
    assert_eq!(longest.reply().text(), "OK", "there is memory again");
}

// Promises: resp-order.
#[test]
fn a_pipeline_in_pieces_is_answered_in_its_order() {
    let server = TestServer::start();
    let mut client: Resp = server.resp();
    let sent: Vec<u8> =
        (0..300).flat_map(|n| [encode(&["SET", "k", &n.to_string()]), encode(&["GET", "k"])].concat()).collect();
    for piece in sent.chunks(11) {
        client.send(piece);
    }
    for n in 0..300 {
        assert_eq!((client.reply().text(), client.reply().text()), ("OK".to_owned(), n.to_string()));
    }
}

// Promises: resp-memory.
#[test]
fn who_queues_a_transaction_never_waits_for_memory_that_others_keep_for_theirs() {
    let server = TestServer::start_with(|config| {
        tight(config);
        // No deadline is to set anything free.
        config.timeouts.request = 20 * PATIENCE;
    });
    let mut clients: Vec<_> = (0..6).map(|_| server.resp()).collect();
    let part = vec![b'v'; MAX_FRAME / 8];
    for client in &mut clients {
        assert_eq!(client.say("MULTI"), "OK");
    }
    let mut refused = 0;
    for round in 0..6 {
        for client in &mut clients {
            let reply = client.ask(&[&b"SET"[..], format!("key {round}").as_bytes(), &part]).text();
            refused += usize::from(reply.contains("OVERLOADED"));
            assert!(reply == "QUEUED" || reply.contains("OVERLOADED"), "{reply}");
        }
    }
    assert!(refused > 0, "all of it is more than there is");
    assert_eq!(server.resp().ask(&[&b"SET"[..], b"k", &vec![b'v'; LONG]]).text(), "OK", "others have the rest");
    let execs: Vec<_> = clients.iter_mut().map(|client| client.tell("EXEC")).collect();
    let done = execs.iter().filter(|done| !done.starts_with("-EXECABORT")).count();
    assert!(done > 0 && done < clients.len(), "{done}");
    eventually(|| server.text().ask_all("STATS").contains(&"memory_used 0".to_owned()));
}

// Promises: resp-memory.
#[test]
fn watched_keys_take_half_of_the_memory_at_most() {
    let server = TestServer::start_with(tight);
    let mut client = server.resp();
    let mut watched = 0;
    let refused = loop {
        let reply = client.say(&format!("WATCH key{watched}"));
        if reply != "OK" {
            break reply;
        }
        watched += 1;
        assert!(watched < 1 << 20, "there is a limit");
    };
    assert!(refused.contains("OVERLOADED"), "{refused}");
    assert_eq!(server.resp().ask(&[&b"SET"[..], b"k", &vec![b'v'; LONG]]).text(), "OK", "others have the rest");
    assert_eq!(client.say("UNWATCH"), "OK");
    eventually(|| server.text().ask_all("STATS").contains(&"memory_used 0".to_owned()));
}
