//! What the Redis dialect says of connections and of the server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use boltkv_server::{Clock, Grant, Proof};
use boltkv_storage::Options;
use common::resp::Value;
use common::{Resp, TestServer};

fn grant(token: &str, right: &str) -> Grant {
    let proof = Proof::Token(Grant::digest(token.as_bytes()));
    Grant { name: format!("name-of-{token}"), proof, rights: vec![right.parse().unwrap()], expires: None }
}

fn guarded() -> TestServer {
    TestServer::start_with(|config| config.grants = Some(vec![grant("reader", "read:default"), grant("boss", "admin")]))
}

/// The value behind a name, where names and values take turns.
fn field<'v>(value: &'v Value, name: &str) -> &'v Value {
    let at = value.items().chunks(2).find(|pair| pair[0].text() == name);
    &at.unwrap_or_else(|| panic!("no {name} in {value:?}"))[1]
}

// Promises: resp-hello.
#[test]
fn hello_says_which_version_is_spoken_and_changes_nothing_where_it_is_wrong() {
    let server = TestServer::start();
    let mut client = server.resp();
    let hello = client.ask(&["HELLO"]);
    assert!(matches!(hello, Value::Array(_)), "{hello:?}");
    assert_eq!((field(&hello, "proto"), field(&hello, "server").text()), (&Value::Integer(2), "redis".to_owned()));
    for (line, error) in [
        ("HELLO 4", "NOPROTO unsupported protocol version"),
        ("HELLO x", "ERR Protocol version is not an integer or out of range"),
        ("HELLO 3 nothing", "ERR Syntax error in HELLO option 'nothing'"),
        ("HELLO 3 AUTH default", "ERR Syntax error in HELLO option 'AUTH'"),
        ("HELLO 3 AUTH somebody x", "WRONGPASS invalid username-password pair or user is disabled."),
    ] {
        assert_eq!(client.say(line), error);
    }
    assert_eq!(
        client.ask(&["HELLO", "3", "SETNAME", "a b"]).text(),
        "ERR Client names cannot contain spaces, newlines or special characters."
    );
    let hello = client.ask(&["hello", "3", "auth", "default", "", "setname", "me"]);
    assert!(matches!(hello, Value::Map(_)), "{hello:?}");
    assert_eq!(field(&hello, "proto"), &Value::Integer(3));
    assert_eq!(client.say("CLIENT GETNAME"), "me");
    assert_eq!(client.say("RESET"), "RESET");
    assert_eq!(client.say("CLIENT GETNAME"), "(nil)");
    assert!(matches!(client.ask(&["HELLO"]), Value::Array(_)));
}

// Promises: resp-auth.
#[test]
fn a_token_is_said_in_auth_or_hello_and_who_has_none_is_told_nothing() {
    let server = guarded();
    let mut client = server.resp();
    for line in ["GET k", "PING", "NOTHING", "INFO", "COMMAND", "CLIENT LIST", "MULTI", "HELLO 2"] {
        assert!(client.say(line).starts_with("NOAUTH "), "{line}");
    }
    assert_eq!(client.say("AUTH reader"), "OK");
    assert_eq!(client.say("PING"), "PONG");
    assert_eq!(client.say("GET k"), "(nil)");
    assert!(client.say("SET k v").starts_with("NOPERM "));
    let mut other = server.resp();
    let hello = other.ask(&["HELLO", "3", "AUTH", "anybody", "boss", "SETNAME", "b"]);
    assert_eq!(field(&hello, "proto"), &Value::Integer(3));
    assert_eq!(other.say("SET k v"), "OK");
}

