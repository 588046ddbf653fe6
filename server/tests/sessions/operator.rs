//! Who is connected, the end of a connection, and what was slow: in both dialects.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::time::Duration;

use crate::common::binary::frame;
use crate::common::{TestServer, Text, eventually};
use boltkv_protocol::{ErrorCode, OperatorRequest, Reply};

/// Rows as text.
fn rows(reply: Reply) -> Vec<Vec<(String, String)>> {
    let Reply::Rows(rows) = reply else { panic!("{reply:?}") };
    let text = |bytes: &bytes::Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    rows.iter().map(|row| row.iter().map(|(name, value)| (text(name), text(value))).collect()).collect()
}

#[track_caller]
fn field<'r>(row: &'r [(String, String)], name: &str) -> &'r str {
    &row.iter().find(|(field, _)| field == name).unwrap_or_else(|| panic!("no {name} in {row:?}")).1
}

fn serve(slow: Duration) -> TestServer {
    TestServer::start_with(|config| config.timeouts.slow = slow)
}

// Promises: wire-client-list, ops-clients.
#[test]
fn the_connections_are_listed_with_what_they_are_and_did() {
    let server = serve(Duration::MAX);
    let mut text = server.text();
    assert_eq!(text.ask("SET secret-key secret-value"), "OK");
    let mut binary = server.binary();
    let listed = rows(binary.ask(&OperatorRequest::ListClients { after: 0 }.into()));
    assert_eq!(listed.len(), 2);
    let [of_text, of_binary] = &listed[..] else { panic!("{listed:?}") };
    for (name, expected) in
        [("dialect", "text"), ("command", "SET"), ("requests", "1"), ("in_flight", "0"), ("tls", "0")]
    {
        assert_eq!(field(of_text, name), expected, "{name}");
    }
    assert_eq!(field(of_text, "received_bytes"), "SET secret-key secret-value\r\n".len().to_string());
    // It has said nothing since: what it has taken is told all the same, as soon as the system has it.
    let mut again = || rows(binary.ask(&OperatorRequest::ListClients { after: 0 }.into()));
    eventually(|| field(&again()[0], "sent_bytes") == "OK\n".len().to_string());
    assert_eq!((field(of_binary, "dialect"), field(of_binary, "command")), ("binary", "HELLO"));
    assert!(!field(of_binary, "name").is_empty(), "what it calls itself in HELLO");
    assert!(!format!("{listed:?}").contains("secret"), "{listed:?}");

    text.send("CLIENT LIST\r\n");
    let lines = [text.line(), text.line(), text.line()];
    assert!(lines[0].starts_with(&format!("id={} peer=", field(of_text, "id"))), "{lines:?}");
    assert!(lines[1].contains(" dialect=binary ") && lines[1].contains(" command=\"CLIENT LIST\" "), "{lines:?}");
    assert_eq!(lines[2], "END");
    drop(binary);
    eventually(|| text.ask_all("CLIENT LIST").len() == 1);
}

// Promises: wire-client-kill.
#[test]
fn a_connection_is_ended_and_the_others_go_on() {
    let server = serve(Duration::MAX);
    let (mut one, mut two) = (server.binary(), server.binary());
    let listed = rows(one.ask(&OperatorRequest::ListClients { after: 0 }.into()));
    let id: u64 = field(&listed[1], "id").parse().unwrap();
    assert_eq!(one.ask(&OperatorRequest::KillClient { client: id }.into()), Reply::Closed);
    assert_eq!(two.rest(), b"");
    assert_eq!(one.ask_code(&OperatorRequest::KillClient { client: id + 10 }.into()), ErrorCode::KeyNotFound);
    assert_eq!(one.ping(b"x"), "x");
    let mut text = server.text();
    assert_eq!(text.ask("CLIENT KILL 999"), "ERR KEY_NOT_FOUND there is no connection 999");
    assert!(text.ask("CLIENT KILL x").starts_with("ERR MALFORMED "));
}

