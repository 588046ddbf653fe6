//! Writing entries: one after the other, from segment to segment.

use std::io;

use super::append::Journal;
use super::block::{BLOCK, BLOCK_LEN, ENTRY_HEADER, EntryHeader, EntryKind, Header, blocks_of};
use super::segment::Current;
use crate::base::TxId;

/// An entry goes out in writes of up to so many bytes, a whole number of blocks.
const LONGEST_WRITE: usize = 1 << 18;

/// What is to be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) kind: EntryKind,
    pub(super) txid: TxId,
    pub(super) time_ms: u64,
    /// In this order.
    pub(super) payload: &'a [&'a [u8]],
}

impl Entry<'_> {
    fn payload_len(&self) -> u64 {
        self.payload.iter().map(|part| part.len() as u64).sum()
    }

    /// Its bytes, with what fills its last block.
    fn len(&self) -> u64 {
        blocks_of(self.payload_len() + ENTRY_HEADER as u64) * BLOCK_LEN
    }

    /// For how many bytes it counts, of those after which a checkpoint is due: its own, because doing them again is what takes
    /// time at an opening, but half of what it takes on the disk at least.
    pub(super) fn counts(&self) -> u64 {
        (self.payload_len() + ENTRY_HEADER as u64).max(self.len() / 2)
    }
}

/// Blocks that are to be written, in memory that begins on the border of one: so they can go past the system's cache.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    /// Where the border is.
    start: usize,
}

impl Buffer {
    /// Makes it empty. The memory, as much as it can hold and what is before the border, is taken once, so that it stays where
    /// it is.
    fn begin(&mut self) {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve_exact(BLOCK + LONGEST_WRITE);
            self.start = self.bytes.as_ptr().align_offset(BLOCK).min(BLOCK);
            self.bytes.resize(self.start, 0);
        }
        self.bytes.truncate(self.start);
    }

    /// Takes as much of these bytes as it has room for; returns the rest.
    fn fill_from<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (now, later) = bytes.split_at(bytes.len().min(LONGEST_WRITE - self.blocks().len()));
        self.bytes.extend_from_slice(now);
        later
    }

    /// Fills its last block with zeros.
    fn end(&mut self) {
        let len = self.blocks().len().next_multiple_of(BLOCK);
        self.bytes.resize(self.start + len, 0);
    }

    fn blocks(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

impl Journal {
    /// Whether an entry is written and synced in one: where all before it is synced, it is short, and fits. Who follows the
    /// journal reads what was written a moment ago, and from the system's cache in a fraction of the time.
    pub(super) fn goes_through(&self, entry: &Entry<'_>) -> bool {
        let most = self.current.room().min(LONGEST_WRITE as u64);
        entry.len() <= most && self.end() == self.synced && !self.tail.is_followed()
    }

    /// Writes an entry, synced by itself where it goes `through`.
    pub(super) fn write(&mut self, entry: &Entry<'_>, through: bool) -> io::Result<()> {
        self.is_usable()?;
        self.closed = false;
        self.write_entry(entry, through).map_err(|error| self.outcome.fail(error))
    }

    fn write_entry(&mut self, entry: &Entry<'_>, through: bool) -> io::Result<()> {
        let &Entry { kind, txid, time_ms, payload } = entry;
        if self.current.room() == 0 {
            self.next_segment(0)?;
        }
        let mut header = EntryHeader {
            generation: self.current.header.generation,
            kind,
            before_crc: self.last_crc,
            payload: entry.payload_len(),
            txid,
            follows: self.follows,
            time_ms,
            synced: self.synced,
            payload_crc: payload.iter().fold(0, |crc, part| crc32c::crc32c_append(crc, part)),
            crc: 0,
        };
        let sealed = header.seal();
        self.last_crc = header.crc;
        if kind == EntryKind::Record {
            self.follows = txid;
            (self.current.last, self.current.last_time_ms) = (txid, time_ms);
        }
        let mut left = entry.payload_len() + ENTRY_HEADER as u64;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.begin();
        for mut part in std::iter::once(&sealed[..]).chain(payload.iter().copied()) {
            while !part.is_empty() {
                part = buffer.fill_from(part);
                if buffer.blocks().len() == LONGEST_WRITE {
                    self.write_blocks(buffer.blocks(), &mut left, through)?;
                    buffer.begin();
                }
            }
        }
        buffer.end();
        self.write_blocks(buffer.blocks(), &mut left, through)?;
        self.buffer = buffer;
        Ok(())
    }

    /// Writes blocks of an entry of which so many bytes are left, in this segment and those that follow.
    fn write_blocks(&mut self, mut blocks: &[u8], left: &mut u64, through: bool) -> io::Result<()> {
        while !blocks.is_empty() {
            if self.current.room() == 0 {
                self.next_segment(*left)?;
            }
            let room = usize::try_from(self.current.room()).unwrap_or(usize::MAX);
            let (now, later) = blocks.split_at(blocks.len().min(room));
            let disk = &self.current.disk;
            if through { disk.write_through_at(now, self.current.at) } else { disk.write_at(now, self.current.at) }?;
            self.current.at += now.len() as u64;
            self.figures.bytes_written += now.len() as u64;
            *left = left.saturating_sub(now.len() as u64);
            blocks = later;
        }
        Ok(())
    }

    /// Goes on in the next segment, in which so many bytes of the last entry will be.
    fn next_segment(&mut self, carried: u64) -> io::Result<()> {
        let spare = match self.spares.pop() {
            Some(spare) => spare,
            None => self.obtain_spare(carried)?,
        };
        let old = &self.current;
        let header = Header {
            number: next_number(old.header.number)?,
            generation: self.folder.random()?,
            time_ms: old.last_time_ms,
            before: self.end(),
            synced: self.synced,
            before_crc: self.last_crc,
            carried,
            follows: self.follows,
            base: self.base.1,
            contains: self.base.0,
            ..old.header
        };
        let next = Current::begin(spare, header)?;
        self.figures.bytes_written += BLOCK_LEN;
        let full = std::mem::replace(&mut self.current, next);
        self.history.push(full.used());
        self.tail.push(self.current.header.number, self.current.name.clone());
        self.unsynced.push((full.header.number, full.disk));
        self.prepare_spare();
        Ok(())
    }
}

/// Only a damaged header can bring us to an error.
pub(super) fn next_number(number: u64) -> io::Result<u64> {
    number.checked_add(1).ok_or_else(|| io::Error::other("the numbers of segments are used up (2^64 - 1)"))
}
