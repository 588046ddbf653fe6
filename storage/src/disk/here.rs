//! Which files this process has open as databases. The system's locks let one process take turns with itself, which would
//! wait for ever where the same thread has the file: here it is told at once.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file, whatever leads to it: its device and its number there.
type FileId = (u64, u64);

/// How often each file is open for reading; 0: once, for writing.
static OPEN: Mutex<Option<HashMap<FileId, usize>>> = Mutex::new(None);

fn open_files() -> MutexGuard<'static, Option<HashMap<FileId, usize>>> {
    // Every change is one insertion or removal.
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that is open here, until this is dropped.
#[derive(Debug)]
pub(super) struct OpenHere(FileId);

impl OpenHere {
    /// `None` where it is open already, unless it is shared there and to be shared here.
    pub(super) fn enter(file: &File, shared: bool) -> io::Result<Option<Self>> {
        let id = file_id(file)?;
        let mut files = open_files();
        let files = files.get_or_insert_default();
        let readers = match files.get(&id) {
            None => usize::from(shared),
            Some(&readers) if shared && readers > 0 => readers + 1,
            Some(_) => return Ok(None),
        };
        files.insert(id, readers);
        Ok(Some(Self(id)))
    }
}

impl Drop for OpenHere {
    fn drop(&mut self) {
        let mut files = open_files();
        let Some(files) = files.as_mut() else { return };
        match files.get_mut(&self.0) {
            Some(readers) if *readers > 1 => *readers -= 1,
            _ => drop(files.remove(&self.0)),
        }
    }
}

fn file_id(file: &File) -> io::Result<FileId> {
    file.metadata().map(|file| (file.dev(), file.ino()))
}
