//! Frames are cut from a stream however its bytes arrive, and a header out of bounds ends it with an error that says why.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use boltkv_protocol::{
    ErrorCode, Frame, FrameCodec, FrameError, FrameHeader, HEADER_LEN, MAX_FRAME_BEFORE_HELLO, MAX_FRAME_LIMIT,
};
use bytes::{Bytes, BytesMut};
use common::hex;
use tokio_util::codec::{Decoder, Encoder};

fn decode(codec: &mut FrameCodec, bytes: &[u8]) -> Result<Option<Frame>, FrameError> {
    codec.decode(&mut BytesMut::from(bytes))
}

#[test]
fn frames_are_cut_the_same_however_the_bytes_arrive() {
    let stream = hex("00000008 00000001 02 00 6869  00000006 00000002 02 00  0000000a 00000000 71 00 00000007");
    let expected = [
        Frame { id: 1, op: 2, flags: 0, body: Bytes::from_static(b"hi") },
        Frame { id: 2, op: 2, flags: 0, body: Bytes::new() },
        Frame { id: 0, op: 0x71, flags: 0, body: hex("00000007") },
    ];
    for step in 1..=stream.len() {
        let (mut codec, mut buffer, mut frames) = (FrameCodec::default(), BytesMut::new(), vec![]);
        for piece in stream.chunks(step) {
            buffer.extend_from_slice(piece);
            while let Some(frame) = codec.decode(&mut buffer).unwrap() {
                frames.push(frame);
            }
        }
        assert_eq!(frames, expected, "in pieces of {step}");
        assert!(codec.decode_eof(&mut buffer).unwrap().is_none());
    }
}

#[test]
fn a_len_that_does_not_cover_the_header_is_malformed() {
    for len in 0..6 {
        let error = decode(&mut FrameCodec::default(), &[0, 0, 0, len]).unwrap_err();
        assert!(matches!(error, FrameError::TooShort { len: l } if l == usize::from(len)));
        assert_eq!(error.to_reply().map(|reply| reply.code), Some(ErrorCode::Malformed));
    }
}

#[test]
fn a_frame_of_the_limit_passes_and_one_byte_more_is_refused_by_its_header_alone() {
    for limit in [100, MAX_FRAME_BEFORE_HELLO, MAX_FRAME_LIMIT] {
        let mut codec = FrameCodec::new(limit);
        let len = u32::try_from(limit - 4).unwrap();
        assert!(decode(&mut codec, &len.to_be_bytes()).unwrap().is_none(), "waits for the rest");
        let error = decode(&mut codec, &(len + 1).to_be_bytes()).unwrap_err();
        assert!(matches!(error, FrameError::TooLarge { frame, limit: l } if frame == limit + 1 && l == limit));
        assert_eq!(error.to_reply().map(|reply| reply.code), Some(ErrorCode::FrameTooLarge));
    }
}

#[test]
fn before_hello_the_limit_is_64_kib_and_it_can_be_raised_but_not_over_the_wires_own() {
    let mut codec = FrameCodec::default();
    assert_eq!(codec.max_frame(), 64 * 1024);
    codec.set_max_frame(usize::MAX);
    assert_eq!(codec.max_frame(), (1 << 27) + 3, "len stays below 2^27");
    assert_eq!(FrameCodec::new(usize::MAX).max_frame(), codec.max_frame());
    assert!(decode(&mut codec, &(1_u32 << 27).to_be_bytes()).is_err());
    assert!(decode(&mut codec, &u32::MAX.to_be_bytes()).is_err());
}

// Promises: wire-room.
#[test]
fn a_header_that_announces_much_reserves_little() {
    let mut codec = FrameCodec::new(MAX_FRAME_LIMIT);
    let mut buffer = BytesMut::from(&hex("07fffff0 00000001 02 00")[..]);
    assert!(codec.decode(&mut buffer).unwrap().is_none());
    assert!(buffer.capacity() < 16 * 1024, "{} bytes for a header", buffer.capacity());

    buffer.resize(1 << 20, 0);
    assert!(codec.decode(&mut buffer).unwrap().is_none());
    assert!(buffer.capacity() <= 1 << 22, "{} bytes for 1 MiB", buffer.capacity());
}

#[test]
fn a_stream_that_ends_within_a_frame_is_cut() {
    let whole = hex("00000008 00000001 02 00 6869");
    for len in 1..whole.len() {
        let mut buffer = BytesMut::from(&whole[..len]);
        let error = FrameCodec::default().decode_eof(&mut buffer).unwrap_err();
        assert!(matches!(error, FrameError::Cut { have } if have == len));
        assert_eq!(error.to_reply(), None, "nobody is there to hear it");
    }
}

#[test]
fn a_frame_is_encoded_as_it_is_decoded_and_never_over_the_limit() {
    let mut codec = FrameCodec::new(HEADER_LEN + 2);
    let mut out = BytesMut::new();
    let frame = Frame { id: 1, op: 2, flags: 0x80, body: Bytes::from_static(b"hi") };
    codec.encode(frame.clone(), &mut out).unwrap();
    assert_eq!(out, hex("00000008 00000001 02 80 6869"));

    let long = Frame { body: Bytes::from_static(b"hi!"), ..frame };
    assert!(matches!(codec.encode(long, &mut out), Err(FrameError::TooLarge { frame: 13, limit: 12 })));
    assert_eq!(out.len(), 12, "nothing was added");
}

#[test]
fn a_body_is_a_slice_of_the_buffer_it_was_read_into() {
    let mut buffer = BytesMut::from(&hex("00000008 00000001 02 00 6869")[..]);
    let start = buffer.as_ptr();
    let frame = FrameCodec::default().decode(&mut buffer).unwrap().expect("a whole frame");
    assert_eq!(frame.body.as_ptr(), start.wrapping_add(HEADER_LEN));
}

#[test]
fn a_header_is_read_as_soon_as_it_is_there_and_says_what_the_frame_will_be() {
    let mut bytes = BytesMut::new();
    FrameCodec::default().encode(Frame { id: 7, op: 3, flags: 0x81, body: vec![0; 300].into() }, &mut bytes).unwrap();
    let header = FrameHeader { frame_len: 310, id: 7, op: 3, flags: 0x81 };
    assert_eq!(FrameHeader::parse(&bytes[..10]), Some(header));
    assert!(header.has_more());
    assert!((0..10).all(|len| FrameHeader::parse(&bytes[..len]).is_none()));
}
