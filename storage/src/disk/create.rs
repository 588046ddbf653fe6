//! Atomic creation: a database file has its name only once it is whole.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Disk as _, Folder};
use crate::{Error, Result};

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
///
/// The name survives a power cut only once the folder is synced, which is left to the caller.
pub(crate) fn create<F: Folder>(
    folder: &F,
    path: &Path,
    mode: u32,
    content: &[u8],
    how: Publish,
) -> Result<Option<F::File>> {
    let temporary = temporary_name(path)?;
    let file = write_new(folder, &temporary, mode, content).and_then(|file| match how {
        Publish::New => Ok(link_new(folder, &temporary, path, mode)?.then_some(file)),
        Publish::OverEmpty => folder.rename(&temporary, path).map(|()| Some(file)),
    });
    // A leftover name is a nuisance, not a danger: the file's own name decides. (After a rename
    // there is none.)
    let _ = folder.remove(&temporary);
    file.map_err(Error::io("create", Some(path)))
}

/// Names the finished file; `false` where the name is taken.
fn link_new<F: Folder>(folder: &F, temporary: &Path, path: &Path, mode: u32) -> io::Result<bool> {
    let Err(error) = folder.link(temporary, path) else { return Ok(true) };
    if error.kind() == io::ErrorKind::AlreadyExists {
        return Ok(false);
    }
    // A file system without hard links: an empty file takes the name, and whoever gets its lock
    // fills it.
    match folder.create(path, mode) {
        Ok(_) => Ok(false),
        Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(_) => Err(error),
    }
}

fn write_new<F: Folder>(folder: &F, path: &Path, mode: u32, content: &[u8]) -> io::Result<F::File> {
    let file = folder.create(path, mode)?;
    file.write_at(content, 0)?;
    file.sync()?;
    Ok(file)
}

/// A name beside `path` that no other creator uses.
pub(super) fn temporary_name(path: &Path) -> Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().ok_or_else(|| Error::io("create", Some(path))(io::ErrorKind::InvalidInput.into()))?;
    let mut temporary = name.to_os_string();
    #[expect(clippy::disallowed_methods, reason = "it only has to differ from what an earlier process took")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let (pid, count) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    temporary.push(format!(".new-{pid}-{}-{count}", now.as_nanos()));
    Ok(path.with_file_name(temporary))
}
