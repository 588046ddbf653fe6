//! Binary frames: a header of ten bytes and a body, cut from a stream and put onto it.
//!
//! ```text
//!  0        4        8    9    10
//!  | len u32 | id u32 | op u8 | flags u8 | body …
//! ```
//! `len` counts everything after itself. The codec knows nothing of what a body means. It keeps no memory for bytes that have
//! not arrived, however long the header says the frame will be.

use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio_util::codec::{Decoder, Encoder};

use crate::field::{EncodeError, make_room};
use crate::{ErrorCode, ErrorReply};

/// The length of a frame's header in bytes.
pub const HEADER_LEN: usize = 10;
/// The longest frame, header included, that either side takes before HELLO is done.
pub const MAX_FRAME_BEFORE_HELLO: usize = 64 * 1024;
/// The longest frame a server takes and sends unless it is told otherwise.
pub const DEFAULT_MAX_FRAME: usize = 16 * 1024 * 1024;
/// The longest frame there can be: `len` stays below 2^27, which keeps a frame's first byte within 0x00–0x07.
pub const MAX_FRAME_LIMIT: usize = (1 << 27) - 1 + LEN_FIELD;

/// How many body bytes a stream may send before its first CREDIT.
pub const INITIAL_CREDIT: u32 = 256 * 1024;

/// Set in every frame of a reply.
pub const FLAG_REPLY: u8 = 0x80;
/// Another frame of this reply follows.
pub const FLAG_MORE: u8 = 0x01;
/// The body of a request starts with the id of the snapshot to read from.
pub const FLAG_SNAPSHOT: u8 = 0x08;

/// The bytes of `len` itself, which it does not count.
const LEN_FIELD: usize = 4;
/// The least that `len` can be: id, op and flags.
const MIN_LEN: usize = HEADER_LEN - LEN_FIELD;
/// The least room made for a frame that has not arrived in full.
const MIN_ROOM: usize = 4 * 1024;

/// One frame. The body is a slice of the buffer it was read into, and so is all that is decoded from it: what is kept long is
/// better copied, or it keeps that buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The request's id, which its replies repeat; 0 is the connection itself.
    pub id: u32,
    /// In a request the operation, in a reply the status: 0 or an error code.
    pub op: u8,
    /// [`FLAG_REPLY`], [`FLAG_MORE`], [`FLAG_SNAPSHOT`].
    pub flags: u8,
    /// What follows the header.
    pub body: Bytes,
}

impl Frame {
    /// Whether this frame belongs to a reply.
    #[must_use]
    pub const fn is_reply(&self) -> bool {
        self.flags & FLAG_REPLY != 0
    }

    /// Whether another frame of the same reply follows.
    #[must_use]
    pub const fn has_more(&self) -> bool {
        self.flags & FLAG_MORE != 0
    }
}

/// A frame's header, for whoever looks at a frame while its body is still on the way, or does not want it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// The frame's length in bytes, header included, as its sender says; below [`HEADER_LEN`] in one that is malformed.
    pub frame_len: usize,
    /// As in [`Frame`].
    pub id: u32,
    /// As in [`Frame`].
    pub op: u8,
    /// As in [`Frame`].
    pub flags: u8,
}

impl FrameHeader {
    /// The header that these bytes start with; `None` where too few are there.
    #[must_use]
    pub fn parse(start: &[u8]) -> Option<Self> {
        let (_, rest) = start.split_first_chunk::<LEN_FIELD>()?;
        let (id, rest) = rest.split_first_chunk()?;
        let [op, flags] = *rest.first_chunk()?;
        Some(Self { frame_len: FrameCodec::frame_len(start)?, id: u32::from_be_bytes(*id), op, flags })
    }

    /// Whether another frame of the same reply follows.
    #[must_use]
    pub const fn has_more(&self) -> bool {
        self.flags & FLAG_MORE != 0
    }
}

/// Why no frame can be cut from the bytes. The connection cannot go on after it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// `len` does not even cover the header.
    #[error("the frame's len is {len}, but its header alone takes {MIN_LEN}")]
    TooShort {
        /// The header's `len`.
        len: usize,
    },
    /// The frame is longer than this side takes.
    #[error("the frame of {frame} bytes is over the limit of {limit}")]
    TooLarge {
        /// The frame's length with its header, in bytes.
        frame: usize,
        /// The longest that is taken, in bytes.
        limit: usize,
    },
    /// The stream ended within a frame.
    #[error("the connection ended within a frame, after {have} of its bytes")]
    Cut {
        /// How many of the frame's bytes had arrived.
        have: usize,
    },
    /// The stream failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
}

impl FrameError {
    /// What to tell the peer before closing; `None` where it cannot hear any more.
    #[must_use]
    pub fn to_reply(&self) -> Option<ErrorReply> {
        let code = match self {
            Self::TooShort { .. } => ErrorCode::Malformed,
            Self::TooLarge { .. } => ErrorCode::FrameTooLarge,
            Self::Cut { .. } | Self::Io(_) => return None,
        };
        Some(ErrorReply::new(code, self.to_string()))
    }
}

