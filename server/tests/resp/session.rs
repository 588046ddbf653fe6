//! What the Redis dialect says of connections and of the server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::resp::{Value, encode};
use crate::common::{Resp, TestServer};
use boltkv_server::{Grant, Proof};

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
    let mut own = server.resp();
    let id = own.say("CLIENT ID");
    own.send([encode(&["CLIENT", "KILL", "ID", &id, "SKIPME", "no"]), encode(&["SET", "k", "v"])].concat());
    assert_eq!(own.reply(), Value::Integer(1));
    assert!(!matches!(own.try_reply(), Some(Value::Simple(_))), "who ends himself is not heard any more");
    assert_eq!(one.say("EXISTS k"), "0");
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
        (
            "CONFIG SET slowlog-max-len 1 maxmemory 1",
            "ERR CONFIG SET failed (possibly related to argument 'maxmemory') - can't set immutable config",
        ),
        (
            "CONFIG SET slowlog-max-len x",
            "ERR CONFIG SET failed (possibly related to argument 'slowlog-max-len') - argument couldn't be parsed into an \
             integer",
        ),
        (
            "CONFIG SET slowlog-max-len 10001",
            "ERR CONFIG SET failed (possibly related to argument 'slowlog-max-len') - argument must be between 0 and 10000 \
             inclusive",
        ),
        ("CONFIG SET nothing 1", "ERR Unknown option or number of arguments for CONFIG SET - 'nothing'"),
        ("CONFIG SET maxmemory 0 save", "ERR syntax error"),
        ("CONFIG REWRITE", "ERR CONFIG REWRITE is not supported"),
    ] {
        assert_eq!(client.say(line), error, "{line}");
    }
    let slow = |client: &mut Resp| client.ask(&["CONFIG", "GET", "slowlog*"]).texts().join(" ");
    assert_eq!(
        slow(&mut client),
        "slowlog-log-slower-than 100000 slowlog-max-len 128",
        "where one is refused none is set"
    );
}

// Promises: resp-config.
#[test]
fn the_slow_log_is_changed_while_the_server_runs() {
    let server = TestServer::start();
    let mut client = server.resp();
    assert_eq!(client.say("CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 3"), "OK");
    for _ in 0..5 {
        client.say("SET k v");
    }
    assert_eq!(client.say("SLOWLOG LEN"), "3");
    let slow = client.ask(&["CONFIG", "GET", "slowlog*"]).texts();
    assert_eq!(slow, ["slowlog-log-slower-than", "0", "slowlog-max-len", "3"]);
    assert_eq!(client.say("CONFIG SET slowlog-log-slower-than -1"), "OK");
    assert_eq!(client.ask(&["CONFIG", "GET", "slowlog-log*"]).texts(), ["slowlog-log-slower-than", "-1"]);
    assert_eq!(
        (client.say("SLOWLOG RESET"), client.say("SET k v"), client.say("SLOWLOG LEN")),
        ("OK".into(), "OK".into(), "0".into())
    );
    for (number, len) in [(4, "2"), (2, "0")] {
        client.say(&format!("CONFIG SET slowlog-log-slower-than 0 slowlog-max-len {number}"));
        client.say("SET k v");
        client.say(&format!("CONFIG SET slowlog-max-len {}", number - 2));
        assert_eq!(client.say("SLOWLOG LEN"), len);
    }
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

#[test]
fn patterns_that_take_long_are_compared_with_no_name() {
    let server = TestServer::start();
    let mut client = server.resp();
    let (long, many) = (format!("*[{}", "a".repeat(2_000)), vec!["x"; 600]);
    let too_long = "-ERR the patterns have 2003 bytes; at most 1024 are taken";
    assert_eq!(client.tell_words(&["CONFIG", "GET", &long]), too_long);
    assert_eq!(client.tell_words(&["COMMAND", "LIST", "FILTERBY", "PATTERN", &long]), too_long);
    assert!(client.tell_words(&[&["CONFIG", "GET"], &*many].concat()).starts_with("-ERR the patterns have 1200 bytes"));
    assert_eq!(client.tell("CONFIG GET Max[a-c]*s nothing"), r#"["maxclients" "10000"]"#);
    assert_eq!(client.tell("COMMAND LIST FILTERBY PATTERN hget*"), r#"["hget" "hgetall"]"#);
}
