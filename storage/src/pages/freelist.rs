//! Which pages are free, and which wait for which readers.
//!
//! The writer owns the list. A page that transaction `f` freed and that `a` had allocated may be used again when no open
//! reader `r` has `a <= r < f`; until then it waits. Nothing here knows what a page holds.

use std::collections::{BTreeMap, HashMap};

use fnv::FnvBuildHasher;
use zerocopy::little_endian::U64;

use super::Spans;
use super::listing::Listing;
use crate::format::{Pgid, TxId};
use crate::{Error, Result};

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

pub(super) fn freed_twice(page: Pgid) -> Error {
    let what = "the page is freed twice, or freed and in use: the stored freelist may be wrong \
                (`Options::ignore_freelist` leaves it aside, `boltkv file surgery freelist abandon` makes a copy without)";
    Error::corrupt(page, what)
}

/// A run that waits: freed by `freed_by`, allocated by `allocated_by` (0: not known).
#[derive(Debug, Clone, Copy)]
struct Waiting {
    run: Run,
    allocated_by: TxId,
    freed_by: TxId,
}

impl Waiting {
    /// The newest of `readers` (ascending) that can still reach the run.
    fn pinned_by(&self, readers: &[TxId]) -> Option<TxId> {
        let older = readers.partition_point(|&reader| reader < self.freed_by);
        readers[..older].last().copied().filter(|&reader| reader >= self.allocated_by)
    }
}

/// The free pages of a database that is open for writing.
#[derive(Debug, Default)]
pub(crate) struct Freelist {
    free: Spans,
    /// What the last commit freed; sorted out when the next write transaction begins.
    fresh: Vec<Waiting>,
    /// Runs by the reader that keeps them: looked at again only when that reader is gone.
    pinned: BTreeMap<TxId, Vec<Waiting>>,
    /// Runs whose reader is gone, or of which one commit freed very many: they are sorted out in steps.
    left: Vec<Vec<Waiting>>,
    /// Who could reach pages when they were last sorted out.
    readers: Vec<TxId>,
    /// Pages in `fresh`, `pinned` and `left`.
    waiting: u64,
    /// Who allocated a run, by its first page; kept only while an older reader is open, because
    /// only then does it matter.
    allocated: HashMap<Pgid, TxId, FnvBuildHasher>,
    listing: Listing,
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