// Promises: resp-auth.
#[test]
fn a_wrong_token_is_told_and_another_one_may_be_said() {
    const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.";
    const UNKNOWN: &str = "-NOAUTH Authentication required.";
    let server = guarded();
    let mut client = server.resp();
    let lines =
        ["AUTH nothing", "PING", "HELLO 3 AUTH default none", "AUTH reader", "PING", "AUTH any nothing", "GET k"];
    // What is sent behind it, and before it is answered, is answered after it.
    assert_eq!(client.tell_all(&lines), [WRONG, UNKNOWN, WRONG, "OK", "PONG", WRONG, "nil"], "the holder stays let in");
    assert!(client.say("SET k v").starts_with("NOPERM "));

    let mut ending = server.resp();
    ending.send(b"*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n*1\r\n$4\r\nPING\r\n");
    ending.socket.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!([ending.reply().shown(), ending.reply().shown()], [WRONG, UNKNOWN]);
    assert_eq!(ending.try_reply(), None, "and no more, for nothing more is sent");
}

#[test]
fn without_tokens_auth_is_answered_as_redis_does_without_passwords() {
    let server = TestServer::start();
    let mut client = server.resp();
    assert!(client.say("AUTH x").starts_with("ERR AUTH <password> called without any password configured"));
    assert_eq!(client.say("AUTH default x"), "OK");
    assert_eq!(client.say("AUTH bob x"), "WRONGPASS invalid username-password pair or user is disabled.");
    assert_eq!(client.say("AUTH a b c"), "ERR syntax error");
    assert_eq!(client.say("PING"), "PONG");
}

// Promises: resp-admin.
#[test]
fn what_is_for_operators_needs_their_right() {
    let server = guarded();
    let (mut reader, mut boss) = (server.resp(), server.resp());
    reader.say("AUTH reader");
    boss.say("AUTH boss");
    for line in ["CLIENT LIST", "CLIENT KILL ID 999", "CONFIG SET maxmemory 0", "CONFIG RESETSTAT", "SLOWLOG GET"] {
        assert!(reader.say(line).starts_with("NOPERM "), "{line}");
        assert!(!matches!(boss.ask(&line.split(' ').collect::<Vec<_>>()), Value::Error(_)), "{line}");
    }
    for line in ["CLIENT ID", "CONFIG GET save", "INFO server"] {
        assert!(!matches!(reader.ask(&line.split(' ').collect::<Vec<_>>()), Value::Error(_)), "{line}");
    }
    boss.say("SET k v");
    boss.say("SELECT 1");
    boss.say("SET k v");
    assert_eq!(reader.say("INFO keyspace"), "# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0\r\n");
    assert!(boss.say("INFO keyspace").contains("db1:keys=1"));
}

#[test]
fn the_connection_is_pinged_closed_and_goes_to_other_databases() {
    let server = TestServer::start();
    let mut client = server.resp();
    let mut said = |line: &str| client.say(line);
    assert_eq!((said("PING"), said("PING hi"), said("ECHO hi")), ("PONG".into(), "hi".into(), "hi".into()));
    assert_eq!(said("PING a b"), "ERR wrong number of arguments for 'ping' command");
    assert_eq!((said("SET k zero"), said("SELECT 1"), said("GET k")), ("OK".into(), "OK".into(), "(nil)".into()));
    assert_eq!(said("SELECT 16"), "ERR DB index is out of range");
    assert_eq!(said("SELECT x"), "ERR value is not an integer or out of range");
    assert_eq!((said("RESET"), said("GET k")), ("RESET".into(), "zero".into()));
    assert_eq!(said("WAIT 0 0"), "0");
    assert_eq!(said("WAIT 0 -1"), "ERR timeout is negative");
    assert_eq!(said("DEBUG SLEEP 0"), "ERR DEBUG is not supported");
    assert_eq!(said("NOTHING a b"), "ERR unknown command 'NOTHING', with args beginning with: 'a' 'b' ");
    assert_eq!(said("CLIENT NOTHING"), "ERR unknown subcommand 'NOTHING'. Try CLIENT HELP.");
    assert_eq!(said("CLIENT SETNAME"), "ERR wrong number of arguments for 'client|setname' command");
    assert_eq!(said("QUIT"), "OK");
    assert_eq!(client.try_reply(), None);
}

