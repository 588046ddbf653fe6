//! What a session has answered, gathered in plain numbers and counted once a turn: a counter that threads share costs too
//! much to be touched for every read.

use std::io;

use boltkv_protocol::{ErrorCode, ErrorReply, Reply, SnapshotRead};
use bytes::Bytes;
use tokio::time::Instant;

use super::codec::{Asked, Codec, Due};
use super::flow::Flow;
use super::serve::Session;
use super::socket::Socket;
use crate::clients::{Client, Done};
use crate::counters::{Command, Counters, Kind, Place};
use crate::shared::Shared;

/// Different answers that are gathered; with one more, what there is goes to the counters. In a turn there are few.
const MOST: usize = 4;

/// What a reply has to know of its request for being counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Noted {
    command: Command,
    kind: Kind,
    /// When its last byte was read off the socket; `None` for what has not been noted yet.
    arrived: Option<Instant>,
}

/// What was answered and is not counted yet.
#[derive(Debug, Default)]
pub(super) struct Tally {
    answers: [Option<(Place, u32)>; MOST],
    /// Reads among them, and the last one: a turn takes what arrived together, so they have taken equally long.
    reads: u32,
    last_read: Option<Place>,
    /// The last answer, and how many there were, of which is not told yet who looks after the server.
    last: Option<Command>,
    answered: u64,
    /// What of the connection's bytes has been counted.
    received: u64,
    sent: u64,
    /// The time of this turn, once somebody has asked for it.
    now: Option<Instant>,
    /// When the requests of this turn had been taken, and its reads answered.
    answered_at: Option<Instant>,
}

impl Default for Noted {
    fn default() -> Self {
        Self { command: Command::OTHER, kind: Kind::Read, arrived: None }
    }
}

impl<T, O> Asked<T, O> {
    /// Notes what was asked for, and when that had arrived.
    pub(super) fn note(&mut self, arrived: Instant) {
        let (due, command, kind) = match self {
            Self::Read(due, request) => (due, Command::of_read(request), Kind::Read),
            Self::Write(due, request) => (due, Command::of_write(request), Kind::Write),
            Self::Stream(due, request) => (due, Command::of_stream(request), Kind::Stream),
            Self::Snapshot(due, _) => (due, Command::SNAPSHOT, Kind::Read),
            Self::Operator(due, request) => (due, Command::of_op(request.op()), Kind::Read),
            Self::Resp(due, work) => (due, Command::of_resp(work.command()), work.kind().into()),
            Self::OfSnapshot(due, _, read) => {
                let kind = match read {
                    SnapshotRead::Read(_) => Kind::Read,
                    SnapshotRead::Stream(_) => Kind::Stream,
                };
                (due, Command::of_snapshot_read(read), kind)
            }
            Self::Refused(..)
            | Self::Introduce(..)
            | Self::Cancel(_)
            | Self::Credit { .. }
            | Self::Own(_)
            | Self::Close(_)
            | Self::Nothing => return,
        };
        due.noted = Noted { command, kind, arrived: Some(arrived) };
    }
}

impl Tally {
    /// Counts a request that was answered so.
    fn answered(&mut self, noted: Noted, error: Option<ErrorCode>, shared: &Shared, client: &Client) {
        let place = Place::new(noted.command, error);
        self.add(place, &shared.counters);
        match (noted.kind, noted.arrived) {
            (Kind::Read, _) => {
                self.reads += 1;
                self.last_read = Some(place);
            }
            (kind, Some(arrived)) => {
                let now = *self.now.get_or_insert_with(Instant::now);
                let took = now.saturating_duration_since(arrived);
                shared.counters.shard().took(kind, took, 1);
                // A watch is there to take long.
                if shared.slow_log.is_slow(took) && noted.command != Command::WATCH {
                    shared.slow_log.note(place.slow(1, took), client);
                }
            }
            (_, None) => {}
        }
    }

    /// The requests of this turn have been taken. Answers the time.
    pub(super) fn requests_end(&mut self) -> Instant {
        *self.answered_at.insert(Instant::now())
    }

