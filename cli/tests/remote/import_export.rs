//! `boltkv export` and `boltkv import`: what a server has, as lines and back, in every form, over restarts and from where an
//! import has stopped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::server::Server;
use crate::common::{boltkv, run};
use boltkv_storage::{Error, Options};

/// Buckets within buckets, text and what is none, and more than one frame of it.
pub(crate) fn make(file: &Path) {
    let db = Options::new().open(file).unwrap();
    db.update(|tx| {
        tx.create_bucket("empty")?;
        tx.create_bucket([0, b'/', 0xff])?.put([0xff], [0xfe, 0, b'\n'])?;
        let mut bucket = tx.create_bucket("users")?;
        bucket.put("a,b \"c\"", "line\r\nline")?;
        bucket.put("large", vec![b'x'; 300_000])?;
        bucket.put("z", "")?;
        bucket.set_sequence(5)?;
        let mut inner = bucket.create_bucket("eu")?;
        inner.set_sequence(u64::MAX)?;
        (0..5_000_u32).try_for_each(|n| inner.put(format!("{n:06}"), "größe"))?;
        inner.create_bucket("deeper")?.put("k", "v")
    })
    .unwrap_or_else(|error: Error| panic!("{error}"));
    db.close().unwrap();
}

#[track_caller]
fn assert_same(one: &Path, other: &Path) {
    run(args!["file", "diff", one, other]).done();
}

// Promises: ops-import, ops-export-state.
#[test]
fn what_a_server_has_comes_to_another_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("from.db");
    make(&file);
    let server = Server::start(&file);
    let exports =
        [&["export"][..], &["export", "--csv"], &["export", "--bucket", "/"]].map(|args| server.run(args).done());
    let users = server.run(["export", "-b", "users/eu"]).done_text();
    assert!(users.starts_with("{\"bucket\":\"users\",\"sequence\":5}\n"), "{users:.200}");
    let second = users.lines().nth(2).unwrap();
    assert!(second.starts_with("{\"bucket\":\"users/eu\",\"key\":\"000000\""), "{second}");
    assert_eq!(users.lines().count(), 2 + 5_000 + 2);
    let output = folder.path().join("out.jsonl");
    server.run(args!["export", "--output", &output]).done();
    assert!(std::fs::read(&output).unwrap() == exports[0] && exports[2] == exports[0]);
    assert!(server.run(["export", "--bucket", "none"]).failed(1).contains("BUCKET_NOT_FOUND"));
    server.stop();

    let of_file = [&[][..], &["--text"], &["--csv"]].map(|args| {
        run(args!["file", "export", &file].iter().chain(&args.iter().map(Into::into).collect::<Vec<_>>())).done()
    });
    assert!(String::from_utf8_lossy(&of_file[1]).starts_with("{\"bucket\":\"\\\\x00\\\\/\\\\xff\",\"sequence\":0}\n"));
    assert!(exports[0] == of_file[1] && exports[1] == of_file[2], "what a file has is exported alike, served or not");
    for (number, lines) in exports.into_iter().chain(of_file).enumerate() {
        let csv = if lines.starts_with(b"{") { &[][..] } else { &["--csv"] };
        let to = folder.path().join(format!("{number}.db"));
        let server = Server::start(&to);
        let json = server.run_with_input([&["import", "--json"], csv].concat(), &lines).done_text();
        assert!(json.starts_with("{\"lines\":50"), "{json}");
        // Once more does no harm.
        server.run_with_input([&["import", "-"], csv].concat(), &lines).done();
        server.stop();
        assert_same(&file, &to);
        // Nor does it matter who reads the lines.
        let offline = folder.path().join(format!("{number}.offline.db"));
        let import: Vec<_> = args!["file", "import", &offline].into_iter().chain(csv.iter().map(Into::into)).collect();
        crate::common::run_with_input(import, &lines).done();
        assert_same(&file, &offline);
    }
}

