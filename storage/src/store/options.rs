//! How a database is opened.

use std::time::Duration;

use super::JournalOptions;
use super::journal_options::Discard;
use crate::disk::{Advice, MapOptions};
use crate::tree::Fill;

/// Whether the freelist is written to the file with every commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FreelistStored {
    /// It is: opening is fast, a commit writes 8 bytes more for every free page. bbolt's default. (While the pages of a
    /// large deleted bucket are still being freed it is not: see
    /// [`TxMut::delete_bucket`](crate::TxMut::delete_bucket).)
    #[default]
    Always,
    /// It is not: commits are smaller, and opening reads every page (bbolt's `NoFreelistSync`).
    Never,
    /// It is when the database is closed, and not with every commit: commits are small, and opening
    /// is fast but after a crash.
    OnCleanClose,
}

/// When a commit is on the disk.
///
/// None of these can break the file, or leave half of a transaction: what is lost in a crash is
/// always the newest commits, none before an older one. A killed process loses as much as a power
/// cut, because a commit that is not synced is published from memory only; with a
/// [journal](Options::journal) a killed process loses nothing, because each commit is recorded before it
/// returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// Before it returns.
    #[default]
    Always,
    /// Some time after it has returned: after so long, or with every n-th commit, whichever
    /// comes first.
    Interval {
        /// The longest that a commit stays unsynced, but for the length of a sync. Zero is [`Self::Always`].
        every: Duration,
        /// Every so many commits one is synced, and those before it with it.
        commits: u64,
    },
    /// When [`Db::sync`](crate::Db::sync) is called, or the database is closed; with a journal also when the
    /// system chooses to.
    Never,
}

/// How a database is opened; [`Db::open`](crate::Db::open) takes the defaults.
///
/// ```
/// # fn main() -> boltkv_storage::Result<()> {
/// use std::time::Duration;
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("app.db");
/// let db = boltkv_storage::Options::new().timeout(Duration::from_secs(1)).open(&path)?;
/// # drop(db); Ok(())
/// # }
/// ```
///
/// Two of bbolt's options have no place here. `NoGrowSync` saves a sync of its own that bbolt does
/// whenever the file grows: here growing is synced with the commit that needs it, by the sync which
/// that commit does anyway, so that there is nothing to save and nothing to risk. `NoSync` is
/// [`Durability::Never`], which cannot break the file.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option by itself, set by its own method")]
pub struct Options {
    pub(crate) read_only: bool,
    pub(crate) create: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) page_size: Option<u32>,
    pub(crate) freelist: FreelistStored,
    pub(crate) mode: u32,
    pub(crate) durability: Durability,
    pub(crate) max_size: Option<u64>,
    pub(crate) max_size_reserve: u64,
    pub(crate) fill: Fill,
    pub(crate) strict: bool,
    pub(crate) statistics: bool,
    pub(crate) max_batch: usize,
    pub(crate) initial_map_size: u64,
    pub(crate) pre_load_freelist: bool,
    pub(crate) ignore_freelist: bool,
    pub(crate) mlock: bool,
    pub(crate) map: MapOptions,
    pub(crate) journal: Option<JournalOptions>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            read_only: false,
            create: true,
            timeout: None,
            page_size: None,
            freelist: FreelistStored::Always,
            mode: 0o600,
            durability: Durability::Always,
            max_size: None,
            max_size_reserve: 0,
            fill: Fill::Auto,
            strict: false,
            statistics: true,
            max_batch: 1000,
            initial_map_size: 0,
            pre_load_freelist: false,
            ignore_freelist: false,
            mlock: false,
            map: MapOptions::default(),
            journal: None,
        }
    }
}

