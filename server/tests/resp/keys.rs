//! Keys and hashes of the Redis dialect.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::collections::BTreeSet;

use crate::common::TestServer;
use crate::common::resp::Value;
use boltkv_server::Clock;

const WRONG: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn a_hash_is_a_bucket_and_goes_with_its_last_field() {
    let server = TestServer::start();
    let (mut client, mut text) = (server.resp(), server.text());
    let dialogue = [
        ("HSET h a 1 b 2 a 3", "2"),
        ("HGET h a", r#""3""#),
        ("HMGET h b none a", r#"["2" nil "3"]"#),
        ("HLEN h", "2"),
        ("HEXISTS h a", "1"),
        ("HSTRLEN h a", "1"),
        ("HKEYS h", r#"["a" "b"]"#),
        ("HVALS h", r#"["3" "2"]"#),
        ("HSETNX h a 9", "0"),
        ("HSETNX h c 9", "1"),
        ("HINCRBY h c -10", "-1"),
        ("HINCRBYFLOAT h c 1.5", r#""0.5""#),
        ("HSET h a", "-ERR wrong number of arguments for 'hset' command"),
        ("TYPE h", "hash"),
        ("GET h", WRONG),
        ("HDEL h a b nothing", "2"),
        ("HDEL h c", "1"),
        ("EXISTS h", "0"),
        ("HSET h x y", "1"),
    ];
    client.talk(&dialogue);
    assert_eq!(text.ask("BUCKET USE default/h"), "OK");
    assert_eq!(text.ask("GET x"), "y");
    assert_eq!(client.tell("SET h text"), "OK", "SET takes the place of whatever there was");
    assert_eq!(client.tell("HGET h x"), WRONG);
}

#[test]
fn keys_and_fields_of_no_bytes_have_a_name_in_the_file() {
    let server = TestServer::start();
    let (mut client, mut text) = (server.resp(), server.text());
    let mut ask = |words: &[&str]| client.tell_words(words);
    assert_eq!(ask(&["SET", "", "nothing"]), "OK");
    assert_eq!(ask(&["GET", ""]), r#""nothing""#);
    assert_eq!(ask(&["HSET", "h", "", "none"]), "1");
    assert_eq!(ask(&["HGETALL", "h"]), r#"["" "none"]"#);
    assert_eq!(ask(&["HMGET", "h", "", "x"]), r#"["none" nil]"#);
    assert_eq!(ask(&["KEYS", "*"]), r#"["" "h"]"#);
    assert_eq!(ask(&["SCAN", "0"]), r#"["0" ["" "h"]]"#);
    assert_eq!(text.ask("GET boltkv.empty"), "nothing");
    assert_eq!(ask(&["EXPIRE", "", "100"]), "1");
    assert_eq!(ask(&["RENAME", "", "a"]), "OK");
    assert_eq!(ask(&["TTL", "a"]), "100");
    assert_eq!(ask(&["DEL", "", "a"]), "1");
}

#[test]
fn a_bucket_that_holds_buckets_is_no_hash() {
    let server = TestServer::start();
    let (mut client, mut text) = (server.resp(), server.text());
    assert_eq!(text.ask("BUCKET CREATE default/b/within"), "OK");
    let dialogue =
        [("TYPE b", "bucket"), ("HGETALL b", WRONG), ("HSET b f v", WRONG), ("DEL b", "1"), ("TYPE b", "none")];
    client.talk(&dialogue);
}

#[test]
fn what_takes_a_keys_place_spares_a_bucket_that_holds_buckets() {
    let server = TestServer::start();
    let (mut client, mut text) = (server.resp(), server.text());
    assert_eq!(text.ask("BUCKET CREATE default/b/within"), "OK");
    client.talk(&[("SET a 1", "OK"), ("HSET h f v", "1")]);
    for command in [
        "SET b v",
        "SET b v XX",
        "SET b v KEEPTTL",
        "SET b v GET",
        "SETEX b 100 v",
        "PSETEX b 100 v",
        "GETSET b v",
        "MSET x 1 b v",
        "APPEND b v",
        "SETRANGE b 0 v",
        "SETBIT b 0 1",
        "INCR b",
        "BITOP NOT b a",
        "BITOP NOT b none",
        "RENAME a b",
        "RENAME h b",
        "COPY a b REPLACE",
        "HSET b f v",
        "HDEL b within",
    ] {
        assert_eq!(client.tell(command), WRONG, "{command}");
    }
    let Value::Bulk(dump) = client.ask(&["DUMP", "a"]) else { panic!("no dump") };
    assert_eq!(client.tell_words(&[b"RESTORE", &b"b"[..], b"0", &dump, b"REPLACE"]), WRONG);
    client.talk(&[
        ("EXISTS x", "0"),
        ("SETNX b v", "0"),
        ("MSETNX b v", "0"),
        ("RENAMENX a b", "0"),
        ("GET a", r#""1""#),
    ]);
    assert_eq!(text.ask("BUCKET USE default/b/within"), "OK", "nothing of it was lost");
    // It may be named itself: to be given another place, a time, and to be removed.
    let dialogue = [
        ("RENAME b c", "OK"),
        ("TYPE c", "bucket"),
        ("EXPIRE c 100", "1"),
        ("PERSIST c", "1"),
        ("COPY c d", WRONG),
        ("MOVE c 1", "1"),
        ("SELECT 1", "OK"),
        ("TYPE c", "bucket"),
        ("DEL c", "1"),
        ("TYPE c", "none"),
    ];
    client.talk(&dialogue);
}

#[test]
fn a_scan_of_what_is_not_there_has_ended_wherever_it_was() {
    let server = TestServer::start();
    let mut client = server.resp();
    client.talk(&[("HSCAN none 5", r#"["0" []]"#), ("SCAN 5", r#"["0" []]"#), ("SET k v", "OK")]);
    assert!(client.tell("SCAN 5").starts_with("-ERR invalid cursor"));
    assert!(client.tell("HSCAN none x").starts_with("-ERR invalid cursor"));
}

#[test]
fn maps_are_maps_and_nulls_nulls_where_resp3_is_spoken() {
    let server = TestServer::start();
    let mut client = server.resp();
    client.tell("HSET h a 1 b 2");
    assert!(client.tell("HELLO 3").starts_with('{'));
    assert_eq!(client.tell("HGETALL h"), r#"{"a" "1" "b" "2"}"#);
    client.send(b"*2\r\n$3\r\nGET\r\n$4\r\nnone\r\n");
    assert_eq!(client.reply().shown(), "nil");
    assert_eq!(client.tell("HRANDFIELD h -1 WITHVALUES").len(), r#"[["a" "1"]]"#.len());
}

#[test]
fn keys_are_renamed_copied_and_moved_with_their_times() {
    let server = TestServer::start();
    let mut client = server.resp();
    let dialogue = [
        ("SET a 1", "OK"),
        ("HSET h f v", "1"),
        ("EXPIRE a 1000", "1"),
        ("EXPIRE h 2000", "1"),
        ("RENAME a b", "OK"),
        ("RENAME h g", "OK"),
        ("TTL b", "1000"),
        ("TTL g", "2000"),
        ("RENAME a x", "-ERR no such key"),
        ("RENAMENX b g", "0"),
        ("RENAME b g", "OK"),
        ("GET g", r#""1""#),
        ("TTL g", "1000"),
        ("COPY g c", "1"),
        ("COPY g c", "0"),
        ("HSET h f v", "1"),
        ("COPY h c REPLACE", "1"),
        ("TTL c", "-1"),
        ("HGET c f", r#""v""#),
        ("COPY h h", "-ERR source and destination objects are the same"),
        ("COPY h k DB 3", "1"),
        ("MOVE g 3", "1"),
        ("EXISTS g", "0"),
        ("MOVE h 0", "-ERR source and destination objects are the same"),
        ("SWAPDB 0 3", "OK"),
        ("KEYS *", r#"["g" "k"]"#),
        ("TTL g", "1000"),
        ("SWAPDB 5 6", "OK"),
        ("DBSIZE", "2"),
        ("FLUSHDB", "OK"),
        ("DBSIZE", "0"),
        ("SELECT 3", "OK"),
        ("DBSIZE", "2"),
    ];
    client.talk(&dialogue);
    assert!(server.db.check().unwrap().is_empty());
}

#[test]
fn what_has_expired_is_in_no_reply() {
    let clock = Clock::by_hand(1_000_000);
    let server = TestServer::start_with(|config| config.clock = clock.clone());
    let mut client = server.resp();
    client.tell_all(&["SET a 1", "SET b 2", "HSET h f v", "PEXPIRE a 100", "PEXPIRE h 100"]);
    assert_eq!(client.tell("PTTL a"), "100");
    clock.set(1_000_100);
    let dialogue = [
        ("GET a", "nil"),
        ("EXISTS a b h", "1"),
        ("KEYS *", r#"["b"]"#),
        ("DBSIZE", "1"),
        ("SCAN 0", r#"["0" ["b"]]"#),
        ("RANDOMKEY", r#""b""#),
        ("HGETALL h", "[]"),
        ("TTL a", "-2"),
        ("TYPE h", "none"),
        ("RENAME a x", "-ERR no such key"),
        ("HSET h g w", "1"),
        ("HGETALL h", r#"["g" "w"]"#),
        ("TTL h", "-1"),
        ("EXPIRE b -1", "1"),
        ("DBSIZE", "1"),
        ("EXPIRE b 10 NX GT", "-ERR NX and XX, GT or LT options at the same time are not compatible"),
        ("EXPIRE b 9223372036854775807", "-ERR invalid expire time in 'expire' command"),
    ];
    client.talk(&dialogue);
}

#[test]
fn a_scan_tells_every_key_that_stays_once_whatever_else_comes_and_goes() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.resp(), server.resp());
    let sets: Vec<_> = (0..1_000).map(|n| format!("SET key:{n:05} v")).collect();
    client.tell_all(&sets.iter().map(String::as_str).collect::<Vec<_>>());
    let (mut cursor, mut found, mut steps) = ("0".to_owned(), Vec::new(), 0);
    loop {
        let reply = client.tell(&format!("SCAN {cursor} COUNT 13 MATCH key:*"));
        let mut words = reply.split(['"', '[', ']', ' ']).filter(|word| !word.is_empty());
        cursor = words.next().unwrap().to_owned();
        found.extend(words.map(str::to_owned));
        if cursor == "0" {
            break;
        }
        other.tell_all(&[&*format!("SET other:{steps} v"), &*format!("DEL other:{}", steps / 2)]);
        steps += 1;
    }
    assert!(steps >= 1_000 / 13);
    assert_eq!(found.len(), 1_000);
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 1_000);
    assert_eq!(client.tell("SCAN x"), "-ERR invalid cursor");
    assert!(client.tell("SCAN 12345").starts_with("-ERR invalid cursor: "));
}

#[test]
fn what_looks_at_everything_is_told_whole_however_large_it_is() {
    let server = TestServer::start();
    let mut client = server.resp();
    let value = "v".repeat(300);
    for chunk in (0..20_000).collect::<Vec<_>>().chunks(500) {
        let fields: Vec<_> = chunk.iter().map(|n| format!("f{n:05} {value}")).collect();
        assert_eq!(client.tell(&format!("HSET h {}", fields.join(" "))), "500");
    }
    assert_eq!(client.tell("HLEN h"), "20000");
    let all = client.tell("HGETALL h");
    assert_eq!(all.matches(&value).count(), 20_000);
    assert_eq!(client.tell("HKEYS h").matches("\"f").count(), 20_000);
    assert_eq!(client.tell("HSCAN h 0 COUNT 1000000").matches("\"f").count(), 10_000);
    assert_eq!(client.tell("HRANDFIELD h 15000").split(' ').collect::<BTreeSet<_>>().len(), 15_000);
}

#[test]
fn a_value_larger_than_a_connection_s_own_room_is_told_and_so_are_many() {
    let server = TestServer::start();
    let mut client = server.resp();
    let value = "x".repeat(3 << 20);
    assert_eq!(client.tell_words(&["SET", "large", &value]), "OK");
    assert_eq!(client.tell("GET large").len(), value.len() + 2);
    assert_eq!(client.tell("MGET large large none").len(), 2 * value.len() + 2 * 2 + 2 + 3 + 2);
    assert_eq!(client.tell("STRLEN large"), value.len().to_string());
}

#[test]
fn what_takes_more_room_than_there_is_is_refused_before_it_is_taken() {
    let server = TestServer::start_with(|config| {
        config.limits.max_frame = 1 << 20;
        config.limits.memory = Some(8 << 20);
    });
    let mut client = server.resp();
    // Two bytes in a list that is packed a hundred times over, for each of a million fields.
    let mut dump = b"\x10\xc3\x81".to_vec();
    dump.extend_from_slice(&(1_u64 << 40).to_be_bytes());
    dump.extend_from_slice(&[0; 200]);
    dump.extend_from_slice(&[10, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let reply = client.tell_words(&[b"RESTORE", &b"h"[..], b"0", &dump]);
    assert!(reply.starts_with("-ERR "), "{reply}");
    let value = "v".repeat(1 << 19);
    assert_eq!(client.tell_words(&["SET", "k", &value]), "OK");
    let mut copies = vec!["MULTI".to_owned()];
    copies.extend((0..60).map(|n| format!("COPY k c{n}")));
    copies.push("EXEC".to_owned());
    let replies = client.tell_all(&copies.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(replies.last().unwrap().contains("OVERLOADED"), "{:?}", replies.last());
    assert_eq!(client.tell("DBSIZE"), "1", "nothing of it was done");
    let long = "x".repeat(2_000);
    assert!(client.tell(&format!("KEYS *[{long}]")).contains("at most 1024"));
}

#[test]
fn a_field_that_has_expired_is_neither_copied_nor_drawn() {
    let clock = Clock::by_hand(1_000_000);
    let server = TestServer::start_with(|config| config.clock = clock.clone());
    let (mut client, mut text) = (server.resp(), server.text());
    client.tell("HSET h a 1 b 2 c 3");
    text.ask("BUCKET USE default/h");
    assert_eq!((text.ask("PEXPIRE a 100"), text.ask("PEXPIRE c 5000")), ("1".to_owned(), "1".to_owned()));
    clock.set(1_000_100);
    let dialogue = [
        ("HRANDFIELD h 10", r#"["b" "c"]"#),
        ("COPY h h2", "1"),
        ("HGETALL h2", r#"["b" "2" "c" "3"]"#),
        ("HINCRBY h2 c 1", "4"),
    ];
    for (said, expected) in dialogue {
        let mut reply = client.tell(said);
        if said.starts_with("HRANDFIELD") && reply == r#"["c" "b"]"# {
            reply = expected.to_owned();
        }
        assert_eq!(reply, expected, "{said}");
    }
    clock.set(1_005_001);
    assert_eq!(client.tell("HGETALL h2"), r#"["b" "2"]"#, "the time was copied, and stayed when the number was raised");
}

#[test]
fn what_is_dumped_is_restored() {
    let server = TestServer::start();
    let mut client = server.resp();
    client.tell_all(&["SET s value", "HSET h a 1 b 2"]);
    for key in ["s", "h"] {
        client.send(format!("*2\r\n$4\r\nDUMP\r\n$1\r\n{key}\r\n").as_bytes());
        let dump = unescape(&client.reply().shown());
        let restore = |name: &str, more: &[&[u8]]| {
            let mut words: Vec<&[u8]> = vec![b"RESTORE", name.as_bytes(), b"0", &dump];
            words.extend(more);
            crate::common::resp::encode(&words)
        };
        client.send(restore("copy", &[]));
        assert_eq!(client.reply().shown(), "OK");
        client.send(restore("copy", &[]));
        assert_eq!(client.reply().shown(), "-BUSYKEY Target key name already exists.");
        client.send(restore("copy", &[b"REPLACE"]));
        assert_eq!(client.reply().shown(), "OK");
        assert_eq!(client.tell("TYPE copy"), client.tell(&format!("TYPE {key}")));
        client.tell("DEL copy");
    }
    assert_eq!(client.tell("RESTORE x 0 nonsense"), "-ERR DUMP payload version or checksum are wrong");
    assert_eq!(client.tell("RESTORE x -1 nonsense"), "-ERR Invalid TTL value, must be >= 0");
}

/// The bytes that a reply shows.
fn unescape(shown: &str) -> Vec<u8> {
    let text = &shown[1..shown.len() - 1];
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, behind @ ..] = rest {
        rest = match (first, behind) {
            (b'\\', [b'x', high, low, behind @ ..]) => {
                let digits = [*high, *low];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
                behind
            }
            (b'\\', [escaped, behind @ ..]) => {
                bytes.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => *other,
                });
                behind
            }
            (byte, behind) => {
                bytes.push(*byte);
                behind
            }
        };
    }
    bytes
}
