//! The binary dialect: frames in, frames out, each reply under its request's id.

use boltkv_protocol::{
    EncodeError, EntriesWriter, ErrorCode, ErrorReply, Frame, FrameCodec, HEADER_LEN, Hello, HelloReply,
    INITIAL_CREDIT, Op, Reply, Request, SessionRequest,
};
use bytes::{Bytes, BytesMut};
use std::ops::ControlFlow;
use tokio::time::Instant;
use tokio_util::codec::Decoder;
use tracing::debug;

use super::codec::{Asked, Codec, Due, MOST_OF_STRANGER, Step};
use super::input::Input;
use crate::commands::{Asker, BackupRun, Progress, Reader, ScanRun};
use crate::counters::Command;
use crate::memory::OWN_OUTPUT;
use crate::shared::Shared;

/// A stream's frame that has reached this length is sent.
const FRAME_FULL: usize = 64 * 1024;
/// The features this server knows, a bit each.
const FEATURES: u32 = 0;

/// What a binary connection has to remember.
#[derive(Debug)]
pub(crate) struct BinaryCodec {
    frames: FrameCodec,
    /// The longest frame after HELLO.
    max_frame: usize,
    greeted: bool,
}

/// What is answered beside the executor, with the request's id.
#[derive(Debug)]
pub(crate) enum Own {
    Hello(u32, Hello, u8),
    Stats(u32),
    Error(u32, ErrorReply),
}

type BinaryAsked = Asked<(), Own>;

impl BinaryCodec {
    /// Before HELLO. After it, frames have at most as many bytes as the server's limits say, header included.
    pub(crate) fn new(server: &Shared) -> Self {
        let frames = if server.access.asks() { FrameCodec::new(MOST_OF_STRANGER) } else { FrameCodec::default() };
        Self { frames, max_frame: server.limits.max_frame, greeted: false }
    }

    fn asked(&mut self, frame: Frame) -> BinaryAsked {
        if !self.greeted {
            return self.greet(frame);
        }
        let (id, unanswered) = (frame.id, is_unanswered(&frame));
        let due = Due::new(id, ());
        match Request::decode(frame) {
            Ok(Request::Read(request)) => Asked::Read(due, request),
            Ok(Request::Write(request)) => Asked::Write(due, request),
            Ok(Request::Stream(request)) => Asked::Stream(due, request),
            Ok(Request::OfSnapshot { snapshot, read }) => Asked::OfSnapshot(due, snapshot, read),
            Ok(Request::Session(SessionRequest::Snapshot(request))) => Asked::Snapshot(due, request),
            Ok(Request::Session(SessionRequest::Cancel { stream })) => Asked::Cancel(stream),
            Ok(Request::Session(SessionRequest::Operator(request))) => Asked::Operator(due, request),
            Ok(Request::Session(SessionRequest::Stats)) => Asked::Own(Own::Stats(id)),
            Ok(Request::Session(SessionRequest::Credit { stream, bytes })) => Asked::Credit { stream, bytes },
            Ok(Request::Session(SessionRequest::Hello(_))) => {
                Asked::Own(Own::Error(id, ErrorReply::new(ErrorCode::Malformed, "HELLO is said once")))
            }
            Err(_) if unanswered => Asked::Nothing,
            Err(error) => Asked::Own(Own::Error(id, error.into())),
        }
    }

    fn greet(&mut self, frame: Frame) -> BinaryAsked {
        let id = frame.id;
        if Op::from_u8(frame.op) != Some(Op::Hello) {
            return close_with(id, ErrorReply::new(ErrorCode::HelloRequired, "a binary connection starts with HELLO"));
        }
        match Request::decode(frame) {
            Ok(Request::Session(SessionRequest::Hello(hello))) => match hello.common_version() {
                Some(version) => {
                    self.greeted = true;
                    self.frames.set_max_frame(self.max_frame);
                    let token = hello.token.clone();
                    Asked::Introduce(Own::Hello(id, hello, version), token)
                }
                None => close_with(id, unsupported_version(&hello)),
            },
            Ok(_) => close_with(id, ErrorReply::new(ErrorCode::HelloRequired, "this is no HELLO")),
            Err(error) => close_with(id, error.into()),
        }
    }
}

