//! Every request, byte by byte: the hexadecimal digits are written by hand from `docs/protocol.md`, never by the encoder.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::num::NonZeroU64;
use std::ops::Bound;

use boltkv_protocol::{
    Cond, DecodeError, ErrorCode, ErrorReply, Expect, Frame, FrameCodec, Hello, KeyRange, LowBound, MAGIC,
    OperatorRequest, Path, ReadRequest, Reply, Request, Scan, ScanMode, ScanOptions, SessionRequest, SnapshotRead,
    SnapshotRequest, StreamRequest, Watch, WatchFrom, WatchPosition, WriteRequest,
};
use bytes::{Bytes, BytesMut};
use common::hex;
use tokio_util::codec::Decoder;

fn path(text: &str) -> Path {
    text.parse().unwrap()
}

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

/// A request with the id it is sent under and its frame.
type Golden = (u32, Request, Bytes);

fn golden() -> Vec<Golden> {
    [about_the_connection(), about_keys(), about_buckets(), scans()].concat()
}

fn about_the_connection() -> Vec<Golden> {
    let hello = Hello {
        magic: MAGIC,
        min_version: 1,
        max_version: 2,
        features: 3,
        client: bytes("cli"),
        token: bytes("t0").into(),
    };
    vec![
        (
            1,
            Request::Session(SessionRequest::Hello(hello)),
            hex("00000019 00000001 01 00  424b5631 01 02 00000003 0003 636c69 0002 7430"),
        ),
        (2, Request::Read(ReadRequest::Ping(bytes("hi"))), hex("00000008 00000002 02 00  6869")),
        (2, Request::Read(ReadRequest::Ping(Bytes::new())), hex("00000006 00000002 02 00")),
        (2, Request::Session(SessionRequest::Stats), hex("00000006 00000002 60 00")),
        (2, OperatorRequest::ListClients { after: 7 }.into(), hex("0000000e 00000002 63 00  0000000000000007")),
        (2, OperatorRequest::KillClient { client: 7 }.into(), hex("0000000e 00000002 64 00  0000000000000007")),
        (
            2,
            OperatorRequest::SlowLog { most: 10, before: 9 }.into(),
            hex("00000012 00000002 65 00  0000000a 0000000000000009"),
        ),
        (2, OperatorRequest::ResetSlowLog.into(), hex("00000006 00000002 66 00")),
        (
            0,
            Request::Session(SessionRequest::Credit { stream: 7, bytes: 65_536 }),
            hex("0000000e 00000000 70 00  00000007 00010000"),
        ),
        (
            4,
            Request::Session(SessionRequest::Snapshot(SnapshotRequest::Open { lease_ms: 60_000 })),
            hex("0000000b 00000004 50 00  01 0000ea60"),
        ),
        (
            5,
            Request::Session(SessionRequest::Snapshot(SnapshotRequest::Close { snapshot: 9 })),
            hex("0000000f 00000005 50 00  02 0000000000000009"),
        ),
        (
            6,
            Request::OfSnapshot {
                snapshot: 9,
                read: SnapshotRead::Read(ReadRequest::Get { path: path("b"), key: bytes("k") }),
            },
            hex("00000015 00000006 10 08  0000000000000009 01 0001 62 0001 6b"),
        ),
        (
            7,
            Request::OfSnapshot {
                snapshot: 9,
                read: SnapshotRead::Stream(StreamRequest::ListBuckets(Scan { path: path("b"), ..Scan::default() })),
            },
            hex("0000001e 00000007 20 08  0000000000000009 04 01 0001 62 00 00 00 0000000000000000"),
        ),
        (0, Request::Session(SessionRequest::Cancel { stream: 7 }), hex("0000000a 00000000 71 00  00000007")),
    ]
}

