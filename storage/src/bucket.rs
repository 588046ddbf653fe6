//! Buckets: [`Bucket`] to read, [`BucketMut`] to write. Both only lend what their transaction has.

use std::fmt;
use std::ops::{Bound, RangeBounds};

use crate::cursor::{Cursor, CursorMut};
use crate::format::{LeafEntry, Pgid, bucket_value};
use crate::range::{Range, prefix_bounds};
use crate::tx::{BucketId, Child, Fill, Root, Source, Work};
use crate::{Error, Result};

/// A bucket, to be read: an ordered map of keys to values and to further buckets. It is a small
/// handle, and what it answers lives as long as the borrow of its transaction.
#[derive(Clone, Copy)]
pub struct Bucket<'tx> {
    pub(crate) source: Source<'tx>,
    pub(crate) root: Root<'tx>,
    sequence: u64,
    /// In a write transaction: the bucket's state, if it was opened for writing.
    state: Option<BucketId>,
}

impl<'tx> Bucket<'tx> {
    pub(crate) fn new(source: Source<'tx>, root: Root<'tx>, sequence: u64, state: Option<BucketId>) -> Self {
        Self { source, root, sequence, state }
    }

    /// A bucket that a write transaction has opened.
    pub(crate) fn of_work(work: &'tx Work, id: BucketId) -> Self {
        Self::new(work.source(), work.root(id), work.sequence(id), Some(id))
    }

    /// The value of `key`; `None` where there is none. A look-up reads as many pages as the tree is
    /// deep.
    ///
    /// # Errors
    /// [`Error::IncompatibleValue`] where the key is a bucket; [`Error::Corrupt`] where the file is
    /// damaged.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<&'tx [u8]>> {
        match self.source.find(self.root, key.as_ref())? {
            Some(found) if found.is_bucket => Err(Error::incompatible(key.as_ref(), true)),
            found => Ok(found.map(|entry| entry.value)),
        }
    }

    /// The bucket of that name within this one.
    ///
    /// # Errors
    /// [`Error::BucketNotFound`]; [`Error::IncompatibleValue`] where the name is a value's key;
    /// [`Error::Corrupt`] where the file is damaged.
    pub fn bucket(&self, name: impl AsRef<[u8]>) -> Result<Self> {
        let name = name.as_ref();
        let found = self.source.find(self.root, name)?.ok_or_else(|| Error::bucket_not_found(name))?;
        self.bucket_of(found)
    }

    /// The bucket in one of this bucket's entries.
    pub(crate) fn bucket_of(&self, entry: LeafEntry<'tx>) -> Result<Self> {
        if !entry.is_bucket {
            return Err(Error::incompatible(entry.key, false));
        }
        if let (Some(work), Some(parent)) = (self.source.work, self.state)
            && let Some(id) = work.opened(parent, entry.key)
        {
            return Ok(Self::of_work(work, id));
        }
        let (header, inline) = bucket_value(0, entry.value)?;
        let root = inline.map_or(Root::Tree(Child::Page(header.root.get())), Root::Inline);
        Ok(Self::new(self.source, root, header.sequence.get(), None))
    }

    /// The bucket that a path of names leads to from here.
    ///
    /// # Errors
    /// As [`Self::bucket`]; [`Error::BucketNameRequired`] for an empty path.
    pub(crate) fn descend<N: AsRef<[u8]>>(self, path: impl IntoIterator<Item = N>) -> Result<Self> {
        let mut names = path.into_iter();
        let first = names.next().ok_or(Error::BucketNameRequired)?;
        names.try_fold(self.bucket(first)?, |bucket, name| bucket.bucket(name))
    }

    /// The page that the bucket's tree starts at; `None` where it lies inline in its parent's leaf, or
    /// was changed by this transaction.
    #[must_use]
    pub fn root_page(&self) -> Option<Pgid> {
        match self.root {
            Root::Tree(Child::Page(id)) => Some(id),
            Root::Tree(Child::Node(_)) | Root::Inline(_) => None,
        }
    }

    /// Whether the bucket lies inline in its parent's leaf, as the transaction found it.
    pub(crate) fn is_inline(&self) -> bool {
        matches!(self.root, Root::Inline(_))
    }

    /// The bucket's sequence: a number that its users raise as they like. 0 at first.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// A cursor, which stands before the first entry.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'tx> {
        Cursor::new(self.source, self.root)
    }

    /// All entries, in key order.
    #[must_use]
    pub fn iter(&self) -> Range<'tx> {
        Range::new(self.cursor(), Bound::Unbounded, Bound::Unbounded)
    }

    /// The entries between two bounds, in key order. Bounds that exclude everything give nothing.
    ///
    /// ```
    /// # use boltkv_storage::{Error, Options};
    /// # let db = Options::new().open_in_memory()?;
    /// # db.update(|tx| { let mut b = tx.create_bucket("b")?; for k in ["a", "b", "c"] { b.put(k, "")?; } Ok::<_, Error>(()) })?;
    /// # let tx = db.begin()?; let bucket = tx.bucket("b")?;
    /// for entry in bucket.range(&b"a"[..]..&b"c"[..]) {
    ///     let (key, value) = entry?;
    /// #   assert!(key < b"c" && value.is_some());
    /// }
    /// # Ok::<_, Error>(())
    /// ```
    #[must_use]
    pub fn range<'a>(&self, bounds: impl RangeBounds<&'a [u8]>) -> Range<'tx> {
        let (low, high) = (bounds.start_bound(), bounds.end_bound());
        Range::new(self.cursor(), low.map(|low| *low), high.map(|high| *high))
    }

    /// The entries whose keys begin with `prefix`, in key order.
    #[must_use]
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range<'tx> {
        let (low, high) = prefix_bounds(prefix.as_ref());
        Range::new(self.cursor(), low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice))
    }

    /// The buckets within this one, with their names, in the order of the names.
    #[must_use]
    pub fn buckets(&self) -> Buckets<'tx> {
        Buckets { parent: *self, entries: self.iter() }
    }
}

