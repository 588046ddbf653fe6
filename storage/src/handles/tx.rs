//! Transactions.
//!
//! A [`Tx`] reads one snapshot. A [`TxMut`] reads what it has changed over the newest one. Both are
//! owned: they borrow nothing from the [`Db`](crate::Db), and everything that they lend (buckets,
//! cursors, keys, values) borrows from them.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;

use super::callbacks::Callbacks;
use super::{Bucket, BucketMut, Buckets, Cursor};
use crate::check::{CheckOptions, Problem};
use crate::disk::Disk;
use crate::format::TxId;
use crate::pages::{Snapshot, Spans};
use crate::store::{Durability, Opened, Reading, Sync, What, Writer, commit};
use crate::tree::{ROOT_BUCKET, Savepoint, Source, Work};
use crate::{Error, Result};

/// A read transaction: one snapshot of the database, unchanged for as long as it lives.
///
/// It never waits for the writer, nor the writer for it; but pages that it can see are not used
/// again before it ends, so that a file under writes grows while an old one is kept open. It can
/// outlive the handles of its database: the file stays open and locked until it ends.
pub struct Tx {
    snapshot: Reading,
}

impl Tx {
    pub(crate) fn new(snapshot: Reading) -> Self {
        Self { snapshot }
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        self.snapshot.disk()
    }

    pub(crate) fn source(&self) -> Source<'_> {
        Source { pages: self.snapshot.pages(), work: None }
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The root bucket: it holds the top-level buckets.
    pub(crate) fn root(&self) -> Bucket<'_> {
        let meta = &self.snapshot.meta;
        Bucket::root(self.source(), meta.root, meta.sequence)
    }

    /// The number of the transaction that wrote the snapshot.
    #[must_use]
    pub fn id(&self) -> TxId {
        self.snapshot.meta.txid
    }

    /// Bytes of the file that the snapshot spans: its high-water mark times the page size.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.snapshot.meta.mark * u64::from(self.snapshot.meta.page_size)
    }

    /// Gives back the memory that the process holds of the mapped file: all that was read of it so
    /// far. For those who go through a large file once; what is read after it comes from the
    /// system's cache, or from the disk again. Does nothing for a database in memory, or one that
    /// [`Options::mlock`](crate::Options::mlock) keeps there.
    ///
    /// The other readers of this process share the map: what they read next costs a page fault each.
    pub fn release_memory(&self) {
        self.snapshot.map.release();
    }

    /// A top-level bucket.
    ///
    /// # Errors
    /// [`Error::BucketNotFound`]; [`Error::Corrupt`] where the file is damaged.
    pub fn bucket(&self, name: impl AsRef<[u8]>) -> Result<Bucket<'_>> {
        self.root().top(name.as_ref(), &self.snapshot.tops)
    }

    /// The bucket that a path of names leads to, from the top down.
    ///
    /// # Errors
    /// As [`Self::bucket`]; [`Error::BucketNameRequired`] for an empty path.
    pub fn bucket_path<N: AsRef<[u8]>>(&self, path: impl IntoIterator<Item = N>) -> Result<Bucket<'_>> {
        Bucket::at_path(path, |first| self.bucket(first))
    }

    /// The top-level buckets with their names, in the order of the names.
    #[must_use]
    pub fn buckets(&self) -> Buckets<'_> {
        self.root().buckets()
    }

    /// A cursor over the names of the top-level buckets.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_> {
        self.root().cursor()
    }

    /// Looks for damage: every page is read, and must be used once or free once. Returns what was
    /// found, in the order of the pages; nothing means that the snapshot is sound.
    ///
    /// # Errors
    /// None today: damage is an answer, not an error. What keeps it from looking at all will be one.
    pub fn check(&self) -> Result<Vec<Problem>> {
        self.check_with(&CheckOptions::default())
    }

    /// Looks for damage, in the way that the options say.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn check_with(&self, options: &CheckOptions<'_>) -> Result<Vec<Problem>> {
        Ok(crate::check::check(&self.snapshot, options))
    }
}

