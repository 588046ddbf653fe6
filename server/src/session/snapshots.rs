//! The snapshots that a connection holds open, and until when.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use boltkv_protocol::{ErrorCode, ErrorReply, ReadRequest, Reply, SnapshotRead, SnapshotRequest};
use boltkv_storage::{Tx, TxId};
use bytes::Bytes;
use tokio::time::Instant;

use super::codec::{Asked, Codec, Due};
use super::serve::Session;
use super::socket::Socket;
use crate::commands::{NamedSnapshot, Run, answer_at};

/// The snapshots of a connection.
#[derive(Debug, Default)]
pub(super) struct Leases(HashMap<u64, Leased>);

#[derive(Debug)]
struct Leased {
    snapshot: NamedSnapshot,
    /// How long it is kept without being used.
    lease: Duration,
    ends: Instant,
}

impl Leases {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, snapshot: NamedSnapshot, lease: Duration) {
        self.0.insert(snapshot.id(), Leased { snapshot, lease, ends: Instant::now() + lease });
    }

    /// The state of a snapshot that is to be used, whose lease begins anew.
    fn used(&mut self, id: u64) -> Result<&Arc<Tx>, ErrorReply> {
        let leased = self.0.get_mut(&id).ok_or_else(|| expired(id))?;
        leased.ends = Instant::now() + leased.lease;
        Ok(leased.snapshot.state())
    }

    /// The state of a snapshot, if it is there.
    pub(super) fn state(&self, id: u64) -> Option<&Arc<Tx>> {
        self.0.get(&id).map(|leased| leased.snapshot.state())
    }

    /// The state that would be let go with a stream; `None` where it has none, or the client holds it open.
    pub(super) fn own(&self, run: &Run) -> Option<TxId> {
        let is_held = |state: &Arc<Tx>| self.0.values().any(|leased| Arc::ptr_eq(leased.snapshot.state(), state));
        run.state().filter(|state| !is_held(state)).map(|state| state.id())
    }

    /// When the first lease ends, if nothing happens.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.0.values().map(|leased| leased.ends).min()
    }

    /// Lets those go whose lease has ended. One that is being read is in use.
    pub(super) fn expire(&mut self, now: Instant) {
        self.0.retain(|_, leased| {
            if leased.ends <= now && leased.snapshot.is_read() {
                leased.ends = now + leased.lease;
            }
            leased.ends > now
        });
        if self.0.is_empty() {
            // The map's memory is returned, because an idle connection is to have none.
            self.clear();
        }
    }

    pub(super) fn clear(&mut self) {
        self.0 = HashMap::new();
    }
}

impl<C: Codec, S: Socket> Session<C, S> {
    /// Opens or closes a snapshot.
    pub(super) fn snapshot(&mut self, due: Due<C::Tag>, request: SnapshotRequest) {
        let done = match request {
            SnapshotRequest::Open { lease_ms } => self.open_snapshot(lease_ms),
            SnapshotRequest::Close { snapshot } => {
                self.leases.0.remove(&snapshot).map(|_| Reply::Closed).ok_or_else(|| expired(snapshot))
            }
        };
        let reply: Reply<Bytes> = done.unwrap_or_else(Reply::Error);
        self.tell(due, &reply);
        self.codec.reply(due, &reply, &mut self.conn.wire.output);
    }

    fn open_snapshot(&mut self, lease_ms: u32) -> Result<Reply, ErrorReply> {
        let (limits, timeouts) = (&self.conn.shared.limits, &self.conn.shared.timeouts);
        let most = limits.max_connection_snapshots as usize;
        if self.leases.0.len() >= most {
            let message = format!("a connection may hold {most} snapshots open");
            return Err(ErrorReply::new(ErrorCode::Overloaded, message));
        }
        let asked = match lease_ms {
            0 => timeouts.snapshot_lease,
            asked => Duration::from_millis(asked.into()),
        };
        let longest = timeouts.longest_snapshot_lease.min(Duration::from_millis(u32::MAX.into()));
        let lease = asked.min(longest);
        let snapshot = self.conn.shared.executor.admit(&self.caller).open_snapshot()?;
        let (id, txid) = (snapshot.id(), snapshot.state().id());
        self.leases.add(snapshot, lease);
        Ok(Reply::Snapshot { id, txid, lease_ms: u32::try_from(lease.as_millis()).unwrap_or(u32::MAX) })
    }

    /// Reads as of a snapshot.
    pub(super) fn read_of_snapshot(&mut self, due: Due<C::Tag>, id: u64, read: SnapshotRead, leased: bool) {
        let state = match self.leases.used(id) {
            Ok(state) => Arc::clone(state),
            Err(error) => return self.refuse(due, error),
        };
        match read {
            SnapshotRead::Stream(request) => self.begin_stream(due, request, Some(state)),
            SnapshotRead::Read(request) => self.read_state(due, id, request, leased, &state),
        }
    }

    fn read_state(&mut self, due: Due<C::Tag>, id: u64, request: ReadRequest, leased: bool, state: &Tx) {
        let shared = Arc::clone(&self.conn.shared);
        let reply = answer_at(state, &request, shared.limits.max_frame, shared.executor.clock());
        if self.give(due, &reply, leased) {
            let read = SnapshotRead::Read(request);
            self.wait_for_memory(Asked::OfSnapshot(due, id, read), leased);
        }
    }
}

fn expired(id: u64) -> ErrorReply {
    let message =
        format!("the connection holds no snapshot {id} open: it was closed, or not used for as long as its lease");
    ErrorReply::new(ErrorCode::SnapshotExpired, message)
}
