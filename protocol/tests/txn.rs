//! Transactions and their results, byte by byte: the hexadecimal digits are written by hand from `docs/protocol.md`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use boltkv_protocol::{
    Cond, DecodeError, Entry, EntryKind, ErrorCode, ErrorReply, Expect, FLAG_REPLY, Frame, MAX_TXN_PARTS, Path,
    ReadRequest, Reply, Request, Scan, SessionRequest, StreamRequest, Txn, TxnError, TxnPart, TxnResultsWriter,
    WriteRequest,
};
use bytes::{Bytes, BytesMut};
use common::hex;

fn path() -> Path {
    "b".parse().unwrap()
}

fn get(key: &'static str) -> Request {
    ReadRequest::Get { path: path(), key: Bytes::from_static(key.as_bytes()) }.into()
}

fn set(key: &'static str, value: &'static str) -> Request {
    WriteRequest::Set { path: path(), key: key.into(), value: value.into(), cond: Cond::Always }.into()
}

fn body(request: &Request) -> Bytes {
    let mut out = BytesMut::new();
    request.encode(1, &mut out).unwrap();
    out.split_off(10).freeze()
}

fn decode(body: Bytes) -> Result<Request, DecodeError> {
    Request::decode(Frame { id: 1, op: 0x40, flags: 0, body })
}

#[test]
fn a_transaction_has_these_bytes_and_is_a_write_if_a_request_of_it_is() {
    let mut txn = Txn::builder();
    txn.condition(&path(), b"k", &Cond::IfEquals("v")).unwrap();
    txn.request(&set("k", "w")).unwrap();
    txn.request(&get("k")).unwrap();
    let len = txn.frame_len();
    let txn = txn.build();
    let wire = "0001  01 0001 62  0001 6b  03 00000001 76  \
                0002  11 0000000d 01 0001 62  0001 6b  00000001 77  00  10 00000007 01 0001 62  0001 6b";
    assert_eq!((body(&txn.clone().into()), len), (hex(wire), 10 + hex(wire).len()));
    assert_eq!(decode(hex(wire)), Ok(Request::Write(WriteRequest::Txn(txn.clone()))));
    assert_eq!(txn.expects().collect::<Vec<_>>(), [Expect::Written, Expect::Value]);
    assert_eq!(txn.requests().collect::<Vec<_>>(), [set("k", "w"), get("k")]);
    assert_eq!(txn.conditions().map(|condition| condition.cond).collect::<Vec<_>>(), [Cond::IfEquals("v".into())]);

    let wire = "0000  0001  30 0000000f 01 0001 62  00  00  00  0000000000000000";
    let scan = StreamRequest::Scan(Scan { path: path(), ..Scan::default() });
    let mut txn = Txn::builder();
    txn.request::<Bytes>(&scan.clone().into()).unwrap();
    assert_eq!(decode(hex(wire)), Ok(Request::Stream(StreamRequest::Txn(txn.clone().build()))));
    assert_eq!(body(&txn.build().into()), hex(wire));
}

// Promises: wire-longer-body.
#[test]
fn bytes_behind_what_is_known_are_ignored() {
    let Ok(Request::Write(WriteRequest::Txn(txn))) =
        decode(hex("0000  0001  12 0000000a 01 0001 62  0001 6b  00  7777  888888"))
    else {
        panic!("it is a write")
    };
    let delete = WriteRequest::Delete { path: path(), key: "k".into(), cond: Cond::Always };
    assert_eq!(txn.requests().collect::<Vec<_>>(), [delete.into()]);
    assert_eq!(txn.variable_len(), 15);
}

// Promises: wire-txn-within.
#[test]
fn what_is_done_by_itself_only_is_refused_however_it_comes() {
    for (op, name) in [(0x01, "HELLO"), (0x02, "PING"), (0x40, "TXN"), (0x50, "SNAPSHOT"), (0x70, "CREDIT")] {
        let error = decode(hex(&format!("0000 0001 {op:02x} 00000004 00000000"))).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Unsupported);
        let of_itself = Box::new(DecodeError::NotWithinTxn { name });
        assert_eq!(error, DecodeError::Part { part: "request", index: 0, error: of_itself });
    }
    let mut txn = Txn::builder();
    for (request, name) in [
        (Request::<&[u8]>::Read(ReadRequest::Ping(b"")), "PING"),
        (Request::Session(SessionRequest::Cancel { stream: 1 }), "CANCEL"),
        (Request::Write(WriteRequest::Txn(Txn::default())), "TXN"),
        (Request::Stream(StreamRequest::BucketStat(path())), "BUCKET STAT"),
    ] {
        assert_eq!(txn.request(&request), Err(TxnError::NotWithin { name }));
    }
    assert_eq!((txn.requests(), txn.build()), (0, Txn::default()));
}

