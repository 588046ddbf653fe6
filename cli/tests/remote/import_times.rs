//! `boltkv import` and the times at which keys expire: among the lines of a file's export, and what is wrong with some.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use crate::common::run;
use crate::common::server::Server;

#[test]
fn the_times_that_a_files_lines_have_come_along_and_a_servers_lines_have_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("from.db");
    let server = Server::start(&file);
    server.run(["bucket", "create", "app/inner"]).done();
    // Nothing is said where no key has a time.
    server.run(["export"]).done();
    for (bucket, key, at) in
        [("default", "a", "2100-01-01T00:00:00Z"), ("app/inner", "\u{e9} b", "2101-01-01T00:00:00Z")]
    {
        server.run(["set", "-b", bucket, key, "v", "--expires", at]).done();
    }
    server.run(["set", "stays", "v"]).done();
    server.run(["expire", "-b", "app", "inner", "--at", "2102-01-01T00:00:00Z"]).done();
    let exported = server.run(["export"]);
    assert!(
        exported.stderr.contains("keys of this server expire, and the lines do not tell when"),
        "{}",
        exported.stderr
    );
    let of_server = exported.text();
    server.stop();
    let of_file = [&[][..], &["--text"], &["--csv"]].map(|args| {
        run(args!["file", "export", &file].iter().chain(&args.iter().map(Into::into).collect::<Vec<_>>())).done()
    });
    let text = String::from_utf8(of_file[1].clone()).unwrap();
    let without: String = text.split_inclusive('\n').filter(|line| !line.contains("boltkv.expires")).collect();
    assert_eq!(of_server, without, "but for boltkv's own, both are the same");

    for (number, lines) in of_file.into_iter().enumerate() {
        let csv = if lines.starts_with(b"{") { &[][..] } else { &["--csv"] };
        let server = Server::start(&folder.path().join(format!("{number}.db")));
        let count = lines.split(|byte| *byte == b'\n').count() - 1 - csv.len();
        let said = server.run_with_input([&["import", "--json"], csv].concat(), &lines).done_text();
        assert_eq!(said, format!("{{\"lines\":{count}}}\n"));
        let when = |bucket, key| server.run(["ttl", "--at", "-b", bucket, key]).done_text();
        assert_eq!(when("default", "a"), "2100-01-01T00:00:00.000Z\n");
        assert_eq!(when("app/inner", "\u{e9} b"), "2101-01-01T00:00:00.000Z\n");
        assert_eq!(when("app", "inner"), "2102-01-01T00:00:00.000Z\n");
        assert_eq!(when("default", "stays"), "never\n");
        // Those that were passed over have times, too, and nothing else is put in.
        server.run(["persist", "a"]).done();
        let skip = count.to_string();
        server.run_with_input([&["import", "--skip", &skip], csv].concat(), &lines).done();
        assert_eq!(when("default", "a"), "2100-01-01T00:00:00.000Z\n");
        server.stop();
    }

    // Of buckets that are not there, times are counted and left out.
    let server = Server::start(&folder.path().join("part.db"));
    let part: String = text.split_inclusive('\n').filter(|line| !line.contains(r#""bucket":"app"#)).collect();
    let said = server.run_with_input(["import"], part.as_bytes());
    assert!(said.stderr.starts_with("boltkv: left out 2 times at which keys expire: their buckets"), "{}", said.stderr);
    assert_eq!(said.code, Some(0));
    assert_eq!(server.run(["ttl", "--at", "a"]).done_text(), "2100-01-01T00:00:00.000Z\n");
}

/// Where times are no times, or say of no bucket's key that they are its: that is told, as of any line that cannot be used.
#[test]
fn a_time_that_is_none_is_told_by_its_line_and_counted_when_it_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("from.db");
    let server = Server::start(&file);
    for key in ["a", "b"] {
        server.run(["set", key, "v", "--expires", "2100-01-01T00:00:00Z"]).done();
    }
    server.stop();
    let text = run(args!["file", "export", "--text", &file]).done_text();
    // Those of the keys, of all that is kept about times.
    let times: Vec<_> =
        text.lines().filter(|line| line.contains("boltkv.expires/of/") && line.contains("key")).collect();
    let [of_a, of_b] = times[..] else { unreachable!("{text}") };
    let (start, time) = of_b.split_once("\"value").unwrap();
    let [short, other] = ["64\":\"AAAA\"}", "\":\"in an hour\"}"].map(|value| format!("{start}\"value{value}"));
    let nowhere = format!("{{\"bucket\":\"boltkv.expires/of/default\",\"key\":\"b\",\"value{time}");
    let in_none = nowhere.replace("/of/default", "/of");
    for (number, (bad, why)) in
        [(short, "no time"), (other, "no time"), (nowhere, "no bucket"), (in_none, "no bucket")].into_iter().enumerate()
    {
        let server = Server::start(&folder.path().join(format!("{number}.db")));
        let values = |key| format!("{{\"bucket\":\"default\",\"key\":\"{key}\",\"value\":\"v\"}}");
        let lines = format!("{}\n{of_a}\n{bad}\n{}\n", values("a"), values("b"));
        let refused = server.run_with_input(["import"], lines.as_bytes()).failed(1);
        assert!(
            refused.contains("line 3: it should tell when a key expires, but its ") || why == "no bucket",
            "{refused}"
        );
        assert!(refused.contains("line 3: ") && refused.contains(why), "{refused}");
        let state = "the 2 lines before are there, and no key was given its time yet: ";
        assert!(refused.contains(state) && refused.ends_with("--skip 3 passes it over\n"), "{refused}");
        assert_eq!(server.run(["ttl", "a"]).done_text(), "never\n");

        let went_on = server.run_with_input(["import", "--skip", "3"], lines.as_bytes());
        let told = "boltkv: left out 1 time at which keys expire: their lines were passed over, and cannot be used\n";
        assert_eq!((went_on.code, &*went_on.stderr), (Some(0), told));
        assert_eq!(server.run(["ttl", "--at", "a"]).done_text(), "2100-01-01T00:00:00.000Z\n");
        assert_eq!(server.run(["ttl", "b"]).done_text(), "never\n");
        server.stop();
    }
}
