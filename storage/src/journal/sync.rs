//! What makes the journal last. A sync can be run while the writer goes on.

use std::io;
use std::sync::Arc;

use super::Journal;
use super::block::{EntryKind, Position};
use crate::disk::Disk;

/// A sync of all that was appended up to some moment: run it, then tell
/// [`Journal::synced`](super::Journal::synced).
#[derive(Debug)]
#[must_use = "it syncs nothing before it is run"]
pub(crate) struct PendingSync {
    /// The segments with what is not synced, in their order.
    pub(super) disks: Vec<Arc<dyn Disk>>,
    pub(super) upto: Position,
}

impl PendingSync {
    /// Syncs segment after segment: none before the one that it follows.
    ///
    /// # Errors
    /// What the system says. The outcome is unknown then, and trying again says nothing.
    pub(crate) fn run(&self) -> io::Result<()> {
        self.disks.iter().try_for_each(|disk| disk.sync())
    }
}

impl Journal {
    /// Says that the file holds everything, so that others may change it from now on; synced. It says nothing where there is
    /// no room: then nobody else may.
    ///
    /// # Errors
    /// As [`Self::append`] and [`Self::sync`].
    pub(crate) fn close(&mut self) -> io::Result<()> {
        if self.closed || self.reserve(0).is_err() {
            return Ok(());
        }
        let time_ms = self.current.last_time_ms;
        self.entry(EntryKind::Closed, self.follows.max(self.base.0), time_ms, &[])?;
        self.closed = true;
        self.sync()
    }
}
