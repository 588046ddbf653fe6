//! `serve --max-size`: the file stays below it through kills, and nothing that was answered is lost.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::run;
use crate::common::server::Server;

const MAX: u64 = 1 << 20;

// Promises: ops-max-size.
#[test]
fn a_full_file_survives_kills_and_never_grows() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("app.db");
    let value = "v".repeat(20_000);
    let mut kept = 0;
    for round in 0..4 {
        let server = Server::start_with(&db, ["--max-size", "1MiB"]);
        for key in 0..kept {
            assert_eq!(server.run(["get", &format!("{round} {key}")]).done_text().len(), value.len());
            server.run(["delete", &format!("{round} {key}")]).done();
        }
        for key in 0.. {
            let ran = server.run(["set", &format!("{} {key}", round + 1), &value]);
            if ran.code == Some(0) {
                continue;
            }
            let refused = ran.failed(1);
            assert!(refused.contains(&MAX.to_string()), "{refused}");
            assert!(key > 20, "round {round}: {key}");
            kept = key;
            break;
        }
        server.kill();
        assert!(db.metadata().unwrap().len() <= MAX);
    }
    let server = Server::start(&db);
    assert_eq!(server.run(["scan", "--count"]).done_text(), format!("{kept}\n"));
    server.stop();
    run(args!["file", "check", &db]).done();
}

#[test]
fn a_file_that_is_larger_already_is_served_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("app.db");
    let server = Server::start(&db);
    server.run_with_input(["set", "large", "-"], &vec![b'v'; 3 << 20]).done();
    server.stop();
    let server = Server::start_with(&db, ["--max-size", "1MiB"]);
    server.run(["set", "small", "v"]).done();
    server.run_with_input(["set", "other", "-"], &vec![b'v'; 3 << 20]).failed(1);
    server.run(["delete", "large"]).done();
    let warned = server.stop().stderr;
    assert!(warned.contains("more than its limit of 1048576"), "{warned}");
    let refused = run(["serve", "--max-size", "100KiB"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("less than 1MiB"), "{}", refused.stderr);
}
