//! What a session has taken before its turn: reads whose pages are being brought into memory, so that its thread does not
//! wait for the disk.

use std::collections::VecDeque;
use std::sync::Arc;

use boltkv_protocol::resp::Kind;
use boltkv_protocol::{ReadRequest, SnapshotRead};

use super::codec::{Asked, Codec};
use super::serve::{Session, Taken};
use super::socket::Socket;
use crate::commands::{ColdReads, Reader, is_resident_at};

/// How many requests are taken at most, so that their pages are asked of the disk together. It is far more than a disk does
/// at a time; and there are other connections.
const MOST: usize = 64;

impl<C: Codec, S: Socket> Session<C, S> {
    /// Looks whether a request that was just taken would wait for the disk. If so it does not come back: it is put aside,
    /// with those behind it, until their pages are in memory. For what is not allowed nothing is read.
    pub(super) fn put_aside_if_cold(&mut self, taken: Taken<C>, reader: &mut Reader<'_>) -> Option<Taken<C>> {
        if !self.may_read(&taken) {
            return Some(taken);
        }
        if let Asked::OfSnapshot(_, id, SnapshotRead::Read(request)) = &taken.asked {
            let cold = self.leases.state(*id).filter(|state| !is_resident_at(state, request));
            let Some(state) = cold else { return Some(taken) };
            let faulting = self.conn.shared.executor.cold().fault_in_at(Arc::clone(state), request.clone());
            self.conn.faulting = Some(faulting);
            self.ahead.push_back(taken);
            return None;
        }
        if let Asked::Resp(_, work) = &taken.asked {
            if work.kind() != Kind::Read {
                return Some(taken);
            }
            let look_ups = work.look_ups();
            if look_ups.iter().all(|read| reader.is_resident(read)) {
                self.conn.shared.executor.cold().is_warm();
                return Some(taken);
            }
            self.conn.faulting = Some(self.conn.shared.executor.cold().fault_in(look_ups));
            self.ahead.push_back(taken);
            return None;
        }
        let Asked::Read(_, request) = &taken.asked else { return Some(taken) };
        if reader.is_resident(request) {
            self.conn.shared.executor.cold().is_warm();
            return Some(taken);
        }
        self.put_aside(taken);
        None
    }

    fn may_read(&self, taken: &Taken<C>) -> bool {
        let standing = &self.caller.standing;
        match &taken.asked {
            Asked::Read(_, request) => standing.may(request).is_ok(),
            Asked::OfSnapshot(_, _, read) => standing.may(read).is_ok(),
            Asked::Resp(_, work) => standing.may(&**work).is_ok(),
            _ => false,
        }
    }

    /// The next of what was put aside.
    pub(super) fn next_ahead(&mut self) -> Option<Taken<C>> {
        let next = self.ahead.pop_front()?;
        if self.ahead.is_empty() {
            // The queue's memory is returned, because an idle connection is to have none.
            self.ahead = VecDeque::new();
        }
        Some(next)
    }

    fn put_aside(&mut self, first: Taken<C>) {
        let mut next = Some(first);
        let mut reads: Vec<ReadRequest> = Vec::new();
        while let Some(taken) = next {
            // A read of which nothing is known: whoever waits for the disk looks at that, too.
            let is_last = match &taken.asked {
                Asked::Read(_, request) if self.may_read(&taken) => {
                    reads.push(request.clone());
                    // What has taken memory of the server's shall not keep it for longer than it must.
                    taken.leased || reads.len() == MOST
                }
                // What it does may depend on what came before it: it keeps its place, and the end of this.
                _ => true,
            };
            self.ahead.push_back(taken);
            next = if is_last { None } else { self.take() };
        }
        self.conn.faulting = Some(self.conn.shared.executor.cold().fault_in(reads));
    }
}
