//! A session: one loop for all dialects. It takes requests while there is room for their replies, reads on only when it has
//! nothing whole left to take, and closes in good order.
//!
//! Reads are answered where they stand, all of a burst from one snapshot and into one write to the socket. Writes go to the
//! writer and are answered when it has committed; streams go on part by part, in turn.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use boltkv_protocol::{ErrorCode, ErrorReply, ReadRequest};
use fnv::FnvHashMap;
use tokio::time::Instant;
use tracing::debug;

use super::codec::{Asked, Codec, Due};
use super::habits::{Habits, Until};
use super::pace::Paces;
use super::snapshots::Leases;
use super::socket::Socket;
use super::stream::Streams;
use super::tally::Tally;
use super::turn::Turn;
use super::{Connection, Event};
use crate::commands::{ColdReads, Outcome, Reader, Snapshot};
use crate::counters::Command;
use crate::executor::Caller;
use crate::writer::Answered;

/// A connection in a dialect.
pub(crate) struct Session<C: Codec, S> {
    pub(super) conn: Box<Connection<S>>,
    pub(super) codec: C,
    pub(super) caller: Arc<Caller>,
    /// The writes that are not answered yet. (That a client may choose ids which meet in one place of the table costs less than
    /// a write does, as long as it may have a few thousand in flight.)
    pub(super) writes: FnvHashMap<u32, Due<C::Tag>>,
    pub(super) streams: Streams<C::Tag>,
    /// The snapshots that the client holds open.
    pub(super) leases: Leases,
    /// A request that was taken and waits for memory, or for the answers to the writes before it.
    pub(super) waiting: Option<Taken<C>>,
    /// What was taken before its turn: reads whose pages are being brought into memory, or are there now.
    pub(super) ahead: VecDeque<Taken<C>>,
    /// How much had arrived, and whether that was all, when there was nothing whole left to take.
    starved_at: Option<(u64, bool)>,
    pub(super) paces: Paces,
    /// Nothing more is taken; what was taken is answered, then the connection is closed.
    pub(super) closing: bool,
    last_words: Option<C::Own>,
    /// The sending side has ended: nothing is executed any more.
    pub(super) muted: bool,
    /// The connection is to end at once, and the client to notice.
    pub(super) resetting: bool,
    pub(super) habits: Habits,
    /// When a client that is not let in is told so.
    pub(super) answer_at: Option<Instant>,
    /// The same, where the connection goes on, and what it is told; until then nothing is taken.
    pub(super) refusal: Option<(Instant, C::Own)>,
    /// What either is counted under: what has said the wrong token.
    pub(super) refused_as: Option<Command>,
    /// Since when it is waited for a client to say who it is.
    pub(super) unknown_since: Instant,
    /// When the client's token expires.
    pub(super) expires_at: Option<Instant>,
    /// What is counted at the end of a turn.
    pub(super) tally: Tally,
}

/// Something that was read off the input.
pub(super) struct Taken<C: Codec> {
    pub(super) asked: Asked<C::Tag, C::Own>,
    /// The part of the server's memory that it holds.
    pub(super) leased: bool,
}

impl<C: Codec, S: Socket> Session<C, S> {
    pub(crate) fn new(conn: Box<Connection<S>>, codec: C) -> Self {
        conn.listed.says(|said| said.dialect = C::NAME);
        let mut session = Self {
            caller: Arc::new(Caller { asker: codec.asker(), standing: conn.shared.access.newcomer() }),
            codec,
            writes: FnvHashMap::default(),
            streams: Streams::new(),
            leases: Leases::default(),
            waiting: None,
            ahead: VecDeque::new(),
            starved_at: None,
            paces: Paces::default(),
            closing: false,
            last_words: None,
            muted: false,
            habits: Habits::new(&conn.shared),
            tally: Tally::default(),
            refusal: None,
            unknown_since: conn.opened,
            conn,
            resetting: false,
            answer_at: None,
            refused_as: None,
            expires_at: None,
        };
        session.let_in_if_known();
        session
    }

    /// Serves the connection until it ends, or is to be served by other threads.
    ///
    /// # Errors
    /// The socket's.
    pub(super) async fn run(&mut self) -> io::Result<Until> {
        loop {
            let again = self.work();
            // However this turn ends, it is rung then.
            let bell = self.conn.bell.take();
            if self.resetting || self.is_finished() {
                break;
            }
            if self.conn.is_killed() {
                self.conn.ending.come().await;
                self.stop();
                continue;
            }
            if let Some(there) = self.move_over() {
                return Ok(Until::Moved(there));
            }
            let again = self.pass_on(again, bell).await?;
            let (read, deadline, can_step) = (self.wants_bytes(), self.deadline(), self.can_step());
            debug_assert!(again || read || self.waits_for_its_own(), "nothing but a deadline would ever come");
            let event = tokio::select! {
                biased;
                event = self.conn.event(read, deadline.map(|(at, _)| at)) => event?,
                () = std::future::ready(()), if again => continue,
                () = self.streams.ready(), if can_step => continue,
            };
            match (event, deadline) {
                (Event::Answered(answered), _) => self.answered(answered),
                (Event::Stop, _) => self.stop(),
                (Event::Deadline, Some((_, overdue))) => self.deadline_passed(overdue).await?,
                (Event::Progress | Event::Deadline, _) => {}
            }
        }
        if self.resetting {
            self.conn.wire.reset();
            return Ok(Until::Ended);
        }
        let may_speak = self.wait_for_answer().await;
        self.say_last_words();
        self.end_turn();
        if !may_speak {
            self.conn.wire.reset();
            return Ok(Until::Ended);
        }
        self.flush().await?;
        if !self.conn.gives_way() {
            self.conn.close().await;
        }
        self.count_sent();
        Ok(Until::Ended)
    }

