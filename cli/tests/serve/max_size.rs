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

// Promises: ops-max-size.
#[test]
fn what_did_not_fit_fits_after_a_deletion_without_a_restart_whatever_of_it_the_file_has_yet() {
    for more in [&["--journal-size=64KiB"][..], &[], &["--journal-memory=0"], &["--durability=never"]] {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("app.db");
        let server = Server::start_with(&db, ["--max-size=1MiB"].iter().chain(more));
        let value = vec![b'v'; 60_000];
        let set = |key: u32| server.run_with_input(["set", &key.to_string(), "-"], &value);
        let mut keys = 0;
        let refused = loop {
            let ran = set(keys);
            if ran.code != Some(0) {
                break ran.failed(1);
            }
            keys += 1;
        };
        assert!(refused.contains("NO_SPACE") && refused.contains(&MAX.to_string()), "{more:?}: {refused}");
        assert!(keys > 8, "{more:?}: {keys}");
        // Not once by chance: each makes room for the next, round and round.
        for gone in 0..3 * keys {
            server.run(["delete", &gone.to_string()]).done();
            set(keys + gone).done();
            assert_eq!(server.run(["get", &(keys + gone).to_string()]).done().len(), value.len(), "{more:?}");
        }
        // One more is one too many again.
        assert!(set(5 * keys).failed(1).contains("NO_SPACE"), "{more:?}");
        assert_eq!(server.run(["scan", "--count"]).done_text(), format!("{keys}\n"), "{more:?}");
        // It has logged what it refused.
        assert_eq!(server.stop().code, Some(0), "{more:?}");
        assert!(db.metadata().unwrap().len() <= MAX, "{more:?}");
        run(args!["file", "check", &db]).done();
    }
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
