//! How a journal is kept.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::journal::{JournalKeep, JournalLimits};
use crate::tree::Patcher;
use crate::{Error, Result};

/// The smallest and the largest segments that are made, and how many of them go between two checkpoints at least, where those
/// are large enough. A longer journal has more of them: the first one is there before anything is written.
const SEGMENT_SIZES: RangeInclusive<u64> = if cfg!(any(test, fuzzing)) { 1 << 13 } else { 1 << 16 }..=8 << 20;
const SEGMENTS: u64 = 16;
/// Of the bytes of a file that is as large as this one this part may be in memory where nothing was said of it, and journal is
/// there for twice the memory: in a large file what is new is scattered over more leaves, and each is to be written for
/// several changes. A million keys of 100 bytes, whose file overwrites make 600 MB, do with what a small one has.
const LARGE: u64 = 768 << 20;
const MEMORY_PART: u64 = 16;
const MEMORIES_OF_JOURNAL: u64 = 2;
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
    discard: Discard,
    memory: Option<usize>,
    most_memory: Option<usize>,
}

/// What is given up of what journals record and the file does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Discard {
    #[default]
    Nothing,
    /// What does not fit the file, or is damaged.
    Unfit,
    /// Also what fits.
    All,
}

impl JournalOptions {
    /// The least for [`Self::checkpoint_size`]: 64 KiB.
    pub const LEAST_CHECKPOINT_SIZE: u64 = 64 << 10;

    /// The default of [`Self::checkpoint_size`], where twice [`Self::memory`] is not more: 192 MiB.
    pub const DEFAULT_CHECKPOINT_SIZE: u64 = 192 << 20;

    /// The default of [`Self::memory`], where the file has less than 768 MiB: 32 MiB.
    pub const DEFAULT_MEMORY: usize = 32 << 20;

    /// The least for [`Self::memory`], but for none: 2 KiB.
    pub const LEAST_MEMORY: usize = 2 << 10;

    /// The most for [`Self::memory`], and the most that it ever becomes by default: 128 MiB.
    pub const MOST_MEMORY: usize = 128 << 20;

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

    /// Bring the file up to date after so many bytes of what is recorded. It bounds how long it takes to open the file after a
    /// crash, and what the journal takes on the disk: a commit takes whole blocks of 4 KiB there, and counts as half of them at
    /// least, so that this is up to twice as much where commits are small. A thread begins with it after three quarters
    /// of them, or earlier, after half, where much is written, while commits go on; they wait for the end of it, and where the
    /// disk is slower than they are, they are held back, each 50 ms at most as a rule. While one is made there may be a quarter
    /// more; a commit that finds that full, too, makes one.
    ///
    /// Where much is written, and the list of free pages is not stored each time
    /// ([`FreelistStored`](crate::FreelistStored)), the file gets the state with which it was begun.
    ///
    /// Default: [`Self::DEFAULT_CHECKPOINT_SIZE`], or twice [`Self::memory`] where that is more: up to 256 MiB, for a file of
    /// 2 GiB. Opening with less than [`Self::LEAST_CHECKPOINT_SIZE`] is refused
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

