//! What is said between MULTI and EXEC.

use boltkv_protocol::{ErrorCode, ErrorReply, MAX_TXN_PARTS, Reply};
use bytes::Bytes;
use tokio::time::Instant;

use crate::commands::{Call, Database};
use crate::session::multi::{QueueMemory, QueueRoom};

/// An EXEC with a SELECT in it, of which its reply tells whether it was done.
#[derive(Debug)]
pub(super) struct Deciding {
    id: u32,
    if_done: Database,
    otherwise: Database,
}

impl Deciding {
    /// The one of this id, if it makes a difference.
    pub(super) fn between(id: u32, if_done: Database, otherwise: Database) -> Option<Self> {
        (if_done != otherwise).then_some(Self { id, if_done, otherwise })
    }

    pub(super) const fn is_of(&self, id: u32) -> bool {
        self.id == id
    }

    /// The client's database, now that it is known whether it was done.
    pub(super) const fn database(&self, is_done: bool) -> Database {
        if is_done { self.if_done } else { self.otherwise }
    }
}

/// Whether a transaction was done that this is the reply to: an array, with something in it.
pub(super) fn was_done<B: AsRef<[u8]>>(reply: &Reply<B>) -> bool {
    let was_done = |bytes: &[u8]| matches!(bytes, [b'*', b'1'..=b'9', ..]);
    matches!(reply, Reply::Value(bytes) if was_done(bytes.as_ref()))
}

/// Commands that concern the connection or the server, and need it for their answer, of one transaction: they are answered
/// together.
const MOST_OF_SESSION: usize = 64;

/// Commands that wait for EXEC.
#[derive(Debug)]
pub(super) struct RespMulti {
    calls: Vec<Call>,
    of_session: usize,
    kept: usize,
    memory: QueueMemory,
    /// The database before.
    pub(super) db: Database,
    /// One was refused, so none will be done; nothing is kept.
    pub(super) refused: bool,
}

impl RespMulti {
    pub(super) fn new(db: Database) -> Self {
        Self { calls: Vec::new(), of_session: 0, kept: 0, memory: QueueMemory::default(), db, refused: false }
    }

    pub(super) const fn is_leased(&self) -> bool {
        self.memory.is_leased()
    }

    pub(super) fn refuse(&mut self) {
        *self = Self { refused: true, ..Self::new(self.db) };
    }

    pub(super) fn queue(&mut self, call: Call, now: Instant, room: &QueueRoom) -> Result<(), ErrorReply> {
        if self.refused {
            return Ok(());
        }
        if self.calls.len() >= MAX_TXN_PARTS {
            let message = format!("a transaction has at most {MAX_TXN_PARTS} commands");
            return Err(ErrorReply::new(ErrorCode::TxnTooLarge, message));
        }
        self.of_session += usize::from(call.needs_connection());
        if self.of_session > MOST_OF_SESSION {
            let message = format!("a transaction has at most {MOST_OF_SESSION} commands that concern the connection");
            return Err(ErrorReply::new(ErrorCode::TxnTooLarge, message));
        }
        self.kept += size_of::<Call>() + call.args.kept();
        if self.kept > room.max_frame {
            let message = format!("a transaction has at most {} bytes (--max-frame)", room.max_frame);
            return Err(ErrorReply::new(ErrorCode::FrameTooLarge, message));
        }
        self.memory.hold(self.kept, now, room)?;
        // The buffer that it came in has memory of its own, which others wait for.
        let args = call.args.held(|bytes| Bytes::copy_from_slice(&bytes));
        self.calls.push(Call { args, ..call });
        Ok(())
    }

    /// All of them, the first one holding the memory of all.
    pub(super) fn into_calls(self) -> Vec<Call> {
        let Self { mut calls, memory, .. } = self;
        if let (Some(lease), Some(first)) = (memory.into_lease(), calls.first_mut()) {
            first.args = first.args.clone().held(|bytes| lease.tie_to(bytes));
        }
        calls
    }
}
