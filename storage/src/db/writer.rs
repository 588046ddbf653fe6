//! The write side of a database: who has it may change the file. There is one.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::Shared;
use crate::disk::Map;
use crate::format::Pgid;
use crate::freelist::Freelist;

/// Up to this many bytes a file grows to the size of its map, beyond by this much more than it
/// needs: bbolt's `AllocSize`.
const GROW_STEP: u64 = 16 << 20;
/// Smallest map: bbolt's.
const MIN_MAP: u64 = 1 << 15;
/// From here on maps grow by this much: bbolt's.
const MAP_STEP: u64 = 1 << 30;

/// Bytes that the map of `size` bytes is made to cover, so that it need not be made anew often.
pub(super) fn map_size(size: u64) -> u64 {
    if size <= MAP_STEP { size.next_power_of_two().max(MIN_MAP) } else { size.next_multiple_of(MAP_STEP) }
}

/// What only the writer may touch.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) freelist: Freelist,
    /// Length of the file in bytes.
    pub(super) file_len: u64,
    /// Bytes that the newest map covers, or will cover once this commit is published.
    pub(super) map_len: u64,
    pub(super) page_size: u64,
}

impl Writer {
    /// Makes room in the file for all pages below `mark`, in bbolt's steps.
    pub(crate) fn grow(&mut self, shared: &Shared, mark: Pgid) -> io::Result<()> {
        let needed = mark.checked_add(1).and_then(|pages| pages.checked_mul(self.page_size));
        let needed = needed.ok_or(io::ErrorKind::FileTooLarge)?;
        if needed >= self.map_len {
            self.map_len = map_size(needed.max(self.file_len));
        }
        if needed > self.file_len {
            let len = if self.map_len <= GROW_STEP { self.map_len } else { needed + GROW_STEP };
            shared.disk.set_len(len)?;
            self.file_len = len;
        }
        Ok(())
    }

    /// A map of the file as it has grown: the current one, or a new generation.
    pub(crate) fn map(&self, shared: &Shared) -> io::Result<Arc<Map>> {
        let current = shared.readers.current();
        let len = usize::try_from(self.map_len).map_err(io::Error::other)?;
        if len <= current.map.len() { Ok(Arc::clone(&current.map)) } else { shared.disk.map(len).map(Arc::new) }
    }
}

/// Where the writer waits for whoever wants to write next.
#[derive(Debug)]
pub(crate) struct WriterSlot {
    writer: Mutex<Option<Box<Writer>>>,
    returned: Condvar,
}

impl WriterSlot {
    pub(super) fn new(writer: Option<Writer>) -> Self {
        Self { writer: Mutex::new(writer.map(Box::new)), returned: Condvar::new() }
    }

    /// Waits for the writer.
    pub(super) fn take(&self) -> Box<Writer> {
        let mut slot = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match slot.take() {
                Some(writer) => return writer,
                None => slot = self.returned.wait(slot).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    pub(crate) fn put_back(&self, writer: Box<Writer>) {
        *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
        self.returned.notify_one();
    }

    /// What the writer knows, unless it is at work.
    pub(super) fn peek<T>(&self, look: impl FnOnce(&Writer) -> T) -> Option<T> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).as_deref().map(look)
    }
}

#[cfg(test)]
mod tests {
    use super::map_size;

    #[test]
    fn maps_double_to_1_gib_and_then_grow_by_1_gib() {
        let cases =
            [(0, 1 << 15), (1 << 15, 1 << 15), ((1 << 15) + 1, 1 << 16), (1 << 30, 1 << 30), ((1 << 30) + 1, 2 << 30)];
        for (size, expected) in cases {
            assert_eq!(map_size(size), expected, "{size}");
        }
    }
}
