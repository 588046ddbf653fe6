//! What the properties are tried with, and how what is written is read.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "test code, which each test is compiled with"
)]

use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::*;
use tokio_util::codec::Decoder;

pub fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..24).prop_map(Bytes::from)
}

/// Bytes that are likely to need quoting: blanks, quotes, escapes, words of the protocol.
pub fn awkward() -> impl Strategy<Value = Bytes> {
    const PIECES: [&[u8]; 18] = [
        b" ",
        b"\"",
        b"\\",
        b"\n",
        b"\r",
        b"\t",
        b"/",
        b"x41",
        b"OK",
        b"END",
        b"ERR ",
        b"(nil)",
        b"\xff",
        "é".as_bytes(),
        "\u{85}".as_bytes(),
        b"k",
        b"http/",
        b"1.1",
    ];
    let piece = prop::sample::select(&PIECES[..]);
    prop_oneof![vec(piece, 0..6).prop_map(|pieces| pieces.concat().into()), bytes()]
}

/// Feeds a decoder a stream in pieces of `step` bytes.
pub fn feed<D: Decoder>(decoder: &mut D, stream: &[u8], step: usize) -> Result<Vec<D::Item>, D::Error> {
    let (mut buffer, mut items) = (BytesMut::new(), Vec::new());
    for piece in stream.chunks(step) {
        buffer.extend_from_slice(piece);
        while let Some(item) = decoder.decode(&mut buffer)? {
            items.push(item);
        }
    }
    while let Some(item) = decoder.decode_eof(&mut buffer)? {
        items.push(item);
    }
    Ok(items)
}
