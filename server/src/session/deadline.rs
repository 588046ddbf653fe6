//! The deadlines of a session: what happens when nothing happens, or too little.

use std::io;
use std::time::Duration;

use boltkv_protocol::{ErrorCode, ErrorReply};
use tokio::time::Instant;
use tracing::debug;

use super::UseFor;
use super::admission::expired;
use super::codec::{Asked, Codec};
use super::pace::Pace;
use super::serve::Session;
use super::socket::Socket;
use crate::commands::Run;

/// How long a reply waits for memory before its request is refused.
const MEMORY_PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked whether a client is still there that waits for memory for a request, and is not read.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What a deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overdue {
    /// The client has not said who it is.
    Introduction,
    /// A client that is not let in has waited for its answer.
    Refusal,
    /// A request has not arrived in full.
    Item,
    /// The client does not take its replies.
    Output,
    /// The client takes nothing, and has streams open.
    Streams,
    /// The client gives a stream no credit.
    Credit,
    /// Streams that stand still may keep memory that writes need.
    Crowding,
    /// The client has ended its sending, may be gone, and is sent nothing of what it has asked for.
    Gone,
    /// The client's token has expired.
    Expired,
    /// A snapshot was not used for as long as its lease.
    Lease,
    /// A reply has not got its memory.
    Memory,
    /// A client that waits for memory may be gone.
    Look,
    /// The client seems to wait for the end.
    EndOfSending,
    /// Nothing happens.
    Idle,
}

pub(super) type Deadline = (Instant, Overdue);

impl<C: Codec, S: Socket> Session<C, S> {
    /// Notes which transfers have begun and which have ended.
    pub(super) fn keep_paces(&mut self) {
        let wire = &self.conn.wire;
        self.streams.note(wire.sent(), wire.has_ended());
        let input_starves = self.conn.starving.as_ref().is_some_and(|starving| starving.use_for != UseFor::Output);
        if self.codec.item_len(&wire.input.bytes).is_none() || input_starves {
            self.paces.item = None;
        } else if self.is_starved() {
            self.paces.item.get_or_insert_with(|| Pace::start(wire.received()));
        }
        if wire.is_all_sent() {
            self.paces.output = None;
        } else {
            self.paces.output.get_or_insert_with(|| Pace::start(wire.sent()));
        }
    }

    /// Whether something comes although nothing is read: from the writer, the disk, the memory, a stream's source or the clock,
    /// or because the client takes its replies.
    pub(super) fn waits_for_its_own(&self) -> bool {
        let conn = &self.conn;
        let is_held = conn.queueing.is_some() || conn.starving.is_some() || conn.faulting.is_some();
        is_held || self.in_flight() > 0 || self.refusal.is_some() || !conn.wire.is_all_sent()
    }

    /// What is due first.
    pub(super) fn deadline(&self) -> Option<Deadline> {
        let open = if self.closing { None } else { self.open_deadline() };
        sooner(self.output_deadline(), open)
    }

    fn output_deadline(&self) -> Option<Deadline> {
        let (pace, patience) = (self.paces.output?, self.conn.shared.timeouts.reply);
        let (wire, sent) = (&self.conn.wire, self.conn.wire.sent());
        let stalled = pace.stalled(sent, patience);
        let at = if wire.is_output_dear() { stalled.min(pace.slow(sent, patience)) } else { stalled };
        Some((at, Overdue::Output))
    }

    /// What is due first on a connection that is not being closed.
    fn open_deadline(&self) -> Option<Deadline> {
        if let Some((at, _)) = &self.refusal {
            return Some((*at, Overdue::Refusal));
        }
        let introduction = self
            .codec
            .not_introduced()
            .map(|_| (self.unknown_since + self.conn.shared.timeouts.hello, Overdue::Introduction));
        let expiry = self.expires_at.map(|at| (at, Overdue::Expired));
        let first = sooner(sooner(introduction, expiry), self.item_deadline());
        if self.streams.is_empty() && self.leases.is_empty() && self.conn.starving.is_none() {
            // As nearly always: writes under way have no deadline of their own.
            return sooner(first, self.is_idle().then(|| self.quiet_deadline()));
        }
        // Snapshots are held for no longer than they are used, or leased.
        let lease = self.leases.next_end().map(|at| (at, Overdue::Lease));
        let executing = [self.stream_deadline(), self.credit_deadline(), self.memory_deadline()];
        let is_executing = !self.is_idle() || executing.iter().any(Option::is_some);
        let quiet = if is_executing { None } else { Some(self.quiet_deadline()) };
        let others = [self.next_look(), quiet, lease, self.crowding_deadline()];
        others.into_iter().chain(executing).fold(first, sooner)
    }

    /// Whether nothing was taken that is not answered, and no snapshot is held.
    fn is_idle(&self) -> bool {
        self.in_flight() == 0 && self.waiting.is_none() && self.ahead.is_empty() && self.leases.is_empty()
    }

    fn item_deadline(&self) -> Option<Deadline> {
        let pace = self.paces.item.filter(|_| self.is_starved())?;
        let (received, patience) = (self.conn.wire.received(), self.conn.shared.timeouts.request);
        Some((pace.stalled(received, patience).min(pace.slow(received, patience)), Overdue::Item))
    }

