//! Writing a database anew, without its free pages and with full ones.

use crate::bucket::Bucket;
use crate::db::Db;
use crate::format::{ELEMENT, LeafEntry};
use crate::range::Range;
use crate::tx::{BucketId, Fill, ROOT_BUCKET, Tx, TxMut};
use crate::walk::Allowance;
use crate::{Error, Result};

/// Entries come in key order and nothing will be put between them: pages are filled.
const FILL: Fill = Fill::Percent(1.0);

impl Tx {
    /// Copies all buckets, values and sequences into `target`, a new database, in key order and with
    /// full pages, as bbolt's `Compact`. A write transaction on `target` takes up to `tx_max_size`
    /// bytes of keys and values before it is committed and the next one begins; 0: one takes all.
    ///
    /// # Errors
    /// [`Error::BucketExists`] where `target` has a bucket of the same name at the top;
    /// [`Error::Corrupt`] where this file is damaged; those of [`TxMut::commit`]. What was committed
    /// to `target` before the error stays there.
    pub fn compact_into(&self, target: &Db, tx_max_size: u64) -> Result<()> {
        let mut levels = vec![Level::new(&[], self.root(), ROOT_BUCKET)];
        let mut allowance = Allowance::new(&self.source());
        let mut copy = Copy::begin(target, tx_max_size)?;
        while let Some(level) = levels.last_mut() {
            let Some(entry) = level.entries.next_entry().transpose()? else {
                levels.pop();
                continue;
            };
            let page = self.snapshot().meta.root;
            // A bucket's value is its header, and an inline page whose entries count for themselves.
            let value = if entry.is_bucket { 0 } else { entry.value.len() };
            let size = entry.key.len() + value;
            allowance.spend(page, ELEMENT + size)?;
            copy = copy.make_room(size as u64, &mut levels)?;
            let Some(level) = levels.last() else { break };
            if !entry.is_bucket {
                copy.put(level, &entry)?;
                continue;
            }
            let bucket = level.bucket.bucket_of(entry)?;
            let id = copy.create_bucket(level, entry.key, bucket.sequence())?;
            levels.push(Level::new(entry.key, bucket, id));
        }
        copy.tx.commit().map(drop)
    }
}

/// A bucket that is being copied.
struct Level<'tx> {
    name: &'tx [u8],
    bucket: Bucket<'tx>,
    entries: Range<'tx>,
    /// Its copy, in the transaction that is open.
    copy: BucketId,
}

impl<'tx> Level<'tx> {
    fn new(name: &'tx [u8], bucket: Bucket<'tx>, copy: BucketId) -> Self {
        Self { name, bucket, entries: bucket.iter(), copy }
    }
}

/// The write side of a compaction.
struct Copy<'a> {
    target: &'a Db,
    tx: TxMut,
    /// Bytes of keys and values that `tx` has taken.
    size: u64,
    max_size: u64,
}

impl<'a> Copy<'a> {
    fn begin(target: &'a Db, max_size: u64) -> Result<Self> {
        let mut tx = target.begin_mut()?;
        tx.work.set_fill(ROOT_BUCKET, FILL);
        Ok(Self { target, tx, size: 0, max_size })
    }

    /// Goes on in a new transaction where this one would grow too large.
    fn make_room(mut self, bytes: u64, levels: &mut [Level<'_>]) -> Result<Self> {
        let fits = self.size == 0 || self.max_size == 0 || self.size + bytes <= self.max_size;
        if !fits {
            self.tx.commit()?;
            self = Self::begin(self.target, self.max_size)?;
            let mut parent = ROOT_BUCKET;
            for level in levels.iter_mut().skip(1) {
                parent = self.tx.work.open_bucket(parent, level.name)?;
                level.copy = parent;
            }
        }
        self.size += bytes;
        Ok(self)
    }

    fn put(&mut self, level: &Level<'_>, entry: &LeafEntry<'_>) -> Result<()> {
        if level.copy == ROOT_BUCKET {
            return Err(Error::incompatible(entry.key, false));
        }
        self.tx.work.put(level.copy, entry.key, entry.value)
    }

    fn create_bucket(&mut self, level: &Level<'_>, name: &[u8], sequence: u64) -> Result<BucketId> {
        let id = self.tx.work.add_bucket(level.copy, name)?;
        self.tx.work.set_sequence(id, sequence)?;
        Ok(id)
    }
}
