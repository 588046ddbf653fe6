//! bbolt-rs: a port of bbolt to Rust.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use bbolt_rs::{
    Bolt, BoltOptions, BucketApi as _, BucketRwApi as _, CursorApi as _, DbApi as _, DbRwAPI as _, TxApi as _,
    TxRwApi as _, TxRwRefApi as _,
};

use super::{BUCKET, Engine, Freelist, Setup};
use crate::data::Key;

/// A database with its one bucket.
pub struct BboltRs(Bolt);

impl Engine for BboltRs {
    fn open(folder: &Path, setup: Setup) -> Result<Self> {
        if setup.freelist != Freelist::Default {
            bail!("bbolt-rs always stores its freelist");
        }
        let options = BoltOptions::builder();
        let options = if setup.synced { options.build() } else { options.no_sync().build() };
        let mut db = options.open(folder.join("bbolt-rs.db"))?;
        let mut tx = db.begin_rw()?;
        tx.create_bucket(BUCKET)?;
        tx.commit()?;
        Ok(Self(db))
    }

    fn put<'v>(&self, bucket: Option<Key>, mut entries: impl Iterator<Item = (Key, &'v [u8])>) -> Result<()> {
        let mut db = self.0.clone();
        let mut tx = db.begin_rw()?;
        {
            let mut top = tx.bucket_mut(BUCKET).context("no bucket")?;
            match bucket {
                None => entries.try_for_each(|(key, value)| top.put(key, value))?,
                Some(name) => {
                    let mut nested = top.create_bucket(name)?;
                    entries.try_for_each(|(key, value)| nested.put(key, value))?;
                }
            }
        }
        Ok(tx.commit()?)
    }

    fn delete(&self, mut keys: impl Iterator<Item = Key>) -> Result<()> {
        let mut db = self.0.clone();
        let mut tx = db.begin_rw()?;
        {
            let mut bucket = tx.bucket_mut(BUCKET).context("no bucket")?;
            keys.try_for_each(|key| bucket.delete(key))?;
        }
        Ok(tx.commit()?)
    }

    fn get(&self, keys: impl Iterator<Item = Key>, mut seen: impl FnMut(&[u8])) -> Result<()> {
        let tx = self.0.begin()?;
        let bucket = tx.bucket(BUCKET).context("no bucket")?;
        keys.for_each(|key| bucket.get(key).into_iter().for_each(&mut seen));
        Ok(())
    }

    fn scan(&self, mut seen: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let tx = self.0.begin()?;
        let bucket = tx.bucket(BUCKET).context("no bucket")?;
        let mut cursor = bucket.cursor();
        let mut entry = cursor.first();
        while let Some((key, value)) = entry {
            seen(key, value.unwrap_or_default());
            if value.is_none() {
                let nested = bucket.bucket(key).context("a key without a value that is no bucket")?;
                nested.iter_entries().for_each(|(key, value)| seen(key, value));
            }
            entry = cursor.next();
        }
        Ok(())
    }

    fn clear(&self) -> Result<()> {
        let mut db = self.0.clone();
        let mut tx = db.begin_rw()?;
        tx.delete_bucket(BUCKET)?;
        tx.create_bucket(BUCKET)?;
        Ok(tx.commit()?)
    }

    fn sync(&self) -> Result<()> {
        Ok(self.0.clone().sync()?)
    }

    fn used_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}
