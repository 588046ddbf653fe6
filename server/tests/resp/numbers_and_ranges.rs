//! What changes a value by what it is, many values at once, or a bucket as a whole.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::num::NonZeroU64;
use std::ops::Bound;

use crate::common::binary::{create_if_missing, path, scan, set};
use crate::common::{Binary, TestServer};
use boltkv_protocol::{
    ErrorCode, KeyRange, LowBound, ReadRequest, Reply, Request, ScanMode, ScanOptions, SessionRequest, Txn,
    WriteRequest,
};
use boltkv_storage::{Db, Error, Options};

fn increment(key: &str, delta: i64) -> Request {
    WriteRequest::Increment { path: path("b"), key: key.to_owned().into(), delta }.into()
}

fn delete_range(range: KeyRange, limit: u64) -> Request {
    WriteRequest::DeleteRange { path: path("b"), range, limit: NonZeroU64::new(limit) }.into()
}

fn number(client: &mut Binary, key: &str, delta: i64) -> i64 {
    match client.ask(&increment(key, delta)) {
        Reply::Number { value, .. } => value,
        other => panic!("INCREMENT was answered with {other:?}"),
    }
}

fn deleted(client: &mut Binary, range: KeyRange, limit: u64) -> (u64, bool) {
    match client.ask(&delete_range(range, limit)) {
        Reply::DeletedRange { deleted, more, .. } => (deleted, more),
        other => panic!("DELETE_RANGE was answered with {other:?}"),
    }
}

fn server_with_bucket() -> (TestServer, Binary) {
    let server = TestServer::start();
    let mut client = server.binary();
    client.write(&create_if_missing("b"));
    (server, client)
}

/// A database whose bucket `b` holds the numbers below `count` as keys.
fn database(count: u32) -> Db {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..count).try_for_each(|key| bucket.put(format!("{key:06}"), "v"))?;
        Ok::<_, Error>(())
    })
    .unwrap();
    db
}

// Promises: wire-increment.
#[test]
fn a_number_is_decimal_text_that_is_added_to_and_absent_is_zero() {
    let (_server, mut client) = server_with_bucket();
    assert_eq!(number(&mut client, "n", 5), 5);
    assert_eq!(number(&mut client, "n", -7), -2);
    assert_eq!(client.value("b", "n").as_deref(), Some(&b"-2"[..]));
    client.write(&set("b", "n", "9223372036854775806"));
    assert_eq!(number(&mut client, "n", 1), i64::MAX);
    assert_eq!(number(&mut client, "zero", 0), 0);
    assert_eq!(client.value("b", "zero").as_deref(), Some(&b"0"[..]));
}

// Promises: wire-increment.
#[test]
fn what_is_no_number_or_does_not_fit_is_refused_and_stays() {
    let (_server, mut client) = server_with_bucket();
    for value in ["", "one", "01", "+1", "-0", " 1", "1.5", "9223372036854775808"] {
        client.write(&set("b", "k", value));
        assert_eq!(client.ask_code(&increment("k", 1)), ErrorCode::IncompatibleValue, "{value:?}");
        assert_eq!(client.value("b", "k").as_deref(), Some(value.as_bytes()));
    }
    for (value, delta) in [("9223372036854775807", 1), ("-9223372036854775808", -1), ("-2", i64::MIN)] {
        client.write(&set("b", "k", value));
        assert_eq!(client.ask_code(&increment("k", delta)), ErrorCode::NumberOutOfRange, "{value}");
        assert_eq!(client.value("b", "k").as_deref(), Some(value.as_bytes()));
    }
    client.write(&create_if_missing("b/inner"));
    assert_eq!(client.ask_code(&increment("inner", 1)), ErrorCode::IncompatibleValue);
    assert_eq!(client.ask_code(&increment("", 1)), ErrorCode::KeyRequired);
    let elsewhere = WriteRequest::Increment { path: path("none"), key: "k".into(), delta: 1 };
    assert_eq!(client.ask_code(&elsewhere.into()), ErrorCode::BucketNotFound);
}

