//! The ids that the file's list of free pages names.

use zerocopy::little_endian::U64;

use super::Spans;
use super::freelist::{Run, freed_twice};
use crate::format::Pgid;
use crate::{Error, Result};

/// Ids that room is kept for at the least.
const KEPT: usize = 512;

/// The list of a file that stores it, as its last commit wrote it, and as the next one will. Ascending.
///
/// A commit merges into it what it has freed and taken, so that the rest is only copied: with a million free pages to
/// sort, a commit of one put would do little else.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// `None` where the last commit has stored no list.
    stored: Option<Vec<U64>>,
    next: Vec<U64>,
}

impl Listing {
    /// Lists every page that is free once a commit is done: those that were `free` or `waiting` before it but for what it
    /// has taken, and what it has freed, each ascending. What was taken is not among the `free` any more.
    pub(super) fn list(
        &mut self,
        free: &Spans,
        waiting: impl Iterator<Item = Run>,
        freed: &[Run],
        taken: &[Run],
    ) -> Result<()> {
        self.next.clear();
        match &self.stored {
            Some(stored) => merge(stored, freed, taken, &mut self.next),
            None => list_anew(free, waiting.chain(freed.iter().copied()).collect(), &mut self.next),
        }
    }

    /// What [`Self::list`] has listed.
    pub(super) fn next(&self) -> &[U64] {
        &self.next
    }

    /// The commit that was listed for is in the file, with the list if it `stores` one.
    pub(super) fn committed(&mut self, stores: bool) {
        if stores {
            let old = self.stored.take().unwrap_or_default();
            let newest = std::mem::replace(&mut self.next, old);
            self.next.shrink_to(KEPT.max(2 * newest.len()));
            self.stored = Some(newest);
        } else if self.stored.is_some() || !self.next.is_empty() {
            *self = Self::default();
        }
    }
}

/// All that is free, and the rest, which is not in order.
fn list_anew(free: &Spans, mut rest: Vec<Run>, into: &mut Vec<U64>) -> Result<()> {
    rest.sort_unstable_by_key(|run| run.start);
    let mut rest = rest.into_iter().peekable();
    for run in free.iter() {
        while let Some(before) = rest.next_if(|rest| rest.start <= run.start) {
            add(before, into)?;
        }
        add(run, into)?;
    }
    rest.try_for_each(|run| add(run, into))
}

fn add(run: Run, into: &mut Vec<U64>) -> Result<()> {
    if into.last().is_some_and(|last| last.get() >= run.start) {
        return Err(freed_twice(run.start));
    }
    into.extend((run.start..run.start + run.len).map(U64::new));
    Ok(())
}

/// `ids` with the pages of `freed` and without those of `taken`.
fn merge(ids: &[U64], freed: &[Run], taken: &[Run], into: &mut Vec<U64>) -> Result<()> {
    let mut rest = ids;
    let mut taken = taken.iter().copied().peekable();
    for &run in freed {
        while let Some(taken) = taken.next_if(|taken| taken.start < run.start) {
            rest = skip(taken, rest, into)?;
        }
        rest = copy_below(run.start, rest, into);
        add(run, into)?;
        if rest.first().is_some_and(|next| next.get() < run.start + run.len) {
            return Err(freed_twice(run.start));
        }
    }
    for run in taken {
        rest = skip(run, rest, into)?;
    }
    into.extend_from_slice(rest);
    Ok(())
}

/// Copies what is below `id`; returns what is left.
fn copy_below<'a>(id: Pgid, ids: &'a [U64], into: &mut Vec<U64>) -> &'a [U64] {
    let (below, rest) = ids.split_at(ids.partition_point(|other| other.get() < id));
    into.extend_from_slice(below);
    rest
}

/// Copies what is below the run, and passes over the run itself.
fn skip<'a>(run: Run, ids: &'a [U64], into: &mut Vec<U64>) -> Result<&'a [U64]> {
    let mut rest = copy_below(run.start, ids, into);
    for id in run.start..run.start + run.len {
        match rest.split_first() {
            Some((first, others)) if first.get() == id => rest = others,
            _ => return Err(Error::corrupt(id, "the page was taken from the freelist, which did not list it")),
        }
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: Pgid, len: u64) -> Run {
        Run { start, len }
    }

    fn listed(listing: &Listing) -> Vec<Pgid> {
        listing.next().iter().map(|id| id.get()).collect()
    }

    #[test]
    fn what_is_merged_is_what_would_be_listed_anew() {
        let mut random = 7_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        let mut free = Spans::of((2..400).step_by(3).map(|id| run(id, 1)).collect()).unwrap();
        let mut used: Vec<Pgid> = (2..400).filter(|id| id % 3 != 2).collect();
        let mut waiting: Vec<Run> = Vec::new();
        let (mut merged, mut anew) = (Listing::default(), Listing::default());
        for round in 0..if cfg!(miri) { 60 } else { 500 } {
            if round % 3 == 0 {
                waiting.drain(..).for_each(|run| free.insert(run).unwrap());
            }
            let mut taken: Vec<Run> =
                (0..next(6)).filter_map(|_| free.take_highest(1)).map(|start| run(start, 1)).collect();
            let mut freed: Vec<Run> = Vec::new();
            for _ in 0..next(6).min(used.len() as u64) {
                let at = next(used.len() as u64);
                freed.push(run(used.swap_remove(usize::try_from(at).unwrap()), 1));
            }
            taken.sort_by_key(|run| run.start);
            freed.sort_by_key(|run| run.start);
            merged.list(&free, waiting.iter().copied(), &freed, &taken).unwrap();
            anew.list(&free, waiting.iter().copied(), &freed, &taken).unwrap();
            assert_eq!(listed(&merged), listed(&anew), "round {round}");
            merged.committed(round % 50 != 0);
            used.extend(taken.iter().map(|run| run.start));
            waiting.extend(freed);
        }
    }

    #[test]
    fn a_page_that_is_freed_twice_is_in_no_list() {
        let free = Spans::of([3, 9, 10, 11].map(|id| run(id, 1)).into()).unwrap();
        for stores in [false, true] {
            let mut listing = Listing::default();
            let mut list = |freed: &[Run]| listing.list(&free, std::iter::empty(), freed, &[]);
            list(&[]).unwrap();
            listing.committed(stores);
            let mut list = |freed: &[Run]| listing.list(&free, std::iter::empty(), freed, &[]);
            for (start, len) in [(3, 1), (10, 1), (11, 1), (2, 2), (8, 2), (8, 9)] {
                let refused = list(&[run(start, len)]).unwrap_err().to_string();
                assert!(refused.contains("freelist abandon"), "{start} {len}, stored: {stores}: {refused}");
            }
            assert!(list(&[run(7, 1), run(7, 1)]).is_err());
            list(&[run(7, 1)]).unwrap();
            assert_eq!(listed(&listing), [3, 7, 9, 10, 11]);
        }
    }
}
