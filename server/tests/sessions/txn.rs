//! Transactions: several requests as one, done wholly or not at all, whatever happens beside them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::TestServer;
use crate::common::binary::{create, delete, delete_bucket, get, list, path, scan_all, set, set_if};
use crate::common::txn::{build, code_and_part, count, database, done, refused, txn, txn_if};
use boltkv_protocol::{Cond, ErrorCode, KeyRange, Reply, Request, Txn, TxnPart, WriteRequest};
use bytes::Bytes;

/// What GETs have found.
fn values<'a>(replies: impl IntoIterator<Item = &'a Reply>) -> Vec<Option<&'a str>> {
    let value = |reply: &'a Reply| match reply {
        Reply::Value(value) => Some(std::str::from_utf8(value).unwrap()),
        Reply::Error(error) if error.code == ErrorCode::KeyNotFound => None,
        other => panic!("{other:?} is no value"),
    };
    replies.into_iter().map(value).collect()
}

// Promises: wire-txn.
#[test]
fn requests_see_what_earlier_ones_did_and_all_of_it_is_one_transaction() {
    let server = TestServer::serve(database(), |_| {});
    let mut client = server.binary();
    let before = server.db.stats().txid;
    let requests = [
        get("b", "a"),
        set("b", "a", "2"),
        get("b", "a"),
        delete("b", "c"),
        delete("b", "c"),
        get("b", "c"),
        create("b/inner"),
        set("b/inner", "k", "v"),
        scan_all("b"),
        list("b"),
        count("b"),
        delete_bucket("b/inner"),
        scan_all("b"),
    ];
    let (txid, replies) = done(&mut client, txn(&requests));
    assert_eq!(txid, before + 1);
    assert_eq!(server.db.stats().txid, txid);
    assert_eq!(values([&replies[0], &replies[2], &replies[5]]), [Some("1"), Some("2"), None]);
    assert_eq!(replies[1], Reply::Written { txid });
    assert_eq!(replies[3..5], [Reply::Deleted { txid, existed: true }, Reply::Deleted { txid, existed: false }]);
    let names = |reply: &Reply| match reply {
        Reply::Entries(entries) => entries.iter().map(|entry| entry.key.clone()).collect::<Vec<_>>(),
        other => panic!("{other:?} is no scan"),
    };
    assert_eq!(names(&replies[8]), ["a", "inner"]);
    assert_eq!(names(&replies[9]), ["inner"]);
    assert_eq!(replies[10], Reply::Count(2));
    assert_eq!(names(&replies[12]), ["a"]);
}

// Promises: wire-txn-undone.
#[test]
fn a_part_that_fails_undoes_all_of_it_and_is_named() {
    let server = TestServer::serve(database(), |_| {});
    let mut client = server.binary();
    let before = (server.db.stats().txid, server.db.begin().unwrap().bucket("b").unwrap().count().unwrap());
    let failing = [
        (set("nowhere", "k", "v"), ErrorCode::BucketNotFound),
        (get("nowhere", "k"), ErrorCode::BucketNotFound),
        (scan_all("nowhere"), ErrorCode::BucketNotFound),
        (set("b", "", "v"), ErrorCode::KeyRequired),
        (set_if("b", "a", "v", Cond::IfAbsent), ErrorCode::ConditionFailed),
        (create("b"), ErrorCode::BucketExists),
        (get("b/a", "k"), ErrorCode::IncompatibleValue),
    ];
    for (request, code) in failing {
        let parts = [set("b", "new", "v"), delete_bucket("b"), create("b"), set("b", "a", "0"), request];
        let error = refused(&mut client, txn(&parts));
        assert_eq!(code_and_part(&error), (code, Some(TxnPart::Request(4))), "{error}");
        assert_eq!(client.value("b", "a").as_deref(), Some(&b"1"[..]));
        let after = (server.db.stats().txid, server.db.begin().unwrap().bucket("b").unwrap().count().unwrap());
        assert_eq!(after, before);
    }
}