impl<'tx> IntoIterator for &Bucket<'tx> {
    type Item = <Range<'tx> as Iterator>::Item;
    type IntoIter = Range<'tx>;

    fn into_iter(self) -> Range<'tx> {
        self.iter()
    }
}

impl fmt::Debug for Bucket<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

/// The buckets within a bucket, in the order of their names. Values between them are passed over.
#[derive(Debug, Clone)]
pub struct Buckets<'tx> {
    parent: Bucket<'tx>,
    entries: Range<'tx>,
}

impl<'tx> Iterator for Buckets<'tx> {
    type Item = Result<(&'tx [u8], Bucket<'tx>)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.entries.next_entry()? {
                Ok(entry) if entry.is_bucket => {
                    return Some(self.parent.bucket_of(entry).map(|bucket| (entry.key, bucket)));
                }
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// What [`BucketMut::delete_range`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Deleted {
    /// Values that were deleted.
    pub count: usize,
    /// The limit stopped it: there are more entries between the bounds.
    pub more: bool,
}

/// A bucket, to be written. Reads through it see what was written.
pub struct BucketMut<'tx> {
    pub(crate) work: &'tx mut Work,
    pub(crate) id: BucketId,
}

impl<'tx> BucketMut<'tx> {
    pub(crate) fn new(work: &'tx mut Work, id: BucketId) -> Self {
        Self { work, id }
    }

    pub(crate) fn into_bucket_mut(self, name: &[u8]) -> Result<Self> {
        let id = self.work.open_bucket(self.id, name)?;
        Ok(Self { id, work: self.work })
    }

