//! The table that comes next is filled while patches are added, a little with each: whoever goes on in another slab has it
//! then, and does not wait for all entries of a large one, nor for memory that the system has yet to give.

use std::io;
use std::sync::atomic::Ordering;

use super::Filling;
use crate::base::shared::{Arc, AtomicU64, into_inner, replace, zeros};
use crate::format::Pgid;
use crate::pages::recents::{Entries, PAGE_SHIFT, Table, find, live};

/// A table is made for a quarter more pages than there are, and so many more.
const MORE_PAGES: usize = if cfg!(test) { 8 } else { 256 };

impl Filling {
    /// Begins another table, of the slabs in use and the pages that have patches.
    pub(super) fn renew_table(&mut self) -> Option<()> {
        let mut slabs = vec![None; self.slabs.len()];
        for part in &self.row {
            let slot = usize::from(part.slot);
            slabs[slot].clone_from(&self.slabs[slot]);
        }
        let live = self.live_pages();
        let coming = match self.coming.take().filter(|coming| coming.has_room_for(live)) {
            Some(coming) => coming,
            None => Coming::begin(live, self.former.take()).ok()?,
        };
        let (entries, taken) = coming.into_entries(self.table.as_deref());
        let table = Table::new(slabs, entries);
        debug_assert_eq!(table.all().count() as u64, self.live, "pages that have patches");
        debug_assert_eq!(self.live, self.row.iter().map(|part| part.pages).sum::<u64>(), "pages of slabs");
        self.entries = taken;
        self.former = self.table.replace(Arc::new(table)).map(|former| Arc::clone(&former.entries));
        Some(())
    }

    fn live_pages(&self) -> usize {
        usize::try_from(self.live).unwrap_or(usize::MAX)
    }

    /// Fills the table that comes next, so far that it will be there when the slab is full.
    pub(super) fn fill_coming(&mut self, bytes: usize) {
        let Some(filled) = self.row.back().map(|part| part.filled).filter(|filled| *filled >= self.each / 4) else {
            return;
        };
        let room = (self.each / 8 * 7).saturating_sub(filled).max(bytes);
        if let Some((coming, table)) = self.coming() {
            let part = (coming.left(table) * bytes).div_ceil(room);
            coming.fill(table, part);
        }
    }

    /// Fills the table that comes next, up to so many entries; whether it is done.
    pub(crate) fn prepare(&mut self, entries: usize) -> bool {
        let Some((coming, table)) = self.coming() else { return true };
        coming.fill(table, entries);
        coming.left(table) == 0
    }

    /// The table that comes next, where there is memory for it; and this one.
    fn coming(&mut self) -> Option<(&mut Coming, Option<&Table>)> {
        if self.coming.is_none() {
            self.coming = Coming::begin(self.live_pages(), self.former.take()).ok();
        }
        Some((self.coming.as_mut()?, self.table.as_deref()))
    }
}

/// The entries of the table that comes after this one: those of pages whose patches are not of the past.
#[derive(Debug)]
pub(super) struct Coming {
    entries: Vec<AtomicU64>,
    /// How many of them were emptied, where another table had them.
    emptied: usize,
    /// How many of this table's entries were looked at.
    seen: usize,
    /// How many are taken.
    taken: usize,
}

impl Coming {
    /// One for some more than so many pages; `former` are entries that nobody may need any more.
    pub(super) fn begin(pages: usize, former: Option<Entries>) -> io::Result<Self> {
        let len = (2 * (pages + pages / 4 + MORE_PAGES)).next_power_of_two();
        let former = former.and_then(into_inner).filter(|entries| entries.len() == len);
        let (entries, emptied) = match former {
            Some(entries) => (entries, 0),
            None => (zeros(len)?, len),
        };
        Ok(Self { entries, emptied, seen: 0, taken: 0 })
    }

    /// Whether it has room for so many pages and some more.
    pub(super) fn has_room_for(&self, pages: usize) -> bool {
        2 * (pages + pages / 8 + MORE_PAGES) <= self.entries.len()
    }

    /// How many entries are to be emptied or looked at until it is filled.
    pub(super) fn left(&self, table: Option<&Table>) -> usize {
        self.entries.len() - self.emptied + table.map_or(0, |table| table.entries.len() - self.seen)
    }

    /// Empties or looks at so many entries.
    pub(super) fn fill(&mut self, table: Option<&Table>, entries: usize) {
        let emptied = entries.min(self.entries.len() - self.emptied);
        for entry in &mut self.entries[self.emptied..self.emptied + emptied] {
            replace(entry, 0);
        }
        self.emptied += emptied;
        let Some(table) = table else { return };
        let end = table.entries.len().min(self.seen + entries - emptied);
        for entry in &table.entries[self.seen..end] {
            let entry = entry.load(Ordering::Relaxed);
            let page = entry >> PAGE_SHIFT;
            // What is there already was noted since, and is the same.
            if live(entry).is_some()
                && let (place, 0) = find(&self.entries, page)
            {
                self.put(place, entry);
            }
        }
        self.seen = end;
    }

    /// Notes what this table says of a page from now on.
    pub(super) fn note(&mut self, page: Pgid, what: u64) {
        if self.emptied < self.entries.len() {
            // It looks at all entries later.
            return;
        }
        let counts = live(what).is_some();
        let (place, entry) = find(&self.entries, page);
        if entry != 0 || counts {
            // What is of the past is for those who have this table.
            self.put(place, page << PAGE_SHIFT | if counts { what } else { 0 });
        }
    }

    fn put(&mut self, place: usize, entry: u64) {
        let before = replace(&mut self.entries[place], entry);
        self.taken += usize::from(before == 0);
    }

    /// Whether so many are taken that no other page may be noted.
    pub(super) fn is_full(&self) -> bool {
        2 * (self.taken + 1) > self.entries.len()
    }

    /// The entries, once all are there, and how many are taken.
    pub(super) fn into_entries(mut self, table: Option<&Table>) -> (Vec<AtomicU64>, usize) {
        self.fill(table, self.left(table));
        (self.entries, self.taken)
    }
}
