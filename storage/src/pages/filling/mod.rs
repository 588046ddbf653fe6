//! The memory of patches as the writer has it, which alone fills it.
//!
//! The slabs that are in use stand in a row. Patches are added at its end; at its begin the slabs are given back, once no
//! leaf refers to what is in them any more: it was written to a page, or moved on to the row's end.

mod coming;
mod due;
mod moving;

use std::collections::{HashSet, VecDeque};
use std::ops::Range;
use std::sync::atomic::Ordering;

use fnv::FnvBuildHasher;
use zerocopy::FromBytes as _;

use super::Table;
use super::recents::{AT, Entries, PAGE_SHIFT, PAGES, PAST, live};
use crate::base::shared::Arc;
use crate::disk::{LONGEST_SLAB, MOST_SLABS, Slab, UNIT, place};
use crate::format::{PatchHeader, Pgid};
use coming::Coming;
use due::Due;
pub(crate) use due::{Oldest, SLABS_TOGETHER};

/// Slabs that a memory is made of; and bytes of each at least, as long as there are four.
const SLABS: usize = 16;
const SHORT_SLAB: usize = 4096;

/// The memory as the writer has it.
#[derive(Debug)]
pub(crate) struct Filling {
    /// Bytes of each slab, and how many of them are in use at most. As many again may be had by readers of earlier states.
    each: usize,
    most: usize,
    /// All slabs, by their slots, also those that only readers have.
    slabs: Vec<Option<Arc<Slab>>>,
    /// What the slabs in use are read with.
    table: Option<Arc<Table>>,
    /// The entries of the table before it, and those of the one after it.
    former: Option<Entries>,
    coming: Option<Coming>,
    row: VecDeque<Part>,
    /// Entries of the table that are taken.
    entries: usize,
    /// Pages whose patches are not of the past.
    live: u64,
    /// The branches above pages that were patched: these are written, too.
    above: HashSet<Pgid, FnvBuildHasher>,
    /// When a slab was last looked for, readers of earlier states had all that may be.
    is_kept: bool,
    due: Due,
}

/// A slab in use.
#[derive(Debug)]
struct Part {
    slot: u8,
    /// Bytes that are taken.
    filled: usize,
    /// How many patches were written to it.
    patches: u64,
    /// Pages that have nothing in an older slab.
    pages: u64,
}

/// Whose patch it is to make room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    /// A change of a page that has patches, or none yet.
    Change { is_first: bool },
    /// One that is moved, maybe to another page: the last slab is for these alone.
    Moving { is_first: bool },
}

impl For {
    fn is_first(self) -> bool {
        matches!(self, Self::Change { is_first: true } | Self::Moving { is_first: true })
    }
}

/// How one patch is taken back: the newest one that the page had before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    page: Pgid,
    newest: Option<u32>,
}

impl Filling {
    /// One of so many bytes, of which none are taken before they are needed.
    pub(crate) fn new(bytes: usize) -> Self {
        let each = (bytes / SLABS).max(SHORT_SLAB.min(bytes / 4)).min(LONGEST_SLAB).next_multiple_of(UNIT);
        let (slabs, row) = (Vec::new(), VecDeque::new());
        let mut new = Self {
            each,
            most: 0,
            slabs,
            table: None,
            former: None,
            coming: None,
            row,
            entries: 0,
            live: 0,
            above: HashSet::default(),
            is_kept: false,
            due: Due::default(),
        };
        new.allow(bytes);
        new
    }

    /// From now on there may be so many bytes, in slabs of the same length.
    pub(crate) fn allow(&mut self, bytes: usize) {
        self.most = (bytes / self.each).clamp(4, MOST_SLABS / 2);
    }

    /// What the patches are read with, as far as there are any.
    pub(crate) fn table(&self) -> Option<&Arc<Table>> {
        self.table.as_ref()
    }

    /// Bytes of patches, also of those that only readers of earlier states see.
    pub(crate) fn used(&self) -> u64 {
        self.row.iter().map(|part| (part.filled - UNIT) as u64).sum()
    }

    /// Bytes of all slabs that there are.
    pub(crate) fn allocated(&self) -> u64 {
        (self.slabs.iter().flatten().count() * self.each) as u64
    }

    /// Whether there is no slab to go on in because readers of earlier states have them.
    pub(crate) const fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// How many pages of the newest state have patches.
    pub(crate) fn live(&self) -> u64 {
        self.live
    }

    /// Bytes that are left for changes.
    fn left(&self) -> usize {
        let free = self.row.iter().take_while(|part| part.pages == 0).count();
        let others = (self.most - 1).saturating_sub(self.row.len() - free) * self.each;
        others + self.row.back().map_or(0, |last| self.each - last.filled)
    }

