//! Pages as they lie in the file, read with every bound checked.

use std::ops::Range;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{BUCKET_FLAG, Between, ELEMENT, PAGE_HEADER, PageKind, Patched, Pgid};
use crate::{Error, Result};

/// The first 16 bytes of every page.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct PageHeader {
    pub(crate) id: U64,
    pub(crate) flags: U16,
    pub(crate) count: U16,
    pub(crate) overflow: U32,
}

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct LeafElement {
    pub(crate) flags: U32,
    pub(crate) pos: U32,
    pub(crate) ksize: U32,
    pub(crate) vsize: U32,
}

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct BranchElement {
    pub(crate) pos: U32,
    pub(crate) ksize: U32,
    pub(crate) child: U64,
}

impl PageHeader {
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        Self::of(bytes).copied()
    }

    /// The header that `bytes` begin with.
    #[inline]
    pub(crate) fn of(bytes: &[u8]) -> Option<&Self> {
        Self::ref_from_prefix(bytes).ok().map(|(header, _)| header)
    }

    /// How many pages it says that it runs over.
    #[inline]
    pub(crate) fn pages(&self) -> u64 {
        1 + u64::from(self.overflow.get())
    }

    /// Bytes behind the header that a search is likely to look at: the elements; of a leaf, whose keys lie apart from
    /// one another, a part of these too. Fetched at once, they cost one wait for memory instead of three.
    #[inline]
    pub(crate) fn looked_at(&self) -> usize {
        let elements = ELEMENT * usize::from(self.count.get());
        if self.flags.get() == PageKind::Leaf as u16 { (3 * elements).min(2048) } else { elements.min(1024) }
    }
}

/// A page of the tree.
#[derive(Clone, Copy)]
pub(crate) enum Page<'a> {
    Leaf(LeafPage<'a>),
    Branch(BranchPage<'a>),
}

/// One entry of a leaf.
#[derive(Clone, Copy)]
pub(crate) struct LeafEntry<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) is_bucket: bool,
}

/// A page of the tree with elements of one kind.
#[derive(Clone, Copy)]
pub(crate) struct TreePage<'a, E> {
    /// Of an inline page: the page that its parent's leaf is on.
    id: Pgid,
    bytes: &'a [u8],
    elements: &'a [E],
    /// What memory has of it: only of leaves.
    pub(super) patch: Option<Patched<'a>>,
}

/// A leaf page, or the inline page of a bucket.
pub(crate) type LeafPage<'a> = TreePage<'a, LeafElement>;

/// A branch page. It has at least one element.
pub(crate) type BranchPage<'a> = TreePage<'a, BranchElement>;

/// What leaf and branch elements have in common.
pub(crate) trait Element: Copy {
    /// Where the key lies, counted from the element, and how long it is.
    fn key(&self) -> (U32, U32);
}

impl Element for LeafElement {
    #[inline]
    fn key(&self) -> (U32, U32) {
        (self.pos, self.ksize)
    }
}

impl Element for BranchElement {
    #[inline]
    fn key(&self) -> (U32, U32) {
        (self.pos, self.ksize)
    }
}

/// Where a search goes on below a branch.
#[derive(Clone, Copy)]
pub(crate) struct Subtree {
    /// The child's place.
    pub(crate) index: usize,
    pub(crate) page: Pgid,
    /// What is known of its keys.
    pub(crate) between: Between,
}

impl<'a> Page<'a> {
    /// The page in `bytes`, which are all of its run.
    pub(crate) fn parse(id: Pgid, bytes: &'a [u8]) -> Result<Self> {
        let header = PageHeader::of(bytes).ok_or_else(|| cut(id))?;
        Self::parse_with_count(id, bytes, header.count.get().into())
    }

    /// The same, with as many elements as somebody says, whatever its header says.
    pub(crate) fn parse_with_count(id: Pgid, bytes: &'a [u8], count: usize) -> Result<Self> {
        let header = PageHeader::of(bytes).ok_or_else(|| cut(id))?;
        Self::sound(id, bytes, header, count).ok_or_else(|| match PageKind::of(header.flags.get()) {
            Some(PageKind::Branch) if count == 0 => Error::corrupt(id, "a branch page without elements"),
            Some(PageKind::Leaf | PageKind::Branch) => {
                Error::corrupt(id, format!("{count} elements do not fit its {} bytes", bytes.len()))
            }
            _ => {
                let what = format!("a leaf or branch page is expected, its flags are {:#06x}", header.flags);
                Error::corrupt(id, what)
            }
        })
    }