    /// Does what can be done without waiting. `true` if it stopped only because the turn of other connections has come.
    fn work(&mut self) -> bool {
        self.take_answers();
        let interrupted = self.take_requests();
        self.do_held();
        self.take_answers();
        let streaming = self.step_stream();
        // A stream's last step may have nothing to tell, and so nothing would wake what it has held up.
        let held_up = !self.is_starved() && self.can_take();
        self.make_input_room();
        self.end_turn();
        interrupted || streaming || held_up
    }

    fn can_take(&mut self) -> bool {
        // Where replies keep their order, one that takes long holds up the rest.
        let in_turn = !C::IN_ORDER || (self.streams.is_empty() && (self.waiting.is_none() || self.writes.is_empty()));
        in_turn
            && !self.closing
            && !self.conn.is_killed()
            && !self.codec.waits()
            && self.refusal.is_none()
            && self.conn.queueing.is_none()
            && self.conn.starving.is_none()
            && self.conn.faulting.is_none()
            // Streams alone do not keep out what ends them.
            && self.in_flight() < (self.conn.shared.limits.max_in_flight as usize).max(self.streams.len() + 1)
            && self.conn.wire.has_output_room()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.writes.len() + self.streams.len()
    }

    /// Whether to read: only where nothing whole is left to take. Where nothing can be taken at all, one more item may
    /// arrive, so that a CANCEL is there to be taken before the streams that it is to end fill the output again.
    pub(super) fn wants_bytes(&self) -> bool {
        self.is_starved() && !self.closing && self.conn.starving.is_none()
    }

    /// Whether there is nothing whole left to take.
    pub(super) fn is_starved(&self) -> bool {
        self.ahead.is_empty() && self.starved_at == Some(self.arrived())
    }

    fn arrived(&self) -> (u64, bool) {
        (self.conn.wire.received().bytes, self.conn.wire.has_ended())
    }

    fn is_finished(&self) -> bool {
        let ended = self.conn.wire.has_ended() && self.is_starved() && self.waiting.is_none();
        (self.closing || ended && self.refusal.is_none()) && self.in_flight() == 0 && self.conn.queueing.is_none()
    }

    /// Takes what has arrived. `true` if it stopped for others to have their turn.
    fn take_requests(&mut self) -> bool {
        let (shared, snapshot) = (Arc::clone(&self.conn.shared), Snapshot::default());
        let mut reader = shared.executor.reader(&snapshot);
        let is_wary = shared.executor.cold().is_wary();
        let (mut turn, mut over) = (Turn::new(), false);
        while self.can_take() {
            if turn.is_over() {
                over = true;
                break;
            }
            let taken = match self.waiting.take().or_else(|| self.next_ahead()) {
                None => {
                    let Some(taken) = self.take() else {
                        self.starved_at = Some(self.arrived());
                        break;
                    };
                    if is_wary { self.put_aside_if_cold(taken, &mut reader) } else { Some(taken) }
                }
                taken => taken,
            };
            let Some(taken) = taken else { break };
            turn.count(&taken.asked);
            self.execute(taken, &mut reader);
        }
        self.habits.count(turn.taken(), over);
        if turn.taken() > 0 {
            let now = self.tally.requests_end();
            if !is_wary && turn.seems_to_have_waited(now.into_std()) {
                shared.executor.cold().suspect();
            }
        }
        over
    }

    pub(super) fn take(&mut self) -> Option<Taken<C>> {
        let wire = &mut self.conn.wire;
        let was_leased = wire.input.is_leased();
        let (arrived, ended) = (wire.received().last, wire.has_ended());
        let mut asked = self.codec.decode(&mut wire.input, arrived, ended)?;
        asked.note(arrived);
        let leased = was_leased && !wire.input.is_leased();
        self.paces.item = None;
        if asked.due().is_some() {
            debug!(kind = asked.name(), "request");
        }
        Some(Taken { asked, leased })
    }

