//! nut: a port of Bolt to Rust. Its commits are never synced, so it takes part where nobody's are, and its file is
//! synced from here.

use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use nut::{Bucket, DB, DBBuilder};

use super::{BUCKET, Engine, Freelist, Setup};
use crate::data::Key;

/// A database with its one bucket.
pub struct Nut(DB);

impl Nut {
    fn write(&self, change: impl FnOnce(&mut Bucket) -> Result<()>) -> Result<()> {
        let mut db = self.0.clone();
        let mut tx = db.begin_rw_tx()?;
        change(&mut *tx.bucket_mut(BUCKET.as_bytes())?)?;
        Ok(tx.commit()?)
    }

    fn read(&self, look: impl FnOnce(&Bucket) -> Result<()>) -> Result<()> {
        let db = self.0.clone();
        let tx = db.begin_tx()?;
        let bucket = tx.bucket(BUCKET.as_bytes())?;
        look(&bucket)
    }
}

impl Engine for Nut {
    fn open(folder: &Path, setup: Setup) -> Result<Self> {
        if setup.freelist != Freelist::Default {
            bail!("nut always stores its freelist");
        }
        if setup.synced {
            bail!("nut never syncs");
        }
        let engine = Self(DBBuilder::new(folder.join("nut.db")).build()?);
        let mut db = engine.0.clone();
        let mut tx = db.begin_rw_tx()?;
        drop(tx.create_bucket(BUCKET.as_bytes())?);
        tx.commit()?;
        drop(tx);
        Ok(engine)
    }

    fn put<'v>(&self, bucket: Option<Key>, mut entries: impl Iterator<Item = (Key, &'v [u8])>) -> Result<()> {
        self.write(|top| {
            let target = match bucket {
                None => top,
                Some(name) => top.create_bucket(name.as_ref())?,
            };
            Ok(entries.try_for_each(|(key, value)| target.put(key.as_ref(), value.to_vec()))?)
        })
    }

    fn delete(&self, mut keys: impl Iterator<Item = Key>) -> Result<()> {
        self.write(|bucket| Ok(keys.try_for_each(|key| bucket.delete(key.as_ref()))?))
    }

    fn get(&self, mut keys: impl Iterator<Item = Key>, mut seen: impl FnMut(&[u8])) -> Result<()> {
        self.read(|bucket| {
            keys.try_for_each(|key| {
                bucket.try_get(key.as_ref())?.into_iter().for_each(&mut seen);
                Ok(())
            })
        })
    }

    fn scan(&self, mut seen: impl FnMut(&[u8], &[u8])) -> Result<()> {
        self.read(|bucket| {
            let cursor = bucket.cursor()?;
            let mut entry = cursor.first()?;
            while let Some(key) = entry.key {
                seen(key, entry.value.context("an entry without a value")?);
                entry = cursor.next()?;
            }
            Ok(())
        })
    }

    fn clear(&self) -> Result<()> {
        let mut db = self.0.clone();
        let mut tx = db.begin_rw_tx()?;
        tx.delete_bucket(BUCKET.as_bytes())?;
        drop(tx.create_bucket(BUCKET.as_bytes())?);
        Ok(tx.commit()?)
    }

    fn sync(&self) -> Result<()> {
        Ok(File::open(self.0.path())?.sync_data()?)
    }

    fn used_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}
