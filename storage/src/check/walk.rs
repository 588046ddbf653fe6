//! The walk itself: every page that a root leads to, what is wrong noted, and on it goes.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{CheckOptions, Problem};
use crate::format::{BranchPage, LeafPage, Page, Pgid, bucket_value, freelist_ids};
use crate::pages::{MAX_DEPTH, PageSet, Pages, Run};
use crate::tree::{Allowance, Source, View};
use crate::{Error, Result};

/// A walk over all trees of a snapshot, which notes what is wrong and goes on.
pub(super) struct Walk<'a, 'w> {
    pages: Pages<'a>,
    used: &'w PageSet,
    seen: &'w Seen<'w>,
    /// What inline buckets may still take: they lie in pages, and damaged ones overlap.
    inline: Allowance,
    options: CheckOptions<'w>,
    pub(super) problems: Vec<Problem>,
    /// The name of the bucket that is being looked at; empty for the root bucket and the freelist.
    bucket: &'a [u8],
    /// Subtrees that are still to be visited.
    pub(super) ahead: Vec<Subtree<'a>>,
}

/// How many pages were seen so far, and whom that is told.
pub(super) struct Seen<'w> {
    pages: AtomicU64,
    tell: Option<&'w (dyn Fn(u64) + Sync)>,
}

impl<'w> Seen<'w> {
    pub(super) fn new(tell: Option<&'w (dyn Fn(u64) + Sync)>) -> Self {
        Self { pages: AtomicU64::new(0), tell }
    }

    fn add(&self, pages: u64) {
        if let Some(tell) = self.tell {
            tell(self.pages.fetch_add(pages, Ordering::Relaxed) + pages);
        }
    }
}

/// A page, and what its parent says of the keys below it: `low` is included, `high` is not.
pub(super) struct Subtree<'a> {
    page: Pgid,
    /// The page of an inline bucket, which lies within `page`.
    inline: Option<LeafPage<'a>>,
    /// The name of the bucket it belongs to; empty for the root bucket.
    bucket: &'a [u8],
    depth: usize,
    low: Option<&'a [u8]>,
    high: Option<&'a [u8]>,
}

impl<'a> Subtree<'a> {
    pub(super) fn root(page: Pgid, inline: Option<LeafPage<'a>>, bucket: &'a [u8]) -> Self {
        Self { page, inline, bucket, depth: 0, low: None, high: None }
    }
}

impl<'a, 'w> Walk<'a, 'w> {
    /// One of so many walks, which together see as much as one may.
    pub(super) fn new(
        pages: Pages<'a>,
        options: CheckOptions<'w>,
        used: &'w PageSet,
        seen: &'w Seen<'w>,
        walks: u64,
    ) -> Self {
        let inline = Allowance::new(&Source { pages, work: None }).part(walks);
        Self { pages, used, seen, inline, options, problems: Vec::new(), bucket: b"", ahead: Vec::new() }
    }

    pub(super) fn has_enough(&self) -> bool {
        self.problems.len() >= self.options.most_problems
    }

    /// Visits a bucket's tree, and those of the buckets in it.
    pub(super) fn bucket(&mut self, root: Pgid) {
        self.ahead.push(Subtree::root(root, None, b""));
        while !self.has_enough() && self.step() {}
    }

    /// Visits the next page; `false` if there is none.
    pub(super) fn step(&mut self) -> bool {
        let Some(subtree) = self.ahead.pop() else { return false };
        self.bucket = subtree.bucket;
        if let Err(error) = self.subtree(&subtree) {
            self.error(error, subtree.page);
        }
        true
    }

    fn subtree(&mut self, subtree: &Subtree<'a>) -> Result<()> {
        if let Some(inline) = subtree.inline {
            self.inline.spend_page(&View::Leaf(inline))?;
            return self.leaf(inline, subtree);
        }
        let run = self.pages.run(subtree.page)?;
        if !self.mark_used(run) {
            return Ok(());
        }
        match self.pages.page(subtree.page)? {
            Page::Leaf(leaf) => self.leaf(leaf, subtree),
            Page::Branch(branch) => self.branch(branch, subtree),
        }
    }

    /// Notes that a run is in use; `false`, and a problem, if a page of it was already.
    fn mark_used(&mut self, run: Run) -> bool {
        self.seen.add(run.len);
        for id in run.start..run.start + run.len {
            if !self.used.insert(id) {
                self.problem(id, "it is referenced twice".into());
                return false;
            }
        }
        true
    }

