//! The task that reads: it gives each frame to whoever waits for it, and notices when the connection ends.

use std::sync::Arc;

use boltkv_protocol::{DecodeError, ErrorCode, Expect, Frame, FrameCodec, FrameError, Reply};
use bytes::{Bytes, BytesMut};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio_util::codec::Decoder;

use super::Failure;
use super::flight::{Chunk, Flight, Piece, Waiter};
use super::stream::Input;
use crate::Loss;

/// The room made before each read.
const READ_ROOM: usize = 32 * 1024;
/// Replies up to this many bytes are copied out of the buffer they were read into, so that a value which its caller keeps does
/// not keep all of the buffer, and the buffer can be used again.
const COPIED_BODY: usize = 4 * 1024;

pub(super) struct Reader {
    input: Input,
    codec: FrameCodec,
    buffer: BytesMut,
    flight: Arc<Flight>,
}

/// However the task ends, also with its runtime: nobody waits for replies that nobody reads.
impl Drop for Reader {
    fn drop(&mut self) {
        self.flight.lose(&Loss::Closed);
    }
}

impl Reader {
    pub(super) const fn new(input: Input, codec: FrameCodec, buffer: BytesMut, flight: Arc<Flight>) -> Self {
        Self { input, codec, buffer, flight }
    }

    pub(super) async fn run(mut self) {
        let Err(loss) = self.read().await;
        self.flight.lose(&loss);
    }

    /// Reads until the connection is lost.
    async fn read(&mut self) -> Result<std::convert::Infallible, Loss> {
        loop {
            while let Some(frame) = self.codec.decode(&mut self.buffer)? {
                self.deliver(frame)?;
            }
            self.buffer.reserve(READ_ROOM);
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                return Err(Loss::Closed);
            }
        }
    }

    fn deliver(&self, frame: Frame) -> Result<(), Loss> {
        if frame.id == 0 {
            return Err(end_of_connection(frame));
        }
        match self.flight.waiter(&frame)? {
            Waiter::Nobody { .. } => Ok(()),
            Waiter::Reply { expect, sender } => {
                let frame = Frame { body: detached(frame.body), ..frame };
                let reply = Reply::decode(expect, frame).map_err(Loss::from);
                let broken = reply.as_ref().err().cloned();
                // A caller that has given up does not need the reply.
                drop(sender.send(reply.map_err(Failure::Lost)));
                broken.map_or(Ok(()), Err)
            }
            Waiter::Stream { expect, sender, .. } => deliver_piece(frame, expect, &sender),
        }
    }
}

fn detached(body: Bytes) -> Bytes {
    if body.len() <= COPIED_BODY { Bytes::copy_from_slice(&body) } else { body }
}

/// Gives a stream its next piece. What waits there is bounded by the stream's credit.
fn deliver_piece(frame: Frame, expect: Expect, sender: &mpsc::UnboundedSender<Piece>) -> Result<(), Loss> {
    let (last, cost) = (!frame.has_more(), u32::try_from(frame.body.len()).unwrap_or(u32::MAX));
    let piece = match Reply::decode(expect, frame) {
        Ok(Reply::Error(error)) => Piece::Error(error),
        Ok(reply) => Piece::Chunk(Chunk { reply, cost, last }),
        Err(error) => Piece::Lost(error.into()),
    };
    let broken = match &piece {
        Piece::Lost(loss) => Err(loss.clone()),
        Piece::Chunk(_) | Piece::Error(_) => Ok(()),
    };
    // A caller that has given up does not need it.
    drop(sender.send(piece));
    broken
}

/// What the server says about the connection as a whole is its last word.
fn end_of_connection(frame: Frame) -> Loss {
    match Reply::decode(Expect::Pong, frame) {
        Ok(Reply::Error(error)) if error.code == ErrorCode::ShuttingDown => Loss::Closed,
        Ok(Reply::Error(error)) => Loss::Ended(error),
        Ok(_) => Loss::Protocol("a reply under id 0".into()),
        Err(error) => error.into(),
    }
}

impl From<DecodeError> for Loss {
    fn from(error: DecodeError) -> Self {
        Self::Protocol(error.to_string().into())
    }
}

impl From<FrameError> for Loss {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Io(error) => error.into(),
            error => Self::Protocol(error.to_string().into()),
        }
    }
}