#[test]
fn connections_have_names_are_listed_and_ended() {
    let server = TestServer::start();
    let (mut one, mut other) = (server.resp(), server.resp());
    assert_eq!(one.say("CLIENT SETNAME one"), "OK");
    assert_eq!(one.say("CLIENT SETINFO LIB-NAME mine"), "OK");
    assert_eq!(one.say("CLIENT SETINFO nothing mine"), "ERR Unrecognized option 'nothing'");
    let (id, own) = (one.say("CLIENT ID"), one.say("CLIENT INFO"));
    assert!(
        own.starts_with(&format!("id={id} addr=127.0.0.1:")) && own.ends_with("resp=2 lib-name=mine lib-ver=\n"),
        "{own}"
    );
    let id_of_other = other.say("CLIENT ID");
    let list = one.say("CLIENT LIST");
    assert_eq!(list.lines().count(), 2);
    assert!(list.contains(" name=one ") && list.contains("cmd=client|list"), "{list}");
    assert_eq!(one.say(&format!("CLIENT LIST ID {id_of_other}")).lines().count(), 1);
    assert_eq!(one.say("CLIENT LIST TYPE pubsub"), "");
    assert_eq!(one.say("CLIENT LIST TYPE x"), "ERR Unknown client type 'x'");
    assert_eq!(one.say("CLIENT KILL 127.0.0.1:1"), "ERR No such client");
    assert_eq!(one.say(&format!("CLIENT KILL ID {id}")), "0", "it spares itself");
    assert_eq!(one.say(&format!("CLIENT KILL ID {id_of_other}")), "1");
    other.send_words(&["PING"]);
    assert!(!matches!(other.try_reply(), Some(Value::Simple(_))), "it was ended");
    for line in ["CLIENT REPLY ON", "CLIENT TRACKING ON", "CLIENT PAUSE 1", "CLIENT UNPAUSE"] {
        assert!(one.say(line).ends_with(" is not supported"), "{line}");
    }
    assert_eq!((one.say("CLIENT NO-EVICT on"), one.say("CLIENT NO-TOUCH x")), ("OK".into(), "ERR syntax error".into()));
}

// Promises: resp-command.
#[test]
fn commands_tell_of_themselves() {
    let server = TestServer::start();
    let mut client = server.resp();
    let all = client.ask(&["COMMAND"]);
    assert_eq!(all.items().len().to_string(), client.say("COMMAND COUNT"));
    assert!(all.items().iter().all(|command| command.items().len() == 10));
    let info = client.ask(&["COMMAND", "INFO", "get", "nothing", "client|id"]);
    let get = info.items()[0].items();
    assert_eq!(
        (get[0].text(), get[1].text(), get[2].texts()),
        ("get".into(), "2".into(), vec!["readonly".to_owned(), "fast".to_owned()])
    );
    assert_eq!([&get[3], &get[4], &get[5]], [1, 1, 1].map(Value::Integer).each_ref());
    assert_eq!(get[6].texts(), ["@read", "@string", "@fast"]);
    assert_eq!((&info.items()[1], info.items()[2].items()[0].text()), (&Value::Null, "client|id".to_owned()));
    let docs = client.ask(&["COMMAND", "DOCS", "get", "config"]);
    assert_eq!(field(field(&docs, "get"), "group").text(), "string");
    assert_eq!(field(field(&docs, "config"), "subcommands").items().len(), 2 * 5);
    assert_eq!(client.ask(&["COMMAND", "LIST", "FILTERBY", "PATTERN", "PIN*"]).texts(), ["ping"]);
    assert_eq!(client.ask(&["COMMAND", "GETKEYS", "MSET", "a", "1", "b", "2"]).texts(), ["a", "b"]);
    assert_eq!(client.ask(&["COMMAND", "GETKEYS", "OBJECT", "ENCODING", "a"]).texts(), ["a"]);
    assert_eq!(client.say("COMMAND GETKEYS nothing a"), "ERR Invalid command specified");
    assert_eq!(client.say("COMMAND GETKEYS dbsize a"), "ERR The command has no key arguments");
    for command in ["COMMAND", "CONFIG", "CLIENT", "MEMORY", "SLOWLOG", "OBJECT"] {
        assert!(client.ask(&[command, "HELP"]).items().len() > 6, "{command}");
    }
}

