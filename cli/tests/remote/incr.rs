//! `boltkv incr`: numbers that are added to.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use crate::common::server::Server;

#[test]
fn a_number_is_added_to_and_printed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("incr.db"));
    assert_eq!(server.run(["incr", "visits"]).done_text(), "1\n", "the bucket is made");
    assert_eq!(server.run(["incr", "visits", "41"]).done_text(), "42\n");
    assert_eq!(server.run(["incr", "visits", "-43"]).done_text(), "-1\n");
    assert_eq!(server.run(["incr", "visits", "0", "--json"]).done_text(), "{\"value\":-1}\n");
    assert_eq!(server.run(["get", "visits"]).done(), b"-1");
    server.run(["set", "visits", "many"]).done();
    let said = server.run(["incr", "visits"]).failed(1);
    assert!(said.contains("INCOMPATIBLE_VALUE"), "{said}");
    assert!(server.run(["incr", "--bucket", "none", "visits"]).failed(1).contains("BUCKET_NOT_FOUND"));
}
