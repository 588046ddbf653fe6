//! Which pages are free, and which wait for which readers.
//!
//! The writer owns the list. A page that transaction `f` freed and that `a` had allocated may be used again when no open
//! reader `r` has `a <= r < f`; until then it waits. Nothing here knows what a page holds.
//!
//! What is in the file, or will be once its meta is written, is a reader that never looks away: a *keeper*. A state that is
//! written to the file beside the commits has copies of some leaves instead of these: the copies are as old as it, and what
//! they were copied from it does not keep.

mod pins;

use std::collections::{BTreeMap, HashMap};

use fnv::FnvBuildHasher;
use zerocopy::little_endian::U64;

use super::Spans;
use super::listing::Listing;
use crate::format::{Pgid, TxId};
use crate::{Error, Result};
pub(crate) use pins::Pins;
use pins::{Pin, Waiting};

/// A run of pages: `start..start + len`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) start: Pgid,
    pub(crate) len: u64,
}

/// Runs that the list of fresh ones keeps room for.
const KEPT: usize = 1024;
/// Runs that a write transaction sorts out, when it begins, of those that a reader has kept until it ended: about 1 ms.
/// (Fewer where the tests are interpreted.)
const STEP: usize = if cfg!(miri) { 16 } else { 4096 };

/// So many pages to write over are known at most: half a megabyte.
const MOST_DIRTY: usize = 1 << 16;

pub(super) fn freed_twice(page: Pgid) -> Error {
    let what = "the page is freed twice, or freed and in use: the stored freelist may be wrong \
                (`Options::ignore_freelist` leaves it aside, `boltkv file surgery freelist abandon` makes a copy without)";
    Error::corrupt(page, what)
}

/// The free pages of a database that is open for writing.
#[derive(Debug, Default)]
pub(crate) struct Freelist {
    free: Spans,
    /// What the last commit freed; sorted out when the next write transaction begins.
    fresh: Vec<Waiting>,
    /// Runs by who keeps them: looked at again only when that one is gone.
    pinned: BTreeMap<Pin, Vec<Waiting>>,
    /// Runs whose reader is gone, or of which one commit freed very many: they are sorted out in steps.
    left: Vec<Vec<Waiting>>,
    /// Who could reach pages when they were last sorted out.
    pins: Pins,
    /// Pages in `fresh`, `pinned` and `left`.
    waiting: u64,
    /// Who allocated a run, by its first page; kept only while an older reader is open, because
    /// only then does it matter.
    allocated: HashMap<Pgid, TxId, FnvBuildHasher>,
    listing: Listing,
    /// Single free pages to which something was written since the last sync, those that became free last at the end. Some were
    /// taken again otherwise.
    dirty: Vec<Pgid>,
    /// The last commit before that sync.
    synced: TxId,
    /// Where [`Self::take_next`] goes on.
    next: Pgid,
    /// From where on this commit, and the last one, have taken the highest pages.
    high: [Option<Pgid>; 2],
}

impl Freelist {
    /// The list of a file: ids below `mark`, which lie in ascending order as a rule.
    pub(crate) fn load(page: Pgid, ids: impl Iterator<Item = Pgid>, mark: Pgid) -> Result<Self> {
        let mut runs: Vec<Run> = Vec::new();
        for id in ids {
            if id < 2 || id >= mark {
                return Err(Error::corrupt(page, format!("the freelist holds page {id}, outside of 2..{mark}")));
            }
            match runs.last_mut() {
                Some(run) if run.start + run.len == id => run.len += 1,
                _ => runs.push(Run { start: id, len: 1 }),
            }
        }
        Ok(Self { free: Spans::of(runs)?, ..Self::default() })
    }

    /// Pages that may be used now.
    pub(crate) fn free_pages(&self) -> u64 {
        self.free.pages()
    }

    /// Pages that wait for readers, or for the next write transaction to begin.
    pub(crate) fn waiting_pages(&self) -> u64 {
        self.waiting
    }

