//! What a journal has done and takes, in figures.

use super::Journal;

/// What a journal has done since it was begun, and what it takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct JournalStats {
    /// Records that waited when it was begun.
    pub(crate) replayed: u64,
    pub(crate) records: u64,
    pub(crate) links: u64,
    pub(crate) syncs: u64,
    /// Bytes written, with headers and what fills blocks.
    pub(crate) bytes_written: u64,
    /// Segments, and bytes of them: in use, kept, and free.
    pub(crate) segments: u64,
    pub(crate) bytes: u64,
    /// Bytes of records that a checkpoint would let go.
    pub(crate) since_checkpoint: u64,
}

impl Journal {
    pub(crate) fn stats(&self) -> JournalStats {
        let free = self.spares.len();
        JournalStats {
            segments: (self.history.len() + free) as u64 + 1,
            bytes: self.history.bytes() + self.current.len + self.spares.iter().map(|spare| spare.len).sum::<u64>(),
            since_checkpoint: self.since_checkpoint(),
            ..self.figures
        }
    }
}
