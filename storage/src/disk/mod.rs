//! What touches the operating system: the file, its name, its lock, its map. Everything above sees a
//! [`Disk`], and while it opens one a [`Folder`].
//!
//! A disk is written with `write_at` and read through a [`Map`]; only the meta pages are read with
//! `read_at`. It never decides anything about pages or transactions.

mod create;
mod file;
mod folder;
mod heap;
#[cfg(fuzzing)]
mod heap_folder;
mod here;
mod journal_folder;
mod map;
mod map_options;
mod room;
#[cfg(test)]
pub(crate) mod sim;
mod slabs;
mod whole;

use std::path::Path;
use std::{fmt, io};

pub(crate) use create::{Publish, create};
pub(crate) use file::FileDisk;
pub(crate) use folder::{Folder, OsFolder, folder_of};
pub(crate) use heap::HeapDisk;
#[cfg(fuzzing)]
pub(crate) use heap_folder::HeapJournalFolder;
pub(crate) use journal_folder::{JournalFolder, OsJournalFolder, journal_of, journal_path};
pub(crate) use map::{Map, Region, prefetch};
pub use map_options::Advice;
pub(crate) use map_options::MapOptions;
pub(crate) use room::{free_bytes, is_no_room, is_out_of_files};
pub(crate) use slabs::{LONGEST_SLAB, MOST_SLABS, PLACE_BITS, Slab, Slabs, UNIT, place, slot_of};
pub use whole::remove_unfinished_files;
pub(crate) use whole::{Appender, Existing, new_file, refuse_existing, write_file};

/// Room for what is written to a disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Bytes by which all that shares it can grow.
    pub(crate) free: u64,
    /// Bytes below its end that take no room yet, and will when they are written.
    pub(crate) missing: u64,
}

/// Bytes that outlast the process, or play that role.
pub(crate) trait Disk: fmt::Debug + Send + Sync {
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Fills `buf` from `offset` on; returns fewer bytes only where the disk ends.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `data` at `offset`.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()>;

    /// The same, and returns when that would survive a power cut. Only where nothing else of the disk is unsynced: of what
    /// was written before, it says nothing. Memory that begins on a border of 4 KiB spares it the way through the system's
    /// cache.
    fn write_through_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(data, offset)?;
        self.sync()
    }

    /// Makes the disk `len` bytes long; what is new reads as zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// The length in bytes that the disk may not grow past, where this process has such a limit.
    fn max_len(&self) -> Option<u64> {
        None
    }

    /// What room there is, as far as that is known.
    fn room(&self) -> Option<Room> {
        None
    }

    /// Has the disk keep room for these bytes, which are below its end, so that a write of them finds some. Where the disk
    /// cannot, it does nothing.
    fn keep_room(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    /// Returns when all that was written, and the length, would survive a power cut.
    fn sync(&self) -> io::Result<()>;

    /// Has the system write what these bytes have that is not on the disk yet, and waits for it, so that a sync has less to
    /// do. It makes nothing durable; but an error is one that no sync will tell of any more.
    fn write_back(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    /// A view of the first `len` bytes, which may be more than the disk has: bytes beyond its end
    /// must not be touched before the disk has grown over them.
    fn map(&self, len: usize) -> io::Result<Map>;

    /// Tells the system that these bytes will not be read again soon, so that it need not keep them. A hint: what is mapped
    /// and in use stays, and so does what is not on the disk yet.
    fn forget(&self, _offset: u64, _len: u64) {}

    /// Whether that path leads to this disk.
    fn is_at(&self, _path: &Path) -> io::Result<bool> {
        Ok(false)
    }

    /// Whether what is written from now on shows in `map`, which was taken of this disk: as long as the disk has not
    /// moved to other memory.
    fn shows(&self, _map: &Map) -> bool {
        true
    }
}
