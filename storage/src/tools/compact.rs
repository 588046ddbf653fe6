//! Writing a database anew, without its free pages and with full ones.

use std::path::Path;

use super::rewrite::{Rewrite, TxSize, in_new_file};
use crate::format::ELEMENT;
use crate::handles::Bucket;
use crate::handles::Db;
use crate::handles::Range;
use crate::handles::Tx;
use crate::tree::Allowance;
use crate::{Error, Result};

impl Tx {
    /// Copies all buckets, values and sequences into `target`, a new database, in key order and with
    /// full pages, as bbolt's `Compact`. A write transaction on `target` takes up to `tx_max_size`
    /// bytes of keys and values before it is committed and the next one begins; 0: one takes all.
    ///
    /// # Errors
    /// [`Error::BucketExists`] where `target` has a bucket of the same name at the top;
    /// [`Error::Corrupt`] where this file is damaged; those of
    /// [`TxMut::commit`](crate::TxMut::commit). What was committed to `target` before the error stays
    /// there.
    pub fn compact_into(&self, target: &Db, tx_max_size: u64) -> Result<()> {
        self.compact(target, tx_max_size, &mut |_| ())
    }

    /// The same; `progress` is told how many bytes of keys and values were copied so far.
    ///
    /// # Errors
    /// As [`Self::compact_into`].
    pub fn compact_telling(&self, target: &Db, tx_max_size: u64, progress: &mut dyn FnMut(u64)) -> Result<()> {
        self.compact(target, tx_max_size, progress)
    }

    /// The same into a new file with pages of the same size and the permissions `mode` (before the
    /// process's umask), whose length in bytes is returned. The file has its name only once it is
    /// whole and on the disk, so that one sync at the end is enough: transactions do not cost one
    /// each. Takes memory for `tx_max_size` bytes of keys and values, and what is beside them.
    /// `progress` is told how many bytes of keys and values were copied so far.
    ///
    /// # Errors
    /// [`Error::Io`] of the kind `AlreadyExists` where there is such a file, which is left as it is;
    /// [`Error::Corrupt`] where this file is damaged; those of
    /// [`TxMut::commit`](crate::TxMut::commit). Nothing is left of what was written until then.
    pub fn compact_to_file(
        &self,
        path: impl AsRef<Path>,
        mode: u32,
        tx_max_size: u64,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let page_size = self.snapshot().meta.page_size;
        in_new_file(path.as_ref(), mode, page_size, |target| self.compact(target, tx_max_size, progress))?;
        path.as_ref().metadata().map(|file| file.len()).map_err(Error::io("look at", Some(path.as_ref())))
    }

    fn compact(&self, target: &Db, tx_max_size: u64, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let page = self.snapshot().meta.root;
        let mut levels: Vec<(Bucket<'_>, Range<'_>)> = vec![(self.root(), self.root().iter())];
        let mut allowance = Allowance::new(&self.source());
        // Only keys and values count, as bbolt has it: where transactions end decides what the file looks like.
        let mut copy = Rewrite::new(target, TxSize { max: tx_max_size, per_entry: 0 });
        let mut copied = 0;
        while let Some((bucket, entries)) = levels.last_mut() {
            let Some(entry) = entries.next_entry().transpose()? else {
                levels.pop();
                copy.leave();
                continue;
            };
            // A bucket's value is its header, and an inline page whose entries count for themselves.
            let value = if entry.is_bucket { 0 } else { entry.value.len() };
            let size = entry.key.len() + value;
            allowance.spend(page, ELEMENT + size)?;
            copied += size as u64;
            progress(copied);
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
