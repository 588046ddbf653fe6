//! What handles more than one entry of a bucket at a time, or the one at its end.

use std::ops::ControlFlow;

use super::key_range::KeyRange;
use super::{Bucket, BucketMut, Deleted, Entry, Tx, TxMut};
use crate::Result;
use crate::tree::{Allowance, pages};

impl<'tx> Bucket<'tx> {
    /// The first entry.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) where the file is damaged.
    pub fn first(&self) -> Result<Option<Entry<'tx>>> {
        self.cursor().first()
    }

    /// The last entry.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) where the file is damaged.
    pub fn last(&self) -> Result<Option<Entry<'tx>>> {
        self.cursor().last()
    }

    /// How many entries there are, values and buckets; those within the buckets are not counted.
    ///
    /// bolt keeps no count: this reads the header of every page of the bucket, which is quick for
    /// thousands of entries and takes a file's worth of I/O for millions. Keep a counter of your own
    /// where you need it often.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) where the file is damaged.
    pub fn count(&self) -> Result<u64> {
        let mut count = 0;
        let _: ControlFlow<()> = pages(self.source, self.root, &mut Allowance::new(&self.source), |view, _| {
            count += if view.is_leaf() { view.len() as u64 } else { 0 };
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(count)
    }

    /// Calls `act` with each entry, in key order, until one call fails; values are `None` where the
    /// key is a bucket. With an error type of your own, loop over [`Self::iter`].
    ///
    /// ```
    /// # let db = boltkv_storage::Options::new().open_in_memory()?;
    /// # db.update(|tx| tx.create_bucket("planets")?.put("earth", "third"))?;
    /// # let tx = db.begin()?;
    /// tx.bucket("planets")?.for_each(|name, place| {
    ///     println!("{} is {}", name.escape_ascii(), place.unwrap_or_default().escape_ascii());
    ///     Ok(())
    /// })?;
    /// # Ok::<_, boltkv_storage::Error>(())
    /// ```
    ///
    /// # Errors
    /// What `act` returns; [`Error::Corrupt`](crate::Error::Corrupt) where the file is damaged.
    pub fn for_each(&self, mut act: impl FnMut(&'tx [u8], Option<&'tx [u8]>) -> Result<()>) -> Result<()> {
        self.iter().try_for_each(|entry| {
            let (key, value) = entry?;
            act(key, value)
        })
    }

    /// Calls `act` with each bucket in this one, in the order of their names, until one call fails.
    ///
    /// # Errors
    /// What `act` returns; [`Error::Corrupt`](crate::Error::Corrupt) where the file is damaged.
    pub fn for_each_bucket(&self, mut act: impl FnMut(&'tx [u8], Bucket<'tx>) -> Result<()>) -> Result<()> {
        self.buckets().try_for_each(|entry| {
            let (name, bucket) = entry?;
            act(name, bucket)
        })
    }
}

impl BucketMut<'_> {
    /// As [`Bucket::first`].
    ///
    /// # Errors
    /// As [`Bucket::first`].
    pub fn first(&self) -> Result<Option<Entry<'_>>> {
        self.as_bucket().first()
    }

    /// As [`Bucket::last`].
    ///
    /// # Errors
    /// As [`Bucket::last`].
    pub fn last(&self) -> Result<Option<Entry<'_>>> {
        self.as_bucket().last()
    }

    /// As [`Bucket::count`].
    ///
    /// # Errors
    /// As [`Bucket::count`].
    pub fn count(&self) -> Result<u64> {
        self.as_bucket().count()
    }

    /// Takes the first entry out and returns it, so that a bucket can serve as a queue. Costs as much
    /// as a look-up, however many were taken out before.
    ///
    /// # Errors
    /// [`Error::IncompatibleValue`](crate::Error::IncompatibleValue) where the first entry is a bucket;
    /// [`Error::Corrupt`](crate::Error::Corrupt) where the file is damaged.
    pub fn pop_first(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.take_first().map_err(|error| self.as_bucket().located(error))
    }

    /// Deletes the values between two bounds, from the lowest key on, and at most `limit` of them.
    ///
    /// Costs a look-up an entry, O(n log n). The leaves with what is deleted are read and taken
    /// apart, so that the transaction takes memory for their keys (about 40 bytes each) until it
    /// ends: to delete many millions, give a limit and commit in between.
    ///
    /// ```
    /// # use boltkv_storage::{Error, Options};
    /// # let db = Options::new().open_in_memory()?;
    /// # let mut tx = db.begin_mut()?;
    /// let mut log = tx.create_bucket("log")?;
    /// for day in ["2030-01-01", "2030-01-02", "2030-02-01"] {
    ///     log.put(day, "…")?;
    /// }
    /// let deleted = log.delete_range(.."2030-02", usize::MAX)?;
    /// assert_eq!((deleted.count, deleted.more), (2, false));
    /// # Ok::<_, Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::IncompatibleValue`](crate::Error::IncompatibleValue) where a bucket is among what would be deleted;
    /// [`Error::Corrupt`](crate::Error::Corrupt) where the file is damaged. Nothing is deleted then.
    #[expect(clippy::needless_pass_by_value, reason = "a range is written where it is used, as for the standard maps")]
    pub fn delete_range(&mut self, keys: impl KeyRange, limit: usize) -> Result<Deleted> {
        let deleted = self.delete_between(keys.low(), keys.high(), limit);
        deleted.map_err(|error| self.as_bucket().located(error))
    }
}

