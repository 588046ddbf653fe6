//! Transactions in lines of text: MULTI, what is queued, and EXEC.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::time::Duration;

use crate::common::{TestServer, Text};

/// Sends lines in one go; answers as many as come back.
fn say(client: &mut Text, lines: &[&str], answers: usize) -> Vec<String> {
    client.send(lines.concat().replace('\n', "\r\n"));
    (0..answers).map(|_| client.line()).collect()
}

// Promises: text-multi.
#[test]
fn lines_are_queued_and_done_together_with_their_replies_in_order() {
    let server = TestServer::start();
    let mut client = server.text();
    let lines = [
        "MULTI\n",
        "SET a 1\n",
        "GET a\n",
        "\n",
        "EXISTS nothing\n",
        "MGET a nothing\n",
        "SCAN\n",
        "COUNT\n",
        "DELETE a\n",
        "DELETE a\n",
        "BUCKET LIST\n",
        "SET a 2\n",
        "EXEC\n",
    ];
    let answers = say(&mut client, &lines, 24);
    let mut expected = vec!["OK"];
    expected.extend(["QUEUED"; 10]);
    expected.extend(["OK", "1", "0", "1", "(nil)", "a 1", "END", "1", "OK", "(nil)", "default", "END", "OK"]);
    assert_eq!(answers, expected);
    assert_eq!(client.line(), "END");
    assert_eq!(client.ask("GET a"), "2");
    assert_eq!(server.db.stats().txid, 2, "one transaction, after that of the new file");
    let answers = say(&mut client, &["MULTI\n", "GET a\n", "GET a\n", "EXEC\n"], 6);
    assert_eq!(answers, ["OK", "QUEUED", "QUEUED", "2", "2", "END"]);
    assert_eq!(say(&mut client, &["MULTI\n", "EXEC\n"], 2), ["OK", "END"]);
}

// Promises: text-multi, text-multi-if.
#[test]
fn a_condition_that_does_not_hold_is_one_error_and_nothing_is_done() {
    let server = TestServer::start();
    let mut client = server.text();
    for condition in ["IF PRESENT k\n", "IF EQUALS k a b\n", "SETXX k v\n", "CAS k old new\n", "CAD k old\n"] {
        let answers = say(&mut client, &["MULTI\n", "SET other v\n", condition, "EXEC\n"], 4);
        assert_eq!(answers[..3], ["OK", "QUEUED", "QUEUED"]);
        assert!(answers[3].starts_with("ERR CONDITION_FAILED "), "{condition}: {}", answers[3]);
        assert_eq!(client.ask("GET other"), "(nil)");
    }
    let answers = say(&mut client, &["MULTI\n", "IF ABSENT k\n", "SET k a b\n", "SETXX k a b\n", "EXEC\n"], 7);
    assert_eq!(answers, ["OK", "QUEUED", "QUEUED", "QUEUED", "OK", "OK", "END"]);
    let lines = ["MULTI\n", "IF EQUALS k a b\n", "IF PRESENT k\n", "CAD k a b\n", "SETNX k c\n", "EXEC\n"];
    assert_eq!(say(&mut client, &lines, 8)[5..], ["OK", "OK", "END"]);
    let answers = say(&mut client, &["MULTI\n", "IF ABSENT k\n", "GET k\n", "EXEC\n"], 4);
    assert!(answers[3].starts_with("ERR CONDITION_FAILED condition 0 "), "{}", answers[3]);
    for line in ["EXEC", "DISCARD", "IF ABSENT k"] {
        assert!(client.ask(line).starts_with("ERR MALFORMED "), "{line}");
    }
}

// Promises: text-multi-refused.
#[test]
fn a_line_that_is_refused_makes_exec_refuse() {
    let server = TestServer::start();
    let mut client = server.text();
    let long = format!("SET k {}\n", "v".repeat(70_000));
    for wrong in ["NONSENSE\n", "SET k\n", "MULTI\n", "GET \"k\n", &long] {
        let answers = say(&mut client, &["MULTI\n", "SET k v\n", wrong, "SET k w\n", "EXEC\n"], 5);
        assert_eq!([&answers[0], &answers[1], &answers[3]], ["OK", "QUEUED", "QUEUED"], "{wrong}");
        assert!(answers[2].starts_with("ERR ") && answers[4].starts_with("ERR MALFORMED "), "{answers:?}");
        assert_eq!(client.ask("GET k"), "(nil)");
    }
}

