//! Writing a file of any size that has its name only when it is whole.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::create::temporary_name;
use super::{Disk, Folder};
use crate::{Error, Result};

/// What becomes of a file that has the name already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It stays, and that is an error.
    Refuse,
    /// The new one takes its place.
    Replace,
}

/// Fails where there is a file of that name: before anything is done that in the end could only be
/// thrown away.
pub(crate) fn refuse_existing(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(_) => Err(Error::io("create", Some(path))(rustix::io::Errno::EXIST.into())),
        Err(_) => Ok(()),
    }
}

/// Has `content` write a file from its beginning to its end; see [`new_file`].
pub(crate) fn write_file<F: Folder, T>(
    folder: &F,
    path: &Path,
    mode: u32,
    existing: Existing,
    content: impl FnOnce(&mut dyn Write) -> Result<T>,
) -> Result<T> {
    new_file(folder, path, mode, existing, |disk| content(&mut Appender::new(disk)))
}

/// Has `content` fill a file under a temporary name, syncs it, gives it the name `path` in one
/// step, and syncs the folder. On an error before that there is neither name.
pub(crate) fn new_file<F: Folder, T>(
    folder: &F,
    path: &Path,
    mode: u32,
    existing: Existing,
    content: impl FnOnce(&F::File) -> Result<T>,
) -> Result<T> {
    let temporary = temporary_name(path)?;
    let _listed = Unfinished::list(&temporary);
    // Errors name the file by the name that was asked for: nobody else knows the temporary one.
    let disk = folder.create(&temporary, mode).map_err(Error::io("create", Some(path)))?;
    let written = content(&disk).and_then(|answer| {
        disk.sync().map_err(Error::io("sync", Some(path)))?;
        name(folder, &temporary, path, mode, existing).map_err(Error::io("create", Some(path)))?;
        Ok(answer)
    });
    // After a rename it is gone; otherwise a leftover name is a nuisance, not a danger.
    let _ = folder.remove(&temporary);
    let answer = written?;
    folder.sync(path).map_err(Error::io("sync the folder of", Some(path)))?;
    Ok(answer)
}

fn name<F: Folder>(folder: &F, temporary: &Path, path: &Path, mode: u32, existing: Existing) -> io::Result<()> {
    if existing == Existing::Replace {
        return folder.rename(temporary, path);
    }
    match folder.link(temporary, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            // A file system without hard links: an empty file keeps the name for us.
            folder.create(path, mode)?;
            folder.rename(temporary, path)
        }
        linked => linked,
    }
}

/// The temporary names that this process is writing under.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    // A list of names is whole after any panic.
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a temporary name on the list.
struct Unfinished<'a>(&'a Path);

impl<'a> Unfinished<'a> {
    fn list(temporary: &'a Path) -> Self {
        unfinished().push(temporary.into());
        Self(temporary)
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        unfinished().retain(|listed| listed != self.0);
    }
}

/// Removes what this process has written of files that are not whole yet, under their temporary names: of a
/// [`Surgery`](crate::tools::Surgery), a repair, a copy, or of [`Tx::compact_to_file`](crate::Tx::compact_to_file). A file that
/// has its own name already stays.
///
/// For a process that ends next, on a signal for instance, while other threads are still writing: they can begin and
/// finish no such file any more, and wait for ever where they try.
pub fn remove_unfinished_files() {
    let mut listed = unfinished();
    for temporary in listed.drain(..) {
        // It may not have come to be, or be finished by now.
        let _ = std::fs::remove_file(temporary);
    }
    // Kept locked: nobody begins another one.
    std::mem::forget(listed);
}

/// Writes at the end of a disk that is empty at first.
pub(crate) struct Appender<'a, D> {
    disk: &'a D,
    at: u64,
}

impl<'a, D> Appender<'a, D> {
    pub(crate) fn new(disk: &'a D) -> Self {
        Self { disk, at: 0 }
    }
}

impl<D: Disk> Write for Appender<'_, D> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.disk.write_at(data, self.at)?;
        self.at += data.len() as u64;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
