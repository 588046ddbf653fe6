//! Every command of the binary dialect does what the protocol says, and looks on the wire as it says.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::num::NonZeroU64;
use std::ops::Bound;

use crate::common::binary::{
    create, create_if_missing, delete, delete_bucket, delete_if, frame, get, list, path, scan, scan_all, set, set_if,
};
use crate::common::{Binary, TestServer, read_to_end};
use boltkv_protocol::{Cond, EntryKind, ErrorCode, KeyRange, LowBound, Reply, Request, Scan, ScanMode, ScanOptions};
use boltkv_storage::{MAX_KEY_SIZE, Options};
use bytes::Bytes;

#[test]
fn a_whole_conversation_has_these_bytes() {
    let server = TestServer::start_with(|config| {
        config.limits.max_in_flight = 100;
        config.limits.max_streams = 3;
    });
    let mut client = Binary::connect(server.address);
    let name = format!("boltkv/{}", env!("CARGO_PKG_VERSION"));
    let mut hello = b"\x01\0\0\0\0\x01\0\0\0\0\0\0\x64\0\0\0\x03\0\0".to_vec();
    hello.push(u8::try_from(name.len()).unwrap());
    hello.extend(name.as_bytes());
    let exchanges: &[(&[u8], &[u8])] = &[
        // HELLO, id 1
        (b"\0\0\0\x18\0\0\0\x01\x01\0BKV1\x01\x01\0\0\0\0\0\x04test\0\0", &frame(1, 0, 0x80, &hello)),
        // PING, id 2
        (b"\0\0\0\x08\0\0\0\x02\x02\0hi", b"\0\0\0\x08\0\0\0\x02\0\x80hi"),
        // BUCKET CREATE b, id 3; transaction 2 makes it
        (b"\0\0\0\x0b\0\0\0\x03\x20\0\x01\x01\0\x01b", b"\0\0\0\x0e\0\0\0\x03\0\x80\0\0\0\0\0\0\0\x02"),
        // SET b k v, id 4
        (b"\0\0\0\x13\0\0\0\x04\x11\0\x01\0\x01b\0\x01k\0\0\0\x01v\0", b"\0\0\0\x0e\0\0\0\x04\0\x80\0\0\0\0\0\0\0\x03"),
        // GET b k, id 5
        (b"\0\0\0\x0d\0\0\0\x05\x10\0\x01\0\x01b\0\x01k", b"\0\0\0\x0b\0\0\0\x05\0\x80\0\0\0\x01v"),
        // SCAN b, id 6
        (
            b"\0\0\0\x15\0\0\0\x06\x30\0\x01\0\x01b\0\0\0\0\0\0\0\0\0\0\0",
            b"\0\0\0\x13\0\0\0\x06\0\x80\0\0\0\x01\0\0\x01k\0\0\0\x01v",
        ),
        // DELETE b k, id 7
        (b"\0\0\0\x0e\0\0\0\x07\x12\0\x01\0\x01b\0\x01k\0", b"\0\0\0\x0f\0\0\0\x07\0\x80\0\0\0\0\0\0\0\x04\x01"),
        // GET b k, id 8: KEY_NOT_FOUND
        (b"\0\0\0\x0d\0\0\0\x08\x10\0\x01\0\x01b\0\x01k", &frame(8, 10, 0x80, b"\0\x14there is no such key\0\0\0\0")),
        // BUCKET LIST of the root, id 9
        (
            b"\0\0\0\x13\0\0\0\x09\x20\0\x04\0\0\0\0\0\0\0\0\0\0\0\0",
            b"\0\0\0\x12\0\0\0\x09\0\x80\0\0\0\x01\x01\0\x01b\0\0\0\0",
        ),
        // BUCKET DELETE b, id 10
        (b"\0\0\0\x0b\0\0\0\x0a\x20\0\x03\x01\0\x01b", b"\0\0\0\x0e\0\0\0\x0a\0\x80\0\0\0\0\0\0\0\x05"),
    ];
    for (request, reply) in exchanges {
        client.send(request);
        let got = client.frame();
        assert_eq!(
            frame(got.id, got.op, got.flags, &got.body).escape_ascii().to_string(),
            reply.escape_ascii().to_string(),
            "to {}",
            request.escape_ascii()
        );
    }
}

