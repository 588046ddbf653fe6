//! How a session answers what only the Redis dialect asks for.

use boltkv_protocol::Reply;
use boltkv_protocol::resp::{Kind, Writer, write_error_line};
use bytes::BytesMut;
use tracing::warn;

use crate::commands::{Failure, Reader, RespRun, RespWork, What};
use crate::memory::OWN_OUTPUT;
use crate::session::UseFor;
use crate::session::codec::{Asked, Asking, Codec, Due, Step};
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
        // Whatever else there is goes to the writer.
        let What::One(call) = &work.what else { return };
        if call.kind() == Kind::Walk {
            match self.conn.shared.executor.admit(&self.caller).walk(call.clone(), version) {
                Ok(run) => self.begin_run(due, run),
                Err(error) => self.refuse(due, error),
            }
            return;
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
                        return self.refuse(due, self.no_memory());
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

    /// Takes a step of one that is answered in steps.
    pub(in crate::session) fn step_resp(&mut self, due: Due<C::Tag>, run: &mut RespRun, room: usize) -> Step {
        match run.step(room, &mut self.conn.wire.output) {
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
