//! What makes the journal last. A sync can be run while the writer goes on.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::Journal;
use super::block::{EntryKind, Position};
use super::write::Entry;
use crate::base::TxId;
use crate::disk::Disk;

/// What all who write and sync a journal know of it. The system tells of a block that it could not write once, to whoever
/// syncs first: so syncs take turns, and after one that failed none is believed.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    turn: Mutex<()>,
    /// What has failed: nothing is written any more.
    failed: OnceLock<String>,
}

impl Outcome {
    pub(super) fn is_usable(&self) -> io::Result<()> {
        self.failed.get().map_or(Ok(()), |reason| {
            Err(io::Error::other(format!("no more is written to the journal: an earlier write failed ({reason})")))
        })
    }

    /// Takes note of a failure. The first one is the one that matters.
    pub(super) fn fail(&self, error: io::Error) -> io::Error {
        let _ = self.failed.set(error.to_string());
        error
    }

    fn sync(&self, disks: &[Arc<dyn Disk>]) -> io::Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_usable()?;
        disks.iter().try_for_each(|disk| disk.sync()).map_err(|error| self.fail(error))
    }
}

/// A sync of all that was appended up to some moment: run it, then tell
/// [`Journal::synced`](super::Journal::synced).
#[derive(Debug)]
#[must_use = "it syncs nothing before it is run"]
pub(crate) struct PendingSync {
    /// The segments with what is not synced, in their order.
    pub(super) disks: Vec<Arc<dyn Disk>>,
    pub(super) upto: Position,
    /// The last transaction up to there.
    pub(super) txid: TxId,
    pub(super) outcome: Arc<Outcome>,
}

impl PendingSync {
    /// Syncs segment after segment: none before the one that it follows.
    ///
    /// # Errors
    /// What the system says. The outcome is unknown then, trying again says nothing, and nothing is written any more.
    pub(crate) fn run(&self) -> io::Result<()> {
        self.outcome.sync(&self.disks)
    }
}

impl Journal {
    /// An error where a write or a sync has failed: nothing is written any more.
    pub(crate) fn is_usable(&self) -> io::Result<()> {
        self.outcome.is_usable()
    }

    /// Says that the file holds everything, so that others may change it from now on; synced. It says nothing where there is
    /// no room: then nobody else may.
    ///
    /// # Errors
    /// As [`Self::append`] and [`Self::sync`].
    pub(crate) fn close(&mut self) -> io::Result<()> {
        if self.closed || self.reserve(None).is_err() {
            return Ok(());
        }
        let time_ms = self.current.last_time_ms;
        let txid = self.follows.max(self.base.0);
        self.write(&Entry { kind: EntryKind::Closed, txid, time_ms, payload: &[] }, false)?;
        self.closed = true;
        self.sync()
    }
}
