//! `boltkv set`: where a value may come from, and what is said when it cannot be stored.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::fs;

use crate::common::run;
use crate::common::server::Server;

#[test]
fn a_value_comes_from_an_argument_a_file_or_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("set.db"));
    let every_byte: Vec<u8> = (0..=255).collect();
    let file = folder.path().join("value");
    fs::write(&file, &every_byte).unwrap();

    server.run(["set", "argument", "hello world"]).done();
    server.run(["set", "empty", ""]).done();
    server.run(["set", "number", "-5"]).done();
    server.run(["set", "dashes", "--", "--bucket"]).done();
    server.run(args!["set", "file", "--file", &file]).done();
    server.run_with_input(["set", "input", "-"], &every_byte).done();
    server.run_with_input(["set", "dashed", "--file", "-"], &every_byte).done();
    server.run_with_input(["set", "dash", "-"], b"from standard input\n").done();
    server.run(["set", "nothing", "-"]).done();

    let expected: [(&str, &[u8]); 9] = [
        ("argument", b"hello world"),
        ("empty", b""),
        ("number", b"-5"),
        ("dashes", b"--bucket"),
        ("file", &every_byte),
        ("input", &every_byte),
        ("dashed", &every_byte),
        ("dash", b"from standard input\n"),
        ("nothing", b""),
    ];
    for (key, value) in expected {
        assert_eq!(server.run(["get", key]).done(), value, "{key}");
    }
}

#[test]
fn keys_are_bytes_too() {
    use std::os::unix::ffi::OsStringExt as _;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("set.db"));
    let key = std::ffi::OsString::from_vec(b"k\xff\n".to_vec());
    server.run(args!["set", &key, "value"]).done();
    assert_eq!(server.run(args!["get", &key]).done(), b"value");
    assert_eq!(server.run(["scan"]).done_text(), "\"k\\xff\\n\" value\n");
}

#[test]
fn the_default_bucket_is_made_when_it_is_missing_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("set.db"));
    server.run(["set", "key", "value"]).done();
    assert_eq!(server.run(["bucket", "list"]).done_text(), "default\n");
    let said = server.run(["set", "--bucket", "users", "key", "value"]).failed(1);
    assert!(said.contains("BUCKET_NOT_FOUND"), "{said}");
    assert_eq!(server.run(["bucket", "list"]).done_text(), "default\n");
}

#[test]
fn what_is_too_large_or_too_short_is_refused_and_the_limit_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(&folder.path().join("set.db"), ["--max-frame", "100000"]);
    let said = server.run_with_input(["set", "large", "-"], &vec![7; 100_000]).failed(1);
    assert!(said.contains("over the limit of 100000"), "{said}");
    let said = server.run(["set", &"k".repeat(32_769), "value"]).failed(1);
    assert!(said.contains("KEY_TOO_LARGE") && said.contains("32768"), "{said}");
    let said = server.run(["set", "", "value"]).failed(1);
    assert!(said.contains("KEY_REQUIRED"), "{said}");
    assert_eq!(server.run(["scan", "--count"]).done_text(), "0\n");
}

#[test]
fn a_value_beyond_all_frames_is_not_even_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let endless = folder.path().join("endless");
    fs::File::create(&endless).unwrap().set_len(1 << 40).unwrap();
    // No server is asked: there is none.
    let said = run(args!["set", "key", "--addr", "127.0.0.1:1", "--file", &endless]).failed(1);
    assert!(said.contains("VALUE_TOO_LARGE"), "{said}");
}

#[test]
fn a_file_that_cannot_be_read_is_told_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    for path in [missing.as_path(), folder.path()] {
        let said = run(args!["set", "key", "--file", path]).failed(3);
        assert!(said.contains(path.to_str().unwrap()), "{said}");
    }
}

#[test]
fn a_value_has_one_source() {
    assert_eq!(run(["set", "key", "value", "--file", "value"]).code, Some(2));
}

#[test]
fn without_a_value_nothing_is_stored_and_the_ways_to_give_one_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("set.db"));
    for input in [&b""[..], b"value"] {
        let said = server.run_with_input(["set", "key"], input).failed(2);
        assert!(said.contains("`-`") && said.contains("--file") && said.contains("''"), "{said}");
    }
    server.run(["get", "key"]).failed(1);
}

#[test]
fn a_condition_that_does_not_hold_leaves_everything_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("set.db"));
    let refused = |args: &[&str]| {
        let said = server.run(["set", "key", "new"].iter().chain(args)).failed(1);
        assert!(said.contains("CONDITION_FAILED") || said.contains("no key key"), "{args:?}: {said}");
    };
    // Neither a key nor its bucket is there, and none is made for nothing.
    refused(&["--if-present"]);
    refused(&["--if-equals", "old"]);
    assert_eq!(server.run(["bucket", "list"]).done_text(), "");

    server.run(["set", "key", "old", "--if-absent"]).done();
    refused(&["--if-absent"]);
    refused(&["--if-equals", "other"]);
    refused(&["--if-equals", ""]);
    assert_eq!(server.run(["get", "key"]).done(), b"old");
    server.run(["set", "key", "-5", "--if-equals", "old"]).done();
    server.run(["set", "key", "newer", "--if-equals", "-5"]).done();
    server.run(["set", "key", "newest", "--if-present"]).done();
    assert_eq!(server.run(["get", "key"]).done(), b"newest");
    assert_eq!(run(["set", "key", "value", "--if-absent", "--if-present"]).code, Some(2), "one condition at most");
    assert_eq!(run(["set", "key", "value", "--if-present", "--if-equals", "a"]).code, Some(2));
}