fn about_keys() -> Vec<Golden> {
    let set = |cond| Request::Write(WriteRequest::Set { path: path("b"), key: bytes("k"), value: bytes("v"), cond });
    let delete = |cond| Request::Write(WriteRequest::Delete { path: path("b"), key: bytes("k"), cond });
    let if_equals = || Cond::IfEquals(bytes("old"));
    vec![
        (
            3,
            Request::Read(ReadRequest::Get { path: path("users/eu"), key: bytes("k") }),
            hex("00000015 00000003 10 00  02 0005 7573657273 0002 6575  0001 6b"),
        ),
        (
            3,
            Request::Read(ReadRequest::Get { path: Path::ROOT, key: Bytes::new() }),
            hex("00000009 00000003 10 00  00  0000"),
        ),
        (4, set(Cond::Always), hex("00000013 00000004 11 00  01 0001 62  0001 6b  00000001 76  00")),
        (4, set(Cond::IfAbsent), hex("00000013 00000004 11 00  01 0001 62  0001 6b  00000001 76  01")),
        (4, set(Cond::IfPresent), hex("00000013 00000004 11 00  01 0001 62  0001 6b  00000001 76  02")),
        (4, set(if_equals()), hex("0000001a 00000004 11 00  01 0001 62  0001 6b  00000001 76  03 00000003 6f6c64")),
        (
            4,
            Request::Write(WriteRequest::Increment { path: path("b"), key: bytes("k"), delta: -2 }),
            hex("00000015 00000004 13 00  01 0001 62  0001 6b  fffffffffffffffe"),
        ),
        (
            4,
            Request::Write(WriteRequest::DeleteRange {
                path: path("b"),
                range: KeyRange { low: LowBound::Prefix(bytes("k")), high: Bound::Unbounded },
                limit: NonZeroU64::new(10),
            }),
            hex("00000017 00000004 31 00  01 0001 62  03 0001 6b  00  000000000000000a"),
        ),
        (5, delete(Cond::Always), hex("0000000e 00000005 12 00  01 0001 62  0001 6b  00")),
        (u32::MAX, delete(if_equals()), hex("00000015 ffffffff 12 00  01 0001 62  0001 6b  03 00000003 6f6c64")),
    ]
}

fn about_buckets() -> Vec<Golden> {
    vec![
        (6, Request::Write(WriteRequest::CreateBucket(path("b"))), hex("0000000b 00000006 20 00  01  01 0001 62")),
        (
            6,
            Request::Write(WriteRequest::CreateBucketIfMissing(path("b"))),
            hex("0000000b 00000006 20 00  02  01 0001 62"),
        ),
        (6, Request::Write(WriteRequest::DeleteBucket(path("b"))), hex("0000000b 00000006 20 00  03  01 0001 62")),
        (6, Request::Write(WriteRequest::NextSequence(path("b"))), hex("0000000b 00000006 20 00  06  01 0001 62")),
        (
            6,
            Request::Write(WriteRequest::SetSequence { path: path("b"), sequence: 258 }),
            hex("00000013 00000006 20 00  07  01 0001 62  0000000000000102"),
        ),
        (
            6,
            Request::Write(WriteRequest::MoveBucket { path: path("a/b"), to: path("b") }),
            hex("00000012 00000006 20 00  08  02 0001 61 0001 62  01 0001 62"),
        ),
        (6, Request::Read(ReadRequest::Sequence(path("b"))), hex("0000000b 00000006 20 00  09  01 0001 62")),
        (
            6,
            Request::Stream(StreamRequest::BucketStat(path("a/b"))),
            hex("0000000e 00000006 20 00  05  02 0001 61 0001 62"),
        ),
        (
            6,
            Request::Stream(StreamRequest::ListBuckets(Scan::default())),
            hex("00000013 00000006 20 00  04  00  00  00  00  0000000000000000"),
        ),
    ]
}

fn scans() -> Vec<Golden> {
    let scan = |low, high, options| {
        Request::Stream(StreamRequest::Scan(Scan { path: path("b"), range: KeyRange { low, high }, options }))
    };
    let all = ScanOptions::default();
    let keys = ScanOptions { mode: ScanMode::Keys, ..all };
    let count = ScanOptions { mode: ScanMode::Count, ..all };
    let last_ten = ScanOptions { reverse: true, limit: NonZeroU64::new(10), ..keys };
    vec![
        (7, Request::Stream(StreamRequest::Backup), hex("00000006 00000007 61 00")),
        (7, Request::Stream(StreamRequest::Shrink), hex("00000006 00000007 62 00")),
        (7, Request::Stream(StreamRequest::Watch(Watch::default())), hex("0000000b 00000007 80 00  00  00  0000  00")),
        (
            7,
            Request::Stream(StreamRequest::Watch(Watch {
                from: WatchFrom::Position(WatchPosition { epoch: 0xa1b2_c3d4_e5f6_0718, txid: 300 }),
                path: path("b"),
                prefix: bytes("k"),
                keys_only: true,
            })),
            hex("0000001f 00000007 80 00  01 a1b2c3d4e5f60718 000000000000012c  01 0001 62  0001 6b  01"),
        ),
        (
            7,
            scan(LowBound::Unbounded, Bound::Unbounded, all),
            hex("00000015 00000007 30 00  01 0001 62  00  00  00  0000000000000000"),
        ),
        (
            7,
            scan(LowBound::Included(bytes("a")), Bound::Included(bytes("z")), count),
            hex("0000001b 00000007 30 00  01 0001 62  01 0001 61  01 0001 7a  04  0000000000000000"),
        ),
        (
            7,
            scan(LowBound::Excluded(bytes("a")), Bound::Unbounded, keys),
            hex("00000018 00000007 30 00  01 0001 62  02 0001 61  00  02  0000000000000000"),
        ),
        (
            7,
            scan(LowBound::Prefix(bytes("k")), Bound::Excluded(bytes("kz")), last_ten),
            hex("0000001c 00000007 30 00  01 0001 62  03 0001 6b  02 0002 6b7a  03  000000000000000a"),
        ),
    ]
}

