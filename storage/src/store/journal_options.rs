//! How a journal is kept.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::journal::{JournalKeep, JournalLimits};
use crate::{Error, Result};

/// Bytes of records after which a checkpoint is due, unless the options say otherwise.
const CHECKPOINT_SIZE: u64 = 64 << 20;
/// The smallest and the largest segments that are made, and how many of them go between two checkpoints.
const SEGMENT_SIZES: RangeInclusive<u64> = if cfg!(any(test, fuzzing)) { 1 << 13 } else { 1 << 16 }..=16 << 20;
const SEGMENTS: u64 = 16;
/// What segments are a multiple of.
const BLOCK: u64 = 4096;
/// Less than what others may ask for: a simulated disk shows as much with little.
const LEAST: u64 = if cfg!(test) { 1 << 13 } else { JournalOptions::LEAST_CHECKPOINT_SIZE };

/// How a journal is kept; see [`Options::journal`](crate::Options::journal).
#[derive(Debug, Clone, Default)]
pub struct JournalOptions {
    pub(crate) folder: Option<PathBuf>,
    checkpoint_size: Option<u64>,
    checkpoint_every: Option<Duration>,
    keep: JournalKeep,
    discard: bool,
}

impl JournalOptions {
    /// The least for [`Self::checkpoint_size`]: 64 KiB.
    pub const LEAST_CHECKPOINT_SIZE: u64 = 64 << 10;

    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The folder of the journal, which nothing else may use. Default: beside the file, wherever links lead to it, with
    /// `-journal` behind its name; where that is on another device than the file, one of the two could be mounted without
    /// the other, and opening is refused. The folder is made where it is missing; the one that it lies in has to be there.
    /// The folder of the database's file itself is refused.
    #[must_use]
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.folder = Some(folder.as_ref().into());
        self
    }

    /// Bring the file up to date after so many bytes of journal: 4 KiB for each small commit. It bounds what the journal
    /// takes on the disk, and how long it takes to open the file after a crash. A thread begins with it after three quarters
    /// of them, while commits go on; they wait for the end of it, and for all of it where the disk is slower than they are.
    /// Default: 64 MiB; opening with less than [`Self::LEAST_CHECKPOINT_SIZE`] is refused
    /// ([`Error::InvalidJournalSize`](crate::Error::InvalidJournalSize)).
    #[must_use]
    pub fn checkpoint_size(mut self, bytes: u64) -> Self {
        self.checkpoint_size = Some(bytes);
        self
    }

    /// Bring the file up to date when a commit has not been in it for so long. Default: only
    /// [`Self::checkpoint_size`] counts.
    #[must_use]
    pub fn checkpoint_every(mut self, time: Duration) -> Self {
        self.checkpoint_every = Some(time);
        self
    }

    /// How long the journal is kept once the file holds what it records. Default: [`JournalKeep::UntilCheckpoint`].
    #[must_use]
    pub fn keep(mut self, keep: JournalKeep) -> Self {
        self.keep = keep;
        self
    }

    /// Give up what the journal records and the file does not hold, and begin anew. The way on from
    /// [`Error::JournalDoesNotFit`](crate::Error::JournalDoesNotFit) and
    /// [`Error::JournalDamaged`](crate::Error::JournalDamaged) for who has decided that the file, as it is, is what is
    /// wanted: commits that were acknowledged can be lost. Default: `false`.
    #[must_use]
    pub fn discard(mut self, discard: bool) -> Self {
        self.discard = discard;
        self
    }

    /// Whether what waits is to be given up.
    pub(super) fn discards(&self) -> bool {
        self.discard
    }

    /// How long a commit may be missing in the file.
    pub(super) fn longest_wait(&self) -> Option<Duration> {
        self.checkpoint_every
    }

    /// Refuses what no journal can work with.
    pub(super) fn check(&self) -> Result<()> {
        let found = self.checkpoint_size.unwrap_or(CHECKPOINT_SIZE);
        if found < LEAST { Err(Error::InvalidJournalSize { found, least: LEAST }) } else { Ok(()) }
    }

    pub(super) fn limits(&self) -> JournalLimits {
        let checkpoint_size = self.checkpoint_size.unwrap_or(CHECKPOINT_SIZE);
        let segment_size = (checkpoint_size / SEGMENTS).clamp(*SEGMENT_SIZES.start(), *SEGMENT_SIZES.end());
        JournalLimits {
            segment_size: segment_size.next_multiple_of(BLOCK),
            checkpoint_size,
            keep: self.keep,
            // The tests of this crate, and the fuzz targets, do all in one order.
            ahead: !cfg!(any(test, fuzzing)),
        }
    }
}
