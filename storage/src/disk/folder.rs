//! Where database files have their names: the folder, and the lock on a file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::MapOptions;
use super::here::OpenHere;
use super::{Disk, FileDisk};
use crate::{Error, Result};

/// How often a held lock is tried again: bbolt's interval.
const LOCK_RETRY: Duration = Duration::from_millis(50);

/// What opening and creating a database asks of the file system.
pub(crate) trait Folder {
    type File: Disk + 'static;

    /// The regular file of that name.
    fn open(&self, path: &Path, write: bool) -> io::Result<Self::File>;

    /// Locks `file`, opened from `path`: shared or exclusive, waiting up to `timeout` (for ever
    /// where there is none).
    ///
    /// `false`: by the time the lock was there, `path` had come to name another file; open it again.
    fn lock(&self, file: &Self::File, path: &Path, shared: bool, timeout: Option<Duration>) -> Result<bool>;

    /// The file's permissions.
    fn mode(&self, file: &Self::File) -> io::Result<u32>;

    /// A new, empty file, locked exclusively; fails where the name is taken.
    fn create(&self, path: &Path, mode: u32) -> io::Result<Self::File>;

    /// Gives a file a second name; fails where that is taken.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file another name, which it takes from whatever file has it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a name.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Where the links that `path` may be lead.
    fn real(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.into())
    }

    /// Returns when the names beside `path`, and its own, would survive a power cut.
    fn sync(&self, path: &Path) -> io::Result<()>;
}

/// The file system.
#[derive(Debug)]
pub(crate) struct OsFolder {
    /// How its files are mapped.
    pub(crate) map: MapOptions,
}

impl Folder for OsFolder {
    type File = FileDisk;

    fn open(&self, path: &Path, write: bool) -> io::Result<FileDisk> {
        // Looked at first: opening a pipe would wait for its other end.
        if path.metadata().map_err(|error| dangling(path, error))?.is_file() {
            let file = OpenOptions::new().read(true).write(write).open(path)?;
            if file.metadata()?.is_file() {
                return Ok(FileDisk::new(file, self.map));
            }
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }

    /// By `flock` on the file itself, as bbolt does it.
    fn lock(&self, disk: &FileDisk, path: &Path, shared: bool, timeout: Option<Duration>) -> Result<bool> {
        let file = &disk.file;
        let mut here = None;
        if !disk.is_open_here() {
            here = OpenHere::enter(file, shared).map_err(Error::io("look at", Some(path)))?;
            if here.is_none() {
                return Err(Error::AlreadyOpen { path: path.into() });
            }
        }
        let start = Instant::now();
        if !lock_within(file, shared, timeout).map_err(Error::io("lock", Some(path)))? {
            return Err(Error::LockTimeout { path: path.into(), waited: start.elapsed() });
        }
        if let Some(here) = here {
            disk.keep_open_here(here);
        }
        is_same_file(file, path).map_err(Error::io("look at", Some(path)))
    }

    fn mode(&self, disk: &FileDisk) -> io::Result<u32> {
        Ok(disk.file.metadata()?.mode() & 0o7777)
    }

    fn create(&self, path: &Path, mode: u32) -> io::Result<FileDisk> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)?;
        file.lock()?;
        let disk = FileDisk::new(file, self.map);
        // Nobody else knows it yet.
        if let Some(here) = OpenHere::enter(&disk.file, false)? {
            disk.keep_open_here(here);
        }
        Ok(disk)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn real(&self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        sync_folder_of(path)?;
        // A link's own folder says nothing of the name that it leads to.
        if path.is_symlink() { sync_folder_of(&path.canonicalize()?) } else { Ok(()) }
    }
}

/// Locks a file, or a folder, by `flock`; where it is held, as soon as it is not. `false` where that was not within `timeout`.
pub(super) fn lock_within(file: &File, shared: bool, timeout: Option<Duration>) -> io::Result<bool> {
    let start = Instant::now();
    loop {
        match if shared { file.try_lock_shared() } else { file.try_lock() } {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {
                let left = timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
                if left.is_some_and(|left| left.is_zero()) {
                    return Ok(false);
                }
                std::thread::sleep(left.map_or(LOCK_RETRY, |left| left.min(LOCK_RETRY)));
            }
        }
    }
}

/// Returns when the names beside `path`, and its own, would survive a power cut.
pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// The folder that a path's last name is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A link that leads nowhere is not a missing file: no file can be made under its name.
fn dangling(path: &Path, error: io::Error) -> io::Error {
    match path.read_link() {
        Ok(target) if error.kind() == io::ErrorKind::NotFound => {
            let what = format!("it is a symbolic link to {}, which is not there", target.display());
            io::Error::new(io::ErrorKind::InvalidInput, what)
        }
        _ => error,
    }
}

/// Whether the path leads to this very file, through links too.
pub(super) fn is_same_file(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match path.metadata() {
        Ok(named) => Ok((ours.dev(), ours.ino()) == (named.dev(), named.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
