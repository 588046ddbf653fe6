//! What is asked of the server itself: who is connected, and what was slow.

use boltkv_protocol::{ErrorCode, ErrorReply, OperatorRequest, Reply};
use bytes::Bytes;
use tracing::info;

use super::codec::{Codec, Due};
use super::serve::Session;
use super::socket::Socket;
use crate::rows;

impl<C: Codec, S: Socket> Session<C, S> {
    /// Does what an operator asks for.
    pub(super) fn operate(&mut self, due: Due<C::Tag>, request: OperatorRequest) {
        let shared = &self.conn.shared;
        let reply: Reply<Bytes> = match request {
            OperatorRequest::ListClients { after } => Reply::Rows(shared.clients.rows(after, C::MOST_OF_ROWS)),
            OperatorRequest::SlowLog { most, before } => {
                Reply::Rows(shared.slow_log.rows(most, before, C::MOST_OF_ROWS))
            }
            OperatorRequest::ResetSlowLog => {
                shared.slow_log.reset();
                Reply::Closed
            }
            OperatorRequest::KillClient { client } if shared.clients.kill(client) => {
                info!(client, by = %self.conn.peer, "a connection is ended");
                Reply::Closed
            }
            OperatorRequest::KillClient { client } => {
                Reply::Error(ErrorReply::new(ErrorCode::KeyNotFound, format!("there is no connection {client}")))
            }
        };
        let len = if let Reply::Rows(rows) = &reply { rows.iter().map(rows::len).sum() } else { 0 };
        if self.conn.wire.make_output_room(len) {
            self.tell(due, &reply);
            self.codec.reply(due, &reply, &mut self.conn.wire.output);
        } else {
            self.refuse(due, self.no_memory_of(len));
        }
    }
}
