//! boltkv, by its public interface.

use std::path::Path;

use anyhow::{Result, bail};
use boltkv_storage::{Db, Durability, FreelistStored, JournalOptions, Options};

use super::{BUCKET, Engine, Freelist, Setup};
use crate::data::Key;
use crate::records::{self, Layout, Task};
use crate::work::Chore;

/// What compaction writes in a transaction, as bbolt's command does.
const COMPACT_BYTES: u64 = 65_536;

/// A database with its one bucket.
#[derive(Debug)]
pub struct Boltkv(Db);

impl Engine for Boltkv {
    fn open(folder: &Path, setup: Setup) -> Result<Self> {
        let freelist = match setup.freelist {
            Freelist::Default => FreelistStored::default(),
            Freelist::OnClose => FreelistStored::OnCleanClose,
            Freelist::NotStored => FreelistStored::Never,
            Freelist::NotStoredMap => bail!("there is one kind of freelist"),
        };
        let mut options = Options::new()
            .durability(if setup.synced { Durability::Always } else { Durability::Never })
            .freelist(freelist);
        if setup.journal {
            options = options.journal(JournalOptions::new());
        }
        let db = options.open(folder.join("boltkv.db"))?;
        if db.begin()?.bucket(BUCKET).is_err() {
            db.update(|tx| tx.create_bucket(BUCKET).map(drop))?;
        }
        Ok(Self(db))
    }

    fn put<'v>(&self, bucket: Option<Key>, mut entries: impl Iterator<Item = (Key, &'v [u8])>) -> Result<()> {
        Ok(self.0.update(|tx| {
            let mut top = tx.bucket_mut(BUCKET)?;
            match bucket {
                None => entries.try_for_each(|(key, value)| top.put(key, value)),
                Some(name) => {
                    let mut nested = top.create_bucket(name)?;
                    entries.try_for_each(|(key, value)| nested.put(key, value))
                }
            }
        })?)
    }

    fn delete(&self, mut keys: impl Iterator<Item = Key>) -> Result<()> {
        Ok(self.0.update(|tx| {
            let mut bucket = tx.bucket_mut(BUCKET)?;
            keys.try_for_each(|key| bucket.delete(key).map(drop))
        })?)
    }

    fn get(&self, mut keys: impl Iterator<Item = Key>, mut seen: impl FnMut(&[u8])) -> Result<()> {
        Ok(self.0.view(|tx| {
            let bucket = tx.bucket(BUCKET)?;
            keys.try_for_each(|key| bucket.get(key).map(|value| value.into_iter().for_each(&mut seen)))
        })?)
    }

    fn scan(&self, mut seen: impl FnMut(&[u8], &[u8])) -> Result<()> {
        Ok(self.0.view(|tx| {
            let bucket = tx.bucket(BUCKET)?;
            bucket.iter().try_for_each(|entry| {
                let (key, value) = entry?;
                seen(key, value.unwrap_or_default());
                if value.is_none() {
                    bucket
                        .bucket(key)?
                        .iter()
                        .try_for_each(|entry| entry.map(|(key, value)| seen(key, value.unwrap_or_default())))?;
                }
                Ok::<_, boltkv_storage::Error>(())
            })
        })?)
    }

    fn chore(&self, chore: Chore, target: &Path) -> Result<()> {
        match chore {
            Chore::Check => match self.0.check()?.first() {
                Some(problem) => bail!("the check found {problem}"),
                None => Ok(()),
            },
            Chore::Backup => Ok(self.0.begin()?.copy_file(target, 0o600).map(drop)?),
            Chore::Compact => {
                let new = Options::new().durability(Durability::Never).open(target)?;
                self.0.begin()?.compact_into(&new, COMPACT_BYTES)?;
                Ok(new.close()?)
            }
        }
    }

    fn records(&self, layout: Layout, task: Task, count: u64) -> Result<u64> {
        records::run(&self.0, BUCKET, layout, task, count)
    }

    fn clear(&self) -> Result<()> {
        Ok(self.0.update(|tx| {
            tx.delete_bucket(BUCKET)?;
            tx.create_bucket(BUCKET).map(drop)
        })?)
    }

    fn sync(&self) -> Result<()> {
        self.0.sync()?;
        Ok(())
    }

    fn used_bytes(&self) -> Result<Option<u64>> {
        let stats = self.0.stats();
        let unused = stats.free_pages.unwrap_or(0) + stats.pending_pages.unwrap_or(0);
        Ok(Some((stats.pages.saturating_sub(unused)) * u64::from(stats.page_size)))
    }
}
