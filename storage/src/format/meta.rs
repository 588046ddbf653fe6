//! The meta page: where the tree starts, and which transaction wrote it.

use std::hash::Hasher as _;

use fnv::FnvHasher;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{MIN_PAGE_SIZE, PAGE_HEADER, PageHeader, PageKind, Pgid, TxId, is_page_size};
use crate::{Error, Result};

const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
/// Bytes of a meta page that mean something: the page header and the meta after it.
pub(crate) const META_BYTES: usize = PAGE_HEADER + size_of::<RawMeta>();
/// The freelist's page id where the freelist is not stored.
pub(crate) const NO_FREELIST: Pgid = u64::MAX;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawMeta {
    magic: U32,
    version: U32,
    page_size: U32,
    flags: U32,
    root: U64,
    sequence: U64,
    freelist: U64,
    high_water_mark: U64,
    txid: U64,
    checksum: U64,
}

/// The fields of a meta as they stand in its page, whatever they say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetaFields {
    /// 0xED0CDAED in a bolt file.
    pub magic: u32,
    /// The format's version: 2.
    pub version: u32,
    /// Bytes of a page.
    pub page_size: u32,
    /// Not used by any version of the format, and 0; or whatever number boltkv has given a state that it kept with a journal
    /// (see [`Self::is_left_open`]).
    pub flags: u32,
    /// The page of the root bucket's root.
    pub root: Pgid,
    /// The root bucket's sequence.
    pub sequence: u64,
    /// The page of the freelist; 2^64 - 1 where it is not stored.
    pub freelist: Pgid,
    /// The first page id never used.
    pub high_water_mark: Pgid,
    /// The transaction that wrote it.
    pub txid: TxId,
    /// What the checksum is said to be.
    pub checksum: u64,
}

impl MetaFields {
    /// Reads the fields in the first [`META_BYTES`] of a page; `None` where there are fewer.
    pub(crate) fn read(page: &[u8]) -> Option<Self> {
        let (raw, _) = RawMeta::ref_from_prefix(page.get(PAGE_HEADER..)?).ok()?;
        Some(Self {
            magic: raw.magic.get(),
            version: raw.version.get(),
            page_size: raw.page_size.get(),
            flags: raw.flags.get(),
            root: raw.root.get(),
            sequence: raw.sequence.get(),
            freelist: raw.freelist.get(),
            high_water_mark: raw.high_water_mark.get(),
            txid: raw.txid.get(),
            checksum: raw.checksum.get(),
        })
    }

    /// What the checksum of these fields is: FNV-1a, 64 bits, of all that comes before it.
    #[must_use]
    pub fn computed_checksum(&self) -> u64 {
        let raw = self.raw();
        let bytes = raw.as_bytes();
        let mut hasher = FnvHasher::default();
        hasher.write(&bytes[..bytes.len() - size_of::<U64>()]);
        hasher.finish()
    }

    /// Whether the freelist is in the file, and not left to be found by reading all pages.
    #[must_use]
    pub fn stores_freelist(&self) -> bool {
        self.freelist != NO_FREELIST
    }

    /// Whether boltkv kept a journal of this state, which may hold more.
    #[must_use]
    pub fn is_left_open(&self) -> bool {
        self.flags & LEFT_OPEN != 0
    }

    /// Why a database cannot be opened by this meta; `None` where it is valid.
    #[must_use]
    pub fn fault(&self) -> Option<Error> {
        self.validated().err().map(Error::from)
    }

    pub(crate) fn has_magic(&self) -> bool {
        self.magic == MAGIC
    }

    /// The meta that these fields are, where they are one.
    pub(crate) fn validated(&self) -> std::result::Result<Meta, MetaFault> {
        if !self.has_magic() {
            return Err(MetaFault::Magic);
        }
        if self.version != VERSION {
            return Err(MetaFault::Version(self.version));
        }
        if self.checksum != self.computed_checksum() {
            return Err(MetaFault::Checksum);
        }
        if !is_page_size(self.page_size) {
            return Err(MetaFault::PageSize(self.page_size));
        }
        Ok(Meta {
            page_size: self.page_size,
            flags: self.flags,
            root: self.root,
            sequence: self.sequence,
            freelist: self.freelist,
            mark: self.high_water_mark,
            txid: self.txid,
        })
    }