    fn stream_deadline(&self) -> Option<Deadline> {
        let (wire, patience) = (&self.conn.wire, self.conn.shared.timeouts.stream_stall);
        if self.streams.is_empty() {
            return None;
        }
        // Where the client has taken everything, the streams have nothing for it yet. Whether one that has ended its sending
        // is there at all, only something that is sent to it would show.
        if wire.is_all_sent() {
            let silent_since = wire.sent().last.max(wire.received().last);
            return wire.has_ended().then_some((silent_since + patience, Overdue::Gone));
        }
        Some((self.streams.last_step().max(wire.sent().last) + patience, Overdue::Streams))
    }

    fn credit_deadline(&self) -> Option<Deadline> {
        let since = self.streams.without_credit_since()?;
        Some((since + self.conn.shared.timeouts.stream_stall, Overdue::Credit))
    }

    fn memory_deadline(&self) -> Option<Deadline> {
        let starving = self.conn.starving.as_ref()?;
        // A request that cannot be read is held back by the connection itself.
        (starving.use_for == UseFor::Output).then_some((starving.since + MEMORY_PATIENCE, Overdue::Memory))
    }

    fn next_look(&self) -> Option<Deadline> {
        let starving = self.conn.starving.as_ref()?;
        (starving.use_for != UseFor::Output).then_some((starving.seen + LOOK_EVERY, Overdue::Look))
    }

    fn quiet_deadline(&self) -> Deadline {
        let (wire, sent) = (&self.conn.wire, self.conn.wire.sent());
        let idle = (sent.last.max(wire.received().last) + self.conn.shared.timeouts.idle, Overdue::Idle);
        let is_quiet = !self.muted && wire.is_all_sent() && sent.bytes > 0;
        let end = if is_quiet { self.codec.end_of_sending(sent.last) } else { None };
        end.map_or(idle, |end| (end, Overdue::EndOfSending))
    }

    pub(super) async fn deadline_passed(&mut self, overdue: Overdue) -> io::Result<()> {
        debug!(?overdue, "deadline passed");
        match overdue {
            Overdue::Refusal => self.say_refusal(),
            Overdue::Introduction => self.close_with(self.codec.not_introduced()),
            Overdue::Item => {
                let message = "the request did not arrive in time";
                self.close_with(Some(ErrorReply::new(ErrorCode::Malformed, message)));
            }
            Overdue::Output | Overdue::Gone => self.resetting = true,
            Overdue::Streams if self.owes_the_rest() => self.resetting = true,
            Overdue::Streams => self.end_streams(&stalled()),
            Overdue::Crowding => self.end_crowding(),
            Overdue::Credit => self.end_streams_without_credit(),
            Overdue::Expired => self.close_with(Some(expired())),
            Overdue::Lease => self.leases.expire(Instant::now()),
            Overdue::Memory => self.refuse_starving(),
            Overdue::Look => self.look(),
            Overdue::EndOfSending => {
                self.muted = true;
                self.codec.mute();
                self.conn.end_sending().await?;
            }
            Overdue::Idle => self.closing = true,
        }
        Ok(())
    }

    fn close_with(&mut self, error: Option<ErrorReply>) {
        let own = error.filter(|_| !self.muted).map(|error| self.codec.farewell(error));
        self.close(own);
    }

    fn end_streams_without_credit(&mut self) {
        let patience = self.conn.shared.timeouts.stream_stall;
        let Some(since) = Instant::now().checked_sub(patience) else { return };
        for due in self.streams.end_without_credit_since(since) {
            self.refuse(due, uncredited());
        }
    }

    /// Whose request will never arrive in full leaves the queue for memory, in which others wait behind it.
    fn look(&mut self) {
        let wire = &self.conn.wire;
        if wire.is_given_up(self.codec.least_item_len(&wire.input.bytes)) {
            self.conn.starving = None;
            self.closing = true;
        } else if let Some(starving) = &mut self.conn.starving {
            starving.seen = Instant::now();
        }
    }

    /// Refuses what waits for memory: a read that was taken, or the stream whose turn it is.
    fn refuse_starving(&mut self) {
        self.conn.starving = None;
        let error = self.no_memory();
        match self.waiting.take().map(|taken| taken.asked) {
            Some(Asked::Read(due, _) | Asked::OfSnapshot(due, ..) | Asked::Resp(due, _)) => self.refuse(due, error),
            _ if self.owes_the_rest() => self.resetting = true,
            _ => {
                if let Some(stream) = self.streams.next() {
                    self.refuse(stream.due, error);
                }
            }
        }
    }

    /// Whether a reply is under way that no error can end: it began with how much it is, and an error would be a part of it.
    fn owes_the_rest(&self) -> bool {
        self.streams.runs().any(Run::is_told_whole)
    }
}

/// The one that is due first.
fn sooner(one: Option<Deadline>, other: Option<Deadline>) -> Option<Deadline> {
    match (one, other) {
        (Some(first), Some(then)) if then.0 < first.0 => other,
        (None, _) => other,
        _ => one,
    }
}

fn stalled() -> ErrorReply {
    ErrorReply::new(ErrorCode::SnapshotExpired, "the client took nothing for too long; the stream was given up")
}

fn uncredited() -> ErrorReply {
    ErrorReply::new(ErrorCode::SnapshotExpired, "the client gave no CREDIT for too long; the stream was given up")
}
