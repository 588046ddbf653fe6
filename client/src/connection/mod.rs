//! One connection: requests are put into a buffer that a task writes out, and a task that reads gives each reply to whoever
//! waits for it, found by the request's id.
//!
//! A connection is never mended. Once lost, it fails all that is in flight and takes nothing more.

mod flight;
mod hello;
mod reader;
mod stream;
mod writer;

use std::sync::Arc;

use boltkv_protocol::{EncodeError, Expect, HelloReply, INITIAL_CREDIT, Reply, Request};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

pub(crate) use self::flight::{Chunk, Piece};
use self::flight::{Flight, Waiter, is_stream};
use crate::builder::Config;
use crate::{Error, Loss};

/// Why a request has no reply.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It was not sent, because the connection was lost before.
    NotSent(Loss),
    /// It was sent, or may have been, when the connection was lost.
    Lost(Loss),
    /// Its time was over before it was sent.
    NotSentInTime,
    /// Its time was over before the reply came.
    NoReplyInTime,
    /// It is larger than the wire or the server takes.
    TooLarge(EncodeError),
}

impl Failure {
    /// Whether it does no harm to send it again on a new connection, and may help.
    pub(crate) fn can_be_repeated(&self, request: &Request<&[u8]>) -> bool {
        match self {
            Self::NotSent(_) => true,
            Self::Lost(loss) => !matches!(request, Request::Write(_)) && loss.is_passing(),
            Self::NotSentInTime | Self::NoReplyInTime | Self::TooLarge(_) => false,
        }
    }

    /// What the caller is told.
    pub(crate) fn into_error(self, request: &Request<&[u8]>, config: &Config) -> Error {
        match self {
            Self::Lost(loss) if matches!(request, Request::Write(_)) => Error::OutcomeUnknown(loss),
            Self::NoReplyInTime if matches!(request, Request::Write(_)) => {
                Error::OutcomeUnknown(Loss::Timeout(config.timeout))
            }
            Self::NotSent(loss) | Self::Lost(loss) => loss.under_read(),
            Self::NotSentInTime | Self::NoReplyInTime => Error::Timeout(config.timeout),
            Self::TooLarge(error) => Error::Unsendable(error),
        }
    }
}

/// A connection that has said HELLO. Dropped, it sends what it still has to and closes.
#[derive(Debug)]
pub(crate) struct Connection {
    flight: Arc<Flight>,
    reader: AbortHandle,
}

impl Connection {
    /// Connects, says HELLO and starts the two tasks.
    pub(crate) async fn open(config: &Config) -> Result<Self, Error> {
        let (stream, codec, buffer, hello) = hello::connect(config).await?;
        let flight = Arc::new(Flight::new(&hello, config.timeout));
        tokio::spawn(writer::run(stream.output, Arc::clone(&flight)));
        let reader = reader::Reader::new(stream.input, codec, buffer, Arc::clone(&flight));
        let reader = tokio::spawn(reader.run()).abort_handle();
        Ok(Self { flight, reader })
    }

    /// Whether requests can be sent on it.
    pub(crate) fn is_usable(&self) -> bool {
        self.flight.is_usable()
    }

    /// The server has said that it is stopping: nothing more is sent here. What is in flight may still be answered.
    pub(crate) fn leave(&self) {
        self.flight.leave();
    }

    /// How many requests are in flight, those included whose answer nobody waits for any more.
    pub(crate) fn in_flight(&self) -> usize {
        self.flight.load().0
    }

    /// Whether the server takes one more stream on it at once.
    pub(crate) fn has_stream_left(&self) -> bool {
        self.flight.load().1
    }

    /// Sends a request that has one reply, which looks like `expect`, and waits for it.
    pub(crate) async fn request(
        &self,
        request: &Request<&[u8]>,
        expect: Expect,
        deadline: Instant,
    ) -> Result<Reply, Failure> {
        let (sender, receiver) = oneshot::channel();
        let heard = self.flight.heard();
        let sending = self.flight.send(request, Waiter::Reply { expect, sender });
        let id = timeout_at(deadline, sending).await.map_err(|_| Failure::NotSentInTime)??;
        // What counts as a stream is work for the server as long as it runs: it ends when nobody waits for it. All else is
        // done in a moment.
        let _running = is_stream(request).then(|| Running { flight: &self.flight, id });
        match timeout_at(deadline, receiver).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) => Err(Failure::Lost(Loss::Closed)),
            Err(_) => {
                self.flight.lose_if_silent_since(heard);
                Err(Failure::NoReplyInTime)
            }
        }
    }

    /// Sends a request that a stream answers, whose frames look like `expect`.
    pub(crate) async fn stream(
        &self,
        request: &Request<&[u8]>,
        expect: Expect,
        deadline: Instant,
    ) -> Result<Stream, Failure> {
        let (sender, pieces) = mpsc::unbounded_channel();
        let waiter = Waiter::Stream { expect, sender, credit: INITIAL_CREDIT.into() };
        let sending = self.flight.send(request, waiter);
        let id = timeout_at(deadline, sending).await.map_err(|_| Failure::NotSentInTime)??;
        Ok(Stream { id, pieces, flight: Arc::clone(&self.flight) })
    }

    /// Sends a request whose answer nobody waits for. `false` if it cannot be sent at once.
    pub(crate) fn send_unheard(&self, request: &Request) -> bool {
        self.flight.send_unheard(request)
    }

    /// Lets a stream send so many bytes more.
    pub(crate) fn credit(&self, stream: &Stream, bytes: u32) {
        self.flight.credit(stream.id, bytes);
    }
}

/// A request that keeps the server busy until it is answered; cancelled when it is dropped before.
struct Running<'a> {
    flight: &'a Flight,
    id: u32,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.flight.cancel(self.id);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // In this order: the reader's end would throw away what is still to be written.
        self.flight.close();
        self.reader.abort();
    }
}

/// A stream's receiving end. Dropped before its last piece has arrived, it is cancelled, and what still comes of it is ignored.
#[derive(Debug)]
pub(crate) struct Stream {
    id: u32,
    pub(crate) pieces: mpsc::UnboundedReceiver<Piece>,
    flight: Arc<Flight>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.flight.cancel(self.id);
    }
}

/// What the server allows, as far as the client has to keep to it.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// The longest frame, in bytes.
    frame: usize,
    in_flight: usize,
    streams: usize,
}

impl From<&HelloReply> for Limits {
    fn from(hello: &HelloReply) -> Self {
        let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Self { frame: size(hello.max_frame), in_flight: size(hello.max_in_flight), streams: size(hello.max_streams) }
    }
}
