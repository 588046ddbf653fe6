//! `boltkv bucket`: buckets that come, are listed and go.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use crate::common::server::Server;

#[test]
fn buckets_are_created_with_their_parents_listed_and_deleted_with_all_within() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("bucket.db"));
    assert_eq!(server.run(["bucket", "list"]).done_text(), "");
    for path in ["users/eu", "users/us", "users/eu", "logs"] {
        server.run(["bucket", "create", path]).done();
    }
    assert_eq!(server.run(["bucket", "list"]).done_text(), "logs\nusers\n");
    assert_eq!(server.run(["bucket", "list", "users"]).done_text(), "eu\nus\n");
    assert_eq!(server.run(["bucket", "list", "users/"]).done_text(), "eu\nus\n");
    assert_eq!(server.run(["bucket", "list", "users/eu"]).done_text(), "");
    assert_eq!(
        server.run(["bucket", "list", "--json"]).done_text(),
        "{\"bucket\":\"bG9ncw==\"}\n{\"bucket\":\"dXNlcnM=\"}\n"
    );
    server.run(["bucket", "delete", "users"]).done();
    assert_eq!(server.run(["bucket", "list"]).done_text(), "logs\n");
}

#[test]
fn a_buckets_figures_are_printed_as_lines_and_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("bucket.db"));
    server.run(["bucket", "create", "users/eu"]).done();
    server.run(["set", "-b", "users", "key", "value"]).done();
    server.run(["bucket", "set-sequence", "users", "9"]).done();
    assert_eq!(server.run(["bucket", "sequence", "users"]).done_text(), "9\n");
    let lines = server.run(["bucket", "stat", "users"]).done_text();
    assert!(lines.starts_with("keys 2\nsequence 9\ndepth "), "{lines}");
    assert!(lines.lines().any(|line| line == "buckets 2"), "{lines}");
    let json: serde_json::Value =
        serde_json::from_slice(&server.run(["bucket", "stat", "users", "--json"]).done()).unwrap();
    assert_eq!((&json["keys"], &json["sequence"]), (&2.into(), &9.into()));
    let missing = server.run(["bucket", "stat", "nothing"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.stderr.contains("BUCKET_NOT_FOUND"), "{}", missing.stderr);
}

#[test]
fn values_are_not_listed_among_buckets() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("bucket.db"));
    server.run(["set", "key", "value"]).done();
    server.run(["bucket", "create", "default/inner"]).done();
    assert_eq!(server.run(["bucket", "list", "default"]).done_text(), "inner\n");
}

#[test]
fn a_name_may_hold_anything_that_is_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("bucket.db"));
    let path = r"a\/b\\c";
    server.run(["bucket", "create", path]).done();
    server.run(["bucket", "create", r"\x00"]).done();
    let listed = server.run(["bucket", "list"]).done_text();
    // Each as it was given, so that a script can use what it reads here.
    assert_eq!(listed.lines().collect::<Vec<_>>(), [r"\x00", path]);
    for name in listed.lines() {
        server.run(["set", "--bucket", name, "key", "value"]).done();
        assert_eq!(server.run(["get", "--bucket", name, "key"]).done(), b"value");
    }
}

#[test]
fn what_is_not_there_or_no_bucket_exits_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("bucket.db"));
    server.run(["set", "key", "value"]).done();
    let cases = [
        (["bucket", "delete", "nothing"], "BUCKET_NOT_FOUND"),
        (["bucket", "list", "nothing"], "BUCKET_NOT_FOUND"),
        (["bucket", "create", "default/key"], "INCOMPATIBLE_VALUE"),
        (["bucket", "delete", "default/key"], "INCOMPATIBLE_VALUE"),
        (["bucket", "create", "/"], "BUCKET_NAME_REQUIRED"),
        (["bucket", "delete", "/"], "BUCKET_NAME_REQUIRED"),
    ];
    for (args, code) in cases {
        let said = server.run(args).failed(1);
        assert!(said.contains(code), "{args:?}: {said}");
    }
    assert_eq!(server.run(["get", "key"]).done(), b"value");

    server.run(["bucket", "create", "users/eu"]).done();
    server.run(["set", "--bucket", "users/eu", "ada", "Lovelace"]).done();
    for path in ["users/eu/ada", "users/eu/ada/more"] {
        let said = server.run(["bucket", "create", path]).failed(1);
        assert!(said.contains(r#""ada" in bucket "users"/"eu" is a value"#), "{said}");
    }
}

#[test]
fn a_bucket_is_moved_and_renamed_and_its_sequence_raised_and_set() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("bucket.db"));
    server.run(["bucket", "create", "a/b"]).done();
    assert_eq!(server.run(["bucket", "next-sequence", "a/b"]).done_text(), "1\n");
    server.run(["bucket", "set-sequence", "a/b", "41"]).done();
    server.run(["bucket", "move", "a/b", "b"]).done();
    assert_eq!(server.run(["bucket", "list"]).done_text(), "a\nb\n");
    assert_eq!(server.run(["bucket", "next-sequence", "b"]).done_text(), "42\n");
    server.run(["bucket", "move", "b", "a/c"]).done();
    server.run(["bucket", "move", "a/c", "a/b"]).done();
    server.run(["bucket", "move", "a/b", "b"]).done();
    assert_eq!(server.run(["bucket", "list"]).done_text(), "a\nb\n");
    assert!(server.run(["bucket", "move", "b", "none/b"]).failed(1).contains("BUCKET_NOT_FOUND"));
    let missing = server.run(["bucket", "move", "a/none", "c"]).failed(1);
    assert!(missing.contains("no bucket \"none\" in bucket \"a\""), "{missing}");
    let missing = server.run(["bucket", "move", "a/none/b", "c"]).failed(1);
    assert!(missing.contains("no bucket \"none\" in bucket \"a\""), "{missing}");
    assert!(server.run(["bucket", "next-sequence", "none"]).failed(1).contains("BUCKET_NOT_FOUND"));
}
