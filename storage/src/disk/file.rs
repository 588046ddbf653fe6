//! The disk that is a file: positioned reads and writes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use super::MapOptions;
use super::folder::is_same_file;
use super::here::OpenHere;
use super::room::{free, largest_file};
use super::{Disk, Map, Room};

/// Bytes of which the system tells how many a file takes.
const UNIT_OF_BLOCKS: u64 = 512;

/// A bolt file, locked by this process.
#[derive(Debug)]
pub(crate) struct FileDisk {
    /// Gone before the file is unlocked: who comes in between waits for the lock.
    here: Arc<OnceLock<OpenHere>>,
    pub(super) file: File,
    map: MapOptions,
    /// What is written through.
    through: Option<Through>,
}

/// A way to the same file past the system's cache, on which each write is synced, in less time than a write into the cache and
/// a sync take. It is opened when it is first of use, and only where the file system has one.
#[derive(Debug)]
struct Through {
    path: PathBuf,
    file: OnceLock<Option<File>>,
    /// Not every file system takes what it was opened for.
    is_refused: AtomicBool,
}

impl Through {
    /// Whether it was written; an error is one of the disk's.
    fn write_at(&self, data: &[u8], offset: u64, of: &File) -> io::Result<bool> {
        let Some(file) = self.file.get_or_init(|| open_through(&self.path, of).ok()) else { return Ok(false) };
        if self.is_refused.load(Relaxed) {
            return Ok(false);
        }
        match file.write_all_at(data, offset) {
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
                self.is_refused.store(true, Relaxed);
                Ok(false)
            }
            written => written.map(|()| true),
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn open_through(path: &Path, of: &File) -> io::Result<File> {
    let file = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT | libc::O_DSYNC).open(path)?;
    if is_same_file(of, path)? && is_same_file(&file, path)? { Ok(file) } else { Err(io::ErrorKind::NotFound.into()) }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn open_through(_: &Path, _: &File) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

impl FileDisk {
    pub(crate) fn new(file: File, map: MapOptions) -> Self {
        Self { here: Arc::default(), file, map, through: None }
    }

    /// With a way past the system's cache for what is written through; the file's name is `path`.
    pub(super) fn with_way_through(self, path: PathBuf) -> Self {
        let through = Through { path, file: OnceLock::new(), is_refused: AtomicBool::new(false) };
        Self { through: Some(through), ..self }
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
        Ok(Self { here: Arc::clone(&self.here), file: self.file.try_clone()?, map: self.map, through: None })
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

    fn write_through_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        if let Some(through) = &self.through
            && through.write_at(data, offset, &self.file)?
        {
            return Ok(());
        }
        self.write_at(data, offset)?;
        self.sync()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn max_len(&self) -> Option<u64> {
        largest_file()
    }

    fn room(&self) -> Option<Room> {
        let (disk, file) = (rustix::fs::fstatvfs(&self.file).ok()?, self.file.metadata().ok()?);
        Some(Room {
            free: free(&disk),
            missing: file.len().saturating_sub(file.blocks().saturating_mul(UNIT_OF_BLOCKS)),
        })
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn keep_room(&self, offset: u64, len: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::{Errno, retry_on_intr};
        match retry_on_intr(|| fallocate(&self.file, FallocateFlags::empty(), offset, len)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
            kept => kept.map_err(Into::into),
        }
    }

    fn sync(&self) -> io::Result<()> {
        // fdatasync: it covers the length too, because the data could not be read back without it.
        self.file.sync_data()
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn write_back(&self, offset: u64, len: u64) -> io::Result<()> {
        super::map::write_back(&self.file, offset, len)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks in memory that begins so many bytes behind a border of 4 KiB.
    fn blocks(memory: &mut Vec<u8>, behind: usize, byte: u8) -> &[u8] {
        memory.resize(4 * 4096, byte);
        memory.fill(byte);
        let start = memory.as_ptr().align_offset(4096) + behind;
        &memory[start..start + 2 * 4096]
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no such files")]
    fn what_is_written_through_is_there_for_who_reads_through_the_cache_whatever_memory_it_comes_from() {
        // Beside the sources, which are on a disk; in a folder for temporary files it may be memory.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("file");
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        let disk = FileDisk::new(file, MapOptions::default()).with_way_through(path);
        let (mut memory, mut found) = (Vec::new(), vec![0; 3 * 4096]);
        disk.write_at(&[1; 3 * 4096], 0).unwrap();
        disk.sync().unwrap();
        for (behind, byte) in [(0, 2), (8, 3), (0, 4)] {
            disk.write_through_at(blocks(&mut memory, behind, byte), 4096).unwrap();
            assert_eq!(disk.read_at(&mut found, 0).unwrap(), found.len());
            assert!(found[..4096].iter().all(|&found| found == 1), "{behind}");
            assert!(found[4096..].iter().all(|&found| found == byte), "{behind}");
            disk.write_at(&[1; 4096], 0).unwrap();
        }
    }
}