// Promises: resp-config.
#[test]
fn settings_are_told_and_not_changed() {
    let server = TestServer::start();
    let mut client = server.resp();
    let two = client.ask(&["CONFIG", "GET", "max*s", "SAVE"]);
    assert_eq!(two.texts(), ["maxclients", "10000", "save", ""]);
    assert_eq!(client.say("CONFIG SET maxmemory 0 save  APPENDONLY yes"), "OK", "it is so");
    for (line, error) in [
        (
            "CONFIG SET maxmemory 1",
            "ERR CONFIG SET failed (possibly related to argument 'maxmemory') - can't set immutable config",
        ),
        ("CONFIG SET save  save ", "ERR CONFIG SET failed (possibly related to argument 'save') - duplicate parameter"),
        ("CONFIG SET nothing 1", "ERR Unknown option or number of arguments for CONFIG SET - 'nothing'"),
        ("CONFIG SET maxmemory 0 save", "ERR syntax error"),
        ("CONFIG REWRITE", "ERR CONFIG REWRITE is not supported"),
    ] {
        assert_eq!(client.say(line), error, "{line}");
    }
}

// Promises: resp-info.
#[test]
fn figures_are_told_by_the_names_that_programs_look_for() {
    let server = TestServer::start();
    let mut client = server.resp();
    client.say("SET k v");
    let info = client.say("INFO");
    for name in [
        "redis_version:7",
        "redis_mode:standalone",
        "arch_bits:64",
        "process_id:",
        "tcp_port:",
        "uptime_in_seconds:",
        "connected_clients:1",
        "maxclients:10000",
        "used_memory:",
        "used_memory_human:",
        "maxmemory:0",
        "loading:0",
        "aof_enabled:1",
        "rdb_last_save_time:",
        "total_connections_received:1",
        "total_commands_processed:",
        "rejected_connections:0",
        "role:master",
        "connected_slaves:0",
        "cluster_enabled:0",
        "used_cpu_user:",
        "boltkv_version:",
        "db0:keys=1,expires=0,avg_ttl=0",
    ] {
        assert!(info.contains(&format!("\r\n{name}")), "{name} in {info}");
    }
    assert_eq!(client.say("INFO cluster nothing"), "# Cluster\r\ncluster_enabled:0\r\n");
    assert_eq!(client.say("INFO nothing"), "");
    let connections = |client: &mut Resp| {
        let stats = client.say("INFO stats");
        stats.lines().find_map(|line| line.strip_prefix("total_connections_received:")).unwrap().to_owned()
    };
    assert_eq!((connections(&mut client), client.say("CONFIG RESETSTAT")), ("1".into(), "OK".into()));
    assert_eq!(connections(&mut client), "0");
    let saved: u64 = client.say("LASTSAVE").parse().unwrap();
    let now: u64 = client.ask(&["TIME"]).texts()[0].parse().unwrap();
    assert!(now.abs_diff(saved) < 3_600, "{now} {saved}");
}