    /// Moves to the free pages what nobody can reach. Of what somebody has kept who is gone now, it takes a step; the rest
    /// waits until it is needed, or for the steps that follow.
    pub(crate) fn release(&mut self, pins: Pins) -> Result<()> {
        if pins.is_empty() {
            self.allocated.clear();
        }
        self.pins = pins;
        let mut fresh = std::mem::take(&mut self.fresh);
        self.left.extend((fresh.len() > STEP).then(|| fresh.split_off(STEP)));
        while let Some(waiting) = fresh.pop() {
            if let Err(error) = self.sort_out(waiting) {
                // What contradicts itself is not used any more; what waits, waits on.
                self.fresh = fresh;
                return Err(error);
            }
        }
        fresh.shrink_to(KEPT);
        self.fresh = fresh;
        while let Some((&gone, _)) = self.pinned.iter().find(|(pin, _)| !self.pins.has(**pin)) {
            self.left.extend(self.pinned.remove(&gone));
        }
        self.sort_out_left(STEP)
    }

    /// Whether [`Self::release`] has left something for later.
    pub(crate) fn has_left_some(&self) -> bool {
        !self.left.is_empty()
    }

    /// Moves to the free pages at once what [`Self::release`] has left for later.
    pub(crate) fn release_rest(&mut self) -> Result<()> {
        self.sort_out_left(usize::MAX)
    }

    fn sort_out_left(&mut self, most: usize) -> Result<()> {
        for _ in 0..most {
            let Some(list) = self.left.last_mut() else { break };
            match list.pop() {
                Some(waiting) => self.sort_out(waiting)?,
                None => drop(self.left.pop()),
            }
        }
        Ok(())
    }

    fn sort_out(&mut self, waiting: Waiting) -> Result<()> {
        if let Some(pin) = waiting.pinned_by(&self.pins) {
            self.pinned.entry(pin).or_default().push(waiting);
            return Ok(());
        }
        self.waiting -= waiting.run.len;
        self.free.insert(waiting.run)?;
        if waiting.allocated_by > self.synced && waiting.run.len == 1 {
            self.note_dirty(waiting.run.start);
        }
        Ok(())
    }

    fn note_dirty(&mut self, page: Pgid) {
        if self.dirty.len() < MOST_DIRTY {
            self.dirty.push(page);
        }
    }

    /// A single page to which something was written since the last sync, if one is known, otherwise the [next](Self::take_next).
    /// What is written over before the system has brought it to the disk need never get there.
    pub(crate) fn take_dirty(&mut self) -> Option<Pgid> {
        let end = self.end_of_single();
        while let Some(page) = self.dirty.pop() {
            if page < end && self.free.take_page(page) {
                return Some(page);
            }
        }
        self.take_next(1)
    }

    /// Undoes [`Self::take_dirty`]; something may have been written to these pages.
    pub(crate) fn give_back_dirty(&mut self, pages: &[Pgid]) {
        for &start in pages {
            self.give_back(&[Run { start, len: 1 }]);
            self.note_dirty(start);
        }
    }

    /// All that was written by now, up to this commit, is on the disk.
    pub(crate) fn synced(&mut self, newest: TxId) {
        self.dirty.clear();
        self.synced = newest;
    }

    /// What `take` finds. Before the file grows for the want of it, all that can be free is.
    pub(crate) fn find(&mut self, take: impl Fn(&mut Self) -> Option<Pgid>) -> Result<Option<Pgid>> {
        loop {
            let found = take(self);
            if found.is_some() || self.left.is_empty() {
                return Ok(found);
            }
            self.sort_out_left(STEP)?;
        }
    }

    /// A single page, as the next one above the last that was taken so; the lowest run of several. So a round through
    /// the file takes what has gathered since the last one, much of it side by side. It leaves out what the
    /// [highest](Self::take_highest) are taken of, while there are others.
    pub(crate) fn take_next(&mut self, len: u64) -> Option<Pgid> {
        let end = self.end_of_single();
        let single = (len == 1).then(|| {
            let above = self.free.take_one_in(self.next.min(end)..end);
            above.or_else(|| self.free.take_one_in(0..end.min(self.next)))
        });
        let taken = single.flatten().or_else(|| self.free.take(len))?;
        self.next = taken + len;
        Some(taken)
    }