/// The one frame that these bytes are.
fn frame(bytes: &[u8]) -> Frame {
    let mut buffer = BytesMut::from(bytes);
    let frame = FrameCodec::default().decode(&mut buffer).unwrap().expect("a whole frame");
    assert!(buffer.is_empty(), "bytes are left over");
    frame
}

fn frame_of(op: u8, flags: u8, body: Bytes) -> Frame {
    Frame { id: 1, op, flags, body }
}

#[test]
fn every_request_is_written_as_the_documentation_says() {
    for (id, request, wire) in golden() {
        let mut out = BytesMut::from("before".as_bytes());
        request.encode(id, &mut out).unwrap();
        assert_eq!(&out[6..], &wire[..], "{request:?}");
    }
}

#[test]
fn every_request_is_read_as_the_documentation_says() {
    for (id, request, wire) in golden() {
        let frame = frame(&wire);
        let flags = if matches!(request, Request::OfSnapshot { .. }) { 0x08 } else { 0 };
        assert_eq!((frame.id, frame.op, frame.flags), (id, request.op() as u8, flags));
        assert_eq!(Request::decode(frame), Ok(request));
    }
}

#[test]
fn a_body_cut_anywhere_is_malformed_and_names_a_field() {
    for (_, request, wire) in golden() {
        if matches!(request, Request::Read(ReadRequest::Ping(_))) {
            continue; // Any bytes are a good PING.
        }
        let whole = frame(&wire);
        for len in 0..whole.body.len() {
            let error = Request::decode(Frame { body: whole.body.slice(..len), ..whole.clone() })
                .expect_err("a short body was taken");
            assert_eq!(error.code(), ErrorCode::Malformed, "{request:?} cut at {len}");
            assert!(matches!(error, DecodeError::Short { field } if !field.is_empty()));
        }
    }
}

#[test]
fn bytes_after_the_known_fields_are_ignored() {
    for (_, request, wire) in golden() {
        if matches!(request, Request::Read(ReadRequest::Ping(_))) {
            continue;
        }
        let mut frame = frame(&wire);
        frame.body = [&frame.body[..], b"from a later version"].concat().into();
        assert_eq!(Request::decode(frame), Ok(request));
    }
}

#[test]
fn unknown_operations_are_unsupported() {
    for op in [0x00, 0x03, 0x33, 0x7f, 0xff] {
        let error = Request::decode(frame_of(op, 0, Bytes::new())).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Unsupported, "operation 0x{op:02x}");
    }
    for sub in [0, 10, 255] {
        let body = Bytes::from([&[sub][..], &hex("01 0001 62")].concat());
        let error = Request::decode(frame_of(0x20, 0, body)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Unsupported, "BUCKET {sub}");
    }
}

// Promises: wire-flags.
#[test]
fn flags_in_a_request_are_unsupported() {
    for flags in [0x01, 0x08, 0x80, 0x40, 0xff] {
        let error = Request::decode(frame_of(0x02, flags, Bytes::new())).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Unsupported, "flags 0x{flags:02x}");
    }
}

// Promises: wire-id-zero.
#[test]
fn id_zero_is_the_connections_own() {
    let error = Request::decode(Frame { id: 0, ..frame_of(0x02, 0, Bytes::new()) }).unwrap_err();
    assert_eq!(error, DecodeError::BadValue { field: "id", value: 0 });
}

#[test]
fn fields_that_make_no_sense_are_refused_by_name() {
    for (op, body, expected) in [
        (0x01, "424b5632 01 01 00000000 0000 0000", DecodeError::BadValue { field: "magic", value: 0x424b_5632 }),
        (0x12, "01 0001 62  0001 6b  04", DecodeError::BadValue { field: "cond", value: 4 }),
        (0x30, "00  04 0001 61  00 00 0000000000000000", DecodeError::BadValue { field: "low bound", value: 4 }),
        (0x30, "00  00  03 0001 61  00 0000000000000000", DecodeError::BadValue { field: "high bound", value: 3 }),
        (0x30, "00  00  00  18 0000000000000000", DecodeError::Unknown { what: "scan option", number: 0x18 }),
    ] {
        let error = Request::decode(frame_of(op, 0, hex(body))).unwrap_err();
        assert_eq!(error, expected);
        assert_eq!(ErrorReply::from(error.clone()).code, error.code());
    }
}

