//! A broken file as it lies on the disk: locked, mapped, cut into pages. Nothing here decides which
//! of its pages belong to what, and nothing here can write.

use std::cell::Cell;
use std::convert::Infallible;
use std::path::Path;

use super::RepairOptions;
use crate::disk::{Advice, MapOptions};
use crate::disk::{Disk as _, FileDisk, Map, OsFolder};
use crate::format::{
    META_BYTES, Meta, MetaFields, Metas, NO_FREELIST, PAGE_HEADER, Page, PageHeader, PageKind, Pgid,
    ends_in_first_meta, freelist_ids, is_page_size, page_sizes,
};
use crate::journal::DamagedPage;
use crate::store::open_locked;
use crate::{Error, Options, Result};

/// How many pages are looked at to find out whether a page size is the file's.
const PAGES_TO_GUESS_BY: u64 = 1 << 16;

/// How many bytes may be looked at before their memory is given back.
const KEPT: u64 = 64 << 20;

pub(super) struct Image {
    map: Map,
    pub(super) page_size: u32,
    /// Pages that the file has, one that is cut among them.
    pub(super) pages: u64,
    /// The metas of pages 0 and 1, where they are whole.
    pub(super) metas: [Option<Meta>; 2],
    /// Bytes that were looked at since memory was last given back.
    looked_at: Cell<u64>,
    /// Holds the lock.
    _file: FileDisk,
}

impl Image {
    pub(super) fn open(path: &Path, options: &RepairOptions) -> Result<Self> {
        let map_options = MapOptions { advice: Advice::Normal, ..MapOptions::default() };
        let mut how = Options::new().read_only(true);
        how.timeout = options.timeout;
        let file = open_locked(&OsFolder { map: map_options }, path, &how)?;
        let len = file.len().map_err(Error::io("look at", Some(path)))?;
        if len < META_BYTES as u64 {
            let mut start = [0; META_BYTES];
            let read = file.read_at(&mut start, 0).map_err(Error::io("read", Some(path)))?;
            return Err(ends_in_first_meta(&start[..read]));
        }
        // The map ends with the file: what is cut off cannot be touched.
        let map = file.map(len as usize).map_err(Error::io("map", Some(path)))?;
        let page_size = match options.page_size {
            Some(size) if !is_page_size(size) => return Err(Error::InvalidPageSize { found: size.into() }),
            Some(size) => size,
            None => page_size_of(&map).ok_or(Error::NotABoltFile)?,
        };
        let Ok(metas) = Metas::of(page_size, read_of(&map));
        let metas = metas.valid();
        Ok(Self { page_size, pages: len.div_ceil(page_size.into()), metas, map, looked_at: Cell::new(0), _file: file })
    }

    /// Where one of the metas is whole: the other page. No bytes of it where the file has fewer.
    pub(super) fn damaged_page(&self) -> Option<(Meta, DamagedPage)> {
        let (left, page) = match self.metas {
            [Some(left), None] => (left, 1),
            [None, Some(left)] => (left, 0),
            _ => return None,
        };
        let bytes = self.map.bytes(page * u64::from(self.page_size), META_BYTES)?.first_chunk().copied()?;
        Some((left, DamagedPage { page, bytes }))
    }

    /// What a meta page says that is not whole; nothing of it can be relied on.
    pub(super) fn damaged_meta(&self, slot: Pgid) -> Option<MetaFields> {
        self.map.bytes(slot * u64::from(self.page_size), META_BYTES).and_then(MetaFields::read)
    }

    /// The leaf or branch page `id`, which must be below `limit`. Of a page that runs on past the
    /// end of the file, what is there.
    pub(super) fn page(&self, id: Pgid, limit: Pgid) -> Result<Page<'_>> {
        Page::parse(id, self.run(id, limit)?)
    }

    /// The bytes of the run that page `id` begins, as far as the file has them.
    fn run(&self, id: Pgid, limit: Pgid) -> Result<&[u8]> {
        if id < 2 || id >= limit {
            return Err(Error::corrupt(
                id,
                format!("there is no such page: they are 2 to {}", limit.saturating_sub(1)),
            ));
        }
        let header = self.header(id).ok_or_else(|| Error::corrupt(id, "the file ends before it"))?;
        if header.id != id {
            return Err(Error::corrupt(id, format!("its header says that it is page {}", header.id)));
        }
        let (start, left) = self.place(id);
        let len = ((1 + u64::from(header.overflow.get())) * u64::from(self.page_size)).min(left);
        self.forget_after(len);
        self.map.bytes(start, len as usize).ok_or_else(|| Error::corrupt(id, "the file ends before it"))
    }

    /// Every so often gives back the memory of what was looked at: a file of 10 GB needs no 10 GB.
    fn forget_after(&self, len: u64) {
        let looked_at = self.looked_at.get().saturating_add(len);
        self.looked_at.set(if looked_at < KEPT { looked_at } else { 0 });
        if looked_at >= KEPT {
            self.map.release();
        }
    }

    pub(super) fn header(&self, id: Pgid) -> Option<PageHeader> {
        let (start, _) = self.place(id);
        self.map.bytes(start, PAGE_HEADER).and_then(PageHeader::read)
    }

    /// Where page `id` begins, and how many bytes the file has from there on.
    fn place(&self, id: Pgid) -> (u64, u64) {
        let start = id.saturating_mul(self.page_size.into());
        (start, (self.map.len() as u64).saturating_sub(start))
    }

    /// The pages that a meta's freelist names; `None` where it is not stored or not to be read.
    pub(super) fn free_pages(&self, meta: &Meta) -> Option<impl Iterator<Item = Pgid> + '_> {
        if meta.freelist == NO_FREELIST {
            return None;
        }
        let bytes = self.run(meta.freelist, meta.mark.min(self.pages)).ok()?;
        freelist_ids(meta.freelist, bytes).ok()
    }

    /// Pages that the run of a freelist takes, in a list of its own page.
    pub(super) fn freelist_run(&self, meta: &Meta) -> std::ops::Range<Pgid> {
        let overflow = self.header(meta.freelist).map_or(0, |header| header.overflow.get());
        meta.freelist..meta.freelist.saturating_add(1 + u64::from(overflow)).min(self.pages)
    }
}

fn read_of(map: &Map) -> impl FnMut(u64) -> std::result::Result<Option<MetaFields>, Infallible> {
    |offset| Ok(map.bytes(offset, META_BYTES).and_then(MetaFields::read))
}

/// The page size that a meta names; where none is whole, the one at which most pages stand where
/// their headers say.
fn page_size_of(map: &Map) -> Option<u32> {
    let Ok(metas) = Metas::find(read_of(map));
    metas.map(|metas| metas.page_size()).or_else(|| {
        let in_place = page_sizes().map(|size| (pages_in_place(map, size.into()), size));
        in_place.max_by_key(|&(pages, _)| pages).filter(|&(pages, _)| pages > 0).map(|(_, size)| size)
    })
}

fn pages_in_place(map: &Map, page_size: u64) -> usize {
    let in_place = |id: Pgid| {
        let header = map.bytes(id * page_size, PAGE_HEADER).and_then(PageHeader::read);
        header.is_some_and(|header| header.id == id && PageKind::of(header.flags.get()).is_some())
    };
    let pages = map.len() as u64 / page_size;
    (2..pages.min(PAGES_TO_GUESS_BY)).filter(|&id| in_place(id)).count()
}