    /// From how many bytes on there is room for changes, and up to how many.
    pub(crate) fn room(&self) -> Range<u64> {
        let all = ((self.most - 1) * self.each) as u64;
        all.saturating_sub(self.left() as u64)..all
    }

    /// How full the last slab is that there is for changes, in thousandths; 0 where there are others.
    pub(crate) fn last_filled(&self) -> u32 {
        (1000 * self.each.saturating_sub(self.left()) / self.each) as u32
    }

    /// Gives the oldest slabs back to which no page of the newest state refers, all but so many.
    fn give_back(&mut self, but: usize) {
        while self.row.len() > but && self.row.front().is_some_and(|part| part.pages == 0) {
            self.row.pop_front();
        }
    }

    /// Looks for room for a patch of so many bytes of a page; `false` where there is none.
    pub(crate) fn reserve(&mut self, page: Pgid, bytes: usize, whose: For) -> bool {
        if page >= PAGES || UNIT + bytes > self.each {
            return false;
        }
        if self.row.back().is_none_or(|part| part.filled + bytes > self.each) {
            return self.go_on(whose);
        }
        let has_entries = self.table.as_ref().is_some_and(|table| 2 * (self.entries + 1) <= table.entries.len());
        has_entries || !whose.is_first() || self.renew_table().is_some()
    }

    /// Goes on in another slab.
    fn go_on(&mut self, whose: For) -> bool {
        self.give_back(0);
        let most = if matches!(whose, For::Moving { .. }) { self.most } else { self.most - 1 };
        let Some(slot) = (self.row.len() < most).then(|| self.free_slab()).flatten() else { return false };
        // No patch lies at 0.
        self.row.push_back(Part { slot, filled: UNIT, patches: 0, pages: 0 });
        let renewed = self.renew_table();
        if renewed.is_none() {
            self.row.pop_back();
        }
        renewed.is_some()
    }

    /// A slab that nobody has.
    fn free_slab(&mut self) -> Option<u8> {
        let is_free = |slab: &mut Option<Arc<Slab>>| slab.as_mut().is_some_and(|slab| Arc::get_mut(slab).is_some());
        let mut there = self.slabs.iter().flatten().count();
        let mut found = None;
        for (slot, slab) in self.slabs.iter_mut().enumerate() {
            // In a table that is not read any more it may still be, for a moment.
            if is_free(slab) && !self.row.iter().any(|part| usize::from(part.slot) == slot) {
                if found.is_some() && there > self.most {
                    (*slab, there) = (None, there - 1);
                } else {
                    found = found.or(Some(slot));
                }
            }
        }
        if found.is_none() && there < 2 * self.most {
            let slab = Some(Arc::new(Slab::new(self.each).ok()?));
            let empty = self.slabs.iter().position(Option::is_none);
            match empty {
                Some(empty) => self.slabs[empty] = slab,
                None => self.slabs.push(slab),
            }
            found = empty.or(Some(self.slabs.len() - 1));
        }
        self.is_kept = found.is_none();
        u8::try_from(found?).ok()
    }

    /// Where the next patch will lie, and the slot of that slab. For who has [reserved](Self::reserve) room.
    pub(crate) fn next(&self) -> Option<(u32, u8)> {
        self.row.back().map(|part| (place(part.slot, part.filled), part.slot))
    }

    /// Adds a patch of a page, which will lie at [`Self::next`], and for which there is room.
    pub(crate) fn push(&mut self, page: Pgid, above: Option<Pgid>, patch: &[u8]) -> Option<Before> {
        let newest = self.newest(page).map(|(at, _)| at);
        let at = self.append(patch, newest.is_none())?;
        if newest.is_none() {
            self.above.extend(above);
        }
        self.note(page, u64::from(at));
        self.fill_coming(patch.len());
        Some(Before { page, newest })
    }

    /// Writes a patch to the row's end, and says where; `is_first` of a page that is not counted yet.
    fn append(&mut self, patch: &[u8], is_first: bool) -> Option<u32> {
        let part = self.row.back_mut()?;
        let at = place(part.slot, part.filled);
        self.slabs[usize::from(part.slot)].as_ref()?.write(part.filled, patch);
        part.filled += patch.len();
        part.patches += 1;
        self.due.added += patch.len() as u64;
        if is_first {
            let oldest = PatchHeader::ref_from_prefix(patch).ok()?.0.oldest;
            self.part(oldest)?.pages += 1;
            self.live += 1;
        }
        Some(at)
    }