// Promises: wire-count-only.
#[test]
fn count_only_wins_over_keys_only() {
    let body = hex("00  00  00  06  0000000000000000");
    let Ok(Request::Stream(StreamRequest::Scan(scan))) = Request::decode(frame_of(0x30, 0, body)) else { panic!() };
    assert_eq!(scan.options.mode, ScanMode::Count);
}

#[test]
fn what_the_wire_cannot_carry_is_not_written() {
    let long = Bytes::from(vec![b'k'; 65_536]);
    let mut out = BytesMut::from("before".as_bytes());
    let error = Request::Read(ReadRequest::Get { path: path("b"), key: long }).encode(1, &mut out).unwrap_err();
    assert_eq!((error.field, error.len, error.limit), ("key", 65_536, 65_535));
    assert_eq!(&out[..], b"before");
}

#[test]
fn the_version_in_common_is_the_one_this_crate_speaks() {
    let hello = |min_version, max_version| Hello { min_version, max_version, ..Hello::new("c") };
    assert_eq!(hello(1, 1).common_version(), Some(1));
    assert_eq!(hello(0, 9).common_version(), Some(1));
    assert_eq!(hello(2, 9).common_version(), None);
    assert_eq!(hello(9, 0).common_version(), None);
}

#[test]
fn a_request_knows_the_shape_of_its_reply() {
    for (_, request, _) in golden() {
        let expect = match &request {
            Request::Session(SessionRequest::Hello(_)) => Some(Expect::Hello),
            Request::Session(SessionRequest::Stats) | Request::Stream(StreamRequest::BucketStat(_)) => {
                Some(Expect::Stats)
            }
            Request::Session(SessionRequest::Operator(
                OperatorRequest::ListClients { .. } | OperatorRequest::SlowLog { .. },
            )) => Some(Expect::Rows),
            Request::Session(SessionRequest::Snapshot(SnapshotRequest::Open { .. })) => Some(Expect::Snapshot),
            Request::Session(SessionRequest::Snapshot(SnapshotRequest::Close { .. }) | SessionRequest::Operator(_)) => {
                Some(Expect::Closed)
            }
            Request::Session(SessionRequest::Credit { .. } | SessionRequest::Cancel { .. }) => None,
            Request::Read(ReadRequest::Ping(_)) => Some(Expect::Pong),
            Request::Read(ReadRequest::Sequence(_)) => Some(Expect::Count),
            Request::Read(ReadRequest::ExpiryTime { .. }) => Some(Expect::ExpiryTime),
            Request::Read(ReadRequest::Get { .. }) | Request::OfSnapshot { read: SnapshotRead::Read(_), .. } => {
                Some(Expect::Value)
            }
            Request::Write(WriteRequest::Delete { .. }) => Some(Expect::Deleted),
            Request::Write(WriteRequest::Increment { .. }) => Some(Expect::Number),
            Request::Write(WriteRequest::NextSequence(_)) => Some(Expect::Sequence),
            Request::Write(WriteRequest::DeleteRange { .. }) => Some(Expect::DeletedRange),
            Request::Write(_) => Some(Expect::Written),
            Request::Stream(StreamRequest::Scan(scan)) if scan.options.mode == ScanMode::Count => Some(Expect::Count),
            Request::Stream(StreamRequest::Backup) => Some(Expect::Backup),
            Request::Stream(StreamRequest::Shrink) => Some(Expect::Shrink),
            Request::Stream(StreamRequest::Watch(_)) => Some(Expect::Watch),
            Request::Stream(_) | Request::OfSnapshot { read: SnapshotRead::Stream(_), .. } => Some(Expect::Entries),
        };
        assert_eq!(request.expects(), expect, "{request:?}");
    }
}

#[test]
fn conditions_hold_as_their_names_say() {
    let equals = Cond::IfEquals(bytes("v"));
    for (cond, absent, equal, other) in [
        (Cond::Always, true, true, true),
        (Cond::IfAbsent, true, false, false),
        (Cond::IfPresent, false, true, true),
        (equals, false, true, false),
    ] {
        assert_eq!(cond.holds(None), absent, "{cond:?}");
        assert_eq!(cond.holds(Some(b"v")), equal, "{cond:?}");
        assert_eq!(cond.holds(Some(b"w")), other, "{cond:?}");
    }
}

#[test]
fn a_reply_can_hold_borrowed_bytes() {
    let mapped: &[u8] = b"world";
    let mut out = BytesMut::new();
    Reply::Value(mapped).encode(3, &mut out).unwrap();
    assert_eq!(out.len(), Reply::<&[u8]>::value_frame_len(mapped.len()));
}
