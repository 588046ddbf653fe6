//! Visiting every page of a bucket, in key order or in that of the file.
//!
//! A walk keeps its way on a stack of its own and spends an [`Allowance`], so that no file, however
//! damaged, makes it recurse, run for ever or see one page without end.

use std::ops::ControlFlow;

use super::slots::At;
use super::view::{Root, Source, View, too_deep};
use crate::format::{ELEMENT, PAGE_HEADER, Pgid};
use crate::pages::MAX_DEPTH;
use crate::{Error, Result};

/// How many bytes a walk may still come across. In a sound file every page, inline page, element,
/// key and value has bytes of its own, so that all that there is to be seen is no more than the file
/// has; a walk that finds more goes in circles, or sees one thing many times.
pub(crate) struct Allowance(u64);

impl Allowance {
    pub(crate) fn new(source: &Source<'_>) -> Self {
        let file = source.pages.mark().saturating_mul(source.pages.page_size() as u64);
        let arena = source.work.map_or(0, |work| work.arena.len() as u64);
        Self(file.saturating_add(arena))
    }

    /// One of so many equal parts of it.
    pub(crate) fn part(self, of: u64) -> Self {
        Self(self.0 / of.max(1))
    }

    /// Takes the bytes of something that was found on `page`.
    pub(crate) fn spend(&mut self, page: Pgid, bytes: usize) -> Result<()> {
        match self.0.checked_sub(bytes as u64) {
            Some(left) => self.0 = left,
            None => return Err(Error::corrupt(page, "what it leads to is more than the file holds: pages are shared")),
        }
        Ok(())
    }

    /// Takes what a page's header and elements occupy.
    pub(crate) fn spend_page(&mut self, view: &View<'_>) -> Result<()> {
        match view {
            // A write transaction has one node for each page or change: they need no bound.
            View::Node(..) => Ok(()),
            View::Leaf(_) | View::Branch(_) => self.spend(view.page(), PAGE_HEADER + view.len() * ELEMENT),
        }
    }
}

/// Visits every page (or node) of one bucket's tree, parents first, from left to right, until `visit` breaks, which is also
/// told how many levels are above.
pub(crate) fn pages<'tx>(
    source: Source<'tx>,
    root: Root<'tx>,
    allowance: &mut Allowance,
    mut visit: impl FnMut(View<'tx>, usize) -> Result<ControlFlow<()>>,
) -> Result<ControlFlow<()>> {
    let mut above: Vec<(View<'tx>, At)> = Vec::new();
    let mut view = source.root(root)?;
    loop {
        allowance.spend_page(&view)?;
        if let View::Branch(branch) = view {
            source.pages.read_ahead(branch);
        }
        if visit(view, above.len())?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let mut down = if view.is_leaf() { None } else { view.first().map(|first| (view, first)) };
        while down.is_none() {
            let Some((parent, at)) = above.pop() else { return Ok(ControlFlow::Continue(())) };
            down = parent.next(at).map(|next| (parent, next));
        }
        if let Some((parent, at)) = down {
            if above.len() >= MAX_DEPTH {
                return Err(too_deep(&parent));
            }
            above.push((parent, at));
            view = source.view(parent.child(at)?)?;
        }
    }
}

/// Pages of a level that are known at most before those below them are visited, so that their numbers take some megabytes
/// whatever the bucket's size.
const PIECE: usize = if cfg!(test) { 64 } else { 1 << 20 };

/// As [`pages`], but those of a level are visited in the order in which they lie in the file: each part of it is read
/// and mapped once, though it was written at random, and a disk reads ahead. In a write transaction, what was changed
/// lies nowhere yet: there it is the same.
pub(crate) fn pages_as_they_lie<'tx>(
    source: Source<'tx>,
    root: Root<'tx>,
    allowance: &mut Allowance,
    mut visit: impl FnMut(View<'tx>, usize) -> Result<ControlFlow<()>>,
) -> Result<ControlFlow<()>> {
    let start = source.root(root)?;
    if source.work.is_some() || start.is_leaf() {
        return pages(source, root, allowance, visit);
    }
    // Of each level, the pages still to come, the last one first.
    let mut levels = vec![vec![start.page()]];
    while let Some(levels_above) = levels.len().checked_sub(1) {
        let level = &mut levels[levels_above];
        let mut below = Vec::new();
        while below.len() < PIECE
            && let Some(id) = level.pop()
        {
            let view = View::from(source.pages.page(id)?);
            allowance.spend_page(&view)?;
            if visit(view, levels_above)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if let View::Branch(branch) = view {
                if levels_above >= MAX_DEPTH {
                    return Err(too_deep(&view));
                }
                for index in 0..branch.len() {
                    below.push(branch.child(index)?);
                }
            }
        }
        if below.is_empty() {
            levels.pop();
        } else {
            below.sort_unstable_by_key(|&id| std::cmp::Reverse(id));
            levels.push(below);
        }
    }
    Ok(ControlFlow::Continue(()))
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::{Allowance, Pgid, pages, pages_as_they_lie};
    use crate::{Options, Result, TxMut};

    const KEYS: u64 = 20_000;

    /// Random puts in many commits, so that pages of one level lie anywhere, on three levels.
    fn put_at_random(tx: &mut TxMut, round: u64) -> Result<()> {
        let mut bucket = tx.create_bucket_if_not_exists("b")?;
        (round * 1000..(round + 1) * 1000).try_for_each(|n| {
            let key = (n.wrapping_mul(7919) % KEYS).to_be_bytes();
            bucket.put(key, [7; 40])
        })
    }

    #[test]
    fn pages_of_a_level_are_visited_as_they_lie_and_each_as_often_as_in_key_order() -> Result<()> {
        let db = Options::new().page_size(1024).open_in_memory()?;
        (0..KEYS / 1000).try_for_each(|round| db.update(|tx| put_at_random(tx, round)))?;
        let tx = db.begin()?;
        let bucket = tx.bucket("b")?;
        let (mut in_key_order, mut as_they_lie) = (Vec::<(usize, Pgid)>::new(), Vec::new());
        let allowance = || Allowance::new(&bucket.source);
        let whole = pages(bucket.source, bucket.root, &mut allowance(), |view, level| {
            in_key_order.push((level, view.page()));
            Ok(ControlFlow::Continue(()))
        })?;
        let also = pages_as_they_lie(bucket.source, bucket.root, &mut allowance(), |view, level| {
            as_they_lie.push((level, view.page()));
            Ok(ControlFlow::Continue(()))
        })?;
        assert!(whole.is_continue() && also.is_continue());
        assert!(as_they_lie.iter().any(|(level, _)| *level == 2), "it is to have three levels");
        let backwards = |visited: &[(usize, Pgid)]| {
            visited.windows(2).filter(|pair| pair[0].0 == pair[1].0 && pair[0].1 > pair[1].1).count()
        };
        assert!(backwards(&in_key_order) > 100, "the pages are to lie anywhere");
        assert_eq!(backwards(&as_they_lie), 0);
        in_key_order.sort_unstable();
        as_they_lie.sort_unstable();
        assert_eq!(in_key_order, as_they_lie);
        Ok(())
    }
}