impl Options {
    /// The defaults: read and write, create a missing file, wait for the lock for ever.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Open for reading only, with a shared lock: others may read the file too, nobody may write
    /// it. Never creates or changes a file. Default: `false`.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Create a file that is missing, or fill one that is empty. Default: `true`.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// How long to wait for a lock that another process holds, before
    /// [`Error::LockTimeout`](crate::Error::LockTimeout). Default: for ever, as bbolt does.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Page size of a new file, in bytes: a power of two from 1,024 to 16,777,216. An existing file
    /// keeps its own. Default: 4,096.
    #[must_use]
    pub fn page_size(mut self, bytes: u32) -> Self {
        self.page_size = Some(bytes);
        self
    }

    /// Whether the freelist is stored. Default: [`FreelistStored::Always`].
    #[must_use]
    pub fn freelist(mut self, stored: FreelistStored) -> Self {
        self.freelist = stored;
        self
    }

    /// When commits are on the disk; [`TxMut::commit_with`](crate::TxMut::commit_with) says otherwise
    /// for one. Default: [`Durability::Always`].
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Record every commit in a journal beside the file, which makes it durable with one sync of what lies in one place,
    /// where a commit without one scatters pages and syncs twice. The file is brought up to date at *checkpoints*, and when
    /// the database is closed; it is an ordinary bolt file at any time, also after a crash, which lacks what was committed
    /// since. Opening it with a journal applies that.
    ///
    /// Without this option, or read-only, a file whose journal holds more than the file is refused with
    /// [`Error::JournalWaits`](crate::Error::JournalWaits), so that nobody takes it for the newest state. The file says that
    /// it has a journal, from before the first commit until it is closed: where that is not in its place, it is refused with
    /// [`Error::JournalMissing`](crate::Error::JournalMissing). Backups need none. What others change in the file while a
    /// journal waits makes the two not fit ([`Error::JournalDoesNotFit`](crate::Error::JournalDoesNotFit)); after
    /// [`Db::close`](crate::Db::close) the file can be used without it, moved, and changed by any bolt library. With a journal
    /// small changes stay in memory for a while, 32 MiB unless [`JournalOptions::memory`] says otherwise. Default: none.
    ///
    /// ```
    /// # fn main() -> boltkv_storage::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("app.db");
    /// use boltkv_storage::{JournalOptions, Options};
    ///
    /// let db = Options::new().journal(JournalOptions::new()).open(&path)?;
    /// db.update(|tx| tx.create_bucket("users")?.put("ada", "lovelace"))?;
    /// // As after a crash: the commit is in the journal only.
    /// # let records = db.stats().journal.map(|journal| journal.records);
    /// # assert_eq!(records, Some(1));
    /// db.checkpoint()?; // Now the file holds it.
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn journal(mut self, journal: JournalOptions) -> Self {
        self.journal = Some(journal);
        self
    }

    /// How long a commit may be in the journal only.
    pub(crate) fn longest_wait(&self) -> Option<Duration> {
        self.journal.as_ref().and_then(JournalOptions::longest_wait)
    }

    /// What is given up of what journals record.
    pub(super) fn discards(&self) -> Discard {
        self.journal.as_ref().map_or(Discard::Nothing, JournalOptions::discards)
    }

    /// Whether commits are recorded.
    pub(crate) fn keeps_journal(&self) -> bool {
        self.journal.is_some() && !self.read_only
    }

