//! jammdb: after Bolt, in Rust, with a format of its own. Its commits always sync.

use std::path::Path;

use anyhow::{Result, bail};
use jammdb::{DB, Data};

use super::{BUCKET, Engine, Freelist, Setup};
use crate::data::Key;

/// A database with its one bucket.
pub struct Jammdb(DB);

impl Engine for Jammdb {
    fn open(folder: &Path, setup: Setup) -> Result<Self> {
        if setup.freelist != Freelist::Default {
            bail!("jammdb always stores its freelist");
        }
        let db = DB::open(folder.join("jammdb.db"))?;
        let tx = db.tx(true)?;
        tx.create_bucket(BUCKET)?;
        tx.commit()?;
        Ok(Self(db))
    }

    fn put<'v>(&self, bucket: Option<Key>, entries: impl Iterator<Item = (Key, &'v [u8])>) -> Result<()> {
        let tx = self.0.tx(true)?;
        let mut target = tx.get_bucket(BUCKET)?;
        if let Some(name) = bucket {
            target = target.create_bucket(name.as_ref().to_vec())?;
        }
        for (key, value) in entries {
            // Keys have to live as long as the transaction.
            target.put(key.as_ref().to_vec(), value)?;
        }
        Ok(tx.commit()?)
    }

    fn delete(&self, keys: impl Iterator<Item = Key>) -> Result<()> {
        let tx = self.0.tx(true)?;
        let bucket = tx.get_bucket(BUCKET)?;
        for key in keys {
            bucket.delete(key)?;
        }
        Ok(tx.commit()?)
    }

    fn get(&self, keys: impl Iterator<Item = Key>, mut seen: impl FnMut(&[u8])) -> Result<()> {
        let tx = self.0.tx(false)?;
        let bucket = tx.get_bucket(BUCKET)?;
        for key in keys {
            if let Some(entry) = bucket.get_kv(key) {
                seen(entry.value());
            }
        }
        Ok(())
    }

    fn scan(&self, mut seen: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let tx = self.0.tx(false)?;
        let bucket = tx.get_bucket(BUCKET)?;
        for entry in bucket.cursor() {
            match entry {
                Data::KeyValue(entry) => seen(entry.key(), entry.value()),
                Data::Bucket(entry) => {
                    seen(entry.name(), &[]);
                    let nested = bucket.get_bucket(entry.name().to_vec())?;
                    nested.kv_pairs().for_each(|entry| seen(entry.key(), entry.value()));
                }
            }
        }
        Ok(())
    }

    fn clear(&self) -> Result<()> {
        let tx = self.0.tx(true)?;
        tx.delete_bucket(BUCKET)?;
        tx.create_bucket(BUCKET)?;
        Ok(tx.commit()?)
    }

    fn sync(&self) -> Result<()> {
        // Every commit has synced.
        Ok(())
    }

    fn used_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}