// Promises: wire-txn-undone.
#[test]
fn whatever_kind_of_write_it_was_it_is_undone() {
    let server = TestServer::serve(database(), |_| {});
    let mut client = server.binary();
    client.write(&create("other"));
    client.write(&create("b/inner"));
    let seen = || {
        let tx = server.db.begin().unwrap();
        let bucket = tx.bucket("b").unwrap();
        let entries: Vec<_> = bucket.iter().map(|entry| format!("{:?}", entry.unwrap())).collect();
        (tx.id(), bucket.sequence(), entries, tx.bucket("other").unwrap().count().unwrap())
    };
    let key = || Bytes::from("n");
    let to = || path("other/inner");
    let range = || KeyRange { high: std::ops::Bound::Excluded("d".into()), ..KeyRange::ALL };
    let writes: [Request; 6] = [
        WriteRequest::Increment { path: path("b"), key: key(), delta: 5 }.into(),
        WriteRequest::NextSequence(path("b")).into(),
        WriteRequest::DeleteRange { path: path("b"), range: range(), limit: None }.into(),
        WriteRequest::MoveBucket { path: path("b/inner"), to: to() }.into(),
        WriteRequest::SetSequence { path: path("b"), sequence: 9 }.into(),
        WriteRequest::Increment { path: path("b"), key: key(), delta: -7 }.into(),
    ];
    let before = seen();
    for len in 1..=writes.len() {
        let parts: Vec<_> = writes[..len].iter().cloned().chain([get("nowhere", "k")]).collect();
        let error = refused(&mut client, txn(&parts));
        let at = TxnPart::Request(u16::try_from(len).unwrap());
        assert_eq!(code_and_part(&error), (ErrorCode::BucketNotFound, Some(at)), "{error}");
        assert_eq!(seen(), before, "after {len} writes");
    }
    let (txid, replies) = done(&mut client, txn(&writes));
    let expected = [
        Reply::Number { txid, value: 5 },
        Reply::Sequence { txid, sequence: 1 },
        Reply::DeletedRange { txid, deleted: 2, more: false },
        Reply::Written { txid },
        Reply::Written { txid },
        Reply::Number { txid, value: -2 },
    ];
    assert_eq!(replies, expected);
    assert_eq!(seen(), (txid, 9, vec!["([110], Some([45, 50]))".to_owned()], 1));
}

// Promises: wire-txn-conditions.
#[test]
fn conditions_see_the_state_before_it_and_requests_have_their_own() {
    let server = TestServer::serve(database(), |_| {});
    let mut client = server.binary();
    let mut two = Txn::builder();
    two.condition(&path("b"), b"a", &Cond::IfEquals("1")).unwrap();
    two.condition(&path("b"), b"new", &Cond::<&str>::IfAbsent).unwrap();
    let requests = [set("b", "new", "1"), set_if("b", "new", "2", Cond::IfEquals("1".into())), delete("b", "a")];
    let (txid, replies) = done(&mut client, build(two.clone(), &requests));
    assert_eq!(replies[1], Reply::Written { txid });
    assert_eq!(client.value("b", "new").as_deref(), Some(&b"2"[..]));
    let error = refused(&mut client, build(two, &requests));
    assert_eq!(code_and_part(&error), (ErrorCode::ConditionFailed, Some(TxnPart::Condition(0))), "{error}");
    assert!(error.message.contains("condition 0") && error.message.contains("is not there"), "{error}");
    let mut nowhere = Txn::builder();
    nowhere.condition(&path("nowhere"), b"k", &Cond::<&str>::IfAbsent).unwrap();
    let error = refused(&mut client, build(nowhere, &requests));
    assert_eq!(code_and_part(&error), (ErrorCode::BucketNotFound, Some(TxnPart::Condition(0))), "{error}");
    // One that only reads has its conditions, too.
    let reads = txn_if("c", &Cond::IfAbsent, &[get("b", "c")]);
    assert_eq!(code_and_part(&refused(&mut client, reads)), (ErrorCode::ConditionFailed, Some(TxnPart::Condition(0))));
    let (_, replies) = done(&mut client, txn_if("c", &Cond::IfPresent, &[get("b", "c")]));
    assert_eq!(values(&replies), [Some("3")]);
}

// Promises: wire-txn-reads.
#[test]
fn one_that_only_reads_sees_one_state_and_writes_nothing() {
    let server = TestServer::serve(database(), |_| {});
    let mut client = server.binary();
    let before = server.db.stats().txid;
    let (txid, replies) = done(&mut client, txn(&[get("b", "a"), get("b", "?"), count("b"), get("b", "c")]));
    assert_eq!(txid, before);
    assert_eq!(replies[2], Reply::Count(2));
    assert_eq!(values([&replies[0], &replies[1], &replies[3]]), [Some("1"), None, Some("3")]);
    assert_eq!(done(&mut client, txn(&[])), (before, vec![]));
    // What writes, and has nothing to change, is no transaction of its own either.
    let (txid, replies) = done(&mut client, txn(&[delete("b", "?")]));
    assert_eq!((txid, &replies[..]), (before, &[Reply::Deleted { txid: before, existed: false }][..]));
    assert_eq!(server.db.stats().txid, before);
}

