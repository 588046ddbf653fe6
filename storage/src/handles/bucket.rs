//! Buckets: [`Bucket`] to read, [`BucketMut`] to write. Both only lend what their transaction has.

use std::fmt;
use std::ops::Bound;

use super::key_range::KeyRange;
use super::range::prefix_bounds;
use super::{Cursor, CursorMut, Range};
use crate::base::BucketPath;
use crate::format::{LeafEntry, Pgid, bucket_value};
use crate::pages::Tops;
use crate::tree::{BucketId, Child, Fill, Root, Source, Work};
use crate::{Error, Result};

/// A bucket, to be read: an ordered map of keys to values and to further buckets. It is a small
/// handle, and what it answers lives as long as the borrow of its transaction.
#[derive(Clone, Copy)]
pub struct Bucket<'tx> {
    pub(crate) source: Source<'tx>,
    pub(crate) root: Root<'tx>,
    /// Empty for the root bucket.
    name: &'tx [u8],
    sequence: u64,
    /// In a write transaction: the bucket's state, if it was opened for writing.
    state: Option<BucketId>,
}

impl<'tx> Bucket<'tx> {
    /// The root bucket of a snapshot.
    pub(crate) fn root(source: Source<'tx>, root: Pgid, sequence: u64) -> Self {
        Self { source, root: Root::Tree(Child::Page(root)), name: b"", sequence, state: None }
    }

    /// A bucket that a write transaction has opened.
    pub(crate) fn of_work(work: &'tx Work, id: BucketId) -> Self {
        let (source, root, name, sequence) = (work.source(), work.root(id), work.name_of(id), work.sequence(id));
        Self { source, root, name, sequence, state: Some(id) }
    }

    /// An error of this bucket says that it is one, and on which page an inline one lies, unless it knows better.
    #[cold]
    pub(crate) fn located(&self, error: Error) -> Error {
        self.source.located(self.root, error, |place| self.wrap(place))
    }

    /// Puts the names that lead to this bucket, as far as it knows them, around those of `place`.
    fn wrap(&self, place: &mut BucketPath) {
        match (self.source.work, self.state) {
            (Some(work), Some(id)) => work.wrap_in_names(id, place),
            _ if self.name.is_empty() => {}
            _ => place.wrap(self.name),
        }
    }

