//! The bytes of a journal: what stands at the beginning of a segment and of an entry.
//!
//! Everything is made of blocks: a header fills the first one of its segment, and an entry begins on a block of its own, so
//! that nothing that was acknowledged is ever written again. Nothing here trusts a byte.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::MetaBytes;
use crate::base::TxId;

/// Bytes of a block. Segments are whole numbers of them.
pub(crate) const BLOCK: usize = 4096;
/// The same, for places in files.
pub(super) const BLOCK_LEN: u64 = BLOCK as u64;

const MAGIC: [u8; 8] = *b"boltkvJ\n";
const VERSION: u32 = 1;

/// Up to where something is: a segment's number, and an offset in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Position {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "byte {} of segment {}", self.offset, self.segment)
    }
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawHeader {
    magic: [u8; 8],
    version: U32,
    block: U32,
    store: U64,
    number: U64,
    generation: U64,
    epoch: U64,
    time: U64,
    before_segment: U64,
    before_offset: U64,
    synced_segment: U64,
    synced_offset: U64,
    carried: U64,
    follows: U64,
    contains: U64,
    base: [u8; 64],
    before_crc: U32,
    crc: U32,
}

/// What a segment is, for as long as it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Whose journal it is: the same in all of its segments.
    pub(crate) store: u64,
    /// Counts the uses of segments, from 1 on.
    pub(crate) number: u64,
    /// Drawn for this use, and written in each of its entries: older ones are told from it.
    pub(crate) generation: u64,
    /// Drawn when the database was opened.
    pub(crate) epoch: u64,
    /// When it was begun, in milliseconds since 1970.
    pub(crate) time_ms: u64,
    /// Where the entries before end; segment 0 where there are none.
    pub(crate) before: Position,
    /// Up to where the journal was synced when this was written.
    pub(crate) synced: Position,
    /// The checksum of the last entry before.
    pub(crate) before_crc: u32,
    /// Bytes of that entry that are in this segment, or further on.
    pub(crate) carried: u64,
    /// The number of the last transaction before this segment.
    pub(crate) follows: TxId,
    /// The meta that was the newest on the disk, and the last transaction in it.
    pub(crate) base: MetaBytes,
    pub(crate) contains: TxId,
}

/// What the first block of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoded {
    Header(Header),
    /// One of a format that is not known.
    Version(u32),
    /// A segment that was never used, or whose header is torn or damaged.
    None,
}

impl Header {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut raw = RawHeader {
            magic: MAGIC,
            version: VERSION.into(),
            block: U32::new(BLOCK as u32),
            store: self.store.into(),
            number: self.number.into(),
            generation: self.generation.into(),
            epoch: self.epoch.into(),
            time: self.time_ms.into(),
            before_segment: self.before.segment.into(),
            before_offset: self.before.offset.into(),
            synced_segment: self.synced.segment.into(),
            synced_offset: self.synced.offset.into(),
            carried: self.carried.into(),
            follows: self.follows.into(),
            contains: self.contains.into(),
            base: self.base.0,
            before_crc: self.before_crc.into(),
            crc: U32::ZERO,
        };
        raw.crc = crc_but_last(raw.as_bytes()).into();
        let mut block = raw.as_bytes().to_vec();
        block.resize(BLOCK, 0);
        block
    }

    pub(super) fn decode(block: &[u8]) -> Decoded {
        let Ok((mut raw, _)) = RawHeader::read_from_prefix(block) else { return Decoded::None };
        // Of a later version only magic and version can be relied on. But where everything else is as in this one, down to
        // the checksum, it is the version that is damaged: a crash may have met the sector while it was written.
        if raw.magic == MAGIC && raw.version.get() > VERSION {
            let found = raw.version.get();
            raw.version = VERSION.into();
            let is_damaged = raw.crc.get() == crc_but_last(raw.as_bytes());
            return if is_damaged { Decoded::None } else { Decoded::Version(found) };
        }
        let is_ours = raw.magic == MAGIC && raw.version.get() == VERSION && raw.block.get() == BLOCK as u32;
        if !is_ours || raw.crc.get() != crc_but_last(raw.as_bytes()) {
            return Decoded::None;
        }
        Decoded::Header(Self {
            store: raw.store.get(),
            number: raw.number.get(),
            generation: raw.generation.get(),
            epoch: raw.epoch.get(),
            time_ms: raw.time.get(),
            before: Position { segment: raw.before_segment.get(), offset: raw.before_offset.get() },
            synced: Position { segment: raw.synced_segment.get(), offset: raw.synced_offset.get() },
            before_crc: raw.before_crc.get(),
            carried: raw.carried.get(),
            follows: raw.follows.get(),
            base: MetaBytes(raw.base),
            contains: raw.contains.get(),
        })
    }

    /// Where the first entry of its own may begin: past what it carries of the one before.
    pub(super) fn first_entry(&self) -> u64 {
        blocks_of(self.carried).saturating_mul(BLOCK_LEN).saturating_add(BLOCK_LEN)
    }
}

/// What an entry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// A transaction's effects.
    Record,
    /// A meta that is about to be written to the database's file.
    Link,
    /// The file holds everything, and may be changed by others.
    Closed,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawEntry {
    generation: U64,
    kind: U32,
    before_crc: U32,
    payload: U64,
    txid: U64,
    follows: U64,
    time: U64,
    synced_segment: U64,
    synced_offset: U64,
    payload_crc: U32,
    crc: U32,
}

/// Bytes of an entry's header; its payload follows at once.
pub(super) const ENTRY_HEADER: usize = size_of::<RawEntry>();