// Promises: wire-key-missing.
#[test]
fn what_is_set_is_read_until_it_is_deleted() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.write(&create("b"));
    client.write(&set("b", "k", "one"));
    assert_eq!(client.value("b", "k").as_deref(), Some(&b"one"[..]));
    client.write(&set("b", "k", "two"));
    assert_eq!(client.value("b", "k").as_deref(), Some(&b"two"[..]));
    client.write(&set("b", "empty", ""));
    assert_eq!(client.value("b", "empty").as_deref(), Some(&b""[..]));
    assert!(matches!(client.ask(&delete("b", "k")), Reply::Deleted { existed: true, .. }));
    assert!(matches!(client.ask(&delete("b", "k")), Reply::Deleted { existed: false, .. }));
    assert_eq!(client.value("b", "k"), None);
}

#[test]
fn a_transaction_number_grows_with_what_was_written_and_only_with_that() {
    let server = TestServer::start();
    let mut client = server.binary();
    let created = client.write(&create("b"));
    let written = client.write(&set("b", "k", "v"));
    assert!(written > created);
    assert_eq!(client.write(&delete("b", "absent")), written, "nothing was written");
    assert_eq!(client.write(&create_if_missing("b")), written, "nothing was written");
    assert_eq!(client.ask_code(&set("nowhere", "k", "v")), ErrorCode::BucketNotFound);
    assert_eq!(server.db.begin().unwrap().id(), written);
}

// Promises: wire-cond.
#[test]
fn conditions_decide_whether_a_write_is_done() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.write(&create("b"));
    let failed = ErrorCode::ConditionFailed;
    let equals = |value: &'static str| Cond::IfEquals(value.into());

    assert_eq!(client.ask_code(&set_if("b", "k", "1", Cond::IfPresent)), failed);
    assert_eq!(client.ask_code(&set_if("b", "k", "1", equals(""))), failed, "absent is not empty");
    assert_eq!(client.value("b", "k"), None);
    client.write(&set_if("b", "k", "1", Cond::IfAbsent));
    assert_eq!(client.ask_code(&set_if("b", "k", "2", Cond::IfAbsent)), failed);
    assert_eq!(client.ask_code(&set_if("b", "k", "2", equals("x"))), failed);
    assert_eq!(client.value("b", "k").as_deref(), Some(&b"1"[..]));
    client.write(&set_if("b", "k", "2", equals("1")));
    client.write(&set_if("b", "k", "3", Cond::IfPresent));
    assert_eq!(client.value("b", "k").as_deref(), Some(&b"3"[..]));

    assert_eq!(client.ask_code(&delete_if("b", "k", Cond::IfAbsent)), failed);
    assert_eq!(client.ask_code(&delete_if("b", "k", equals("x"))), failed);
    assert!(matches!(client.ask(&delete_if("b", "k", equals("3"))), Reply::Deleted { existed: true, .. }));
    assert!(matches!(client.ask(&delete_if("b", "k", Cond::IfAbsent)), Reply::Deleted { existed: false, .. }));
    assert_eq!(client.ask_code(&delete_if("b", "k", Cond::IfPresent)), failed);
}

