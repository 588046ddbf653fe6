//! Memory for what is large: an item that is to be read, or a reply that is to be written.

use boltkv_protocol::{ErrorCode, ErrorReply, Reply};

use super::UseFor;
use super::codec::{Asked, Codec, Due};
use super::serve::{Session, Taken};
use super::socket::Socket;

impl<C: Codec, S: Socket> Session<C, S> {
    /// Gives the answer to a read, whose request holds memory or not. `true` if it is to wait for memory of its own.
    pub(super) fn give(&mut self, due: Due<C::Tag>, reply: &Reply<&[u8]>, leased: bool) -> bool {
        let len = self.codec.reply_len(due, reply);
        if self.conn.wire.make_output_room(len) {
            self.tell(due, reply);
            self.codec.reply(due, reply, &mut self.conn.wire.output);
        } else if leased || self.exceeds_memory(len) {
            self.refuse(due, self.no_memory_of(len));
        } else {
            self.conn.starve(UseFor::Output, self.conn.wire.output.len() + len);
            return true;
        }
        false
    }

    /// Puts a request back that waits for memory.
    pub(super) fn wait_for_memory(&mut self, asked: Asked<C::Tag, C::Own>, leased: bool) {
        self.waiting = Some(Taken { asked, leased });
    }

    /// An item that is longer than a connection's own buffer is read only once there is memory for all of it.
    pub(super) fn make_input_room(&mut self) {
        if !self.wants_bytes() || self.conn.wire.has_ended() {
            return;
        }
        let len = self.codec.item_len(&self.conn.wire.input.bytes).unwrap_or(0);
        if self.conn.wire.make_input_room(len) {
            return;
        }
        if self.conn.wire.input.is_leased() {
            // It may be that only what this one holds could be had.
            let own = self.codec.farewell(self.no_memory_for("a longer request"));
            self.close(Some(own));
        } else {
            self.conn.starve(UseFor::Input(len), len);
        }
    }

    pub(super) fn exceeds_memory(&self, len: usize) -> bool {
        self.conn.wire.output.len() + len > self.conn.shared.memory.limit()
    }

    pub(super) fn no_memory(&self) -> ErrorReply {
        self.no_memory_for("the reply")
    }

    /// What is said where there is no memory for a reply of `len` bytes: that it may be tried later, if it ever can have it.
    pub(super) fn no_memory_of(&self, len: usize) -> ErrorReply {
        let limit = self.conn.shared.memory.limit();
        if len <= limit {
            return self.no_memory();
        }
        let message = format!("the reply takes {len} bytes; all connections together have {limit} (--memory)");
        ErrorReply::new(ErrorCode::FrameTooLarge, message)
    }

    fn no_memory_for(&self, what: &str) -> ErrorReply {
        no_memory_for(what, self.conn.shared.memory.limit())
    }
}

/// What is said where there is no memory for something, of which there is so much.
pub(super) fn no_memory_for(what: &str, limit: usize) -> ErrorReply {
    let message = format!("there is no memory for {what}; all connections together have {limit} bytes (--memory)");
    ErrorReply::new(ErrorCode::Overloaded, message)
}
