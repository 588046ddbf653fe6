//! Writing a file that has its name only when it is whole.

use std::fs::{File, OpenOptions, hard_link, remove_file, rename};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::file::{sync_folder_of, temporary_name};
use crate::{Error, Result};

/// What becomes of a file that has the name already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It stays, and that is an error.
    Refuse,
    /// The new one takes its place.
    Replace,
}

/// Has `content` write a file under a temporary name, syncs it, and gives it the name `path` in one
/// step. On an error there is neither name.
pub(crate) fn write_file<T>(
    path: &Path,
    mode: u32,
    existing: Existing,
    content: impl FnOnce(&mut File) -> Result<T>,
) -> Result<T> {
    let temporary = temporary_name(path)?;
    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary);
    let mut file = opened.map_err(Error::io("create", Some(&temporary)))?;
    let written = content(&mut file).and_then(|answer| {
        file.sync_all().map_err(Error::io("sync", Some(&temporary)))?;
        name(&temporary, path, mode, existing).map_err(Error::io("create", Some(path)))?;
        Ok(answer)
    });
    // After a rename it is gone; otherwise a leftover name is a nuisance, not a danger.
    let _ = remove_file(&temporary);
    let answer = written?;
    sync_folder_of(path)?;
    Ok(answer)
}

fn name(temporary: &Path, path: &Path, mode: u32, existing: Existing) -> io::Result<()> {
    if existing == Existing::Replace {
        return rename(temporary, path);
    }
    match hard_link(temporary, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            // A file system without hard links: an empty file keeps the name for us.
            OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
            rename(temporary, path)
        }
        linked => linked,
    }
}
