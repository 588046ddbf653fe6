//! Which pages a commit gets.
//!
//! A disk takes pages that lie side by side as one request, and scattered ones as many; so does the system's cache. A
//! commit therefore gets few long runs of free pages, one if there is one. That breaks up what a value of many pages
//! would need: from the first node that takes more than a page on, commits get the lowest free pages, as in bbolt, and so
//! do those for which bbolt's rule is asked for.

use super::{Freelist, Run};
use crate::format::Pgid;
use crate::{Error, Result};

/// Hands out pages to one commit.
pub(crate) struct Allocator<'a> {
    freelist: &'a mut Freelist,
    /// The high-water mark as it will be.
    pub(crate) mark: Pgid,
    /// What came from the freelist, to be given back if the commit fails.
    pub(crate) taken: Vec<Run>,
    /// Everything handed out.
    pub(crate) all: Vec<Run>,
    /// Free pages that are set aside for nodes, and for the list of free pages.
    for_nodes: Run,
    for_list: Run,
    /// So many pages of nodes go elsewhere first: to these, or to the lowest free ones.
    elsewhere: u64,
    for_first: Run,
    /// About so many pages will be asked for, and are to lie together as far as they can.
    wanted: u64,
}

const NOTHING: Run = Run { start: 0, len: 0 };

impl<'a> Allocator<'a> {
    /// `taken` has left the freelist already; `all` is empty.
    pub(crate) fn new(freelist: &'a mut Freelist, mark: Pgid, taken: Vec<Run>, all: Vec<Run>) -> Self {
        Self {
            freelist,
            mark,
            taken,
            all,
            for_nodes: NOTHING,
            for_list: NOTHING,
            elsewhere: 0,
            for_first: NOTHING,
            wanted: 0,
        }
    }

    pub(crate) fn freelist(&self) -> &Freelist {
        self.freelist
    }

    /// Pages that nothing refers to, or will after this commit.
    pub(crate) fn unused_pages(&self) -> u64 {
        self.freelist.free_pages()
            + self.freelist.waiting_pages()
            + self.for_nodes.len
            + self.for_list.len
            + self.for_first.len
    }

    /// Sets free pages aside for about `nodes` pages of nodes and for a list of `list` pages: one run for all, or else
    /// one for the list, which needs as many side by side, and what there is for the nodes.
    pub(crate) fn set_aside(&mut self, nodes: u64, list: u64) {
        self.wanted = nodes;
        let all = self.take_together(nodes + list);
        if all.len == nodes + list || list <= 1 {
            self.set_aside_run(all, nodes + list);
            return;
        }
        self.give_back(all);
        let for_list = self.take_together(list);
        if for_list.len == list {
            self.for_list = for_list;
        } else {
            self.give_back(for_list);
        }
        let run = self.take_together(nodes);
        self.set_aside_run(run, nodes);
    }

    /// Where a run is nearly long enough for `pages`, the last of them get it. Leaves come first, and live long; what comes
    /// after them is mostly replaced by the next commit, and leaves a run of the same length to the one after that.
    fn set_aside_run(&mut self, run: Run, pages: u64) {
        self.for_nodes = run;
        let missing = pages - run.len;
        if missing > 0 && missing <= run.len {
            self.elsewhere = missing;
            self.for_first = self.take_together(missing);
        }
    }

    fn take_together(&mut self, pages: u64) -> Run {
        self.freelist.take_together(pages).unwrap_or(NOTHING)
    }

    /// Pages for a node.
    pub(crate) fn allocate(&mut self, pages: u64) -> Result<Run> {
        let aside = if let Some(left) = self.elsewhere.checked_sub(pages) {
            self.elsewhere = left;
            take_front(&mut self.for_first, pages)
        } else {
            if self.for_nodes.len < pages && self.wanted > 0 {
                let rest = std::mem::replace(&mut self.for_nodes, NOTHING);
                self.give_back(rest);
                self.for_nodes = self.take_together(self.wanted.max(pages));
            }
            take_front(&mut self.for_nodes, pages)
        };
        self.wanted = self.wanted.saturating_sub(pages);
        self.hand_out(aside, pages)
    }

    /// Pages for the list of free pages. What is still set aside is free again: the list will hold it.
    pub(crate) fn allocate_list(&mut self, pages: u64) -> Result<Run> {
        let aside = take_front(&mut self.for_list, pages).or_else(|| take_front(&mut self.for_nodes, pages));
        self.give_back_rest();
        self.hand_out(aside, pages)
    }