// Promises: resp-estimate.
#[test]
fn many_keys_are_estimated_and_few_are_counted() {
    let clock = Clock::by_hand(1_000_000);
    let server = TestServer::start_with(|config| config.clock = clock.clone());
    let mut client = server.resp();
    let mut put = |from: usize, to: usize| {
        let value = |n: usize| "v".repeat(1 + n % 200);
        let pairs: Vec<_> = (from..to).map(|n| format!("k{} {}", n * 7_919 % 1_000_003, value(n))).collect();
        assert_eq!(client.say(&format!("MSET {}", pairs.join(" "))), "OK");
        client.say("INFO keyspace")
    };
    assert_eq!(put(0, 1_000), "# Keyspace\r\ndb0:keys=1000,expires=0,avg_ttl=0\r\n");
    let told = put(1_000, 1_001);
    assert!(told.ends_with(",expires=0,avg_ttl=0,estimated=1\r\n"), "{told}");
    let figures = |told: &str| {
        let numbers = told.split(['=', ',', '\r']).filter_map(|word| word.parse::<f64>().ok());
        numbers.collect::<Vec<_>>()
    };
    let is_near = |told: f64, true_one: f64| (told - true_one).abs() < 0.05 * true_one;
    assert!(is_near(figures(&told)[0], 1_001.0), "{told}");
    for from in (1_001..60_000).step_by(10_000) {
        put(from, from + 10_000);
    }
    // Half of the keys between two others are gone in 100 s.
    let expiring: Vec<_> = client.ask(&["KEYS", "k[3-6]*"]).texts();
    let lines: Vec<_> = expiring.iter().map(|key| format!("EXPIRE {key} 100")).collect();
    client.tell_all(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let told = client.say("INFO keyspace");
    assert_eq!(client.say("INFO keyspace"), told, "it does not jump");
    let [keys, expires, left, 1.0] = figures(&told)[..] else { panic!("{told}") };
    let all: f64 = client.say("DBSIZE").parse().unwrap();
    assert!(is_near(keys, all) && is_near(left, 100_000.0), "{told} of {all}");
    let expiring = f64::from(u32::try_from(expiring.len()).unwrap());
    assert!(is_near(expires, expiring), "{told} of {expiring}");
}

#[test]
fn what_goes_on_is_told() {
    let server = TestServer::start();
    let mut client = server.resp();
    let figure = |client: &mut Resp, name: &str| {
        let info = client.say("INFO");
        info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).expect("it is told").to_owned()
    };
    let gets = |client: &mut Resp| ["keyspace_hits", "keyspace_misses"].map(|name| figure(client, name));
    client.tell_all(&["GET nothing", "SET k v", "GET k", "GET k", "GET nothing", "HSET h f v", "GET h"]);
    assert_eq!(gets(&mut client), ["2", "2"]);
    assert_eq!(server.text().ask("GET k"), "v");
    assert_eq!(gets(&mut client), ["3", "2"]);
    let number = |client: &mut Resp, name: &str| figure(client, name).parse::<f64>().unwrap();
    let own = number(&mut client, "used_memory");
    assert!(own > 100_000.0 && number(&mut client, "used_memory_rss") > own);
    // So many that it is more than nothing, even if it takes minutes.
    client.tell_all(&["PING"; 1_000]);
    assert!(number(&mut client, "instantaneous_ops_per_sec") >= 1.0);
    assert!(number(&mut client, "instantaneous_input_kbps") > 0.0);
    assert!(number(&mut client, "instantaneous_output_kbps") > 0.0);
    assert_eq!(client.say("CONFIG RESETSTAT"), "OK");
    assert_eq!(gets(&mut client), ["0", "0"]);
}

