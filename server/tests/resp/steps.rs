//! Replies that are told in steps, the last of which has nothing more to tell: what comes behind them is done all the same.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::io::Read as _;
use std::time::Duration;

use crate::common::{TestServer, eventually};
use boltkv_server::Clock;
use boltkv_storage::{Db, Options};

/// More entries than a step looks at.
const MANY: usize = 5_000;

/// `a` before [`MANY`] other keys, so that `KEYS a*` finds nothing in its last step.
fn with_keys() -> TestServer {
    let server = TestServer::start();
    let pairs: Vec<_> = (0..MANY).map(|n| format!("b{n} v")).collect();
    assert_eq!(server.resp().tell(&format!("MSET a 1 {}", pairs.join(" "))), "OK");
    server
}

/// A database with a hash of which `a` stays and [`MANY`] fields behind it are gone from 1,000,100 ms on.
fn with_a_hash() -> Db {
    let db = Options::new().open_in_memory().unwrap();
    let server = TestServer::serve(db.clone(), |config| config.clock = Clock::by_hand(1_000_000));
    let fields: Vec<_> = (0..MANY).map(|n| format!("b{n}")).collect();
    let pairs: Vec<_> = fields.iter().map(|field| format!("{field} v")).collect();
    assert_eq!(server.resp().tell(&format!("HSET h a 1 {}", pairs.join(" "))), (MANY + 1).to_string());
    let mut text = server.text();
    assert_eq!(text.ask("BUCKET USE default/h"), "OK");
    let lines: Vec<_> = fields.iter().map(|field| format!("PEXPIRE {field} 100\r\n")).collect();
    text.send(lines.concat());
    for field in fields {
        assert_eq!(text.line(), "1", "{field}");
    }
    server.stop().unwrap();
    db
}

#[test]
fn what_comes_behind_keys_is_done_whether_it_was_there_before_or_comes_later() {
    let server = with_keys();
    let mut client = server.resp();
    client.talk(&[("KEYS a*", r#"["a"]"#), ("PING", "PONG"), ("KEYS a", r#"["a"]"#), ("KEYS a?", "[]")]);
    assert_eq!(client.tell_all(&["KEYS a*", "PING", "KEYS a*", "GET a"]), [r#"["a"]"#, "PONG", r#"["a"]"#, r#""1""#]);
    // Writes go to the writer, and what reads waits for them.
    assert_eq!(client.tell_all(&["KEYS a*", "SET a 2", "GET a"]), [r#"["a"]"#, "OK", r#""2""#]);
}

#[test]
fn what_comes_behind_a_transaction_that_ends_with_keys_is_done() {
    let server = with_keys();
    let mut client = server.resp();
    let transaction = ["MULTI", "GET a", "KEYS a*", "EXEC"];
    let replies = ["OK", "QUEUED", "QUEUED", r#"["1" ["a"]]"#];
    assert_eq!(client.tell_all(&transaction), replies);
    assert_eq!(client.tell("PING"), "PONG");
    assert_eq!(client.tell_all(&[&transaction[..], &["PING"]].concat()), [&replies[..], &["PONG"]].concat());
    // The database in which it leaves the client is that of what follows.
    let within = ["MULTI", "KEYS a*", "SELECT 1", "SELECT 0", "KEYS a*", "SELECT 1", "EXEC", "DBSIZE"];
    assert_eq!(client.tell_all(&within)[6..], [r#"[["a"] OK OK ["a"] OK]"#, "0"]);
}

#[test]
fn what_comes_behind_a_hash_whose_last_fields_have_expired_is_done() {
    // Where nothing is written, they stay.
    let server = TestServer::serve(with_a_hash(), |config| {
        config.read_only = true;
        config.clock = Clock::by_hand(1_000_200);
    });
    for (command, reply) in [("HGETALL h", r#"["a" "1"]"#), ("HKEYS h", r#"["a"]"#), ("HVALS h", r#"["1"]"#)] {
        let mut client = server.resp();
        client.talk(&[(command, reply), ("PING", "PONG"), ("HLEN h", "1")]);
        assert_eq!(client.tell_all(&[command, "PING"]), [reply, "PONG"]);
        let in_transaction = client.tell_all(&["MULTI", command, "EXEC", "PING"]);
        assert_eq!(in_transaction[2..], [format!("[{reply}]"), "PONG".to_owned()]);
    }
}

#[test]
fn who_closes_after_keys_is_gone() {
    let server = with_keys();
    let mut other = server.resp();
    let mut is_alone = || other.say("CLIENT LIST").lines().count() == 1;
    for closes in [true, false] {
        let mut client = server.resp();
        assert_eq!(client.tell("KEYS a*"), r#"["a"]"#);
        if closes {
            drop(client);
        } else {
            client.end();
            assert_eq!(client.try_reply(), None, "the server ends the connection, too");
        }
        eventually(&mut is_alone);
    }
}

// Promises: resp-unread.
#[test]
fn who_does_not_take_a_long_reply_is_reset_and_not_told_of_it_within_the_reply() {
    let server = TestServer::start_with(|config| config.timeouts.stream_stall = Duration::from_millis(100));
    let mut client = server.resp();
    let value = "v".repeat(1_000);
    for n in 0..20 {
        let pairs: Vec<_> = (0..1_000).map(|m| format!("f{n}:{m} {value}")).collect();
        assert_eq!(client.tell(&format!("HSET h {}", pairs.join(" "))), "1000");
    }
    let mut other = server.resp();
    client.send("HGETALL h\r\n");
    eventually(|| other.say("CLIENT LIST").lines().count() == 1);
    let mut taken = Vec::new();
    // Bytes that had arrived may be lost with the connection.
    let _ = client.socket.read_to_end(&mut taken);
    assert!(!taken.windows(16).any(|bytes| bytes == b"SNAPSHOT_EXPIRED"), "it would be an element of the array");
}
