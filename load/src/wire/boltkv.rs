//! boltkv's binary protocol. Answers come in any order, by their ids.

use std::num::NonZeroU64;
use std::ops::Bound;

use boltkv_protocol::{
    Cond, ErrorCode, Expect, FrameCodec, FrameHeader, HEADER_LEN, KeyRange, LowBound, Path, ReadRequest, Reply,
    Request, Scan, ScanOptions, SessionRequest, StreamRequest, WriteRequest,
};
use bytes::{Bytes, BytesMut};
use tokio_util::codec::Decoder as _;

use super::{Answer, Asked, Broken, Fared, Wire};
use crate::Op;
use crate::input::Input;

/// Ids of requests go on from that of HELLO; 0 is the connection itself.
const FIRST_ID: u32 = 2;
/// A stream is granted more when it has sent so much.
const GRANT: usize = 128 * 1024;
/// How long the bodies are of which more than the header is looked at: a count, a transaction and a flag.
const COUNT_LEN: usize = 4;
const DELETED_LEN: usize = 9;

/// One connection's state.
#[derive(Debug)]
pub(crate) struct Boltkv {
    bucket: Path,
    max_frame: usize,
    slots: Vec<Slot>,
}

/// A request in flight.
#[derive(Debug, Clone, Copy)]
struct Slot {
    op: Op,
    /// Of a SCAN: the entries that came, and the bytes that were not granted anew.
    entries: u64,
    ungranted: usize,
}

impl Boltkv {
    pub(crate) fn new(bucket: Path, max_frame: usize, pipeline: usize) -> Self {
        Self { bucket, max_frame, slots: vec![Slot { op: Op::Get, entries: 0, ungranted: 0 }; pipeline] }
    }

    fn encode(&self, asked: &Asked<'_>, id: u32, out: &mut BytesMut) -> Result<(), boltkv_protocol::EncodeError> {
        let (path, key) = (self.bucket.clone(), asked.key);
        let request: Request<&[u8]> = match asked.op {
            Op::Get => ReadRequest::Get { path, key }.into(),
            Op::Set => WriteRequest::Set { path, key, value: asked.value, cond: Cond::Always }.into(),
            Op::Delete => WriteRequest::Delete { path, key, cond: Cond::Always }.into(),
            Op::Scan => {
                let limit = NonZeroU64::new(asked.scan_length);
                // All of it is all from the first key on.
                let low = limit.map_or(LowBound::Unbounded, |_| LowBound::Included(Bytes::copy_from_slice(key)));
                let range = KeyRange { low, high: Bound::Unbounded };
                let scan = Scan { path, range, options: ScanOptions { limit, ..ScanOptions::default() } };
                Request::Stream(StreamRequest::Scan(scan))
            }
        };
        request.encode(id, out)
    }
}

impl Wire for Boltkv {
    fn ask(&mut self, asked: &Asked<'_>, out: &mut BytesMut) -> Result<(), Broken> {
        let start = out.len();
        self.encode(asked, asked.slot + FIRST_ID, out).map_err(|error| error.to_string())?;
        let len = out.len() - start;
        if len > self.max_frame {
            out.truncate(start);
            return Err(format!("a request of {len} bytes is over the server's limit of {}", self.max_frame));
        }
        if let Some(slot) = self.slots.get_mut(asked.slot as usize) {
            *slot = Slot { op: asked.op, entries: 0, ungranted: 0 };
        }
        Ok(())
    }

    fn answer(&mut self, input: &mut Input, out: &mut BytesMut) -> Result<Option<Answer>, Broken> {
        loop {
            let Some(header) = FrameHeader::parse(input.bytes()) else { return Ok(None) };
            if !(HEADER_LEN..=self.max_frame).contains(&header.frame_len) {
                return Err(format!("a frame of {} bytes, where at most {} are due", header.frame_len, self.max_frame));
            }
            if header.op != 0 {
                return refusal(header, input);
            }
            let body = &input.bytes()[HEADER_LEN..];
            let id = header.id;
            let number = id.wrapping_sub(FIRST_ID);
            let slot = usize::try_from(number).ok().and_then(|slot| self.slots.get_mut(slot));
            let slot = slot.ok_or_else(|| format!("an answer under the id {id}, which was not asked for"))?;
            let fared = match slot.op {
                Op::Get | Op::Set => Fared::Done,
                Op::Delete => match body.get(..DELETED_LEN) {
                    None => return Ok(None),
                    Some([.., 0]) => Fared::Missing,
                    Some(_) => Fared::Done,
                },
                Op::Scan => {
                    let Some(count) = body.first_chunk::<COUNT_LEN>() else { return Ok(None) };
                    slot.entries += u64::from(u32::from_be_bytes(*count));
                    Fared::Entries(slot.entries)
                }
            };
            input.consume(header.frame_len);
            if !header.has_more() {
                return Ok(Some(Answer { slot: number, fared }));
            }
            slot.ungranted += header.frame_len - HEADER_LEN;
            if slot.ungranted >= GRANT {
                let bytes = u32::try_from(std::mem::take(&mut slot.ungranted)).unwrap_or(u32::MAX);
                let credit = Request::from(SessionRequest::Credit { stream: id, bytes });
                credit.encode(0, out).map_err(|error| error.to_string())?;
            }
        }
    }
}