    /// The bytes that stand in its page after the page's header.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.raw().as_bytes().to_vec()
    }

    /// Sets what has one right value, as bbolt's surgery does: the flags, too, which no other
    /// writer sets and nobody reads.
    pub(crate) fn make_valid(&mut self) {
        (self.magic, self.version, self.flags) = (MAGIC, VERSION, (PageKind::Meta as u16).into());
        self.checksum = self.computed_checksum();
    }

    fn raw(&self) -> RawMeta {
        RawMeta {
            magic: self.magic.into(),
            version: self.version.into(),
            page_size: self.page_size.into(),
            flags: self.flags.into(),
            root: self.root.into(),
            sequence: self.sequence.into(),
            freelist: self.freelist.into(),
            high_water_mark: self.high_water_mark.into(),
            txid: self.txid.into(),
            checksum: self.checksum.into(),
        }
    }
}

/// A valid meta, in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) page_size: u32,
    /// What bbolt keeps as it finds it, and never reads: which state of a journal this is ([`Journal::stamp`]), so that metas
    /// of states that differ in what is in their pages alone are not alike; and [`LEFT_OPEN`]. 0 where there was no journal.
    ///
    /// [`Journal::stamp`]: crate::journal::Journal::stamp
    pub(crate) flags: u32,
    pub(crate) root: Pgid,
    /// The root bucket's sequence: bbolt writes it and gives no way to change it.
    pub(crate) sequence: u64,
    /// [`NO_FREELIST`] where it is not stored.
    pub(crate) freelist: Pgid,
    /// The first page id never used.
    pub(crate) mark: Pgid,
    pub(crate) txid: TxId,
}

/// Why bytes are not a valid meta, in the order in which bbolt looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetaFault {
    Magic,
    Version(u32),
    Checksum,
    PageSize(u32),
}

impl From<MetaFault> for Error {
    fn from(fault: MetaFault) -> Self {
        match fault {
            MetaFault::Magic => Self::NotABoltFile,
            MetaFault::Version(found) => Self::VersionMismatch { found },
            MetaFault::Checksum => Self::ChecksumMismatch,
            MetaFault::PageSize(found) => Self::InvalidPageSize { found: found.into() },
        }
    }
}

/// Why a file cannot be opened that ends before its first meta does: it is one that was cut, or none.
pub(crate) fn ends_in_first_meta(file: &[u8]) -> Error {
    if file.is_empty() {
        return Error::EmptyFile;
    }
    let is_bolt_file = file.get(PAGE_HEADER..).is_some_and(|meta| meta.starts_with(&MAGIC.to_le_bytes()));
    if is_bolt_file {
        return Error::FileTooShort { len: file.len() as u64, needed: 4 * u64::from(MIN_PAGE_SIZE) };
    }
    Error::NotABoltFile
}

/// Of a meta's flags: the database had a journal that may hold more, and was not closed.
const LEFT_OPEN: u32 = 1;

impl Meta {
    /// The same state of a database of which a journal may hold more.
    pub(crate) fn left_open(self, stamp: u32) -> Self {
        Self { flags: stamp | LEFT_OPEN, ..self }
    }

    /// The same state of one that is all there is.
    pub(crate) fn closed(self) -> Self {
        Self { flags: self.flags & !LEFT_OPEN, ..self }
    }

    /// Whether a journal may hold more.
    pub(crate) fn is_left_open(&self) -> bool {
        self.flags & LEFT_OPEN != 0
    }

    /// Reads the meta in the first [`META_BYTES`] of a page.
    pub(crate) fn decode(page: &[u8]) -> std::result::Result<Self, MetaFault> {
        MetaFields::read(page).ok_or(MetaFault::Magic)?.validated()
    }

    /// The page this meta goes to: a torn write spoils only the older one.
    pub(crate) fn slot(&self) -> Pgid {
        self.txid % 2
    }

