//! Making a file smaller while it is in use.
//!
//! Write transactions of bounded size rewrite what lies above a target mark, and the lowest free
//! runs take it. Then the high-water mark is lowered over the free pages at the end, in both metas,
//! and the file is cut. Readers and writers go on between the steps; nothing is ever copied to
//! another file.

mod step;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::format::{LeafPage, Page, Pgid, TxId, bucket_value};
use crate::handles::{Db, Tx};
use crate::pages::{PageSet, Spans};
use crate::{Durability, Error, Result};
use step::Step;

/// Pages that one transaction moves at the most, so that other writers wait for none of them long.
const STEP: usize = 250;
/// Pages that are moved before the file is brought up to date, if it has a journal: all that was moved since is written back
/// then, and what was moved away from becomes free only by that.
const CHECKPOINT: u64 = 1000;
/// Places that one look over the tree collects at the most: some megabytes of keys.
const ROUND: usize = 50_000;

/// Commits after which the mark must have settled: what is free is known after the first, both metas
/// are written by the third; other writers may raise it in between.
const MOST_LOWERINGS: usize = 8;

/// What [`Db::shrink`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shrunk {
    /// Length of the file before, in bytes.
    pub before: u64,
    /// Length of the file after.
    pub after: u64,
    /// Pages that were moved to lower places.
    pub moved: u64,
}

/// How long other writers are left to themselves after a step, at the most.
const LONGEST_REST: Duration = Duration::from_millis(200);

/// How far a shrinking is: what [`Db::shrink_telling`] tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Shrinking {
    /// Pages that were moved so far.
    pub moved: u64,
    /// Pages that are known to lie too high still; more may be found.
    pub left: u64,
}

/// A page that lies too high, by a key that leads through it.
struct Place {
    bucket: Option<Rc<Nested>>,
    key: Vec<u8>,
    /// How many pages it takes.
    pages: u64,
}

impl Place {
    /// How many places are moved with this one, which is the first of them. A commit writes the pages of all buckets around
    /// what it changes: deep down, steps of one length would write those again and again.
    fn step(&self) -> usize {
        self.bucket.as_ref().map_or(0, |bucket| bucket.depth).max(STEP)
    }
}

/// A bucket on the way to a place, and its parent.
struct Nested {
    parent: Option<Rc<Nested>>,
    name: Vec<u8>,
    /// How many buckets are around it.
    depth: usize,
}

/// One after the other: buckets may be nested deeper than a stack is.
impl Drop for Nested {
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(mut bucket) = next.and_then(Rc::into_inner) {
            next = bucket.parent.take();
        }
    }
}

impl Nested {
    fn new(parent: Option<Rc<Self>>, name: Vec<u8>) -> Self {
        let depth = parent.as_ref().map_or(0, |parent| parent.depth + 1);
        Self { parent, name, depth }
    }
}

/// As long as it lives, commits take the lowest free pages, so that nothing new comes to lie high.
struct KeepLow<'a>(&'a Db);

impl<'a> KeepLow<'a> {
    fn new(db: &'a Db) -> Self {
        db.count_shrinking(1);
        Self(db)
    }
}

impl Drop for KeepLow<'_> {
    fn drop(&mut self) {
        self.0.count_shrinking(-1);
    }
}

impl Db {
    /// Makes the file as small as the free pages in it allow, while readers and writers go on: it
    /// moves pages from the end of the file into free pages before them, and cuts the file.
    ///
    /// It stops where no free run is large enough, and does not cut what an open read transaction
    /// can still see: call it again later, or see [`Shrunk`] for what was reached. Interrupted at
    /// any point it leaves a sound file. It costs a rewrite of what is moved, and as many commits
    /// as it takes in steps of 250 pages, between which other writers have their turn.
    ///
    /// # Errors
    /// As [`Db::begin_mut`] and [`TxMut::commit`](crate::TxMut::commit); [`Error::Corrupt`] where the file is damaged.
    pub fn shrink(&self) -> Result<Shrunk> {
        self.shrink_telling(|_| true)
    }

