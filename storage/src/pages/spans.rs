//! Sets of pages, as runs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::freelist::{Run, freed_twice};
use crate::Result;
use crate::format::Pgid;

/// Sets of pages as runs that neither touch nor overlap.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Spans {
    runs: BTreeMap<Pgid, u64>,
    /// Those of more than one page, by their length. (Single pages are the most, and nobody asks for the best of them.)
    by_length: BTreeSet<(u64, Pgid)>,
    pages: u64,
}

impl Spans {
    /// The set of some runs, as [`Self::insert`] makes it one by one, several times as fast. Two that overlap mean
    /// that a page was freed twice.
    pub(crate) fn of(mut runs: Vec<Run>) -> Result<Self> {
        runs.sort_unstable_by_key(|run| run.start);
        let mut twice = None;
        runs.dedup_by(|run, before| {
            let end = before.start + before.len;
            if run.start < end {
                twice = Some(run.start);
            }
            let touches = run.start == end;
            if touches {
                before.len += run.len;
            }
            touches
        });
        match twice {
            Some(page) => Err(freed_twice(page)),
            None => Ok(Self {
                pages: runs.iter().map(|run| run.len).sum(),
                by_length: runs.iter().filter(|run| run.len > 1).map(|run| (run.len, run.start)).collect(),
                runs: runs.into_iter().map(|run| (run.start, run.len)).collect(),
            }),
        }
    }

    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Run> + '_ {
        self.runs.iter().map(|(&start, &len)| Run { start, len })
    }

    /// Whether a page of the run is in the set.
    pub(crate) fn overlaps(&self, run: Run) -> bool {
        let before = self.runs.range(..run.start + run.len).next_back();
        before.is_some_and(|(&start, &len)| start + len > run.start)
    }

    /// Adds a run; one that overlaps what is there means that a page was freed twice.
    pub(crate) fn insert(&mut self, run: Run) -> Result<()> {
        let Run { mut start, mut len } = run;
        let end = start + len;
        if let Some((&before, &before_len)) = self.runs.range(..end).next_back() {
            if before + before_len > start {
                return Err(freed_twice(start.max(before)));
            }
            if before + before_len == start {
                self.by_length.remove(&(before_len, before));
                (start, len) = (before, before_len + len);
            }
        }
        if let Some(after_len) = self.runs.remove(&end) {
            self.by_length.remove(&(after_len, end));
            len += after_len;
        }
        self.add(start, len);
        self.pages += run.len;
        Ok(())
    }

    /// Takes the run that ends before `mark`, if there is one.
    pub(crate) fn take_last(&mut self, mark: Pgid) -> Option<Run> {
        let (&start, &len) = self.runs.last_key_value()?;
        if start + len != mark {
            return None;
        }
        self.take_from(start, len, len);
        Some(Run { start, len })
    }

    /// Takes the lowest run of `len` pages, as bbolt's array freelist does.
    pub(crate) fn take(&mut self, len: u64) -> Option<Pgid> {
        let (start, found) = match len {
            0 | 1 => self.runs.first_key_value().map(|(&start, &found)| (start, found)),
            _ => self.lowest_of(len),
        }?;
        self.take_from(start, found, len);
        Some(start)
    }

    /// Takes the first page of the lowest run that begins in `range`.
    pub(crate) fn take_one_in(&mut self, range: Range<Pgid>) -> Option<Pgid> {
        let (&start, &found) = self.runs.range(range).next()?;
        self.take_from(start, found, 1);
        Some(start)
    }

    /// Takes this page, if it is in the set.
    pub(crate) fn take_page(&mut self, page: Pgid) -> bool {
        let before = self.runs.range(..=page).next_back().map(|(&start, &found)| (start, found));
        let Some((start, found)) = before.filter(|&(start, found)| page - start < found) else { return false };
        let behind = found - (page - start) - 1;
        self.remove(start, found);
        for (start, len) in [(start, page - start), (page + 1, behind)] {
            if len > 0 {
                self.add(start, len);
            }
        }
        self.pages -= 1;
        true
    }

    /// Takes `len` pages of the shortest run that has as many, so that long ones stay what they are.
    pub(crate) fn take_shortest(&mut self, len: u64) -> Option<Pgid> {
        let is_single = |run: &(&Pgid, &u64)| *run.1 == 1;
        let single = if len == 1 && self.by_length.len() < self.runs.len() {
            self.runs.iter().find(is_single).map(|(&start, &found)| (start, found))
        } else {
            None
        };
        let several = || self.by_length.range((len, 0)..).next().map(|&(found, start)| (start, found));
        let (start, found) = single.or_else(several)?;
        self.take_from(start, found, len);
        Some(start)
    }

    /// The lowest run of `len` pages or more, which are several: the lowest of each such length that there is, which
    /// are few, where all runs are not.
    fn lowest_of(&self, len: u64) -> Option<(Pgid, u64)> {
        let next = |len: u64| self.by_length.range((len, 0)..).next().map(|&(len, start)| (start, len));
        std::iter::successors(next(len), |&(_, len)| next(len + 1)).min()
    }

    /// Takes the last `len` pages of the highest run of as many.
    pub(crate) fn take_highest(&mut self, len: u64) -> Option<Pgid> {
        let (start, found) = match len {
            0 | 1 => self.runs.last_key_value().map(|(&start, &found)| (start, found)),
            _ => self.highest_of(len),
        }?;
        self.remove(start, found);
        if found > len {
            self.add(start, found - len);
        }
        self.pages -= len;
        Some(start + found - len)
    }

    /// The highest run of `len` pages or more, as [`Self::lowest_of`] finds the lowest.
    fn highest_of(&self, len: u64) -> Option<(Pgid, u64)> {
        let next =
            |below: u64| self.by_length.range((len, 0)..(below, 0)).next_back().map(|&(len, start)| (start, len));
        std::iter::successors(next(u64::MAX), |&(_, found)| next(found)).max()
    }

    /// Takes the first `len` pages of the run of `found` pages at `start`.
    fn take_from(&mut self, start: Pgid, found: u64, len: u64) {
        self.remove(start, found);
        if found > len {
            self.add(start + len, found - len);
        }
        self.pages -= len;
    }

    fn remove(&mut self, start: Pgid, found: u64) {
        self.runs.remove(&start);
        self.by_length.remove(&(found, start));
    }

    fn add(&mut self, start: Pgid, len: u64) {
        self.runs.insert(start, len);
        if len > 1 {
            self.by_length.insert((len, start));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: Pgid, len: u64) -> Run {
        Run { start, len }
    }

    #[test]
    fn touching_runs_become_one_and_overlaps_are_refused() {
        let mut spans = Spans::default();
        for start in [4, 8, 6] {
            spans.insert(run(start, 2)).unwrap();
        }
        assert_eq!(spans.iter().collect::<Vec<_>>(), [run(4, 6)]);
        for (start, len) in [(4, 1), (9, 3), (1, 4), (1, 40)] {
            assert!(spans.insert(run(start, len)).is_err(), "{start} {len}");
        }
        assert_eq!(spans.pages(), 6);
    }

    #[test]
    fn the_lowest_run_that_is_long_enough_is_taken_whatever_is_below_it() {
        let mut spans = Spans::default();
        for (start, len) in [(2, 1), (4, 2), (8, 9), (20, 3), (30, 4), (40, 3)] {
            spans.insert(run(start, len)).unwrap();
        }
        assert_eq!([3, 3, 3, 3, 1, 2].map(|len| spans.take(len)), [8, 11, 14, 20, 2, 4].map(Some));
        assert_eq!([5, 4, 3, 2].map(|len| spans.take(len)), [None, Some(30), Some(40), None]);
        assert_eq!(spans.pages(), 0);
    }

    #[test]
    fn the_shortest_run_that_is_long_enough_is_taken() {
        let mut spans = Spans::of(vec![run(3, 9), run(20, 1), run(30, 2), run(40, 1)]).unwrap();
        let taken = [1, 1, 1, 1, 2, 9, 1].map(|len| spans.take_shortest(len));
        assert_eq!(taken, [Some(20), Some(40), Some(30), Some(31), Some(3), None, Some(5)]);
        assert_eq!(spans.pages(), 6);
    }

    #[test]
    fn one_page_is_taken_out_of_a_run() {
        let mut spans = Spans::of(vec![run(3, 5), run(20, 1)]).unwrap();
        assert_eq!(
            [2, 8, 5, 5, 3, 7, 20].map(|page| spans.take_page(page)),
            [false, false, true, false, true, true, true]
        );
        assert_eq!(spans, Spans::of(vec![run(4, 1), run(6, 1)]).unwrap());
        assert_eq!((spans.pages(), spans.take(2)), (2, None));
    }

    #[test]
    fn many_runs_make_the_same_set_at_once_as_one_by_one() {
        for starts in [&[4, 8, 6, 20, 31, 33][..], &[], &[9, 2, 40], &[5, 4], &[7, 7], &[3, 2, 4]] {
            let runs: Vec<_> = starts.iter().map(|&start| run(start, if start < 6 { 1 } else { 2 })).collect();
            let mut one_by_one = Spans::default();
            let inserted = runs.iter().try_for_each(|&run| one_by_one.insert(run));
            match (Spans::of(runs), inserted) {
                (Ok(at_once), Ok(())) => assert_eq!(at_once, one_by_one),
                (Err(at_once), Err(inserted)) => assert_eq!(at_once.to_string(), inserted.to_string()),
                (at_once, inserted) => panic!("{starts:?}: {at_once:?}, one by one {inserted:?}"),
            }
        }
    }

    #[test]
    fn the_end_of_the_highest_run_that_is_long_enough_is_taken_whatever_is_above_it() {
        let mut spans = Spans::default();
        for (start, len) in [(2, 9), (20, 3), (30, 4), (40, 3), (50, 1)] {
            spans.insert(run(start, len)).unwrap();
        }
        assert_eq!([4, 5, 3, 1, 3, 2].map(|len| spans.take_highest(len)), [30, 6, 40, 50, 20, 4].map(Some));
        assert_eq!([3, 2, 1].map(|len| spans.take_highest(len)), [None, Some(2), None]);
        assert_eq!(spans.pages(), 0);
    }
}