// Promises: text-multi-within.
#[test]
fn what_is_not_for_a_transaction_is_done_at_once_and_buckets_are_used_until_its_end() {
    let server = TestServer::start();
    let mut client = server.text();
    assert_eq!(client.ask("BUCKET CREATE here"), "OK");
    assert_eq!(client.ask("BUCKET USE here"), "OK");
    let lines = ["MULTI\n", "BUCKET CREATE there\n", "BUCKET USE there\n", "SET k there\n", "PING\n"];
    assert_eq!(say(&mut client, &lines, 5), ["OK", "QUEUED", "OK", "QUEUED", "PONG"]);
    assert!(client.ask_all("STATS").contains(&"txid 2".to_owned()));
    assert!(client.ask_all("HELP").iter().any(|line| line.starts_with("MULTI ")));
    assert_eq!(say(&mut client, &["BUCKET USE here\n", "SET k here\n", "EXEC\n"], 6)[2..], ["OK", "OK", "OK", "END"]);
    assert_eq!(client.ask("GET k"), "here");
    for end in ["DISCARD\n", "EXEC\n"] {
        let answers = say(&mut client, &["MULTI\n", "BUCKET USE nowhere\n", "SET k lost\n", end], 4);
        assert_eq!(answers[..3], ["OK", "OK", "QUEUED"]);
        assert!(answers[3] == "OK" || answers[3].starts_with("ERR BUCKET_NOT_FOUND request 0 "), "{answers:?}");
        assert_eq!(client.ask("GET k"), "here");
    }
    assert_eq!(client.ask("BUCKET USE there"), "OK");
    assert_eq!(client.ask("GET k"), "there");
}

// Promises: text-multi.
#[test]
fn the_end_of_a_connection_is_no_exec() {
    let server = TestServer::start();
    let mut client = server.text();
    assert_eq!(say(&mut client, &["MULTI\n", "SET k v\n"], 2), ["OK", "QUEUED"]);
    client.end();
    assert_eq!(client.rest(), "");
    let mut client = server.text();
    assert_eq!(say(&mut client, &["MULTI\n", "SET k v\n", "QUIT\n"], 2), ["OK", "QUEUED"]);
    assert_eq!(client.rest(), "");
    assert_eq!(server.text().ask("GET k"), "(nil)");
}

// Promises: text-multi-room.
#[test]
fn what_is_queued_has_the_bounds_of_a_frame_and_of_the_servers_memory_and_has_to_go_on() {
    let server = TestServer::start_with(|config| {
        config.limits.max_frame = 1 << 20;
        config.limits.memory = Some(4 << 20);
        config.limits.queue_bytes = 1 << 20;
        config.timeouts.request = Duration::from_millis(300);
    });
    let mut client = server.text();
    let value = "v".repeat(60_000);
    let fill = |client: &mut Text, lines: usize| {
        assert_eq!(client.ask("MULTI"), "OK");
        (0..lines).map(|n| client.ask(&format!("SET k{n} {value}"))).take_while(|answer| answer == "QUEUED").count()
    };
    assert_eq!(fill(&mut client, 18), 17, "as many as fit a frame");
    assert!(client.ask("EXEC").starts_with("ERR MALFORMED "));
    assert_eq!(fill(&mut client, 17), 17);
    assert_eq!(say(&mut client, &["EXEC\n"], 18)[17], "END");
    // Each key has the path with it.
    let deep = format!("BUCKET USE {}", "n".repeat(50_000));
    assert_eq!(say(&mut client, &["MULTI\n", &deep, "\n"], 2), ["OK", "OK"]);
    assert!(client.ask(&format!("MGET{}", " k".repeat(30_000))).starts_with("ERR FRAME_TOO_LARGE "));
    assert_eq!(client.ask("DISCARD"), "OK");
    // Three connections fill what there is of memory, whichever of them.
    let mut others: Vec<_> = (0..3).map(|_| server.text()).collect();
    let filled: Vec<_> = others.iter_mut().map(|client| fill(client, 17)).collect();
    assert!(filled.iter().any(|lines| *lines < 17), "{filled:?}");
    // Who takes memory and does not go on is told, and closed; who was refused has none.
    for (client, lines) in others.iter_mut().zip(filled) {
        if lines == 17 {
            assert!(client.rest().starts_with("ERR MALFORMED the request did not arrive"));
        } else {
            assert!(client.ask("EXEC").starts_with("ERR MALFORMED a line "));
        }
    }
    drop(others);
    crate::common::eventually(|| {
        let all = fill(&mut client, 17) == 17;
        assert_eq!(client.ask("DISCARD"), "OK");
        all
    });
    // A little may wait for as long as the client likes.
    let mut slow = server.text();
    assert_eq!(say(&mut slow, &["MULTI\n", "SET slow v\n"], 2), ["OK", "QUEUED"]);
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(say(&mut slow, &["EXEC\n"], 2), ["OK", "END"]);
}
