//! Every reply, byte by byte: the hexadecimal digits are written by hand from `docs/protocol.md`, never by the encoder.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use boltkv_protocol::{
    Change, ChangeKind, Changes, DecodeError, EntriesWriter, Entry, EntryKind, ErrorCode, ErrorReply, Expect, Frame,
    FrameCodec, HelloReply, Path, Reply, WatchPosition, decode_entries,
};
use bytes::{Bytes, BytesMut};
use common::hex;
use tokio_util::codec::Decoder;

/// Every error code, from the table of the documentation.
const ERRORS: [(u8, &str, ErrorCode); 26] = [
    (1, "MALFORMED", ErrorCode::Malformed),
    (2, "UNSUPPORTED", ErrorCode::Unsupported),
    (3, "UNSUPPORTED_VERSION", ErrorCode::UnsupportedVersion),
    (4, "HELLO_REQUIRED", ErrorCode::HelloRequired),
    (5, "UNAUTHENTICATED", ErrorCode::Unauthenticated),
    (6, "FORBIDDEN", ErrorCode::Forbidden),
    (10, "KEY_NOT_FOUND", ErrorCode::KeyNotFound),
    (11, "BUCKET_NOT_FOUND", ErrorCode::BucketNotFound),
    (12, "BUCKET_EXISTS", ErrorCode::BucketExists),
    (13, "INCOMPATIBLE_VALUE", ErrorCode::IncompatibleValue),
    (14, "KEY_REQUIRED", ErrorCode::KeyRequired),
    (15, "KEY_TOO_LARGE", ErrorCode::KeyTooLarge),
    (16, "VALUE_TOO_LARGE", ErrorCode::ValueTooLarge),
    (17, "FRAME_TOO_LARGE", ErrorCode::FrameTooLarge),
    (18, "BUCKET_NAME_REQUIRED", ErrorCode::BucketNameRequired),
    (19, "TXN_TOO_LARGE", ErrorCode::TxnTooLarge),
    (20, "CONDITION_FAILED", ErrorCode::ConditionFailed),
    (21, "SNAPSHOT_EXPIRED", ErrorCode::SnapshotExpired),
    (22, "CANCELLED", ErrorCode::Cancelled),
    (23, "NUMBER_OUT_OF_RANGE", ErrorCode::NumberOutOfRange),
    (30, "READ_ONLY", ErrorCode::ReadOnly),
    (31, "OVERLOADED", ErrorCode::Overloaded),
    (32, "SHUTTING_DOWN", ErrorCode::ShuttingDown),
    (33, "NO_SPACE", ErrorCode::NoSpace),
    (40, "STORAGE_FAILED", ErrorCode::StorageFailed),
    (57, "OTHER_57", ErrorCode::Other(57)),
];

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn entries() -> Vec<Entry> {
    vec![
        Entry { kind: EntryKind::Value, key: bytes("k"), value: bytes("v") },
        Entry { kind: EntryKind::Bucket, key: bytes("eu"), value: Bytes::new() },
        Entry {
            kind: EntryKind::TooLarge,
            key: bytes("b"),
            value: Bytes::copy_from_slice(&16_777_216_u64.to_be_bytes()),
        },
    ]
}

const ENTRIES: &str = "00000003  00 0001 6b 00000001 76  01 0002 6575 00000000
                       02 0001 62 00000008 0000000001000000";

/// A reply with the id it answers, the shape that is due, and its frame.
type Golden = (u32, Expect, Reply, Bytes);

fn golden() -> Vec<Golden> {
    [usual(), of_numbers(), of_figures()].concat()
}

fn of_figures() -> Vec<Golden> {
    vec![
        (
            5,
            Expect::Stats,
            Reply::Stats(vec![("txid".into(), "12".into())]),
            hex("00000014 00000005 00 80  0001 0004 74786964 00000002 3132"),
        ),
        (
            5,
            Expect::Rows,
            Reply::Rows(vec![vec![("id".into(), "7".into())], vec![]]),
            hex("00000017 00000005 00 80  00000002  0001 0002 6964 00000001 37  0000"),
        ),
    ]
}

