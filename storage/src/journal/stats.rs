//! What a journal has done and takes, in figures.

use super::Journal;
use super::spares::Making;
use crate::base::TxId;

/// What a journal has done since it was begun, and what it takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct JournalStats {
    /// Records that waited when it was begun.
    pub(crate) replayed: u64,
    /// What it was closed with, where the file was changed without it since.
    pub(crate) changed_since: Option<TxId>,
    /// What it ended with was not whole, and nothing showed that it had been synced.
    pub(crate) torn: bool,
    pub(crate) records: u64,
    pub(crate) links: u64,
    pub(crate) syncs: u64,
    /// Bytes written, with headers and what fills blocks.
    pub(crate) bytes_written: u64,
    /// Segments, and bytes of them: in use, kept, and free.
    pub(crate) segments: u64,
    pub(crate) bytes: u64,
    /// Bytes of records that a checkpoint would let go, and after how many one is due.
    pub(crate) since_checkpoint: u64,
    pub(crate) checkpoint_size: u64,
}

impl Journal {
    pub(crate) fn stats(&self) -> JournalStats {
        let made = self.making.as_ref().and_then(Making::len);
        let free = || self.spares.iter().chain(&self.last_resort).map(|spare| spare.len).chain(made);
        JournalStats {
            segments: (self.history.len() + free().count()) as u64 + 1,
            bytes: self.history.bytes() + self.current.len + free().sum::<u64>(),
            since_checkpoint: self.since_checkpoint(),
            checkpoint_size: self.limits.checkpoint_size,
            ..self.figures
        }
    }
}
