//! What a snapshot's pages look like to everything above: checked runs of the map.

use super::{Recents, Run};
use crate::disk::Map;
use crate::format::{BranchPage, Meta, PAGE_HEADER, Page, PageHeader, Pgid};
use crate::{Error, Result};

/// The deepest tree that is followed. A bolt tree of 2^64 pages is 64 deep at worst; what is deeper
/// goes in circles.
pub(crate) const MAX_DEPTH: usize = 128;

/// Bytes of a page that will be read soon: the header, and some elements or keys.
const SOON: usize = 1024;

/// How many pages are read ahead at most for each that is wanted.
const APART: u64 = 4;

/// Bytes that are read ahead at most: what a branch page of 4 KiB leads to is less.
const AHEAD: usize = 4 << 20;

/// Bytes of a page's run that are looked for in memory, or brought there: more than the replies of a server have.
const RUN: usize = 16 << 20;

/// Bytes that are asked of the disk at a time. Of what is asked for at once, the system may drop what exceeds its own
/// measure, which is this or more.
const PIECE: usize = 128 << 10;

/// Bytes that the processor fetches at a time.
const LINE: u64 = 64;

/// The pages below a snapshot's high-water mark.
#[derive(Clone, Copy)]
pub(crate) struct Pages<'a> {
    map: &'a Map,
    mark: Pgid,
    page_size: usize,
    /// What memory has of leaves, where there is any.
    recents: Option<&'a Recents>,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(map: &'a Map, meta: &Meta) -> Self {
        Self { map, mark: meta.mark, page_size: meta.page_size as usize, recents: None }
    }

    /// The same pages, with what memory has of them.
    pub(crate) fn with(self, recents: &'a Recents) -> Self {
        Self { recents: Some(recents).filter(|recents| !recents.is_empty()), ..self }
    }

    pub(crate) fn mark(&self) -> Pgid {
        self.mark
    }

    pub(crate) fn page_size(&self) -> usize {
        self.page_size
    }

    /// The leaf or branch page `id`, with what it runs on over.
    #[inline]
    pub(crate) fn page(&self, id: Pgid) -> Result<Page<'a>> {
        self.sound_page(id).ok_or_else(|| self.fault(id))
    }

    /// The same; `None` where there is none, as [`Self::fault`] then says.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "what it answers shall not go through memory: that took half as long again"
    )]
    pub(crate) fn sound_page(&self, id: Pgid) -> Option<Page<'a>> {
        let (header, bytes) = self.sound(id)?;
        let page = Page::sound(id, bytes, header, header.count.get().into())?;
        match (page, self.recents) {
            (Page::Leaf(leaf), Some(recents)) => {
                Some(Page::Leaf(recents.find(id).map_or(leaf, |patch| leaf.with(patch))))
            }
            (page, _) => Some(page),
        }
    }

    /// The leaf or branch page `id`, and its run.
    pub(crate) fn page_and_run(&self, id: Pgid) -> Result<(Page<'a>, Run)> {
        let page = self.page(id)?;
        Ok((page, Run { start: id, len: (page.bytes().len() / self.page_size) as u64 }))
    }

    /// The run that page `id` begins.
    pub(crate) fn run(&self, id: Pgid) -> Result<Run> {
        self.bytes(id).map(|(run, _)| run)
    }

    /// The run that page `id` begins, and all its bytes.
    pub(crate) fn bytes(&self, id: Pgid) -> Result<(Run, &'a [u8])> {
        let (header, bytes) = self.sound(id).ok_or_else(|| self.fault(id))?;
        Ok((Run { start: id, len: header.pages() }, bytes))
    }

    /// The header of page `id`, and all the bytes of its run. The header's id has been compared with the page's place,
    /// and the run's end with the high-water mark.
    #[inline]
    fn sound(&self, id: Pgid) -> Option<(&'a PageHeader, &'a [u8])> {
        let header = self.header(id)?;
        if header.id != id || header.pages() > self.mark - id {
            return None;
        }
        let offset = id * self.page_size as u64;
        self.map.prefetch(offset + LINE, header.looked_at());
        let size = usize::try_from(header.pages() * self.page_size as u64).ok()?;
        Some((header, self.map.bytes(offset, size)?))
    }

    #[inline]
    fn header(&self, id: Pgid) -> Option<&'a PageHeader> {
        if id < 2 || id >= self.mark {
            return None;
        }
        PageHeader::of(self.map.bytes(id * self.page_size as u64, PAGE_HEADER)?)
    }

    /// Why there is no leaf or branch page `id`.
    #[cold]
    pub(crate) fn fault(&self, id: Pgid) -> Error {
        if id < 2 || id >= self.mark {
            return Error::corrupt(id, format!("a reference leads outside of the pages 2..{}", self.mark));
        }
        match self.header(id) {
            Some(header) if header.id != id => {
                Error::corrupt(id, format!("its header says that it is page {}", header.id))
            }
            Some(header) if header.pages() > self.mark - id => {
                let (over, mark) = (header.overflow, self.mark);
                Error::corrupt(id, format!("it runs on over {over} pages, past the high-water mark {mark}"))
            }
            _ => {
                let fault = self.sound(id).and_then(|(_, bytes)| Page::parse(id, bytes).err());
                fault.unwrap_or_else(|| Error::corrupt(id, "the page lies beyond the mapped part of the file"))
            }
        }
    }

    /// Page `id` will be read soon, all of it.
    pub(crate) fn prefetch(&self, id: Pgid) {
        self.map.prefetch(id.saturating_mul(self.page_size as u64), SOON);
        if let Some(recents) = self.recents {
            recents.prefetch_added(id);
        }
    }

    /// The memory that pages are read with.
    pub(crate) fn recents(&self) -> Option<&'a Recents> {
        self.recents
    }

    /// Page `id` will be looked up in soon: its header is asked for, and where its patches are noted.
    pub(crate) fn prefetch_header(&self, id: Pgid) {
        self.map.prefetch(id.saturating_mul(self.page_size as u64), LINE as usize);
        if let Some(recents) = self.recents {
            recents.prefetch_entry(id);
        }
    }

    /// The branch page `id`; `None` where there is none. Of a leaf what a look-up reads first is asked for, of its page and
    /// of its newest patch.
    pub(crate) fn branch_or_prefetch(&self, id: Pgid) -> Option<BranchPage<'a>> {
        match (Self { recents: None, ..*self }.sound_page(id)?, self.recents) {
            (Page::Branch(branch), _) => return Some(branch),
            (Page::Leaf(_), Some(recents)) => recents.prefetch_newest(id),
            (Page::Leaf(_), None) => {}
        }
        None
    }

    /// The children of `branch` will be read one after the other. As the map is read at random otherwise (see
    /// [`Advice`](crate::Advice)), each would be waited for by itself: they are asked of the disk at once where they lie
    /// close together, as after a load, a compaction or a large commit; `false` where they do not.
    #[cold]
    pub(crate) fn read_ahead(&self, branch: BranchPage<'_>) -> bool {
        let children = || (0..branch.len()).filter_map(|index| branch.child(index).ok());
        let (Some(low), Some(high)) = (children().min(), children().max()) else { return false };
        let pages = (high - low).saturating_add(1);
        let bytes = usize::try_from(pages).unwrap_or(usize::MAX).saturating_mul(self.page_size);
        let close = pages <= APART * branch.len() as u64 && bytes <= AHEAD;
        if close {
            self.map.read_ahead(low.saturating_mul(self.page_size as u64), bytes);
        }
        close
    }

    /// The children of `branch` will be read in a while, wherever they lie.
    pub(crate) fn read_ahead_anywhere(&self, branch: BranchPage<'_>) {
        if !self.read_ahead(branch) {
            for child in (0..branch.len()).filter_map(|index| branch.child(index).ok()) {
                self.map.read_ahead(child.saturating_mul(self.page_size as u64), self.page_size);
            }
        }
    }

    /// Page `id`, of which nothing has been read, will be read in a while.
    pub(crate) fn read_page_ahead(&self, id: Pgid) {
        self.map.read_ahead(id.saturating_mul(self.page_size as u64), self.page_size);
    }

    /// Whether page `id` is in memory with what it runs on over. `true` of what is no page: to find that out takes no disk.
    pub(crate) fn is_resident(&self, id: Pgid) -> bool {
        let offset = id.saturating_mul(self.page_size as u64);
        if !self.map.is_resident(offset, self.page_size) {
            return false;
        }
        self.sound(id)
            .is_none_or(|(_, run)| run.len() == self.page_size || self.map.is_resident(offset, run.len().min(RUN)))
    }

    /// Waits until page `id` is in memory with what it runs on over.
    pub(crate) fn fault_in(&self, id: Pgid) {
        let Some((_, run)) = self.sound(id) else { return };
        let run = &run[..run.len().min(RUN)];
        if run.len() > self.page_size {
            let offset = id * self.page_size as u64;
            for piece in (0..run.len()).step_by(PIECE) {
                self.map.read_ahead(offset + piece as u64, PIECE.min(run.len() - piece));
            }
        }
        // Reading one byte brings in its page, and no system's pages are smaller than this.
        for byte in run.iter().step_by(4096) {
            std::hint::black_box(*byte);
        }
    }

    /// How far into the map `slice` lies, if it does.
    pub(crate) fn offset_of(&self, slice: &[u8]) -> Option<u64> {
        let offset = slice.as_ptr().addr().checked_sub(self.map.base_address())?;
        (offset + slice.len() <= self.map.len()).then_some(offset as u64)
    }

    /// The page that `slice` lies on; 0 where it is no part of the map.
    pub(crate) fn page_of(&self, slice: &[u8]) -> Pgid {
        self.offset_of(slice).map_or(0, |offset| offset / self.page_size as u64)
    }

    /// Bytes at an offset that [`Self::offset_of`] gave.
    pub(crate) fn at(&self, offset: u64, len: usize) -> &'a [u8] {
        self.map.bytes(offset, len).expect("the offset was taken of a slice of this map")
    }
}
