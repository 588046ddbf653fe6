//! fjall: a log-structured merge tree.

use std::path::Path;

use anyhow::{Result, bail};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode, Readable as _};

use super::{BUCKET, Engine, Freelist, Setup};
use crate::data::Key;

/// A database with its one keyspace.
pub struct Fjall {
    db: Database,
    keyspace: Keyspace,
    durability: Option<PersistMode>,
}

impl Fjall {
    fn batch(&self) -> OwnedWriteBatch {
        self.db.batch().durability(self.durability)
    }
}

impl Engine for Fjall {
    fn open(folder: &Path, setup: Setup) -> Result<Self> {
        if setup.freelist != Freelist::Default {
            bail!("fjall has no free pages");
        }
        let db = Database::builder(folder).open()?;
        let keyspace = db.keyspace(BUCKET, KeyspaceCreateOptions::default)?;
        Ok(Self { db, keyspace, durability: setup.synced.then_some(PersistMode::SyncData) })
    }

    fn put<'v>(&self, bucket: Option<Key>, entries: impl Iterator<Item = (Key, &'v [u8])>) -> Result<()> {
        if bucket.is_some() {
            bail!("fjall has no nested buckets");
        }
        let mut batch = self.batch();
        entries.for_each(|(key, value)| batch.insert(&self.keyspace, key.as_ref(), value));
        Ok(batch.commit()?)
    }

    fn delete(&self, keys: impl Iterator<Item = Key>) -> Result<()> {
        let mut batch = self.batch();
        keys.for_each(|key| batch.remove(&self.keyspace, key.as_ref()));
        Ok(batch.commit()?)
    }

    fn get(&self, keys: impl Iterator<Item = Key>, mut seen: impl FnMut(&[u8])) -> Result<()> {
        let snapshot = self.db.snapshot();
        for key in keys {
            if let Some(value) = snapshot.get(&self.keyspace, key.as_ref())? {
                seen(&value);
            }
        }
        Ok(())
    }

    fn scan(&self, mut seen: impl FnMut(&[u8], &[u8])) -> Result<()> {
        for entry in self.db.snapshot().iter(&self.keyspace) {
            let (key, value) = entry.into_inner()?;
            seen(&key, &value);
        }
        Ok(())
    }

    fn clear(&self) -> Result<()> {
        Ok(self.keyspace.clear()?)
    }

    fn sync(&self) -> Result<()> {
        Ok(self.db.persist(PersistMode::SyncData)?)
    }

    fn used_bytes(&self) -> Result<Option<u64>> {
        // Journals, tables and what is not yet merged: nothing that compares to pages in use.
        Ok(None)
    }
}
