//! Surgery on pages of the tree: copying one over another, taking elements out of one.

use super::{Change, Changes, Surgery, refused};
use crate::format::{ELEMENT, PAGE_HEADER, Pgid};
use crate::tools::inspect::PageType;
use crate::tools::raw::{RawFile, RawPage, Slot};
use crate::{Error, Result};

/// What [`Surgery::copy_page`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copied {
    /// Pages that were copied: one, and those that it runs on over.
    pub pages: u64,
    /// The file stores a freelist, which may be wrong now: see [`Surgery::abandon_freelist`].
    pub freelist_in_doubt: bool,
}

/// What [`Surgery::clear_page`] or [`Surgery::clear_page_elements`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cleared {
    /// Elements that were taken out.
    pub elements: u16,
    /// Elements that are left.
    pub left: u16,
    /// Whether the page is a branch. One without elements cannot be read by any bolt library: the
    /// element that leads to it has to be cleared too.
    pub is_branch: bool,
    /// Pages that nothing refers to any more are not in the freelist that the file stores: see
    /// [`Surgery::abandon_freelist`].
    pub freelist_in_doubt: bool,
}

impl Surgery {
    /// Writes page `from`, with all that it runs on over, over page `to` and those behind it.
    ///
    /// # Errors
    /// [`Error::Surgery`] where both are the same; [`Error::Corrupt`] where the file has not all of
    /// the pages, or `from` does not stand in its place; otherwise as every operation:
    /// [`Error::LockTimeout`], [`Error::NotABoltFile`], [`Error::Io`].
    pub fn copy_page(&self, from: Pgid, to: Pgid) -> Result<Copied> {
        self.operate(|file| copied(file, from, to))
    }

    /// Takes all elements out of a leaf or branch page.
    ///
    /// # Errors
    /// As [`Self::clear_page_elements`].
    pub fn clear_page(&self, page: Pgid) -> Result<Cleared> {
        self.operate(|file| cleared(file, page, 0, None))
    }

    /// Takes elements out of a leaf or branch page: those from index `from`, counted from 0, up to
    /// `to`, which is not among them; without `to`, all up to the last.
    ///
    /// bbolt reckons the size of what is left of a cut page as if its keys and values lay closer
    /// together than they do, and can so cut the last of them off; here the page keeps what it needs.
    ///
    /// # Errors
    /// [`Error::Surgery`] where the page is neither leaf nor branch, or has no such elements;
    /// [`Error::Corrupt`] where the file has not all of the page, or the page contradicts itself;
    /// otherwise as [`Self::copy_page`].
    pub fn clear_page_elements(&self, page: Pgid, from: usize, to: Option<usize>) -> Result<Cleared> {
        self.operate(|file| cleared(file, page, from, to))
    }
}

fn copied(file: &RawFile, from: Pgid, to: Pgid) -> Result<(Copied, Changes)> {
    if from == to {
        return Err(refused(format!("page {from} is to be copied over itself")));
    }
    let (page_size, len) = (u64::from(file.page_size()), file.page(from)?.len());
    let pages = len / page_size;
    if to >= file.pages() || pages > file.pages() - to {
        let what = format!("{pages} pages are to be copied here, and the file has only {}", file.pages());
        return Err(Error::corrupt(to, what));
    }
    let changes = vec![
        Change::Copy { from: from * page_size, len, to: to * page_size },
        Change::Write { at: to * page_size, bytes: to.to_le_bytes().into() },
    ];
    Ok((Copied { pages, freelist_in_doubt: stores_freelist(file) }, changes))
}

fn stores_freelist(file: &RawFile) -> bool {
    file.newest_meta().is_some_and(|meta| meta.stores_freelist())
}

fn cleared(file: &RawFile, id: Pgid, from: usize, to: Option<usize>) -> Result<(Cleared, Changes)> {
    let page = file.page(id)?;
    let header = page.header();
    let is_branch = match header.page_type() {
        PageType::Branch => true,
        PageType::Leaf => false,
        other => return Err(refused(format!("page {id} has no elements to clear: its type is {other}"))),
    };
    let count = usize::from(header.count);
    if count == 0 {
        return Ok((Cleared { elements: 0, left: 0, is_branch, freelist_in_doubt: false }, Vec::new()));
    }
    let to = to.unwrap_or(count);
    if from >= to || to > count {
        return Err(refused(format!("page {id} has {count} elements, and none from {from} to before {to}")));
    }
    let mut changes = Vec::new();
    let end = if to == count {
        kept(&page, from)?
    } else {
        packed(file, &page, (0..from).chain(to..count), count - (to - from), &mut changes)?
    };
    if end > page.len() {
        return Err(Error::corrupt(id, "its elements share bytes: together they are larger than the page"));
    }
    let overflow = u32::try_from(end.div_ceil(file.page_size().into()) - 1).map_err(|_| too_long(id))?;
    let left = u16::try_from(count - (to - from)).map_err(|_| too_long(id))?;
    // Count and overflow are the last fields of the header.
    let bytes = [&left.to_le_bytes()[..], &overflow.to_le_bytes()].concat();
    changes.push(Change::Write { at: offset(file, id) + PAGE_HEADER as u64 - bytes.len() as u64, bytes });
    let freelist_in_doubt = stores_freelist(file) && (is_branch || overflow != header.overflow);
    Ok((Cleared { elements: header.count - left, left, is_branch, freelist_in_doubt }, changes))
}

fn offset(file: &RawFile, id: Pgid) -> u64 {
    id * u64::from(file.page_size())
}

fn too_long(id: Pgid) -> Error {
    Error::corrupt(id, "it is longer than a page can be")
}

/// Up to where a page reaches, in bytes, of which only the first elements are kept, as they lie.
fn kept(page: &RawPage<'_>, count: usize) -> Result<u64> {
    let mut end = PAGE_HEADER as u64;
    for index in 0..count {
        let slot = page.slot(index)?;
        end = end.max(slot.at + slot.len);
    }
    Ok(end)
}

/// Moves elements together, and says up to where the page reaches then.
fn packed(
    file: &RawFile,
    page: &RawPage<'_>,
    indices: impl Iterator<Item = usize>,
    count: usize,
    changes: &mut Changes,
) -> Result<u64> {
    let start = offset(file, page.header().id);
    let mut elements = Vec::with_capacity(count * ELEMENT);
    let mut end = (PAGE_HEADER + count * ELEMENT) as u64;
    for index in indices {
        let Slot { at, len, element } = page.slot(index)?;
        let pos = end - (PAGE_HEADER + elements.len()) as u64;
        let pos = u32::try_from(pos).map_err(|_| too_long(page.header().id))?;
        elements.extend(element.with_pos(pos));
        push_copy(changes, start + at, len, start + end);
        end += len;
    }
    changes.push(Change::Write { at: start + PAGE_HEADER as u64, bytes: elements });
    Ok(end)
}

/// What lay side by side and still does is copied at once.
fn push_copy(changes: &mut Changes, from: u64, len: u64, to: u64) {
    if let Some(Change::Copy { from: before, len: before_len, to: before_to }) = changes.last_mut()
        && *before + *before_len == from
        && *before_to + *before_len == to
    {
        *before_len += len;
    } else {
        changes.push(Change::Copy { from, len, to });
    }
}
