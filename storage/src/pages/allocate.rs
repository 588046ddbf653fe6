//! Which pages a commit gets.
//!
//! What stays until an entry of it changes gets free pages one after another, in rounds through the file. What the next
//! commit writes again as well (the roots, and the list of free pages) gets a run at the end of the file: there it lies side
//! by side, in two places that take turns. The list needs one run, and finds it where the last but one was. Where bbolt's
//! rule is asked for, or the file is made smaller, all get the lowest.

use super::{Freelist, Run};
use crate::format::Pgid;
use crate::{Error, Result};

/// How long what is written is expected to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lasts {
    /// Until an entry of it changes.
    Long,
    /// Until the next commit.
    Briefly,
}

/// Hands out pages to one commit.
pub(crate) struct Allocator<'a> {
    freelist: &'a mut Freelist,
    /// The high-water mark as it will be.
    pub(crate) mark: Pgid,
    /// What came from the freelist, to be given back if the commit fails.
    pub(crate) taken: Vec<Run>,
    /// Everything handed out.
    pub(crate) all: Vec<Run>,
    /// Where the mark is to stay below, as long as there are free pages.
    limit: Pgid,
    /// All gets the lowest free pages.
    lowest_only: bool,
    /// What lasts long gets single pages to which something was written since the last sync, where there are such.
    over_dirty: bool,
    /// What is set aside for pages that last briefly.
    aside: Aside,
}

enum Aside {
    /// Free pages.
    Run(Run),
    /// No run is long enough: from now on they go to the end of the file, where they will leave one.
    End,
}

/// Pages from which on a run for what lasts briefly has some room, so that it is long enough for the next ones, too.
const ROOMY: u64 = 8;

impl<'a> Allocator<'a> {
    /// `taken` has left the freelist already; `all` is empty.
    pub(crate) fn new(
        freelist: &'a mut Freelist,
        mark: Pgid,
        taken: Vec<Run>,
        all: Vec<Run>,
        lowest_only: bool,
    ) -> Self {
        let aside = Aside::Run(Run { start: 0, len: 0 });
        Self { freelist, mark, taken, all, limit: Pgid::MAX, lowest_only, over_dirty: false, aside }
    }

    /// The same, where the file has no room for pages from `limit` on, or is not to have any.
    pub(crate) fn below(self, limit: Pgid) -> Self {
        Self { limit, ..self }
    }

    /// The same, where single pages are preferred to which something was written since the last sync.
    pub(crate) fn over_dirty(self, over_dirty: bool) -> Self {
        Self { over_dirty, ..self }
    }

    /// Sets a run aside for about so many pages that last briefly.
    pub(crate) fn set_aside(&mut self, pages: u64) {
        if self.lowest_only {
            return;
        }
        let room = if pages < ROOMY { 0 } else { pages / 4 };
        let run = [pages + room, pages]
            .into_iter()
            .find_map(|len| Some(Run { start: self.freelist.take_highest(len)?, len }));
        self.aside = run.map_or(Aside::End, Aside::Run);
    }

    /// What was set aside and is not needed is free again.
    pub(crate) fn give_back_rest(&mut self) {
        if let Aside::Run(run) = &mut self.aside
            && run.len > 0
        {
            self.freelist.give_back(&[*run]);
            run.len = 0;
        }
    }

    pub(crate) fn freelist(&mut self) -> &mut Freelist {
        self.freelist
    }

    /// Pages that nothing refers to, or will after this commit.
    pub(crate) fn unused_pages(&self) -> u64 {
        let aside = if let Aside::Run(run) = &self.aside { run.len } else { 0 };
        self.freelist.free_pages() + self.freelist.waiting_pages() + aside
    }

