//! Visiting every page of a bucket, and every bucket in it, in key order.
//!
//! A walk keeps its way on a stack of its own and spends an [`Allowance`], so that no file, however
//! damaged, makes it recurse, run for ever or see one page without end.

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

/// Visits every page (or node) of one bucket's tree, parents first, from left to right; `visit` is
/// also told how many levels are above.
pub(crate) fn pages<'tx>(
    source: Source<'tx>,
    root: Root<'tx>,
    allowance: &mut Allowance,
    mut visit: impl FnMut(View<'tx>, usize) -> Result<()>,
) -> Result<()> {
    let mut above: Vec<(View<'tx>, At)> = Vec::new();
    let mut view = source.root(root)?;
    loop {
        allowance.spend_page(&view)?;
        if let View::Branch(branch) = view {
            source.pages.read_ahead(branch);
        }
        visit(view, above.len())?;
        let mut down = if view.is_leaf() { None } else { view.first().map(|first| (view, first)) };
        while down.is_none() {
            let Some((parent, at)) = above.pop() else { return Ok(()) };
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
