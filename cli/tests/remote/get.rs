//! `boltkv get`: what it prints, and with what it exits where there is nothing.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use crate::common::server::Server;
use crate::common::{run, unread};

#[test]
fn a_value_is_printed_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("get.db"));
    for value in [&b"world"[..], b"", b"two\nlines\n", b"\x00\xff\r\n\x1b[31m"] {
        server.run_with_input(["set", "key", "-"], value).done();
        assert_eq!(server.run(["get", "key"]).done(), value);
    }
}

#[test]
fn several_values_are_printed_a_line_each_in_the_order_of_their_keys() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("get.db"));
    let numbers: Vec<String> = (0..50).map(|number| format!("n{number}")).collect();
    for (key, value) in [("a", "one"), ("b", "two\nlines"), ("c", "(nil)"), ("d", "")] {
        server.run(["set", key, value]).done();
    }
    let lines = numbers.iter().fold(String::new(), |lines, number| lines + &format!("SET {number} {number}\n"));
    assert_eq!(server.text(&lines), "OK\n".repeat(50));
    let printed = "one\n\"two\\nlines\"\n\"(nil)\"\n\"\"\n";
    assert_eq!(server.run(["get", "a", "b", "c", "d"]).done_text(), printed);
    assert_eq!(server.text("MGET a b c d\n"), printed, "as the text dialect prints them");
    let all = server.run(["get"].into_iter().chain(numbers.iter().map(String::as_str))).done_text();
    assert_eq!(all.lines().collect::<Vec<_>>(), numbers);
}

#[test]
fn of_several_keys_those_that_are_not_there_are_told_apart_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("get.db"));
    let ran = server.run(["get", "a", "b"]);
    assert_eq!((ran.code, ran.text().as_str()), (Some(1), "(nil)\n(nil)\n"), "nor is there a bucket yet");
    server.run(["set", "b", "here"]).done();
    let ran = server.run(["get", "a", "b", "c", "d", "e"]);
    assert_eq!(ran.text(), "(nil)\nhere\n(nil)\n(nil)\n(nil)\n");
    assert_eq!(ran.failed(1), "boltkv: no key a, c, d and 1 more in bucket default\n");
    for command in ["get", "delete"] {
        let said = unread(&mut server.command([command, "a", "c"])).failed(1);
        assert_eq!(said, "boltkv: no key a, c in bucket default\n", "also where nobody reads what it prints");
    }
}

#[test]
fn json_is_for_scripts() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("get.db"));
    server.run(["set", "k", "v"]).done();
    assert_eq!(server.run(["get", "--json", "k"]).done_text(), "{\"key\":\"aw==\",\"value\":\"dg==\"}\n");
    let ran = server.run(["get", "--json", "k", "x"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.text(), "{\"key\":\"aw==\",\"value\":\"dg==\"}\n{\"key\":\"eA==\",\"value\":null}\n");
}

#[test]
fn a_key_that_is_not_there_exits_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("get.db"));
    let no_key = "boltkv: no key nothing in bucket default\n";
    assert_eq!(server.run(["get", "nothing"]).failed(1), no_key, "nor is there a bucket yet");
    server.run(["set", "something", "here"]).done();
    assert_eq!(server.run(["get", "nothing"]).failed(1), no_key);
}

#[test]
fn a_bucket_that_is_not_there_exits_with_1_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("get.db"));
    let said = server.run(["get", "--bucket", "users/eu", "ada"]).failed(1);
    assert!(said.contains("BUCKET_NOT_FOUND"), "{said}");
}

#[test]
fn the_top_has_no_entries() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("get.db"));
    for command in [&["get", "key"][..], &["delete", "key"], &["set", "key", "value"]] {
        let said = server.run(command.iter().chain(&["--bucket", "/"])).failed(2);
        assert!(said.contains("there are only buckets at the top"), "{said}");
    }
}

#[test]
fn a_value_that_is_too_large_to_be_sent_names_the_limit_and_its_option() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("get.db");
    let server = Server::start(&db);
    server.run_with_input(["set", "large", "-"], &vec![7; 100_000]).done();
    server.stop().done();
    let server = Server::start_with(&db, ["--max-frame", "64KiB"]);
    let said = server.run(["get", "large"]).failed(1);
    assert!(said.contains("100000 bytes") && said.contains("65536") && said.contains("--max-frame"), "{said}");
}

#[test]
fn a_bucket_is_no_value() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("get.db"));
    server.run(["bucket", "create", "users/eu"]).done();
    let said = server.run(["get", "--bucket", "users", "eu"]).failed(1);
    assert!(said.contains("INCOMPATIBLE_VALUE"), "{said}");
}

#[test]
fn a_server_that_cannot_be_reached_exits_with_3() {
    // A port that was free a moment ago, and is again.
    let addr = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let said = run(["get", "key", "--addr", &addr.to_string()]).failed(3);
    assert!(said.contains(&addr.to_string()) && said.contains("refused"), "{said}");
}

#[test]
fn something_else_at_the_port_exits_with_3() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let said = run(["get", "key", "--timeout", "0.2", "--addr", &addr]).failed(3);
    assert!(said.contains(&addr), "it accepts and never answers: {said}");
}

#[test]
fn a_path_that_cannot_be_one_is_a_mistake_of_usage() {
    let ran = run(["get", "--bucket", "a//b", "key"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("a bucket name in the path is empty"), "{}", ran.stderr);
}
