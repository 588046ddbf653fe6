//! What a snapshot's pages look like to everything above: checked runs of the map.

use crate::disk::Map;
use crate::format::{ELEMENT, Meta, PAGE_HEADER, Page, PageHeader, Pgid};
use crate::freelist::Run;
use crate::{Error, Result};

/// The deepest tree that is followed. A bolt tree of 2^64 pages is 64 deep at worst; what is deeper
/// goes in circles.
pub(crate) const MAX_DEPTH: usize = 128;

/// Bytes of a page that a search is about to look at: the header, and the elements of a page of 4 KiB with entries of
/// some 50 bytes. Fetched at once, they cost one wait for memory instead of three.
const LOOKED_AT: usize = 1024;

/// Bytes that the processor fetches at a time.
const LINE: u64 = 64;

/// The pages below a snapshot's high-water mark.
#[derive(Clone, Copy)]
pub(crate) struct Pages<'a> {
    map: &'a Map,
    mark: Pgid,
    page_size: usize,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(map: &'a Map, meta: &Meta) -> Self {
        Self { map, mark: meta.mark, page_size: meta.page_size as usize }
    }

    pub(crate) fn mark(&self) -> Pgid {
        self.mark
    }

    pub(crate) fn page_size(&self) -> usize {
        self.page_size
    }

    /// The leaf or branch page `id`, with what it runs on over.
    pub(crate) fn page(&self, id: Pgid) -> Result<Page<'a>> {
        Page::parse(id, self.bytes(id)?.1)
    }

    /// The run that page `id` begins.
    pub(crate) fn run(&self, id: Pgid) -> Result<Run> {
        self.bytes(id).map(|(run, _)| run)
    }

    /// The run that page `id` begins, and all its bytes. The header's id has been compared with
    /// the page's place, and the run's end with the high-water mark.
    pub(crate) fn bytes(&self, id: Pgid) -> Result<(Run, &'a [u8])> {
        if id < 2 || id >= self.mark {
            return Err(Error::corrupt(id, format!("a reference leads outside of the pages 2..{}", self.mark)));
        }
        let offset = id * self.page_size as u64;
        let header = self.map.bytes(offset, PAGE_HEADER).and_then(PageHeader::read).ok_or_else(|| unmapped(id))?;
        if header.id != id {
            return Err(Error::corrupt(id, format!("its header says that it is page {}", header.id)));
        }
        let len = 1 + u64::from(header.overflow.get());
        if len > self.mark - id {
            let what = format!("it runs on over {} pages, past the high-water mark {}", len - 1, self.mark);
            return Err(Error::corrupt(id, what));
        }
        let elements = ELEMENT * usize::from(header.count.get());
        self.map.prefetch(offset + LINE, elements.min(LOOKED_AT));
        let size = usize::try_from(len * self.page_size as u64).map_err(|_| unmapped(id))?;
        let bytes = self.map.bytes(offset, size).ok_or_else(|| unmapped(id))?;
        Ok((Run { start: id, len }, bytes))
    }

    /// Page `id` will be read soon.
    pub(crate) fn prefetch(&self, id: Pgid) {
        self.map.prefetch(id.saturating_mul(self.page_size as u64), LOOKED_AT);
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

#[cold]
fn unmapped(id: Pgid) -> Error {
    Error::corrupt(id, "the page lies beyond the mapped part of the file")
}
