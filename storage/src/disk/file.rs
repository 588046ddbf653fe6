//! The disk that is a file: positioned reads and writes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::MapOptions;
use super::folder::is_same_file;
use super::here::OpenHere;
use super::{Disk, Map};

/// A bolt file, locked by this process.
#[derive(Debug)]
pub(crate) struct FileDisk {
    /// Gone before the file is unlocked: who comes in between waits for the lock.
    here: Arc<OnceLock<OpenHere>>,
    pub(super) file: File,
    map: MapOptions,
}

impl FileDisk {
    pub(crate) fn new(file: File, map: MapOptions) -> Self {
        Self { here: Arc::default(), file, map }
    }

    /// Whether this handle's file is noted as open in this process.
    pub(super) fn is_open_here(&self) -> bool {
        self.here.get().is_some()
    }

    /// Has it noted for as long as this handle and its clones live.
    pub(super) fn keep_open_here(&self, here: OpenHere) {
        let _ = self.here.set(here);
    }

    /// Another handle of the same file, under the same lock.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { here: Arc::clone(&self.here), file: self.file.try_clone()?, map: self.map })
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

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn keep_room(&self, offset: u64, len: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        match fallocate(&self.file, FallocateFlags::empty(), offset, len) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
            kept => kept.map_err(Into::into),
        }
    }

    fn sync(&self) -> io::Result<()> {
        // fdatasync: it covers the length too, because the data could not be read back without it.
        self.file.sync_data()
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn forget(&self, offset: u64, len: u64) {
        // Where it cannot be followed, nothing changes.
        let _ = rustix::fs::fadvise(&self.file, offset, std::num::NonZeroU64::new(len), rustix::fs::Advice::DontNeed);
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        is_same_file(&self.file, path)
    }

    fn map(&self, len: usize) -> io::Result<Map> {
        Map::of_file(&self.file, len, self.map)
    }
}
