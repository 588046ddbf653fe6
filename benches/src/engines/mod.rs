//! The engines, one a file, behind one small trait. An engine's file says how the engine is asked, in the way that its
//! own documentation shows, and must not be cleverer than that for one engine than for another.

use std::path::Path;

use anyhow::{Result, bail};

use crate::data::Key;
use crate::records::{Layout, Task};
use crate::work::Chore;

#[cfg(feature = "bbolt-rs")]
mod bbolt_rs;
mod boltkv;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "jammdb")]
mod jammdb;
#[cfg(feature = "heed")]
mod lmdb;
#[cfg(feature = "nut")]
mod nut;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "sanakirja")]
mod sanakirja;

#[cfg(feature = "bbolt-rs")]
pub use bbolt_rs::BboltRs;
pub use boltkv::Boltkv;
#[cfg(feature = "fjall")]
pub use fjall::Fjall;
#[cfg(feature = "jammdb")]
pub use jammdb::Jammdb;
#[cfg(feature = "heed")]
pub use lmdb::Lmdb;
#[cfg(feature = "nut")]
pub use nut::Nut;
#[cfg(feature = "redb")]
pub use redb::Redb;
#[cfg(feature = "sanakirja")]
pub use sanakirja::Sanakirja;

/// How an engine is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Whether a commit is on the disk when it returns. Where it need not be, some sync all the same.
    pub synced: bool,
    /// Whether keys and values are numbers of 8 bytes, for engines that keep such in another way.
    pub numbers: bool,
    /// What becomes of the list of free pages, for engines that leave the choice.
    pub freelist: Freelist,
    /// Whether boltkv keeps a journal; nobody else is asked to, and whoever has one always keeps it.
    pub journal: bool,
}

/// What becomes of the list of free pages at a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Freelist {
    /// What the engine does by default.
    #[default]
    Default,
    /// It is stored when the database is closed.
    OnClose,
    /// It is not stored.
    NotStored,
    /// It is not stored, and kept in a hash map: Go's bbolt's other kind.
    NotStoredMap,
}

/// What a measurement asks of an engine. Each call is one transaction, and ends with it.
pub trait Engine: Sized + Sync {
    /// Opens the database in a folder, or makes it.
    ///
    /// # Errors
    /// The engine's; also what `setup` asks for and the engine does not have.
    fn open(folder: &Path, setup: Setup) -> Result<Self>;

    /// Puts entries, into a nested bucket where one is named, and commits.
    ///
    /// # Errors
    /// The engine's; nested buckets where it has none.
    fn put<'v>(&self, bucket: Option<Key>, entries: impl Iterator<Item = (Key, &'v [u8])>) -> Result<()>;

    /// Deletes entries and commits.
    ///
    /// # Errors
    /// The engine's.
    fn delete(&self, keys: impl Iterator<Item = Key>) -> Result<()>;

    /// Looks keys up and shows the values found.
    ///
    /// # Errors
    /// The engine's.
    fn get(&self, keys: impl Iterator<Item = Key>, seen: impl FnMut(&[u8])) -> Result<()>;

    /// Shows all entries in key order; where buckets nest, a bucket as its name without a value, and then its entries.
    ///
    /// # Errors
    /// The engine's.
    fn scan(&self, seen: impl FnMut(&[u8], &[u8])) -> Result<()>;

    /// Does something to the file as a whole; `target` is where a new file may be made.
    ///
    /// # Errors
    /// The engine's; where it has no such thing, or it is not asked for it here.
    fn chore(&self, chore: Chore, _target: &Path) -> Result<()> {
        bail!("not asked for {chore:?}")
    }

    /// Does something with so many records; returns a number that stands for what was read.
    ///
    /// # Errors
    /// The engine's; where it is not asked for it here.
    fn records(&self, _layout: Layout, _task: Task, _count: u64) -> Result<u64> {
        bail!("not asked for records")
    }

    /// Deletes everything and commits.
    ///
    /// # Errors
    /// The engine's.
    fn clear(&self) -> Result<()>;

    /// Brings everything committed to the disk.
    ///
    /// # Errors
    /// The engine's.
    fn sync(&self) -> Result<()>;

    /// Bytes of the file that hold something; `None`: the engine does not tell.
    ///
    /// # Errors
    /// The engine's.
    fn used_bytes(&self) -> Result<Option<u64>>;
}

/// The name of the bucket, table or tree that the entries go to.
const BUCKET: &str = "bench";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Keys;

    /// What every measurement takes for granted.
    fn keeps_what_it_is_given<E: Engine>(setup: Setup) {
        let folder = tempfile::tempdir().unwrap();
        let engine = E::open(folder.path(), setup).unwrap();
        let keys = |from: u64| (from..100).map(|n| Keys::Random.key(n));
        let value = 7_u64.to_le_bytes();
        let count = |engine: &E| {
            let (mut got, mut scanned) = (0, Vec::new());
            engine.get(keys(0), |found| got += usize::from(found == value)).unwrap();
            engine.scan(|key, _| scanned.push(key.to_vec())).unwrap();
            assert!(scanned.is_sorted());
            assert_eq!(got, scanned.len());
            got
        };
        engine.put(None, keys(0).map(|key| (key, &value[..]))).unwrap();
        assert_eq!(count(&engine), 100);
        engine.delete(keys(60)).unwrap();
        engine.sync().unwrap();
        assert_eq!(count(&engine), 60);
        engine.clear().unwrap();
        assert_eq!(count(&engine), 0);
    }

    /// A test for each engine, with the ways to open it.
    macro_rules! engines {
        ($($(#[$feature:meta])? $name:ident: $engine:ty, $($setup:expr),+;)*) => {
            $($(#[$feature])?
            #[test]
            fn $name() {
                $(keeps_what_it_is_given::<$engine>($setup);)+
            })*
        };
    }

    const PLAIN: Setup = Setup { synced: false, numbers: false, freelist: Freelist::Default, journal: false };
    const SYNCED: Setup = Setup { synced: true, ..PLAIN };

    engines! {
        boltkv_keeps_what_it_is_given: Boltkv,
            PLAIN, SYNCED, Setup { freelist: Freelist::OnClose, ..PLAIN }, Setup { journal: true, ..SYNCED };
        #[cfg(feature = "bbolt-rs")]
        bbolt_rs_keeps_what_it_is_given: BboltRs, PLAIN, SYNCED;
        #[cfg(feature = "fjall")]
        fjall_keeps_what_it_is_given: Fjall, PLAIN, SYNCED;
        #[cfg(feature = "jammdb")]
        jammdb_keeps_what_it_is_given: Jammdb, PLAIN;
        #[cfg(feature = "heed")]
        lmdb_keeps_what_it_is_given: Lmdb, PLAIN, SYNCED;
        #[cfg(feature = "nut")]
        nut_keeps_what_it_is_given: Nut, PLAIN;
        #[cfg(feature = "redb")]
        redb_keeps_what_it_is_given: Redb, PLAIN, SYNCED;
        #[cfg(feature = "sanakirja")]
        sanakirja_keeps_what_it_is_given: Sanakirja, PLAIN, Setup { numbers: true, ..PLAIN };
    }
}
