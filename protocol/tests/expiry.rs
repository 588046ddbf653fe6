//! What is said about when keys expire, byte by byte and line by line.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use boltkv_protocol::text::{Answer, MissingBucket, TextCommand, default_bucket, parse};
use boltkv_protocol::{
    Cond, ErrorCode, ErrorReply, Expect, ExpireCond, ExpireTo, Expiry, Frame, FrameCodec, NEVER, Path, ReadRequest,
    Reply, Request, SnapshotRead, Txn, WriteRequest,
};
use bytes::{Bytes, BytesMut};
use common::hex;
use tokio_util::codec::Decoder as _;

fn frame(bytes: &Bytes) -> Frame {
    FrameCodec::default().decode(&mut BytesMut::from(&bytes[..])).unwrap().unwrap()
}

fn path() -> Path {
    "b".parse().unwrap()
}

fn set(expiry: Expiry) -> Request {
    WriteRequest::SetExpiring { path: path(), key: "k".into(), value: "v".into(), cond: Cond::IfAbsent, expiry }.into()
}

fn expire(to: ExpireTo, cond: ExpireCond) -> Request {
    WriteRequest::Expire { path: path(), key: "k".into(), to, cond }.into()
}

fn time() -> ReadRequest {
    ReadRequest::ExpiryTime { path: path(), key: "k".into() }
}

#[test]
fn every_request_has_its_frame() {
    // "b", "k"
    let key = "01 0001 62 0001 6b";
    let golden = |len: &str, op: &str, flags: &str, body: &str| hex(&format!("{len} 00000005 {op} {flags} {body}"));
    for (request, expected) in [
        (set(Expiry::Keep), golden("00000014", "14", "00", &format!("{key} 00000001 76 01 01"))),
        (set(Expiry::At(256)), golden("0000001c", "14", "00", &format!("{key} 00000001 76 01 02 0000000000000100"))),
        (set(Expiry::In(9)), golden("0000001c", "14", "00", &format!("{key} 00000001 76 01 03 0000000000000009"))),
        (
            expire(ExpireTo::Never, ExpireCond::Always),
            golden("00000017", "15", "00", &format!("{key} 00 0000000000000000 00")),
        ),
        (
            expire(ExpireTo::At(256), ExpireCond::IfNone),
            golden("00000017", "15", "00", &format!("{key} 02 0000000000000100 01")),
        ),
        (
            expire(ExpireTo::In(9), ExpireCond::IfSome),
            golden("00000017", "15", "00", &format!("{key} 03 0000000000000009 02")),
        ),
        (
            expire(ExpireTo::In(9), ExpireCond::IfLater),
            golden("00000017", "15", "00", &format!("{key} 03 0000000000000009 03")),
        ),
        (
            expire(ExpireTo::In(9), ExpireCond::IfEarlier),
            golden("00000017", "15", "00", &format!("{key} 03 0000000000000009 04")),
        ),
        (time().into(), golden("0000000d", "16", "00", key)),
        (
            Request::OfSnapshot { snapshot: 7, read: SnapshotRead::Read(time()) },
            golden("00000015", "16", "08", &format!("0000000000000007 {key}")),
        ),
    ] {
        let mut out = BytesMut::new();
        request.encode(5, &mut out).unwrap();
        assert_eq!(out, expected, "{request:?}");
        assert_eq!(Request::decode(frame(&expected)).as_ref(), Ok(&request));
    }
}

#[test]
fn every_reply_has_its_frame() {
    let set = |changed| Reply::<Bytes>::ExpirySet { txid: 300, changed };
    for (expect, reply, expected) in [
        (Expect::ExpirySet, set(true), "0000000f 00000005 00 80 000000000000012c 01"),
        (Expect::ExpirySet, set(false), "0000000f 00000005 00 80 000000000000012c 00"),
        (
            Expect::ExpiryTime,
            Reply::ExpiryTime { at: NEVER, now: 256 },
            "00000016 00000005 00 80 ffffffffffffffff 0000000000000100",
        ),
    ] {
        let (mut out, expected) = (BytesMut::new(), hex(expected));
        reply.encode(5, &mut out).unwrap();
        assert_eq!(out, expected, "{reply:?}");
        assert_eq!(Reply::decode(expect, frame(&expected)), Ok(reply));
    }
}

