//! redb.

use std::path::Path;

use anyhow::{Result, bail};
use redb::{Database, Durability, ReadableDatabase as _, ReadableTable as _, TableDefinition, WriteTransaction};

use super::{BUCKET, Engine, Freelist, Setup};
use crate::data::Key;

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(BUCKET);

/// A database with its one table.
#[derive(Debug)]
pub struct Redb {
    db: Database,
    durability: Durability,
}

impl Redb {
    fn write(&self) -> Result<WriteTransaction> {
        let mut tx = self.db.begin_write()?;
        tx.set_durability(self.durability)?;
        Ok(tx)
    }
}

impl Engine for Redb {
    fn open(folder: &Path, setup: Setup) -> Result<Self> {
        if setup.freelist != Freelist::Default {
            bail!("redb leaves no choice of how free pages are stored");
        }
        let db = Database::create(folder.join("redb.db"))?;
        let tx = db.begin_write()?;
        tx.open_table(TABLE)?;
        tx.commit()?;
        Ok(Self { db, durability: if setup.synced { Durability::Immediate } else { Durability::None } })
    }

    fn put<'v>(&self, bucket: Option<Key>, mut entries: impl Iterator<Item = (Key, &'v [u8])>) -> Result<()> {
        if bucket.is_some() {
            bail!("redb has no nested buckets");
        }
        let tx = self.write()?;
        let mut table = tx.open_table(TABLE)?;
        entries.try_for_each(|(key, value)| table.insert(key.as_ref(), value).map(drop))?;
        drop(table);
        Ok(tx.commit()?)
    }

    fn delete(&self, mut keys: impl Iterator<Item = Key>) -> Result<()> {
        let tx = self.write()?;
        let mut table = tx.open_table(TABLE)?;
        keys.try_for_each(|key| table.remove(key.as_ref()).map(drop))?;
        drop(table);
        Ok(tx.commit()?)
    }

    fn get(&self, keys: impl Iterator<Item = Key>, mut seen: impl FnMut(&[u8])) -> Result<()> {
        let table = self.db.begin_read()?.open_table(TABLE)?;
        for key in keys {
            if let Some(value) = table.get(key.as_ref())? {
                seen(value.value());
            }
        }
        Ok(())
    }

    fn scan(&self, mut seen: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let table = self.db.begin_read()?.open_table(TABLE)?;
        for entry in table.iter()? {
            let (key, value) = entry?;
            seen(key.value(), value.value());
        }
        Ok(())
    }

    fn clear(&self) -> Result<()> {
        let tx = self.write()?;
        tx.delete_table(TABLE)?;
        tx.open_table(TABLE)?;
        Ok(tx.commit()?)
    }

    fn sync(&self) -> Result<()> {
        // redb syncs with a commit that asks for it, and what came before with it.
        Ok(self.db.begin_write()?.commit()?)
    }

    fn used_bytes(&self) -> Result<Option<u64>> {
        let tx = self.db.begin_write()?;
        let stats = tx.stats()?;
        Ok(Some(stats.allocated_pages() * stats.page_size() as u64))
    }
}
