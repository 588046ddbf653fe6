//! How a session answers what only the Redis dialect asks for.

use boltkv_protocol::Reply;
use boltkv_protocol::resp::{Kind, Version, Writer, write_error_line};
use bytes::BytesMut;
use tracing::warn;

use crate::commands::{Call, Failure, Gaps, Reader, RespRun, RespWork, Run, Stepped, What, too_large};
use crate::memory::OWN_OUTPUT;
use crate::session::UseFor;
use crate::session::codec::{Asked, Asking, Codec, Due, Step};
use crate::session::room::no_memory_for;
use crate::session::serve::Session;
use crate::session::socket::Socket;

impl<C: Codec, S: Socket> Session<C, S> {
    /// Answers what changes nothing.
    pub(in crate::session) fn answer_resp(
        &mut self,
        due: Due<C::Tag>,
        work: Box<RespWork>,
        leased: bool,
        reader: &mut Reader<'_>,
    ) {
        let version = work.version;
        let call = match &work.what {
            What::One(call) => call,
            What::Watch(call, watching) => {
                return match reader.watch_resp(call, watching) {
                    Ok(()) => {
                        self.tell_result(due, None);
                        Writer::new(&mut self.conn.wire.output, version, usize::MAX).ok();
                    }
                    Err(failure) => self.fail(due, &failure),
                };
            }
            What::Exec(_) => return self.begin_exec(due, *work),
        };
        if call.kind() == Kind::Walk {
            return self.answer_walk(due, call, version, reader);
        }
        let out = &mut self.conn.wire.output;
        let (from, mut room) = (out.len(), OWN_OUTPUT);
        loop {
            let out = &mut self.conn.wire.output;
            let mut writer = Writer::new(out, version, room);
            let done = if call.kind() == Kind::Session {
                let asking = Asking { server: &self.conn.shared, standing: &self.caller.standing };
                self.codec.tell(call, &asking, &mut writer)
            } else {
                reader.answer_resp(call, &mut writer)
            };
            let (len, fits) = (writer.len(), writer.fits());
            match done {
                Ok(()) if fits => return self.tell_result(due, None),
                Ok(()) => {
                    out.truncate(from);
                    if self.conn.wire.make_output_room(len) {
                        room = len;
                        continue;
                    }
                    if leased || self.exceeds_memory(len) {
                        return self.refuse(due, self.no_memory_of(len));
                    }
                    self.conn.starve(UseFor::Output, self.conn.wire.output.len() + len);
                    return self.wait_for_memory(Asked::Resp(due, work), leased);
                }
                Err(failure) => {
                    out.truncate(from);
                    return self.fail(due, &failure);
                }
            }
        }
    }

    /// Answers what looks at everything: at once where that is little, otherwise in steps.
    fn answer_walk(&mut self, due: Due<C::Tag>, call: &Call, version: Version, reader: &Reader<'_>) {
        let out = &mut self.conn.wire.output;
        let from = out.len();
        match reader.answer_resp_if_short(call, &mut Writer::new(out, version, OWN_OUTPUT)) {
            Ok(true) => self.tell_result(due, None),
            Ok(false) => match self.conn.shared.executor.admit(&self.caller).walk(call.clone(), version) {
                Ok(run) => self.begin_run(due, run),
                Err(error) => self.refuse(due, error),
            },
            Err(failure) => {
                out.truncate(from);
                self.fail(due, &failure);
            }
        }
    }

    /// Whether the writer is to do it: of what changes nothing only WATCH, as long as there are changes that it is told of.
    pub(in crate::session) fn is_for_the_writer(&self, work: &RespWork) -> bool {
        let is_told = !matches!(work.what, What::Watch(..)) || self.conn.shared.executor.is_writable();
        is_told && work.kind() == Kind::Write
    }

    /// Begins a transaction that changes nothing.
    fn begin_exec(&mut self, due: Due<C::Tag>, work: RespWork) {
        let What::Exec(transaction) = work.what else { return };
        match self.conn.shared.executor.admit(&self.caller).exec(transaction, work.version) {
            Ok(run) => {
                self.codec.decided(due.id, run.is_done());
                self.begin_run(due, Run::Resp(run));
            }
            Err(failure) => self.fail(due, &failure),
        }
    }

    /// A reply with what the connection answers in it. What finds no room, or no memory, is an error in its place.
    pub(in crate::session) fn fill(&mut self, reply: &Reply, gaps: &Gaps) -> Reply {
        let Reply::Value(reply) = reply else { return reply.clone() };
        let conn = &mut *self.conn;
        let asking = Asking { server: &conn.shared, standing: &self.caller.standing };
        let max_frame = conn.shared.limits.max_frame;
        let (mut filled, mut from) = (BytesMut::with_capacity(reply.len()), 0);
        for (at, call) in &gaps.gaps {
            filled.extend_from_slice(reply.get(from..*at).unwrap_or_default());
            from = *at;
            let before = filled.len();
            let mut writer = Writer::new(&mut filled, gaps.version, max_frame.saturating_sub(before));
            let done = self.codec.tell(call, &asking, &mut writer);
            let len = writer.len();
            let refused = match done {
                Err(failure) => Some(failure),
                Ok(()) if !writer.fits() => Some(too_large(max_frame)),
                Ok(()) if len <= OWN_OUTPUT => None,
                Ok(()) => match conn.shared.memory.try_take(len) {
                    Some(lease) => {
                        conn.wire.lease_output(lease);
                        None
                    }
                    None => Some(no_memory_for("the reply", conn.shared.memory.limit()).into()),
                },
            };
            if let Some(failure) = refused {
                filled.truncate(before);
                write_error_line(&failure.line, &mut filled);
            }
        }
        filled.extend_from_slice(reply.get(from..).unwrap_or_default());
        Reply::Value(filled.freeze())
    }

    /// Takes a step of one that is answered in steps.
    pub(in crate::session) fn step_resp(&mut self, due: Due<C::Tag>, run: &mut RespRun, room: usize) -> Step {
        let conn = &mut *self.conn;
        let asking = Asking { server: &conn.shared, standing: &self.caller.standing };
        let mut tell = |call: &Call, out: &mut Writer<'_>| self.codec.tell(call, &asking, out);
        let stepped = run.step(room, &mut conn.wire.output, conn.shared.executor.cold(), &mut tell);
        let stepped = stepped.and_then(|stepped| match stepped {
            Stepped::Needs(len) if run.has_begun() && self.exceeds_memory(len) => Err(self.no_memory_of(len).into()),
            stepped => Ok(stepped),
        });
        match stepped {
            Ok(stepped) => stepped.into(),
            Err(failure) if run.has_begun() => {
                // Whatever is said now would be taken for a part of the reply.
                warn!(error = %failure.line, "a reply cannot be told to its end");
                self.tell_result(due, Some(failure.code));
                self.resetting = true;
                Step::Failed
            }
            Err(failure) => {
                self.fail(due, &failure);
                Step::Failed
            }
        }
    }

    /// Says in this dialect's words what was not done.
    pub(in crate::session) fn fail(&mut self, due: Due<C::Tag>, failure: &Failure) {
        let mut line = BytesMut::new();
        write_error_line(&failure.line, &mut line);
        self.tell_result(due, Some(failure.code));
        self.codec.reply(due, &Reply::Value(line), &mut self.conn.wire.output);
    }
}