    fn branch(&mut self, branch: BranchPage<'a>, subtree: &Subtree<'a>) -> Result<()> {
        if subtree.depth >= MAX_DEPTH {
            return Err(Error::corrupt(subtree.page, format!("the tree is deeper than {MAX_DEPTH} levels")));
        }
        self.pages.read_ahead(branch);
        // bbolt makes none, and its own check does not look at it (`node.rebalance` asserts it).
        if branch.len() == 1 {
            self.problem(subtree.page, "it is a branch with one child, below which bbolt cannot delete".into());
        }
        self.keys_in_order(subtree, branch.len(), |index| branch.key(index))?;
        for index in 0..branch.len() {
            let high = if index + 1 < branch.len() { Some(branch.key(index + 1)?) } else { subtree.high };
            let child = branch.child(index)?;
            let low = Some(branch.key(index)?);
            self.ahead.push(Subtree { page: child, inline: None, depth: subtree.depth + 1, low, high, ..*subtree });
        }
        Ok(())
    }

    fn leaf(&mut self, leaf: LeafPage<'a>, subtree: &Subtree<'a>) -> Result<()> {
        self.keys_in_order(subtree, leaf.len(), |index| leaf.key(index))?;
        for index in 0..leaf.len() {
            let entry = leaf.entry(index)?;
            if !entry.is_bucket {
                continue;
            }
            // A damaged bucket does not keep us from looking at those beside it.
            match bucket_value(subtree.page, entry.value) {
                Ok((_, Some(inline))) => self.ahead.push(Subtree::root(subtree.page, Some(inline), entry.key)),
                Ok((header, None)) => self.ahead.push(Subtree::root(header.root.get(), None, entry.key)),
                Err(error) => {
                    self.bucket = entry.key;
                    self.error(error, subtree.page);
                    self.bucket = subtree.bucket;
                }
            }
        }
        Ok(())
    }

    /// Keys must ascend, and lie within what the parent says. The first is the one that the parent names: bbolt looks for a
    /// page there by its first key when it writes it anew (`node.spill`), and where it does not find that leaves the old page in
    /// the tree, beside the new one. Its own check does not look at it.
    fn keys_in_order(
        &mut self,
        subtree: &Subtree<'a>,
        len: usize,
        key_at: impl Fn(usize) -> Result<&'a [u8]>,
    ) -> Result<()> {
        let mut before: Option<&[u8]> = None;
        for index in 0..len {
            let key = key_at(index)?;
            let what = if key.is_empty() {
                Some("is empty".to_owned())
            } else if before.is_some_and(|before| before >= key) {
                Some("is not above the one before it".to_owned())
            } else if subtree.low.is_some_and(|low| key < low) {
                subtree.low.map(|low| format!("is below its parent's key {}", (self.options.print_key)(low)))
            } else if let Some(high) = subtree.high.filter(|&high| key >= high) {
                Some(format!("is not below its parent's next key {}", (self.options.print_key)(high)))
            } else {
                let other = subtree.low.filter(|&low| index == 0 && key != low);
                other.map(|low| {
                    format!("is not the one by which its parent names the page, {}", (self.options.print_key)(low))
                })
            };
            if let Some(what) = what {
                let key = (self.options.print_key)(key);
                self.problem(subtree.page, format!("key {key} of element {index} {what}"));
                // Elements may share one long key, and to compare all of them takes hours.
                if self.has_enough() {
                    break;
                }
            }
            before = Some(key);
        }
        Ok(())
    }

    /// Every page that is not in use must be free, once. (From a page on, nobody knows all that is in
    /// use.)
    pub(super) fn freelist(&mut self, page: Pgid) {
        self.bucket = b"";
        let mark = self.pages.mark();
        let free = PageSet::new(mark);
        if let Err(error) = self.read_freelist(page, &free) {
            self.error(error, page);
            return;
        }
        let whole = self.options.from_page.is_none();
        for id in 2..mark {
            if self.has_enough() {
                return;
            }
            match (self.used.contains(id), free.contains(id)) {
                (true, true) => self.problem(id, "it is in use and free".into()),
                (false, false) if whole => self.problem(id, "it is neither in use nor free".into()),
                _ => {}
            }
        }
    }

    fn read_freelist(&mut self, page: Pgid, free: &PageSet) -> Result<()> {
        let (run, bytes) = self.pages.bytes(page)?;
        self.mark_used(run);
        for id in freelist_ids(page, bytes)? {
            if id < 2 || id >= self.pages.mark() {
                self.problem(page, format!("it lists page {id}, outside of 2..{}", self.pages.mark()));
            } else if !free.insert(id) {
                self.problem(id, "it is freed twice".into());
            }
        }
        Ok(())
    }

    fn error(&mut self, error: Error, page: Pgid) {
        match error {
            Error::Corrupt { page, what, .. } => self.problem(page, what),
            other => self.problem(page, other.to_string()),
        }
    }

    fn problem(&mut self, page: Pgid, mut what: String) {
        if !self.has_enough() {
            if !self.bucket.is_empty() {
                what = format!("{what}, in bucket {}", (self.options.print_key)(self.bucket));
            }
            self.problems.push(Problem { page, what });
        }
    }
}
