//! The one door through which sessions have requests done, whatever their dialect, so that all get the same result.
//!
//! Whoever comes through it says on whose behalf. What a caller may do was looked at before, where sessions take requests.
//! Nothing here knows how a request looked on the wire or how its reply will, and nothing here waits.

use std::sync::Arc;
use std::time::Duration;

use boltkv_protocol::resp::Version;
use boltkv_protocol::{ErrorCode, ErrorReply, Reply, StreamRequest, WriteRequest};
use boltkv_storage::{Db, Tx};

use crate::access::Standing;
use crate::cold::Cold;
use crate::commands::{
    Asker, Call, Clock, Expiration, Failure, NamedSnapshot, Reader, ReplyRoom, RespRun, RespWork, Run, Snapshot,
    Snapshots, Transaction, Turns, Write, earliest, refusal,
};
use crate::health::Health;
use crate::writer::{Pushed, Queue, Ticket};

/// On whose behalf requests are done. That each is allowed to it was looked at before it comes here.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    /// What it has to do with how its requests are done.
    pub(crate) asker: Asker,
    /// Who it is.
    pub(crate) standing: Standing,
}

/// Has requests done on one database.
#[derive(Debug)]
pub(crate) struct Executor {
    db: Db,
    /// The way to the writer; `None` where all writes are refused.
    writer: Option<Queue>,
    health: Arc<Health>,
    cold: Cold,
    room: ReplyRoom,
    turns: Turns,
    snapshots: Snapshots,
    expiry: Expiration,
}

/// The executor, for one caller. Each kind of request has its way in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access<'a> {
    executor: &'a Executor,
    caller: &'a Caller,
}

impl Executor {
    /// An executor that gives no reply for which there is no room.
    #[expect(clippy::too_many_arguments, reason = "they are its fields")]
    pub(crate) const fn new(
        db: Db,
        writer: Option<Queue>,
        health: Arc<Health>,
        cold: Cold,
        room: ReplyRoom,
        turns: Turns,
        snapshots: Snapshots,
        expiry: Expiration,
    ) -> Self {
        Self { db, writer, health, cold, room, turns, snapshots, expiry }
    }

    pub(crate) const fn db(&self) -> &Db {
        &self.db
    }

    /// Whether it was told to refuse all writes.
    pub(crate) const fn is_read_only(&self) -> bool {
        self.writer.is_none()
    }

    /// How many writes wait for the writer, and their bytes.
    pub(crate) fn queue(&self) -> (usize, usize) {
        self.writer.as_ref().map_or((0, 0), Queue::waiting)
    }

    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    /// Who does what takes long, and how much of it.
    pub(crate) const fn turns(&self) -> &Turns {
        &self.turns
    }

    /// For how long the next key to be removed has been due, or no time; nothing where no key has a time, or where that
    /// cannot be read.
    pub(crate) fn expiry_lag(&self) -> Option<Duration> {
        let due = self.db.begin().and_then(|tx| earliest(&tx)).ok().flatten()?;
        Some(Duration::from_millis(self.expiry.clock.now().saturating_sub(due)))
    }

    /// The clock by which keys expire.
    pub(crate) const fn clock(&self) -> &Clock {
        &self.expiry.clock
    }

    pub(crate) const fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    /// Whether reads may have to wait for the disk.
    pub(crate) const fn cold(&self) -> &Cold {
        &self.cold
    }

    /// Why there will be no more writes, where that is known.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.health.failure().or_else(|| self.db.failure())
    }

    /// Whether writes can be done.
    pub(crate) fn is_writable(&self) -> bool {
        !self.is_read_only() && self.failure().is_none()
    }

    /// Who answers reads, all from the one state of `snapshot`. They are the same for whoever asks.
    pub(crate) const fn reader<'a>(&'a self, snapshot: &'a Snapshot) -> Reader<'a> {
        let Self { db, expiry, room, .. } = self;
        Reader::new(db, snapshot, expiry, room)
    }

    /// Lets a caller in.
    pub(crate) const fn admit<'a>(&'a self, caller: &'a Caller) -> Access<'a> {
        Access { executor: self, caller }
    }
}

impl Access<'_> {
    /// Opens a snapshot of the newest state.
    pub(crate) fn open_snapshot(self) -> Result<NamedSnapshot, ErrorReply> {
        self.executor.snapshots.open(&self.executor.db)
    }

    /// Begins what is answered in steps, from this state or the newest.
    pub(crate) fn stream(self, request: StreamRequest, state: Option<Arc<Tx>>) -> Result<Run, ErrorReply> {
        let Executor { db, room, turns, expiry, .. } = self.executor;
        if matches!(request, StreamRequest::Shrink) && self.executor.is_read_only() {
            return Err(takes_no_writes());
        }
        Run::start(db, &expiry.clock, state, request, self.caller.asker.clone(), room, turns)
    }

    /// Begins what the Redis dialect asks for and is answered in steps.
    pub(crate) fn walk(self, call: Call, version: Version) -> Result<Run, ErrorReply> {
        let tx = self.executor.db.begin().map_err(refusal)?;
        Ok(Run::Resp(RespRun::walk(Arc::new(tx), version, call, self.executor.expiry.clock.now())))
    }

    /// Begins a transaction of the Redis dialect that changes nothing.
    pub(crate) fn exec(self, work: Transaction, version: Version) -> Result<RespRun, Failure> {
        let Executor { db, expiry, room, .. } = self.executor;
        let tx = db.begin().map_err(refusal)?;
        RespRun::exec(Arc::new(tx), version, work, expiry.clock.now(), room.clone())
    }

    /// Has something done that the Redis dialect asks for, as [`Self::write`] does.
    pub(crate) fn write_resp(self, work: RespWork, ticket: Ticket) -> Pushed {
        self.queue(ticket, || Write::resp(work))
    }

    /// Has a write done, and answered by its ticket.
    pub(crate) fn write(self, request: WriteRequest, ticket: Ticket) -> Pushed {
        self.queue(ticket, || Write::new(request, self.caller.asker.clone()))
    }

    fn queue(self, ticket: Ticket, write: impl FnOnce() -> Write) -> Pushed {
        let Some(writer) = &self.executor.writer else {
            ticket.answer(Reply::Error(takes_no_writes()).into());
            return Pushed::Queued(None);
        };
        writer.push(write(), ticket)
    }
}

fn takes_no_writes() -> ErrorReply {
    ErrorReply::new(ErrorCode::ReadOnly, "the server takes no writes")
}