    /// The same, and `goes_on` is told after each step how far it is: `false` ends it there, and cuts what can be cut.
    ///
    /// # Errors
    /// As [`Self::shrink`].
    pub fn shrink_telling(&self, mut goes_on: impl FnMut(Shrinking) -> bool) -> Result<Shrunk> {
        let before = self.file_len()?;
        // Whoever may not write may not shrink. What was deleted makes room.
        self.checkpoint()?;
        // In steps: what is left for the first transaction that wants all of it, others wait for.
        while self.begin_mut()?.has_to_free() {}
        let _low = KeepLow::new(self);
        let mut moved = 0;
        let mut written_back = 0;
        let mut fewest = usize::MAX;
        'rounds: loop {
            // What the state on the disk still needs is not free.
            self.checkpoint()?;
            let target = self.target_mark()?;
            let places = high_places(&self.begin()?, target)?;
            // A rewrite takes along the low pages on the way to a high one, and they may come to lie high: where a
            // round does not leave fewer, the next ones could move the same pages up and down for ever.
            if places.len() >= fewest {
                break;
            }
            // A full list says nothing of how many more there are.
            if places.len() < ROUND {
                fewest = places.len();
            }
            let mut moved_now = 0;
            let mut left = &places[..];
            while let Some(first) = left.first() {
                let (clock, newest) = (Instant::now(), self.stats().txid);
                let (step, later) = left.split_at(first.step().min(left.len()));
                moved_now += Step::new(self.begin_mut()?, target).move_down(step)?;
                left = later;
                if !goes_on(Shrinking { moved: moved + moved_now, left: left.len() as u64 }) {
                    moved += moved_now;
                    break 'rounds;
                }
                if moved + moved_now >= written_back + CHECKPOINT {
                    written_back = moved + moved_now;
                    self.checkpoint_of_journal()?;
                }
                self.give_way(newest, clock.elapsed());
            }
            moved += moved_now;
            if moved_now == 0 {
                break;
            }
        }
        // Where pages were moved by commits that are not synced, the state on the disk still needs the old places.
        self.checkpoint()?;
        // At least once for each meta page: neither may speak of pages beyond the file's end.
        for _ in 0..MOST_LOWERINGS {
            let mut tx = self.begin_mut()?;
            tx.work.lower_mark = true;
            tx.commit_with(Durability::Always)?;
            if self.metas_agree_on_the_mark() {
                break;
            }
        }
        self.cut_file()?;
        Ok(Shrunk { before, after: self.file_len()?, moved })
    }

    /// Leaves others twice the time that a step took since the state `newest`, if they write, too: what they have to do in a
    /// second is then done in two thirds of it.
    fn give_way(&self, newest: TxId, step: Duration) {
        // A step is a commit, and a checkpoint can be one.
        if self.stats().txid > newest + 2 {
            std::thread::park_timeout((2 * step).min(LONGEST_REST));
        }
    }

    /// Without a journal each commit is in the file by itself.
    fn checkpoint_of_journal(&self) -> Result<()> {
        if self.stats().journal.is_some() { self.checkpoint().map(drop) } else { Ok(()) }
    }

    /// Where the high-water mark could be if every page in use lay below it.
    fn target_mark(&self) -> Result<Pgid> {
        let tx = self.begin_mut()?;
        let free = tx.free_spans().map_or(0, Spans::pages);
        Ok(tx.work.pages().mark().saturating_sub(free).max(4))
    }
}

/// Collects leaf pages, and branch pages, that reach beyond `target`.
fn high_places(tx: &Tx, target: Pgid) -> Result<Vec<Place>> {
    let pages = tx.source().pages;
    let seen = PageSet::new(pages.mark());
    let mut places = Vec::new();
    let mut ahead: Vec<(Pgid, Option<Rc<Nested>>)> = vec![(tx.snapshot().meta.root, None)];
    while let Some((id, bucket)) = ahead.pop() {
        if places.len() >= ROUND {
            break;
        }
        let (page, run) = pages.page_and_run(id)?;
        if !seen.insert(id) {
            return Err(Error::corrupt(id, "it is referenced twice"));
        }
        if run.start + run.len > target {
            let first = if page.len() == 0 { &[] } else { page.key(0)? };
            places.push(Place { bucket: bucket.clone(), key: first.to_vec(), pages: run.len });
        }
        match page {
            Page::Branch(branch) => {
                for index in 0..branch.len() {
                    ahead.push((branch.child(index)?, bucket.clone()));
                }
            }
            Page::Leaf(leaf) => buckets_in(leaf, id, bucket.as_ref(), &mut ahead)?,
        }
    }
    // Long runs first: single pages would break up what they need.
    places.sort_by_key(|place| Reverse(place.pages));
    Ok(places)
}

/// Adds the buckets of a leaf that have pages of their own. (An inline one lies within the leaf.)
fn buckets_in(
    leaf: LeafPage<'_>,
    page: Pgid,
    parent: Option<&Rc<Nested>>,
    ahead: &mut Vec<(Pgid, Option<Rc<Nested>>)>,
) -> Result<()> {
    for index in 0..leaf.len() {
        let entry = leaf.entry(index)?;
        if entry.is_bucket
            && let (header, None) = bucket_value(page, entry.value)?
        {
            let nested = Nested::new(parent.cloned(), entry.key.to_vec());
            ahead.push((header.root.get(), Some(Rc::new(nested))));
        }
    }
    Ok(())
}
