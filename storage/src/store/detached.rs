//! Trees that commits have cut off, whose pages are still to be found and freed.
//!
//! They belong to nobody: the newest snapshot does not reach them, and the freelist does not have them. So nothing is
//! written to them, and they can be read for as long as it takes. Write transactions go through them in steps as they
//! begin, about as fast as they take pages themselves. Meanwhile sync points store no list of free pages, because it would
//! not be whole: whoever opens the file then looks for the free pages, and finds these among them.

use std::collections::VecDeque;
use std::fmt;

use super::Writer;
use crate::format::{LeafPage, Page, Pgid, TxId, bucket_value};
use crate::pages::{PageSet, Pages, Run};
use crate::tree::{Allowance, Source, View};
use crate::{Error, Result};

/// Pages that a step looks at, at the least.
const STEP: u64 = if cfg!(test) { 1 } else { 64 };

/// All trees that were detached since the database was opened, as far as they are not gone through.
#[derive(Debug, Default)]
pub(crate) struct Detached {
    trees: VecDeque<Tree>,
    /// A damaged page was met: what is below it stays unused until the file is opened again.
    lost_track: bool,
    /// Pages that the last commit took.
    taken: u64,
}

/// What one commit has detached.
struct Tree {
    freed_by: TxId,
    /// Pages that are still to be looked at, the next one last.
    ahead: Vec<Pgid>,
    /// Pages that were looked at: in a damaged tree one may be met twice. Only the tree that is gone through has it.
    seen: Option<PageSet>,
    /// What inline buckets may still take: they lie in pages, and damaged ones overlap.
    inline: Allowance,
}

impl Detached {
    /// Whether all of them are gone through.
    pub(crate) fn is_empty(&self) -> bool {
        self.trees.is_empty()
    }

    /// Whether every page that nothing refers to is free.
    pub(crate) fn is_accounted_for(&self) -> bool {
        self.is_empty() && !self.lost_track
    }

    /// Takes over what the commit `txid` has detached, over these pages, and how many it has taken.
    pub(super) fn committed(&mut self, txid: TxId, detached: &mut Vec<Pgid>, pages: Pages<'_>, taken: u64) {
        self.taken = taken;
        if !detached.is_empty() {
            self.trees.push_back(Tree {
                freed_by: txid,
                ahead: std::mem::take(detached),
                seen: None,
                inline: Allowance::new(&Source { pages, work: None }),
            });
        }
    }
}

impl Writer {
    /// Frees some of what was detached. `pages` are those of the newest snapshot.
    pub(crate) fn free_detached(&mut self, pages: Pages<'_>) {
        // Faster than commits take pages, so that the file need not grow for what is free already.
        let needed = 2 * self.detached.taken;
        for looked in 1..=STEP.max(needed) {
            match self.free_next_detached(pages) {
                None => break,
                // Its children were just asked of the disk, and had better be there.
                Some(Looked::AtBranch) if looked >= needed => break,
                Some(_) => {}
            }
        }
        self.note_found();
    }

    /// Frees all of what was detached.
    pub(crate) fn free_all_detached(&mut self, pages: Pages<'_>) {
        while self.free_next_detached(pages).is_some() {}
        self.note_found();
    }

    fn note_found(&mut self) {
        if let Some(patcher) = self.spare.patcher.as_mut().filter(|_| self.detached.is_accounted_for()) {
            patcher.found_all();
        }
    }

    fn free_next_detached(&mut self, pages: Pages<'_>) -> Option<Looked> {
        let tree = self.detached.trees.front_mut()?;
        let freed_by = tree.freed_by;
        let looked = tree.next(pages).and_then(|looked| {
            if let Some((run, _)) = looked {
                self.freelist.free_later(run, freed_by)?;
                if let Some(patcher) = &mut self.spare.patcher {
                    patcher.leave(run.start);
                }
            }
            Ok(looked)
        });
        match looked {
            Ok(Some((_, looked))) => Some(looked),
            Ok(None) => {
                self.detached.trees.pop_front();
                self.free_next_detached(pages)
            }
            Err(_) => {
                self.detached.lost_track = true;
                // The others are no worse for it.
                Some(Looked::AtLeaf)
            }
        }
    }
}

/// What kind of page was looked at.
#[derive(Clone, Copy)]
enum Looked {
    AtLeaf,
    AtBranch,
}

impl Tree {
    /// Looks at the next page; `None` where there is none.
    fn next(&mut self, pages: Pages<'_>) -> Result<Option<(Run, Looked)>> {
        let Some(id) = self.ahead.pop() else { return Ok(None) };
        let (run, bytes) = pages.bytes(id)?;
        let seen = self.seen.get_or_insert_with(|| PageSet::new(pages.mark()));
        if !(run.start..run.start + run.len).all(|id| seen.insert(id)) {
            return Err(Error::corrupt(id, "the page is referenced twice"));
        }
        let looked = match Page::parse(id, bytes)? {
            Page::Leaf(leaf) => {
                self.buckets_in(leaf, id)?;
                Looked::AtLeaf
            }
            Page::Branch(branch) => {
                pages.read_ahead_anywhere(branch);
                for index in (0..branch.len()).rev() {
                    self.ahead.push(branch.child(index)?);
                }
                Looked::AtBranch
            }
        };
        Ok(Some((run, looked)))
    }

    fn buckets_in(&mut self, leaf: LeafPage<'_>, page: Pgid) -> Result<()> {
        let mut leaves = vec![leaf];
        while let Some(leaf) = leaves.pop() {
            for index in 0..leaf.len() {
                let entry = leaf.entry(index)?;
                if !entry.is_bucket {
                    continue;
                }
                match bucket_value(page, entry.value)? {
                    (header, None) => self.ahead.push(header.root.get()),
                    (_, Some(inline)) => {
                        self.inline.spend_page(&View::Leaf(inline))?;
                        leaves.push(inline);
                    }
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("freed_by", &self.freed_by)
            .field("ahead", &self.ahead.len())
            .finish_non_exhaustive()
    }
}
