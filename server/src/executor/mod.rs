//! The only place that decides what a request does. Every dialect comes here, so all get the same result.
//!
//! - `read`: what is answered at once, from a snapshot
//! - `scan`: what is answered in steps, from a snapshot that it keeps
//! - `write`: what a request changes; the writer's group calls it within its transaction
//! - `refusal`: what the engine's errors are called on the wire
//!
//! Nothing here knows how a request looked on the wire or how its reply will, and nothing here waits.

mod read;
mod refusal;
mod scan;
mod write;

use boltkv_protocol::{BucketRequest, ErrorCode, ErrorReply, Path, Reply, Request};
use boltkv_storage::Db;

pub(crate) use read::{Reader, Snapshot};
pub(crate) use refusal::refusal;
pub(crate) use scan::{Progress, ScanRun};
pub(crate) use write::{Effect, Write, apply};

use crate::writer::{Push, Queue, Ticket};

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Plan {
    /// A [`Reader`] answers it.
    Read(Request),
    /// The writer answers it.
    Write(Write),
    /// It is answered in steps.
    Scan(ScanRun),
    /// It is not done.
    Refuse(ErrorReply),
}

/// Decides what becomes of requests on one database.
#[derive(Debug)]
pub(crate) struct Executor {
    db: Db,
    /// The way to the writer; `None` where all writes are refused.
    writer: Option<Queue>,
    max_frame: usize,
}

impl Executor {
    /// An executor that gives no value and no entry longer than fits a frame of `max_frame` bytes.
    pub(crate) const fn new(db: Db, writer: Option<Queue>, max_frame: usize) -> Self {
        Self { db, writer, max_frame }
    }

    pub(crate) const fn db(&self) -> &Db {
        &self.db
    }

    pub(crate) const fn is_read_only(&self) -> bool {
        self.writer.is_none()
    }

    /// Whose answers all come from the one state of `snapshot`.
    pub(crate) fn reader<'a>(&'a self, snapshot: &'a Snapshot) -> Reader<'a> {
        Reader::new(&self.db, snapshot, self.max_frame)
    }

    /// What becomes of a request. `auto_bucket`: a bucket that SET makes where it is missing, if any.
    pub(crate) fn plan(&self, request: Request, auto_bucket: Option<&Path>) -> Plan {
        match request {
            Request::Ping(_) | Request::Get { .. } => Plan::Read(request),
            Request::Scan(scan) => {
                ScanRun::entries(&self.db, scan, self.max_frame).map_or_else(Plan::Refuse, Plan::Scan)
            }
            Request::Bucket(BucketRequest::List(scan)) => {
                ScanRun::buckets(&self.db, scan, self.max_frame).map_or_else(Plan::Refuse, Plan::Scan)
            }
            request if !request.is_write() => Plan::Refuse(not_here(&request)),
            request => Plan::Write(Write::new(request, auto_bucket)),
        }
    }

    /// Has a write done, and answered by its ticket. Where the writer's queue is full, answers what to wait for.
    pub(crate) fn submit(&self, write: Write, ticket: Ticket) -> Option<Push> {
        let Some(writer) = &self.writer else {
            let refusal = ErrorReply::new(ErrorCode::ReadOnly, "the server takes no writes");
            ticket.answer(Reply::Error(refusal));
            return None;
        };
        writer.push(write, ticket)
    }
}

/// The answer to what a session answers itself, or nobody does yet.
fn not_here(request: &Request) -> ErrorReply {
    ErrorReply::new(ErrorCode::Unsupported, format!("{} is not supported here", request.op().name()))
}
