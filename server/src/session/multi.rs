//! MULTI: the lines of a text connection that are queued until EXEC has them done as one transaction.
//!
//! What is queued takes memory for as long as the client likes to think: beyond a little it is leased, and has to go on.

use std::sync::Arc;
use std::time::Duration;

use boltkv_protocol::text::{Queued, QueuedAnswers, TextCommand};
use boltkv_protocol::{ErrorCode, ErrorReply, Path, Txn};
use tokio::time::Instant;

use crate::memory::{Lease, Memory, OWN_INPUT};

/// How many bytes a second queued lines have to bring, where they take memory of the server's.
const PACE: usize = 16 * 1024;

/// What queued lines may take.
#[derive(Debug, Clone)]
pub(super) struct QueueRoom {
    pub(super) memory: Arc<Memory>,
    /// The longest frame that the transaction may fill, in bytes.
    pub(super) max_frame: usize,
    /// How long it may take from the first lease on, and a second more for every 16 KiB.
    pub(super) patience: Duration,
}

/// Lines between MULTI and EXEC.
#[derive(Debug)]
pub(super) struct Multi {
    queued: Queued,
    /// The connection's bucket before and after.
    bucket: Path,
    /// A line was refused, so none will be done; nothing is kept.
    refused: bool,
    memory: QueueMemory,
}

/// The memory of what is queued: beyond a little it is the server's.
#[derive(Debug, Default)]
pub(super) struct QueueMemory(Option<(Lease, Instant)>);

impl QueueMemory {
    /// Whether the client is to send on, because what it has sent takes memory that others could use.
    pub(super) const fn is_leased(&self) -> bool {
        self.0.is_some()
    }

    /// Sees to it that there is room for `wanted` bytes.
    pub(super) fn hold(&mut self, wanted: usize, now: Instant, room: &QueueRoom) -> Result<(), ErrorReply> {
        let held = self.0.as_ref().map_or(0, |(lease, _)| lease.bytes());
        if let Some((_, since)) = &self.0
            && now > *since + room.patience + Duration::from_secs((wanted / PACE) as u64)
        {
            return Err(ErrorReply::new(ErrorCode::Malformed, "what came after MULTI came too slowly"));
        }
        if wanted <= held.max(OWN_INPUT) {
            return Ok(());
        }
        let more = room.memory.try_keep(wanted.max(2 * held) - held).or_else(|| room.memory.try_keep(wanted - held));
        let Some(more) = more else {
            let limit = room.memory.limit();
            let message = format!(
                "there is no memory for a longer transaction; all connections together have {limit} bytes (--memory), half of \
                 them for what is kept"
            );
            return Err(ErrorReply::new(ErrorCode::Overloaded, message));
        };
        match &mut self.0 {
            Some((lease, _)) => lease.add(more),
            none => *none = Some((more, now)),
        }
        Ok(())
    }

    /// Hands the memory over, where there is some.
    pub(super) fn into_lease(self) -> Option<Lease> {
        self.0.map(|(lease, _)| lease)
    }
}

impl Multi {
    /// After MULTI, on a connection that is in this bucket.
    pub(super) fn new(bucket: Path, room: &QueueRoom) -> Self {
        Self { queued: Queued::new(room.max_frame), bucket, refused: false, memory: QueueMemory::default() }
    }

    /// Whether the client is to send on, because what it has sent takes memory that others could use.
    pub(super) const fn is_leased(&self) -> bool {
        self.memory.is_leased()
    }

    /// The bucket to which the connection goes back.
    pub(super) fn into_bucket(self) -> Path {
        self.bucket
    }

    /// A line was refused: EXEC will refuse all.
    pub(super) fn refuse(&mut self, room: &QueueRoom) {
        self.refused = true;
        self.queued = Queued::new(room.max_frame);
        self.memory = QueueMemory::default();
    }

    /// Queues a line, or gives back what is not for a transaction.
    pub(super) fn queue(
        &mut self,
        command: TextCommand,
        now: Instant,
        room: &QueueRoom,
    ) -> Result<Option<TextCommand>, ErrorReply> {
        let other = self.queued.add(command)?;
        if self.refused {
            self.queued = Queued::new(room.max_frame);
        }
        self.memory.hold(self.queued.kept(), now, room)?;
        Ok(other)
    }

    /// The transaction, in its memory; the connection's bucket; and how what comes of it is printed. An error where a line
    /// was refused.
    pub(super) fn exec(self) -> (Path, Result<(Txn, QueuedAnswers), ErrorReply>) {
        if self.refused {
            let message = "a line after MULTI was refused: nothing was done";
            return (self.bucket, Err(ErrorReply::new(ErrorCode::Malformed, message)));
        }
        let (txn, answers) = self.queued.into_txn();
        let txn = match self.memory.into_lease() {
            Some(lease) => txn.held(|bytes| lease.tie_to(bytes)),
            None => txn,
        };
        (self.bucket, Ok((txn, answers)))
    }
}
