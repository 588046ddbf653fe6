//! `boltkv set --ttl`, `expire`, `ttl` and `persist`: keys that are gone after a time.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::peer::peer;
use crate::common::run;
use crate::common::server::Server;

#[test]
fn a_key_is_there_for_as_long_as_it_was_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("expire.db"));
    assert!(server.run(["ttl", "k"]).failed(1).contains("no key"), "the bucket is not there yet");
    assert!(server.run(["expire", "k", "5"]).failed(1).contains("no key"));
    server.run(["set", "k", "v", "--ttl", "1h"]).done();
    let left: f64 = server.run(["ttl", "k"]).done_text().trim().parse().unwrap();
    assert!((3_000.0..=3_600.0).contains(&left), "{left}");
    let json = server.run(["ttl", "k", "--json"]).done_text();
    let left = serde_json::from_str::<serde_json::Value>(&json).unwrap()["ttl"].as_f64().unwrap();
    assert!((3_000.0..=3_600.0).contains(&left), "{json}");
    server.run(["persist", "k"]).done();
    assert_eq!(server.run(["ttl", "k"]).done_text(), "never\n");
    assert_eq!(server.run(["ttl", "k", "--json"]).done_text(), "{\"ttl\":null}\n");
    assert_eq!(server.run(["ttl", "k", "--json", "--at"]).done_text(), "{\"at\":null}\n");
    assert!(server.run(["persist", "k"]).failed(1).contains("does not expire"));
    for at in ["2200-01-01T00:00:00Z", "2200-01-01", "7258118400"] {
        server.run(["expire", "k", "1h"]).done();
        server.run(["expire", "k", "--at", at]).done();
        assert_eq!(server.run(["ttl", "--at", "k"]).done_text(), "2200-01-01T00:00:00.000Z\n", "{at}");
        let json = server.run(["ttl", "--at", "--json", "k"]).done_text();
        assert_eq!(json, "{\"at\":\"2200-01-01T00:00:00.000Z\"}\n");
    }
    let refused = server.run(["set", "k", "v", "--ttl", "-5"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("it must be longer than zero"), "{}", refused.stderr);
    server.run(["set", "k", "v"]).done();
    assert_eq!(server.run(["ttl", "k"]).done_text(), "never\n", "what is set anew stays");
    server.run(["expire", "k", "0"]).done();
    server.run(["get", "k"]).failed(1);
    server.run(["set", "k", "v", "--expires", "2001-01-01T00:00:00Z"]).done();
    server.run(["get", "k"]).failed(1);
    server.run(["bucket", "create", "users/eu"]).done();
    server.run(["expire", "--bucket", "users", "eu", "0"]).done();
    assert_eq!(server.run(["bucket", "list", "users"]).done_text(), "");
    for args in [
        &["set", "k", "v", "--ttl", "0"][..],
        &["expire", "k"],
        &["expire", "k", "1", "--at", "2200-01-01"],
        &["expire", "k", "-1"],
    ] {
        assert_eq!(server.run(args).code, Some(2), "{args:?}");
    }
}

#[test]
fn tools_on_files_show_what_is_kept_of_times_and_it_is_sound_for_go_too() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("expire.db");
    let server = Server::start(&db);
    for key in 0..500 {
        server_set(&server, key);
    }
    assert_eq!(server.run(["bucket", "list"]).done_text(), "default\n");
    assert!(server.run(["scan", "--bucket", "boltkv.expires"]).failed(1).contains("FORBIDDEN"));
    drop(server.stop().done());
    assert!(run(args!["file", "buckets", &db]).done_text().contains("boltkv.expires"));
    run(args!["file", "check", &db]).done();
    if let Some(peer) = peer() {
        peer.assert_check_clean(&db);
    }
}

fn server_set(server: &Server, key: u32) {
    let (key, ttl) = (key.to_string(), format!("{}h", 1 + key % 7));
    if key.ends_with('0') {
        server.run(["set", &key, "v", "--ttl", &ttl]).done();
    }
}