impl Codec for BinaryCodec {
    type Tag = ();
    type Own = Own;

    const NAME: &'static str = "binary";
    const IN_ORDER: bool = false;
    /// What a connection has of its own: who looks after a server has to see it also when all memory is taken.
    const MOST_OF_ROWS: usize = OWN_OUTPUT - HEADER_LEN;
    const INITIAL_CREDIT: i64 = INITIAL_CREDIT as i64;

    fn asker(&self) -> Asker {
        Asker::default()
    }

    fn decode(&mut self, input: &mut Input, _arrived: Instant, _ended: bool) -> Option<BinaryAsked> {
        match self.frames.decode(&mut input.bytes) {
            Ok(frame) => frame.map(|mut frame| {
                frame.body = input.settle(frame.body);
                self.asked(frame)
            }),
            Err(error) => Some(Asked::Close(error.to_reply().map(|error| Own::Error(0, error)))),
        }
    }

    fn item_len(&self, input: &[u8]) -> Option<usize> {
        if input.is_empty() {
            return None;
        }
        Some(FrameCodec::frame_len(input).unwrap_or(HEADER_LEN))
    }

    fn least_item_len(&self, input: &[u8]) -> usize {
        self.item_len(input).unwrap_or(0)
    }

    fn reply<B: AsRef<[u8]>>(&mut self, due: Due<()>, reply: &Reply<B>, out: &mut BytesMut) {
        put_reply(reply, due.id, out);
    }

    fn reply_len(&self, _due: Due<()>, reply: &Reply<&[u8]>) -> usize {
        match reply {
            Reply::Value(bytes) => Reply::<&[u8]>::value_frame_len(bytes.len()),
            Reply::Pong(bytes) => HEADER_LEN + bytes.len(),
            // All others are short.
            _ => 0,
        }
    }

    fn step(&self, due: Due<()>, run: &mut ScanRun, room: usize, out: &mut BytesMut) -> Result<Step, ErrorReply> {
        let (longest, full) = (self.max_frame.min(room), FRAME_FULL.min(room));
        let mut frame = EntriesWriter::begin(out, due.id);
        let (mut failed, mut needs) = (None, None);
        let progress = run.step(|entry| {
            let longer = frame.frame_len() + EntriesWriter::entry_len(entry.key, entry.value);
            if frame.count() > 0 && (longer > longest || frame.frame_len() >= full) {
                return ControlFlow::Break(());
            }
            if longer > room {
                needs = Some(longer);
                return ControlFlow::Break(());
            }
            failed = frame.push(entry).err();
            if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if let Some(error) = failed {
            return Err(unwritable(&error));
        }
        match progress {
            // Nothing was found yet, as in a count.
            Progress::More if frame.count() == 0 => return Ok(needs.map_or(Step::More, Step::Needs)),
            Progress::More => frame.finish(true).map_err(|error| unwritable(&error))?,
            Progress::Done => {
                frame.finish(false).map_err(|error| unwritable(&error))?;
                return Ok(Step::Ended);
            }
            Progress::Counted(count) => {
                drop(frame);
                put_reply::<Bytes>(&Reply::Count(count), due.id, out);
                return Ok(Step::Ended);
            }
        }
        Ok(Step::More)
    }

    fn step_backup(
        &self,
        due: Due<()>,
        run: &mut BackupRun,
        room: usize,
        out: &mut BytesMut,
    ) -> Result<Step, ErrorReply> {
        let beside = Reply::<&[u8]>::value_frame_len(0);
        let most = self.max_frame.min(room).saturating_sub(beside);
        if most < run.least() {
            return Ok(Step::Needs(beside + run.least()));
        }
        let Some(part) = run.take(most)? else { return Ok(Step::More) };
        put_reply(&part, due.id, out);
        Ok(Step::after(&part))
    }

    fn answer(
        &mut self,
        own: Own,
        server: &Shared,
        _reader: &mut Reader<'_>,
        out: &mut BytesMut,
    ) -> Result<(), ErrorCode> {
        match own {
            Own::Error(id, error) => {
                let code = error.code;
                put_reply::<Bytes>(&Reply::Error(error), id, out);
                return Err(code);
            }
            Own::Stats(id) => put_reply(&server.stats_reply(), id, out),
            Own::Hello(id, hello, version) => {
                debug!(client = %hello.client.escape_ascii(), version, "hello");
                put_reply(&agreement(server, &hello, version), id, out);
            }
        }
        Ok(())
    }

    fn id_of(own: &Own) -> Option<u32> {
        let (Own::Hello(id, ..) | Own::Stats(id) | Own::Error(id, _)) = own;
        Some(*id)
    }

    fn command(own: &Own) -> Option<Command> {
        Some(match own {
            Own::Hello(..) => Command::of_op(Op::Hello),
            Own::Stats(_) => Command::of_op(Op::Stats),
            Own::Error(..) => Command::OTHER,
        })
    }

    fn refuse(&self, own: &Own, error: ErrorReply, out: &mut BytesMut) {
        let (Own::Hello(id, ..) | Own::Stats(id) | Own::Error(id, _)) = own;
        put_reply::<Bytes>(&Reply::Error(error), *id, out);
    }

    fn farewell(&self, error: ErrorReply) -> Own {
        Own::Error(0, error)
    }

    fn instead(&self, own: Own, error: ErrorReply) -> Own {
        let (Own::Hello(id, ..) | Own::Stats(id) | Own::Error(id, _)) = own;
        Own::Error(id, error)
    }

    fn names<'o>(&self, own: &'o Own) -> Option<&'o [u8]> {
        if let Own::Hello(_, hello, _) = own { Some(&hello.client) } else { None }
    }