    fn hand_out(&mut self, aside: Option<Pgid>, pages: u64) -> Result<Run> {
        let run = if let Some(start) = aside.or_else(|| self.freelist.take(pages)) {
            let run = Run { start, len: pages };
            self.taken.push(run);
            run
        } else {
            let start = self.mark;
            self.mark =
                start.checked_add(pages).ok_or_else(|| Error::corrupt(0, "the high-water mark is at its end"))?;
            Run { start, len: pages }
        };
        self.all.push(run);
        Ok(run)
    }

    /// What was set aside and is not needed is free again.
    pub(crate) fn give_back_rest(&mut self) {
        self.wanted = 0;
        let rest =
            [&mut self.for_nodes, &mut self.for_list, &mut self.for_first].map(|run| std::mem::replace(run, NOTHING));
        for run in rest {
            self.give_back(run);
        }
    }

    /// All that was handed out is free again.
    pub(crate) fn undo(mut self) {
        self.give_back_rest();
        self.freelist.give_back(&self.taken);
    }

    fn give_back(&mut self, run: Run) {
        if run.len > 0 {
            self.freelist.give_back(&[run]);
        }
    }
}

/// The first `pages` of what was set aside.
fn take_front(aside: &mut Run, pages: u64) -> Option<Pgid> {
    let start = aside.start;
    aside.len = aside.len.checked_sub(pages)?;
    aside.start += pages;
    Some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(ids: impl Iterator<Item = Pgid>) -> Freelist {
        Freelist::load(2, ids, 1000).unwrap()
    }

    fn starts(allocator: &mut Allocator<'_>, pages: &[u64]) -> Vec<Pgid> {
        pages.iter().map(|&pages| allocator.allocate(pages).unwrap().start).collect()
    }

    #[test]
    fn what_fits_a_run_lies_together_and_the_list_behind_it() {
        let mut freelist = list([3, 5, 7].into_iter().chain(20..30));
        let mut allocator = Allocator::new(&mut freelist, 1000, Vec::new(), Vec::new());
        allocator.set_aside(5, 2);
        assert_eq!(allocator.unused_pages(), 13);
        assert_eq!(starts(&mut allocator, &[1, 2, 1]), [20, 21, 23], "in one run");
        assert_eq!(allocator.allocate_list(2).unwrap().start, 24);
        assert_eq!(allocator.unused_pages(), 7, "what was set aside for a fourth node is free again");
        assert_eq!(starts(&mut allocator, &[1, 4]), [3, 26], "the lowest that fits");
    }

    #[test]
    fn the_list_comes_first_where_no_run_takes_all() {
        let mut freelist = list([3, 5, 6].into_iter().chain(20..24).chain(40..44));
        let mut allocator = Allocator::new(&mut freelist, 1000, Vec::new(), Vec::new());
        allocator.set_aside(10, 4);
        let expected = [40, 41, 42, 43, 5, 6, 3, 1000];
        assert_eq!(starts(&mut allocator, &[1; 8]), expected, "the longest run, then the next, then the lowest page");
        assert_eq!(allocator.allocate_list(4).unwrap().start, 20);
        assert_eq!(starts(&mut allocator, &[3]), [1001]);
    }

    #[test]
    fn what_is_replaced_soon_gets_the_run_that_is_nearly_long_enough() {
        let mut freelist = list([3, 5, 6].into_iter().chain(20..24));
        let mut allocator = Allocator::new(&mut freelist, 1000, Vec::new(), Vec::new());
        allocator.set_aside(4, 1);
        assert_eq!(starts(&mut allocator, &[1; 4]), [5, 20, 21, 22], "a leaf, and the way to it");
        assert_eq!(allocator.allocate_list(1).unwrap().start, 23);
    }

    #[test]
    fn what_is_undone_is_free_again() {
        let mut freelist = list(10..20);
        let before = freelist.free().clone();
        let mut allocator = Allocator::new(&mut freelist, 1000, Vec::new(), Vec::new());
        allocator.set_aside(4, 2);
        assert_eq!(starts(&mut allocator, &[2, 9]), [10, 1000]);
        allocator.undo();
        assert_eq!(*freelist.free(), before);
    }
}
