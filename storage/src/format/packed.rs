//! Pages whose data stands in the order of their elements, behind them and without gaps: as every bolt library writes
//! them. Parts of such a page can be copied into another page as they are.

use std::ops::Range;

use zerocopy::FromBytes as _;
use zerocopy::little_endian::U32;

use super::page::{BranchElement, LeafElement};
use super::{BUCKET_FLAG, ELEMENT, PAGE_HEADER, Page};

/// Some elements of a page whose data is packed, and their data.
pub(crate) struct Packed<'a> {
    pub(super) is_leaf: bool,
    /// Where the elements begin in their page.
    pub(super) start: usize,
    pub(super) elements: &'a [u8],
    pub(super) data_start: usize,
    pub(super) data: &'a [u8],
}

impl<'a> Page<'a> {
    /// Where the data ends, if the page has elements and its data is packed.
    pub(crate) fn packed_end(&self) -> Option<usize> {
        let mut end = PAGE_HEADER + self.len() * ELEMENT;
        let mut at = PAGE_HEADER;
        // A branch has no values: its lengths are looked at in the same way.
        let mut next = |pos: U32, len: u64| {
            let fits = at + pos.get() as usize == end;
            at += ELEMENT;
            end += usize::try_from(len).unwrap_or(usize::MAX / 4);
            fits
        };
        let in_order = match self {
            Self::Leaf(leaf) => leaf
                .elements()
                .iter()
                .all(|element| next(element.pos, u64::from(element.ksize.get()) + u64::from(element.vsize.get()))),
            Self::Branch(branch) => {
                branch.elements().iter().all(|element| next(element.pos, element.ksize.get().into()))
            }
        };
        (in_order && self.len() > 0 && end <= self.bytes().len()).then_some(end)
    }

    /// The elements `part` of a page whose data is packed ([`Self::packed_end`]); `part` is not empty.
    pub(crate) fn packed_part(&self, part: Range<usize>) -> Packed<'a> {
        let bytes = self.bytes();
        let (start, end) = (PAGE_HEADER + part.start * ELEMENT, PAGE_HEADER + part.end * ELEMENT);
        let last = end - ELEMENT;
        let (is_leaf, data_start, data_end) = match self {
            Self::Leaf(leaf) => {
                let (first, end) = (leaf.elements()[part.start], leaf.elements()[part.end - 1]);
                let len = end.ksize.get() as usize + end.vsize.get() as usize;
                (true, start + first.pos.get() as usize, last + end.pos.get() as usize + len)
            }
            Self::Branch(branch) => {
                let (first, end) = (branch.elements()[part.start], branch.elements()[part.end - 1]);
                (false, start + first.pos.get() as usize, last + end.pos.get() as usize + end.ksize.get() as usize)
            }
        };
        Packed { is_leaf, start, elements: &bytes[start..end], data_start, data: &bytes[data_start..data_end] }
    }
}

impl<'a> Packed<'a> {
    /// Bytes that all of it takes on a page.
    pub(crate) fn size(&self) -> usize {
        self.elements.len() + self.data.len()
    }

    /// Bytes that each entry takes on a page.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = usize> + use<'a> {
        let is_leaf = self.is_leaf;
        self.elements.chunks_exact(ELEMENT).map(move |element| {
            let data = if is_leaf {
                LeafElement::ref_from_bytes(element).map_or(0, |e| e.ksize.get() as usize + e.vsize.get() as usize)
            } else {
                BranchElement::ref_from_bytes(element).map_or(0, |e| e.ksize.get() as usize)
            };
            ELEMENT + data
        })
    }

    /// Whether an entry is a bucket.
    pub(crate) fn has_bucket(&self) -> bool {
        let mut elements = self.elements.chunks_exact(ELEMENT);
        self.is_leaf && elements.any(|e| LeafElement::ref_from_bytes(e).is_ok_and(|e| e.flags.get() & BUCKET_FLAG != 0))
    }
}
