//! `boltkv scan`: which entries it prints, in which order and in which form.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::fmt::Write as _;
use std::io::Read as _;
use std::process::Stdio;

use crate::common::server::Server;

/// A server with some entries and a bucket in its default bucket.
fn filled(folder: &tempfile::TempDir) -> Server {
    let server = Server::start(&folder.path().join("scan.db"));
    let answer = server.text("SET a1 one\nSET a2 two words\nSET b1 \"\"\nBUCKET CREATE default/b2\nSET c1 three\n");
    assert_eq!(answer, "OK\n".repeat(5));
    server
}

#[test]
fn entries_are_printed_in_key_order_as_the_text_dialect_prints_them() {
    let folder = tempfile::tempdir().unwrap();
    let server = filled(&folder);
    let printed = server.run(["scan"]).done_text();
    assert_eq!(printed, "a1 one\na2 two words\nb1 \"\"\nb2/\nc1 three\n");
    assert_eq!(server.text("SCAN\n"), printed + "END\n");
}

#[test]
fn a_prefix_bounds_a_limit_and_the_direction_choose_among_them() {
    let folder = tempfile::tempdir().unwrap();
    let server = filled(&folder);
    let keys = |args: &[&str]| {
        let args = ["scan", "--keys-only"].iter().chain(args).copied();
        server.run(args).done_text().lines().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(keys(&[]), "a1 a2 b1 b2/ c1");
    assert_eq!(keys(&["a"]), "a1 a2");
    assert_eq!(keys(&["nothing"]), "");
    assert_eq!(keys(&["--reverse"]), "c1 b2/ b1 a2 a1");
    assert_eq!(keys(&["--limit", "2"]), "a1 a2");
    assert_eq!(keys(&["--limit", "2", "--reverse"]), "c1 b2/");
    assert_eq!(keys(&["--limit", "0"]), "");
    assert_eq!(keys(&["--from", "a2"]), "a2 b1 b2/ c1");
    assert_eq!(keys(&["--to", "a2"]), "a1");
    assert_eq!(keys(&["--from", "a2", "--to", "b2"]), "a2 b1");
    assert_eq!(keys(&["--from", "z", "--to", "a"]), "");
}

#[test]
fn they_are_counted_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let server = filled(&folder);
    assert_eq!(server.run(["scan", "--count"]).done_text(), "5\n");
    assert_eq!(server.run(["scan", "--count", "a"]).done_text(), "2\n");
    assert_eq!(server.run(["scan", "--count", "--prefix", "a"]).done_text(), "2\n");
    assert_eq!(server.run(["scan", "--prefix", "a", "a"]).code, Some(2));
    assert_eq!(server.run(["scan", "--count", "--json"]).done_text(), "{\"count\":5}\n");
}

#[test]
fn json_is_for_scripts() {
    let folder = tempfile::tempdir().unwrap();
    let server = filled(&folder);
    let expected = "{\"key\":\"YjE=\",\"value\":\"\"}\n{\"bucket\":\"YjI=\"}\n";
    assert_eq!(server.run(["scan", "--json", "b"]).done_text(), expected);
    let expected = "{\"key\":\"YjE=\"}\n{\"bucket\":\"YjI=\"}\n";
    assert_eq!(server.run(["scan", "--json", "--keys-only", "b"]).done_text(), expected);
}

#[test]
fn the_default_bucket_is_empty_before_it_is_made_and_any_other_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("scan.db"));
    assert_eq!(server.run(["scan"]).done_text(), "");
    assert_eq!(server.run(["scan", "--count"]).done_text(), "0\n");
    let said = server.run(["scan", "--bucket", "users"]).failed(1);
    assert!(said.contains("BUCKET_NOT_FOUND"), "{said}");
}

#[test]
fn who_names_a_bucket_where_a_prefix_stands_is_told_how_to_scan_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("scan.db"));
    server.run(["bucket", "create", "users/e u"]).done();
    for (typed, command) in [
        (&["users"][..], "`boltkv scan --bucket users`"),
        (&["users", "--count"], "`boltkv scan --bucket users`"),
        (&["users/e u"], "`boltkv scan --bucket 'users/e u'`"),
    ] {
        let ran = server.run([&["scan"], typed].concat());
        assert!(ran.code == Some(0) && ran.stderr.starts_with("boltkv: no key begins with users"), "{}", ran.stderr);
        assert!(ran.stderr.contains(command), "{}", ran.stderr);
    }
    server.run(["set", "users:1", "value"]).done();
    for typed in [&["users"][..], &["user"], &["none"], &["--prefix", "users/"], &["--bucket", "users", "users"]] {
        server.run([&["scan"], typed].concat()).done();
    }
}

#[test]
fn the_root_can_be_scanned() {
    let folder = tempfile::tempdir().unwrap();
    let server = filled(&folder);
    assert_eq!(server.run(["scan", "--bucket", "/"]).done_text(), "default/\n");
}

#[test]
fn more_than_a_frame_holds_is_printed_to_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(&folder.path().join("scan.db"), ["--max-frame", "65536"]);
    let (mut commands, mut expected) = (String::new(), String::new());
    for i in 0..3_000 {
        let value = "v".repeat(100 + i % 300);
        writeln!(commands, "SET key{i:05} {value}").unwrap();
        writeln!(expected, "key{i:05} {value}").unwrap();
    }
    assert_eq!(server.text(&commands), "OK\n".repeat(3_000));
    assert!(server.run(["scan"]).done_text() == expected, "not all entries, or not as they are");
}

#[test]
fn whoever_has_read_enough_may_go() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("scan.db"));
    let mut commands = String::new();
    for i in 0..3_000 {
        writeln!(commands, "SET key{i:05} {}", "v".repeat(300)).unwrap();
    }
    assert_eq!(server.text(&commands), "OK\n".repeat(3_000));
    let mut child = server.command(["scan"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 10]).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]));
}
