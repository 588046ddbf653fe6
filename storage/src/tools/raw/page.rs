//! A page of a file, whose elements are read as they are asked for.

use std::borrow::Cow;

use zerocopy::FromBytes as _;
use zerocopy::little_endian::U64;

use super::{RawFile, cut};
use crate::format::{
    BUCKET_FLAG, BranchElement, BucketHeader, ELEMENT, LeafElement, MetaFields, PAGE_HEADER, PageHeader, PageKind, Pgid,
};
use crate::tools::inspect::PageType;
use crate::{Error, MAX_VALUE_SIZE, Result};

/// Freelist ids that are read at once.
const IDS_AT_ONCE: u64 = 8192;

/// A page's first 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawHeader {
    /// Its number; not always that of the place where it stands.
    pub id: Pgid,
    /// What kind of page it is: 1 branch, 2 leaf, 4 meta, 16 freelist.
    pub flags: u16,
    /// Elements in it; of a freelist 0xFFFF where there are more than fit 16 bits.
    pub count: u16,
    /// Pages that it runs on over.
    pub overflow: u32,
}

impl RawHeader {
    /// What its flags say; never [`PageType::Free`], of which only the freelist knows.
    #[must_use]
    pub fn page_type(&self) -> PageType {
        PageKind::of(self.flags).map_or(PageType::Unknown, PageType::from)
    }
}

impl From<PageHeader> for RawHeader {
    fn from(header: PageHeader) -> Self {
        Self {
            id: header.id.get(),
            flags: header.flags.get(),
            count: header.count.get(),
            overflow: header.overflow.get(),
        }
    }
}

/// A page of a [`RawFile`], whose elements are read as they are asked for.
#[derive(Debug)]
pub struct RawPage<'file> {
    pub(super) file: &'file RawFile,
    pub(super) header: RawHeader,
    /// Where it begins in the file.
    pub(super) start: u64,
    /// Bytes of its run.
    pub(super) len: u64,
    /// The first of them: all elements, and most often everything.
    pub(super) head: Vec<u8>,
}

/// An element of a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawLeafElement<'page> {
    /// 1 where the value is a bucket.
    pub flags: u32,
    /// Its key.
    pub key: Cow<'page, [u8]>,
    /// Its value; a bucket's begins with root page and sequence.
    pub value: Cow<'page, [u8]>,
}

/// An element of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawBranchElement<'page> {
    /// The lowest key in the child, when it was written.
    pub key: Cow<'page, [u8]>,
    /// The child's page.
    pub child: Pgid,
}

/// Where an element's key and value lie: `len` bytes from offset `at` of its page.
pub(crate) struct Slot {
    pub(crate) at: u64,
    pub(crate) len: u64,
    pub(crate) element: Element,
}

/// An element as it stands in its page.
#[derive(Clone, Copy)]
pub(crate) enum Element {
    Leaf(LeafElement),
    Branch(BranchElement),
}

impl Element {
    /// Whether its value is a bucket.
    pub(in crate::tools) fn is_bucket(self) -> bool {
        matches!(self, Self::Leaf(element) if element.flags.get() & BUCKET_FLAG != 0)
    }

    /// Bytes of its key.
    pub(in crate::tools) fn key_len(self) -> u64 {
        match self {
            Self::Leaf(element) => element.ksize.into(),
            Self::Branch(element) => element.ksize.into(),
        }
    }

    /// Its bytes, with key and value so many bytes behind its own first.
    pub(crate) fn with_pos(self, pos: u32) -> [u8; ELEMENT] {
        match self {
            Self::Leaf(element) => zerocopy::transmute!(LeafElement { pos: pos.into(), ..element }),
            Self::Branch(element) => zerocopy::transmute!(BranchElement { pos: pos.into(), ..element }),
        }
    }
}

impl RawLeafElement<'_> {
    /// Whether the value is a bucket.
    #[must_use]
    pub fn is_bucket(&self) -> bool {
        self.flags & BUCKET_FLAG != 0
    }

    /// A bucket's root page (0: it lies inline, right here) and sequence; `None` where the value is
    /// no bucket, or too short for one.
    #[must_use]
    pub fn bucket(&self) -> Option<(Pgid, u64)> {
        let (header, _) = BucketHeader::read_from_prefix(&self.value).ok().filter(|_| self.is_bucket())?;
        Some((header.root.get(), header.sequence.get()))
    }
}

