//! MULTI, EXEC and WATCH of the Redis dialect.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::TestServer;
use boltkv_server::Clock;

#[test]
fn what_is_said_between_multi_and_exec_is_done_as_one_with_its_replies_in_order() {
    let server = TestServer::start();
    let mut client = server.resp();
    let dialogue = [
        ("SET a 1", "OK"),
        ("MULTI", "OK"),
        ("SET a 2", "QUEUED"),
        ("GET a", "QUEUED"),
        ("HSET h f v", "QUEUED"),
        ("HGETALL h", "QUEUED"),
        ("KEYS *", "QUEUED"),
        ("PING", "QUEUED"),
        ("DEL a", "QUEUED"),
        ("EXEC", r#"[OK "2" 1 ["f" "v"] ["a" "h"] PONG 1]"#),
        ("EXISTS a", "0"),
        ("EXEC", "-ERR EXEC without MULTI"),
    ];
    let before = server.db.stats().txid;
    client.talk(&dialogue);
    assert_eq!(server.db.stats().txid, before + 2, "one transaction for SET and one for all the others");
}

#[test]
fn a_command_that_fails_in_exec_hurts_no_other_and_leaves_nothing_of_itself() {
    let server = TestServer::start();
    let mut client = server.resp();
    let dialogue = [
        ("SET s text", "OK"),
        ("MULTI", "OK"),
        ("HSET s f v", "QUEUED"),
        ("HSET h f v", "QUEUED"),
        ("HINCRBY h f 1", "QUEUED"),
        ("HINCRBY n f 1", "QUEUED"),
        ("SET x 1", "QUEUED"),
        (
            "EXEC",
            "[-WRONGTYPE Operation against a key holding the wrong kind of value 1 -ERR hash value is not an integer 1 OK]",
        ),
        ("GET s", r#""text""#),
        ("HGETALL h", r#"["f" "v"]"#),
        ("GET x", r#""1""#),
    ];
    client.talk(&dialogue);
}

#[test]
fn what_cannot_be_queued_has_exec_refuse_everything() {
    let server = TestServer::start();
    let mut client = server.resp();
    let dialogue = [
        ("MULTI", "OK"),
        ("SET a 1", "QUEUED"),
        ("GET", "-ERR wrong number of arguments for 'get' command"),
        ("SET b 1", "QUEUED"),
        ("EXEC", "-EXECABORT Transaction discarded because of previous errors."),
        ("EXISTS a b", "0"),
        ("MULTI", "OK"),
        ("MULTI", "-ERR MULTI calls can not be nested"),
        ("WATCH a", "-ERR WATCH inside MULTI is not allowed"),
        ("SELECT 2", "QUEUED"),
        ("SET c 1", "QUEUED"),
        ("DISCARD", "OK"),
        ("DISCARD", "-ERR DISCARD without MULTI"),
        ("SET d 1", "OK"),
        ("KEYS *", r#"["d"]"#),
        ("MULTI", "OK"),
        ("SELECT 2", "QUEUED"),
        ("SET e 1", "QUEUED"),
        ("EXEC", "[OK OK]"),
        ("KEYS *", r#"["e"]"#),
        ("SELECT 16", "-ERR DB index is out of range"),
    ];
    client.talk(&dialogue);
}

#[test]
fn exec_does_nothing_where_a_watched_key_was_changed_by_whatever_dialect() {
    let server = TestServer::start();
    let (mut client, mut other, mut text) = (server.resp(), server.resp(), server.text());
    other.tell("SET a 1");
    other.tell("HSET h f v");
    let changes = [
        (true, "SET a 1"),
        (false, "SET a 2"),
        (false, "INCR a"),
        (false, "DELRANGE a b"),
        (false, "SET a 3"),
        (false, "BUCKET DELETE default/h"),
        (true, "FLUSHALL"),
    ];
    for (is_resp, change) in changes {
        assert_eq!(client.tell_all(&["SET mine 1", "WATCH a h", "MULTI", "SET mine 2"]), ["OK", "OK", "OK", "QUEUED"]);
        if is_resp {
            other.tell(change);
        } else {
            text.ask(change);
        }
        assert_eq!(client.tell("EXEC"), "nil", "{change}");
    }
}

#[test]
fn exec_is_done_where_nothing_watched_was_changed_and_forgets_what_was() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.resp(), server.resp());
    let begin = ["SET a 1", "WATCH a nothing", "MULTI", "SET b 2"];
    client.tell_all(&begin);
    other.tell("SET c 1");
    other.tell("GET a");
    assert_eq!(client.tell("EXEC"), "[OK]");
    for forget in ["UNWATCH", "RESET"] {
        client.tell_all(&["WATCH a", forget]);
        other.tell("SET a 9");
        assert_eq!(client.tell_all(&["MULTI", "SET b 3", "EXEC"]), ["OK", "QUEUED", "[OK]"], "{forget}");
    }
    // What was not there is not there after FLUSHALL either.
    client.tell("WATCH missing");
    other.tell("FLUSHALL");
    assert_eq!(client.tell_all(&["MULTI", "PING", "EXEC"]), ["OK", "QUEUED", "[PONG]"]);
}

#[test]
fn a_watched_key_whose_time_has_come_was_changed() {
    let clock = Clock::by_hand(1_000_000);
    let server = TestServer::start_with(|config| config.clock = clock.clone());
    let mut client = server.resp();
    client.tell_all(&["SET a 1", "PEXPIRE a 100", "WATCH a gone", "MULTI", "PING"]);
    clock.set(1_000_100);
    assert_eq!(client.tell("EXEC"), "nil");
    assert_eq!(client.tell_all(&["WATCH a", "MULTI", "PING", "EXEC"])[3], "[PONG]", "it was gone before");
}

#[test]
fn eight_clients_that_watch_before_they_add_lose_no_addition() {
    let server = TestServer::start();
    let add = || {
        let mut client = server.resp();
        for _ in 0..25 {
            loop {
                client.tell("WATCH n");
                let number: u64 = client.tell("GET n").trim_matches('"').parse().unwrap_or(0);
                let set = format!("SET n {}", number + 1);
                if client.tell_all(&["MULTI", &set, "EXEC"])[2] != "nil" {
                    break;
                }
            }
        }
    };
    std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(add))));
    assert_eq!(server.resp().tell("GET n"), r#""200""#);
}

#[test]
fn a_pipeline_of_writes_is_committed_in_groups() {
    let server = TestServer::start();
    let mut client = server.resp();
    let before = server.db.stats().txid;
    let sets: Vec<_> = (0..500).map(|n| format!("SET k{n} {n}")).collect();
    let replies = client.tell_all(&sets.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(replies.iter().all(|reply| reply == "OK"));
    assert!(server.db.stats().txid - before < 100);
    assert_eq!(client.tell("DBSIZE"), "500");
}

#[test]
fn a_database_that_is_selected_in_a_transaction_is_gone_to_only_where_that_is_done() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.resp(), server.resp());
    client.tell("WATCH w");
    other.tell("SET w 1");
    let replies = client.tell_all(&["MULTI", "SELECT 1", "SET x 1", "EXEC", "SET here 1", "KEYS *"]);
    assert_eq!(replies[3..], ["nil", "OK", r#"["here" "w"]"#]);
    let replies = client.tell_all(&["MULTI", "SELECT 1", "SET x 1", "EXEC", "KEYS *", "SELECT 0", "DBSIZE"]);
    assert_eq!(replies[3..], ["[OK OK]", r#"["x"]"#, "OK", "2"]);
}

#[test]
fn in_a_transaction_that_writes_keys_looks_at_as_many_as_dbsize() {
    let server = TestServer::start();
    let mut client = server.resp();
    let put = |client: &mut crate::common::Resp, numbers: std::ops::Range<u32>| {
        let words = std::iter::once("MSET".to_owned()).chain(numbers.flat_map(|n| [format!("k{n:06}"), String::new()]));
        assert_eq!(client.tell_words(&words.collect::<Vec<_>>()), "OK");
    };
    put(&mut client, 0..50_000);
    put(&mut client, 50_000..98_000);
    let replies = client.tell_all(&["MULTI", "SET k000000 1", "DBSIZE", "KEYS k0000*1", "EXEC"]);
    assert_eq!(
        replies[4],
        r#"[OK 98000 ["k000001" "k000011" "k000021" "k000031" "k000041" "k000051" "k000061" "k000071" "k000081" "k000091"]]"#
    );
    put(&mut client, 100_000..110_000);
    let replies = client.tell_all(&["MULTI", "SET k000000 1", "DBSIZE", "KEYS k0000*1", "EXEC"]);
    assert!(replies[4].contains("DBSIZE looks at 100000 entries at most"), "{}", replies[4]);
    assert!(replies[4].contains("KEYS looks at 100000 entries at most"), "{}", replies[4]);
    let replies = client.tell_all(&["MULTI", "DBSIZE", "KEYS k00000*1", "EXEC"]);
    assert_eq!(replies[3], r#"[108000 ["k000001"]]"#, "nobody waits for one that only reads");
}

#[test]
fn very_many_watched_keys_are_found_as_quickly_as_few() {
    let server = TestServer::start();
    let mut client = server.resp();
    let keys: Vec<_> = (0..60_000).map(|n| format!("k{n}")).collect();
    let watch: Vec<_> = std::iter::once("WATCH").chain(keys.iter().map(String::as_str)).collect();
    assert_eq!(client.tell_words(&watch), "OK");
    assert_eq!(client.tell_words(&watch), "OK", "they are watched already");
    server.resp().tell("SET k59999 1");
    assert_eq!(client.tell_all(&["MULTI", "PING", "EXEC"])[2], "nil");
}

#[test]
fn swapping_databases_changes_the_keys_that_are_in_one_of_them_and_whatever_else_is_in_the_file_stays() {
    let server = TestServer::start();
    for name in ["boltkv.swap", "boltkv.swap.0"] {
        server.db.update(|tx| tx.create_bucket(name)?.put("k", "v")).unwrap();
    }
    let (mut client, mut other) = (server.resp(), server.resp());
    other.tell_all(&["SET here 1 PX 100000", "SELECT 1", "SET there 1"]);
    for (watched, expected) in [("here", "nil"), ("there", "nil"), ("neither", "[PONG PONG]")] {
        client.tell_all(&[&*format!("WATCH {watched}"), "MULTI", "PING", "PING"]);
        assert_eq!(other.tell("SWAPDB 0 1"), "OK");
        assert_eq!(client.tell("EXEC"), expected, "{watched}");
    }
    // Three times the one and the other.
    client.talk(&[("KEYS *", r#"["there"]"#), ("SELECT 1", "OK"), ("KEYS *", r#"["here"]"#), ("TTL here", "100")]);
    let aside = server.db.view(|tx| {
        let (mut cursor, mut aside) = (tx.cursor(), 0);
        while let Some((name, _)) = cursor.next()? {
            aside += usize::from(name.starts_with(b"boltkv.swap"));
        }
        Ok::<_, boltkv_storage::Error>(aside)
    });
    assert_eq!(aside.unwrap(), 2);
    assert!(server.db.check().unwrap().is_empty());
}

#[test]
fn a_time_that_a_key_has_already_is_a_change_for_who_watches_it() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.resp(), server.resp());
    other.tell_all(&["SET a 1", "EXPIREAT a 32503680000"]);
    for (change, expected) in [
        ("EXPIREAT a 32503680000", "nil"),
        ("GETEX a EXAT 32503680000", "nil"),
        ("EXPIREAT a 32503680000 NX", "[PONG PONG]"),
        ("GETEX a", "[PONG PONG]"),
        ("PERSIST a", "nil"),
        ("PERSIST a", "[PONG PONG]"),
    ] {
        client.tell_all(&["WATCH a", "MULTI", "PING", "PING"]);
        other.tell(change);
        assert_eq!(client.tell("EXEC"), expected, "{change}");
        other.tell(if change.starts_with("PERSIST") { "PING" } else { "EXPIREAT a 32503680000" });
    }
    let before = server.db.stats().txid;
    other.tell_all(&["EXPIREAT a 32503680001", "EXPIREAT a 32503680001"]);
    assert_eq!(server.db.stats().txid, before + 1, "what is so already is not written");
}

#[test]
fn who_watches_a_hash_is_told_of_a_field_that_expires() {
    let clock = Clock::by_hand(1_000);
    let server = TestServer::start_with(|config| config.clock = clock.clone());
    let (mut client, mut text) = (server.resp(), server.text());
    client.talk(&[("HSET h f v g w", "2"), ("HSET other f v", "1"), ("SET s v", "OK")]);
    assert_eq!(text.ask("BUCKET USE default/h"), "OK");
    assert_eq!(text.ask("EXPIRE f 10"), "1");
    client.talk(&[("WATCH other s", "OK")]);
    let mut watcher = server.resp();
    watcher.talk(&[("WATCH h", "OK"), ("MULTI", "OK"), ("GET s", "QUEUED"), ("SET s 1", "QUEUED")]);
    clock.set(20_000);
    crate::common::eventually(|| {
        client.tell("HLEN h") == "1" && server.text().ask_all("STATS").contains(&"expired_keys 1".into())
    });
    watcher.talk(&[("EXEC", "nil"), ("GET s", "\"v\"")]);
    client.talk(&[("MULTI", "OK"), ("SET s 2", "QUEUED"), ("EXEC", "[OK]")]);
}
