//! Writing pages: elements first, then all data in the same order, no gaps.

use std::mem::offset_of;

use zerocopy::IntoBytes as _;
use zerocopy::little_endian::U64;

use super::packed::Packed;
use super::page::{BranchElement, LeafElement};
use super::{BUCKET_FLAG, ELEMENT, MAX_ELEMENTS, PAGE_HEADER, PageHeader, PageKind, Pgid};

/// Writes a leaf or branch page, entry by entry.
pub(crate) struct PageWriter<'p> {
    page: &'p mut [u8],
    /// Where the next element goes.
    at: usize,
    /// Where its data goes.
    data: usize,
}

impl<'p> PageWriter<'p> {
    /// A leaf of `count` entries in the front of `page`, which is large enough. `id` is 0 for an inline page.
    pub(crate) fn leaf(page: &'p mut [u8], id: Pgid, overflow: u32, count: usize) -> Self {
        Self::new(page, id, PageKind::Leaf, overflow, count)
    }

    /// A branch of `count` children, likewise.
    pub(crate) fn branch(page: &'p mut [u8], id: Pgid, overflow: u32, count: usize) -> Self {
        Self::new(page, id, PageKind::Branch, overflow, count)
    }

    fn new(page: &'p mut [u8], id: Pgid, kind: PageKind, overflow: u32, count: usize) -> Self {
        header(page, id, kind, count, overflow);
        Self { page, at: PAGE_HEADER, data: PAGE_HEADER + count * ELEMENT }
    }

    /// An entry of a leaf: `data` is its key and, from `key_len` on, its value.
    pub(crate) fn entry(&mut self, key_len: usize, data: &[u8], is_bucket: bool) {
        let element = LeafElement {
            flags: if is_bucket { BUCKET_FLAG } else { 0 }.into(),
            pos: low32(self.data - self.at).into(),
            ksize: low32(key_len).into(),
            vsize: low32(data.len() - key_len).into(),
        };
        self.put(element.as_bytes(), data);
    }

    /// A child of a branch.
    pub(crate) fn child(&mut self, key: &[u8], child: Pgid) {
        let pos = low32(self.data - self.at).into();
        let element = BranchElement { pos, ksize: low32(key.len()).into(), child: child.into() };
        self.put(element.as_bytes(), key);
    }

    /// Entries of another page of the same kind.
    pub(crate) fn packed(&mut self, part: &Packed<'_>) {
        // Elements and data each move by so many bytes; what an element says is how far its data is from it.
        let moved = low32(self.data - self.at).wrapping_sub(low32(part.data_start - part.start));
        let first = self.at;
        self.put(part.elements, part.data);
        let pos = if part.is_leaf { offset_of!(LeafElement, pos) } else { offset_of!(BranchElement, pos) };
        if moved != 0 {
            for element in self.page[first..self.at].chunks_exact_mut(ELEMENT) {
                let Some(pos) = element[pos..].first_chunk_mut() else { continue };
                *pos = u32::from_le_bytes(*pos).wrapping_add(moved).to_le_bytes();
            }
        }
    }

    /// All entries are written: the rest of the page is zeroed, whatever was there.
    pub(crate) fn finish(self) {
        self.page[self.data..].fill(0);
    }

    fn put(&mut self, elements: &[u8], data: &[u8]) {
        self.at = put(self.page, self.at, elements);
        self.data = put(self.page, self.data, data);
    }
}

/// Makes `page`, which is large enough, a freelist page.
pub(crate) fn freelist_page(page: &mut [u8], id: Pgid, overflow: u32, ids: &[U64]) {
    let mut at = PAGE_HEADER;
    let count = if ids.len() > MAX_ELEMENTS {
        at = put(page, at, &(ids.len() as u64).to_le_bytes());
        MAX_ELEMENTS + 1
    } else {
        ids.len()
    };
    header(page, id, PageKind::Freelist, count, overflow);
    at = put(page, at, ids.as_bytes());
    page[at..].fill(0);
}

fn header(page: &mut [u8], id: Pgid, kind: PageKind, count: usize, overflow: u32) {
    let header = PageHeader {
        id: id.into(),
        flags: (kind as u16).into(),
        count: u16::try_from(count).expect("a node is split before it passes 65,534 elements").into(),
        overflow: overflow.into(),
    };
    page[..PAGE_HEADER].copy_from_slice(header.as_bytes());
}

fn put(page: &mut [u8], at: usize, bytes: &[u8]) -> usize {
    let end = at + bytes.len();
    page[at..end].copy_from_slice(bytes);
    end
}

fn low32(size: usize) -> u32 {
    u32::try_from(size).expect("a node is split before an offset in it passes 2^32")
}