fn of_numbers() -> Vec<Golden> {
    vec![
        (
            5,
            Expect::Number,
            Reply::Number { txid: 300, value: -2 },
            hex("00000016 00000005 00 80  000000000000012c fffffffffffffffe"),
        ),
        (
            5,
            Expect::Sequence,
            Reply::Sequence { txid: 300, sequence: 7 },
            hex("00000016 00000005 00 80  000000000000012c 0000000000000007"),
        ),
        (
            5,
            Expect::DeletedRange,
            Reply::DeletedRange { txid: 300, deleted: 10_000, more: true },
            hex("00000017 00000005 00 80  000000000000012c 0000000000002710 01"),
        ),
        (
            5,
            Expect::Snapshot,
            Reply::Snapshot { id: 7, txid: 300, lease_ms: 60_000 },
            hex("0000001a 00000005 00 80  0000000000000007 000000000000012c 0000ea60"),
        ),
        (5, Expect::Closed, Reply::Closed, hex("00000006 00000005 00 80")),
        (5, Expect::Backup, Reply::Piece(bytes("page")), hex("0000000e 00000005 00 81  00000004 70616765")),
        (
            5,
            Expect::Backup,
            Reply::BackedUp { total: 32_768, crc32c: 0xa1b2_c3d4 },
            hex("00000012 00000005 00 80  0000000000008000 a1b2c3d4"),
        ),
        (
            5,
            Expect::Shrink,
            Reply::Shrinking { moved: 250, left: 9 },
            hex("00000016 00000005 00 81  00000000000000fa 0000000000000009"),
        ),
        (
            5,
            Expect::Shrink,
            Reply::Shrunk { before: 65_536, after: 32_768, moved: 259 },
            hex("0000001e 00000005 00 80  0000000000010000 0000000000008000 0000000000000103"),
        ),
        (
            5,
            Expect::Watch,
            Reply::Changes(changes()),
            hex("00000049 00000005 00 81  a1b2c3d4e5f60718 000000000000012c 000001996c000000 01  00000003
                 01 01 0001 62 0001 6b 00000001 76  03 01 0001 62 0001 78 00000000
                 07 00 0001 62 00000004 01 0001 61"),
        ),
    ]
}

fn changes() -> Changes {
    let (root, b) = (Path::ROOT, Path::from_names(["b"]).unwrap());
    let change = |kind, key, value| Change { kind, path: b.clone(), key: bytes(key), value: bytes(value) };
    let moved = Change::moved(root, bytes("b"), &Path::from_names(["a"]).unwrap());
    Changes {
        position: WatchPosition { epoch: 0xa1b2_c3d4_e5f6_0718, txid: 300 },
        time_ms: 0x0199_6c00_0000,
        is_whole: true,
        changes: vec![change(ChangeKind::Put, "k", "v"), change(ChangeKind::Deleted, "x", ""), moved],
    }
}

fn usual() -> Vec<Golden> {
    let hello = HelloReply {
        version: 1,
        features: 2,
        max_frame: 16_777_216,
        max_in_flight: 1024,
        max_streams: 16,
        read_only: true,
        server: bytes("boltkv"),
    };
    let not_found = ErrorReply::new(ErrorCode::KeyNotFound, "no");
    let too_large =
        ErrorReply { code: ErrorCode::ValueTooLarge, message: "no".into(), detail: hex("0000000001000000") };
    vec![
        (
            1,
            Expect::Hello,
            Reply::Hello(hello),
            hex("00000020 00000001 00 80  01 00000002 01000000 00000400 00000010 01
                 0006 626f6c746b76"),
        ),
        (2, Expect::Pong, Reply::Pong(bytes("hi")), hex("00000008 00000002 00 80  6869")),
        (3, Expect::Value, Reply::Value(bytes("world")), hex("0000000f 00000003 00 80  00000005 776f726c64")),
        (3, Expect::Value, Reply::Value(Bytes::new()), hex("0000000a 00000003 00 80  00000000")),
        (4, Expect::Written, Reply::Written { txid: 300 }, hex("0000000e 00000004 00 80  000000000000012c")),
        (
            5,
            Expect::Deleted,
            Reply::Deleted { txid: 300, existed: true },
            hex("0000000f 00000005 00 80  000000000000012c 01"),
        ),
        (
            5,
            Expect::Deleted,
            Reply::Deleted { txid: 300, existed: false },
            hex("0000000f 00000005 00 80  000000000000012c 00"),
        ),
        (6, Expect::Count, Reply::Count(12), hex("0000000e 00000006 00 80  000000000000000c")),
        (7, Expect::Entries, Reply::Entries(entries()), hex(&format!("0000002c 00000007 00 80  {ENTRIES}"))),
        (7, Expect::Entries, Reply::Entries(vec![]), hex("0000000a 00000007 00 80  00000000")),
        (3, Expect::Value, Reply::Error(not_found), hex("0000000e 00000003 0a 80  0002 6e6f 00000000")),
        (
            3,
            Expect::Value,
            Reply::Error(too_large),
            hex("00000016 00000003 10 80  0002 6e6f 00000008 0000000001000000"),
        ),
    ]
}

fn frame(bytes: &[u8]) -> Frame {
    let mut buffer = BytesMut::from(bytes);
    let frame = FrameCodec::default().decode(&mut buffer).unwrap().expect("a whole frame");
    assert!(buffer.is_empty(), "bytes are left over");
    frame
}

// Promises: wire-error.
#[test]
fn every_reply_is_written_as_the_documentation_says() {
    for (id, _, reply, wire) in golden() {
        let mut out = BytesMut::from("before".as_bytes());
        reply.encode(id, &mut out).unwrap();
        assert_eq!(&out[6..], &wire[..], "{reply:?}");
    }
}

#[test]
fn every_reply_is_read_as_the_documentation_says() {
    for (id, expect, reply, wire) in golden() {
        let frame = frame(&wire);
        assert_eq!(frame.id, id);
        assert_eq!(Reply::decode(expect, frame), Ok(reply));
    }
}

#[test]
fn a_body_cut_anywhere_names_a_field() {
    for (_, expect, reply, wire) in golden() {
        if expect == Expect::Pong {
            continue; // Any bytes are a good PONG.
        }
        let whole = frame(&wire);
        for len in 0..whole.body.len() {
            let cut = Frame { body: whole.body.slice(..len), ..whole.clone() };
            let error = Reply::decode(expect, cut).expect_err("a short body was taken");
            assert!(matches!(error, DecodeError::Short { .. }), "{reply:?} cut at {len}: {error}");
        }
    }
}

#[test]
fn bytes_after_the_known_fields_are_ignored() {
    for (_, expect, reply, wire) in golden() {
        if expect == Expect::Pong {
            continue;
        }
        let mut frame = frame(&wire);
        frame.body = [&frame.body[..], b"from a later version"].concat().into();
        assert_eq!(Reply::decode(expect, frame), Ok(reply));
    }
}

#[test]
fn every_error_code_has_its_number_and_name() {
    for (number, name, code) in ERRORS {
        assert_eq!(code.to_u8(), number);
        assert_eq!(ErrorCode::from_u8(number), Some(code));
        assert_eq!(code.to_string(), name);

        let reply: Reply = Reply::Error(ErrorReply::new(code, "no"));
        let wire = hex(&format!("0000000e 00000009 {number:02x} 80  0002 6e6f 00000000"));
        let mut out = BytesMut::new();
        reply.encode(9, &mut out).unwrap();
        assert_eq!(out, wire);
        assert_eq!(Reply::decode(Expect::Written, frame(&wire)), Ok(reply));
    }
    assert_eq!(ErrorCode::from_u8(0), None, "0 is success");
    assert_eq!(ErrorCode::ALL.len(), ERRORS.len() - 1, "a code is missing here");
}

#[test]
fn entries_are_written_in_place_as_the_documentation_says() {
    let mut out = BytesMut::from("before".as_bytes());
    let mut writer = EntriesWriter::begin(&mut out, 7);
    for entry in entries() {
        let expected = writer.frame_len() + EntriesWriter::entry_len(&entry.key, &entry.value);
        writer.push(&entry).unwrap();
        assert_eq!(writer.frame_len(), expected);
    }
    assert_eq!(writer.count(), 3);
    writer.finish(true).unwrap();
    assert_eq!(&out[6..], hex(&format!("0000002c 00000007 00 81  {ENTRIES}")));

    out.clear();
    EntriesWriter::begin(&mut out, 7).finish(false).unwrap();
    assert_eq!(out, hex("0000000a 00000007 00 80  00000000"));
}

#[test]
fn the_first_entry_alone_tells_how_long_its_frame_would_be() {
    let mut out = BytesMut::new();
    let mut writer = EntriesWriter::begin(&mut out, 7);
    writer.push(&Entry { kind: EntryKind::Value, key: "key", value: "value" }).unwrap();
    assert_eq!(writer.frame_len(), EntriesWriter::frame_len_of(b"key", b"value"));
}

#[test]
fn an_abandoned_entries_frame_leaves_nothing_behind() {
    let mut out = BytesMut::from("before".as_bytes());
    let mut writer = EntriesWriter::begin(&mut out, 7);
    writer.push(&entries()[0]).unwrap();
    drop(writer);
    assert_eq!(&out[..], b"before");
}

#[test]
fn an_entry_the_wire_cannot_carry_leaves_the_others_whole() {
    let long = vec![b'k'; 65_536];
    let mut out = BytesMut::new();
    let mut writer = EntriesWriter::begin(&mut out, 7);
    writer.push(&entries()[0]).unwrap();
    let refused = Entry { kind: EntryKind::Value, key: &long[..], value: b"" };
    assert_eq!(writer.push(&refused).unwrap_err().field, "key");
    writer.finish(false).unwrap();
    assert_eq!(decode_entries(frame(&out).body), Ok(entries()[..1].to_vec()));
}

#[test]
fn sizes_of_what_did_not_fit_can_be_read() {
    assert_eq!(ErrorReply::value_too_large(17, 16).value_size(), Some(17));
    assert_eq!(ErrorReply::new(ErrorCode::ValueTooLarge, "no detail").value_size(), None);
    assert_eq!(entries().iter().map(Entry::value_size).collect::<Vec<_>>(), [None, None, Some(16_777_216)]);
}

#[test]
fn a_count_of_entries_that_are_not_there_reserves_nothing_and_is_refused() {
    let error = decode_entries(hex("ffffffff 00 0001 6b 00000000")).unwrap_err();
    assert_eq!(error, DecodeError::Short { field: "kind" });
}

#[test]
fn fields_that_make_no_sense_are_refused_by_name() {
    let error = decode_entries(hex("00000001 03 0001 6b 00000000")).unwrap_err();
    assert_eq!(error, DecodeError::BadValue { field: "kind", value: 3 });
    let wire = hex("0000000f 00000005 00 80  000000000000012c 02");
    let error = Reply::decode(Expect::Deleted, frame(&wire)).unwrap_err();
    assert_eq!(error, DecodeError::BadValue { field: "existed", value: 2 });
}

#[test]
fn a_frame_that_is_no_reply_is_refused() {
    let wire = hex("00000006 00000002 02 00");
    assert_eq!(Reply::decode(Expect::Pong, frame(&wire)), Err(DecodeError::NotAReply));
}

#[test]
fn a_message_longer_than_the_wire_carries_is_cut() {
    let reply: Reply = Reply::Error(ErrorReply::new(ErrorCode::NoSpace, "x".repeat(70_000)));
    let mut out = BytesMut::new();
    reply.encode(1, &mut out).unwrap();
    let mut codec = FrameCodec::new(100_000);
    let frame = codec.decode(&mut out).unwrap().expect("a whole frame");
    let Ok(Reply::Error(error)) = Reply::decode(Expect::Written, frame) else { panic!() };
    assert_eq!(error.message.len(), 65_535);
}