    fn execute(&mut self, taken: Taken<C>, reader: &mut Reader<'_>) {
        let id = match &taken.asked {
            Asked::Own(own) => C::id_of(own),
            asked => asked.due().map(|due| due.id),
        };
        if self.muted && !matches!(taken.asked, Asked::Nothing | Asked::Close(None)) {
            debug!("resetting: a request came after the end of sending");
            self.resetting = !self.conn.wire.has_ended();
            self.closing = true;
            return;
        }
        if let Some(id) = id.filter(|id| self.writes.contains_key(id) || self.streams.contains(*id)) {
            let message = format!("id {id} is still in use");
            let own = self.codec.farewell(ErrorReply::new(ErrorCode::Malformed, message));
            return self.close(Some(own));
        }
        match self.permitted(taken.asked) {
            Asked::Nothing => {}
            Asked::Close(last_words) => self.close(last_words),
            Asked::Write(due, request) => {
                self.writes.insert(due.id, due);
                self.conn.submit(due.id, &self.caller, request);
            }
            Asked::Resp(due, work) if self.is_for_the_writer(&work) => {
                self.writes.insert(due.id, due);
                self.conn.submit_resp(due.id, &self.caller, *work);
            }
            asked if C::IN_ORDER && !self.writes.is_empty() => {
                self.waiting = Some(Taken { asked, leased: taken.leased });
            }
            Asked::Read(due, request) => self.read(due, request, taken.leased, reader),
            Asked::Resp(due, work) => self.answer_resp(due, work, taken.leased, reader),
            Asked::Stream(due, request) => self.begin_stream(due, request, None),
            Asked::Snapshot(due, request) => self.snapshot(due, request),
            Asked::OfSnapshot(due, id, read) => self.read_of_snapshot(due, id, read, taken.leased),
            Asked::Cancel(id) => self.cancel(id),
            Asked::Credit { stream, bytes } => self.streams.give_credit(stream, bytes),
            Asked::Operator(due, request) => self.operate(due, request),
            Asked::Refused(due, error) => self.refuse(due, error),
            Asked::Introduce(own, secret) => self.introduce(own, &secret, reader),
            Asked::Own(own) => self.answer_own(own, reader),
        }
    }

    pub(super) fn answer_own(&mut self, own: C::Own, reader: &mut Reader<'_>) {
        let command = self.refused_as.take().or_else(|| C::command(&own));
        let answered = self.codec.answer(own, &self.conn.shared, reader, &mut self.conn.wire.output);
        self.tell_own(command, answered.err());
    }

    fn read(&mut self, due: Due<C::Tag>, request: ReadRequest, leased: bool, reader: &mut Reader<'_>) {
        let reply = reader.answer(&request);
        if self.give(due, &reply, leased) {
            self.wait_for_memory(Asked::Read(due, request), leased);
        }
    }

    pub(super) fn answered(&mut self, (id, outcome): Answered) {
        let Some(due) = self.writes.remove(&id) else { return };
        self.tell_result(due, outcome.error());
        self.settle(due, outcome);
        if self.writes.is_empty() {
            self.writes = FnvHashMap::default();
            self.conn.all_answered();
        }
    }

    /// Writes a reply that has its memory already.
    pub(super) fn settle(&mut self, due: Due<C::Tag>, outcome: Outcome) {
        let Outcome { reply, lease, gaps, .. } = outcome;
        let reply = match gaps {
            Some(gaps) => self.fill(&reply, &gaps),
            None => reply,
        };
        if let Some(lease) = lease {
            self.conn.wire.lease_output(lease);
        }
        self.codec.reply(due, &reply, &mut self.conn.wire.output);
    }

    /// Closes the connection with these last words, after the writes that it has sent are answered.
    pub(super) fn close(&mut self, last_words: Option<C::Own>) {
        self.say_refusal();
        self.end_streams(&ErrorReply::new(ErrorCode::Cancelled, "the connection is being closed"));
        self.leases.clear();
        self.last_words = last_words;
        self.closing = true;
    }

    /// The server stops: streams end, and what has arrived and was not taken will be refused.
    fn stop(&mut self) {
        self.say_refusal();
        self.closing = true;
        self.conn.starving = None;
        self.conn.faulting = None;
        self.leases.clear();
        self.end_streams(&self.ending());
    }

    /// All that was taken is answered.
    fn say_last_words(&mut self) {
        if self.conn.ending.has_come() && !self.muted {
            self.refuse_the_rest();
        }
        if let Some(own) = self.last_words.take() {
            self.say(own);
        }
    }

    fn refuse_the_rest(&mut self) {
        while self.conn.wire.has_output_room()
            && let Some(taken) = self.waiting.take().or_else(|| self.next_ahead()).or_else(|| self.take())
        {
            match taken.asked {
                Asked::Read(due, _)
                | Asked::Write(due, _)
                | Asked::Stream(due, _)
                | Asked::Snapshot(due, _)
                | Asked::OfSnapshot(due, ..)
                | Asked::Resp(due, _)
                | Asked::Operator(due, _)
                | Asked::Refused(due, _) => self.refuse(due, self.ending()),
                Asked::Own(own) | Asked::Introduce(own, _) => {
                    let error = self.ending();
                    self.tell_own(C::command(&own), Some(error.code));
                    self.codec.refuse(&own, error, &mut self.conn.wire.output);
                }
                Asked::Cancel(_) | Asked::Credit { .. } | Asked::Nothing => {}
                Asked::Close(_) => return,
            }
        }
    }
}
