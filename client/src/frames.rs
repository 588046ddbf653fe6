//! The frames of a stream as they arrive, whatever is in them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use boltkv_protocol::{ErrorCode, Expect, INITIAL_CREDIT, Reply, Request, SnapshotRead, StreamRequest};
use tokio::time::{Instant, Sleep, sleep, timeout_at};

use crate::connection::{self, Chunk, Connection, Failure, Piece};
use crate::link::Lease;
use crate::snapshot::Held;
use crate::{Client, Error, Loss};

/// Credit is given in pieces of at least this many bytes, so that it costs few frames.
const CREDIT_STEP: u32 = INITIAL_CREDIT / 4;

/// The frames of a stream. It ends after the first error; dropped before its end, it is cancelled.
#[derive(Debug)]
pub(crate) struct Frames {
    /// `None` when all has arrived.
    source: Option<Source>,
    /// How long to wait for the next frame.
    timeout: Duration,
    /// Rings when the next frame is overdue; set while waiting.
    alarm: Option<Pin<Box<Sleep>>>,
}

/// Where frames come from while there are more.
#[derive(Debug)]
struct Source {
    stream: connection::Stream,
    line: Line,
    /// Bytes taken for which no credit was given yet.
    owed: u32,
}

/// The connection that a stream comes on.
#[derive(Debug)]
enum Line {
    /// One of its own.
    Own(Lease),
    /// That of the snapshot which it is of.
    Of(Arc<Held>),
}

impl Line {
    fn connection(&self) -> &Connection {
        match self {
            Self::Own(lease) => lease.connection(),
            Self::Of(held) => held.connection(),
        }
    }

    fn give_back(self) {
        if let Self::Own(lease) = self {
            lease.give_back();
        }
    }
}

impl Frames {
    /// Those of a stream that was not to give any.
    pub(crate) const fn none() -> Self {
        Self { source: None, timeout: Duration::ZERO, alarm: None }
    }

    /// Sends the request and waits for the first frame. Where the connection is lost before that, or the server is stopping,
    /// it is sent once more.
    pub(crate) async fn open(client: &Client, request: StreamRequest) -> Result<(Self, Reply), Error> {
        let link = client.link();
        let deadline = link.deadline();
        let expect = request.expects();
        let request = &request.into();
        let mut again = true;
        let mut refused = None;
        loop {
            let lease = match link.stream_connection(deadline).await {
                Ok(lease) => lease,
                Err(error) => return Err(refused.unwrap_or(error)),
            };
            match first_chunk(Line::Own(lease), request, expect, deadline).await {
                Ok((source, chunk)) => {
                    let mut frames = Self { source: Some(source), timeout: link.config().timeout, alarm: None };
                    let reply = frames.take(chunk);
                    return Ok((frames, reply));
                }
                Err(Opening::Refused(error)) if again && error.is_shutting_down() => {
                    again = false;
                    refused = Some(error);
                }
                Err(Opening::Refused(error)) => return Err(error),
                Err(Opening::Failed(failure)) if again && failure.can_be_repeated(request) => {
                    again = false;
                }
                Err(Opening::Failed(failure)) => {
                    return Err(failure.into_error(request, link.config()));
                }
            }
        }
    }

    /// As [`open`](Self::open), as of a snapshot, of which only its own connection can be asked.
    pub(crate) async fn open_of_snapshot(
        client: &Client,
        held: &Arc<Held>,
        request: StreamRequest,
    ) -> Result<(Self, Reply), Error> {
        let link = client.link();
        let expect = request.expects();
        let request = &held.request(SnapshotRead::Stream(request));
        match first_chunk(Line::Of(Arc::clone(held)), request, expect, link.deadline()).await {
            Ok((source, chunk)) => {
                let mut frames = Self { source: Some(source), timeout: link.config().timeout, alarm: None };
                let reply = frames.take(chunk);
                Ok((frames, reply))
            }
            Err(Opening::Refused(error)) => Err(error),
            Err(Opening::Failed(failure)) => Err(failure.into_error(request, link.config())),
        }
    }

    /// The same, where a frame is waited for at least so long.
    pub(crate) fn patient_for(mut self, least: Duration) -> Self {
        self.timeout = self.timeout.max(least);
        self
    }

    /// The next frame; `None` after the last. The time for it goes on running from the first call that waited for it.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Reply, Error>>> {
        if self.source.is_none() {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(match ready!(self.poll_chunk(context)) {
            Ok(chunk) => Ok(self.take(chunk)),
            Err(error) => {
                self.give_up();
                Err(error)
            }
        }))
    }

    /// Takes what is in a frame, and lets the server send as much again.
    fn take(&mut self, chunk: Chunk) -> Reply {
        if let Some(mut source) = self.source.take() {
            if chunk.last {
                source.line.give_back();
                return chunk.reply;
            }
            source.owed = source.owed.saturating_add(chunk.cost);
            if source.owed >= CREDIT_STEP {
                source.line.connection().credit(&source.stream, source.owed);
                source.owed = 0;
            }
            self.source = Some(source);
        }
        chunk.reply
    }

    /// The next frame from the connection, or the error that ends the stream.
    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Chunk, Error>> {
        let Some(source) = &mut self.source else { return Poll::Pending };
        if let Poll::Ready(piece) = source.stream.pieces.poll_recv(context) {
            self.alarm = None;
            return Poll::Ready(match piece {
                Some(Piece::Chunk(chunk)) => Ok(chunk),
                Some(Piece::Error(error)) => {
                    if let Some(source) = self.source.take() {
                        source.line.give_back();
                    }
                    Err(Error::Server(error))
                }
                Some(Piece::Lost(loss)) => Err(loss.under_read()),
                None => Err(Loss::Closed.under_read()),
            });
        }
        let timeout = self.timeout;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(timeout)));
        ready!(alarm.as_mut().poll(context));
        // The server may be gone: its connection is closed and not used again.
        self.source = None;
        Poll::Ready(Err(Error::Timeout(timeout)))
    }

    /// Ends the stream before its last frame.
    fn give_up(&mut self) {
        if let Some(source) = self.source.take() {
            drop(source.stream);
            source.line.give_back();
        }
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// Why a stream did not begin.
enum Opening {
    /// The server said no.
    Refused(Error),
    /// The connection did not bring its answer.
    Failed(Failure),
}

async fn first_chunk(
    line: Line,
    request: &Request<&[u8]>,
    expect: Expect,
    deadline: Instant,
) -> Result<(Source, Chunk), Opening> {
    let stream = line.connection().stream(request, expect, deadline).await.map_err(Opening::Failed)?;
    let mut source = Source { stream, line, owed: 0 };
    // Where time runs out here, or the caller gives up, the stream is cancelled and the connection closed.
    let piece =
        timeout_at(deadline, source.stream.pieces.recv()).await.map_err(|_| Opening::Failed(Failure::NoReplyInTime))?;
    match piece {
        Some(Piece::Chunk(chunk)) => Ok((source, chunk)),
        Some(Piece::Error(error)) => {
            if error.code == ErrorCode::ShuttingDown {
                source.line.connection().leave();
            }
            source.line.give_back();
            Err(Opening::Refused(Error::Server(error)))
        }
        Some(Piece::Lost(loss)) => Err(Opening::Failed(Failure::Lost(loss))),
        None => Err(Opening::Failed(Failure::Lost(Loss::Closed))),
    }
}
