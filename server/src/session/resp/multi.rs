//! What is said between MULTI and EXEC.

use boltkv_protocol::{ErrorCode, ErrorReply, MAX_TXN_PARTS, Reply};
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

    /// The client's database after this reply: replies to what was done are arrays, with something in them.
    pub(super) fn database<B: AsRef<[u8]>>(&self, reply: &Reply<B>) -> Database {
        let was_done = |bytes: &[u8]| matches!(bytes, [b'*', b'1'..=b'9', ..]);
        if matches!(reply, Reply::Value(bytes) if was_done(bytes.as_ref())) { self.if_done } else { self.otherwise }
    }
}

/// Commands that wait for EXEC.
#[derive(Debug)]
pub(super) struct RespMulti {
    calls: Vec<Call>,
    kept: usize,
    memory: QueueMemory,
    /// The database before.
    pub(super) db: Database,
    /// One was refused, so none will be done; nothing is kept.
    pub(super) refused: bool,
}

impl RespMulti {
    pub(super) fn new(db: Database) -> Self {
        Self { calls: Vec::new(), kept: 0, memory: QueueMemory::default(), db, refused: false }
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
        let call = Call { args: call.args.detached(), ..call };
        self.kept += size_of::<Call>() + call.args.kept();
        if self.kept > room.max_frame {
            let message = format!("a transaction has at most {} bytes (--max-frame)", room.max_frame);
            return Err(ErrorReply::new(ErrorCode::FrameTooLarge, message));
        }
        self.memory.hold(self.kept, now, room)?;
        self.calls.push(call);
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
