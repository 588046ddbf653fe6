//! The disk that is a file: positioned reads and writes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::{Disk, Map};
use crate::store::MapOptions;

/// A bolt file, locked by this process.
#[derive(Debug)]
pub(crate) struct FileDisk {
    pub(super) file: File,
    map: MapOptions,
}

impl FileDisk {
    pub(crate) fn new(file: File, map: MapOptions) -> Self {
        Self { file, map }
    }

    /// Another handle of the same file, under the same lock.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, map: self.map })
    }
}

impl Disk for FileDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.file.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        // fdatasync: it covers the length too, because the data could not be read back without it.
        self.file.sync_data()
    }

    fn map(&self, len: usize) -> io::Result<Map> {
        Map::of_file(&self.file, len, self.map)
    }
}
