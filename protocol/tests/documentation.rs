//! `docs/protocol.md` is kept true: its tables name what the code has, and its example is one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use boltkv_protocol::command::COMMANDS;
use boltkv_protocol::{
    Cond, ErrorCode, Expect, Frame, FrameCodec, Hello, HelloReply, Op, Path, ReadRequest, Reply, Request,
    SessionRequest, Txn, WriteRequest,
};
use bytes::{Bytes, BytesMut};
use common::hex;
use tokio_util::codec::Decoder;

fn documentation() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/protocol.md")).unwrap()
}

/// The frames of every block marked as hexadecimal; what stands after three blanks on a line is for the reader.
fn examples() -> Vec<Frame> {
    let text = documentation();
    let blocks = text.split("```hex\n").skip(1).map(|block| block.split("```").next().unwrap());
    let lines = blocks.flat_map(str::lines).map(str::trim_start).filter(|line| !line.starts_with('"'));
    let digits: String = lines.map(|line| line.split("   ").next().unwrap()).collect();
    let mut buffer = BytesMut::from(&hex(&digits)[..]);
    let mut codec = FrameCodec::default();
    let frames: Vec<_> = std::iter::from_fn(|| codec.decode(&mut buffer).unwrap()).collect();
    assert!(buffer.is_empty(), "bytes are left over");
    frames
}

#[test]
fn every_operation_has_its_row() {
    let text = documentation();
    for op in Op::ALL {
        assert!(COMMANDS.iter().any(|command| command.wire.is_some_and(|wire| wire.op == op)), "{}", op.name());
        let row = format!("| 0x{:02x} | {} |", op as u8, op.name());
        assert_eq!(text.matches(&row).count(), 1, "{row}");
    }
}

#[test]
fn every_error_code_has_its_row() {
    let text = documentation();
    for code in ErrorCode::ALL {
        let row = format!("| {} | {code} |", code.to_u8());
        assert_eq!(text.matches(&row).count(), 1, "{row}");
    }
}

#[test]
fn every_text_command_is_shown() {
    let text = documentation();
    for command in COMMANDS.iter().filter(|command| command.text.is_some()) {
        assert!(text.contains(command.name), "{}", command.name);
    }
}

#[test]
fn the_example_is_what_it_says() {
    let [hello, get, agreed, value, absent, txn, done] = &examples()[..] else { panic!("seven frames") };
    assert_eq!(Request::decode(hello.clone()), Ok(Request::Session(SessionRequest::Hello(Hello::new("cli")))));
    let path: Path = "users/eu".parse().unwrap();
    assert_eq!(
        Request::decode(get.clone()),
        Ok(Request::Read(ReadRequest::Get { path, key: Bytes::from_static(b"k") }))
    );
    let expected = HelloReply {
        version: 1,
        features: 0,
        max_frame: 16 << 20,
        max_in_flight: 1024,
        max_streams: 16,
        read_only: false,
        server: Bytes::from_static(concat!("boltkv/", env!("CARGO_PKG_VERSION")).as_bytes()),
    };
    assert_eq!(Reply::decode(Expect::Hello, agreed.clone()), Ok(Reply::Hello(expected)));
    let expected = Reply::Value(Bytes::from_static(b"v"));
    assert_eq!(Reply::decode(Expect::Value, value.clone()), Ok(expected));
    let Ok(Reply::Error(error)) = Reply::decode(Expect::Value, absent.clone()) else { panic!("no error") };
    assert_eq!((error.code, &*error.message), (ErrorCode::KeyNotFound, "there is no such key"));

    let (path, key): (Path, _) = ("b".parse().unwrap(), Bytes::from_static(b"k"));
    let set = WriteRequest::Set { path: path.clone(), key: key.clone(), value: "w".into(), cond: Cond::Always };
    let mut expected = Txn::builder();
    expected.condition(&path, &key, &Cond::IfEquals("v")).unwrap();
    expected.request(&set.into()).unwrap();
    expected.request(&ReadRequest::Get { path, key }.into()).unwrap();
    let expected = expected.build();
    assert_eq!(Request::decode(txn.clone()), Ok(expected.clone().into()));
    let Ok(Reply::Txn { txid: 9, results }) = Reply::decode(Expect::Txn, done.clone()) else { panic!("no results") };
    let results: Result<Vec<_>, _> = results.replies(expected.expects()).collect();
    assert_eq!(results.unwrap(), [Reply::Written { txid: 9 }, Reply::Value("w".into())]);
}
