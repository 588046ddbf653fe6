//! What makes the journal last. A sync can be run while the writer goes on.

use std::io;
use std::sync::Arc;

use super::block::Position;
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