    fn add(&mut self, place: Place, counters: &Counters) {
        self.answered += 1;
        self.last = Some(place.command());
        for answers in &mut self.answers {
            match answers {
                Some((same, count)) if *same == place => {
                    *count += 1;
                    return;
                }
                Some(_) => {}
                None => {
                    *answers = Some((place, 1));
                    return;
                }
            }
        }
        self.count_answers(counters);
        self.answers[0] = Some((place, 1));
    }

    fn count_answers(&mut self, counters: &Counters) {
        let shard = counters.shard();
        for (place, count) in self.answers.iter_mut().map_while(Option::take) {
            shard.answered(place, count);
        }
    }

    /// Ends a turn: counts all that was gathered in it. `received`: what has come.
    fn end_turn(&mut self, shared: &Shared, client: &Client, received: Flow) {
        let counters = &shared.counters;
        if self.answers[0].is_some() {
            self.count_answers(counters);
        }
        let own = counters.shard();
        if self.reads > 0 {
            let answered = self.answered_at.unwrap_or_else(Instant::now);
            let time = answered.saturating_duration_since(received.last);
            let reads = std::mem::take(&mut self.reads);
            own.took(Kind::Read, time, reads);
            if shared.slow_log.is_slow(time)
                && let Some(place) = self.last_read
            {
                shared.slow_log.note(place.slow(reads, time), client);
            }
        }
        if received.bytes > self.received {
            own.received(received.bytes - self.received);
            self.received = received.bytes;
        }
        (self.now, self.answered_at) = (None, None);
    }

    /// What whoever looks after the server is to know.
    fn done(&mut self, in_flight: usize, received: Flow) -> Done {
        let answered = std::mem::take(&mut self.answered);
        Done { answered, last: self.last, in_flight, received: received.bytes, heard: received.last }
    }
}

impl<C: Codec, S: Socket> Session<C, S> {
    /// Takes the writer's answers that are there.
    pub(super) fn take_answers(&mut self) {
        while let Some(answered) = self.conn.answer() {
            self.answered(answered);
        }
    }

    /// Answers with an error.
    pub(super) fn refuse(&mut self, due: Due<C::Tag>, error: ErrorReply) {
        let reply = Reply::<Bytes>::Error(error);
        self.tell(due, &reply);
        self.codec.reply(due, &reply, &mut self.conn.wire.output);
    }

    /// Counts a request whose reply is ready.
    pub(super) fn tell<B>(&mut self, due: Due<C::Tag>, reply: &Reply<B>) {
        let error = if let Reply::Error(error) = reply { Some(error.code) } else { None };
        self.tell_result(due, error);
    }

    /// Counts a request that was answered, in one part or with its last one, so: with success, or with this error.
    pub(super) fn tell_result(&mut self, due: Due<C::Tag>, error: Option<ErrorCode>) {
        self.tally.answered(due.noted, error, &self.conn.shared, &self.conn.listed);
    }

    /// Counts what the dialect has answered itself.
    pub(super) fn tell_own(&mut self, command: Option<Command>, error: Option<ErrorCode>) {
        if let Some(command) = command {
            self.tally.add(Place::new(command, error), &self.conn.shared.counters);
        }
    }

    /// Counts all that was gathered.
    pub(super) fn end_turn(&mut self) {
        let in_flight = self.in_flight();
        let (wire, shared): (_, &Shared) = (&self.conn.wire, &self.conn.shared);
        self.tally.end_turn(shared, &self.conn.listed, wire.received());
        self.conn.listed.note(&self.tally.done(in_flight, wire.received()));
        self.count_sent();
    }

    /// Sends what the peer takes at once, and counts it. `true` if it took something.
    ///
    /// # Errors
    /// The socket's.
    pub(super) async fn flush(&mut self) -> io::Result<bool> {
        let sent = self.conn.wire.flush().await?;
        if sent {
            self.count_sent();
        }
        Ok(sent)
    }

    /// Counts what the client has taken, which most often is after the turn: replies leave when all have had theirs.
    pub(super) fn count_sent(&mut self) {
        let sent = self.conn.wire.sent().bytes;
        if sent > self.tally.sent {
            self.conn.shared.counters.shard().sent(sent - self.tally.sent);
            self.conn.listed.has_taken(sent);
            self.tally.sent = sent;
        }
    }
}