impl fmt::Debug for Tx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").field("id", &self.id()).finish_non_exhaustive()
    }
}

/// The write transaction: at any time there is one. Dropping it rolls back.
///
/// Reads through it see what it has changed. An operation that returns an error has changed
/// nothing, and the transaction can go on.
pub struct TxMut {
    pub(crate) work: Work,
    shared: Arc<Opened>,
    /// `None` only on the way out.
    writer: Option<Box<Writer>>,
    /// What is to be called after the commit.
    on_commit: Callbacks,
    committing: bool,
}

impl TxMut {
    pub(crate) fn new(shared: Arc<Opened>, mut writer: Box<Writer>) -> Self {
        let work = writer.begin(&shared);
        // From here on the transaction returns the writer, whatever happens.
        Self { work, shared, writer: Some(writer), on_commit: Callbacks::default(), committing: false }
    }

    /// Makes the pages that no reader can see any more available to this transaction, and looks for room where it was short.
    pub(crate) fn release_pages(&mut self) -> Result<()> {
        self.writer.as_mut().map_or(Ok(()), |writer| writer.prepare(&self.shared, &mut self.work))
    }

    /// Whether pages that nobody needs, of deleted buckets above all, are still to be freed: each transaction frees some.
    pub(crate) fn has_to_free(&self) -> bool {
        self.writer.as_ref().is_some_and(|writer| !writer.detached.is_empty() || writer.freelist.has_left_some())
    }

    /// The pages that this transaction may use.
    pub(crate) fn free_spans(&self) -> Option<&Spans> {
        self.writer.as_deref().map(|writer| writer.freelist.free())
    }