    /// A run of so many pages; the file grows where none is free.
    pub(crate) fn allocate(&mut self, pages: u64, lasts: Lasts) -> Result<Run> {
        let free = match (lasts, &mut self.aside) {
            _ if self.lowest_only => self.freelist.find(|list| list.free_mut().take(pages))?,
            (Lasts::Long, _) if self.over_dirty && pages == 1 => self.freelist.find(Freelist::take_dirty)?,
            (Lasts::Long, _) => self.freelist.find(|list| list.take_next(pages))?,
            (Lasts::Briefly, Aside::Run(run)) if run.len >= pages => {
                let start = run.start;
                *run = Run { start: start + pages, len: run.len - pages };
                Some(start)
            }
            (Lasts::Briefly, Aside::Run(_)) => self.freelist.take_highest(pages),
            (Lasts::Briefly, Aside::End) if self.mark.saturating_add(pages) <= self.limit => None,
            (Lasts::Briefly, Aside::End) => self.freelist.find(|list| list.free_mut().take_shortest(pages))?,
        };
        let run = if let Some(start) = free {
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

    /// All that was handed out is free again.
    pub(crate) fn undo(mut self) {
        self.give_back_rest();
        self.freelist.give_back(&self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocator(freelist: &mut Freelist, lowest_only: bool) -> Allocator<'_> {
        Allocator::new(freelist, 1000, Vec::new(), Vec::new(), lowest_only)
    }

    fn list() -> Freelist {
        Freelist::load(2, [3, 5, 7].into_iter().chain(20..30), 1000).unwrap()
    }

    fn starts(allocator: &mut Allocator<'_>, asked: &[(u64, Lasts)]) -> Vec<Pgid> {
        asked.iter().map(|&(pages, lasts)| allocator.allocate(pages, lasts).unwrap().start).collect()
    }

    #[test]
    fn what_lasts_briefly_lies_together_above_the_rest() {
        let mut freelist = list();
        let mut allocator = allocator(&mut freelist, false);
        allocator.set_aside(4);
        assert_eq!(allocator.unused_pages(), 13);
        let asked = [(1, Lasts::Long), (1, Lasts::Briefly), (2, Lasts::Long), (2, Lasts::Briefly), (1, Lasts::Long)];
        assert_eq!(starts(&mut allocator, &asked), [3, 26, 20, 27, 22]);
        assert_eq!(starts(&mut allocator, &[(2, Lasts::Briefly)]), [24], "more than was set aside for");
        allocator.give_back_rest();
        assert_eq!(allocator.unused_pages(), 4);
    }

    #[test]
    fn where_no_run_is_long_enough_what_lasts_briefly_makes_one_at_the_end() {
        let mut freelist = list();
        let mut allocator = allocator(&mut freelist, false);
        allocator.set_aside(11);
        let asked = [(1, Lasts::Briefly), (1, Lasts::Long), (10, Lasts::Briefly)];
        assert_eq!(starts(&mut allocator, &asked), [1000, 3, 1001]);
        assert_eq!(allocator.mark, 1011);
    }

    #[test]
    fn where_the_file_has_no_room_what_lasts_briefly_lies_anywhere() {
        let mut freelist = list();
        let mut allocator = allocator(&mut freelist, false).below(1001);
        allocator.set_aside(11);
        let asked = [(1, Lasts::Briefly), (1, Lasts::Briefly), (1, Lasts::Long), (11, Lasts::Briefly)];
        assert_eq!(starts(&mut allocator, &asked), [1000, 3, 5, 1001], "none is free for the last");
    }

    #[test]
    fn a_long_run_is_given_room_to_grow() {
        let mut freelist = list();
        let mut allocator = allocator(&mut freelist, false);
        allocator.set_aside(8);
        assert_eq!(starts(&mut allocator, &[(8, Lasts::Briefly)]), [20]);
        assert_eq!(starts(&mut allocator, &[(2, Lasts::Briefly)]), [28]);
    }

    #[test]
    fn where_bbolts_rule_is_asked_for_all_lies_low() {
        let mut freelist = list();
        let mut allocator = allocator(&mut freelist, true);
        allocator.set_aside(4);
        let asked = [1, 2, 1].map(|pages| (pages, Lasts::Briefly));
        assert_eq!(starts(&mut allocator, &asked), [3, 20, 5]);
    }

    #[test]
    fn what_is_undone_is_free_again() {
        let mut freelist = list();
        let before = freelist.free().clone();
        let mut allocator = allocator(&mut freelist, false);
        allocator.set_aside(4);
        for (pages, lasts) in [(2, Lasts::Long), (9, Lasts::Briefly), (1, Lasts::Briefly)] {
            allocator.allocate(pages, lasts).unwrap();
        }
        allocator.undo();
        assert_eq!(*freelist.free(), before);
    }
}
