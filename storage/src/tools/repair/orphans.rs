//! Pages that nothing leads to: what they hold goes into buckets of their own, never among what is
//! known to be where it belongs.

use super::RepairPlace;
use super::image::Image;
use super::roots::{references, sound_page};
use super::walk::{Sink, Tally, Walk};
use crate::Result;
use crate::format::{Meta, Page, Pgid};
use crate::pages::PageSet;

/// Tells the pages that are neither used nor known to be free.
pub(super) struct Orphanage<'a> {
    image: &'a Image,
    limit: Pgid,
    /// What the freelist names; `None` where it is not known.
    free: Option<PageSet>,
}

impl<'a> Orphanage<'a> {
    pub(super) fn new(image: &'a Image, limit: Pgid, meta: Option<&Meta>) -> Self {
        let free = meta.and_then(|meta| {
            let ids = image.free_pages(meta)?;
            let free = PageSet::new(limit.min(image.pages));
            for id in ids.chain(image.freelist_run(meta)) {
                free.insert(id);
            }
            Some(free)
        });
        Self { image, limit, free }
    }

    /// Whether free pages can be told from lost ones.
    pub(super) fn knows_free_pages(&self) -> bool {
        self.free.is_some()
    }

    /// How many pages there are with something in them that the walk has not used.
    pub(super) fn count(&self, walk: &Walk<'a>) -> u64 {
        self.ids().filter(|&id| self.page(walk, id).is_some()).count() as u64
    }

    /// Writes what they hold: a bucket for each tree of them, named after the page at its top.
    pub(super) fn write(&self, walk: &mut Walk<'a>, sink: &mut dyn Sink) -> Result<Tally> {
        let kept = std::mem::take(&mut walk.tally);
        let referenced = PageSet::new(self.limit.min(self.image.pages));
        for page in self.ids().filter_map(|id| self.page(walk, id)) {
            references(&page, |to| {
                referenced.insert(to);
            });
        }
        let mut sink = Quiet(sink);
        // A page that was freed may still lead to pages that were not.
        walk.only_unused = true;
        // First what nothing leads to; what is left then leads to itself, or was led to by what could not be followed.
        for only_tops in [true, false] {
            for id in self.ids() {
                if (only_tops && referenced.contains(id)) || self.page(walk, id).is_none() {
                    continue;
                }
                sink.enter(format!("page {id}").as_bytes(), 0)?;
                walk.bucket(id, false, &mut sink)?;
                sink.leave();
            }
        }
        Ok(std::mem::replace(&mut walk.tally, kept))
    }

    fn ids(&self) -> std::ops::Range<Pgid> {
        2..self.limit.min(self.image.pages)
    }

    fn page(&self, walk: &Walk<'a>, id: Pgid) -> Option<Page<'a>> {
        let is_free = self.free.as_ref().is_some_and(|free| free.contains(id));
        if is_free || walk.used.contains(id) { None } else { sound_page(self.image, id, self.limit) }
    }
}

/// Passes on what is found. What is not was lost before.
struct Quiet<'a>(&'a mut dyn Sink);

impl Sink for Quiet<'_> {
    fn enter(&mut self, name: &[u8], sequence: u64) -> Result<()> {
        self.0.enter(name, sequence)
    }

    fn leave(&mut self) {
        self.0.leave();
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(key, value)
    }

    fn lost(&mut self, _: &RepairPlace<'_>) {}

    fn doubtful(&mut self, _: &RepairPlace<'_>) {}

    fn walked(&mut self, pages: u64) {
        self.0.walked(pages);
    }
}