#[test]
fn parts_that_are_announced_and_do_not_come_are_refused_and_reserve_nothing() {
    for body in ["ffff", "0000 ffff", "0001 00 0001 6b", "0000 0001 10 ffffffff 00", "0000 0001 10 00000002 0000", "00"]
    {
        let error = decode(hex(body)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Malformed, "{body}: {error}");
        assert!(error.to_string().contains("the body ends within"), "{body}: {error}");
    }
}

// Promises: wire-txn-undone.
#[test]
fn a_part_that_cannot_be_read_is_named() {
    let get = "10 00000007 01 0001 62 0001 6b";
    let second = decode(hex(&format!("0000 0002 {get} 10 00000002 0100"))).unwrap_err();
    assert_eq!(second.to_string(), "request 1 of the transaction: the body ends within the field path");
    let condition = decode(hex("0002 01 0001 62 0001 6b 01  01 0001 62 0001 6b 09  0000")).unwrap_err();
    assert_eq!(condition.to_string(), "condition 1 of the transaction: the field cond cannot be 9");
}

#[test]
fn one_part_more_than_can_be_counted_is_refused_and_leaves_the_others() {
    let mut txn = Txn::builder();
    for _ in 0..MAX_TXN_PARTS {
        txn.request(&get("k")).unwrap();
    }
    assert_eq!(txn.request(&get("k")), Err(TxnError::TooMany { what: "requests" }));
    let long = vec![b'k'; 65_536];
    let error = txn.condition(&path(), &long, &Cond::<&[u8]>::IfAbsent).unwrap_err();
    assert!(matches!(error, TxnError::Encode(_)), "{error}");
    let txn = txn.build();
    assert_eq!((txn.requests().len(), txn.conditions().len()), (MAX_TXN_PARTS, 0));
}

#[test]
fn results_have_these_bytes_whatever_number_they_were_given_first() {
    let entry = Entry { kind: EntryKind::Bucket, key: "e", value: "" };
    let mut results = TxnResultsWriter::default();
    let replies: [Reply; 3] = [
        Reply::Written { txid: 7 },
        Reply::Deleted { txid: 7, existed: true },
        Reply::Error(ErrorReply::new(ErrorCode::KeyNotFound, "no")),
    ];
    for reply in &replies {
        results.push(reply).unwrap();
    }
    results.begin_scan();
    let long = vec![b'k'; 65_536];
    assert!(results.push_entry(&Entry { kind: EntryKind::Value, key: &long[..], value: b"" }).is_err());
    results.push_entry(&entry).unwrap();
    results.end_scan().unwrap();
    results.push(&Reply::Value("v")).unwrap();
    let len = results.frame_len();
    let reply = results.finish(9);
    let wire = hex("0000000000000009  0005  00 00000008 0000000000000009  00 00000009 0000000000000009 01  \
                    0a 00000008 0002 6e6f 00000000  00 0000000c 00000001 01 0001 65 00000000  00 00000005 00000001 76");
    let mut out = BytesMut::new();
    reply.encode(3, &mut out).unwrap();
    assert_eq!((out.len(), &out[10..]), (len, &wire[..]));
    let expects = [Expect::Written, Expect::Deleted, Expect::Value, Expect::Entries, Expect::Value];
    let frame = Frame { id: 3, op: 0, flags: FLAG_REPLY, body: wire };
    let Ok(Reply::Txn { txid: 9, results }) = Reply::decode(Expect::Txn, frame) else { panic!("it is a reply") };
    assert_eq!((results.len(), results.frame_len()), (5, len));
    let replies: Result<Vec<_>, _> = results.replies(expects).collect();
    let entry = Entry { kind: EntryKind::Bucket, key: Bytes::from("e"), value: Bytes::new() };
    assert_eq!(
        replies.unwrap(),
        [
            Reply::Written { txid: 9 },
            Reply::Deleted { txid: 9, existed: true },
            Reply::Error(ErrorReply::new(ErrorCode::KeyNotFound, "no")),
            Reply::Entries(vec![entry]),
            Reply::Value("v".into()),
        ]
    );
}

// Promises: wire-txn-undone.
#[test]
fn the_part_that_failed_is_the_errors_detail() {
    for (part, detail, name) in [
        (TxnPart::Condition(1), hex("00 0001"), "condition 1"),
        (TxnPart::Request(65_534), hex("01 fffe"), "request 65534"),
    ] {
        let error = ErrorReply::new(ErrorCode::BucketNotFound, "no").within_txn(part);
        assert_eq!((error.txn_part(), &error.detail), (Some(part), &detail));
        assert!(error.message.starts_with(name) && error.message.ends_with("no"), "{error}");
    }
    assert_eq!(ErrorReply::new(ErrorCode::NoSpace, "no").txn_part(), None);
}