impl Tx {
    /// Calls `act` with each top-level bucket, in the order of their names, until one call fails.
    ///
    /// # Errors
    /// What `act` returns; [`Error::Corrupt`](crate::Error::Corrupt) where the file is damaged.
    pub fn for_each<'tx>(&'tx self, act: impl FnMut(&'tx [u8], Bucket<'tx>) -> Result<()>) -> Result<()> {
        self.root().for_each_bucket(act)
    }
}

impl TxMut {
    /// As [`Tx::for_each`].
    ///
    /// # Errors
    /// As [`Tx::for_each`].
    pub fn for_each<'tx>(&'tx self, act: impl FnMut(&'tx [u8], Bucket<'tx>) -> Result<()>) -> Result<()> {
        self.root().for_each_bucket(act)
    }

    /// Moves the bucket `name`, with all in it, from the bucket at the path `from` to the one at the
    /// path `to`; an empty path is the top. Nothing is copied: it costs as much as a put. It keeps its name;
    /// [`Self::move_bucket_as`] gives it another.
    ///
    /// (bbolt's `MoveBucket` takes two buckets. Here two can never be open for writing at once, so it
    /// takes their paths.)
    ///
    /// ```
    /// # use boltkv_storage::{Error, Options};
    /// # let db = Options::new().open_in_memory()?;
    /// # let mut tx = db.begin_mut()?;
    /// tx.create_bucket("inbox")?.create_bucket("report")?;
    /// tx.create_bucket("archive")?;
    /// tx.move_bucket("report", &["inbox"], &["archive"])?;
    /// assert!(tx.bucket("archive")?.bucket("report").is_ok());
    /// # Ok::<_, Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BucketNotFound`](crate::Error::BucketNotFound): there is no such bucket, or no bucket at a path.
    /// [`Error::IncompatibleValue`](crate::Error::IncompatibleValue): one of the names is a value's key, in `to`
    /// as well.
    /// [`Error::SameBuckets`](crate::Error::SameBuckets): both paths lead to one bucket.
    /// [`Error::BucketExists`](crate::Error::BucketExists): there is one of that name in `to`.
    /// [`Error::MovedIntoItself`](crate::Error::MovedIntoItself): `to` is the bucket itself, or lies within
    /// it. (bbolt does not notice, and loses it.)
    pub fn move_bucket<N: AsRef<[u8]>>(&mut self, name: impl AsRef<[u8]>, from: &[N], to: &[N]) -> Result<()> {
        let name = name.as_ref();
        self.move_bucket_as(name, from, to, name)
    }

    /// Moves a bucket as [`Self::move_bucket`] does, and calls it `its_name` from then on. With `to` as `from` it is renamed
    /// where it is.
    ///
    /// (bbolt has no such function: what it does is to create another bucket and copy all.)
    ///
    /// ```
    /// # use boltkv_storage::{Error, Options};
    /// # let db = Options::new().open_in_memory()?;
    /// # let mut tx = db.begin_mut()?;
    /// tx.create_bucket("next")?.put("key", "value")?;
    /// tx.move_bucket_as::<&str>("next", &[], &[], "current")?;
    /// assert_eq!(tx.bucket("current")?.get("key")?, Some(&b"value"[..]));
    /// # Ok::<_, Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Self::move_bucket`]; of a new name also [`Error::BucketNameRequired`](crate::Error::BucketNameRequired)
    /// where it is empty, and [`Error::KeyTooLarge`](crate::Error::KeyTooLarge).
    pub fn move_bucket_as<N: AsRef<[u8]>>(
        &mut self,
        name: impl AsRef<[u8]>,
        from: &[N],
        to: &[N],
        its_name: impl AsRef<[u8]>,
    ) -> Result<()> {
        let from = self.work.open_path(from)?;
        let to = self.work.open_path(to)?;
        self.work.move_bucket(name.as_ref(), from, to, its_name.as_ref())
    }
}
