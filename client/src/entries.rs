//! The entries of a scan as they arrive.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use boltkv_protocol::{Entry, ErrorCode, INITIAL_CREDIT, Request};
use futures_core::Stream;
use tokio::time::{Instant, Sleep, sleep, timeout_at};

use crate::connection::{self, Chunk, Failure, Piece};
use crate::link::Lease;
use crate::{Client, Error, Loss};

/// Credit is given in pieces of at least this many bytes, so that it costs few frames.
const CREDIT_STEP: u32 = INITIAL_CREDIT / 4;

/// The entries of a scan, in order, all of one snapshot: a [`Stream`], or call [`next`](Self::next).
///
/// It ends after the first error. What the caller has not taken yet is bounded: the server sends as credit is given, and a
/// server that does not keep to credit is held up by the connection, which no one else uses. Dropped before its end, it is
/// cancelled.
///
/// Keys and values are slices of the frame they came in: one that is kept keeps all of it. Copy what is to be kept long.
#[derive(Debug)]
pub struct Entries {
    current: std::vec::IntoIter<Entry>,
    /// `None` when all has arrived.
    source: Option<Source>,
    /// How long to wait for the next piece.
    timeout: Duration,
    /// Rings when the next piece is overdue; set while waiting.
    alarm: Option<Pin<Box<Sleep>>>,
}

/// Where entries come from while there are more.
#[derive(Debug)]
struct Source {
    stream: connection::Stream,
    lease: Lease,
    /// Bytes taken for which no credit was given yet.
    owed: u32,
}

impl Entries {
    /// Those of a scan that was not to give any.
    pub(crate) fn none() -> Self {
        Self { current: Vec::new().into_iter(), source: None, timeout: Duration::ZERO, alarm: None }
    }

    /// Sends the request and waits for the first piece. Where the connection is lost before
    /// that, or the server is stopping, it is sent once more.
    pub(crate) async fn open(client: &Client, request: &Request<&[u8]>) -> Result<Self, Error> {
        let link = client.link();
        let deadline = link.deadline();
        let mut again = true;
        let mut refused = None;
        loop {
            let lease = match link.stream_connection(deadline).await {
                Ok(lease) => lease,
                Err(error) => return Err(refused.unwrap_or(error)),
            };
            match first_piece(lease, request, deadline).await {
                Ok((source, chunk)) => {
                    let mut entries = Self::none();
                    entries.timeout = link.config().timeout;
                    entries.source = Some(source);
                    entries.take_chunk(chunk);
                    return Ok(entries);
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

    /// The next entry; `None` after the last.
    ///
    /// # Errors
    /// What the server says, [`Error::ConnectionLost`], or [`Error::Timeout`] when no more comes.
    ///
    /// # Cancellation
    /// May be dropped at any point, as in a `select!`: no entry is lost, and the next call goes on where this one stopped. The
    /// time for the next piece goes on running from the first call that waited for it.
    pub async fn next(&mut self) -> Option<Result<Entry, Error>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Takes the entries of a frame, and lets the server send as much again.
    fn take_chunk(&mut self, chunk: Chunk) {
        self.current = chunk.entries.into_iter();
        let Some(mut source) = self.source.take() else { return };
        if chunk.last {
            source.lease.give_back();
            return;
        }
        source.owed = source.owed.saturating_add(chunk.cost);
        if source.owed >= CREDIT_STEP {
            source.lease.connection().credit(&source.stream, source.owed);
            source.owed = 0;
        }
        self.source = Some(source);
    }

    /// The next piece from the connection, or the error that ends the stream.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Result<Chunk, Error>> {
        let Some(source) = &mut self.source else { return Poll::Pending };
        if let Poll::Ready(piece) = source.stream.pieces.poll_recv(context) {
            self.alarm = None;
            return Poll::Ready(match piece {
                Some(Piece::Chunk(chunk)) => Ok(chunk),
                Some(Piece::Error(error)) => {
                    if let Some(source) = self.source.take() {
                        source.lease.give_back();
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

    /// Ends the stream before its last piece.
    fn give_up(&mut self) {
        if let Some(source) = self.source.take() {
            drop(source.stream);
            source.lease.give_back();
        }
    }
}

impl Stream for Entries {
    type Item = Result<Entry, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(entry) = self.current.next() {
                return Poll::Ready(Some(Ok(entry)));
            }
            if self.source.is_none() {
                return Poll::Ready(None);
            }
            match ready!(self.poll_piece(context)) {
                Ok(chunk) => self.take_chunk(chunk),
                Err(error) => {
                    self.give_up();
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}

impl Drop for Entries {
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

async fn first_piece(lease: Lease, request: &Request<&[u8]>, deadline: Instant) -> Result<(Source, Chunk), Opening> {
    let stream = lease.connection().stream(request, deadline).await.map_err(Opening::Failed)?;
    let mut source = Source { stream, lease, owed: 0 };
    // Where time runs out here, or the caller gives up, the stream is cancelled and the connection closed.
    let piece =
        timeout_at(deadline, source.stream.pieces.recv()).await.map_err(|_| Opening::Failed(Failure::NoReplyInTime))?;
    match piece {
        Some(Piece::Chunk(chunk)) => Ok((source, chunk)),
        Some(Piece::Error(error)) => {
            if error.code == ErrorCode::ShuttingDown {
                source.lease.connection().leave();
            }
            source.lease.give_back();
            Err(Opening::Refused(Error::Server(error)))
        }
        Some(Piece::Lost(loss)) => Err(Opening::Failed(Failure::Lost(loss))),
        None => Err(Opening::Failed(Failure::Lost(Loss::Closed))),
    }
}