// Promises: wire-bucket.
#[test]
fn buckets_are_created_listed_and_deleted() {
    let server = TestServer::start();
    let mut client = server.binary();
    assert_eq!(client.ask_code(&create("a/b")), ErrorCode::BucketNotFound, "its parent is missing");
    client.write(&create("a"));
    assert_eq!(client.ask_code(&create("a")), ErrorCode::BucketExists);
    client.write(&create("a/b"));
    client.write(&create_if_missing("a/b/c/d"));
    client.write(&set("a", "key", "value"));
    assert_eq!(client.keys(&list("")), ["a"]);
    assert_eq!(client.keys(&list("a")), ["b"], "keys are not listed");
    assert_eq!(client.keys(&list("a/b/c")), ["d"]);
    assert_eq!(client.ask_code(&delete_bucket("a/x")), ErrorCode::BucketNotFound);
    client.write(&delete_bucket("a/b"));
    assert_eq!(client.keys(&list("a")), [""; 0]);
    assert_eq!(client.ask_code(&list("a/b")), ErrorCode::BucketNotFound);
    assert_eq!(client.value("a", "key").as_deref(), Some(&b"value"[..]));
}

// Promises: wire-incompatible.
#[test]
fn buckets_and_values_are_not_taken_for_each_other() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.write(&create_if_missing("a/bucket"));
    client.write(&set("a", "value", "v"));
    let requests = [
        get("a", "bucket"),
        set("a", "bucket", "v"),
        set_if("a", "bucket", "v", Cond::IfAbsent),
        delete("a", "bucket"),
        get("a/value", "k"),
        set("a/value", "k", "v"),
        delete("a/value", "k"),
        create("a/value"),
        create("a/value/x"),
        create_if_missing("a/value"),
        create_if_missing("a/value/x"),
        delete_bucket("a/value"),
        scan_all("a/value"),
        list("a/value"),
    ];
    for request in requests {
        assert_eq!(client.ask_code(&request), ErrorCode::IncompatibleValue, "{request:?}");
    }
}

// Promises: wire-root.
#[test]
fn the_root_holds_buckets_only() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.write(&create("b"));
    for request in
        [get("", "k"), set("", "k", "v"), delete("", "k"), create(""), create_if_missing(""), delete_bucket("")]
    {
        assert_eq!(client.ask_code(&request), ErrorCode::BucketNameRequired, "{request:?}");
    }
    let (entries, _) = client.entries(&scan_all(""));
    assert_eq!(entries.len(), 1);
    assert_eq!((entries[0].kind, &entries[0].key[..], &entries[0].value[..]), (EntryKind::Bucket, &b"b"[..], &b""[..]));
}

// Promises: wire-bucket-missing.
#[test]
fn a_bucket_that_is_not_there_is_named_as_such() {
    let server = TestServer::start();
    let mut client = server.binary();
    for request in [get("x", "k"), set("x", "k", "v"), delete("x", "k"), scan_all("x"), list("x"), delete_bucket("x")] {
        assert_eq!(client.ask_code(&request), ErrorCode::BucketNotFound, "{request:?}");
    }
}