// Promises: wire-increment.
#[test]
fn increments_of_many_connections_all_count() {
    let (server, mut client) = server_with_bucket();
    let mut others: Vec<_> = (0..4).map(|_| server.binary()).collect();
    for other in &mut others {
        other.send_all(&vec![increment("n", 3); 50]);
    }
    for other in &mut others {
        (0..50).for_each(|_| assert_eq!(other.frame().op, 0));
    }
    assert_eq!(number(&mut client, "n", 0), 600);
}

// Promises: wire-delete-range.
#[test]
fn a_range_is_deleted_from_its_lowest_key_on_as_far_as_the_limit() {
    let server = TestServer::serve(database(20), |_| ());
    let mut client = server.binary();
    let prefix = || KeyRange::prefix("00000");
    let between = KeyRange { low: LowBound::Excluded("000012".into()), high: Bound::Included("000014".into()) };
    assert_eq!(deleted(&mut client, between.clone(), 0), (2, false));
    assert_eq!(deleted(&mut client, between, 0), (0, false));
    assert_eq!(deleted(&mut client, prefix(), 3), (3, true));
    assert_eq!(client.value("b", "000002"), None);
    assert!(client.value("b", "000003").is_some());
    assert_eq!(deleted(&mut client, prefix(), 7), (7, false));
    assert_eq!(deleted(&mut client, KeyRange::ALL, 0), (8, false));
    let elsewhere = WriteRequest::DeleteRange { path: path("none"), range: KeyRange::ALL, limit: None };
    assert_eq!(client.ask_code(&elsewhere.into()), ErrorCode::BucketNotFound);
}

// Promises: wire-delete-range.
#[test]
fn a_request_deletes_no_more_than_the_server_does_at_once() {
    let server = TestServer::serve(database(25_000), |_| ());
    let mut client = server.binary();
    assert_eq!(deleted(&mut client, KeyRange::ALL, u64::MAX), (10_000, true));
    assert_eq!(deleted(&mut client, KeyRange::ALL, 0), (10_000, true));
    assert_eq!(deleted(&mut client, KeyRange::ALL, 0), (5_000, false));
}

// Promises: wire-delete-range-buckets.
#[test]
fn a_bucket_in_a_range_is_an_error_and_nothing_is_deleted() {
    let server = TestServer::serve(database(10), |_| ());
    let mut client = server.binary();
    client.write(&create_if_missing("b/000005x"));
    assert_eq!(client.ask_code(&delete_range(KeyRange::ALL, 0)), ErrorCode::IncompatibleValue);
    let count = ScanOptions { mode: ScanMode::Count, ..ScanOptions::default() };
    assert_eq!(client.ask(&scan("b", KeyRange::ALL, count)), Reply::Count(11));
    assert_eq!(deleted(&mut client, KeyRange::ALL, 6), (6, true), "those before it");
}

// Promises: wire-delete-range-txn.
#[test]
fn a_range_in_a_transaction_is_deleted_wholly_or_nothing_is_done() {
    let server = TestServer::serve(database(10_001), |_| ());
    let mut client = server.binary();
    let ask = |client: &mut Binary, limit| {
        let mut txn = Txn::builder();
        txn.request(&increment("n", 1)).unwrap();
        txn.request(&delete_range(KeyRange::prefix("0"), limit)).unwrap();
        client.ask(&txn.build().into())
    };
    let Reply::Error(error) = ask(&mut client, 0) else { panic!("all of it was done") };
    assert_eq!(error.code, ErrorCode::TxnTooLarge, "{error}");
    assert_eq!(client.value("b", "n"), None, "undone, too");
    let mut parts = Txn::builder();
    (0..2).for_each(|_| parts.request(&delete_range(KeyRange::ALL, 5_001)).unwrap());
    let Reply::Error(error) = client.ask(&parts.build().into()) else { panic!("both were done") };
    assert_eq!(error.code, ErrorCode::TxnTooLarge, "together they are too many");
    let Reply::Txn { txid, results } = ask(&mut client, 10_000) else { panic!("it was not done") };
    let requests = [increment("n", 1), delete_range(KeyRange::ALL, 1)];
    let results: Vec<_> = results.replies(requests.iter().filter_map(Request::expects)).map(Result::unwrap).collect();
    let expected = [Reply::Number { txid, value: 1 }, Reply::DeletedRange { txid, deleted: 10_000, more: true }];
    assert_eq!(results, expected);
}