#[test]
fn a_number_that_means_nothing_is_malformed() {
    for (op, body) in [
        ("14", "00000001 76 00 00"),
        ("14", "00000001 76 00 04 0000000000000001"),
        ("14", "00000001 76 00 02"),
        ("15", "01 0000000000000000 00"),
        ("15", "02 0000000000000000 05"),
        ("15", "00 00"),
    ] {
        let body = hex(&format!("01 0001 62 0001 6b {body}"));
        let len = u32::try_from(body.len() + 6).unwrap();
        let head = hex(&format!("{len:08x} 00000005 {op} 00"));
        let error = Request::decode(frame(&[head, body].concat().into())).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Malformed, "{op} {error}");
    }
}

#[test]
fn they_can_be_part_of_a_transaction() {
    let mut txn = Txn::builder();
    let requests = [set(Expiry::In(9)), expire(ExpireTo::Never, ExpireCond::Always), time().into()];
    for request in &requests {
        txn.request(request).unwrap();
    }
    let txn = txn.build();
    assert!(txn.writes());
    assert_eq!(txn.requests().collect::<Vec<_>>(), requests);
    assert_eq!(txn.expects().collect::<Vec<_>>(), [Expect::Written, Expect::ExpirySet, Expect::ExpiryTime]);
}

fn ask(line: &str) -> Result<TextCommand, ErrorReply> {
    parse(&Bytes::copy_from_slice(line.as_bytes()), &default_bucket()).map(Option::unwrap)
}

#[test]
fn every_line_asks_for_its_request() {
    let path = default_bucket;
    let write = |request, answer| Ok(TextCommand::Write { request, answer });
    let expire = |to| {
        let request = WriteRequest::Expire { path: path(), key: "k".into(), to, cond: ExpireCond::Always };
        write(request, Answer::ExpirySet)
    };
    let set = WriteRequest::SetExpiring {
        path: path(),
        key: "k".into(),
        value: "the value ".into(),
        cond: Cond::Always,
        expiry: Expiry::In(60_000),
    };
    assert_eq!(ask("SETEX k 60 the value "), write(set, Answer::Done));
    assert_eq!(ask("EXPIRE k 60"), expire(ExpireTo::In(60_000)));
    assert_eq!(ask("pexpire k 60"), expire(ExpireTo::In(60)));
    assert_eq!(ask("EXPIRE k -60"), expire(ExpireTo::In(0)));
    assert_eq!(ask("EXPIRE k 9223372036854775807"), expire(ExpireTo::In(u64::MAX)));
    assert_eq!(ask("PERSIST k"), expire(ExpireTo::Never));
    for (line, answer) in [("TTL k", Answer::Seconds), ("PTTL k", Answer::Millis)] {
        let request = ReadRequest::ExpiryTime { path: path(), key: "k".into() };
        assert_eq!(ask(line), Ok(TextCommand::Read { request, answer }));
    }
    for line in
        ["SETEX k 0 v", "SETEX k x v", "SETEX k -1 v", "SETEX k 1", "EXPIRE k", "EXPIRE k 1 2", "TTL", "PERSIST"]
    {
        assert_eq!(ask(line).unwrap_err().code, ErrorCode::Malformed, "{line}");
    }
}

#[test]
fn numbers_are_what_redis_answers() {
    let print = |answer: Answer, reply: &Reply, missing| {
        let mut out = BytesMut::new();
        answer.write(reply, missing, &mut out);
        String::from_utf8(out.to_vec()).unwrap()
    };
    let at = |at| Reply::ExpiryTime { at, now: 1_000 };
    let error = |code| Reply::Error(ErrorReply::new(code, "it is not there"));
    for (answer, reply, expected) in [
        (Answer::Seconds, at(3_499), "2\n"),
        (Answer::Seconds, at(3_500), "3\n"),
        (Answer::Millis, at(3_499), "2499\n"),
        (Answer::Seconds, at(NEVER), "-1\n"),
        (Answer::Millis, at(NEVER), "-1\n"),
        (Answer::Seconds, error(ErrorCode::KeyNotFound), "-2\n"),
        (Answer::Millis, error(ErrorCode::BucketNotFound), "-2\n"),
        (Answer::ExpirySet, error(ErrorCode::BucketNotFound), "0\n"),
        (Answer::ExpirySet, Reply::ExpirySet { txid: 1, changed: true }, "1\n"),
        (Answer::ExpirySet, Reply::ExpirySet { txid: 1, changed: false }, "0\n"),
    ] {
        assert_eq!(print(answer, &reply, MissingBucket::Empty), expected, "{answer:?} {reply:?}");
    }
    let missing = print(Answer::Seconds, &error(ErrorCode::BucketNotFound), MissingBucket::Error);
    assert!(missing.starts_with("ERR BUCKET_NOT_FOUND"), "{missing}");
}