    /// The same bucket, to be read.
    #[must_use]
    pub fn as_bucket(&self) -> Bucket<'_> {
        Bucket::of_work(self.work, self.id)
    }

    /// As [`Bucket::get`].
    ///
    /// # Errors
    /// As [`Bucket::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<&[u8]>> {
        self.as_bucket().get(key)
    }

    /// As [`Bucket::bucket`].
    ///
    /// # Errors
    /// As [`Bucket::bucket`].
    pub fn bucket(&self, name: impl AsRef<[u8]>) -> Result<Bucket<'_>> {
        self.as_bucket().bucket(name)
    }

    /// As [`Bucket::cursor`].
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_> {
        self.as_bucket().cursor()
    }

    /// As [`Bucket::iter`].
    #[must_use]
    pub fn iter(&self) -> Range<'_> {
        self.as_bucket().iter()
    }

    /// As [`Bucket::range`].
    #[must_use]
    pub fn range<'a>(&self, bounds: impl RangeBounds<&'a [u8]>) -> Range<'_> {
        self.as_bucket().range(bounds)
    }

    /// As [`Bucket::prefix`].
    #[must_use]
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range<'_> {
        self.as_bucket().prefix(prefix)
    }

    /// As [`Bucket::buckets`].
    #[must_use]
    pub fn buckets(&self) -> Buckets<'_> {
        self.as_bucket().buckets()
    }

    /// As [`Bucket::sequence`].
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.work.sequence(self.id)
    }

    /// Sets a key's value. Both are copied; what they replace takes memory until the transaction
    /// ends.
    ///
    /// # Errors
    /// [`Error::KeyRequired`], [`Error::KeyTooLarge`], [`Error::ValueTooLarge`];
    /// [`Error::IncompatibleValue`] where the key is a bucket; [`Error::Corrupt`] where the file is
    /// damaged.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.work.put(self.id, key.as_ref(), value.as_ref())
    }

    /// Deletes a key's value. Returns whether there was one.
    ///
    /// # Errors
    /// [`Error::IncompatibleValue`] where the key is a bucket; [`Error::Corrupt`] where the file is
    /// damaged.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.work.delete(self.id, key.as_ref())
    }

    /// The bucket of that name within this one, to be written.
    ///
    /// # Errors
    /// As [`Bucket::bucket`].
    pub fn bucket_mut(&mut self, name: impl AsRef<[u8]>) -> Result<BucketMut<'_>> {
        let id = self.work.open_bucket(self.id, name.as_ref())?;
        Ok(BucketMut { work: self.work, id })
    }

    /// Creates a bucket within this one.
    ///
    /// # Errors
    /// [`Error::BucketExists`], [`Error::BucketNameRequired`], [`Error::KeyTooLarge`];
    /// [`Error::IncompatibleValue`] where the name is a value's key.
    pub fn create_bucket(&mut self, name: impl AsRef<[u8]>) -> Result<BucketMut<'_>> {
        let id = self.work.create_bucket(self.id, name.as_ref())?;
        Ok(BucketMut { work: self.work, id })
    }

    /// Opens a bucket within this one, which is created if it is missing.
    ///
    /// # Errors
    /// As [`Self::create_bucket`], but for [`Error::BucketExists`].
    pub fn create_bucket_if_not_exists(&mut self, name: impl AsRef<[u8]>) -> Result<BucketMut<'_>> {
        let id = self.work.create_bucket_if_not_exists(self.id, name.as_ref())?;
        Ok(BucketMut { work: self.work, id })
    }

    /// Deletes a bucket within this one, with everything in it.
    ///
    /// # Errors
    /// [`Error::BucketNotFound`]; [`Error::IncompatibleValue`] where the name is a value's key;
    /// [`Error::Corrupt`] where a page of it is damaged.
    pub fn delete_bucket(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        self.work.delete_bucket(self.id, name.as_ref())
    }

    /// Raises the sequence by one and returns it.
    ///
    /// # Errors
    /// [`Error::SequenceExhausted`].
    pub fn next_sequence(&mut self) -> Result<u64> {
        self.work.next_sequence(self.id)
    }

    /// Sets the sequence.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the bucket's root page is damaged.
    pub fn set_sequence(&mut self, sequence: u64) -> Result<()> {
        self.work.set_sequence(self.id, sequence)
    }

    /// How full this bucket's pages are left when they are split by this transaction's commit.
    pub fn set_fill(&mut self, fill: Fill) {
        self.work.set_fill(self.id, fill);
    }

    /// A cursor that can delete.
    #[must_use]
    pub fn cursor_mut(&mut self) -> CursorMut<'_> {
        CursorMut::new(BucketMut { work: self.work, id: self.id })
    }
}

impl<'a> IntoIterator for &'a BucketMut<'_> {
    type Item = <Range<'a> as Iterator>::Item;
    type IntoIter = Range<'a>;

    fn into_iter(self) -> Range<'a> {
        self.iter()
    }
}

impl fmt::Debug for BucketMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketMut").field("sequence", &self.sequence()).finish_non_exhaustive()
    }
}
