//! Writing pages: elements first, then all data in the same order, no gaps.

use zerocopy::IntoBytes as _;

use super::page::{BranchElement, LeafElement};
use super::{BUCKET_FLAG, ELEMENT, LeafEntry, MAX_ELEMENTS, PAGE_HEADER, PageHeader, PageKind, Pgid};

/// Writes a leaf page into the front of `page`, which is zeroed and large enough.
/// `id` is 0 for an inline page.
pub(crate) fn leaf_page<'a>(
    page: &mut [u8],
    id: Pgid,
    overflow: u32,
    count: usize,
    entries: impl Iterator<Item = LeafEntry<'a>>,
) {
    header(page, id, PageKind::Leaf, count, overflow);
    let mut at = PAGE_HEADER;
    let mut data = PAGE_HEADER + count * ELEMENT;
    for entry in entries {
        let element = LeafElement {
            flags: if entry.is_bucket { BUCKET_FLAG } else { 0 }.into(),
            pos: low32(data - at).into(),
            ksize: low32(entry.key.len()).into(),
            vsize: low32(entry.value.len()).into(),
        };
        page[at..at + ELEMENT].copy_from_slice(element.as_bytes());
        at += ELEMENT;
        data = put(page, data, entry.key);
        data = put(page, data, entry.value);
    }
}

/// Writes a branch page into the front of `page`, which is zeroed and large enough.
pub(crate) fn branch_page<'a>(
    page: &mut [u8],
    id: Pgid,
    overflow: u32,
    count: usize,
    children: impl Iterator<Item = (&'a [u8], Pgid)>,
) {
    header(page, id, PageKind::Branch, count, overflow);
    let mut at = PAGE_HEADER;
    let mut data = PAGE_HEADER + count * ELEMENT;
    for (key, child) in children {
        let element =
            BranchElement { pos: low32(data - at).into(), ksize: low32(key.len()).into(), child: child.into() };
        page[at..at + ELEMENT].copy_from_slice(element.as_bytes());
        at += ELEMENT;
        data = put(page, data, key);
    }
}

/// Writes a freelist page into the front of `page`, which is zeroed and large enough.
pub(crate) fn freelist_page(page: &mut [u8], id: Pgid, overflow: u32, ids: &[Pgid]) {
    let mut at = PAGE_HEADER;
    let count = if ids.len() > MAX_ELEMENTS {
        at = put(page, at, &(ids.len() as u64).to_le_bytes());
        MAX_ELEMENTS + 1
    } else {
        ids.len()
    };
    header(page, id, PageKind::Freelist, count, overflow);
    for id in ids {
        at = put(page, at, &id.to_le_bytes());
    }
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