    /// Moves to the free pages what none of `readers` (ascending, without repetition) can reach. Of what a reader has kept
    /// that is gone now, it takes a step; the rest waits until it is needed, or for the steps that follow.
    pub(crate) fn release(&mut self, readers: &[TxId]) -> Result<()> {
        if readers.is_empty() {
            self.allocated.clear();
        }
        self.readers.clear();
        self.readers.extend_from_slice(readers);
        let mut fresh = std::mem::take(&mut self.fresh);
        self.left.extend((fresh.len() > STEP).then(|| fresh.split_off(STEP)));
        fresh.drain(..).try_for_each(|waiting| self.sort_out(waiting))?;
        fresh.shrink_to(KEPT);
        self.fresh = fresh;
        while let Some((&reader, _)) = self.pinned.iter().find(|(reader, _)| readers.binary_search(reader).is_err()) {
            self.left.extend(self.pinned.remove(&reader));
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
        if let Some(reader) = waiting.pinned_by(&self.readers) {
            self.pinned.entry(reader).or_default().push(waiting);
            return Ok(());
        }
        self.waiting -= waiting.run.len;
        self.free.insert(waiting.run)
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
        let end = self.high.into_iter().flatten().min().unwrap_or(Pgid::MAX);
        let single = (len == 1).then(|| {
            let above = self.free.take_one_in(self.next.min(end)..end);
            above.or_else(|| self.free.take_one_in(0..end.min(self.next)))
        });
        let taken = single.flatten().or_else(|| self.free.take(len))?;
        self.next = taken + len;
        Some(taken)
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
        self.fresh.push(Waiting { run, allocated_by, freed_by });
        Ok(())
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
            self.fresh.push(Waiting { run, allocated_by, freed_by: txid });
        }
        if readers_open {
            self.allocated.extend(allocated.iter().map(|run| (run.start, txid)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: Pgid, len: u64) -> Run {
        Run { start, len }
    }

    fn list(ids: &[Pgid]) -> Freelist {
        Freelist::load(2, ids.iter().copied(), 1000).unwrap()
    }

    #[test]
    fn the_lowest_run_that_fits_is_taken() {
        let mut free = list(&[3, 5, 6, 9, 10, 11, 12]);
        assert_eq!(free.free_mut().take(2), Some(5));
        assert_eq!(free.free_mut().take(3), Some(9));
        assert_eq!(free.free_mut().take(2), None);
        assert_eq!(free.free_mut().take(1), Some(3));
        assert_eq!(free.free_mut().take(1), Some(12));
        assert_eq!(free.free_pages(), 0);
        free.give_back(&[run(9, 3), run(3, 1)]);
        assert_eq!((free.free_pages(), free.free_mut().take(3)), (4, Some(9)));
    }

    #[test]
    fn single_pages_are_taken_in_rounds_below_what_the_highest_are_taken_of() {
        let mut free = list(&[3, 5, 6, 9, 20, 21, 22, 23]);
        assert_eq!(free.take_highest(2), Some(22));
        assert_eq!([1; 3].map(|len| free.take_next(len)), [3, 5, 6].map(Some));
        free.give_back(&[run(4, 1)]);
        assert_eq!([1; 3].map(|len| free.take_next(len)), [9, 20, 21].map(Some));
        free.give_back(&[run(20, 4)]);
        free.committed(1, &[], &[], false, false);
        assert_eq!([1; 3].map(|len| free.take_next(len)), [4, 20, 21].map(Some), "a new round, then what is above");
        assert_eq!((free.take_next(2), free.take_next(1)), (Some(22), None));
    }

    #[test]
    fn a_run_waits_for_every_reader_that_can_reach_it_and_for_no_other() {
        let mut free = Freelist::default();
        free.committed(5, &[run(20, 1)], &[], true, false);
        free.committed(7, &[], &[run(20, 1), run(30, 1)], true, false);
        // Reader 4 is older than page 20: it holds page 30 only, whose birth is not known.
        free.release(&[4]).unwrap();
        assert_eq!((free.free_mut().take(1), free.free_mut().take(1)), (Some(20), None));
        free.release(&[7]).unwrap();
        assert_eq!(free.free_mut().take(1), Some(30));
        assert_eq!(free.waiting_pages(), 0);
    }

    #[test]
    fn what_a_reader_has_kept_is_free_in_steps_or_when_it_is_needed() {
        let many = 3 * STEP as u64;
        let held = || {
            let mut free = Freelist::default();
            for txid in 0..many {
                free.committed(9, &[], &[run(20 + 2 * txid, 1)], true, false);
            }
            free.release(&[8]).unwrap();
            assert_eq!((free.free_pages(), free.waiting_pages()), (0, many));
            free.release(&[]).unwrap();
            free
        };
        let mut free = held();
        let first_step = free.free_pages();
        assert!((1..=STEP as u64).contains(&first_step), "{first_step}");
        assert_eq!(free.waiting_pages(), many - first_step);
        free.list(&[], &[]).unwrap();
        assert_eq!(free.listed().len() as u64, many, "the file's list has all of them");
        while free.waiting_pages() > 0 {
            let before = free.waiting_pages();
            free.release(&[]).unwrap();
            assert!(free.waiting_pages() < before);
        }
        assert_eq!(free.free_pages(), many);

        let mut free = held();
        for _ in 0..many {
            assert!(free.find(|free| free.take_next(1)).unwrap().is_some(), "the file must not grow yet");
        }
        assert_eq!(free.find(|free| free.take_next(1)).unwrap(), None);

        let mut free = held();
        free.release_rest().unwrap();
        assert_eq!((free.free_pages(), free.waiting_pages()), (many, 0));
    }

    #[test]
    fn a_run_that_is_left_for_later_waits_for_the_readers_that_there_are_then() {
        let mut free = Freelist::default();
        for page in 0..2 * STEP as u64 {
            free.committed(9, &[], &[run(20 + 2 * page, 1)], true, false);
        }
        // The older of two readers stays, and reaches them all.
        free.release(&[5, 8]).unwrap();
        free.release(&[5]).unwrap();
        free.release_rest().unwrap();
        assert_eq!(free.free_pages(), 0);
        free.release(&[]).unwrap();
        free.release_rest().unwrap();
        assert_eq!(free.waiting_pages(), 0);
    }

    #[test]
    fn a_run_that_two_readers_reach_waits_for_both() {
        let mut free = Freelist::default();
        free.committed(9, &[], &[run(20, 4)], true, false);
        for readers in [&[5, 8][..], &[5], &[5, 9]] {
            free.release(readers).unwrap();
            assert_eq!(free.free_pages(), 0, "{readers:?}");
        }
        free.release(&[9]).unwrap();
        assert_eq!(free.free_pages(), 4);
    }

    #[test]
    fn a_run_is_kept_by_the_readers_between_its_birth_and_its_end() {
        // First page, pages, allocated by, freed by.
        let runs = [
            (3, 1, 100, 200),
            (4, 1, 100, 125),
            (5, 1, 125, 150),
            (6, 1, 125, 175),
            (7, 2, 150, 175),
            (9, 2, 175, 200),
        ];
        let cases: [(&[TxId], &[Pgid]); 8] = [
            (&[], &[3, 4, 5, 6, 7, 8, 9, 10]),
            (&[99], &[3, 4, 5, 6, 7, 8, 9, 10]),
            (&[100], &[5, 6, 7, 8, 9, 10]),
            (&[124], &[5, 6, 7, 8, 9, 10]),
            (&[150], &[4, 5, 9, 10]),
            (&[150, 199], &[4, 5]),
            (&[110, 130, 160, 180], &[]),
            (&[200], &[3, 4, 5, 6, 7, 8, 9, 10]),
        ];
        for (readers, expected) in cases {
            let mut free = Freelist::default();
            for &(start, len, allocated_by, freed_by) in &runs {
                free.committed(allocated_by, &[run(start, len)], &[], true, false);
                free.committed(freed_by, &[], &[run(start, len)], true, false);
            }
            free.release(readers).unwrap();
            let released: Vec<Pgid> = free.free().iter().flat_map(|run| run.start..run.start + run.len).collect();
            assert_eq!(released, expected, "{readers:?}");
        }
    }

    #[test]
    fn a_list_with_pages_that_cannot_be_free_is_refused() {
        for ids in [&[1, 5][..], &[5, 5], &[6, 5, 5], &[1000]] {
            assert!(Freelist::load(2, ids.iter().copied(), 1000).is_err(), "{ids:?}");
        }
    }
}