    /// Bytes of the file up to the last page that may be in use.
    pub(crate) fn used_len(&self) -> u64 {
        self.mark * u64::from(self.page_size)
    }

    /// A whole page that holds this meta, for its slot.
    pub(crate) fn encode(&self) -> Vec<u8> {
        self.encode_for(self.slot())
    }

    /// The same, over `page`.
    pub(crate) fn write(&self, page: &mut [u8]) {
        self.write_for(self.slot(), page);
    }

    /// A whole page that holds this meta, for page 0 or 1.
    pub(crate) fn encode_for(&self, slot: Pgid) -> Vec<u8> {
        let mut page = vec![0; self.page_size as usize];
        self.write_for(slot, &mut page);
        page
    }

    fn write_for(&self, slot: Pgid, page: &mut [u8]) {
        let mut fields = MetaFields {
            magic: MAGIC,
            version: VERSION,
            page_size: self.page_size,
            flags: self.flags,
            root: self.root,
            sequence: self.sequence,
            freelist: self.freelist,
            high_water_mark: self.mark,
            txid: self.txid,
            checksum: 0,
        };
        fields.checksum = fields.computed_checksum();
        let header =
            PageHeader { id: slot.into(), flags: U16::new(PageKind::Meta as u16), count: 0.into(), overflow: 0.into() };
        let (head, rest) = page.split_at_mut(PAGE_HEADER);
        let (body, rest) = rest.split_at_mut(META_BYTES - PAGE_HEADER);
        head.copy_from_slice(header.as_bytes());
        body.copy_from_slice(fields.raw().as_bytes());
        rest.fill(0);
    }

    /// Whether what it says can be true of a file of `len` bytes.
    pub(crate) fn validate(&self, len: u64) -> Result<()> {
        let at = self.slot();
        let needed = self.mark.checked_mul(self.page_size.into());
        let needed = needed
            .ok_or_else(|| Error::corrupt(at, format!("the high-water mark {} is beyond any file", self.mark)))?;
        if needed > len {
            return Err(Error::FileTooShort { len, needed });
        }
        if self.root < 2 || self.root >= self.mark {
            let what = format!("the root page {} is not below the high-water mark {}", self.root, self.mark);
            return Err(Error::corrupt(at, what));
        }
        if self.freelist != NO_FREELIST && (self.freelist < 2 || self.freelist >= self.mark) {
            let what = format!("the freelist page {} is not below the high-water mark {}", self.freelist, self.mark);
            return Err(Error::corrupt(at, what));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: Meta = Meta { page_size: 4096, flags: 7, root: 3, sequence: 0, freelist: 2, mark: 4, txid: 1 };

    #[test]
    fn a_meta_reads_back_and_fills_its_page() {
        let page = META.encode();
        assert_eq!(page.len(), 4096);
        assert_eq!(page[..16], [1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Meta::decode(&page), Ok(META));
    }

    #[test]
    fn every_flipped_bit_of_a_meta_is_noticed() {
        let page = META.encode();
        for bit in 0..(META_BYTES - PAGE_HEADER) * 8 {
            let mut damaged = page.clone();
            damaged[PAGE_HEADER + bit / 8] ^= 1 << (bit % 8);
            assert!(Meta::decode(&damaged).is_err(), "bit {bit}");
        }
        assert_eq!(Meta::decode(&page[..40]), Err(MetaFault::Magic));
    }

    #[test]
    fn a_meta_that_points_outside_the_file_is_refused() {
        assert!(META.validate(4 * 4096).is_ok());
        assert!(matches!(META.validate(4 * 4096 - 1), Err(Error::FileTooShort { needed: 16384, .. })));
        for wrong in [
            Meta { root: 4, ..META },
            Meta { root: 1, ..META },
            Meta { freelist: 4, ..META },
            Meta { mark: u64::MAX, ..META },
        ] {
            assert!(matches!(wrong.validate(4 * 4096), Err(Error::Corrupt { .. })), "{wrong:?}");
        }
    }
}