    /// What is new stays in memory: a commit that changes entries of up to 2 KiB writes its record, and keeps in memory what
    /// their leaves have become. What makes a leaf overflow, or so short that it is merged, what is done to buckets, and
    /// what a database with [`Options::fill`](crate::Options::fill) does, is written by its commit. Leaves are written anew by
    /// a thread beside the commits, where memory is nearly full those first that have most in it, or for a checkpoint. So a
    /// commit costs less, and so does the disk, on which each leaf is written once for many commits.
    ///
    /// So many bytes, which are taken as they are needed, and given back by a checkpoint that comes by
    /// [`Self::checkpoint_every`]; where readers hold on to what they have seen, up to twice as many, and up to four times
    /// while a file is opened whose journal has what it lacks.
    /// 0: no memory, each commit writes the pages that it changes. Other sizes count as the nearest from
    /// [`Self::LEAST_MEMORY`] to [`Self::MOST_MEMORY`]. Default: [`Self::DEFAULT_MEMORY`], and a sixteenth of a file of
    /// 768 MiB or more, up to [`Self::MOST_MEMORY`]: it grows with the file.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = Some(if bytes == 0 { 0 } else { bytes.clamp(Self::LEAST_MEMORY, Self::MOST_MEMORY) });
        self
    }

    /// The most that [`Self::memory`] becomes where nothing was said of it. For who has less memory than the default is meant
    /// for.
    ///
    /// ```
    /// # use boltkv_storage::{JournalOptions, Options};
    /// # let folder = tempfile::tempdir()?;
    /// let journal = JournalOptions::new().most_default_memory(4 << 20);
    /// let db = Options::new().journal(journal).open(folder.path().join("small.db"))?;
    /// assert_eq!(db.stats().journal.map(|journal| journal.memory), Some(4 << 20));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn most_default_memory(mut self, bytes: usize) -> Self {
        self.most_memory = Some(bytes);
        self
    }

    /// How long the journal is kept once the file holds what it records. Default: [`JournalKeep::UntilCheckpoint`].
    #[must_use]
    pub fn keep(mut self, keep: JournalKeep) -> Self {
        self.keep = keep;
        self
    }

    /// Give up what the journal records and the file does not hold, and begin anew. The way on from
    /// [`Error::JournalDoesNotFit`](crate::Error::JournalDoesNotFit), [`Error::JournalMissing`](crate::Error::JournalMissing) and
    /// [`Error::JournalDamaged`](crate::Error::JournalDamaged) for who has decided that the file, as it is, is what is
    /// wanted: commits that were acknowledged can be lost. Where this is not the journal in the usual place, that one is not
    /// given up with it if it fits and has more ([`Error::JournalWaits`](crate::Error::JournalWaits)). Default: `false`.
    #[must_use]
    pub fn discard(mut self, discard: bool) -> Self {
        self.discard = if discard { Discard::All } else { Discard::Nothing };
        self
    }

    /// The same, but of a journal that fits: that one is applied. Default: `false`.
    #[must_use]
    pub fn discard_unfit(mut self, discard: bool) -> Self {
        self.discard = if discard { Discard::Unfit } else { Discard::Nothing };
        self
    }

    /// What memory has of leaves of a file of so many bytes, where it is to have some.
    pub(super) fn patcher(&self, file: u64) -> Option<Box<Patcher>> {
        let bytes = self.memory_for(0);
        (bytes > 0).then(|| {
            let mut patcher = Patcher::new(bytes);
            patcher.allow(self.memory_for(file));
            Box::new(patcher)
        })
    }

    /// Bytes of memory for a file of so many.
    pub(super) fn memory_for(&self, file: u64) -> usize {
        let part = if file < LARGE { 0 } else { usize::try_from(file / MEMORY_PART).unwrap_or(usize::MAX) };
        let most = self.most_memory.unwrap_or(usize::MAX).min(Self::MOST_MEMORY);
        self.memory.unwrap_or(Self::DEFAULT_MEMORY.max(part).min(most))
    }

    /// Bytes of journal between two checkpoints of a file of so many.
    pub(super) fn checkpoint_size_for(&self, file: u64) -> u64 {
        let enough = self.memory_for(file) as u64 * MEMORIES_OF_JOURNAL;
        self.checkpoint_size.unwrap_or(Self::DEFAULT_CHECKPOINT_SIZE.max(enough))
    }

    /// What is to be given up of what waits.
    pub(super) fn discards(&self) -> Discard {
        self.discard
    }

    /// How long a commit may be missing in the file.
    pub(super) fn longest_wait(&self) -> Option<Duration> {
        self.checkpoint_every
    }

    /// Refuses what no journal can work with.
    pub(super) fn check(&self) -> Result<()> {
        let found = self.checkpoint_size_for(0);
        if found < LEAST { Err(Error::InvalidJournalSize { found, least: LEAST }) } else { Ok(()) }
    }

    /// For a file of so many bytes. Segments are as long as they are for a small one, which it may have been.
    pub(super) fn limits(&self, file: u64) -> JournalLimits {
        let segment_size = (self.checkpoint_size_for(0) / SEGMENTS).clamp(*SEGMENT_SIZES.start(), *SEGMENT_SIZES.end());
        JournalLimits {
            segment_size: segment_size.next_multiple_of(BLOCK),
            checkpoint_size: self.checkpoint_size_for(file),
            keep: self.keep,
            // The tests of this crate, and the fuzz targets, do all in one order.
            ahead: !cfg!(any(test, fuzzing)),
        }
    }
}
