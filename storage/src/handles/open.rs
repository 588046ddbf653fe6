//! The ways to a [`Db`].

use std::path::Path;
use std::sync::Arc;

use super::Db;
use crate::Result;
use crate::disk::Disk;
#[cfg(test)]
use crate::disk::Folder;
#[cfg(any(test, fuzzing))]
use crate::disk::JournalFolder;
use crate::store::{Options, Shared};

impl Options {
    /// Opens the database in the file `path`.
    ///
    /// # Errors
    /// See [`Db::open`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Db> {
        Db::open_with(path.as_ref(), self)
    }

    /// Makes a new database on the heap, on the same code as one in a file; it is gone with its
    /// last handle.
    ///
    /// # Errors
    /// [`Error::InvalidPageSize`](crate::Error::InvalidPageSize).
    pub fn open_in_memory(&self) -> Result<Db> {
        Db::new_in_memory(self)
    }
}

impl Db {
    pub(crate) fn open_with(path: &Path, options: &Options) -> Result<Self> {
        Self::start(Shared::open_with(path, options)?)
    }

    /// Opens the file of that name in a folder.
    #[cfg(test)]
    pub(crate) fn open_in<F: Folder>(folder: &F, path: &Path, options: &Options) -> Result<Self> {
        Self::start(Shared::open_in(folder, path, options, |_, _| Ok(Vec::new()))?)
    }

    pub(crate) fn new_in_memory(options: &Options) -> Result<Self> {
        Self::start(Shared::new_in_memory(options)?)
    }

    /// Opens what is on a disk that belongs to this process.
    pub(crate) fn on_disk(disk: Arc<dyn Disk>, path: Option<&Path>, options: &Options) -> Result<Self> {
        Self::start(Shared::on_disk(disk, path, options, None)?)
    }

    /// The same, with a journal in that folder.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn on_disk_with_journal(
        disk: Arc<dyn Disk>,
        journal: Arc<dyn JournalFolder>,
        options: &Options,
    ) -> Result<Self> {
        Self::start(Shared::on_disk(disk, None, options, Some(journal))?)
    }
}
