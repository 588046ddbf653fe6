//! LMDB, through heed. The only unsafe code here is what heed asks of whoever opens a file: that nobody else changes
//! it. The folder is this process's own.
#![allow(unsafe_code, reason = "opening a map of a file is unsafe in heed")]

use std::path::Path;

use anyhow::{Result, bail};
use heed::types::Bytes;
use heed::{CommitOrAbort, Env, EnvFlags, EnvOpenOptions};

use super::{Engine, Freelist, Setup};
use crate::data::Key;

/// The most that a file may grow to: address space, no memory.
const MAP_BYTES: usize = 64 << 30;

/// An environment with its unnamed database.
#[derive(Debug)]
pub struct Lmdb {
    env: &'static Env,
    db: heed::Database<'static, Bytes, Bytes>,
}

impl Engine for Lmdb {
    fn open(folder: &Path, setup: Setup) -> Result<Self> {
        if setup.freelist != Freelist::Default {
            bail!("LMDB always stores its free pages");
        }
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_BYTES);
        if !setup.synced {
            // SAFETY: without syncs a crash may cost the file, which nobody keeps.
            unsafe { options.flags(EnvFlags::NO_SYNC) };
        }
        // SAFETY: the folder is new and only this process knows it.
        // Leaked, since heed binds a database to a borrow of its environment; a worker opens one.
        let env: &'static Env = Box::leak(Box::new(unsafe { options.open(folder)? }));
        let db = env
            .create_databases_and_commit(env.write_txn()?, |opener, tx| {
                opener.create_database(tx, None).map(CommitOrAbort::<_, ()>::Commit)
            })?
            .unwrap_commit();
        Ok(Self { env, db })
    }

    fn put<'v>(&self, bucket: Option<Key>, mut entries: impl Iterator<Item = (Key, &'v [u8])>) -> Result<()> {
        if bucket.is_some() {
            bail!("LMDB has no nested buckets");
        }
        let mut tx = self.env.write_txn()?;
        entries.try_for_each(|(key, value)| self.db.put(&mut tx, key.as_ref(), value))?;
        Ok(tx.commit()?)
    }

    fn delete(&self, mut keys: impl Iterator<Item = Key>) -> Result<()> {
        let mut tx = self.env.write_txn()?;
        keys.try_for_each(|key| self.db.delete(&mut tx, key.as_ref()).map(drop))?;
        Ok(tx.commit()?)
    }

    fn get(&self, mut keys: impl Iterator<Item = Key>, mut seen: impl FnMut(&[u8])) -> Result<()> {
        let tx = self.env.read_txn()?;
        Ok(keys.try_for_each(|key| self.db.get(&tx, key.as_ref()).map(|value| value.into_iter().for_each(&mut seen)))?)
    }

    fn scan(&self, mut seen: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let tx = self.env.read_txn()?;
        for entry in self.db.iter(&tx)? {
            let (key, value) = entry?;
            seen(key, value);
        }
        Ok(())
    }

    fn clear(&self) -> Result<()> {
        let mut tx = self.env.write_txn()?;
        self.db.clear(&mut tx)?;
        Ok(tx.commit()?)
    }

    fn sync(&self) -> Result<()> {
        Ok(self.env.force_sync()?)
    }

    fn used_bytes(&self) -> Result<Option<u64>> {
        let tx = self.env.read_txn()?;
        let stat = self.db.stat(&tx)?;
        let pages = stat.branch_pages + stat.leaf_pages + stat.overflow_pages;
        Ok(Some(pages as u64 * u64::from(stat.page_size)))
    }
}