    /// The size, in bytes, that the file may not grow past: a commit that would is rolled back with
    /// [`Error::MaxSizeReached`](crate::Error::MaxSizeReached). A file that is larger already stays
    /// as it is and can be written as long as it need not grow. Default: none.
    ///
    /// Pages that commits have freed can be used once the state that has them is not the durable one any more: where commits
    /// are not synced one by one, or are recorded in a journal, [`Db::checkpoint`](crate::Db::checkpoint) brings them back.
    /// What a journal has is done again by an opening whatever the limit. Beside it there is room for each leaf that is in memory,
    /// but entries of more than a page take pages that lie together: where there are none, a checkpoint and a clean close are
    /// refused as a commit is. The journal keeps what they could not write, and the file says that it was left open.
    #[must_use]
    pub fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = Some(bytes);
        self
    }

    /// Bytes of [`Self::max_size`] that are for transactions which only delete: a commit writes new pages before it frees old
    /// ones, so that from a file with no room nothing could be deleted. A transaction that puts, creates or moves anything
    /// and takes more pages than it frees is rolled back with [`Error::MaxSizeReached`](crate::Error::MaxSizeReached) where
    /// it would leave less. A file that is larger already grows by so many bytes for transactions which only delete, where none
    /// of its pages is free. As much of the disk, and 64 pages at most, is kept, too, as the file grows, whether it has a
    /// limit or not, and [`Error::NoSpace`](crate::Error::NoSpace) says that there is no more. Default: 0.
    #[must_use]
    pub fn max_size_reserve(mut self, bytes: u64) -> Self {
        self.max_size_reserve = bytes;
        self
    }

    /// How full pages are left when they are split, in all buckets for which a write transaction does not say otherwise
    /// ([`BucketMut::set_fill`](crate::BucketMut::set_fill)). With [`Fill::Percent`]`(0.5)` the file is what bbolt would
    /// have written, byte for byte. Default: [`Fill::Auto`].
    #[must_use]
    pub fn fill(mut self, fill: Fill) -> Self {
        self.fill = fill;
        self
    }

    /// Check every commit before it becomes durable, and roll it back with
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the file would be damaged by it. Reads the whole
    /// file with every commit: for tests and for hunting a fault. Default: `false`.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Count and time commits for [`Db::stats`](crate::Db::stats). Default: `true`.
    #[must_use]
    pub fn statistics(mut self, statistics: bool) -> Self {
        self.statistics = statistics;
        self
    }

    /// The most changes that [`Db::batch`](crate::Db::batch) commits at once. There is no delay to set, as there is in
    /// bbolt: a batch is what gathers while the one before it is committed. Default: 1,000.
    #[must_use]
    pub fn max_batch_size(mut self, changes: usize) -> Self {
        self.max_batch = changes;
        self
    }

    /// Map at least so many bytes from the start. A file that grows is mapped anew now and then;
    /// readers and writers do not wait for that, so this only saves the mapping itself. Default: 0.
    #[must_use]
    pub fn initial_map_size(mut self, bytes: u64) -> Self {
        self.initial_map_size = bytes;
        self
    }

    /// Read the freelist also read-only, for [`Db::stats`](crate::Db::stats); read-write, it is always read.
    /// Default: `false`.
    #[must_use]
    pub fn pre_load_freelist(mut self, pre_load: bool) -> Self {
        self.pre_load_freelist = pre_load;
        self
    }

    /// Do not believe the freelist that is stored in the file, but read every page to find those that are free, as where
    /// none is stored: for a file whose list may name a page that is in use (see [`Db::open`](crate::Db::open)). Default: `false`.
    #[must_use]
    pub fn ignore_freelist(mut self, ignore: bool) -> Self {
        self.ignore_freelist = ignore;
        self
    }

    /// Read the whole file into memory when it is mapped (bbolt: `MmapFlags` with `MAP_POPULATE`).
    /// Default: `false`.
    #[must_use]
    pub fn populate(mut self, populate: bool) -> Self {
        self.map.populate = populate;
        self
    }

    /// Keep the file in memory (`mlock`), so that no read waits for the disk. Where the process may
    /// not lock so much (`RLIMIT_MEMLOCK`; while the file grows, the old map counts as well as the
    /// new one), opening fails, and a commit that grows the file is rolled back with
    /// [`Error::NoSpace`](crate::Error::NoSpace).
    /// Default: `false`.
    #[must_use]
    pub fn mlock(mut self, mlock: bool) -> Self {
        self.mlock = mlock;
        self
    }

    /// What the kernel is told about how the map will be read. Default: [`Advice::Random`].
    #[must_use]
    pub fn advice(mut self, advice: Advice) -> Self {
        self.map.advice = advice;
        self
    }

    /// Permissions of a new file, before the process's umask. Default: `0o600`.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }
}
