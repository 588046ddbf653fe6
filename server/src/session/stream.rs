//! The scans of a binary connection: each a reply of several frames, written one frame at a time, in turn.
//!
//! A frame is written only when the output has room, so a client that reads slowly holds up nothing but its own scans.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use boltkv_protocol::{EncodeError, EntriesWriter, ErrorCode, ErrorReply, Reply};
use bytes::{Bytes, BytesMut};
use tokio::time::Instant;

use crate::commands::{Progress, ScanRun};

/// A frame that has reached this length is sent.
const FRAME_FULL: usize = 64 * 1024;

/// The open streams of a connection.
#[derive(Debug)]
pub(super) struct Streams {
    open: VecDeque<Stream>,
    most: usize,
    max_frame: usize,
    last_step: Instant,
}

#[derive(Debug)]
struct Stream {
    id: u32,
    run: ScanRun,
}

/// Whether a stream goes on after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Open,
    Ended,
}

impl Streams {
    /// At most `most` streams, in frames of at most `max_frame` bytes.
    pub(super) fn new(most: usize, max_frame: usize) -> Self {
        Self { open: VecDeque::new(), most, max_frame, last_step: Instant::now() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// When a frame was last made.
    pub(super) const fn last_step(&self) -> Instant {
        self.last_step
    }

    /// Takes the first step of a scan; often it is the last.
    pub(super) fn start(&mut self, id: u32, run: ScanRun, out: &mut BytesMut) -> Next {
        if self.open.len() >= self.most {
            let message = format!("a connection may have {} streams open", self.most);
            put_reply::<Bytes>(&Reply::Error(ErrorReply::new(ErrorCode::Overloaded, message)), id, out);
            return Next::Ended;
        }
        self.advance(Stream { id, run }, out)
    }

    /// Takes a step of the stream whose turn it is. Answers its id if it has ended.
    pub(super) fn step(&mut self, out: &mut BytesMut) -> Option<u32> {
        let stream = self.open.pop_front()?;
        let id = stream.id;
        (self.advance(stream, out) == Next::Ended).then_some(id)
    }

    /// Ends a stream with an error. `false` if there is no such stream.
    pub(super) fn end(&mut self, id: u32, error: ErrorReply, out: &mut BytesMut) -> bool {
        let Some(index) = self.open.iter().position(|stream| stream.id == id) else { return false };
        self.open.remove(index);
        put_reply::<Bytes>(&Reply::Error(error), id, out);
        true
    }

    /// Ends all streams with an error; answers their ids.
    pub(super) fn end_all(&mut self, error: &ErrorReply, out: &mut BytesMut) -> Vec<u32> {
        let ended: Vec<u32> = self.open.drain(..).map(|stream| stream.id).collect();
        for id in &ended {
            put_reply::<Bytes>(&Reply::Error(error.clone()), *id, out);
        }
        ended
    }

    fn advance(&mut self, mut stream: Stream, out: &mut BytesMut) -> Next {
        self.last_step = Instant::now();
        match write_frame(&mut stream, self.max_frame, out) {
            Ok(Next::Open) => {
                self.open.push_back(stream);
                Next::Open
            }
            Ok(Next::Ended) => Next::Ended,
            Err(error) => {
                put_reply::<Bytes>(&Reply::Error(error), stream.id, out);
                Next::Ended
            }
        }
    }
}

/// Writes the next frame of a stream, if the step finds anything for one.
fn write_frame(stream: &mut Stream, max_frame: usize, out: &mut BytesMut) -> Result<Next, ErrorReply> {
    let mut frame = EntriesWriter::begin(out, stream.id);
    let mut failed = None;
    let progress = stream.run.step(|entry| {
        let longer = frame.frame_len() + EntriesWriter::entry_len(entry.key, entry.value);
        if frame.count() > 0 && (longer > max_frame || frame.frame_len() >= FRAME_FULL) {
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
        Progress::More if frame.count() == 0 => Ok(Next::Open),
        Progress::More => frame.finish(true).map(|()| Next::Open).map_err(|error| unwritable(&error)),
        Progress::Done => frame.finish(false).map(|()| Next::Ended).map_err(|error| unwritable(&error)),
        Progress::Counted(count) => {
            drop(frame);
            put_reply::<Bytes>(&Reply::Count(count), stream.id, out);
            Ok(Next::Ended)
        }
    }
}

/// Writes a reply of one frame; one that the wire cannot carry becomes an error.
pub(super) fn put_reply<B: AsRef<[u8]>>(reply: &Reply<B>, id: u32, out: &mut BytesMut) {
    if let Err(error) = reply.encode(id, out) {
        // A message of a line always fits.
        let _ = Reply::<B>::Error(unwritable(&error)).encode(id, out);
    }
}

fn unwritable(error: &EncodeError) -> ErrorReply {
    ErrorReply::new(ErrorCode::FrameTooLarge, error.to_string())
}
