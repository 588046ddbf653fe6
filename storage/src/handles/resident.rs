//! For those who must not wait for the disk: whether a look-up would, and waiting elsewhere. For those who look many keys
//! up: waiting for the memory once instead of for each.

use super::Bucket;

impl Bucket<'_> {
    /// Whether [`Self::get`] would find all pages that it reads for `key` in memory, and so would not wait for the disk.
    /// For a thread that others wait for, which can have a thread that may wait call [`Self::fault_in`] first.
    ///
    /// It costs a call of the system's for each level of the tree, about as much as the look-up itself. It is a snapshot
    /// of something that changes: the system may drop a page at any time. Where nothing is to be known, as on a damaged
    /// page or on a system that does not tell, it is `true`. Of a value of more than 16 MiB the beginning is looked at.
    #[must_use]
    pub fn is_resident(&self, key: impl AsRef<[u8]>) -> bool {
        self.source.is_resident(self.root, key.as_ref())
    }

    /// Waits until the pages that [`Self::get`] reads for these keys are in memory, also for keys that are not there. They
    /// are asked of the disk together, so that many take little longer than one. A hint: pages may be dropped
    /// again before they are looked at, and damage is passed over, of which `get` tells. Of a value of more than 16 MiB the
    /// beginning is read.
    ///
    /// It takes some dozens of bytes of memory for each key, and the system as many pages as it finds.
    ///
    /// ```
    /// # let db = boltkv_storage::Options::new().open_in_memory()?;
    /// # db.update(|tx| tx.create_bucket("b")?.put("key", "value"))?;
    /// let tx = db.begin()?;
    /// let bucket = tx.bucket("b")?;
    /// if !bucket.is_resident("key") {
    ///     bucket.fault_in(&["key"]);
    /// }
    /// assert_eq!(bucket.get("key")?, Some(&b"value"[..]));
    /// # Ok::<_, boltkv_storage::Error>(())
    /// ```
    pub fn fault_in(&self, keys: &[impl AsRef<[u8]>]) {
        self.source.fault_in(self.root, keys);
    }

    /// Has the processor fetch what [`Self::get`] or [`BucketMut::put`](super::BucketMut::put) reads of the leaves for these
    /// keys, some dozens at a time, which are about to be looked up: of all of them at once, where each look-up on its own
    /// waits for the memory several times. A hint, as [`Self::fault_in`] is; where a page is not in memory it waits for
    /// the disk, as the look-up would. On processors other than x86-64 it costs time and brings nothing.
    pub fn prefetch(&self, keys: &[impl AsRef<[u8]>]) {
        self.source.prefetch(self.root, keys);
    }
}
