//! The records that wait, one by one.

use std::io::{self, Read};
use std::path::Path;

use super::block::EntryKind;
use super::judge::Place;
use super::log::{Segment, close_before, damaged, limit};
use super::walk::{Payload, header_at};
use crate::base::TxId;
use crate::{Error, Result};

/// Goes over the records that a meta does not contain. They were found to be whole before.
#[derive(Debug)]
pub(crate) struct Records<'a> {
    path: &'a [Segment],
    folder: &'a Path,
    at: Place,
    contains: TxId,
    left: u64,
}

/// A transaction as it was recorded.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    pub(crate) txid: TxId,
    /// That of the segment in which it begins.
    pub(crate) epoch: u64,
    /// When it was written, in milliseconds since 1970.
    pub(crate) time_ms: u64,
    pub(crate) effects: Effects<'a>,
}

/// The bytes of a record's effects. They are read as they are needed: a record may be larger than memory. The last of them
/// are handed over only if all are as they were written: of a journal that is in use the segment may be used again meanwhile.
#[derive(Debug)]
pub(crate) struct Effects<'a> {
    payload: Payload<'a>,
    /// The checksum of what was read, and the one of all.
    read_crc: u32,
    crc: u32,
}

impl<'a> Effects<'a> {
    /// The bytes of an entry, whose checksum is this.
    pub(super) const fn new(payload: Payload<'a>, crc: u32) -> Self {
        Self { payload, read_crc: 0, crc }
    }

    /// Bytes that are still to be read.
    pub(crate) fn left(&self) -> u64 {
        self.payload.left()
    }

    /// All of them, if memory takes them.
    pub(crate) fn read_all(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let len = usize::try_from(self.left()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.try_reserve_exact(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Read for Effects<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.payload.read(buffer)?;
        self.read_crc = crc32c::crc32c_append(self.read_crc, &buffer[..read]);
        // All of it was there before.
        if read == 0 && self.left() > 0 && !buffer.is_empty() {
            Err(io::ErrorKind::UnexpectedEof.into())
        } else if self.left() == 0 && self.read_crc != self.crc {
            Err(io::Error::new(io::ErrorKind::InvalidData, "they have changed while they were read"))
        } else {
            Ok(read)
        }
    }
}

impl<'a> Records<'a> {
    pub(super) fn new(path: &'a [Segment], folder: &'a Path, at: Place, contains: TxId, left: u64) -> Self {
        Self { path, folder, at, contains, left }
    }

    fn step(&mut self) -> Result<Option<Record<'a>>> {
        loop {
            let (index, at) = self.at;
            let changed = || {
                damaged(self.folder.join(self.path[index].file.name()), at, "it has changed while it was read".into())
            };
            let segment = &self.path[index];
            // Nothing is left in this segment, or what is left was never part of the journal.
            if at >= limit(self.path, index) {
                let next = self.path.get(index + 1).ok_or_else(changed)?;
                self.at = (index + 1, next.first_entry());
                close_before(self.path, index + 1);
                continue;
            }
            let read = |error| Error::journal_io("read", &self.folder.join(segment.file.name()))(error);
            let entry = header_at(segment, at).map_err(read)?.ok_or_else(changed)?;
            self.at = Payload::new(self.path, index, at, &entry).skip().ok_or_else(changed)?;
            if entry.kind == EntryKind::Record && entry.txid > self.contains {
                let payload = Payload::new(self.path, index, at, &entry);
                let effects = Effects::new(payload, entry.payload_crc);
                return Ok(Some(Record {
                    txid: entry.txid,
                    epoch: segment.header.epoch,
                    time_ms: entry.time_ms,
                    effects,
                }));
            }
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let step = self.step().transpose();
        if !matches!(step, Some(Ok(_))) {
            self.left = 0;
        }
        step
    }
}