// Promises: wire-sequence.
#[test]
fn a_sequence_is_raised_and_set() {
    let (server, mut client) = server_with_bucket();
    let next = || Request::from(WriteRequest::NextSequence(path("b")));
    let set = |sequence| Request::from(WriteRequest::SetSequence { path: path("b"), sequence });
    let Reply::Sequence { sequence: 1, txid } = client.ask(&next()) else { panic!("the first is 1") };
    assert_eq!(client.write(&set(1)), txid, "it is so already");
    client.write(&set(u64::MAX - 1));
    assert!(matches!(client.ask(&next()), Reply::Sequence { sequence: u64::MAX, .. }));
    assert_eq!(client.ask_code(&next()), ErrorCode::NumberOutOfRange);
    assert_eq!(server.db.begin().unwrap().bucket("b").unwrap().sequence(), u64::MAX);
    assert_eq!(client.ask(&ReadRequest::Sequence(path("b")).into()), Reply::Count(u64::MAX));
    assert_eq!(client.ask_code(&ReadRequest::Sequence(path("none")).into()), ErrorCode::BucketNotFound);
    let elsewhere = WriteRequest::NextSequence(path("none"));
    assert_eq!(client.ask_code(&elsewhere.into()), ErrorCode::BucketNotFound);
}

// Promises: wire-move.
#[test]
fn a_bucket_is_moved_with_all_within_and_has_its_new_paths_name() {
    let (_server, mut client) = server_with_bucket();
    let move_to = |from: &str, to: &str| Request::from(WriteRequest::MoveBucket { path: path(from), to: path(to) });
    client.write(&create_if_missing("a/x/y"));
    client.write(&set("a/x/y", "k", "v"));
    client.write(&move_to("a/x", "b/x"));
    assert_eq!(client.value("b/x/y", "k").as_deref(), Some(&b"v"[..]));
    client.write(&move_to("b/x/y", "y"));
    assert_eq!(client.value("y", "k").as_deref(), Some(&b"v"[..]));
    client.write(&move_to("y", "b/x/z"));
    assert_eq!(client.value("b/x/z", "k").as_deref(), Some(&b"v"[..]));
    client.write(&move_to("b/x/z", "b/x/y"));
    client.write(&move_to("b/x/y", "y"));
    assert_eq!(client.value("y", "k").as_deref(), Some(&b"v"[..]));
    client.write(&create_if_missing("a/y"));
    client.write(&set("a", "value", "v"));
    for (from, to, code) in [
        ("a/x", "b/x", ErrorCode::BucketNotFound),
        ("y", "none/y", ErrorCode::BucketNotFound),
        ("y", "a/y", ErrorCode::BucketExists),
        ("y", "y", ErrorCode::BucketExists),
        ("b", "b/x/b", ErrorCode::IncompatibleValue),
        ("y", "a", ErrorCode::BucketExists),
        ("y", "a/value", ErrorCode::IncompatibleValue),
        ("a/z", "a/w", ErrorCode::BucketNotFound),
        ("/", "a", ErrorCode::BucketNameRequired),
        ("y", "/", ErrorCode::BucketNameRequired),
    ] {
        assert_eq!(client.ask_code(&move_to(from, to)), code, "{from} to {to}");
    }
}

// Promises: wire-stats.
#[test]
fn stats_are_the_same_names_in_both_dialects() {
    let server = TestServer::start();
    let in_text: Vec<_> =
        server.text().ask_all("STATS").iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    let Reply::Stats(figures) = server.binary().ask(&Request::Session(SessionRequest::Stats)) else {
        panic!("no figures")
    };
    let names: Vec<_> = figures.iter().map(|(name, _)| String::from_utf8(name.to_vec()).unwrap()).collect();
    assert_eq!(names, in_text);
    assert!(figures.iter().any(|(name, value)| name == "txid" && *value == server.db.stats().txid.to_string()));
}