// Promises: wire-slowlog, ops-slowlog.
#[test]
fn what_takes_long_is_kept_without_what_was_in_it() {
    let server = serve(Duration::ZERO);
    let mut text = server.text();
    assert_eq!(text.ask("SET secret-key secret-value"), "OK");
    assert_eq!(text.ask("GET secret-key"), "secret-value");
    assert_eq!(text.ask("GET missing"), "(nil)");
    let mut binary = server.binary();
    let slow = rows(binary.ask(&OperatorRequest::SlowLog { most: 3, before: 0 }.into()));
    let told: Vec<_> = slow.iter().map(|row| (field(row, "command"), field(row, "result"))).collect();
    assert_eq!(told, [("GET", "KEY_NOT_FOUND"), ("GET", "ok"), ("SET", "ok")]);
    assert!(!format!("{slow:?}").contains("secret"), "{slow:?}");
    assert!(field(&slow[2], "took_us").parse::<u64>().unwrap() > 0);
    assert_eq!(field(&slow[0], "requests"), "1");
    assert_eq!(binary.ask(&OperatorRequest::ResetSlowLog.into()), Reply::Closed);
    // The forgetting itself took some time, and so it is there.
    let left = rows(binary.ask(&OperatorRequest::SlowLog { most: 0, before: 0 }.into()));
    assert_eq!(left.iter().map(|row| field(row, "command")).collect::<Vec<_>>(), ["SLOWLOG RESET"]);
    assert!(text.ask("SLOWLOG GET 1").starts_with("id="), "and in lines");

    let server = serve(Duration::from_secs(3_600));
    let mut text = server.text();
    assert_eq!(text.ask("SET k v"), "OK");
    assert_eq!(text.ask("SLOWLOG GET"), "END");
    assert_eq!(text.ask("SLOWLOG RESET"), "OK");
}

// Promises: wire-rows.
#[test]
fn rows_come_as_many_as_fit_and_the_rest_is_asked_for() {
    let server = TestServer::start_with(|config| {
        config.timeouts.slow = Duration::ZERO;
        config.limits.slow_log = 500;
    });
    let mut others: Vec<_> = (0..120).map(|_| server.text()).collect();
    for other in &mut others {
        assert_eq!(other.ask("PING"), "PONG");
    }
    let mut binary = server.binary();
    let ids = |rows: &[Vec<(String, String)>]| -> Vec<u64> {
        rows.iter().map(|row| field(row, "id").parse().unwrap()).collect()
    };
    let (mut listed, mut pages) = (Vec::new(), 0);
    loop {
        let after = listed.last().copied().unwrap_or(0);
        let page = rows(binary.ask(&OperatorRequest::ListClients { after }.into()));
        if page.is_empty() {
            break;
        }
        pages += 1;
        listed.extend(ids(&page));
    }
    assert!(pages > 1 && listed.len() == 121 && listed.is_sorted(), "{pages} pages: {listed:?}");
    let first = ids(&rows(binary.ask(&OperatorRequest::SlowLog { most: 0, before: 0 }.into())));
    assert!(first.len() < 120, "not all fit");
    let before = *first.last().unwrap();
    let next = ids(&rows(binary.ask(&OperatorRequest::SlowLog { most: 2, before }.into())));
    assert_eq!(next, [before - 1, before - 2]);
}

/// A list that takes more than a connection has of its own needs memory, which others may have.
#[test]
fn where_the_servers_memory_is_taken_a_long_list_is_refused_and_not_cut() {
    const FRAME: usize = 1 << 20;
    let server = TestServer::start_with(|config| {
        config.limits.max_frame = FRAME;
        config.limits.memory = Some(4 * FRAME);
    });
    let mut text = server.text();
    let mut many: Vec<_> = (0..300).map(|_| server.text()).collect();
    for client in &mut many {
        assert_eq!(client.ask("PING"), "PONG");
    }
    let used = |text: &mut Text| -> usize {
        let figures = text.ask_all("STATS");
        figures.iter().find_map(|line| line.strip_prefix("memory_used ")).unwrap().parse().unwrap()
    };
    assert_eq!(text.ask_all("CLIENT LIST").len(), 301);
    // Half of it is the connections', and two frames that do not end take all of that.
    let frames = [1, 2].map(|frames| {
        let mut client = server.binary();
        let whole = frame(9, 0x02, 0, &vec![b'p'; FRAME - 100]);
        client.send(&whole[..whole.len() - 1]);
        eventually(|| used(&mut text) == frames * FRAME);
        client
    });
    for _ in 0..2 {
        let refused = text.ask("CLIENT LIST");
        assert!(refused.starts_with("ERR OVERLOADED there is no memory for the reply; "), "{refused}");
    }
    assert_eq!(text.ask("PING"), "PONG", "nothing stands behind the error");
    drop((frames, many));
    eventually(|| used(&mut text) == 0);
    eventually(|| text.ask_all("CLIENT LIST").len() == 1);
}
