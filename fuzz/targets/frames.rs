//! Any bytes, taken for binary frames, in pieces of any size: what comes is frames or an error, no more is kept than has
//! arrived, and what can be read as a request or a reply is the same after it was written and read again.
#![no_main]

use boltkv_protocol::{
    Expect, Frame, FrameCodec, HEADER_LEN, Reply, Request, StreamRequest, Txn, WriteRequest,
};
use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use tokio_util::codec::{Decoder as _, Encoder as _};

/// Room that a codec may keep beyond twice of what has arrived.
const SPARE: usize = 16 * 1024;

const EXPECTED: [Expect; 17] = [
    Expect::Hello,
    Expect::Pong,
    Expect::Value,
    Expect::Written,
    Expect::Deleted,
    Expect::Entries,
    Expect::Count,
    Expect::Number,
    Expect::Sequence,
    Expect::DeletedRange,
    Expect::Stats,
    Expect::Snapshot,
    Expect::Closed,
    Expect::Txn,
    Expect::Backup,
    Expect::Shrink,
    Expect::Watch,
];

// The first two bytes say how many bytes come at a time, and how long a frame may be.
fuzz_target!(|bytes: &[u8]| {
    let [step, limit, stream @ ..] = bytes else { return };
    let mut codec = FrameCodec::new(HEADER_LEN << (limit % 24));
    let mut buffer = BytesMut::new();
    for piece in stream.chunks(usize::from(*step).max(1)) {
        buffer.extend_from_slice(piece);
        loop {
            match codec.decode(&mut buffer) {
                Ok(Some(frame)) => whole(frame),
                Ok(None) => break,
                Err(error) => {
                    let _ = error.to_reply();
                    return;
                }
            }
        }
        assert!(buffer.capacity() <= 2 * stream.len() + SPARE, "{} bytes are kept", buffer.capacity());
    }
});

fn whole(frame: Frame) {
    let mut wire = BytesMut::new();
    let mut codec = FrameCodec::new(usize::MAX);
    codec.encode(frame.clone(), &mut wire).expect("what was a frame is one");
    assert_eq!(codec.decode(&mut wire).expect("what was written can be read"), Some(frame.clone()));

    if let Ok(request) = Request::decode(frame.clone()) {
        if let Request::Write(WriteRequest::Txn(txn)) | Request::Stream(StreamRequest::Txn(txn)) = &request {
            same_parts(txn);
        }
        request.encode(frame.id, &mut wire).expect("what was a request is one");
        assert_eq!(Request::decode(only(&mut wire)), Ok(request));
    }
    for expected in EXPECTED {
        if let Ok(reply) = Reply::decode(expected, frame.clone()) {
            if let Reply::Txn { results, .. } = &reply {
                let read = results.replies(EXPECTED.into_iter().cycle()).count();
                assert_eq!(read, results.len(), "a result for each");
            }
            reply.encode(frame.id, &mut wire).expect("what was a reply is one");
            assert_eq!(Reply::decode(expected, only(&mut wire)), Ok(reply));
        }
    }
}

/// A transaction that is put together of what can be read off one has the same parts.
fn same_parts(txn: &Txn) {
    let mut anew = Txn::builder();
    for condition in txn.conditions() {
        anew.condition(&condition.path, &condition.key, &condition.cond).expect("what was a condition is one");
    }
    for request in txn.requests() {
        anew.request(&request).expect("what was a request is one");
    }
    let anew = anew.build();
    assert!(anew.conditions().eq(txn.conditions()) && anew.requests().eq(txn.requests()), "{txn:?}");
    assert_eq!((anew.writes(), anew.requests().len()), (txn.writes(), txn.requests().len()));
}

/// The one frame that was written.
fn only(wire: &mut BytesMut) -> Frame {
    let frame = FrameCodec::new(usize::MAX).decode(wire).expect("what was written can be read");
    assert!(wire.is_empty(), "one frame was written");
    frame.expect("what was written is whole")
}
