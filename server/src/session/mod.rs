//! A connection from its first byte to its last, in one dialect.
//!
//! - `binary`, `text`: the sessions; `stream`: the scans of a binary one; `linger`: when a text one ends its sending side
//! - `wire`: the bytes; `alarm`: the deadlines
//!
//! A session is one task. It turns bytes into requests and replies into bytes, and bounds what one client can ask for at a
//! time; what a request does, it leaves to the executor. It waits at one place, [`Connection::event`], for everything.

mod alarm;
mod binary;
mod linger;
mod stream;
mod text;
mod wire;

use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use boltkv_protocol::{ErrorCode, ErrorReply, WriteRequest};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use alarm::Alarm;
pub(crate) use binary::BinarySession;
pub(crate) use text::TextSession;
pub(crate) use wire::Wire;

use crate::executor::Caller;
use crate::shared::Shared;
use crate::writer::{Answered, Push, Ticket};

/// What the sessions of all dialects have.
pub(crate) struct Connection<S> {
    pub(crate) wire: Wire<S>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) opened: Instant,
    alarm: Alarm,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
    /// The server stops: nothing more is taken.
    stopping: bool,
    /// Where the writer's answers arrive, and the end that goes along with each write.
    answers: UnboundedReceiver<Answered>,
    answer_to: UnboundedSender<Answered>,
    /// A write that waits for room in the writer's queue. Nothing is taken meanwhile, so that writes keep their order.
    queueing: Option<Push>,
}

/// What a connection waits for.
#[derive(Debug)]
pub(crate) enum Event {
    /// Bytes arrived or left, the peer ended, or the queue took a write.
    Progress,
    /// The writer answered.
    Answered(Answered),
    /// The server stops.
    Stop,
    /// The deadline has passed.
    Deadline,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(crate) fn new(socket: S, shared: Arc<Shared>, stop: CancellationToken) -> Self {
        let (answer_to, answers) = unbounded_channel();
        Self {
            wire: Wire::new(socket),
            shared,
            opened: Instant::now(),
            alarm: Alarm::new(),
            stop: Box::pin(stop.cancelled_owned()),
            stopping: false,
            answers,
            answer_to,
            queueing: None,
        }
    }

    /// Waits for whatever comes first. Bytes are read only if `read`.
    pub(crate) async fn event(&mut self, read: bool, deadline: Option<Instant>) -> io::Result<Event> {
        tokio::select! {
            biased;
            // First, or a client that always has something to send or to take would keep the server from stopping.
            () = &mut self.stop, if !self.stopping => {
                self.stopping = true;
                Ok(Event::Stop)
            }
            moved = self.wire.transfer(read) => moved.map(|()| Event::Progress),
            Some(answered) = self.answers.recv() => Ok(Event::Answered(answered)),
            () = until_queued(&mut self.queueing) => Ok(Event::Progress),
            () = self.alarm.until(deadline) => Ok(Event::Deadline),
        }
    }

    /// An answer that is there already.
    fn answer(&mut self) -> Option<Answered> {
        self.answers.try_recv().ok()
    }

    /// Has a write done; its answer will carry `id`.
    fn submit(&mut self, id: u32, caller: &Caller, request: WriteRequest) {
        let ticket = Ticket::new(id, self.answer_to.clone());
        self.queueing = self.shared.executor.admit(caller).write(request, ticket);
    }

    /// When a client that sends nothing and takes nothing is to be closed.
    pub(crate) fn idle_deadline(&self) -> Instant {
        self.last_sent_or(self.opened).max(self.wire.last_received()) + self.shared.timeouts.idle
    }

    /// When the scans of a client that takes nothing are to be given up; `since` their last step.
    fn stall_deadline(&self, since: Instant) -> Instant {
        self.last_sent_or(since).max(since) + self.shared.timeouts.stream_stall
    }

    fn last_sent_or(&self, default: Instant) -> Instant {
        self.wire.last_sent().unwrap_or(default)
    }
}

/// Waits until the writer's queue has taken what is to go there.
async fn until_queued(queueing: &mut Option<Push>) {
    let Some(push) = queueing else { return pending().await };
    push.await;
    *queueing = None;
}

fn shutting_down() -> ErrorReply {
    ErrorReply::new(ErrorCode::ShuttingDown, "the server is stopping; this was not done")
}

fn stalled() -> ErrorReply {
    ErrorReply::new(ErrorCode::SnapshotExpired, "the client took nothing for too long; the scan was given up")
}