    fn not_introduced(&self) -> Option<ErrorReply> {
        (!self.greeted).then(|| ErrorReply::new(ErrorCode::HelloRequired, "no HELLO came in time"))
    }
}

/// What the server agrees to.
fn agreement(server: &Shared, hello: &Hello, version: u8) -> Reply {
    Reply::Hello(HelloReply {
        version,
        features: hello.features & FEATURES,
        // The configuration was checked at the start: the limit of a frame is far below 2^32.
        max_frame: u32::try_from(server.limits.max_frame).unwrap_or(u32::MAX),
        max_in_flight: server.limits.max_in_flight,
        max_streams: server.limits.max_streams,
        read_only: !server.executor.is_writable(),
        server: Bytes::from_static(concat!("boltkv/", env!("CARGO_PKG_VERSION")).as_bytes()),
    })
}

fn close_with(id: u32, error: ErrorReply) -> BinaryAsked {
    debug!(code = %error.code, "closing: {}", error.message);
    Asked::Close(Some(Own::Error(id, error)))
}

/// Whether a frame gets no answer, whatever it holds.
fn is_unanswered(frame: &Frame) -> bool {
    matches!(Op::from_u8(frame.op), Some(Op::Credit | Op::Cancel))
}

/// Writes a reply of one frame; one that the wire cannot carry becomes an error.
fn put_reply<B: AsRef<[u8]>>(reply: &Reply<B>, id: u32, out: &mut BytesMut) {
    if let Err(error) = reply.encode(id, out) {
        // A message of a line always fits.
        let _ = Reply::<B>::Error(unwritable(&error)).encode(id, out);
    }
}

fn unwritable(error: &EncodeError) -> ErrorReply {
    ErrorReply::new(ErrorCode::FrameTooLarge, error.to_string())
}

fn unsupported_version(hello: &Hello) -> ErrorReply {
    let message = format!(
        "the client speaks versions {} to {}, the server speaks version {}",
        hello.min_version,
        hello.max_version,
        boltkv_protocol::VERSION
    );
    ErrorReply::new(ErrorCode::UnsupportedVersion, message)
}
