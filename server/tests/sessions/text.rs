//! Every command of the text dialect does what the protocol says.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::{TestServer, exchange};
use boltkv_protocol::text::MAX_LINE;
use boltkv_storage::Options;

/// What a script is answered with.
fn run(server: &TestServer, script: &str) -> String {
    String::from_utf8(exchange(server.address, script.as_bytes())).unwrap()
}

// Promises: text-commands.
#[test]
fn the_protocols_example_holds() {
    let server = TestServer::start();
    let script = "SET hello world\nGET hello\nGET nothing\nDELETE hello\nDELETE hello\nEXISTS hello\nSET a 1\nSET b 2\n\
                  MGET a b c\nBUCKET CREATE users/eu\nBUCKET USE users/eu\nSET ada lovelace\nSCAN\nCOUNT\nPING\nQUIT\nPING\n";
    let replies = "OK\nworld\n(nil)\nOK\n(nil)\n0\nOK\nOK\n\
                   1\n2\n(nil)\nOK\nOK\nOK\nada lovelace\nEND\n1\nPONG\n";
    assert_eq!(run(&server, script), replies);
}

#[test]
fn commands_and_replies_are_the_same_however_the_lines_end_and_arrive() {
    let server = TestServer::start();
    let mut client = server.text();
    for byte in b"set k a value\r\nget k\r\n" {
        client.send([*byte]);
    }
    assert_eq!(client.line(), "OK");
    assert_eq!(client.line(), "a value");
    assert_eq!(client.ask("DEL k"), "OK");
}

// Promises: text-default.
#[test]
fn the_first_set_makes_the_default_bucket_and_nothing_else_does() {
    let server = TestServer::start();
    assert_eq!(
        run(&server, "GET a\nDELETE a\nEXISTS a\nSCAN\nCOUNT\nMGET a b\nBUCKET USE default\nBUCKET LIST\n"),
        "(nil)\n(nil)\n0\nEND\n0\n(nil)\n(nil)\nOK\nEND\n"
    );
    assert!(run(&server, "SET \"\" v\n").starts_with("ERR KEY_REQUIRED "));
    assert_eq!(run(&server, "BUCKET LIST\n"), "END\n", "a SET that failed made nothing");
    assert_eq!(run(&server, "SET a 1\nBUCKET LIST\nGET a\n"), "OK\ndefault\nEND\n1\n");
}

// Promises: text-cond.
#[test]
fn a_write_under_a_condition_is_done_only_where_it_holds() {
    let server = TestServer::start();
    let failed = |how: &str| format!("ERR CONDITION_FAILED the condition does not hold: key \"k\" {how}\n");
    let (missing, there, other) = (failed("is not there"), failed("is there already"), failed("has another value"));
    let script = "SETXX k 1\nCAS k old 1\nCAD k 1\nBUCKET LIST\n\
                  SETNX k one word\nSETNX k 2\nSETXX k 3\nCAS k 2 4\nCAS k 3 four words\nGET k\n\
                  CAD k four\nCAD k four words\nGET k\n";
    let replies = format!("{missing}{missing}(nil)\nEND\nOK\n{there}OK\n{other}OK\nfour words\n{other}OK\n(nil)\n");
    assert_eq!(run(&server, script), replies);

    let long = format!("ä{}", "k".repeat(1000));
    let shown = format!("\"\\xc3\\xa4{}\"… is there already\n", "k".repeat(62));
    let reply = run(&server, &format!("SETNX {long} 1\nSETNX {long} 2\n"));
    assert!(reply.ends_with(&shown), "a long key is escaped and cut: {reply}");
}

#[test]
fn any_other_bucket_that_is_not_there_is_an_error() {
    let server = TestServer::start();
    assert!(run(&server, "BUCKET USE x\n").starts_with("ERR BUCKET_NOT_FOUND "));
    assert_eq!(run(&server, "BUCKET CREATE x\nBUCKET USE x\nBUCKET DELETE x\n"), "OK\nOK\nOK\n");
    let mut client = server.text();
    assert_eq!(client.ask("BUCKET CREATE x"), "OK");
    assert_eq!(client.ask("BUCKET USE x"), "OK");
    assert_eq!(server.text().ask("BUCKET DELETE x"), "OK");
    for line in
        ["GET k", "SET k v", "DELETE k", "EXISTS k", "COUNT", "SCAN", "MGET k", "BUCKET LIST x", "BUCKET DELETE x"]
    {
        let reply = client.ask(line);
        assert!(reply.starts_with("ERR BUCKET_NOT_FOUND "), "{line}: {reply}");
    }
    assert_eq!(client.ask("BUCKET USE default"), "OK");
    assert_eq!(client.ask("GET k"), "(nil)");
}

