//! Writing a database anew, without its free pages and with full ones.

use crate::Result;
use crate::bucket::Bucket;
use crate::db::Db;
use crate::format::ELEMENT;
use crate::range::Range;
use crate::rewrite::{Rewrite, TxSize};
use crate::tx::Tx;
use crate::walk::Allowance;

impl Tx {
    /// Copies all buckets, values and sequences into `target`, a new database, in key order and with
    /// full pages, as bbolt's `Compact`. A write transaction on `target` takes up to `tx_max_size`
    /// bytes of keys and values before it is committed and the next one begins; 0: one takes all.
    ///
    /// # Errors
    /// [`Error::BucketExists`](crate::Error::BucketExists) where `target` has a bucket of the same
    /// name at the top; [`Error::Corrupt`](crate::Error::Corrupt) where this file is damaged; those
    /// of [`TxMut::commit`](crate::TxMut::commit). What was committed to `target` before the error
    /// stays there.
    pub fn compact_into(&self, target: &Db, tx_max_size: u64) -> Result<()> {
        let page = self.snapshot().meta.root;
        let mut levels: Vec<(Bucket<'_>, Range<'_>)> = vec![(self.root(), self.root().iter())];
        let mut allowance = Allowance::new(&self.source());
        // Only keys and values count, as bbolt has it: where transactions end decides what the file looks like.
        let mut copy = Rewrite::new(target, TxSize { max: tx_max_size, per_entry: 0 });
        while let Some((bucket, entries)) = levels.last_mut() {
            let Some(entry) = entries.next_entry().transpose()? else {
                levels.pop();
                copy.leave();
                continue;
            };
            // A bucket's value is its header, and an inline page whose entries count for themselves.
            let value = if entry.is_bucket { 0 } else { entry.value.len() };
            allowance.spend(page, ELEMENT + entry.key.len() + value)?;
            if entry.is_bucket {
                let inner = bucket.bucket_of(entry)?;
                copy.enter(entry.key, inner.sequence())?;
                levels.push((inner, inner.iter()));
            } else {
                copy.put(entry.key, entry.value)?;
            }
        }
        copy.finish()
    }
}