// Promises: ops-key.
#[test]
fn keys_have_a_length_and_the_message_names_the_limit() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.write(&create("b"));
    assert_eq!(client.ask_code(&set("b", "", "v")), ErrorCode::KeyRequired);
    client.write(&set("b", &"k".repeat(MAX_KEY_SIZE), "v"));
    match client.ask(&set("b", &"k".repeat(MAX_KEY_SIZE + 1), "v")) {
        Reply::Error(error) => {
            assert_eq!(error.code, ErrorCode::KeyTooLarge);
            assert!(error.message.contains(&MAX_KEY_SIZE.to_string()), "{}", error.message);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn creating_a_path_that_cannot_be_leaves_nothing_of_it() {
    let server = TestServer::start();
    let mut client = server.binary();
    let long = "n".repeat(MAX_KEY_SIZE + 1);
    client.write(&create("there"));
    for missing in [format!("new/{long}"), format!("there/new/newer/{long}"), long] {
        assert_eq!(client.ask_code(&create_if_missing(&missing)), ErrorCode::KeyTooLarge);
    }
    assert_eq!(client.keys(&list("")), ["there"]);
    assert_eq!(client.keys(&list("there")), [""; 0]);
}

// Promises: wire-bound.
#[test]
fn scans_keep_to_their_bounds_in_both_directions() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.write(&create_if_missing("b/bucket"));
    for key in ["a", "ab", "abc", "b", "c"] {
        client.write(&set("b", key, key));
    }
    let bytes = |key: &'static str| Bytes::from_static(key.as_bytes());
    let mut keys = |low: LowBound, high: Bound<Bytes>, reverse: bool, limit: u64| {
        let options = ScanOptions { reverse, limit: NonZeroU64::new(limit), ..ScanOptions::default() };
        client.keys(&scan("b", KeyRange { low, high }, options)).join(" ")
    };
    assert_eq!(keys(LowBound::Unbounded, Bound::Unbounded, false, 0), "a ab abc b bucket c");
    assert_eq!(keys(LowBound::Unbounded, Bound::Unbounded, true, 0), "c bucket b abc ab a");
    assert_eq!(keys(LowBound::Included(bytes("ab")), Bound::Excluded(bytes("b")), false, 0), "ab abc");
    assert_eq!(keys(LowBound::Excluded(bytes("ab")), Bound::Included(bytes("b")), false, 0), "abc b");
    assert_eq!(keys(LowBound::Excluded(bytes("ab")), Bound::Included(bytes("b")), true, 0), "b abc");
    assert_eq!(keys(LowBound::Prefix(bytes("ab")), Bound::Unbounded, false, 0), "ab abc");
    assert_eq!(keys(LowBound::Prefix(bytes("a")), Bound::Excluded(bytes("abc")), true, 0), "ab a");
    assert_eq!(keys(LowBound::Included(bytes("c")), Bound::Excluded(bytes("a")), false, 0), "");
    assert_eq!(keys(LowBound::Unbounded, Bound::Unbounded, false, 2), "a ab");
    assert_eq!(keys(LowBound::Unbounded, Bound::Unbounded, true, 2), "c bucket");
}

// Promises: wire-kind.
#[test]
fn scans_give_keys_only_or_a_count_where_that_is_asked_for() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.write(&create_if_missing("b/bucket"));
    client.write(&set("b", "key", "value"));
    let with = |mode| ScanOptions { mode, ..ScanOptions::default() };
    let (entries, _) = client.entries(&scan("b", KeyRange::ALL, with(ScanMode::Keys)));
    let seen: Vec<_> = entries.iter().map(|entry| (entry.kind, &entry.key[..], entry.value.len())).collect();
    assert_eq!(seen, [(EntryKind::Bucket, &b"bucket"[..], 0), (EntryKind::Value, &b"key"[..], 0)]);
    let count = with(ScanMode::Count);
    assert_eq!(client.ask(&scan("b", KeyRange::ALL, count)), Reply::Count(2));
    let one = ScanOptions { limit: NonZeroU64::new(1), ..count };
    assert_eq!(client.ask(&scan("b", KeyRange::ALL, one)), Reply::Count(1));
    let buckets = Scan { path: path("b"), range: KeyRange::ALL, options: count };
    let list = Request::Stream(boltkv_protocol::StreamRequest::ListBuckets(buckets));
    assert_eq!(client.ask(&list), Reply::Count(1));
}

// Promises: wire-stream.
#[test]
fn a_long_scan_comes_in_several_frames_and_other_replies_come_between_them() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.write(&create("b"));
    let value = Bytes::from(vec![b'v'; 1_000]);
    let sets: Vec<_> = (0..1_000).map(|n| set("b", &format!("{n:04}"), value.clone())).collect();
    client.send_all(&sets);
    for _ in &sets {
        assert_eq!(client.frame().op, 0);
    }
    let (entries, frames) = client.entries(&scan_all("b"));
    assert_eq!(entries.len(), 1_000);
    assert!(frames > 10, "{frames} frames");
    assert!(entries.iter().all(|entry| entry.value == value));
    assert!(entries.windows(2).all(|pair| pair[0].key < pair[1].key));

    let ids = client.send_all(&[scan_all("b"), get("b", "0500")]);
    let order: Vec<u32> = (0..=frames).map(|_| client.frame().id).collect();
    assert!(order.iter().position(|id| *id == ids[1]).unwrap() < frames, "GET did not wait for the scan's end");
}

