//! `boltkv txn`: lines that are done together, and what is said when they are not.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::fs::File;

use crate::common::server::Server;
use crate::common::{Ran, run_with_input};

#[test]
fn lines_are_done_together_and_answered_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("txn.db"));
    let lines = "# two accounts\n\nIF ABSENT ada\nSET ada 10\r\nSET bob 0\nGET ada\nMGET bob eve\nSCAN\nDEL eve\n\
                 BUCKET CREATE log\nBUCKET USE log\nSET first paid in\nCOUNT\n";
    let done = server.run_with_input(["txn"], lines.as_bytes()).done_text();
    assert_eq!(done, "OK\nOK\n10\n0\n(nil)\nada 10\nbob 0\nEND\n(nil)\nOK\nOK\n1\n");
    assert_eq!(server.run(["get", "--bucket", "log", "first"]).done(), b"paid in");

    let file = folder.path().join("transfer");
    std::fs::write(&file, "IF EQUALS ada 10\nSET ada 7\nSET bob 3\n").unwrap();
    assert_eq!(server.run(args!["txn", &file]).done_text(), "OK\nOK\n");
    let said = server.run(args!["txn", &file]).failed(5);
    assert!(said.contains("line 1: CONDITION_FAILED: the condition ") && said.contains("has another value"), "{said}");
    assert_eq!(server.run(["get", "bob", "ada"]).done_text(), "3\n7\n");
}

#[test]
fn a_line_that_fails_is_named_and_nothing_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("txn.db"));
    server.run(["set", "k", "old"]).done();
    let said = server.run_with_input(["txn"], b"SET k new\n\nBUCKET USE nowhere\nSET k v\n").failed(1);
    assert!(said.contains("line 4: BUCKET_NOT_FOUND: no bucket"), "{said}");
    let said = server.run_with_input(["txn"], b"SET k new\nSETNX k v\n").failed(5);
    assert!(said.contains("line 2: CONDITION_FAILED"), "{said}");
    assert_eq!(server.run(["get", "k"]).done(), b"old");
    for (lines, named) in [
        ("SET k\n", "line 1: MALFORMED: usage: SET key value"),
        ("GET k\nNONSENSE\n", "line 2: UNSUPPORTED"),
        ("GET k\nEXEC\n", "line 2: this is no part of a transaction"),
        ("PING\n", "line 1: this is no part of a transaction"),
    ] {
        let said = run_with_input(["txn", "--addr", server.addr()], lines.as_bytes()).failed(2);
        assert!(said.contains(named), "{lines}: {said}");
    }
    assert_eq!(run_with_input(["txn", "/nowhere/at/all"], b"").code, Some(3));
}

#[test]
fn what_was_done_and_cannot_be_printed_is_not_called_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("txn.db"));
    server.run(["bucket", "create", "b"]).done();
    let input = folder.path().join("input");
    let full = |args: &[&str], text: &str| {
        std::fs::write(&input, text).unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        Ran::from(server.command(args).stdin(File::open(&input).unwrap()).stdout(full).output().unwrap())
    };
    for (args, input) in [
        (&["txn"][..], "INCR n\n"),
        (&["txn", "--json"], "INCR n\n"),
        (&["incr", "n"], ""),
        (&["bucket", "next-sequence", "b"], ""),
        (&["delete", "n", "m"], ""),
        (&["delete-range", "--all"], ""),
        (&["import", "--json"], "{\"bucket\":\"b\"}\n"),
    ] {
        let said = full(args, input).failed(4);
        assert!(said.contains("it was done, and what came of it is not printed: "), "{args:?}: {said}");
    }
    assert_eq!(server.run(["bucket", "sequence", "b"]).done_text(), "1\n");
    // What only reads has done nothing.
    let said = full(&["txn"], "COUNT\n").failed(1);
    assert!(!said.contains("it was done"), "{said}");
}

// Promises: ops-txn-cut.
#[test]
fn what_may_have_been_cut_off_is_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("txn.db"));
    let whole = "SET ada 7\r\n# what is left\nSET bob 100\n";
    let ends: Vec<_> = whole.match_indices('\n').map(|(at, _)| at + 1).collect();
    for len in (1..whole.len()).filter(|len| !ends.contains(len)) {
        let said = server.run_with_input(["txn"], &whole.as_bytes()[..len]).failed(2);
        let line = 1 + ends.iter().filter(|end| **end < len).count();
        assert!(said.contains(&format!("line {line}: it has no line end")), "{len}: {said}");
    }
    assert_eq!(server.run(["get", "--json", "ada", "bob"]).text().matches("null").count(), 2, "nothing was done");
    assert_eq!(server.run_with_input(["txn"], whole.as_bytes()).done_text(), "OK\nOK\n");
    assert_eq!(server.run_with_input(["txn"], b"").done_text(), "");
}

#[test]
fn it_is_printed_as_json_if_asked_and_begins_in_the_bucket_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("txn.db"));
    server.run(["bucket", "create", "b/inner"]).done();
    let lines = b"SET k v\nGET k\nGET ?\nDELETE ?\nCOUNT\nSCAN k\nBUCKET LIST b\n";
    let done = server.run_with_input(["txn", "--bucket", "b", "--json"], lines).done_text();
    let (_, results) = done.split_once(",\"results\":").unwrap();
    let expected = "[{\"written\":true},{\"value\":\"dg==\"},{\"value\":null},{\"deleted\":false},{\"count\":2},\
                    {\"entries\":[{\"key\":\"aw==\",\"value\":\"dg==\"}]},{\"entries\":[{\"bucket\":\"aW5uZXI=\"}]}]}\n";
    assert_eq!(results, expected);
    assert!(done.starts_with("{\"txid\":"), "{done}");
    let lines = b"INCR n 5\nDECR n 7\nBUCKET NEXT b\nDELRANGE n \"\"\nGET n\n";
    let done = server.run_with_input(["txn", "--bucket", "b", "--json"], lines).done_text();
    let (_, results) = done.split_once(",\"results\":").unwrap();
    let expected = "[{\"number\":5},{\"number\":-2},{\"sequence\":1},{\"range\":{\"deleted\":1,\"more\":false}},\
                    {\"value\":null}]}\n";
    assert_eq!(results, expected);
}
