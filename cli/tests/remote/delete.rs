//! `boltkv delete`: what is gone, and with what it exits where nothing was.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use crate::common::server::Server;

#[test]
fn a_key_is_deleted_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("delete.db"));
    let no_key = "boltkv: no key hello in bucket default\n";
    assert_eq!(server.run(["delete", "hello"]).failed(1), no_key, "nor is there a bucket yet");
    for name in ["delete", "del"] {
        server.run(["set", "hello", "world"]).done();
        assert_eq!(server.run([name, "hello"]).done_text(), "");
        assert_eq!(server.run([name, "hello"]).failed(1), no_key);
    }
    assert_eq!(server.run(["scan"]).done_text(), "");
    server.run(["set", "hello", "world"]).done();
    assert_eq!(server.run(["delete", "hello", "--json"]).done_text(), "{\"deleted\":1}\n");
    let again = server.run(["delete", "hello", "--json"]);
    assert_eq!((again.code, again.text().as_str(), again.stderr.as_str()), (Some(1), "{\"deleted\":0}\n", no_key));
}

#[test]
fn a_key_is_deleted_only_where_the_condition_holds() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("delete.db"));
    server.run(["delete", "lock", "--if-equals", "me"]).failed(1);
    server.run(["set", "lock", "you"]).done();
    let said = server.run(["delete", "lock", "--if-equals", "me"]).failed(1);
    assert!(said.contains("CONDITION_FAILED"), "{said}");
    assert_eq!(server.run(["get", "lock"]).done(), b"you");
    server.run(["delete", "lock", "--if-equals", "you"]).done();
    server.run(["delete", "lock", "--if-present"]).failed(1);
    server.run(["set", "lock", "you"]).done();
    server.run(["delete", "lock", "--if-present"]).done();
}

#[test]
fn several_keys_are_deleted_at_once_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("delete.db"));
    let set = |keys: &[&str]| keys.iter().for_each(|key| drop(server.run(["set", key, "value"]).done()));
    let keys = || server.run(["scan", "--keys-only"]).done_text().replace('\n', " ");
    let ran = server.run(["delete", "a", "b"]);
    assert_eq!((ran.code, ran.text().as_ref()), (Some(1), "0\n"), "nor is there a bucket yet");
    set(&["a", "b", "c", "d"]);
    assert_eq!(server.run(["delete", "a", "c"]).done_text(), "2\n");
    assert_eq!(keys(), "b d ");
    let ran = server.run(["delete", "a", "b", "c"]);
    assert_eq!((ran.code, ran.text().as_ref()), (Some(1), "1\n"));
    assert_eq!(ran.stderr, "boltkv: no key a, c in bucket default\n");
    assert_eq!(keys(), "d ");
    assert_eq!(server.run(["delete", "d", "d"]).done_text(), "1\n", "named twice, and once there");
    // In one transaction: one of them all is refused, and nothing is gone.
    server.run(["bucket", "create", "default/inner"]).done();
    set(&["a", "z"]);
    let before = server.run(["stats"]).done_text();
    let said = server.run(["delete", "a", "inner", "z"]).failed(1);
    assert!(said.contains("key inner in bucket default: ") && said.contains("INCOMPATIBLE_VALUE"), "{said}");
    assert_eq!(keys(), "a inner/ z ");
    let txid = |stats: &str| stats.lines().find(|line| line.starts_with("txid")).map(str::to_owned);
    assert_eq!(txid(&server.run(["stats"]).done_text()), txid(&before));
    let many: Vec<_> = (0..2000).map(|key| format!("many{key}")).collect();
    let ran = server.run(["delete".to_owned(), "a".to_owned()].into_iter().chain(many));
    assert_eq!((ran.code, ran.text().as_ref()), (Some(1), "1\n"));
    assert_eq!(ran.stderr, "boltkv: no key many0, many1, many2 and 1997 more in bucket default\n");
}

#[test]
fn of_several_keys_none_is_deleted_where_the_condition_does_not_hold_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("delete.db"));
    for (key, value) in [("a", "mine"), ("b", "yours"), ("c", "mine")] {
        server.run(["set", key, value]).done();
    }
    let said = server.run(["delete", "--if-equals", "mine", "a", "b", "c"]).failed(1);
    assert!(said.contains("key b in bucket default: ") && said.contains("CONDITION_FAILED"), "{said}");
    server.run(["delete", "--if-present", "a", "nothing"]).failed(1);
    assert_eq!(server.run(["scan", "--keys-only"]).done_text(), "a\nb\nc\n");
    assert_eq!(server.run(["delete", "--if-equals", "mine", "a", "c"]).done_text(), "2\n");
    assert_eq!(server.run(["scan", "--keys-only"]).done_text(), "b\n");
}

#[test]
fn a_bucket_is_not_deleted_as_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("delete.db"));
    server.run(["bucket", "create", "users/eu"]).done();
    let said = server.run(["delete", "--bucket", "users", "eu"]).failed(1);
    assert!(said.contains("INCOMPATIBLE_VALUE"), "{said}");
    assert_eq!(server.run(["bucket", "list", "users"]).done_text(), "eu\n");
}

#[test]
fn a_range_is_deleted_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("delete.db"));
    assert_eq!(server.run(["delete-range", "--prefix", "k"]).done_text(), "0\n", "there is no bucket yet");
    for key in ["a", "k1", "k2", "k3", "z"] {
        server.run(["set", key, "value"]).done();
    }
    assert_eq!(server.run(["delete-range"]).code, Some(2), "not everything by mistake");
    assert_eq!(server.run(["delete-range", "--prefix", "k", "--limit", "2"]).done_text(), "2\n");
    assert_eq!(server.run(["scan", "--keys-only"]).done_text(), "a\nk3\nz\n");
    assert_eq!(server.run(["delete-range", "--from", "k", "--to", "z"]).done_text(), "1\n");
    assert_eq!(server.run(["delete-range", "--all"]).done_text(), "2\n");
    assert_eq!(server.run(["delete-range", "--all", "--json"]).done_text(), "{\"deleted\":0}\n");
    server.run(["bucket", "create", "default/inner"]).done();
    let refused = server.run(["delete-range", "--all"]).failed(1);
    assert!(refused.contains("INCOMPATIBLE_VALUE") && refused.contains("`boltkv bucket delete PATH`"), "{refused}");
}
