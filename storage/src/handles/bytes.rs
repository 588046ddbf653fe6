//! Databases that are only bytes: what the fuzz targets need beyond the public API, and compiled for them alone.
//! Nothing here may decide anything; it leads past the file to the same code.

use std::sync::Arc;

use super::Db;
use crate::disk::{Disk as _, HeapDisk};
use crate::{Error, Options, Result};

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
}
