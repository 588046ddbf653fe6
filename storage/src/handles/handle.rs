//! Handles: buckets of a write transaction, named by a copyable number, and a walk that borrows nothing between its steps.
//!
//! A bucket that is lent keeps all others from being written. A handle lends nothing: it is looked up in its transaction
//! each time, which costs two comparisons, and misuse is an error.

use std::ops::Bound;

use super::key_range::KeyRange;
use super::{Bucket, BucketMut, Entry, TxMut};
use crate::tree::BucketId;
use crate::{Error, Result};

/// A bucket of a write transaction, as a number that can be copied and borrows nothing: with several, a transaction
/// works with several buckets in turn, at the cost of no look-up by name. See [`TxMut::at`] and [`TxMut::at_mut`].
///
/// It is good for as long as its transaction has the bucket, wherever that is moved. For a bucket that was deleted it is
/// good again once a savepoint has brought that back; one that is made anew under the same name is another bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BucketHandle {
    transaction: u64,
    bucket: BucketId,
}

impl BucketHandle {
    /// A walk through the bucket's entries between two bounds (`..` is all of them), which lends nothing of the
    /// transaction between its steps.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "a range is written where it is used, as for the standard maps")]
    pub fn walk(self, keys: impl KeyRange) -> Walk {
        let [low, high] = [keys.low(), keys.high()].map(|bound| bound.map(<[u8]>::to_vec));
        Walk { handle: self, low, high, key: Vec::new(), value: Vec::new(), begun: false }
    }
}

impl BucketMut<'_> {
    /// A handle of this bucket, which lends nothing: with it the bucket is found again after others were written.
    #[must_use]
    pub fn handle(&self) -> BucketHandle {
        BucketHandle { transaction: self.work.number, bucket: self.id }
    }
}

impl TxMut {
    /// The bucket of a handle, to be read. It may be read between writes to others, or to the same one, and shows what
    /// they have changed; also a parent between writes to a bucket in it.
    ///
    /// ```
    /// # let db = boltkv_storage::Options::new().open_in_memory()?;
    /// db.update(|tx| {
    ///     let accounts = tx.create_bucket("accounts")?.handle();
    ///     let log = tx.create_bucket("log")?.handle();
    ///     for (name, balance) in [("ada", "10"), ("alan", "20"), ("ada", "30")] {
    ///         if tx.at(accounts)?.get(name)?.is_some() {
    ///             tx.at_mut(log)?.put(name, "changed")?;
    ///         }
    ///         tx.at_mut(accounts)?.put(name, balance)?;
    ///     }
    ///     Ok(())
    /// })?;
    /// # assert_eq!(db.begin()?.bucket("log")?.count()?, 1);
    /// # Ok::<_, boltkv_storage::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BucketNotFound`] where the bucket was deleted, or made after a savepoint that was gone back to;
    /// [`Error::ForeignHandle`] for one of another transaction.
    pub fn at(&self, handle: BucketHandle) -> Result<Bucket<'_>> {
        self.id_of(handle).map(|id| Bucket::of_work(&self.work, id))
    }

    /// The bucket of a handle, to be written.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub fn at_mut(&mut self, handle: BucketHandle) -> Result<BucketMut<'_>> {
        self.id_of(handle).map(|id| BucketMut::new(&mut self.work, id))
    }

    fn id_of(&self, BucketHandle { transaction, bucket }: BucketHandle) -> Result<BucketId> {
        if transaction != self.work.number {
            return Err(Error::ForeignHandle);
        }
        if self.work.state(bucket).deleted {
            return Err(self.deleted(bucket));
        }
        Ok(bucket)
    }

    #[cold]
    fn deleted(&self, bucket: BucketId) -> Error {
        let mut error = Error::bucket_not_found(self.work.name_of(bucket));
        if let (Some(place), Some((parent, _))) = (error.place_mut(), self.work.parent_of(bucket)) {
            self.work.wrap_in_names(parent, place);
        }
        error
    }
}

/// A walk through a bucket of a write transaction, in key order, that lends nothing of the transaction between its steps:
/// what it comes by can be written to any bucket.
///
/// ```
/// # let db = boltkv_storage::Options::new().open_in_memory()?;
/// # db.update(|tx| { let mut b = tx.create_bucket("users")?; b.put("1", "ada")?; b.put("2", "alan") })?;
/// db.update(|tx| {
///     let by_name = tx.create_bucket("users by name")?.handle();
///     let mut users = tx.bucket_mut("users")?.handle().walk(..);
///     while let Some((id, name)) = users.next(tx)? {
///         if let Some(name) = name {
///             tx.at_mut(by_name)?.put(name, id)?;
///         }
///     }
///     Ok(())
/// })?;
/// # assert_eq!(db.begin()?.bucket("users by name")?.get("alan")?, Some(&b"2"[..]));
/// # Ok::<_, boltkv_storage::Error>(())
/// ```
///
/// Each step is a look-up, and copies what it answers into memory of the walk. A bucket that is only to be read as it
/// was before the transaction is read faster from [`TxMut::snapshot`].
#[derive(Debug, Clone)]
pub struct Walk {
    handle: BucketHandle,
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    /// The entry that was answered last, once it has begun.
    key: Vec<u8>,
    value: Vec<u8>,
    begun: bool,
}

impl Walk {
    /// The first entry behind the one answered last, as the transaction has it now: entries that were put behind it are
    /// come by, deleted ones are not, and nothing is passed over or answered twice. A key's value is `None` where it is
    /// a bucket. After the last entry it answers `None`, until there are more.
    ///
    /// Who puts entries ahead of the walk into its own bucket gives it no end: bound it.
    ///
    /// # Errors
    /// As [`TxMut::at`]; [`Error::Corrupt`] where the file is damaged.
    pub fn next(&mut self, tx: &TxMut) -> Result<Option<Entry<'_>>> {
        let mut cursor = tx.at(self.handle)?.cursor();
        let from = if self.begun { Bound::Excluded(&self.key) } else { self.low.as_ref() };
        let found = match from {
            Bound::Unbounded => cursor.first()?,
            Bound::Included(low) => cursor.seek(low)?,
            Bound::Excluded(low) => match cursor.seek(low)? {
                Some((key, _)) if key == low => cursor.next()?,
                behind => behind,
            },
        };
        let Some((key, value)) = found.filter(|(key, _)| self.is_below_end(key)) else { return Ok(None) };
        self.begun = true;
        self.key.clear();
        self.key.extend_from_slice(key);
        self.value.clear();
        self.value.extend_from_slice(value.unwrap_or_default());
        Ok(Some((&self.key, value.map(|_| self.value.as_slice()))))
    }

    fn is_below_end(&self, key: &[u8]) -> bool {
        match &self.high {
            Bound::Unbounded => true,
            Bound::Included(high) => key <= high.as_slice(),
            Bound::Excluded(high) => key < high.as_slice(),
        }
    }
}