// Promises: wire-value-size.
#[test]
fn a_value_that_does_not_fit_a_frame_is_told_by_its_size() {
    let db = Options::new().open_in_memory().unwrap();
    let limit = 64 * 1024;
    // 10 of header, 4 of count, 7 of entry, 5 of key
    let (fits, large) = (limit - 26, limit - 13);
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        bucket.put("1fits", vec![1; fits])?;
        bucket.put("2over", vec![2; fits + 1])?;
        bucket.put("3last", vec![3; large - 1])?;
        bucket.put("4none", vec![4; large])
    })
    .unwrap();
    let server = TestServer::serve(db, |config| config.limits.max_frame = limit);
    let mut client = server.binary();
    assert_eq!(client.value("b", "3last").map(|value| value.len()), Some(large - 1));
    match client.ask(&get("b", "4none")) {
        Reply::Error(error) => {
            assert_eq!((error.code, error.value_size()), (ErrorCode::ValueTooLarge, Some(large as u64)));
        }
        other => panic!("{other:?}"),
    }
    let (entries, _) = client.entries(&scan_all("b"));
    let sizes: Vec<_> = entries.iter().map(|entry| (entry.kind, entry.value_size())).collect();
    let over = |size: usize| (EntryKind::TooLarge, Some(size as u64));
    assert_eq!(sizes, [(EntryKind::Value, None), over(fits + 1), over(large - 1), over(large)]);
    let keys = ScanOptions { mode: ScanMode::Keys, ..ScanOptions::default() };
    let (entries, _) = client.entries(&scan("b", KeyRange::ALL, keys));
    assert_eq!((entries[3].kind, entries[3].value.len()), (EntryKind::TooLarge, 0), "the kind as it is");
}

// Promises: wire-unknown.
#[test]
fn what_is_unknown_is_unsupported_and_the_connection_lives() {
    let server = TestServer::start();
    let mut client = server.binary();
    for (op, body) in [(0x50_u8, &b"\x03\0\0\0\x01"[..]), (0x20, b"\x63\0"), (0xee, b"?")] {
        client.send(frame(77, op, 0, body));
        let (id, error) = client.error();
        assert_eq!((id, error.code), (77, ErrorCode::Unsupported), "op {op:#x}");
    }
    // CREDIT and CANCEL have no reply, whatever they hold: the next one is PING's.
    client.send(frame(0, 0x70, 0, b"\0\0\0\x01\0\0\x10\0"));
    client.send(frame(0, 0x71, 0, b"\0\0\0\x63"));
    client.send(frame(0, 0x71, 0, b"\0"));
    assert_eq!(client.ping(b"alive"), &b"alive"[..]);
}

// Promises: wire-short-body.
#[test]
fn a_malformed_body_is_answered_and_the_connection_lives() {
    let server = TestServer::start();
    let mut client = server.binary();
    for (op, body) in [
        (0x10_u8, &b"\x01\0\x01b\0\x05k"[..]),
        (0x10, b"\x02\0\x01b"),
        (0x11, b"\x01\0\x01b\0\x01k\0\0\0\x01v\x09"),
        (0x11, b"\x01\0\x01b\0\x01k\xff\xff\xff\xffv"),
        (0x12, b""),
        (0x13, b"\x01\0\x01b\0\x01n\0\0\0\x01"),
        (0x31, b"\x01\0\x01b\0\0"),
        (0x20, b"\x07\x01\0\x01b"),
        (0x20, b"\x08\x01\0\x01b"),
        (0x20, b""),
        (0x30, b"\x01\0\x01b\x07"),
    ] {
        client.send(frame(5, op, 0, body));
        let (id, error) = client.error();
        assert_eq!((id, error.code), (5, ErrorCode::Malformed), "{}", body.escape_ascii());
    }
    client.send(frame(0, 0x02, 0, b""));
    let (id, error) = client.error();
    assert_eq!((id, error.code), (0, ErrorCode::Malformed), "id 0 is the connection itself");
    client.send(frame(6, 0x01, 0, b"BKV1\x01\x01\0\0\0\0\0\0\0\0"));
    let (id, error) = client.error();
    assert_eq!((id, error.code), (6, ErrorCode::Malformed), "a second HELLO");
    assert_eq!(client.ping(b"alive"), &b"alive"[..]);
}

