//! The results of a transaction as they come: within one frame, and in memory of the server's budget.
//!
//! Nobody waits for that memory, for the writer would wait with them: where there is none, the transaction is not done.

use std::sync::Arc;

use boltkv_protocol::{EncodeError, Entry, ErrorCode, ErrorReply, Reply, TxnResultsWriter};

use super::resp::{Gaps, Scans};
use crate::memory::{Lease, Memory};

/// Results that take no more than this take no lease, as no other short reply does.
const SHORT: usize = 128;

/// What replies may take, and what is kept for those that go on in another reply.
#[derive(Debug, Clone)]
pub(crate) struct ReplyRoom {
    memory: Arc<Memory>,
    scans: Arc<Scans>,
    /// The longest frame.
    max_frame: usize,
}

/// What a request has come to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) reply: Reply,
    /// The memory that the reply takes, also when it is written.
    pub(crate) lease: Option<Lease>,
    /// What it was refused with, where the reply says that in a dialect's own words.
    pub(crate) failed: Option<ErrorCode>,
    /// What the reply lacks, and its connection answers.
    pub(crate) gaps: Option<Box<Gaps>>,
}

impl Outcome {
    /// What it was refused with, if it was.
    pub(crate) const fn error(&self) -> Option<ErrorCode> {
        match &self.reply {
            Reply::Error(error) => Some(error.code),
            _ => self.failed,
        }
    }
}

impl From<Reply> for Outcome {
    fn from(reply: Reply) -> Self {
        Self { reply, lease: None, failed: None, gaps: None }
    }
}

impl ReplyRoom {
    /// Replies in frames of at most `max_frame` bytes, with memory of this budget.
    pub(crate) fn new(memory: Arc<Memory>, max_frame: usize) -> Self {
        Self { memory, scans: Arc::default(), max_frame }
    }

    /// Where scans go on that their clients know by a number.
    pub(super) fn scans(&self) -> &Scans {
        &self.scans
    }

    /// The longest frame that a reply can have, in bytes.
    pub(crate) const fn max_frame(&self) -> usize {
        self.max_frame
    }

    /// Takes `bytes` of the memory that all replies share, if they are there.
    pub(super) fn try_take(&self, bytes: usize) -> Option<Lease> {
        self.memory.try_take(bytes)
    }

    /// The same of a share of it.
    pub(super) fn try_take_of(&self, share: &Memory, bytes: usize) -> Option<Lease> {
        self.memory.try_take_of(share, bytes)
    }

    /// The same for what is kept for as long as a client likes.
    pub(super) fn try_keep(&self, bytes: usize) -> Option<Lease> {
        self.memory.try_keep(bytes)
    }

    /// What is said where there is none for `what`.
    pub(super) fn no_memory(&self, what: &str) -> ErrorReply {
        let limit = self.memory.limit();
        let message = format!("there is no memory for {what}; all connections together have {limit} bytes (--memory)");
        ErrorReply::new(ErrorCode::Overloaded, message)
    }
}

/// Results that are being collected.
#[derive(Debug)]
pub(super) struct Results {
    writer: TxnResultsWriter,
    room: ReplyRoom,
    lease: Option<Lease>,
    /// How many bytes of a written reply one byte of a result becomes at most.
    growth: usize,
}

impl Results {
    pub(super) fn new(room: ReplyRoom, growth: usize) -> Self {
        Self { writer: TxnResultsWriter::default(), room, lease: None, growth }
    }

    /// How many bytes there are.
    pub(super) fn len(&self) -> usize {
        self.writer.frame_len()
    }

    pub(super) const fn max_frame(&self) -> usize {
        self.room.max_frame
    }

    /// Adds a whole result.
    pub(super) fn push<B: AsRef<[u8]>>(&mut self, reply: &Reply<B>) -> Result<(), ErrorReply> {
        // All others are short: what they take is looked at when it is there.
        if let Reply::Value(value) = reply {
            self.reserve(value.as_ref().len())?;
        }
        self.writer.push(reply).map_err(|error| unwritable(&error))?;
        self.reserve(0)
    }

    pub(super) fn begin_scan(&mut self) -> Result<(), ErrorReply> {
        self.writer.begin_scan();
        self.reserve(0)
    }

    pub(super) fn push_entry(&mut self, entry: &Entry<&[u8]>) -> Result<(), ErrorReply> {
        self.reserve(entry.key.len() + entry.value.len())?;
        self.writer.push_entry(entry).map_err(|error| unwritable(&error))?;
        self.reserve(0)
    }

    pub(super) fn end_scan(&mut self) -> Result<(), ErrorReply> {
        self.writer.end_scan().map_err(|error| unwritable(&error))
    }

    /// Sees to it that there is room for `more` bytes.
    fn reserve(&mut self, more: usize) -> Result<(), ErrorReply> {
        let (frame, limit) = (self.writer.frame_len() + more, self.room.max_frame);
        if frame > limit {
            let message = format!("the results do not fit one frame of {limit} bytes");
            return Err(ErrorReply::new(ErrorCode::FrameTooLarge, message));
        }
        let wanted = self.growth.saturating_mul(self.writer.kept() + more);
        let leased = self.lease.as_ref().map_or(0, Lease::bytes);
        if wanted <= leased.max(SHORT) {
            return Ok(());
        }
        // Doubled, as the bytes' own room is.
        let doubled = wanted.max(2 * leased) - leased;
        let lease = self.room.try_take(doubled).or_else(|| self.room.try_take(wanted - leased));
        let lease = lease.ok_or_else(|| self.room.no_memory("the transaction's results"))?;
        match &mut self.lease {
            Some(held) => held.add(lease),
            none => *none = Some(lease),
        }
        Ok(())
    }

    /// All that there is, to be finished.
    pub(super) fn take(&mut self) -> Self {
        let empty = Self::new(self.room.clone(), self.growth);
        std::mem::replace(self, empty)
    }

    /// The reply of transaction `txid`.
    pub(super) fn finish(self, txid: u64) -> Outcome {
        Outcome { reply: self.writer.finish(txid), lease: self.lease, failed: None, gaps: None }
    }
}

fn unwritable(error: &EncodeError) -> ErrorReply {
    ErrorReply::new(ErrorCode::FrameTooLarge, error.to_string())
}