// Promises: ops-import.
#[test]
fn a_line_that_cannot_be_used_ends_it_and_what_is_there_is_told_and_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("app.db"));
    let mut lines = String::from("{\"bucket\":\"b\",\"sequence\":7}\n");
    (1..2_500).for_each(|n| writeln!(lines, r#"{{"bucket":"b","key":"{n}","value":"v"}}"#).unwrap());
    let good = lines.clone();
    lines.push_str("{\"bucket\":\"b\",\"key\":\"\",\"value\":\"v\"}\n");
    lines.push_str("{\"bucket\":\"b\",\"key\":\"last\",\"value\":\"v\"}\n");
    let refused = server.run_with_input(["import"], lines.as_bytes()).failed(1);
    assert!(refused.contains("line 2501: KEY_REQUIRED") && refused.contains("--skip 2500"), "{refused}");
    assert_eq!(server.run(["scan", "-b", "b", "--count"]).done_text(), "2499\n");
    assert_eq!(server.text("BUCKET NEXT b\n"), "8\n");

    let refused = server.run_with_input(["import"], format!("{good}no line\n").as_bytes()).failed(1);
    assert!(refused.contains("line 2501: it is no JSON, from column 2 on"), "{refused}");
    let file = folder.path().join("lines.jsonl");
    std::fs::write(&file, format!("{good}{}", "{\"bucket\":\"b\",\"key\":\"last\",\"value\":\"v\"}\n")).unwrap();
    assert_eq!(server.run(args!["import", "--json", "--skip", "2500", &file]).done_text(), "{\"lines\":1}\n");
    assert_eq!(server.run(["get", "-b", "b", "last"]).done_text(), "v");
    assert_eq!(server.run(args!["import", &file]).done_text(), "2,501 lines\n");
    assert!(server.run(args!["import", "--skip", "2502", &file]).failed(2).contains("only 2501 lines"));

    // The first line of a bucket is missing; a bucket stands where a value is meant.
    let refused = server.run_with_input(["import"], b"{\"bucket\":\"c\",\"key\":\"k\",\"value\":\"v\"}\n").failed(1);
    assert!(refused.contains("line 1: BUCKET_NOT_FOUND") && refused.contains("nothing was put in"), "{refused}");
    let refused = server.run_with_input(["import", "--csv"], b"key,value\nk,v\n").failed(1);
    assert!(refused.contains("must name the columns"), "{refused}");
    // What is counted of CSV are records: the header is none, and one may have several lines.
    let records = b"bucket,key,value\nb,k,\"v\nw\"\nnone,k,v\n";
    let refused = server.run_with_input(["import", "--csv"], records).failed(1);
    assert!(refused.contains("record 2: BUCKET_NOT_FOUND: no bucket"), "{refused}");
    assert!(refused.contains("the record before is there: mend or remove record 2, then --skip 1"), "{refused}");
    assert!(refused.ends_with("; --skip 2 passes it over\n"), "{refused}");
    assert_eq!(server.run(["import", "none.jsonl"]).code, Some(3));
    run(args!["import", "--addr", "127.0.0.1:1", &file]).failed(3);
}

#[test]
fn what_cannot_be_used_is_passed_over_when_told_in_either_form() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("app.db"));
    let json = "{\"bucket\":\"b\"}\nno line\n{\"bucket\":\"b\",\"key\":\"k\",\"value\":\"v\"}\n";
    let csv = "bucket,key,value\nb,,\n\"no\nrecord\"\nb,c,v\n";
    for (options, lines) in [(&["--json"][..], json), (&["--json", "--csv"], csv)] {
        let import = |skip| server.run_with_input([&["import", "--skip", skip], options].concat(), lines.as_bytes());
        let refused = import("0").failed(1);
        assert!(refused.contains("then --skip 1; --skip 2 passes it over"), "{refused}");
        assert!(import("1").failed(1).contains("--skip 2 passes it over"));
        assert_eq!(import("2").done_text(), "{\"lines\":1}\n");
    }
    assert_eq!(server.run(["scan", "-b", "b"]).done_text(), "c v\nk v\n");
    let refused = server.run_with_input(["import"], csv.as_bytes()).failed(2);
    assert_eq!(refused, "boltkv: standard input: it is CSV, which --csv reads\n");
    assert!(server.run(args!["import", folder.path()]).failed(3).contains("is a directory"));
}

