//! What `docs/protocol.md` shows is what a server sends, byte for byte, and what no other test needs is so, too.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::binary::{create, create_if_missing, delete, frame, scan_all, set};
use crate::common::{Binary, TestServer};
use boltkv_protocol::ErrorCode;

/// The frames of every block of the document that is marked as hexadecimal. What stands after three blanks is for the
/// reader.
fn examples() -> Vec<Vec<u8>> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/protocol.md")).unwrap();
    let blocks = text.split("```hex\n").skip(1).map(|block| block.split("```").next().unwrap().to_owned());
    let digits = blocks.flat_map(|block| {
        let lines: Vec<String> =
            block.lines().map(|line| line.trim().split("   ").next().unwrap().to_owned()).collect();
        lines.into_iter().filter(|line| !line.starts_with('"'))
    });
    let digits: Vec<_> = digits.collect::<String>().chars().filter_map(|digit| digit.to_digit(16)).collect();
    let mut bytes = digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap());
    let mut frames = Vec::new();
    while let Some(first) = bytes.next() {
        let mut frame = vec![first];
        frame.extend(bytes.by_ref().take(3));
        let len = u32::from_be_bytes(frame.as_slice().try_into().unwrap());
        frame.extend(bytes.by_ref().take(len as usize));
        frames.push(frame);
    }
    frames
}

/// The next frame, as it came.
fn whole(client: &mut Binary) -> String {
    let got = client.frame();
    frame(got.id, got.op, got.flags, &got.body).escape_ascii().to_string()
}

// Promises: wire-example.
#[test]
fn the_documents_example_is_what_the_server_sends() {
    let [hello, get, agreed, value, absent, txn, done] = &examples()[..] else { panic!("seven frames") };
    let server = TestServer::start();
    let mut writer = server.binary();
    writer.send_all(&[create_if_missing("users/eu"), set("users/eu", "k", "v")]);
    writer.frame();
    writer.frame();

    let mut client = Binary::connect(server.address);
    client.send(hello);
    assert_eq!(whole(&mut client), agreed.escape_ascii().to_string());
    client.send(get);
    assert_eq!(whole(&mut client), value.escape_ascii().to_string());

    writer.send_all(&[delete("users/eu", "k")]);
    writer.frame();
    client.send(get);
    assert_eq!(whole(&mut client), absent.escape_ascii().to_string());

    writer.write(&create_if_missing("b"));
    // As many transactions as the example has behind it.
    while writer.write(&set("b", "k", "v")) < 8 {}
    client.send(txn);
    assert_eq!(whole(&mut client), done.escape_ascii().to_string());
}

// Promises: wire-hello-twice.
#[test]
fn a_second_hello_is_malformed() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.send(&examples()[0]);
    assert_eq!(client.error().1.code, ErrorCode::Malformed);
}

// Promises: wire-stream-unknown.
#[test]
fn credit_and_cancel_for_a_stream_that_is_not_there_are_ignored() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.send_all(&[create("b"), scan_all("b")]);
    client.frame();
    client.frame();
    client.send([frame(0, 0x70, 0, &[0, 0, 9, 9, 0, 0, 0, 1]), frame(0, 0x71, 0, &[0, 0, 9, 9])].concat());
    client.send(frame(77, 0x02, 0, b"still there"));
    let answer = client.frame();
    assert_eq!((answer.id, answer.op, &answer.body[..]), (77, 0, &b"still there"[..]));
}