#[test]
fn every_connection_has_its_own_bucket() {
    let server = TestServer::start();
    let (mut one, mut two) = (server.text(), server.text());
    assert_eq!(one.ask("BUCKET CREATE a"), "OK");
    assert_eq!(one.ask("BUCKET USE a"), "OK");
    assert_eq!(one.ask("SET k in a"), "OK");
    assert_eq!(two.ask("SET k in default"), "OK");
    assert_eq!(one.ask("GET k"), "in a");
    assert_eq!(two.ask("GET k"), "in default");
}

#[test]
fn scans_print_keys_with_values_and_buckets_with_a_slash() {
    let server = TestServer::start();
    let mut client = server.text();
    assert_eq!(client.ask("BUCKET CREATE default/inner"), "OK");
    for line in ["SET a 1", "SET ab 2", "SET \"with blank\" \"line\\nbreak\""] {
        assert_eq!(client.ask(line), "OK");
    }
    assert_eq!(client.ask_all("SCAN"), ["a 1", "ab 2", "inner/", r#""with blank" "line\nbreak""#]);
    assert_eq!(client.ask_all("SCAN a"), ["a 1", "ab 2"]);
    assert_eq!(client.ask_all("SCAN a LIMIT 1"), ["a 1"]);
    assert_eq!(client.ask("COUNT"), "4");
    assert_eq!(client.ask("COUNT a"), "2");
    assert_eq!(client.ask_all("BUCKET LIST"), ["default"]);
    assert_eq!(client.ask_all("BUCKET LIST default"), ["inner"]);
    assert_eq!(client.ask("BUCKET USE /"), "OK");
    assert_eq!(client.ask_all("SCAN"), ["default/"], "the root holds buckets");
    assert!(client.ask("GET a").starts_with("ERR BUCKET_NAME_REQUIRED "));
}

#[test]
fn bytes_of_any_kind_come_back_so_that_they_can_be_pasted() {
    let server = TestServer::start();
    let mut client = server.text();
    assert_eq!(client.ask(r#"SET "\x00\xff" "tab\tquote\"""#), "OK");
    assert_eq!(client.ask(r#"GET "\x00\xff""#), r#""tab\tquote\"""#);
    assert_eq!(client.ask_all("SCAN"), [r#""\x00\xff" "tab\tquote\"""#]);
    assert_eq!(client.ask("SET k OK"), "OK");
    assert_eq!(client.ask("GET k"), r#""OK""#, "a value is not taken for a reply");
    assert_eq!(client.ask("SET k   two blanks first "), "OK");
    assert_eq!(client.ask("GET k"), r#""  two blanks first ""#);
    assert_eq!(client.ask(r#"SET k """#), "OK");
    assert_eq!(client.ask("GET k"), r#""""#);
}

#[test]
fn help_and_stats_are_lines_up_to_end() {
    let server = TestServer::start();
    let mut client = server.text();
    assert_eq!(client.ask("SET k v"), "OK");
    let help = client.ask_all("HELP");
    assert!(help.iter().any(|line| line.starts_with("GET key")), "{help:?}");
    let stats = client.ask_all("stats");
    let figure = |name: &str| {
        let line = stats.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {stats:?}")).to_owned()
    };
    assert_eq!(figure("version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(figure("connections"), "1");
    assert_eq!(figure("writes"), "1");
    assert_eq!(figure("txid"), server.db.stats().txid.to_string());
    assert_eq!(figure("read_only"), "0");
}

#[test]
fn an_error_says_what_and_why_and_the_connection_lives() {
    let server = TestServer::start();
    let mut client = server.text();
    for (line, start) in [
        ("FLY k", "ERR MALFORMED "),
        ("GET", "ERR MALFORMED "),
        ("GET a b", "ERR MALFORMED "),
        ("SET k", "ERR MALFORMED "),
        (r#"SET k "open"#, "ERR MALFORMED "),
        ("SCAN a LIMIT zero", "ERR MALFORMED "),
        ("BUCKET FLY", "ERR MALFORMED "),
        ("BUCKET CREATE a//b", "ERR MALFORMED "),
        ("BUCKET CREATE /", "ERR BUCKET_NAME_REQUIRED "),
    ] {
        let reply = client.ask(line);
        assert!(reply.starts_with(start) || reply.starts_with("ERR UNSUPPORTED "), "{line}: {reply}");
    }
    assert_eq!(client.ask("PING"), "PONG");
}

// Promises: text-line, ops-line.
#[test]
fn a_line_over_the_limit_is_skipped_to_its_end_and_one_at_the_limit_is_not() {
    let server = TestServer::start();
    let mut client = server.text();
    let value = "v".repeat(MAX_LINE - "SET k ".len());
    assert_eq!(client.ask(&format!("SET k {value}")), "OK");
    assert!(client.ask(&format!("SET k {value}v")).starts_with("ERR MALFORMED "));
    assert!(client.ask(&format!("SET k {}", "v".repeat(5 * MAX_LINE))).starts_with("ERR MALFORMED "));
    assert_eq!(client.ask("GET k"), value);
}

// Promises: text-cut.
#[test]
fn a_last_line_without_an_end_is_not_executed() {
    let server = TestServer::start();
    let replies = run(&server, "SET a 1\nSET b 2");
    let (first, rest) = replies.split_once('\n').unwrap();
    assert_eq!(first, "OK");
    assert!(rest.starts_with("ERR MALFORMED "), "{rest}");
    assert_eq!(run(&server, "MGET a b\n"), "1\n(nil)\n");
}

// Promises: text-blank.
#[test]
fn empty_lines_are_not_answered() {
    let server = TestServer::start();
    assert_eq!(run(&server, "\n  \nPING\n\r\n\t\nPING\n"), "PONG\nPONG\n");
}

// Promises: text-order.
#[test]
fn each_line_sees_what_the_lines_before_it_did() {
    let server = TestServer::start();
    let (mut script, mut replies) = (Vec::new(), Vec::new());
    for n in 0..200 {
        script.push(format!("SET k {n}\nSET other {n}\nGET k\nDELETE k\nGET k\nFLY\nSET k {n}\nCOUNT\n"));
        replies.push(format!("OK\nOK\n{n}\nOK\n(nil)\nERR\nOK\n2\n"));
    }
    let got = run(&server, &script.concat());
    let shortened: Vec<_> = got.lines().map(|line| if line.starts_with("ERR") { "ERR" } else { line }).collect();
    assert_eq!(shortened, replies.concat().lines().collect::<Vec<_>>());
}

#[test]
fn writes_that_follow_one_another_are_committed_in_groups() {
    let server = TestServer::start();
    let before = server.db.stats().txid;
    let script: Vec<_> = (0..5_000).map(|n| format!("SET k{n:04} {n}\n")).collect();
    assert_eq!(run(&server, &script.concat()), "OK\n".repeat(5_000));
    assert_eq!(run(&server, "COUNT\n"), "5000\n");
    let commits = server.db.stats().txid - before;
    assert!(commits < 2_500, "{commits} commits for 5000 writes");
}

#[test]
fn a_scan_and_many_gets_of_more_than_fits_any_buffer_come_whole() {
    let db = Options::new().open_in_memory().unwrap();
    let value = "v".repeat(1 << 20);
    db.update(|tx| {
        let mut bucket = tx.create_bucket("default")?;
        (0..20).try_for_each(|n| bucket.put(format!("k{n:02}"), &value))
    })
    .unwrap();
    let server = TestServer::serve(db, |_| {});
    let lines = run(&server, "SCAN\n");
    let lines: Vec<_> = lines.lines().collect();
    assert_eq!(lines.len(), 21);
    assert!((0..20).all(|n| lines[n] == format!("k{n:02} {value}")));
    let keys: Vec<_> = (0..20).map(|n| format!("k{n:02}")).collect();
    let values = run(&server, &format!("MGET {} absent\nPING\n", keys.join(" ")));
    let values: Vec<_> = values.lines().collect();
    assert_eq!(values.len(), 22);
    assert!(values[..20].iter().all(|line| **line == value));
    assert_eq!(values[20..], ["(nil)", "PONG"]);
}

// Promises: text-too-large.
#[test]
fn a_value_over_the_frame_limit_is_told_by_its_size_here_too() {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| tx.create_bucket("default")?.put("large", vec![b'v'; 70_000])).unwrap();
    let server = TestServer::serve(db, |config| config.limits.max_frame = 64 * 1024);
    let mut client = server.text();
    assert!(client.ask("GET large").starts_with("ERR VALUE_TOO_LARGE "));
    assert_eq!(client.ask("EXISTS large"), "1");
    assert_eq!(client.ask_all("SCAN"), ["large ERR VALUE_TOO_LARGE 70000 bytes"]);
}