// Promises: wire-txn-fits.
#[test]
fn results_fit_one_frame_or_nothing_is_done() {
    let server = TestServer::serve(database(), |config| config.limits.max_frame = 64 * 1024);
    let mut client = server.binary();
    client.write(&set("b", "large", vec![b'v'; 30_000]));
    let (_, replies) = done(&mut client, txn(&[get("b", "large"), get("b", "large")]));
    assert_eq!(replies.len(), 2);
    for read in [get("b", "large"), scan_all("b")] {
        let reads = [read.clone(), read.clone(), read.clone()];
        let error = refused(&mut client, txn(&reads));
        assert_eq!(code_and_part(&error), (ErrorCode::FrameTooLarge, Some(TxnPart::Request(2))), "{error}");
        let writes = [set("b", "a", "2"), read.clone(), read.clone(), read];
        let error = refused(&mut client, txn(&writes));
        assert_eq!(code_and_part(&error), (ErrorCode::FrameTooLarge, Some(TxnPart::Request(3))), "{error}");
        assert_eq!(client.value("b", "a").as_deref(), Some(&b"1"[..]));
    }
}

// Promises: wire-txn-scans.
#[test]
fn what_the_writer_looks_at_for_a_transaction_is_bounded_and_what_is_only_read_is_not() {
    let db = database();
    db.update(|tx| {
        let mut many = tx.create_bucket("many")?;
        (0..100_001_u32).try_for_each(|n| many.put(n.to_be_bytes(), ""))
    })
    .unwrap();
    let server = TestServer::serve(db, |_| {});
    let mut client = server.binary();
    let (_, replies) = done(&mut client, txn(&[count("many"), list("many"), count("many")]));
    assert_eq!(replies[0], Reply::Count(100_001));
    for look in [count("many"), list("many")] {
        let error = refused(&mut client, txn(&[set("b", "a", "2"), look]));
        assert_eq!(code_and_part(&error), (ErrorCode::TxnTooLarge, Some(TxnPart::Request(1))), "{error}");
        assert_eq!(client.value("b", "a").as_deref(), Some(&b"1"[..]));
    }
    let (_, replies) = done(&mut client, txn(&[count("b"), set("b", "a", "2"), delete_bucket("many")]));
    assert_eq!(replies[0], Reply::Count(2));
}

// Promises: wire-txn-within.
#[test]
fn what_is_done_by_itself_only_is_refused_and_the_connection_lives() {
    let server = TestServer::serve(database(), |_| {});
    let mut client = server.binary();
    // No conditions, one request: PING, HELLO, and a transaction of nothing.
    for op in [0x02, 0x01, 0x40] {
        client.send(crate::common::binary::frame(7, 0x40, 0, &[0, 0, 0, 1, op, 0, 0, 0, 4, 0, 0, 0, 0]));
        let (id, error) = client.error();
        assert_eq!((id, error.code), (7, ErrorCode::Unsupported), "{error}");
    }
    // Parts that are announced and do not come.
    for body in [&[0xff, 0xff][..], &[0, 0, 0xff, 0xff], &[0, 0, 0, 1, 0x10, 0, 0, 0, 9, 0], &[0]] {
        client.send(crate::common::binary::frame(8, 0x40, 0, body));
        let (id, error) = client.error();
        assert_eq!((id, error.code), (8, ErrorCode::Malformed), "{error}");
    }
    assert_eq!(client.ping(b"here"), &b"here"[..]);
}

#[test]
fn a_server_that_takes_no_writes_takes_transactions_that_only_read() {
    let server = TestServer::serve(database(), |config| config.read_only = true);
    let mut client = server.binary();
    assert_eq!(done(&mut client, txn(&[count("b")])).1, [Reply::Count(2)]);
    assert_eq!(refused(&mut client, txn(&[set("b", "a", "2")])).code, ErrorCode::ReadOnly);
}
