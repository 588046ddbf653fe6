//! Surgery on the freelist: giving up the stored one, and storing one that was found anew.

use std::sync::Arc;

use super::meta::{valid_metas, without_freelist};
use super::{Surgery, refused};
use crate::disk::FileDisk;
use crate::handles::Db;
use crate::store::Options;
use crate::{Error, Result};

/// What [`Surgery::abandon_freelist`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Abandoned {
    /// Which of the meta pages 0 and 1 refer to no freelist any more; one that is damaged is left
    /// as it is.
    pub metas: [bool; 2],
}

/// What [`Surgery::rebuild_freelist`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rebuilt {
    /// Pages that are in the freelist now.
    pub free_pages: u64,
}

impl Surgery {
    /// Makes the metas refer to no freelist, so that the next one who opens the file finds the free
    /// pages by reading all others. (bbolt also gives a damaged meta a good checksum on the way;
    /// here it stays as it is.)
    ///
    /// # Errors
    /// [`Error::Surgery`] where both metas are damaged; otherwise as [`Self::copy_page`].
    pub fn abandon_freelist(&self) -> Result<Abandoned> {
        self.operate(|file| {
            let metas = valid_metas(file)?;
            let sound = metas.iter().zip(0..).filter_map(|(meta, page)| Some((page, (*meta)?)));
            let changes = sound.map(|(page, meta)| without_freelist(file, page, meta)).collect();
            Ok((Abandoned { metas: metas.map(|meta| meta.is_some()) }, changes))
        })
    }

    /// Finds the free pages of a file that stores no freelist, and stores it, in a transaction of
    /// its own.
    ///
    /// # Errors
    /// [`Error::Surgery`] where the newest meta refers to a freelist, or both metas are damaged;
    /// [`Error::Corrupt`] where a page is: then nobody can say which are free; otherwise as
    /// [`Self::copy_page`].
    pub fn rebuild_freelist(&self) -> Result<Rebuilt> {
        self.copy(
            |file| {
                valid_metas(file)?;
                if file.newest_meta().is_some_and(|meta| meta.stores_freelist()) {
                    return Err(refused("the file stores a freelist already; abandon that first, to have it rebuilt"));
                }
                Ok(((), Vec::new()))
            },
            |copy, ()| self.store_freelist(copy),
        )
    }

    /// Opening a file to write finds its free pages, closing it stores them.
    fn store_freelist(&self, copy: &FileDisk) -> Result<Rebuilt> {
        let disk = copy.try_clone().map_err(Error::io("open", Some(self.output())))?;
        let db = Db::on_disk(Arc::new(disk), Some(self.output()), &Options::new())?;
        db.sync()?;
        let stats = db.stats();
        let free_pages = stats.free_pages.unwrap_or(0) + stats.pending_pages.unwrap_or(0);
        db.close()?;
        Ok(Rebuilt { free_pages })
    }
}