impl RawPage<'_> {
    /// Its header.
    #[must_use]
    pub fn header(&self) -> RawHeader {
        self.header
    }

    /// Bytes of all the pages that it spans.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a page has at least its header")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The meta in it, if it is one.
    #[must_use]
    pub fn meta(&self) -> Option<MetaFields> {
        MetaFields::read(&self.head).filter(|_| self.header.page_type() == PageType::Meta)
    }

    /// Element `index` of a leaf, counted from 0. Keeps no more in memory than its key and value.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the page is no leaf or has no such element, or where the element
    /// points outside of it; [`Error::Io`].
    pub fn leaf_element(&self, index: u16) -> Result<RawLeafElement<'_>> {
        let (at, bytes) = self.element(index, PageType::Leaf)?;
        let element = LeafElement::read_from_bytes(bytes).map_err(|_| self.no_element(index))?;
        let (start, key_len) = (at + u64::from(element.pos), element.ksize.get());
        let key = self.data(index, start, key_len)?;
        let value = self.data(index, start + u64::from(key_len), element.vsize.get())?;
        Ok(RawLeafElement { flags: element.flags.get(), key, value })
    }

    /// Element `index` of a branch, counted from 0.
    ///
    /// # Errors
    /// As [`Self::leaf_element`].
    pub fn branch_element(&self, index: u16) -> Result<RawBranchElement<'_>> {
        let (at, bytes) = self.element(index, PageType::Branch)?;
        let element = BranchElement::read_from_bytes(bytes).map_err(|_| self.no_element(index))?;
        let key = self.data(index, at + u64::from(element.pos), element.ksize.get())?;
        Ok(RawBranchElement { key, child: element.child.get() })
    }

    /// How many ids a freelist page lists, and these ids in the order in which they stand there.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the page is no freelist, or claims more ids than fit; [`Error::Io`].
    /// Reading the ids can fail likewise.
    pub fn freelist(&self) -> Result<(u64, impl Iterator<Item = Result<Pgid>>)> {
        const ID: u64 = size_of::<U64>() as u64;
        self.expect(PageType::Freelist)?;
        let mut at = PAGE_HEADER as u64;
        let mut count = u64::from(self.header.count);
        if self.header.count == 0xFFFF {
            let bytes = self.bytes(at, ID)?;
            count = U64::read_from_bytes(&bytes).map_err(|_| cut(self.header.id))?.get();
            at += ID;
        }
        let fits = (self.len - at) / ID;
        if count > fits {
            let what = format!("the freelist claims {count} ids, and {fits} fit");
            return Err(Error::corrupt(self.header.id, what));
        }
        let chunk = move |first: u64| {
            let ids = self.bytes(at + first * ID, (count - first).min(IDS_AT_ONCE) * ID);
            let (ids, failed) = match ids {
                Ok(bytes) => (bytes.chunks_exact(ID as usize).map(id_of).collect(), None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            ids.into_iter().map(Ok).chain(failed)
        };
        let firsts = (0..count).step_by(IDS_AT_ONCE as usize);
        Ok((count, firsts.flat_map(chunk)))
    }

    /// Where the key and value of element `index` lie, which are not read.
    pub(crate) fn slot(&self, index: usize) -> Result<Slot> {
        let index = u16::try_from(index).map_err(|_| self.no_element(u16::MAX))?;
        let (at, bytes) = self.element(index, self.header.page_type())?;
        let (element, pos, len) = if self.header.page_type() == PageType::Branch {
            let element = BranchElement::read_from_bytes(bytes).map_err(|_| self.no_element(index))?;
            (Element::Branch(element), element.pos, u64::from(element.ksize))
        } else {
            let element = LeafElement::read_from_bytes(bytes).map_err(|_| self.no_element(index))?;
            (Element::Leaf(element), element.pos, u64::from(element.ksize) + u64::from(element.vsize))
        };
        let at = at + u64::from(pos);
        if at + len > self.len {
            return Err(self.outside(index, at, len));
        }
        Ok(Slot { at, len, element })
    }

    /// Where element `index` stands, and its 16 bytes.
    fn element(&self, index: u16, page_type: PageType) -> Result<(u64, &[u8])> {
        self.expect(page_type)?;
        if index >= self.header.count {
            return Err(self.no_element(index));
        }
        let at = PAGE_HEADER + usize::from(index) * ELEMENT;
        let bytes = self.head.get(at..at + ELEMENT).ok_or_else(|| self.outside(index, at as u64, ELEMENT as u64))?;
        Ok((at as u64, bytes))
    }

    fn data(&self, index: u16, start: u64, len: u32) -> Result<Cow<'_, [u8]>> {
        if u64::from(len) > MAX_VALUE_SIZE as u64 || start + u64::from(len) > self.len {
            return Err(self.outside(index, start, len.into()));
        }
        self.bytes(start, len.into())
    }

    /// Bytes of the page; the caller has seen that it has them.
    pub(in crate::tools) fn bytes(&self, start: u64, len: u64) -> Result<Cow<'_, [u8]>> {
        if let Some(bytes) = self.head.get(start as usize..(start + len) as usize) {
            return Ok(Cow::Borrowed(bytes));
        }
        let mut bytes = vec![0; len as usize];
        let read = self.file.read_at(&mut bytes, self.start + start)?;
        if read < bytes.len() {
            return Err(cut(self.header.id));
        }
        Ok(Cow::Owned(bytes))
    }

    fn expect(&self, expected: PageType) -> Result<()> {
        let found = self.header.page_type();
        if found == expected {
            return Ok(());
        }
        Err(Error::corrupt(self.header.id, format!("it is no {expected} page: its type is {found}")))
    }

    fn no_element(&self, index: u16) -> Error {
        Error::corrupt(self.header.id, format!("it has {} elements, and none with index {index}", self.header.count))
    }

    fn outside(&self, index: u16, start: u64, len: u64) -> Error {
        let what = format!("element {index} points to {len} bytes at offset {start}, outside of its page");
        Error::corrupt(self.header.id, what)
    }
}

fn id_of(bytes: &[u8]) -> Pgid {
    U64::read_from_bytes(bytes).map_or(0, U64::get)
}
