//! What has arrived on a connection, and the memory that it takes.

use bytes::{Bytes, BytesMut};

use crate::memory::Lease;

/// What has arrived and was not yet taken.
#[derive(Debug, Default)]
pub(crate) struct Input {
    pub(crate) bytes: BytesMut,
    /// The memory for the item at the front, where it is longer than what a connection has of its own.
    pub(super) lease: Option<Lease>,
}

impl Input {
    /// Ties the lease, if there is one, to the item that was just taken off the front.
    pub(crate) fn settle(&mut self, item: Bytes) -> Bytes {
        let Some(lease) = self.lease.take() else { return item };
        // Bytes behind the item lie in the same buffer, and would keep all of it in memory.
        self.bytes = BytesMut::from(&self.bytes[..]);
        lease.tie_to(item)
    }

    /// There is no long item at the front any more.
    pub(super) fn release(&mut self) {
        if self.lease.take().is_some() {
            self.bytes = BytesMut::from(&self.bytes[..]);
        }
    }

    pub(super) const fn is_leased(&self) -> bool {
        self.lease.is_some()
    }
}
