//! Databases that are only bytes: what the fuzz targets need beyond the public API, and compiled for them alone.
//! Nothing here may decide anything; it leads past the file to the same code.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::Db;
use crate::disk::{Disk as _, HeapDisk, HeapJournalFolder, JournalFolder};
use crate::{Error, Options, Result};

/// A journal's segments by the names of their files.
pub type SegmentBytes = BTreeMap<String, Vec<u8>>;

impl Options {
    /// Opens a copy of a file's bytes in memory, as [`Options::open`] would open the file.
    ///
    /// # Errors
    /// As [`Db::open`], but for those of the file system.
    pub fn open_bytes(&self, file: &[u8]) -> Result<Db> {
        let disk = HeapDisk::default();
        disk.write_at(file, 0).map_err(Error::io("copy", None))?;
        Db::on_disk(Arc::new(disk), None, self)
    }

    /// The same with a copy of its journal.
    ///
    /// # Errors
    /// As [`Db::open`], but for those of the file system.
    pub fn open_bytes_with_journal(&self, file: &[u8], segments: &SegmentBytes) -> Result<Db> {
        let disk = HeapDisk::default();
        disk.write_at(file, 0).map_err(Error::io("copy", None))?;
        let folder = HeapJournalFolder::new(segments).map_err(Error::io("copy", None))?;
        Db::on_disk_with_journal(Arc::new(disk), Arc::new(folder), self)
    }
}

impl Db {
    /// The bytes that a crash would leave now. Waits for the write transaction.
    ///
    /// # Errors
    /// [`Error::Io`] where they cannot be read.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        self.0.shared.writer.with(|_| {
            let mut bytes = vec![0; self.file_len()? as usize];
            let read = self.0.shared.disk.read_at(&mut bytes, 0).map_err(Error::io("read", self.path()))?;
            bytes.truncate(read);
            Ok(bytes)
        })
    }

    /// The same of the journal; none where none is kept.
    ///
    /// # Errors
    /// [`Error::Io`] where they cannot be read.
    pub fn journal_bytes(&self) -> Result<SegmentBytes> {
        let folder = self.0.shared.writer.with(|writer| writer.journal.as_ref().map(|journal| journal.folder()));
        folder.map_or(Ok(SegmentBytes::new()), |folder| read_all(&*folder)).map_err(Error::io("read", None))
    }
}

fn read_all(folder: &dyn JournalFolder) -> io::Result<SegmentBytes> {
    let read = |name: String| {
        let disk = folder.open(&name)?;
        let mut bytes = vec![0; disk.len()? as usize];
        disk.read_at(&mut bytes, 0)?;
        Ok((name, bytes))
    };
    folder.list()?.into_iter().map(read).collect()
}
