//! The file of a segment while it is read. It is open only from the first look at what is behind its header: of what is kept
//! there may be more than a process may have open, and most of it is never looked at.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, JournalFolder};

#[derive(Debug, Clone)]
pub(super) struct SegmentFile {
    folder: Arc<dyn JournalFolder>,
    name: String,
    open: Arc<Mutex<Option<Arc<dyn Disk>>>>,
}

impl SegmentFile {
    pub(super) fn new(folder: &Arc<dyn JournalFolder>, name: String) -> Self {
        Self { folder: Arc::clone(folder), name, open: Arc::default() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Fills `buffer` from `offset` on; fewer bytes only where the file ends.
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk()?.read_at(buffer, offset)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.disk()?.sync()
    }

    /// Closes it until it is read again; whether it was open.
    pub(super) fn close(&self) -> bool {
        self.slot().take().is_some()
    }

    fn disk(&self) -> io::Result<Arc<dyn Disk>> {
        let mut slot = self.slot();
        if let Some(disk) = &*slot {
            return Ok(Arc::clone(disk));
        }
        let disk = self.folder.open(&self.name)?;
        *slot = Some(Arc::clone(&disk));
        Ok(disk)
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<dyn Disk>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