    /// Where pages begin that the highest are taken of.
    fn end_of_single(&self) -> Pgid {
        self.high.into_iter().flatten().min().unwrap_or(Pgid::MAX)
    }

    /// The end of the highest free run of `len` pages.
    pub(crate) fn take_highest(&mut self, len: u64) -> Option<Pgid> {
        let taken = self.free.take_highest(len)?;
        self.high[0] = Some(self.high[0].map_or(taken, |lowest| lowest.min(taken)));
        Some(taken)
    }

    /// Takes the free run that ends before `mark`, for the mark to be lowered over it.
    pub(crate) fn take_last(&mut self, mark: Pgid) -> Option<Run> {
        self.free.take_last(mark)
    }

    /// The same, to take pages that need not be near others.
    pub(crate) fn free_mut(&mut self) -> &mut Spans {
        &mut self.free
    }

    /// The pages that may be used now, as runs.
    pub(crate) fn free(&self) -> &Spans {
        &self.free
    }

    /// Undoes [`Self::take`] for a transaction that is rolled back.
    pub(crate) fn give_back(&mut self, taken: &[Run]) {
        for &run in taken {
            self.free.insert(run).expect("a run that was taken from the free pages does not overlap them");
        }
    }

    /// Frees a run that the committed transaction `freed_by` has left to be found. An error, and it is not freed, where
    /// it is free already.
    pub(crate) fn free_later(&mut self, run: Run, freed_by: TxId) -> Result<()> {
        if self.free.overlaps(run) {
            return Err(freed_twice(run.start));
        }
        let allocated_by = self.allocated.remove(&run.start).unwrap_or(0);
        self.waiting += run.len;
        self.fresh.push(Waiting { run, allocated_by, freed_by, copied_for: 0 });
        Ok(())
    }

    /// These pages are a keeper's alone, and free once it is none any more.
    pub(crate) fn only_of(&mut self, keeper: TxId, runs: impl Iterator<Item = Run>) {
        for run in runs {
            self.waiting += run.len;
            self.fresh.push(Waiting { run, allocated_by: keeper, freed_by: keeper + 1, copied_for: 0 });
        }
    }

    /// The newest commit has freed leaves, and has copies on other pages instead, which a keeper has, too, that was there
    /// before. `copies` are the leaves' pages, ascending, and theirs.
    pub(crate) fn copied_for(&mut self, keeper: TxId, copies: &[(Pgid, Pgid)]) {
        for waiting in &mut self.fresh {
            if copies.binary_search_by_key(&waiting.run.start, |&(old, _)| old).is_ok() {
                waiting.copied_for = keeper;
            }
        }
        self.allocated.extend(copies.iter().map(|&(_, new)| (new, keeper)));
    }

    /// Lists every page that is free once a commit is done that has taken and freed these runs, each ascending, for
    /// [`Self::listed`].
    pub(crate) fn list(&mut self, freed: &[Run], taken: &[Run]) -> Result<()> {
        let kept = self.pinned.values().chain(&self.left).flatten();
        let waiting = self.fresh.iter().chain(kept).map(|waiting| waiting.run);
        self.listing.list(&self.free, waiting, freed, taken)
    }

    /// The ids that were listed last, ascending.
    pub(crate) fn listed(&self) -> &[U64] {
        self.listing.next()
    }

    /// Takes over what the committed transaction `txid` allocated and freed; where it `stores` the list, that is what
    /// was [listed](Self::list).
    pub(crate) fn committed(&mut self, txid: TxId, allocated: &[Run], freed: &[Run], readers_open: bool, stores: bool) {
        self.listing.committed(stores);
        self.high = [None, self.high[0]];
        for &run in freed {
            let allocated_by = self.allocated.remove(&run.start).unwrap_or(0);
            self.waiting += run.len;
            self.fresh.push(Waiting { run, allocated_by, freed_by: txid, copied_for: 0 });
        }
        if readers_open {
            self.allocated.extend(allocated.iter().map(|run| (run.start, txid)));
        }
    }
}

#[cfg(test)]
mod tests;
