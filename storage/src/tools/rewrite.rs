//! Writing buckets and entries, in key order, into a new database: in transactions of bounded size
//! and with full pages. Whoever reads something anew ([`compact`](super::compact),
//! [`repair`](super::repair)) writes through this; it never looks at what it is given.

use std::path::Path;
use std::sync::Arc;

use crate::disk::MapOptions;
use crate::disk::{Disk as _, Existing, OsFolder, new_file, refuse_existing};
use crate::handles::{Db, TxMut};
use crate::store::{Durability, Options, new_database};
use crate::tree::{BucketId, Fill, ROOT_BUCKET, Work};
use crate::{Error, Result};

/// Entries come in key order and nothing will be put between them: pages are filled.
const FILL: Fill = Fill::Percent(1.0);

/// Has `fill` write into a new database that gets the name `path` only once it is whole and on the
/// disk. Until then nobody else sees it, so that its transactions need no sync of their own. Fails
/// where there is such a file.
pub(crate) fn in_new_file<T>(path: &Path, mode: u32, page_size: u32, fill: impl FnOnce(&Db) -> Result<T>) -> Result<T> {
    refuse_existing(path)?;
    let options = Options::new().page_size(page_size).durability(Durability::Never).statistics(false);
    let folder = OsFolder { map: MapOptions::default() };
    new_file(&folder, path, mode, Existing::Refuse, |file| {
        let failed = |error| Error::io("write", Some(path))(error);
        file.write_at(&new_database(&options)?, 0).map_err(failed)?;
        let disk = file.try_clone().map_err(failed)?;
        let target = Db::on_disk(Arc::new(disk), Some(path), &options)?;
        let filled = fill(&target)?;
        target.sync()?;
        // Behind its last page is only room to grow.
        target.cut_file()?;
        target.close()?;
        Ok(filled)
    })
}

/// How much one transaction takes before it is committed and the next one begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TxSize {
    /// Bytes; 0: one transaction takes all.
    pub(crate) max: u64,
    /// Bytes that an entry counts beside its key and value.
    pub(crate) per_entry: u64,
}

/// Stands in a bucket of the target, at first at the top, and writes there.
pub(crate) struct Rewrite<'a> {
    target: &'a Db,
    /// `None` between two transactions.
    tx: Option<TxMut>,
    tx_size: TxSize,
    /// Bytes that `tx` has taken.
    taken: u64,
    /// The buckets around the place where it stands, with their numbers in `tx`.
    path: Vec<(Box<[u8]>, BucketId)>,
}

impl<'a> Rewrite<'a> {
    pub(crate) fn new(target: &'a Db, tx_size: TxSize) -> Self {
        Self { target, tx: None, tx_size, taken: 0, path: Vec::new() }
    }

    /// Creates a bucket in the one where it stands, and goes into it.
    pub(crate) fn enter(&mut self, name: &[u8], sequence: u64) -> Result<()> {
        self.make_room(name.len())?;
        let (work, parent) = self.work()?;
        let id = work.add_bucket(parent, name)?;
        work.set_sequence(id, sequence)?;
        self.path.push((name.into(), id));
        Ok(())
    }

    /// Goes back to the bucket around the one where it stands.
    pub(crate) fn leave(&mut self) {
        self.path.pop();
    }

    /// Puts an entry into the bucket where it stands.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.path.is_empty() {
            return Err(Error::incompatible(key, false));
        }
        self.make_room(key.len() + value.len())?;
        let (work, bucket) = self.work()?;
        work.put(bucket, key, value)
    }

    /// Commits what is left.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.work()?;
        self.commit()
    }

    /// Commits where the next entry would make the transaction too large.
    fn make_room(&mut self, bytes: usize) -> Result<()> {
        let bytes = bytes as u64 + self.tx_size.per_entry;
        let max = self.tx_size.max;
        if self.taken > 0 && max > 0 && self.taken.saturating_add(bytes) > max {
            self.commit()?;
        }
        self.taken += bytes;
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.taken = 0;
        self.tx.take().map_or(Ok(()), |tx| tx.commit().map(drop))
    }

    /// The transaction's changes, and the bucket where it stands. Begins a transaction where there is none.
    fn work(&mut self) -> Result<(&mut Work, BucketId)> {
        let tx = match &mut self.tx {
            Some(tx) => tx,
            none => {
                let mut tx = self.target.begin_mut()?;
                tx.work.set_fill(ROOT_BUCKET, FILL);
                let mut bucket = ROOT_BUCKET;
                for (name, id) in &mut self.path {
                    bucket = tx.work.open_bucket(bucket, name)?;
                    *id = bucket;
                }
                none.insert(tx)
            }
        };
        let bucket = self.path.last().map_or(ROOT_BUCKET, |(_, id)| *id);
        Ok((&mut tx.work, bucket))
    }
}