#[test]
fn blank_lines_are_counted_neither_in_messages_nor_by_skip_nor_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("app.db"));
    let json = "\n{\"bucket\":\"b\"}\n\n \t\r\n\nno line\n\n{\"bucket\":\"b\",\"key\":\"k\",\"value\":\"v\"}\n\n";
    let csv = "\nbucket,key,value\n\nb,,\r\n\r\n\"no\n\nrecord\"\n\nb,c,v\n\n";
    for (form, one, lines) in [(&[][..], "line", json), (&["--csv"], "record", csv)] {
        let import = |skip| server.run_with_input([&["import", "--skip", skip], form].concat(), lines.as_bytes());
        let refused = import("0").failed(1);
        assert!(refused.contains(&format!("standard input, {one} 2: ")), "{refused}");
        assert!(refused.contains(&format!("the {one} before is there")), "{refused}");
        assert_eq!(import("2").done_text(), format!("1 {one}\n"));
        assert_eq!(import("3").done_text(), format!("0 {one}s\n"));
        assert!(import("4").failed(2).contains(&format!("has only 3 {one}s, and --skip says 4")));
    }
    assert_eq!(server.run(["scan", "-b", "b"]).done_text(), "c v\nk v\n");
}

#[test]
fn an_import_that_is_interrupted_says_how_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("app.db"));
    let mut import = server.command(["import"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = import.stdin.take().unwrap();
    (0..2_500).for_each(|n| writeln!(input, r#"{{"bucket":"default","key":"{n}","value":"v"}}"#).unwrap());
    // The second thousand is sent once the first is known to be there; the third waits for more lines.
    while server.run(["scan", "--count"]).done_text() != "2000\n" {}
    assert!(Command::new("kill").args(["-s", "INT", &import.id().to_string()]).status().unwrap().success());
    let ended = import.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    let ways =
        [1, 2].map(|n| format!("the first {n},000 lines are on the server, and --skip {n}000 goes on behind them\n"));
    assert!(ended.status.code() == Some(130) && ways.iter().any(|way| said.ends_with(way)), "{said}");
}

#[test]
fn what_is_said_of_a_redis_is_refused_beside_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("app.db"));
    server.run(["set", "k", "mine"]).done();
    let file = folder.path().join("lines.jsonl");
    std::fs::write(&file, "{\"bucket\":\"default\",\"key\":\"k\",\"value\":\"other\"}\n").unwrap();
    for option in [
        &["--if-absent"][..],
        &["--skip-unsupported"],
        &["--redis-db", "1"],
        &["--redis-tls-ca", "ca.pem"],
        &["--redis-password-file", "password"],
    ] {
        let args = args!["import", &file].into_iter().chain(option.iter().map(Into::into));
        let said = server.run(args).failed(2);
        assert!(said.contains(&format!("{} is for --from-redis", option[0])), "{said}");
    }
    assert_eq!(server.run(["get", "k"]).done_text(), "mine");
}

#[test]
fn the_bucket_default_is_made_when_a_line_needs_it_as_set_does() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("app.db"));
    let lines = b"\xef\xbb\xbf\n{\"bucket\":\"b\"}\n\n{\"bucket\":\"default\",\"key\":\"k\",\"value\":\"v\"}\n";
    assert_eq!(server.run_with_input(["import", "--json"], lines).done_text(), "{\"lines\":2}\n");
    assert_eq!(server.run(["get", "k"]).done_text(), "v");
    let within = b"{\"bucket\":\"default/in\",\"key\":\"k\",\"value\":\"v\"}\n";
    assert!(server.run_with_input(["import"], within).failed(1).contains("BUCKET_NOT_FOUND"));
}

#[test]
fn a_bolt_file_is_no_export_and_how_it_becomes_one_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let [file, other] = ["app.db", "other.db"].map(|name| folder.path().join(name));
    make(&other);
    let server = Server::start(&file);
    let refused = [
        server.run(args!["import", &other]),
        server.run(args!["import", "--csv", &other]),
        run(args!["file", "import", folder.path().join("new.db"), "--input", &other]),
    ];
    for said in refused.map(|ran| ran.failed(2)) {
        assert!(said.contains("it is a bolt file") && said.contains("`boltkv file export "), "{said}");
    }
}