#[test]
fn what_tools_ask_on_connecting_is_answered_as_redis_does_that_stands_alone() {
    let server = TestServer::start();
    let mut client = server.resp();
    client.talk(&[
        ("MODULE LIST", "[]"),
        ("MODULE LOAD x", "-ERR unknown subcommand 'LOAD'. Try MODULE HELP."),
        ("CLUSTER INFO", "-ERR This instance has cluster support disabled"),
        ("ROLE", r#"["master" 0 []]"#),
        ("ACL WHOAMI", r#""default""#),
        ("ACL WHOAMI x", "-ERR wrong number of arguments for 'acl|whoami' command"),
        ("MULTI", "OK"),
        ("ROLE", "QUEUED"),
        ("ACL WHOAMI", "QUEUED"),
        ("MODULE LIST", "QUEUED"),
        ("CLUSTER INFO", "QUEUED"),
        ("EXEC", r#"[["master" 0 []] "default" [] -ERR This instance has cluster support disabled]"#),
    ]);
    let server = guarded();
    let mut reader = server.resp();
    reader.talk(&[
        ("ACL WHOAMI", "-NOAUTH Authentication required."),
        ("AUTH any reader", "OK"),
        ("ACL WHOAMI", r#""name-of-reader""#),
        ("MODULE LIST", "[]"),
    ]);
}

#[test]
fn what_took_long_and_what_takes_memory_is_told_in_redis_form() {
    let server = TestServer::start_with(|config| config.timeouts.slow = std::time::Duration::ZERO);
    let mut client = server.resp();
    client.say("CLIENT SETNAME me");
    client.say("SET k value");
    let slow = client.ask(&["SLOWLOG", "GET", "-1"]);
    let set = slow.items().iter().find(|entry| entry.items()[3].texts() == ["SET"]).expect("it is there");
    assert_eq!((set.items().len(), set.items()[5].text()), (6, "me".to_owned()));
    assert_ne!(client.say("SLOWLOG LEN"), "0");
    assert_eq!(client.say("SLOWLOG RESET"), "OK");
    assert_eq!(client.say("SLOWLOG GET -2"), "ERR count should be greater than or equal to -1");
    assert_eq!(client.say("MEMORY USAGE k"), "6");
    assert_eq!(client.say("MEMORY USAGE k SAMPLES 5"), "6");
    assert_eq!(client.say("MEMORY USAGE k SAMPLES -1"), "ERR syntax error");
    assert_eq!(client.say("MEMORY USAGE nothing"), "(nil)");
    client.say("HSET h field value");
    assert_eq!(client.say("MEMORY USAGE h"), "11");
    assert!(client.say("MEMORY DOCTOR").starts_with("There is memory"));
    assert!(!client.ask(&["MEMORY", "STATS"]).items().is_empty());
}

#[test]
fn what_has_expired_is_not_counted() {
    let clock = Clock::by_hand(1_000_000);
    let db = Options::new().open_in_memory().unwrap();
    let server = TestServer::serve(db.clone(), |config| config.clock = clock.clone());
    let mut client = server.resp();
    for line in ["SET a 1 PX 1000", "SET b 1 PX 3000", "SET c 1", "SELECT 1", "SET gone 1 PX 100"] {
        client.say(line);
    }
    client.say("SELECT 0");
    client.say("HSET h stays 12345 goes 123456789");
    let mut text = server.text();
    assert_eq!((text.ask("BUCKET USE default/h"), text.ask("PEXPIRE goes 500")), ("OK".into(), "1".into()));
    assert_eq!(
        client.say("INFO keyspace"),
        "# Keyspace\r\ndb0:keys=4,expires=2,avg_ttl=2000\r\ndb1:keys=1,expires=1,avg_ttl=100\r\n"
    );
    assert_eq!(client.say("MEMORY USAGE h"), "24");
    drop(text);
    server.stop().unwrap();
    // Nobody removes anything here.
    let server = TestServer::serve(db, |config| {
        config.clock = clock.clone();
        config.read_only = true;
    });
    clock.set(1_001_000);
    let mut client = server.resp();
    assert_eq!(client.say("INFO keyspace"), "# Keyspace\r\ndb0:keys=3,expires=1,avg_ttl=2000\r\n");
    assert_eq!(client.say("MEMORY USAGE h"), "11");
}

#[test]
fn what_redis_says_of_tracking_and_waiting_is_said_where_there_is_none() {
    let server = TestServer::start();
    let mut client = server.resp();
    client.talk(&[
        ("CLIENT GETREDIR", "-1"),
        ("CLIENT TRACKINGINFO", r#"["flags" ["off"] "redirect" -1 "prefixes" []]"#),
        ("CLIENT TRACKING OFF", "OK"),
        ("CLIENT TRACKING ON", "-ERR CLIENT TRACKING is not supported"),
        (
            "CLIENT CACHING YES",
            "-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ),
        ("CLIENT UNBLOCK 1", "0"),
        ("CLIENT UNBLOCK 1 error", "0"),
        ("CLIENT UNBLOCK x", "-ERR value is not an integer or out of range"),
        ("CLIENT UNBLOCK x now", "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"),
    ]);
    let all = client.ask(&["COMMAND", "DOCS"]);
    let count = usize::try_from(client.say("COMMAND COUNT").parse::<u32>().unwrap()).unwrap();
    assert_eq!(all.items().len(), 2 * count, "each has its name and what is said of it");
    for docs in all.items().chunks(2) {
        assert!(!field(&docs[1], "summary").text().is_empty(), "{docs:?}");
    }
}
