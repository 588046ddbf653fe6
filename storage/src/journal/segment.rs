//! A file of the journal, and how a new one is made.

use std::io;
use std::sync::Arc;

use super::block::{BLOCK, BLOCK_LEN, Header};
use super::retain::{JournalLimits, Used};
use crate::disk::{Disk, JournalFolder, is_no_room};

/// So many bytes has the shortest segment that an opening does with: room for its header, the links of the checkpoints that an
/// opening and a close do, a close, and some small records.
pub(crate) const SHORTEST_SEGMENT: u64 = 8 * BLOCK_LEN;

/// A file that may become a segment: as long as one, and written from end to end.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) name: String,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) len: u64,
}

impl Spare {
    /// Makes one. When this returns, a write into it changes nothing but its data, and its name would survive a power cut.
    pub(super) fn make(folder: &dyn JournalFolder, len: u64) -> io::Result<Self> {
        let (name, disk) = folder.create()?;
        match fill(&*disk, len).and_then(|()| folder.sync()) {
            Ok(()) => Ok(Self { name, disk, len }),
            Err(error) => {
                // What is left of it is removed the next time that the database is opened.
                let _ = folder.remove(&name);
                Err(error)
            }
        }
    }

    /// Makes one that is just long enough for an opening.
    pub(super) fn make_shortest(folder: &dyn JournalFolder, limits: &JournalLimits) -> io::Result<Self> {
        let len = limits.shortest();
        Self::make(folder, len).map_err(|error| with_len(error, len))
    }

    /// One that is there, of this length.
    pub(super) fn open(folder: &dyn JournalFolder, name: &str, len: u64) -> io::Result<Self> {
        Ok(Self { name: name.into(), disk: folder.open(name)?, len })
    }

    /// Bytes that entries may have in it.
    pub(super) fn room(&self) -> u64 {
        self.len - BLOCK_LEN
    }
}

/// A disk that is full, and what was to be made there.
pub(super) fn with_len(error: io::Error, len: u64) -> io::Error {
    let what = format!("{error}; a segment of {len} bytes has to be made there");
    if is_no_room(&error) { io::Error::new(error.kind(), what) } else { error }
}

/// Writes zeros, a block at a time: in longer writes the system's cache would take larger pieces of memory for them, in which
/// a block costs more to write again.
fn fill(disk: &dyn Disk, len: u64) -> io::Result<()> {
    for offset in (0..len).step_by(BLOCK) {
        disk.write_at(&[0; BLOCK], offset)?;
    }
    disk.sync()
}

/// The segment that is being written.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) name: String,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) len: u64,
    pub(super) header: Header,
    /// Where the next entry begins.
    pub(super) at: u64,
    /// The last record that begins in it or before, and when that was written.
    pub(super) last: u64,
    pub(super) last_time_ms: u64,
}

impl Current {
    /// Begins a use of `spare`; nothing is synced.
    pub(super) fn begin(spare: Spare, header: Header) -> io::Result<Self> {
        let Spare { name, disk, len } = spare;
        disk.write_at(&header.encode(), 0)?;
        let (last, last_time_ms) = (header.follows, header.time_ms);
        Ok(Self { name, disk, len, at: BLOCK_LEN, last, last_time_ms, header })
    }

    pub(super) fn room(&self) -> u64 {
        self.len - self.at
    }

    /// What is kept of it once it is full.
    pub(super) fn used(&self) -> Used {
        let Self { len, last, last_time_ms, .. } = *self;
        Used { number: self.header.number, name: self.name.clone(), len, last, last_time_ms }
    }
}