    /// The value of `key`; `None` where there is none. A look-up reads as many pages as the tree is
    /// deep.
    ///
    /// # Errors
    /// [`Error::IncompatibleValue`] where the key is a bucket; [`Error::Corrupt`] where the file is
    /// damaged.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<&'tx [u8]>> {
        match self.find(key.as_ref())? {
            Some(found) if found.is_bucket => Err(self.located(Error::incompatible(key.as_ref(), true))),
            found => Ok(found.map(|entry| entry.value)),
        }
    }

    fn find(&self, key: &[u8]) -> Result<Option<LeafEntry<'tx>>> {
        self.source.find(self.root, key).map_err(|error| self.located(error))
    }

    /// The bucket of that name within this one.
    ///
    /// # Errors
    /// [`Error::BucketNotFound`]; [`Error::IncompatibleValue`] where the name is a value's key;
    /// [`Error::Corrupt`] where the file is damaged.
    pub fn bucket(&self, name: impl AsRef<[u8]>) -> Result<Self> {
        let name = name.as_ref();
        let found = self.find(name)?.ok_or_else(|| self.located(Error::bucket_not_found(name)))?;
        let mut bucket = self.bucket_of(found)?;
        if let Root::Tree(Child::Page(id)) = bucket.root {
            bucket.root = bucket.source.tree(id);
        }
        Ok(bucket)
    }

    /// A bucket within this one, the root of a snapshot, which notes where those at the top begin.
    ///
    /// # Errors
    /// As [`Self::bucket`].
    #[inline]
    pub(crate) fn top(&self, name: &[u8], tops: &'tx Tops) -> Result<Self> {
        if let Some(top) = tops.get(name) {
            let (source, root) = (self.source, self.source.tree(top.root));
            return Ok(Self { source, root, name: top.name(), sequence: top.sequence, state: None });
        }
        let bucket = self.bucket(name)?;
        if let Some(root) = bucket.root_page() {
            tops.note(name, root, bucket.sequence());
        }
        Ok(bucket)
    }

    /// The bucket in one of this bucket's entries. None of its pages is read.
    pub(crate) fn bucket_of(&self, entry: LeafEntry<'tx>) -> Result<Self> {
        if !entry.is_bucket {
            return Err(self.located(Error::incompatible(entry.key, false)));
        }
        if let (Some(work), Some(parent)) = (self.source.work, self.state)
            && let Some(id) = work.opened(parent, entry.key)
        {
            return Ok(Self::of_work(work, id));
        }
        let (header, inline) = bucket_value(0, entry.value).map_err(|error| self.bad_bucket(entry, error))?;
        let root = inline.map_or(Root::Tree(Child::Page(header.root.get())), Root::Inline);
        Ok(Self { source: self.source, root, name: entry.key, sequence: header.sequence.get(), state: None })
    }

    /// The error of an entry that is a bucket, and damaged.
    #[cold]
    fn bad_bucket(&self, entry: LeafEntry<'tx>, mut error: Error) -> Error {
        if let Error::Corrupt { page, bucket, .. } = &mut error {
            *page = self.source.pages.page_of(entry.value);
            bucket.wrap(entry.key);
            self.wrap(bucket);
        }
        error
    }

    /// The bucket that a path of names leads to, the first of which `top` knows.
    ///
    /// # Errors
    /// As [`Self::bucket`]; [`Error::BucketNameRequired`] for an empty path.
    #[inline]
    pub(crate) fn at_path<N: AsRef<[u8]>>(
        path: impl IntoIterator<Item = N>,
        top: impl FnOnce(N) -> Result<Self>,
    ) -> Result<Self> {
        let mut names = path.into_iter();
        let mut bucket = top(names.next().ok_or(Error::BucketNameRequired)?)?;
        let mut above: Vec<&[u8]> = Vec::new();
        for name in names {
            let inner = bucket.bucket(name).map_err(|mut error| {
                if let Some(place) = error.place_mut().filter(|_| bucket.state.is_none()) {
                    above.iter().rev().for_each(|outer| place.wrap(outer));
                }
                error
            })?;
            above.push(bucket.name);
            bucket = inner;
        }
        Ok(bucket)
    }

    /// The page that the bucket's tree starts at; `None` where it lies inline in its parent's leaf, or
    /// was changed by this transaction.
    #[must_use]
    pub fn root_page(&self) -> Option<Pgid> {
        match self.root {
            Root::Tree(Child::Page(id)) => Some(id),
            Root::Read(page) => Some(page.id()),
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
        Cursor::new(*self)
    }

    /// All entries, in key order.
    #[must_use]
    pub fn iter(&self) -> Range<'tx> {
        Range::new(self.cursor(), Bound::Unbounded, Bound::Unbounded)
    }

    /// The entries between two bounds, in key order. Bounds that exclude everything give nothing.
    ///
    /// ```
    /// # let db = boltkv_storage::Options::new().open_in_memory()?;
    /// # let mut tx = db.begin_mut()?; let mut bucket = tx.create_bucket("b")?;
    /// # for key in ["a", "b", "c"] { bucket.put(key, "")?; }
    /// for entry in bucket.range("a".."c") {
    ///     let (key, value) = entry?;
    ///     println!("{} has {} bytes", key.escape_ascii(), value.unwrap_or_default().len());
    /// #   assert!(key < b"c" && value.is_some());
    /// }
    /// let last = bucket.range(..=[0xff; 8]).next_back().transpose()?;
    /// # assert_eq!(last, Some((&b"c"[..], Some(&b""[..]))));
    /// # Ok::<_, boltkv_storage::Error>(())
    /// ```
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "a range is written where it is used, as for the standard maps")]
    pub fn range(&self, keys: impl KeyRange) -> Range<'tx> {
        Range::new(self.cursor(), keys.low(), keys.high())
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

    /// Does something that the bucket's state is needed for; an error says which bucket it was.
    pub(crate) fn change<T>(&mut self, change: impl FnOnce(&mut Work, BucketId) -> Result<T>) -> Result<T> {
        change(self.work, self.id).map_err(|error| self.as_bucket().located(error))
    }

    pub(crate) fn into_bucket_mut(mut self, name: &[u8]) -> Result<Self> {
        let id = self.change(|work, id| work.open_bucket(id, name))?;
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
    pub fn range(&self, keys: impl KeyRange) -> Range<'_> {
        self.as_bucket().range(keys)
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
        self.change(|work, id| work.put(id, key.as_ref(), value.as_ref()))
    }

    /// Deletes a key's value. Returns whether there was one.
    ///
    /// # Errors
    /// [`Error::IncompatibleValue`] where the key is a bucket; [`Error::Corrupt`] where the file is
    /// damaged.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.change(|work, id| work.delete(id, key.as_ref()))
    }

    /// The bucket of that name within this one, to be written.
    ///
    /// # Errors
    /// As [`Bucket::bucket`].
    pub fn bucket_mut(&mut self, name: impl AsRef<[u8]>) -> Result<BucketMut<'_>> {
        let id = self.change(|work, id| work.open_bucket(id, name.as_ref()))?;
        Ok(BucketMut { work: self.work, id })
    }

    /// Creates a bucket within this one.
    ///
    /// # Errors
    /// [`Error::BucketExists`], [`Error::BucketNameRequired`], [`Error::KeyTooLarge`];
    /// [`Error::IncompatibleValue`] where the name is a value's key.
    pub fn create_bucket(&mut self, name: impl AsRef<[u8]>) -> Result<BucketMut<'_>> {
        let id = self.change(|work, id| work.create_bucket(id, name.as_ref()))?;
        Ok(BucketMut { work: self.work, id })
    }

    /// Opens a bucket within this one, which is created if it is missing.
    ///
    /// # Errors
    /// As [`Self::create_bucket`], but for [`Error::BucketExists`].
    pub fn create_bucket_if_not_exists(&mut self, name: impl AsRef<[u8]>) -> Result<BucketMut<'_>> {
        let id = self.change(|work, id| work.create_bucket_if_not_exists(id, name.as_ref()))?;
        Ok(BucketMut { work: self.work, id })
    }

    /// Deletes a bucket within this one, with everything in it. Of a large one the pages are freed over time, as
    /// [`TxMut::delete_bucket`](crate::TxMut::delete_bucket) says.
    ///
    /// # Errors
    /// [`Error::BucketNotFound`]; [`Error::IncompatibleValue`] where the name is a value's key;
    /// [`Error::Corrupt`] where one of its first 256 pages is damaged.
    pub fn delete_bucket(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        self.change(|work, id| work.delete_bucket(id, name.as_ref()))
    }

    /// Raises the sequence by one and returns it.
    ///
    /// # Errors
    /// [`Error::SequenceExhausted`].
    pub fn next_sequence(&mut self) -> Result<u64> {
        self.change(Work::next_sequence)
    }

    /// Sets the sequence.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the bucket's root page is damaged.
    pub fn set_sequence(&mut self, sequence: u64) -> Result<()> {
        self.change(|work, id| work.set_sequence(id, sequence))
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