    pub(crate) fn root(&self) -> Bucket<'_> {
        Bucket::of_work(&self.work, ROOT_BUCKET)
    }

    fn root_mut(&mut self) -> BucketMut<'_> {
        BucketMut::new(&mut self.work, ROOT_BUCKET)
    }

    /// The number that this transaction will have once it is committed. After commits that were not
    /// synced, a synced one may get the number after it, because its meta page must not take the
    /// place of the last durable one; [`Self::commit`] returns the number that it got.
    #[must_use]
    pub fn id(&self) -> TxId {
        self.work.base.meta.txid.saturating_add(1)
    }

    /// Bytes of the file that its base spans: the high-water mark times the page size.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.work.base.meta.mark * u64::from(self.work.base.meta.page_size)
    }

    /// The state that this transaction began with, as a read transaction: its buckets can be read while this transaction
    /// writes to others, or to the same ones. It does not see what this transaction has changed; [`Self::at`] does.
    ///
    /// ```
    /// # let db = boltkv_storage::Options::new().open_in_memory()?;
    /// # db.update(|tx| tx.create_bucket("from")?.put("key", "value"))?;
    /// db.update(|tx| {
    ///     let before = tx.snapshot();
    ///     let mut to = tx.create_bucket("to")?;
    ///     for entry in &before.bucket("from")? {
    ///         let (key, value) = entry?;
    ///         if let Some(value) = value {
    ///             to.put(key, value)?;
    ///         }
    ///     }
    ///     Ok(())
    /// })?;
    /// # assert_eq!(db.begin()?.bucket("to")?.get("key")?, Some(&b"value"[..]));
    /// # Ok::<_, boltkv_storage::Error>(())
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Tx {
        Tx::new(self.shared.readers.enter())
    }

    /// A top-level bucket, to be read.
    ///
    /// # Errors
    /// [`Error::BucketNotFound`]; [`Error::Corrupt`] where the file is damaged.
    pub fn bucket(&self, name: impl AsRef<[u8]>) -> Result<Bucket<'_>> {
        self.root().bucket(name)
    }

    /// The bucket that a path of names leads to, to be read.
    ///
    /// # Errors
    /// As [`Self::bucket`]; [`Error::BucketNameRequired`] for an empty path.
    pub fn bucket_path<N: AsRef<[u8]>>(&self, path: impl IntoIterator<Item = N>) -> Result<Bucket<'_>> {
        Bucket::at_path(path, |first| self.bucket(first))
    }

    /// The top-level buckets with their names, in the order of the names.
    #[must_use]
    pub fn buckets(&self) -> Buckets<'_> {
        self.root().buckets()
    }

    /// A cursor over the names of the top-level buckets.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_> {
        self.root().cursor()
    }

    /// A top-level bucket, to be written.
    ///
    /// # Errors
    /// [`Error::BucketNotFound`]; [`Error::Corrupt`] where the file is damaged.
    pub fn bucket_mut(&mut self, name: impl AsRef<[u8]>) -> Result<BucketMut<'_>> {
        self.root_mut().into_bucket_mut(name.as_ref())
    }

    /// The bucket that a path of names leads to, to be written.
    ///
    /// # Errors
    /// As [`Self::bucket_mut`]; [`Error::BucketNameRequired`] for an empty path.
    pub fn bucket_mut_path<N: AsRef<[u8]>>(&mut self, path: impl IntoIterator<Item = N>) -> Result<BucketMut<'_>> {
        let mut bucket = self.root_mut();
        let mut any = false;
        for name in path {
            bucket = bucket.into_bucket_mut(name.as_ref())?;
            any = true;
        }
        if any { Ok(bucket) } else { Err(Error::BucketNameRequired) }
    }

    /// Creates a top-level bucket.
    ///
    /// # Errors
    /// [`Error::BucketExists`], [`Error::BucketNameRequired`], [`Error::KeyTooLarge`].
    pub fn create_bucket(&mut self, name: impl AsRef<[u8]>) -> Result<BucketMut<'_>> {
        let id = self.work.create_bucket(ROOT_BUCKET, name.as_ref())?;
        Ok(BucketMut::new(&mut self.work, id))
    }

    /// Opens a top-level bucket, which is created if it is missing.
    ///
    /// # Errors
    /// [`Error::BucketNameRequired`], [`Error::KeyTooLarge`].
    pub fn create_bucket_if_not_exists(&mut self, name: impl AsRef<[u8]>) -> Result<BucketMut<'_>> {
        let id = self.work.create_bucket_if_not_exists(ROOT_BUCKET, name.as_ref())?;
        Ok(BucketMut::new(&mut self.work, id))
    }

    /// Deletes a top-level bucket with everything in it. Its first 256 pages are free then. The rest are found and freed
    /// in steps by the transactions that follow, and by closing the database: until then no list of free pages is
    /// stored, so that opening the file after a crash reads all of it
    /// ([`FreelistStored`](crate::FreelistStored)). With [`Fill::Percent`](crate::Fill::Percent) in the
    /// [options](crate::Options::fill) all are freed at once, as in bbolt.
    ///
    /// # Errors
    /// [`Error::BucketNotFound`]; [`Error::Corrupt`] where one of its first 256 pages is damaged.
    pub fn delete_bucket(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        self.work.delete_bucket(ROOT_BUCKET, name.as_ref())
    }

    /// Marks the transaction's state, to which [`Self::rollback_to`] takes it back. From the first
    /// savepoint on every change costs some 50 bytes of memory more, until the transaction ends.
    ///
    /// ```
    /// # use boltkv_storage::{Error, Options};
    /// # let db = Options::new().open_in_memory()?;
    /// let mut tx = db.begin_mut()?;
    /// tx.create_bucket("b")?.put("k", "first")?;
    /// let before = tx.savepoint();
    /// tx.bucket_mut("b")?.put("k", "second")?;
    /// tx.rollback_to(&before)?;
    /// assert_eq!(tx.bucket("b")?.get("k")?, Some(&b"first"[..]));
    /// # Ok::<_, Error>(())
    /// ```
    pub fn savepoint(&mut self) -> Savepoint {
        self.work.savepoint(self.on_commit.len())
    }

    /// Takes the transaction back to a savepoint, which stays: it can be gone back to again.
    /// Savepoints that were made after it are gone.
    ///
    /// # Errors
    /// [`Error::SavepointNotFound`] for one that is gone, or of another transaction.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        self.work.rollback_to(savepoint)?;
        self.on_commit.truncate(savepoint.callbacks);
        Ok(())
    }

    /// How many callbacks there are.
    pub(crate) fn callbacks(&self) -> usize {
        self.on_commit.len()
    }

    /// Writes everything, syncs, and shows it to the readers that begin from now on. Returns the
    /// transaction's number.
    ///
    /// # Errors
    /// [`Error::NoSpace`], [`Error::MaxSizeReached`]: rolled back, nothing is lost, the database goes on.
    /// [`Error::Corrupt`]: a page that had to be changed is damaged; rolled back as well.
    /// [`Error::Io`]: a write or sync failed; whether the transaction is in the file is unknown
    /// until it is opened again, and no more writes are taken ([`Error::Poisoned`]).
    pub fn commit(self) -> Result<TxId> {
        let durability = self.shared.options.durability;
        self.commit_with(durability)
    }

    /// Commits with another durability than the database's. One at intervals is synced in time whatever the database's is.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub fn commit_with(self, durability: Durability) -> Result<TxId> {
        let (txid, callbacks) = self.commit_before_callbacks(durability)?;
        callbacks.call().unwrap_or_else(|panic| resume_unwind(panic));
        Ok(txid)
    }

    /// Commits with the database's durability, and leaves it to the caller to call what is to be called after that.
    pub(crate) fn commit_for_batch(self) -> Result<Callbacks> {
        let durability = self.shared.options.durability;
        self.commit_before_callbacks(durability).map(|(_, callbacks)| callbacks)
    }

    fn commit_before_callbacks(mut self, durability: Durability) -> Result<(TxId, Callbacks)> {
        if matches!(durability, Durability::Interval { .. }) {
            self.shared.start_syncer()?;
        }
        let Some(writer) = self.writer.as_mut() else { return Err(Error::Poisoned { reason: "no writer".into() }) };
        let sync = match writer.must_sync(durability) {
            false => Sync::Later,
            // Both metas have to speak of the end that the file is to be cut to.
            true if writer.journal.is_some() && !self.work.lower_mark => Sync::Journal,
            true => Sync::Point { store_freelist: self.shared.stores_freelist() },
        };
        self.committing = true;
        let committed = commit(&mut self.work, &self.shared, writer, sync);
        self.committing = false;
        let txid = committed?;
        if let Durability::Interval { every, .. } = durability
            && let Some(at) = writer.due_within(every)
        {
            self.shared.syncer.note(What::Sync, at, every);
        }
        if let Some(every) = self.shared.options.longest_wait()
            && let Some(at) = writer.checkpoint_due_within(every)
        {
            self.shared.syncer.note(What::Checkpoint, at, every);
        }
        // When this returns, the transaction is over: the next writer need not wait for the callbacks.
        Ok((txid, std::mem::take(&mut self.on_commit)))
    }

    /// Calls `callback` after a successful commit, on the committing thread, when the write
    /// transaction is over: it may begin one itself. Several are called in the order in which they
    /// were given. One that was given after a savepoint goes with what is taken back to it.
    ///
    /// Where one panics, the transaction is committed all the same, the others are called, and the panic goes on then.
    /// In a [`Db::batch`](crate::Db::batch) it goes to the caller whose change gave it.
    pub fn on_commit(&mut self, callback: impl FnOnce() + Send + 'static) {
        self.on_commit.push(callback);
    }

    /// Forgets everything, as dropping does.
    pub fn rollback(self) {}
}

impl Drop for TxMut {
    fn drop(&mut self) {
        if self.committing {
            // A panic: nobody knows how far the commit came.
            self.shared.poison("commit to", std::io::Error::other("the commit panicked"));
        }
        if let Some(mut writer) = self.writer.take() {
            writer.spare = self.work.take_spare();
            self.shared.writer.put_back(writer);
        }
    }
}

impl fmt::Debug for TxMut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TxMut").field("id", &self.id()).finish_non_exhaustive()
    }
}
