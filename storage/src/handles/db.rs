//! The database: how transactions begin, and what is known of it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::batch::Batcher;
use super::{Tx, TxMut};
use crate::check::Problem;
use crate::format::TxId;
use crate::journal::Tail;
use crate::store::{DamagedMeta, Displaced, Durability, Figures, Opened, Options, Shared, Stats};
use crate::tree::Batch;
use crate::{Error, Result};

/// A database: one file in bbolt's format, open in this process. Cheap to clone; the file is
/// unlocked when the last handle and the last transaction are gone.
///
/// ```
/// # fn main() -> boltkv_storage::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("app.db");
/// use boltkv_storage::Db;
///
/// let db = Db::open(&path)?;
/// db.update(|tx| tx.create_bucket("users")?.put("ada", "lovelace"))?;
/// db.view(|tx| {
///     assert_eq!(tx.bucket("users")?.get("ada")?, Some(&b"lovelace"[..]));
///     Ok(())
/// })?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Db(pub(crate) Arc<Common>);

/// What its handles have in common: the database, and the batches that they begin.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) shared: Arc<Opened>,
    pub(crate) batcher: Batcher,
}

impl Db {
    /// Opens the file `path` for reading and writing, waiting for its lock; creates it if it is
    /// missing. See [`Options`] for everything else. The folder is synced once, so that the file's name is on the disk
    /// before anything that is committed to it.
    ///
    /// The file is locked with `flock`, as bbolt does it, so that no other bolt library writes it
    /// meanwhile. A program that writes or truncates it all the same can end this process with a
    /// bus error, or change what a read transaction sees: no database that maps its file can
    /// prevent that.
    ///
    /// The same goes for a file whose stored freelist names a page that is in use: this engine writes no such list, but
    /// damage or another program can, and the list is believed, as bbolt believes it. A commit may then write over a page
    /// that a reader looks at, so that a slice which it borrowed changes under it. [`Self::check`] finds such a list; for a
    /// file that is not trusted, [`Options::ignore_freelist`] has it left aside.
    ///
    /// # Errors
    /// - [`Error::Io`]: the file cannot be opened, created, read or mapped, or is no regular file.
    /// - [`Error::LockTimeout`]: another process holds it.
    /// - [`Error::AlreadyOpen`]: this process has it open, and one of the two is not read-only. There is no waiting: the
    ///   handle that is open might be this thread's own.
    /// - [`Error::NotABoltFile`], [`Error::VersionMismatch`], [`Error::ChecksumMismatch`],
    ///   [`Error::InvalidPageSize`]: neither meta page can be used.
    /// - [`Error::FileTooShort`], [`Error::Corrupt`]: the file is cut or damaged. It is left as it is.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::new().open(path)
    }

    pub(crate) fn start(shared: Shared) -> Result<Self> {
        let shared = Arc::new(Opened::new(shared));
        let is_due = matches!(shared.options.durability, Durability::Interval { .. });
        if (is_due || shared.options.journal.is_some()) && !shared.options.read_only {
            shared.start_syncer()?;
        }
        Ok(Self(Arc::new(Common { shared, batcher: Batcher::default() })))
    }

    /// Begins a read transaction on the newest snapshot.
    ///
    /// # Errors
    /// None today; a `Result` so that limits on readers can come.
    pub fn begin(&self) -> Result<Tx> {
        Ok(Tx::new(self.0.shared.readers.enter()))
    }

    /// Begins the write transaction, waiting for the one before it to end: who comes first is served first. A thread
    /// that already has it waits for ever. Where a journal's [memory](crate::JournalOptions::memory) is nearly full, it waits for
    /// some of it to be given back, 4 ms at most.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Poisoned`] after a failed write or sync.
    pub fn begin_mut(&self) -> Result<TxMut> {
        if self.0.shared.options.read_only {
            return Err(Error::ReadOnly);
        }
        self.0.shared.check_usable()?;
        self.0.shared.hold_back();
        let writer = self.0.shared.writer.take();
        let mut tx = TxMut::new(Arc::clone(&self.0.shared), writer);
        self.0.shared.check_usable()?;
        tx.release_pages()?;
        Ok(tx)
    }

    /// As [`Self::begin`], on a state that is durable in the file itself: does what [`Self::checkpoint`] does before, without
    /// a write in between. What a backup is made of: no crash takes back any of it, and where a journal is kept,
    /// it names this state, so that [`Restore`](crate::tools::Restore) can go on from it. A database that is open
    /// read-only has such states only.
    ///
    /// # Errors
    /// As [`TxMut::commit`].
    pub fn begin_checkpointed(&self) -> Result<Tx> {
        self.0.shared.enter_checkpointed().map(Tx::new)
    }

    /// Runs `read` in a read transaction.
    ///
    /// # Errors
    /// What `read` returns, and those of [`Self::begin`].
    pub fn view<T>(&self, read: impl FnOnce(&Tx) -> Result<T>) -> Result<T> {
        self.try_view(read)
    }

    /// As [`Self::view`], with an error type of your own.
    ///
    /// # Errors
    /// As [`Self::view`].
    pub fn try_view<T, E: From<Error>>(&self, read: impl FnOnce(&Tx) -> Result<T, E>) -> Result<T, E> {
        read(&self.begin()?)
    }

    /// Runs `write` in a write transaction, which is committed if it returns `Ok`, and rolled back
    /// if it returns an error or panics.
    ///
    /// ```
    /// # let db = boltkv_storage::Options::new().open_in_memory()?;
    /// db.update(|tx| {
    ///     let mut words = tx.create_bucket_if_not_exists("words")?;
    ///     for word in "one fish two fish".split(' ') {
    ///         words.put(word, "")?;
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<_, boltkv_storage::Error>(())
    /// ```
    ///
    /// # Errors
    /// What `write` returns, and those of [`Self::begin_mut`] and [`TxMut::commit`].
    pub fn update<T>(&self, write: impl FnOnce(&mut TxMut) -> Result<T>) -> Result<T> {
        self.try_update(write)
    }

    /// As [`Self::update`], with an error type of your own: any that an [`Error`] can become.
    ///
    /// ```
    /// use boltkv_storage::{Db, Error};
    ///
    /// #[derive(Debug)]
    /// enum Refused {
    ///     Poor { has: u64 },
    ///     Storage(Error),
    /// }
    ///
    /// impl From<Error> for Refused {
    ///     fn from(error: Error) -> Self {
    ///         Self::Storage(error)
    ///     }
    /// }
    ///
    /// fn withdraw(db: &Db, who: &str, amount: u64) -> Result<u64, Refused> {
    ///     db.try_update(|tx| {
    ///         let mut accounts = tx.bucket_mut("accounts")?;
    ///         let has = accounts.get(who)?.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes);
    ///         // What was written in this transaction so far is undone.
    ///         let left = has.checked_sub(amount).ok_or(Refused::Poor { has })?;
    ///         accounts.put(who, left.to_be_bytes())?;
    ///         Ok(left)
    ///     })
    /// }
    /// # let db = boltkv_storage::Options::new().open_in_memory()?;
    /// # db.update(|tx| tx.create_bucket("accounts")?.put("ada", 5_u64.to_be_bytes()))?;
    /// # assert!(matches!(withdraw(&db, "ada", 3), Ok(2)));
    /// # assert!(matches!(withdraw(&db, "ada", 3), Err(Refused::Poor { has: 2 })));
    /// # Ok::<_, Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn try_update<T, E: From<Error>>(&self, write: impl FnOnce(&mut TxMut) -> Result<T, E>) -> Result<T, E> {
        let mut tx = self.begin_mut()?;
        let result = write(&mut tx)?;
        tx.commit()?;
        Ok(result)
    }

    /// A *sync point*: makes everything that was committed so far durable, in the file or in its journal, and returns the
    /// newest transaction's number. Waits for the write transaction that is open; nothing to do where all
    /// commits are synced.
    ///
    /// # Errors
    /// As [`TxMut::commit`]; [`Error::ReadOnly`].
    pub fn sync(&self) -> Result<TxId> {
        if self.0.shared.options.read_only {
            return Err(Error::ReadOnly);
        }
        self.0.shared.sync()
    }

    /// Brings the file up to the newest state: what [`Self::sync`] does without a journal, and what it need not do with one.
    /// Waits for the write transaction that is open, and makes the next one wait.
    ///
    /// # Errors
    /// As [`TxMut::commit`]; [`Error::ReadOnly`]. [`Error::Io`], of kind `NotFound`, where somebody has removed or replaced the
    /// journal: the file has everything then, and takes no more writes until it is opened again ([`Error::Poisoned`]).
    pub fn checkpoint(&self) -> Result<TxId> {
        if self.0.shared.options.read_only {
            return Err(Error::ReadOnly);
        }
        self.0.shared.checkpoint()
    }

    /// Asks the thread that syncs to do that soon, and waits for nothing: writes go on meanwhile, and wait for little. Pages
    /// that are free since the last checkpoint can be used again after it. Does nothing where there is no journal.
    pub fn checkpoint_soon(&self) {
        if !self.0.shared.options.read_only {
            self.0.shared.checkpoint_soon();
        }
    }

    /// Leaves the file as a clean close does: all commits durable, and the freelist stored unless
    /// that is [`FreelistStored::Never`](crate::FreelistStored::Never). Dropping the last handle does the same, also while
    /// transactions read on, and cannot say whether it worked. The file is unlocked with the last
    /// handle and transaction: unlike bbolt's `Close`, this does not wait for readers. It waits for
    /// the write transaction that is open, for ever on the thread that has it.
    ///
    /// Where it fails and there is a journal, [`Self::is_all_in_journal`] of another handle tells whether anything is lost.
    ///
    /// # Errors
    /// As [`TxMut::commit`].
    pub fn close(self) -> Result<()> {
        self.0.shared.sync_for_close()
    }

    /// Whether everything that was committed is in the journal, on the disk: then nothing is lost, whatever has become of the
    /// file, and the next opening brings that up to date. `None` where no journal is kept, or the database is read-only. For
    /// whoever learns that a write or [`Self::close`] has failed. What is in the journal and not on the disk yet is synced first.
    /// Waits for the write transaction that is open, for ever on the thread that has it.
    #[must_use]
    pub fn is_all_in_journal(&self) -> Option<bool> {
        if self.0.shared.options.read_only {
            return None;
        }
        self.0.shared.is_all_in_journal()
    }

    /// Length of the file, in bytes.
    pub(crate) fn file_len(&self) -> Result<u64> {
        self.0.shared.disk.len().map_err(Error::io("look at", self.path()))
    }

    /// Whether both metas in the file end at the same page.
    pub(crate) fn metas_agree_on_the_mark(&self) -> bool {
        self.0.shared.writer.with(|writer| writer.older_mark == writer.durable.mark)
    }

    /// How many are making the file smaller changes by `change`.
    pub(crate) fn count_shrinking(&self, change: isize) {
        self.0.shared.writer.with(|writer| writer.shrinking = writer.shrinking.saturating_add_signed(change));
    }

    /// Cuts off what neither the metas nor any open snapshot speak of, in pieces: writers wait while the system drops what it
    /// has of one in memory, and with their next sync while the file system gives it back to the disk.
    pub(crate) fn cut_file(&self) -> Result<()> {
        const PIECE: u64 = 16 << 20;
        let shared = &self.0.shared;
        shared.check_usable()?;
        while shared.writer.with(|writer| shared.cut(writer, PIECE))? {
            shared.sync_file()?;
        }
        Ok(())
    }

    /// Makes a batch of records that follow the newest state; see [`Shared::apply`].
    pub(crate) fn apply(&self, batch: Batch, folder: &Path) -> Result<()> {
        self.0.shared.apply(batch, folder)
    }

    /// Looks for damage in the newest snapshot; see [`Tx::check`].
    ///
    /// # Errors
    /// Only what keeps it from looking at all.
    pub fn check(&self) -> Result<Vec<Problem>> {
        self.begin()?.check()
    }

    /// The file's other meta page, where it was damaged when the file was opened: then a newer transaction may be lost.
    /// The next synced commit writes over it.
    #[must_use]
    pub fn damaged_meta(&self) -> Option<DamagedMeta> {
        self.0.shared.damaged_meta()
    }

    /// Why no more writes are taken, where something has failed whose outcome nobody knows; also a late sync or a checkpoint,
    /// which no call returns the error of.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.0.shared.failure()
    }

    /// Whether the file, or its journal, is not where it was opened any more, as far as the system says. To be asked now and
    /// then, by who serves for long; it takes a few calls of the system, and waits for nobody.
    #[must_use]
    pub fn displaced(&self) -> Option<Displaced> {
        self.0.shared.displaced()
    }

    /// What the writer of the journal tells those who follow it.
    pub(crate) fn tail(&self) -> Option<&Arc<Tail>> {
        self.0.shared.tail()
    }

    /// The folder of the journal that commits are recorded in; `None` where there is none.
    #[must_use]
    pub fn journal(&self) -> Option<&Path> {
        self.0.shared.journal()
    }

    /// When commits are on the disk, unless one says otherwise.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.0.shared.options.durability
    }

    /// The file; `None` for a database in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.shared.path()
    }

    /// Whether it was opened read-only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.0.shared.options.read_only
    }

    /// Bytes of a page.
    #[must_use]
    pub fn page_size(&self) -> usize {
        self.0.shared.readers.current().meta.page_size as usize
    }

    /// Figures about the newest snapshot and who uses the database.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let meta = self.0.shared.readers.current().meta;
        let (open_readers, oldest) = self.0.shared.readers.count();
        let Figures { free_pages, pending_pages, unsynced_commits, commits, journal } = self.0.shared.figures();
        Stats {
            txid: meta.txid,
            page_size: meta.page_size,
            pages: meta.mark,
            max_size: self.0.shared.options.max_size,
            free_pages,
            pending_pages,
            open_readers,
            oldest_reader_age: oldest.map(|(_, age)| age),
            oldest_reader: oldest.map(|(txid, _)| txid),
            unsynced_commits,
            commits,
            journal,
        }
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db")
            .field("path", &self.path())
            .field("read_only", &self.0.shared.options.read_only)
            .finish_non_exhaustive()
    }
}
