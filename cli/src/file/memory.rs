//! A command that goes through a file once does not hold all of it in memory.

use std::sync::atomic::{AtomicU64, Ordering};

use boltkv_storage::Tx;

/// So much of a file is held, about.
const HELD: u64 = 16 << 20;

/// Gives the memory back that reading a file takes, piece by piece.
pub(super) struct Memory<'tx> {
    tx: &'tx Tx,
    /// Bytes that had been read when it was last given back.
    given_back: AtomicU64,
}

impl<'tx> Memory<'tx> {
    pub(super) fn new(tx: &'tx Tx) -> Self {
        Self { tx, given_back: AtomicU64::new(0) }
    }

    /// So many bytes have been read so far; any thread may say it. A count that begins again is no harm.
    pub(super) fn has_read(&self, bytes: u64) {
        let before = self.given_back.load(Ordering::Relaxed);
        if bytes.abs_diff(before) < HELD {
            return;
        }
        // Of several threads, one does it.
        if self.given_back.compare_exchange(before, bytes, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.tx.release_memory();
        }
    }
}