// Promises: wire-longer-body.
#[test]
fn bytes_after_the_known_fields_are_ignored() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.write(&create("b"));
    client.write(&set("b", "k", "v"));
    client.send(frame(9, 0x10, 0, b"\x01\0\x01b\0\x01k of a later version"));
    assert_eq!(&client.frame().body[..], b"\0\0\0\x01v");
}

// Promises: wire-hello, wire-version, wire-drain.
#[test]
fn hello_comes_first_or_the_connection_is_closed() {
    let server = TestServer::start();
    let hello = |min: u8, max: u8| frame(3, 0x01, 0, &[b"BKV1", &[min, max][..], b"\0\0\0\0\0\0\0\0"].concat());
    for (first, code) in [
        (frame(3, 0x02, 0, b"ping"), ErrorCode::HelloRequired),
        (frame(3, 0x70, 0, b""), ErrorCode::HelloRequired),
        (frame(3, 0xee, 0, b""), ErrorCode::HelloRequired),
        (frame(3, 0x01, 0, b"HTTP\x01\x01\0\0\0\0\0\0\0\0"), ErrorCode::Malformed),
        (frame(3, 0x01, 0, b"BKV1\x01"), ErrorCode::Malformed),
        (hello(2, 9), ErrorCode::UnsupportedVersion),
        (hello(0, 0), ErrorCode::UnsupportedVersion),
    ] {
        let mut client = Binary::connect(server.address);
        client.send([first, frame(4, 0x02, 0, b"not answered any more")].concat());
        let (id, error) = client.error();
        assert_eq!((id, error.code), (3, code));
        assert_eq!(read_to_end(&mut client.socket), b"");
    }
    let mut client = Binary::connect(server.address);
    client.send(hello(0, 9));
    assert_eq!(client.frame().body[0], 1, "the version both speak");
}

// Promises: wire-cancel.
#[test]
fn a_cancelled_stream_ends_with_cancelled_and_its_id_is_free_again() {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..40_u8).try_for_each(|n| bucket.put([n], vec![n; 1 << 20]))
    })
    .unwrap();
    let server = TestServer::serve(db, |_| {});
    let mut client = server.binary();
    let id = client.send_all(&[scan_all("b")])[0];
    client.send(frame(0, 0x71, 0, &id.to_be_bytes()));
    let last = loop {
        let frame = client.frame();
        assert_eq!(frame.id, id);
        if !frame.has_more() {
            break frame;
        }
    };
    assert_eq!(last.op, ErrorCode::Cancelled.to_u8());
    client.send(frame(id, 0x02, 0, b"again"));
    assert_eq!(client.frame().id, id);
}

// Promises: wire-streams, ops-streams.
#[test]
fn streams_have_a_limit_and_one_more_is_overloaded() {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..40_u8).try_for_each(|n| bucket.put([n], vec![n; 1 << 20]))
    })
    .unwrap();
    let server = TestServer::serve(db, |config| config.limits.max_streams = 2);
    let mut client = server.binary();
    let ids = client.send_all(&[scan_all("b"), scan_all("b"), scan_all("b")]);
    let mut ends = Vec::new();
    while ends.len() < 3 {
        let frame = client.frame();
        if !frame.has_more() {
            ends.push((frame.id, frame.op));
        }
    }
    ends.sort_unstable();
    assert_eq!(ends, [(ids[0], 0), (ids[1], 0), (ids[2], ErrorCode::Overloaded.to_u8())]);
}
