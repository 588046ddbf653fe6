//! Sanakirja: copy-on-write B-trees. Its commits always sync. Numbers of 8 bytes are kept as such, as its authors do
//! in their measurements; other keys and values as slices of bytes.
//!
//! Its trees are sorted by key and value, and a put adds to what a key has. So it only does works that put a key once.
#![allow(unsafe_code, reason = "making a tree is unsafe in sanakirja")]

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use sanakirja::btree::page_unsized::Page;
use sanakirja::btree::{self, Db, UDb};
use sanakirja::{Commit as _, Env, MutTxn, RootDb as _, Txn};

use super::{Engine, Freelist, Setup};
use crate::data::Key;

/// The only tree's place on the root page.
const ROOT: usize = 0;

/// The most bytes of a value that it stores within a page.
const LONGEST_VALUE: usize = 510;

type Numbers = Db<u64, u64>;
type Bytes = UDb<[u8], [u8]>;

/// An environment with its one tree.
pub struct Sanakirja {
    env: Env,
    numbers: bool,
}

impl Sanakirja {
    /// Makes an empty tree in place of what there is.
    fn create(&self) -> Result<()> {
        self.write(|tx, _| {
            // SAFETY: the tree is always read by the types that it is made with.
            let page = unsafe {
                if self.numbers {
                    btree::create_db::<_, u64, u64>(tx)?.db
                } else {
                    btree::create_db_::<_, [u8], [u8], Page<[u8], [u8]>>(tx)?.db
                }
            };
            Ok(page.get())
        })
    }

    /// Runs a write transaction that is given the tree's page and returns the new one.
    fn write(&self, change: impl FnOnce(&mut MutTxn<&Env, ()>, u64) -> Result<u64>) -> Result<()> {
        let mut tx = Env::mut_txn_begin(&self.env)?;
        let page = tx.root(ROOT).unwrap_or(0);
        let page = change(&mut tx, page)?;
        tx.set_root(ROOT, page);
        Ok(tx.commit()?)
    }

    fn read(&self) -> Result<Txn<&Env>> {
        Ok(Env::txn_begin(&self.env)?)
    }
}

/// A value as a number.
fn number(value: &[u8]) -> Result<u64> {
    Ok(u64::from_le_bytes(value.try_into().context("sanakirja was opened for values of 8 bytes")?))
}

impl Engine for Sanakirja {
    fn open(folder: &Path, setup: Setup) -> Result<Self> {
        if setup.freelist != Freelist::Default {
            bail!("Sanakirja always stores its free pages");
        }
        let env = Env::new(folder.join("sanakirja.db"), 1 << 20, 2)?;
        let engine = Self { env, numbers: setup.numbers };
        engine.create()?;
        Ok(engine)
    }

    fn put<'v>(&self, bucket: Option<Key>, entries: impl Iterator<Item = (Key, &'v [u8])>) -> Result<()> {
        if bucket.is_some() {
            bail!("Sanakirja has no nested buckets of slices");
        }
        self.write(|tx, page| {
            // SAFETY: `create` made the tree of these types.
            let (mut numbers, mut bytes) = unsafe { (Numbers::from_page(page), Bytes::from_page(page)) };
            for (key, value) in entries {
                if self.numbers {
                    btree::put(tx, &mut numbers, &key.number(), &number(value)?)?;
                } else if value.len() <= LONGEST_VALUE {
                    btree::put(tx, &mut bytes, key.as_ref(), value)?;
                } else {
                    bail!("Sanakirja keeps no slices of more than {LONGEST_VALUE} bytes");
                }
            }
            Ok(if self.numbers { numbers.db } else { bytes.db }.get())
        })
    }

    fn delete(&self, keys: impl Iterator<Item = Key>) -> Result<()> {
        self.write(|tx, page| {
            // SAFETY: `create` made the tree of these types.
            let (mut numbers, mut bytes) = unsafe { (Numbers::from_page(page), Bytes::from_page(page)) };
            for key in keys {
                if self.numbers {
                    btree::del(tx, &mut numbers, &key.number(), None)?;
                } else {
                    btree::del(tx, &mut bytes, key.as_ref(), None)?;
                }
            }
            Ok(if self.numbers { numbers.db } else { bytes.db }.get())
        })
    }

    fn get(&self, keys: impl Iterator<Item = Key>, mut seen: impl FnMut(&[u8])) -> Result<()> {
        let tx = self.read()?;
        let trees = (tx.root_db(ROOT), tx.root_db(ROOT));
        let (numbers, bytes): (Numbers, Bytes) = (trees.0.context("no tree")?, trees.1.context("no tree")?);
        for key in keys {
            // What it finds is the entry or the one that follows.
            if self.numbers {
                let key = key.number();
                if let Some((_, value)) = btree::get(&tx, &numbers, &key, None)?.filter(|(found, _)| **found == key) {
                    seen(&value.to_le_bytes());
                }
            } else if let Some((_, value)) =
                btree::get(&tx, &bytes, key.as_ref(), None)?.filter(|(found, _)| *found == key.as_ref())
            {
                seen(value);
            }
        }
        Ok(())
    }

    fn scan(&self, mut seen: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let tx = self.read()?;
        if self.numbers {
            let tree: Numbers = tx.root_db(ROOT).context("no tree")?;
            for entry in btree::iter(&tx, &tree, None)? {
                let (key, value) = entry?;
                seen(&key.to_be_bytes(), &value.to_le_bytes());
            }
        } else {
            let tree: Bytes = tx.root_db(ROOT).context("no tree")?;
            for entry in btree::iter(&tx, &tree, None)? {
                let (key, value) = entry?;
                seen(key, value);
            }
        }
        Ok(())
    }

    fn clear(&self) -> Result<()> {
        self.write(|tx, page| {
            // SAFETY: `create` made the tree of these types; nobody else has it.
            unsafe {
                if self.numbers {
                    btree::drop(tx, Numbers::from_page(page))?;
                } else {
                    btree::drop(tx, Bytes::from_page(page))?;
                }
            }
            Ok(0)
        })?;
        self.create()
    }

    fn sync(&self) -> Result<()> {
        // Every commit has synced.
        Ok(())
    }

    fn used_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}
