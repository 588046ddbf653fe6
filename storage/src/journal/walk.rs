//! From entry to entry of a segment, and from byte to byte of an entry that may go on in the next ones.

use std::io;

use super::block::{BLOCK, BLOCK_LEN, ENTRY_HEADER, EntryHeader};
use super::file::SegmentFile;
use super::log::Segment;

/// How much is read at a time where one block after the other is looked at.
const READ: usize = 1 << 18;

/// Blocks of a file, read many at a time.
pub(super) struct Blocks<'a> {
    file: &'a SegmentFile,
    buffer: Vec<u8>,
    /// What of the file is in the buffer.
    start: u64,
    read: usize,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(file: &'a SegmentFile) -> Self {
        Self { file, buffer: Vec::new(), start: 0, read: 0 }
    }

    /// The block at that offset; fewer bytes where the file ends.
    pub(super) fn at(&mut self, offset: u64) -> io::Result<&[u8]> {
        let is_there = offset >= self.start && offset + BLOCK_LEN <= self.start + self.read as u64;
        if !is_there {
            if self.buffer.is_empty() {
                self.buffer = vec![0; READ];
            }
            self.read = self.file.read_at(&mut self.buffer, offset)?;
            self.start = offset;
        }
        let from = usize::try_from(offset - self.start).unwrap_or(usize::MAX).min(self.read);
        Ok(&self.buffer[from..self.read.min(from + BLOCK)])
    }
}

/// The bytes of an entry's payload, from segment to segment.
#[derive(Debug)]
pub(super) struct Payload<'a> {
    segments: &'a [Segment],
    /// Which of them, and where in it.
    index: usize,
    at: u64,
    left: u64,
    /// The entry's checksum, which the segments that go on with it name.
    crc: u32,
}

impl<'a> Payload<'a> {
    /// Of the entry at `offset` of a segment.
    pub(super) fn new(segments: &'a [Segment], index: usize, offset: u64, entry: &EntryHeader) -> Self {
        Self { segments, index, at: offset + ENTRY_HEADER as u64, left: entry.payload, crc: entry.crc }
    }

    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Where the next entry may begin, once all was read.
    fn end(&self) -> (usize, u64) {
        (self.index, self.at.next_multiple_of(BLOCK_LEN))
    }

    /// Bytes that can be read at once; 0 at the end, and where no segment goes on with it.
    fn stretch(&mut self) -> u64 {
        let goes_on = |next: &Segment| next.header.carried == self.left && next.header.before_crc == self.crc;
        let is_at_end = self.left > 0 && self.at >= self.segments[self.index].len;
        if is_at_end && self.segments.get(self.index + 1).is_some_and(goes_on) {
            (self.index, self.at) = (self.index + 1, BLOCK_LEN);
        }
        self.left.min(self.segments[self.index].len.saturating_sub(self.at))
    }

    /// Fills `buffer` with the next bytes; fewer at the end of the payload, and none where no segment goes on with it.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.stretch()).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let read = self.segments[self.index].file.read_at(&mut buffer[..most], self.at)?;
        self.pass(read as u64);
        Ok(read)
    }

    /// Passes over the rest, and returns where the next entry may begin; `None` where it is not all there.
    pub(super) fn skip(mut self) -> Option<(usize, u64)> {
        loop {
            match self.stretch() {
                0 => break,
                bytes => self.pass(bytes),
            }
        }
        (self.left == 0).then(|| self.end())
    }

    fn pass(&mut self, bytes: u64) {
        self.at += bytes;
        self.left -= bytes;
    }
}

/// What stands where an entry may begin.
pub(super) enum Found {
    /// One that is whole; the next may begin at this offset of that segment.
    Entry(EntryHeader, (usize, u64)),
    /// None that is whole.
    Nothing,
}

/// Looks at the entry at `offset` of a segment, and checks all of its bytes; `before_crc` is the checksum of the one before,
/// where that is known.
pub(super) fn entry_at(
    segments: &[Segment],
    index: usize,
    offset: u64,
    before_crc: Option<u32>,
    buffer: &mut Vec<u8>,
) -> io::Result<Found> {
    let Some(entry) = header_at(&segments[index], offset)? else { return Ok(Found::Nothing) };
    if before_crc.is_some_and(|crc| crc != entry.before_crc) {
        return Ok(Found::Nothing);
    }
    let mut payload = Payload::new(segments, index, offset, &entry);
    if buffer.is_empty() {
        *buffer = vec![0; READ];
    }
    let mut crc = 0;
    loop {
        let read = payload.read(buffer)?;
        if read == 0 {
            break;
        }
        crc = crc32c::crc32c_append(crc, &buffer[..read]);
    }
    if payload.left() > 0 || crc != entry.payload_crc {
        return Ok(Found::Nothing);
    }
    Ok(Found::Entry(entry, payload.end()))
}

/// What the block at `offset` says if an entry begins there; not whether its payload is whole.
pub(super) fn header_at(segment: &Segment, offset: u64) -> io::Result<Option<EntryHeader>> {
    let mut bytes = [0; ENTRY_HEADER];
    if offset + BLOCK_LEN > segment.len || segment.file.read_at(&mut bytes, offset)? < ENTRY_HEADER {
        return Ok(None);
    }
    Ok(EntryHeader::decode(&bytes, segment.header.generation))
}