    /// The slab in use that has this slot.
    fn part(&mut self, slot: u8) -> Option<&mut Part> {
        self.row.iter_mut().find(|part| part.slot == slot)
    }

    /// What the table says of a page from now on.
    fn note(&mut self, page: Pgid, what: u64) {
        if let Some(table) = &self.table {
            let (place, entry) = table.entry(page);
            self.entries += usize::from(entry == 0);
            table.entries[place].store(page << PAGE_SHIFT | what, Ordering::Release);
        }
        if let Some(coming) = &mut self.coming {
            coming.note(page, what);
            self.coming.take_if(|coming| coming.is_full());
        }
    }

    /// A page whose newest patch lies at `at` has none any more.
    fn gone(&mut self, at: u32) {
        self.live -= 1;
        let oldest = self.table.as_ref().and_then(|table| table.header(at)).map(|header| header.oldest);
        if let Some(part) = oldest.and_then(|oldest| self.part(oldest)) {
            part.pages -= 1;
        }
    }

    /// Pages that it takes at most to write all leaves, and the branches above them, but for those on pages that were `freed`.
    pub(crate) fn pages_to_write(&self, freed: impl Iterator<Item = Pgid>) -> u64 {
        if self.live == 0 {
            return 0;
        }
        let gone = freed.filter(|&page| self.newest(page).is_some()).count() as u64;
        match self.live.saturating_sub(gone) {
            0 => 0,
            // Branches above branches are fewer than those, however long their keys are.
            leaves => leaves + 2 * self.above.len() as u64,
        }
    }

    /// What was on these pages is on others now; a branch that was split, on several.
    pub(crate) fn branches_moved(&mut self, branches: &[(Pgid, Pgid)]) {
        let new: Vec<Pgid> = branches.iter().filter(|(old, _)| self.above.contains(old)).map(|(_, new)| *new).collect();
        for (old, _) in branches {
            self.above.remove(old);
        }
        self.above.extend(new);
    }

    /// Takes back the newest patch of a page.
    pub(crate) fn take_back(&mut self, before: Before) {
        let Before { page, newest } = before;
        if newest.is_none()
            && let Some((at, _)) = self.newest(page)
        {
            self.gone(at);
        }
        // What is in the table stays there, or what was put behind it would not be found.
        self.note(page, newest.unwrap_or(0).into());
    }

    /// The newest state has the page no more: who reads an earlier one still sees its patches.
    pub(crate) fn leave(&mut self, page: Pgid) {
        // Also a branch may go, with all that is below it.
        self.above.remove(&page);
        if let Some((at, _)) = self.newest(page) {
            self.gone(at);
            self.note(page, PAST | u64::from(at));
        }
    }

    /// The newest state has nothing in memory: it begins anew.
    pub(crate) fn clear(&mut self) {
        self.row.clear();
        self.above.clear();
        (self.table, self.former, self.coming) = (None, None, None);
        (self.entries, self.live) = (0, 0);
    }

    /// Gives all slabs back that nobody has, for nothing may be written for a while.
    pub(crate) fn let_go(&mut self) {
        for (slot, slab) in self.slabs.iter_mut().enumerate() {
            let is_free = !self.row.iter().any(|part| usize::from(part.slot) == slot);
            slab.take_if(|slab| is_free && Arc::get_mut(slab).is_some());
        }
        (self.former, self.is_kept) = (None, false);
    }

    /// Whether so little is in use that it may stay, where no page has patches any more.
    pub(crate) fn is_little(&self) -> bool {
        self.row.len() < 2
    }

    /// Nobody reads what was on the page: it will be another one.
    pub(crate) fn forget(&mut self, page: Pgid) {
        let Some(table) = &self.table else { return };
        let (_, entry) = table.entry(page);
        if let Some(at) = live(entry) {
            self.gone(at);
        }
        if entry & (PAST | AT) != 0 {
            self.note(page, 0);
        }
    }

    /// The newest patch of a page: where it lies, and what it begins with.
    pub(crate) fn newest(&self, page: Pgid) -> Option<(u32, &PatchHeader)> {
        let table = self.table.as_ref().filter(|_| self.live > 0)?;
        let at = table.newest(page)?;
        table.header(at).map(|header| (at, header))
    }
}

impl Table {
    /// The pages that refer to something in these slabs, and where the newest patch of each lies.
    pub(crate) fn pages_of(&self, oldest: &Oldest) -> Vec<(Pgid, u32)> {
        let refers = |at: u32| self.header(at).is_some_and(|header| oldest.are_meant(header));
        self.all().filter(|&(_, at)| refers(at)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
mod tests;
