//! BUCKET STAT: a bucket's figures, from the newest state or a snapshot.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::binary::{bucket_stat, frame, set};
use crate::common::{Binary, TestServer};
use boltkv_protocol::{ErrorCode, Reply, Request, SessionRequest, SnapshotRead, SnapshotRequest, Txn};
use boltkv_storage::Error;

/// A server with 10,000 keys in bucket `b`, of which a bucket within it has 4,000.
fn server() -> TestServer {
    let server = TestServer::start();
    let filled = server.db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        bucket.set_sequence(7)?;
        (0..5_999_u32).try_for_each(|key| bucket.put(key.to_be_bytes(), "value"))?;
        let mut inner = bucket.create_bucket("inner")?;
        (0..4_000_u32).try_for_each(|key| inner.put(key.to_be_bytes(), "value"))?;
        Ok::<_, Error>(())
    });
    filled.unwrap();
    server
}

fn figures(client: &mut Binary, request: &Request) -> Vec<(String, u64)> {
    let Reply::Stats(figures) = client.ask(request) else { panic!("no figures") };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    figures.iter().map(|(name, figure)| (text(name), text(figure).parse().unwrap())).collect()
}

fn figure(figures: &[(String, u64)], name: &str) -> u64 {
    figures.iter().find(|(told, _)| told == name).unwrap().1
}

// Promises: wire-bucket-stat.
#[test]
fn it_tells_what_the_engine_counts() {
    let server = server();
    let expected = server.db.begin().unwrap().bucket("b").unwrap().stats().unwrap();
    let told = figures(&mut server.binary(), &bucket_stat("b"));
    let told = |name: &str| figure(&told, name);
    assert_eq!((told("keys"), told("sequence"), told("buckets")), (10_000, 7, 2));
    assert_eq!((told("depth"), told("inline_buckets")), (expected.depth, 0));
    assert_eq!((told("leaf_pages"), told("branch_pages")), (expected.leaf_pages, expected.branch_pages));
    assert_eq!((told("leaf_inuse"), told("branch_inuse")), (expected.leaf_inuse, expected.branch_inuse));
    assert_eq!((told("leaf_alloc"), told("branch_alloc")), (expected.leaf_alloc, expected.branch_alloc));
}

// Promises: wire-snapshot-flag.
#[test]
fn of_a_snapshot_it_tells_what_was_there() {
    let server = server();
    let mut client = server.binary();
    let open = Request::Session(SessionRequest::Snapshot(SnapshotRequest::Open { lease_ms: 60_000 }));
    let Reply::Snapshot { id: snapshot, .. } = client.ask(&open) else { panic!("no snapshot") };
    client.write(&set("b", "one more", "value"));
    let Request::Stream(stat) = bucket_stat("b") else { panic!("no stream") };
    let before = Request::OfSnapshot { snapshot, read: SnapshotRead::Stream(stat) };
    assert_eq!(figure(&figures(&mut client, &before), "keys"), 10_000);
    assert_eq!(figure(&figures(&mut client, &bucket_stat("b")), "keys"), 10_001);
}

// Promises: wire-txn-within.
#[test]
fn it_is_no_part_of_a_transaction_and_of_no_other_than_a_bucket() {
    let server = server();
    let mut client = server.binary();
    assert!(Txn::builder().request(&bucket_stat("b")).is_err());
    // op TXN, no conditions, one request: BUCKET, of six bytes: STAT of bucket `b`.
    client.send(frame(9, 0x40, 0, b"\x00\x00\x00\x01\x20\x00\x00\x00\x05\x05\x01\x00\x01b"));
    let (id, error) = client.error();
    assert_eq!((id, error.code), (9, ErrorCode::Unsupported));
    assert!(error.message.contains("request 0") && error.message.contains("BUCKET STAT"), "{}", error.message);
    assert_eq!(client.ask_code(&bucket_stat("absent")), ErrorCode::BucketNotFound);
    assert_eq!(client.ask_code(&bucket_stat("")), ErrorCode::BucketNameRequired);
    client.write(&set("b", "key", "value"));
    assert_eq!(client.ask_code(&bucket_stat("b/key")), ErrorCode::IncompatibleValue);
}
