//! What a session answers in steps: begun, taken on in turn, and ended early.

use std::sync::Arc;

use boltkv_protocol::{ErrorCode, ErrorReply, HEADER_LEN, Reply, StreamRequest};
use boltkv_storage::Tx;

use super::UseFor;
use super::codec::{Codec, Due, Step};
use super::credit::Credit;
use super::serve::Session;
use super::socket::Socket;
use super::stream::Stream;
use crate::commands::{Run, WatchRun};

/// Room for a reply of a few numbers, in bytes; for one of figures with their names.
const ROOM: usize = 64;
const FIGURES_ROOM: usize = 1024;

impl<C: Codec, S: Socket> Session<C, S> {
    /// Begins to answer in parts, from this state or the newest.
    pub(super) fn begin_stream(&mut self, due: Due<C::Tag>, request: StreamRequest, state: Option<Arc<Tx>>) {
        let most = self.conn.shared.limits.max_streams as usize;
        if self.streams.len() >= most {
            let message = format!("a connection may have {most} streams open");
            return self.refuse(due, ErrorReply::new(ErrorCode::Overloaded, message));
        }
        match self.conn.shared.executor.admit(&self.caller).stream(request, state) {
            Ok(run) => self.begin_run(due, run),
            Err(error) => self.refuse(due, error),
        }
    }

    /// Begins to pass on what something gives in parts.
    pub(super) fn begin_run(&mut self, due: Due<C::Tag>, run: Run) {
        self.streams.keep_turn(Stream { due, run, credit: Credit::new(C::INITIAL_CREDIT) });
        // A short stream is done after its first step.
        self.step_stream();
        if !self.streams.is_empty() {
            self.conn.wire.keep_little_unsent();
        }
    }

    /// Whether a stream that has something could take a step.
    pub(super) fn can_step(&mut self) -> bool {
        !self.streams.is_empty() && self.conn.starving.is_none() && self.conn.wire.has_output_room()
    }

    /// Takes a step of the stream whose turn it is. `true` if another can be taken.
    pub(super) fn step_stream(&mut self) -> bool {
        if !self.can_step() {
            return false;
        }
        let Some(mut stream) = self.streams.next() else { return false };
        let mut room = self.conn.wire.output_room();
        loop {
            let before = self.conn.wire.output.len();
            let step = self.step(&mut stream, room);
            self.count(&mut stream, before);
            match step {
                Ok(Step::More) => self.streams.wait_for_turn(stream),
                Ok(Step::Ended) => self.tell_result(stream.due, None),
                Ok(Step::Failed) => {}
                Ok(Step::Needs(len)) if self.conn.wire.make_output_room(len) => {
                    room = len;
                    continue;
                }
                Ok(Step::Needs(len)) if self.exceeds_memory(len) => self.refuse(stream.due, self.no_memory_of(len)),
                Ok(Step::Needs(len)) => {
                    self.streams.keep_turn(stream);
                    self.conn.starve(UseFor::Output, self.conn.wire.output.len() + len);
                    return false;
                }
                Err(error) => self.refuse(stream.due, error),
            }
            return self.streams.have_ready();
        }
    }

    /// Takes the frame that a step has written, if it has, off the stream's credit.
    fn count(&self, stream: &mut Stream<C::Tag>, before: usize) {
        let wire = &self.conn.wire;
        let written = wire.output.len().saturating_sub(before);
        if written > 0 {
            stream.credit.take(written.saturating_sub(HEADER_LEN), wire.sent().bytes + wire.output.len() as u64);
        }
    }

    /// Takes a step of a stream, to whose reply at most `room` bytes may be added.
    fn step(&mut self, stream: &mut Stream<C::Tag>, room: usize) -> Result<Step, ErrorReply> {
        match &mut stream.run {
            Run::Scan(run) => self.codec.step(stream.due, run, room, &mut self.conn.wire.output),
            Run::Resp(run) => Ok(self.step_resp(stream.due, run, room)),
            Run::Backup(run) => self.codec.step_backup(stream.due, run, room, &mut self.conn.wire.output),
            Run::Watch(run) => self.tell_of(stream.due, run),
            Run::Shrink(run) => self.relay(stream.due, ROOM, room, || run.take()),
            Run::BucketStat(run) => self.relay(stream.due, FIGURES_ROOM, room, || run.take()),
            Run::Txn(run) => {
                let Some(outcome) = run.step(self.conn.shared.executor.cold())? else { return Ok(Step::More) };
                self.settle(stream.due, outcome);
                Ok(Step::Ended)
            }
        }
    }

    /// Passes on the reply that a thread has made, if it has made one, and if there is room for the `len` bytes that it may
    /// take.
    fn relay(
        &mut self,
        due: Due<C::Tag>,
        len: usize,
        room: usize,
        take: impl FnOnce() -> Result<Option<Reply>, ErrorReply>,
    ) -> Result<Step, ErrorReply> {
        if len > room {
            return Ok(Step::Needs(len));
        }
        let Some(reply) = take()? else { return Ok(Step::More) };
        self.codec.reply(due, &reply, &mut self.conn.wire.output);
        Ok(Step::after(&reply))
    }

    /// Passes on what a watch tells, if it has something. The frame has its memory already.
    fn tell_of(&mut self, due: Due<C::Tag>, run: &mut WatchRun) -> Result<Step, ErrorReply> {
        let Some((reply, memory)) = run.take()? else { return Ok(Step::More) };
        self.conn.wire.hold_output(memory);
        self.codec.reply(due, &reply, &mut self.conn.wire.output);
        Ok(Step::after(&reply))
    }

    /// Ends one because its client asks for it.
    pub(super) fn cancel(&mut self, id: u32) {
        if let Some(due) = self.streams.end(id) {
            self.refuse(due, ErrorReply::new(ErrorCode::Cancelled, "the client cancelled the stream"));
        }
    }

    /// Ends all, for this reason.
    pub(super) fn end_streams(&mut self, error: &ErrorReply) {
        for due in self.streams.end_all() {
            self.refuse(due, error.clone());
        }
    }
}