/// An answer that says no, once it is there as a whole.
fn refusal(header: FrameHeader, input: &mut Input) -> Result<Option<Answer>, Broken> {
    let Some(frame) = input.bytes().get(..header.frame_len) else { return Ok(None) };
    let mut bytes = BytesMut::from(frame);
    let frame = FrameCodec::new(header.frame_len).decode(&mut bytes).map_err(|error| error.to_string())?;
    let reply = frame.map(|frame| Reply::decode(Expect::Pong, frame)).transpose().map_err(|error| error.to_string())?;
    input.consume(header.frame_len);
    match reply {
        Some(Reply::Error(error)) if header.id == 0 => Err(format!("it ended the connection: {error}")),
        Some(Reply::Error(error)) => {
            let missing = error.code == ErrorCode::KeyNotFound;
            let fared = if missing { Fared::Missing } else { Fared::Refused(error.to_string()) };
            Ok(Some(Answer { slot: header.id.wrapping_sub(FIRST_ID), fared }))
        }
        _ => Err(format!("an answer with the status {}, which is none", header.op)),
    }
}

#[cfg(test)]
mod tests {
    use boltkv_protocol::{EntriesWriter, Entry, EntryKind, ErrorReply};

    use super::super::tests::{answers, asked, said};
    use super::*;

    fn asking(ops: &[Op]) -> Boltkv {
        let mut wire = Boltkv::new("b".parse().unwrap(), 1 << 20, ops.len());
        for (slot, op) in (0..).zip(ops) {
            wire.ask(&asked(slot, *op), &mut BytesMut::new()).unwrap();
        }
        wire
    }

    #[test]
    fn answers_are_told_apart_in_any_order() {
        let mut wire = asking(&[Op::Get, Op::Set, Op::Delete, Op::Delete, Op::Get, Op::Set]);
        let mut bytes = BytesMut::new();
        let deleted = |existed| Reply::<Bytes>::Deleted { txid: 7, existed };
        deleted(false).encode(5, &mut bytes).unwrap();
        deleted(true).encode(4, &mut bytes).unwrap();
        Reply::Value(vec![0; 100_000]).encode(2, &mut bytes).unwrap();
        Reply::<Bytes>::Written { txid: 7 }.encode(3, &mut bytes).unwrap();
        let refused = |code| Reply::<Bytes>::Error(ErrorReply::new(code, "so it is"));
        refused(ErrorCode::KeyNotFound).encode(6, &mut bytes).unwrap();
        refused(ErrorCode::NoSpace).encode(7, &mut bytes).unwrap();
        let expected = vec![
            said(3, Fared::Missing),
            said(2, Fared::Done),
            said(0, Fared::Done),
            said(1, Fared::Done),
            said(4, Fared::Missing),
            said(5, Fared::Refused(ErrorReply::new(ErrorCode::NoSpace, "so it is").to_string())),
        ];
        let got = answers(&mut wire, &bytes, &mut BytesMut::new()).unwrap();
        assert_eq!(got, expected);
    }

    #[test]
    fn a_scan_counts_the_entries_of_all_its_frames_and_grants_it_more() {
        let mut wire = asking(&[Op::Scan]);
        let (mut bytes, mut out) = (BytesMut::new(), BytesMut::new());
        let value = vec![0; 40_000];
        for more in [true, true, false] {
            let mut frame = EntriesWriter::begin(&mut bytes, 2);
            (0..2).for_each(|_| {
                frame.push(&Entry { kind: EntryKind::Value, key: &b"k"[..], value: &value }).unwrap();
            });
            frame.finish(more).unwrap();
        }
        assert_eq!(answers(&mut wire, &bytes, &mut out), Ok(vec![said(0, Fared::Entries(6))]));
        let frame = FrameCodec::default().decode(&mut out).unwrap().unwrap();
        let credit = SessionRequest::Credit { stream: 2, bytes: 2 * (4 + 2 * (7 + 1 + 40_000)) };
        assert_eq!(Request::decode(frame), Ok(credit.into()));
        assert!(out.is_empty(), "what the last frame took is not needed any more");
    }

    #[test]
    fn what_is_no_answer_ends_the_connection() {
        let mut unasked = BytesMut::new();
        Reply::Value(b"v").encode(9, &mut unasked).unwrap();
        let mut ended = BytesMut::new();
        Reply::<Bytes>::Error(ErrorReply::new(ErrorCode::ShuttingDown, "bye")).encode(0, &mut ended).unwrap();
        for (bytes, said) in [
            (&unasked[..], "an answer under the id 9"),
            (&ended, "bye"),
            (b"\0\0\0\x01\0\0\0\x02\0\x80", "a frame of 5 bytes"),
            (b"\x7f\0\0\0\0\0\0\x02\0\x80", "where at most 1048576 are due"),
            (b"\0\0\0\x06\0\0\0\x02\xee\x80", ""),
        ] {
            let broken = answers(&mut asking(&[Op::Get]), bytes, &mut BytesMut::new()).unwrap_err();
            assert!(broken.contains(said), "{broken}");
        }
    }

    #[test]
    fn a_request_that_the_server_would_not_take_is_not_sent() {
        let mut wire = Boltkv::new(Path::ROOT, 20, 1);
        let mut out = BytesMut::new();
        assert!(wire.ask(&asked(0, Op::Set), &mut out).unwrap_err().contains("over the server's limit of 20"));
        assert!(out.is_empty());
    }
}
