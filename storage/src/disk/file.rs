//! The disk that is a file: positioned reads and writes, `flock`, atomic creation.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{Disk, Map};
use crate::options::MapOptions;
use crate::{Error, Result};

/// How often a held lock is tried again: bbolt's interval.
const LOCK_RETRY: Duration = Duration::from_millis(50);

/// A bolt file, locked by this process.
#[derive(Debug)]
pub(crate) struct FileDisk {
    file: File,
    map: MapOptions,
}

impl FileDisk {
    pub(crate) fn new(file: File, map: MapOptions) -> Self {
        Self { file, map }
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

/// Locks `file`, opened from `path`: shared or exclusive, as bbolt does it (`flock` on the file
/// itself), waiting up to `timeout` (for ever where there is none).
///
/// `false`: by the time the lock was there, `path` had come to name another file; open it again.
pub(crate) fn lock(file: &File, path: &Path, shared: bool, timeout: Option<Duration>) -> Result<bool> {
    let start = Instant::now();
    loop {
        let tried = if shared { file.try_lock_shared() } else { file.try_lock() };
        match tried {
            Ok(()) => return same_file(file, path),
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", Some(path))(error)),
            Err(TryLockError::WouldBlock) => {
                let waited = start.elapsed();
                let left = timeout.map(|timeout| timeout.saturating_sub(waited));
                if left.is_some_and(|left| left.is_zero()) {
                    return Err(Error::LockTimeout { path: path.into(), waited });
                }
                std::thread::sleep(left.map_or(LOCK_RETRY, |left| left.min(LOCK_RETRY)));
            }
        }
    }
}

fn same_file(file: &File, path: &Path) -> Result<bool> {
    let ours = file.metadata().map_err(Error::io("look at", Some(path)))?;
    match path.metadata() {
        Ok(named) => Ok((ours.dev(), ours.ino()) == (named.dev(), named.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("look at", Some(path))(error)),
    }
}

/// How a file that was written under a temporary name gets its own.
#[derive(Clone, Copy)]
pub(crate) enum Publish {
    /// Fails where the name is taken: for a new file.
    New,
    /// Takes the place of an empty file that the caller has locked.
    OverEmpty,
}

/// Writes `content` under a temporary name and gives it the name `path` in one step: a crash leaves
/// what was there, or all of it. Returns the new file, locked exclusively from before it had its
/// name; `None` where `path` has come to exist meanwhile, or is an empty file now: open that.
pub(crate) fn create(path: &Path, mode: u32, content: &[u8], how: Publish) -> Result<Option<File>> {
    let temporary = temporary_name(path)?;
    let file = write_new(&temporary, mode, content).and_then(|file| match how {
        Publish::New => Ok(link_new(&temporary, path, mode)?.then_some(file)),
        Publish::OverEmpty => std::fs::rename(&temporary, path).map(|()| Some(file)),
    });
    // A leftover name is a nuisance, not a danger: the file's own name decides. (After a rename
    // there is none.)
    let _ = std::fs::remove_file(&temporary);
    let file = file.map_err(Error::io("create", Some(path)))?;
    if file.is_some() {
        sync_folder_of(path)?;
    }
    Ok(file)
}

/// Names the finished file; `false` where the name is taken.
fn link_new(temporary: &Path, path: &Path, mode: u32) -> io::Result<bool> {
    let Err(error) = std::fs::hard_link(temporary, path) else { return Ok(true) };
    if error.kind() == io::ErrorKind::AlreadyExists {
        return Ok(false);
    }
    // A file system without hard links: an empty file takes the name, and whoever gets its lock
    // fills it.
    match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
        Ok(_) => Ok(false),
        Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(_) => Err(error),
    }
}

fn write_new(path: &Path, mode: u32, content: &[u8]) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)?;
    file.lock()?;
    file.write_all_at(content, 0)?;
    file.sync_all()?;
    Ok(file)
}

/// A name beside `path` that no other creator uses.
pub(super) fn temporary_name(path: &Path) -> Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().ok_or_else(|| Error::io("create", Some(path))(io::ErrorKind::InvalidInput.into()))?;
    let mut temporary = name.to_os_string();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let (pid, count) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    temporary.push(format!(".new-{pid}-{}-{count}", now.as_nanos()));
    Ok(path.with_file_name(temporary))
}

/// Makes a change of names in `path`'s folder survive a power cut.
pub(super) fn sync_folder_of(path: &Path) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::io("sync the folder of", Some(path)))
}