#[test]
fn what_a_frame_or_the_file_does_not_take_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(&folder.path().join("app.db"), ["--max-frame", "64KiB", "--max-size", "1MiB"]);
    let mut lines = String::from("{\"bucket\":\"b\"}\n");
    // More in a batch than this server takes in a frame, and more than the file takes.
    let value = "v".repeat(10_000);
    (0..200).for_each(|n| writeln!(lines, r#"{{"bucket":"b","key":"{n}","value":"{value}"}}"#).unwrap());
    let refused = server.run_with_input(["import"], lines.as_bytes()).failed(1);
    assert!(refused.contains("NO_SPACE") && refused.contains("--skip "), "{refused}");
    let there: u32 = server.run(["scan", "-b", "b", "--count"]).done_text().trim().parse().unwrap();
    assert!(refused.contains(&format!("--skip {}", there + 1)), "{refused} of {there}");
    let large = format!(r#"{{"bucket":"b","key":"k","value":"{}"}}"#, "v".repeat(70_000));
    let refused = server.run_with_input(["import"], large.as_bytes()).failed(1);
    assert!(refused.contains("--max-frame"), "{refused}");
}

#[test]
fn a_value_that_does_not_fit_a_frame_is_not_left_out_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.db");
    make(&file);
    let server = Server::start_with(&file, ["--max-frame", "64KiB"]);
    let output = folder.path().join("out.jsonl");
    let refused = server.run(args!["export", "--output", &output]).failed(1);
    assert!(refused.contains("users: the value of large has 300000 bytes"), "{refused}");
    assert!(!output.exists());
}

// Promises: ops-export-state.
#[test]
fn an_export_is_one_state_whatever_is_written_and_ends_where_that_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.db");
    make(&file);
    let server = Server::start(&file);
    let whole = server.run(["export"]).done();
    let start = || {
        let mut export = server.command(["export"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(export.stdout.take().unwrap());
        let mut first = Vec::new();
        // It has begun, and the pipe is too short for all of it.
        lines.read_until(b'\n', &mut first).unwrap();
        (export, lines, first)
    };
    let (mut export, mut lines, mut got) = start();
    server.run(["delete-range", "-b", "users/eu", "--prefix", "00"]).done();
    server.run(["set", "-b", "users/eu", "another", "value"]).done();
    server.run(["bucket", "set-sequence", "users/eu", "77"]).done();
    lines.read_to_end(&mut got).unwrap();
    assert_eq!(export.wait().unwrap().code(), Some(0));
    assert!(got == whole);
    let after = server.run(["export"]).done_text();
    assert!(after.contains("{\"bucket\":\"users/eu\",\"sequence\":77}\n{\"bucket\":\"users/eu\",\"key\":\"another\""));
    let (mut export, mut lines, _) = start();
    server.kill();
    lines.read_to_end(&mut Vec::new()).unwrap();
    let mut said = String::new();
    export.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(export.wait().unwrap().code(), Some(3), "{said}");
    assert!(said.contains("the state that was exported is lost"), "{said}");
}

/// Another server of the same file at the same place, once the first is killed.
fn restarted(server: Server, file: &Path) -> Server {
    let addr = server.addr().to_owned();
    server.kill();
    Server::spawn(&mut boltkv(args!["serve", "--listen", addr, "--db", file]))
}

// Promises: ops-import.
#[test]
fn a_server_that_is_killed_and_started_again_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.db");
    let mut server = Server::start(&file);
    let mut import =
        server.command(["import", "--timeout", "5m"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = import.stdin.take().unwrap();
    writeln!(input, r#"{{"bucket":"b"}}"#).unwrap();
    for n in 0..20_000 {
        if n % 6_000 == 5_999 {
            server = restarted(server, &file);
        }
        writeln!(input, r#"{{"bucket":"b","key":"{n:06}","value":"{n}"}}"#).unwrap();
    }
    drop(input);
    let imported: crate::common::Ran = import.wait_with_output().unwrap().into();
    imported.done();
    assert_eq!(server.run(["scan", "-b", "b", "--count"]).done_text(), "20000\n");

    let mut export = server
        .command(["export", "--live", "--timeout", "5m"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(export.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), r#"{"bucket":"b","sequence":0}"#);
    for n in 0..20_000 {
        if n == 7_000 {
            server = restarted(server, &file);
        }
        assert_eq!(lines.next().unwrap().unwrap(), format!(r#"{{"bucket":"b","key":"{n:06}","value":"{n}"}}"#));
    }
    assert!(lines.next().is_none());
    assert_eq!(export.wait().unwrap().code(), Some(0));
    server.stop();
}
