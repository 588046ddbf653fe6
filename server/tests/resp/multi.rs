//! MULTI, EXEC and WATCH of the Redis dialect where nothing is written, and what concerns the connection within them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::{Resp, TestServer};
use boltkv_server::{Clock, Grant, Proof};
use boltkv_storage::Options;

/// A database with a string and a hash, written by a server that has ended.
fn filled() -> boltkv_storage::Db {
    let db = Options::new().open_in_memory().unwrap();
    let server = TestServer::serve(db.clone(), |_| {});
    server.resp().tell_all(&["SET a 1", "HSET h f v g w", "SELECT 1", "SET one 1"]);
    server.stop().unwrap();
    db
}

#[test]
fn a_server_that_takes_no_writes_takes_transactions_that_only_read_and_watches_for_them() {
    let clock = Clock::by_hand(1_000);
    let db = filled();
    let server = TestServer::serve(db.clone(), |config| {
        config.read_only = true;
        config.clock = clock.clone();
    });
    let mut client = server.resp();
    client.talk(&[
        ("WATCH a h nothing", "OK"),
        ("MULTI", "OK"),
        ("GET a", "QUEUED"),
        ("HGETALL h", "QUEUED"),
        ("HGET a f", "QUEUED"),
        ("SELECT 1", "QUEUED"),
        ("KEYS *", "QUEUED"),
        ("PING", "QUEUED"),
        (
            "EXEC",
            r#"["1" ["f" "v" "g" "w"] -WRONGTYPE Operation against a key holding the wrong kind of value OK ["one"] PONG]"#,
        ),
        ("GET one", r#""1""#),
        ("SELECT 0", "OK"),
        ("WATCH a", "OK"),
        ("UNWATCH", "OK"),
        ("MULTI", "OK"),
        ("EXEC", "[]"),
        ("MULTI", "OK"),
        ("GET a", "QUEUED"),
        ("SET a 2", "QUEUED"),
        ("EXEC", "-READONLY the server takes no writes"),
        ("GET a", r#""1""#),
    ]);
    client.talk(&[("WATCH a", "OK"), ("MULTI", "OK"), ("GET a", "QUEUED")]);
    // Whoever has the database may change it all the same: then it is not what was watched.
    db.update(|tx| tx.bucket_mut("default")?.put("a", "3")).unwrap();
    client.talk(&[("EXEC", "nil"), ("GET a", r#""3""#)]);
}

#[test]
fn who_may_only_read_has_transactions_that_only_read() {
    let proof = Proof::Token(Grant::digest(b"reader"));
    let reader = Grant { name: "reader".into(), proof, rights: vec!["read:default".parse().unwrap()], expires: None };
    let server = TestServer::serve(filled(), |config| config.grants = Some(vec![reader]));
    let mut client = server.resp();
    client.talk(&[
        ("AUTH reader", "OK"),
        ("WATCH a", "OK"),
        ("MULTI", "OK"),
        ("GET a", "QUEUED"),
        ("DBSIZE", "QUEUED"),
        ("EXEC", r#"["1" 2]"#),
        ("MULTI", "OK"),
        ("SELECT 1", "QUEUED"),
        ("GET one", "QUEUED"),
    ]);
    assert!(client.tell("EXEC").starts_with("-NOPERM "));
    assert_eq!(client.tell("GET a"), r#""1""#, "it is in the database as before");
    assert!(client.tell_all(&["MULTI", "CLIENT LIST", "EXEC"])[2].starts_with("-NOPERM "));
}

#[test]
fn a_transaction_that_only_reads_waits_for_no_write_and_sees_one_state() {
    let server = TestServer::serve(filled(), |_| {});
    let mut client = server.resp();
    let writing = server.db.begin_mut().unwrap();
    client.talk(&[("MULTI", "OK"), ("GET a", "QUEUED"), ("HLEN h", "QUEUED"), ("EXEC", r#"["1" 2]"#)]);
    writing.rollback();
    // A replaced value and its copy are never seen apart.
    let (mut writer, mut reader) = (server.resp(), server.resp());
    writer.tell("MSET x 0 y 0");
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || {
            for _ in 0..200 {
                let seen = reader.tell_all(&["MULTI", "GET x", "HVALS h", "GET y", "EXEC"]).pop().unwrap();
                let words: Vec<_> = seen.trim_matches(['[', ']']).split(' ').collect();
                assert_eq!(words.first(), words.last(), "{seen}");
            }
        });
        let mut n = 0;
        while !reading.is_finished() {
            n += 1;
            writer.tell(&format!("MSET x {n} y {n}"));
        }
    });
}

#[test]
fn a_transaction_that_only_reads_is_not_done_where_something_watched_has_changed() {
    let clock = Clock::by_hand(1_000);
    let server = TestServer::serve(filled(), |config| config.clock = clock.clone());
    let (mut client, mut other) = (server.resp(), server.resp());
    let begin = ["WATCH a h", "MULTI", "GET a", "SELECT 1"];
    for change in ["SET a 2", "HSET h f 2", "DEL a", "FLUSHALL"] {
        other.tell_all(&["SET a 1", "HSET h f 1"]);
        client.tell_all(&begin);
        other.tell(change);
        assert_eq!(client.tell_all(&["EXEC", "DBSIZE"])[0], "nil", "{change}");
    }
    other.tell_all(&["SET a 1 PX 10", "SELECT 1", "SET one 1"]);
    client.tell_all(&["WATCH a", "MULTI", "PING"]);
    other.tell("SET b 1");
    assert_eq!(client.tell("EXEC"), "[PONG]", "another key");
    client.tell_all(&["WATCH a", "MULTI", "SELECT 1", "DBSIZE"]);
    clock.set(1_010);
    assert_eq!(client.tell_all(&["EXEC", "EXISTS one"]), ["nil", "0"], "its time has come");
    assert_eq!(client.tell_all(&["MULTI", "SELECT 1", "DBSIZE", "EXEC", "EXISTS one"])[3..], ["[OK 2]", "1"]);
}

#[test]
fn a_transaction_that_only_reads_is_told_in_parts_however_much_it_is() {
    let server = TestServer::start_with(|config| {
        config.limits.max_frame = 64 << 10;
        config.limits.memory = Some(16 << 20);
    });
    let mut client = server.resp();
    let value = "v".repeat(60 << 10);
    for key in ["a", "b"] {
        client.tell(&format!("SET {key} {value}"));
    }
    let fields: Vec<_> = (0..101_000).map(|n| format!("{n:06}")).collect();
    for some in fields.chunks(1_000) {
        let words = ["HSET", "h"].into_iter().chain(some.iter().flat_map(|field| [field.as_str(), "1"]));
        assert_eq!(client.tell_words(&words.collect::<Vec<_>>()), "1000");
    }
    let mut lines = vec!["MULTI"];
    lines.extend(std::iter::repeat_n("GET a", 200));
    lines.extend(["MGET a b", "HGETALL h", "HLEN h", "HKEYS a", "PING", "EXEC"]);
    let replies = client.tell_all(&lines).pop().unwrap();
    let (gets, rest) = replies.split_at(1 + 200 * (value.len() + 3));
    assert!(gets[1..].split_terminator(' ').all(|get| get.trim_matches('"') == value));
    assert!(rest.starts_with("-ERR the reply is larger than 65536 bytes (--max-frame) [\"000000\" \"1\" \"000001\""));
    let end = "\"100999\" \"1\"] 101000 -WRONGTYPE Operation against a key holding the wrong kind of value PONG]";
    assert!(rest.ends_with(end), "{}", &rest[rest.len() - 200..]);
    assert_eq!(client.tell("PING"), "PONG");
}

/// What concerns the connection, with its answers.
fn says_who_it_is(client: &mut Resp, write: &str, written: &str) {
    let id = client.tell("CLIENT ID");
    let sent = [
        "MULTI",
        "CLIENT SETNAME somebody",
        "CLIENT GETNAME",
        write,
        "CLIENT ID",
        "CONFIG GET databases",
        "CLIENT NO-EVICT on",
        "PING",
        "WAIT 0 0",
        "CONFIG SET port nonsense",
        "SELECT 16",
        "PING a b",
        "COMMAND COUNT x",
    ];
    let replies = client.tell_all(&sent);
    assert!(replies[1..12].iter().all(|reply| reply == "QUEUED"), "{replies:?}");
    assert_eq!(replies[12], "-ERR wrong number of arguments for 'command|count' command");
    assert_eq!(client.tell("EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
    assert_eq!(client.tell("CLIENT GETNAME"), "nil", "nothing of it was done");
    client.tell_all(&sent[..12]);
    let expected = format!(
        r#"[OK "somebody" {written} {id} ["databases" "16"] OK PONG 0 -ERR CONFIG SET failed (possibly related to argument 'port') - can't set immutable config -ERR DB index is out of range -ERR wrong number of arguments for 'ping' command]"#
    );
    assert_eq!(client.tell("EXEC"), expected);
    assert_eq!(client.tell("CLIENT GETNAME"), r#""somebody""#);
}

#[test]
fn what_concerns_the_connection_is_answered_within_transactions_that_write_and_those_that_do_not() {
    let server = TestServer::start();
    says_who_it_is(&mut server.resp(), "SET a 1", "OK");
    says_who_it_is(&mut server.resp(), "GET a", r#""1""#);
    let (mut client, mut other) = (server.resp(), server.resp());
    for write in ["SET b 1", "GET b"] {
        client.tell_all(&["WATCH a", "MULTI", "CLIENT SETNAME nobody", write]);
        other.tell("INCR a");
        assert_eq!(client.tell_all(&["EXEC", "CLIENT GETNAME"]), ["nil", "nil"], "it was not done");
    }
    let mut lines = vec!["MULTI"];
    lines.extend(std::iter::repeat_n("COMMAND", 65));
    lines.push("EXEC");
    let replies = client.tell_all(&lines);
    assert!(replies[65].starts_with("-ERR TXN_TOO_LARGE"), "{}", replies[65]);
    assert!(replies[66].starts_with("-EXECABORT"));
    // What does not fit is an error in its place.
    lines.remove(1);
    lines.insert(1, "SET c 1");
    let replies = client.tell_all(&lines);
    assert!(replies[66].starts_with("[OK [[\"get\" "), "{}", &replies[66][..100]);
    let small = TestServer::start_with(|config| config.limits.max_frame = 64 << 10);
    let replies = small.resp().tell_all(&lines);
    assert!(replies[66].ends_with("-ERR the reply is larger than 65536 bytes (--max-frame)]"));
}