/// Cuts frames from a stream of bytes and puts them onto one.
#[derive(Debug, Clone)]
pub struct FrameCodec {
    max_frame: usize,
}

impl Default for FrameCodec {
    /// A codec for a connection whose HELLO is not done: frames up to [`MAX_FRAME_BEFORE_HELLO`].
    fn default() -> Self {
        Self { max_frame: MAX_FRAME_BEFORE_HELLO }
    }
}

impl FrameCodec {
    /// A codec that takes frames up to `max_frame` bytes, header included; at most [`MAX_FRAME_LIMIT`] whatever is asked for.
    #[must_use]
    pub fn new(max_frame: usize) -> Self {
        Self { max_frame: max_frame.min(MAX_FRAME_LIMIT) }
    }

    /// How long the frame will be that starts with these bytes, header included; `None` where too few are there to tell.
    #[must_use]
    pub fn frame_len(start: &[u8]) -> Option<usize> {
        let len = u32::from_be_bytes(*start.first_chunk()?);
        Some(usize::try_from(len).unwrap_or(usize::MAX).saturating_add(LEN_FIELD))
    }

    /// The longest frame taken, header included, in bytes.
    #[must_use]
    pub const fn max_frame(&self) -> usize {
        self.max_frame
    }

    /// Changes the longest frame taken, from the next frame on; at most [`MAX_FRAME_LIMIT`].
    pub fn set_max_frame(&mut self, max_frame: usize) {
        self.max_frame = max_frame.min(MAX_FRAME_LIMIT);
    }
}

impl Decoder for FrameCodec {
    type Item = Frame;
    type Error = FrameError;

    fn decode(&mut self, src: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        let Some(len) = src.first_chunk().map(|len| u32::from_be_bytes(*len)) else {
            return Ok(None);
        };
        // A `len` that no usize holds is over every limit.
        let len = usize::try_from(len).unwrap_or(usize::MAX - LEN_FIELD);
        if len < MIN_LEN {
            return Err(FrameError::TooShort { len });
        }
        let frame = len + LEN_FIELD;
        if frame > self.max_frame {
            return Err(FrameError::TooLarge { frame, limit: self.max_frame });
        }
        if src.len() < frame {
            // At most doubled at a time: a peer gets as much room as it has filled, not as much as it announces.
            src.reserve((frame - src.len()).min(src.len().max(MIN_ROOM)));
            return Ok(None);
        }
        let mut bytes = src.split_to(frame);
        bytes.advance(LEN_FIELD);
        let id = bytes.get_u32();
        let op = bytes.get_u8();
        let flags = bytes.get_u8();
        Ok(Some(Frame { id, op, flags, body: bytes.freeze() }))
    }

    fn decode_eof(&mut self, src: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        match self.decode(src)? {
            None if !src.is_empty() => Err(FrameError::Cut { have: src.len() }),
            frame => Ok(frame),
        }
    }
}

impl Encoder<Frame> for FrameCodec {
    type Error = FrameError;

    fn encode(&mut self, frame: Frame, out: &mut BytesMut) -> Result<(), FrameError> {
        let len = HEADER_LEN + frame.body.len();
        if len > self.max_frame {
            return Err(FrameError::TooLarge { frame: len, limit: self.max_frame });
        }
        write_frame(out, frame.id, frame.op, frame.flags, len, |out| {
            out.put_slice(&frame.body);
            Ok(())
        })
        .map_err(|error| FrameError::TooLarge { frame: error.len, limit: error.limit })
    }
}

/// Appends one frame to `out`, its body written in place by `body`. It takes so much `room`, header included, as far as that is
/// known. After an error `out` is as it was before.
pub(crate) fn write_frame(
    out: &mut BytesMut,
    id: u32,
    op: u8,
    flags: u8,
    room: usize,
    body: impl FnOnce(&mut BytesMut) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    make_room(out, room);
    let start = begin_frame(out, id, op, flags);
    let written = body(out).and_then(|()| end_frame(out, start));
    if written.is_err() {
        out.truncate(start);
    }
    written
}

/// Writes a header whose length is still open, and says where it starts.
pub(crate) fn begin_frame(out: &mut BytesMut, id: u32, op: u8, flags: u8) -> usize {
    let start = out.len();
    let [a, b, c, d] = id.to_be_bytes();
    let header: [u8; HEADER_LEN] = [0, 0, 0, 0, a, b, c, d, op, flags];
    out.put_slice(&header);
    start
}

/// Fills in the length of the frame that starts at `start` and ends with `out`.
pub(crate) fn end_frame(out: &mut BytesMut, start: usize) -> Result<(), EncodeError> {
    let frame = out.len() - start;
    let over = EncodeError { field: "frame", len: frame, limit: MAX_FRAME_LIMIT };
    if frame > MAX_FRAME_LIMIT {
        return Err(over);
    }
    let len = u32::try_from(frame - LEN_FIELD).map_err(|_| over.clone())?;
    let field = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut).ok_or(over)?;
    *field = len.to_be_bytes();
    Ok(())
}