/// What an entry says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryHeader {
    /// That of the segment in which it begins.
    pub(crate) generation: u64,
    pub(crate) kind: EntryKind,
    /// The checksum of the entry before.
    pub(crate) before_crc: u32,
    /// Bytes after this header.
    pub(crate) payload: u64,
    /// A record's transaction; of a link, the last one that its meta contains; of a closing, the last one there was.
    pub(crate) txid: TxId,
    /// The transaction of the last record before.
    pub(crate) follows: TxId,
    /// Milliseconds since 1970.
    pub(crate) time_ms: u64,
    /// Up to where the journal was synced when this was written.
    pub(crate) synced: Position,
    pub(crate) payload_crc: u32,
    /// Of all of the above, and so of the payload and of all entries before.
    pub(crate) crc: u32,
}

impl EntryHeader {
    /// Sets the checksum, and returns the bytes.
    pub(super) fn seal(&mut self) -> [u8; ENTRY_HEADER] {
        let mut raw = RawEntry {
            generation: self.generation.into(),
            kind: U32::new(match self.kind {
                EntryKind::Record => 1,
                EntryKind::Link => 2,
                EntryKind::Closed => 3,
            }),
            before_crc: self.before_crc.into(),
            payload: self.payload.into(),
            txid: self.txid.into(),
            follows: self.follows.into(),
            time: self.time_ms.into(),
            synced_segment: self.synced.segment.into(),
            synced_offset: self.synced.offset.into(),
            payload_crc: self.payload_crc.into(),
            crc: U32::ZERO,
        };
        self.crc = crc_but_last(raw.as_bytes());
        raw.crc = self.crc.into();
        let mut bytes = [0; ENTRY_HEADER];
        bytes.copy_from_slice(raw.as_bytes());
        bytes
    }

    /// The header at the beginning of a block of a segment of that generation; `None` where none is, or it is torn.
    pub(super) fn decode(block: &[u8], generation: u64) -> Option<Self> {
        let found = Self::decode_any(block)?;
        (found.generation == generation).then_some(found)
    }

    /// The same, of whatever generation.
    pub(super) fn decode_any(block: &[u8]) -> Option<Self> {
        let (raw, _) = RawEntry::ref_from_prefix(block).ok()?;
        let kind = match raw.kind.get() {
            1 => EntryKind::Record,
            2 => EntryKind::Link,
            3 => EntryKind::Closed,
            _ => return None,
        };
        (raw.crc.get() == crc_but_last(raw.as_bytes())).then_some(Self {
            generation: raw.generation.get(),
            kind,
            before_crc: raw.before_crc.get(),
            payload: raw.payload.get(),
            txid: raw.txid.get(),
            follows: raw.follows.get(),
            time_ms: raw.time.get(),
            synced: Position { segment: raw.synced_segment.get(), offset: raw.synced_offset.get() },
            payload_crc: raw.payload_crc.get(),
            crc: raw.crc.get(),
        })
    }

    /// Bytes of the whole entry with what fills its last block; `None` where no disk could hold it.
    pub(super) fn len(&self) -> Option<u64> {
        let bytes = self.payload.checked_add(ENTRY_HEADER as u64)?;
        blocks_of(bytes).checked_mul(BLOCK_LEN)
    }
}

/// How many blocks so many bytes take.
pub(super) fn blocks_of(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK_LEN)
}

/// The checksum of a structure that ends with it.
fn crc_but_last(bytes: &[u8]) -> u32 {
    crc32c::crc32c(&bytes[..bytes.len() - size_of::<U32>()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            store: 1,
            number: 2,
            generation: 3,
            epoch: 4,
            time_ms: 5,
            before: Position { segment: 6, offset: 7 },
            synced: Position { segment: 13, offset: 14 },
            before_crc: 8,
            carried: 9,
            follows: 10,
            base: MetaBytes([11; 64]),
            contains: 12,
        }
    }

    #[test]
    fn a_header_comes_back_and_no_changed_byte_is_passed_over() {
        let block = header().encode();
        assert_eq!((block.len(), Header::decode(&block)), (BLOCK, Decoded::Header(header())));
        for at in 0..size_of::<RawHeader>() {
            let mut changed = block.clone();
            changed[at] ^= 0x40;
            assert!(!matches!(Header::decode(&changed), Decoded::Header(_)), "byte {at}");
            assert_eq!(Header::decode(&changed[..at]), Decoded::None);
        }
    }

    #[test]
    fn a_later_version_is_told_from_one_that_is_damaged() {
        let mut damaged = header().encode();
        damaged[8] ^= 0x40;
        assert_eq!(Header::decode(&damaged), Decoded::None, "all else is as this version has it");
        // Where its checksum is, if it has one, nobody knows.
        let mut later = damaged;
        later[16..].fill(7);
        assert_eq!(Header::decode(&later), Decoded::Version(65));
    }

    #[test]
    fn an_entrys_header_comes_back_and_no_changed_byte_is_passed_over() {
        let mut entry = EntryHeader {
            generation: 1,
            kind: EntryKind::Link,
            before_crc: 2,
            payload: 3,
            txid: 4,
            follows: 5,
            time_ms: 6,
            synced: Position { segment: 7, offset: 8 },
            payload_crc: 9,
            crc: 0,
        };
        let bytes = entry.seal();
        assert_eq!(EntryHeader::decode(&bytes, 1), Some(entry));
        assert_eq!(EntryHeader::decode(&bytes, 2), None);
        for at in 0..bytes.len() {
            let mut changed = bytes;
            changed[at] ^= 0x40;
            assert_eq!(EntryHeader::decode_any(&changed), None, "byte {at}");
        }
    }
}