    /// The same; `None` where it is none, as [`Self::parse_with_count`] then says.
    #[inline]
    pub(crate) fn sound(id: Pgid, bytes: &'a [u8], header: &PageHeader, count: usize) -> Option<Self> {
        match PageKind::of(header.flags.get())? {
            PageKind::Leaf => Some(Self::Leaf(LeafPage { id, bytes, elements: elements(bytes, count)?, patch: None })),
            PageKind::Branch if count > 0 => {
                Some(Self::Branch(BranchPage { id, bytes, elements: elements(bytes, count)?, patch: None }))
            }
            _ => None,
        }
    }

    pub(crate) fn id(&self) -> Pgid {
        match self {
            Self::Leaf(leaf) => leaf.id,
            Self::Branch(branch) => branch.id,
        }
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Leaf(leaf) => leaf.bytes,
            Self::Branch(branch) => branch.bytes,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.len(),
            Self::Branch(branch) => branch.len(),
        }
    }

    pub(crate) fn key(&self, index: usize) -> Result<&'a [u8]> {
        match self {
            Self::Leaf(leaf) => leaf.key(index),
            Self::Branch(branch) => branch.key(index),
        }
    }

    /// `Ok(i)`: the key is at `i`, one of `within`; `Err(i)`: it would stand there.
    pub(crate) fn search_in(
        &self,
        within: Range<usize>,
        key: &[u8],
        between: Between,
    ) -> Result<std::result::Result<usize, usize>> {
        match self {
            Self::Leaf(leaf) => leaf.sound_search(within, key, between).ok_or_else(|| leaf.fault()),
            Self::Branch(branch) => branch.sound_search(within, key, between).ok_or_else(|| branch.fault()),
        }
    }

    /// Where `part`, a key or value of this page, begins in its bytes.
    pub(crate) fn offset_of(&self, part: &[u8]) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.offset_of(part),
            Self::Branch(branch) => branch.offset_of(part),
        }
    }
}

impl<'a, E: Element> TreePage<'a, E> {
    pub(crate) fn id(&self) -> Pgid {
        self.id
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.patch.map_or(self.elements.len(), Patched::len)
    }

    /// As on its page, whatever memory has of it.
    pub(super) fn elements(&self) -> &'a [E] {
        self.elements
    }

    /// Where `part`, a key or value of this page, begins in its bytes.
    pub(crate) fn offset_of(&self, part: &[u8]) -> usize {
        part.as_ptr().addr() - self.bytes.as_ptr().addr()
    }

    #[inline]
    fn element(&self, index: usize) -> Result<&'a E> {
        self.elements.get(index).ok_or_else(|| no_element(self.id, index))
    }

    /// The key of an element on the page.
    pub(super) fn written_key(&self, index: usize) -> Result<&'a [u8]> {
        let (pos, ksize) = self.element(index)?.key();
        data(self.id, self.bytes, index, pos, ksize)
    }
}

impl<'a> BranchPage<'a> {
    pub(crate) fn key(&self, index: usize) -> Result<&'a [u8]> {
        self.written_key(index)
    }
}

impl<'a> LeafPage<'a> {
    pub(crate) fn key(&self, index: usize) -> Result<&'a [u8]> {
        if self.patch.is_none() { self.written_key(index) } else { self.entry(index).map(|entry| entry.key) }
    }

    /// The page of an inline bucket whose parent's leaf is on page `holder`. Its size is bounded by the value it lies in; its
    /// own `id` and `overflow` mean nothing.
    pub(crate) fn parse_inline(holder: Pgid, bytes: &'a [u8]) -> Result<Self> {
        match Page::parse(holder, bytes) {
            Ok(Page::Leaf(leaf)) => Ok(leaf),
            Ok(Page::Branch(_)) => Err(Error::corrupt(holder, "the page of an inline bucket is a branch")),
            Err(Error::Corrupt { what, .. }) => Err(Error::corrupt(holder, format!("in an inline bucket: {what}"))),
            Err(other) => Err(other),
        }
    }

    pub(crate) fn entry(&self, index: usize) -> Result<LeafEntry<'a>> {
        if let Some(patch) = self.patch {
            return self.patched_entry(patch, index).ok_or_else(|| no_element(self.id, index));
        }
        let element = self.element(index)?;
        self.sound_entry(index).ok_or_else(|| {
            let len = u64::from(element.ksize.get()) + u64::from(element.vsize.get());
            outside(self.id, index, data_start(index, element.pos), len)
        })
    }

    /// How many of the entries are buckets: those on the page, for none is patched. Looks at no key and no value.
    pub(crate) fn buckets(&self) -> usize {
        self.elements.iter().filter(|element| element.flags.get() & BUCKET_FLAG != 0).count()
    }

    /// The entry at `index`; `None` where there is none, or it is damaged. For loops that take few nanoseconds an entry.
    #[inline]
    pub(crate) fn sound_entry(&self, index: usize) -> Option<LeafEntry<'a>> {
        match self.patch {
            None => self.written_entry(index),
            Some(patch) => self.patched_entry(patch, index),
        }
    }

    /// The page with so many of its elements.
    pub(super) fn up_to(mut self, elements: usize) -> Self {
        self.elements = &self.elements[..elements.min(self.elements.len())];
        self
    }

    /// The element at `index`, as it is on the page.
    #[inline]
    pub(crate) fn written_entry(&self, index: usize) -> Option<LeafEntry<'a>> {
        let element = self.elements.get(index)?;
        let (ksize, vsize) = (element.ksize.get() as usize, element.vsize.get() as usize);
        let start = usize::try_from(data_start(index, element.pos)).ok()?;
        let both = self.bytes.get(start..start.checked_add(ksize)?.checked_add(vsize)?)?;
        let (key, value) = both.split_at(ksize);
        Some(LeafEntry { key, value, is_bucket: element.flags.get() & BUCKET_FLAG != 0 })
    }

    /// `Ok(i)`: the key is at `i`; `Err(i)`: it would stand there. `between` is what the way here says of its keys.
    pub(crate) fn search(&self, key: &[u8], between: Between) -> Result<std::result::Result<usize, usize>> {
        self.sound_place(key, between).ok_or_else(|| self.fault())
    }

    #[inline]
    fn sound_place(&self, key: &[u8], between: Between) -> Option<std::result::Result<usize, usize>> {
        match self.patch {
            None => self.sound_search(0..self.elements.len(), key, between),
            Some(patch) => self.patched_search(patch, key, between),
        }
    }

    /// The entry of exactly this key.
    #[inline]
    pub(crate) fn find(&self, key: &[u8], between: Between) -> Result<Option<LeafEntry<'a>>> {
        match self.sound_place(key, between) {
            Some(Ok(index)) => self.sound_entry(index).map_or_else(|| self.entry(index), Ok).map(Some),
            Some(Err(_)) => Ok(None),
            None => Err(self.fault()),
        }
    }
}

impl BranchPage<'_> {
    pub(crate) fn child(&self, index: usize) -> Result<Pgid> {
        Ok(self.element(index)?.child.get())
    }

    /// The child in whose subtree `key` lies: the last whose key is not above it, or the first. `between` is what is
    /// known of this page's keys.
    pub(crate) fn search(&self, key: &[u8], between: Between) -> Result<Subtree> {
        self.sound_child(key, between).ok_or_else(|| self.fault())
    }

    /// The same; `None` where a key is damaged, as [`Self::fault`] then says.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for `Pages::sound_page`")]
    pub(crate) fn sound_child(&self, key: &[u8], between: Between) -> Option<Subtree> {
        let subtree = |index, between| Some(Subtree { index, page: self.elements.get(index)?.child.get(), between });
        let index = match self.sound_search(0..self.elements.len(), key, between)? {
            Ok(index) => index,
            // It is before all keys that the branch knows of.
            Err(0) => return subtree(0, Between::ANY),
            Err(index) => index - 1,
        };
        match (self.sound_key(index), self.sound_key(index + 1)) {
            (Some(low), Some(high)) => subtree(index, Between::new(low, high, key)),
            _ => subtree(index, Between::ANY),
        }
    }
}

#[inline]
fn elements<T: FromBytes + Immutable + KnownLayout + Unaligned>(bytes: &[u8], count: usize) -> Option<&[T]> {
    let (elements, _) = <[T]>::ref_from_prefix_with_elems(bytes.get(PAGE_HEADER..)?, count).ok()?;
    Some(elements)
}

/// Where the bytes of element `index` begin in its page: `pos` counts from the element itself.
#[inline]
pub(super) fn data_start(index: usize, pos: U32) -> u64 {
    (PAGE_HEADER + index * ELEMENT) as u64 + u64::from(pos.get())
}

/// The first `len` bytes of element `index`, if they lie on its page. For loops: see [`LeafPage::sound_entry`].
#[inline]
pub(super) fn sound_data(bytes: &[u8], index: usize, pos: U32, len: U32) -> Option<&[u8]> {
    let start = usize::try_from(data_start(index, pos)).ok()?;
    bytes.get(start..start.checked_add(len.get() as usize)?)
}

/// The same, or an error that says where they would lie.
fn data(id: Pgid, bytes: &[u8], index: usize, pos: U32, len: U32) -> Result<&[u8]> {
    sound_data(bytes, index, pos, len).ok_or_else(|| outside(id, index, data_start(index, pos), len.get().into()))
}

#[cold]
fn outside(id: Pgid, index: usize, start: u64, len: u64) -> Error {
    Error::corrupt(id, format!("element {index} points to {len} bytes at offset {start}, outside of its page"))
}

#[cold]
fn no_element(id: Pgid, index: usize) -> Error {
    Error::corrupt(id, format!("there is no element {index}"))
}

#[cold]
pub(super) fn cut(id: Pgid) -> Error {
    Error::corrupt(id, "the page is cut")
}
