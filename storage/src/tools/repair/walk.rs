//! The walk over all that a root still leads to. It notes what is damaged and goes on beside it.
//!
//! Whatever a file holds, the walk ends: a page is looked into at most twice, never within itself,
//! and what was looked into is never more than two files' worth of bytes. It keeps its way on a
//! stack of its own and holds no more than the pages on that way.

use zerocopy::FromBytes as _;

use super::RepairPlace;
use super::image::Image;
use super::vet::{Bounds, Verdict, Vetted, can_fit};
use crate::format::{BucketHeader, LeafEntry, MAX_KEY_SIZE, MAX_VALUE_SIZE, Page, Pgid, bucket_value};
use crate::pages::MAX_DEPTH;
use crate::pages::PageSet;
use crate::{Error, Result};

/// The deepest nesting of buckets that is followed.
const MAX_NESTING: usize = 10_000;

/// Where what was found goes.
pub(super) trait Sink {
    /// Goes into a bucket of the one where it stands, after all that came there before.
    fn enter(&mut self, name: &[u8], sequence: u64) -> Result<()>;
    /// Goes back to the bucket around it.
    fn leave(&mut self);
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
    /// Something could not be found.
    fn lost(&mut self, place: &RepairPlace<'_>);
    /// Something was found, and may not belong here.
    fn doubtful(&mut self, place: &RepairPlace<'_>);
    /// So many pages more were looked at.
    fn walked(&mut self, pages: u64);
}

/// What a walk has come across.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) buckets: u64,
    pub(super) values: u64,
    pub(super) pages: u64,
    pub(super) lost: u64,
    pub(super) doubtful: u64,
}

pub(super) struct Walk<'a> {
    image: &'a Image,
    /// The first page that cannot be one.
    limit: Pgid,
    /// Every page of what was looked into.
    pub(super) used: PageSet,
    /// Pages that were looked into, and those of them that were so again.
    visited: PageSet,
    visited_again: PageSet,
    /// Pages on the way to where the walk stands.
    open: PageSet,
    /// From now on it looks only into pages that are not used.
    pub(super) only_unused: bool,
    /// Bytes that may still be looked into.
    allowance: u64,
    pub(super) tally: Tally,
}

/// A bucket on the way.
struct Level<'a> {
    name: &'a [u8],
    frames: Vec<Frame<'a>>,
    /// The highest key that was taken.
    last: Option<&'a [u8]>,
}

/// A page on the way, with the keys that can be below it.
struct Frame<'a> {
    /// The page, or the one in which it lies as an inline bucket's.
    id: Pgid,
    is_inline: bool,
    vetted: Vetted<'a>,
    next: usize,
    low: Option<&'a [u8]>,
    high: Option<&'a [u8]>,
    /// The index of the first believed key behind those that were passed, and below what the keys before it are.
    ahead: (usize, Option<&'a [u8]>),
}

/// What comes next in a page.
enum Step<'a> {
    Child(Pgid, Bounds<'a>),
    Entry(LeafEntry<'a>),
    /// Elements that are not believed.
    Gap {
        first: usize,
        last: usize,
        why: Verdict,
        from: Option<&'a [u8]>,
        up_to: Option<&'a [u8]>,
    },
    End,
}

impl<'a> Walk<'a> {
    pub(super) fn new(image: &'a Image, limit: Pgid) -> Self {
        let set = || PageSet::new(limit.min(image.pages));
        Self {
            image,
            limit,
            used: set(),
            visited: set(),
            visited_again: set(),
            open: set(),
            only_unused: false,
            allowance: 2 * image.pages * u64::from(image.page_size),
            tally: Tally::default(),
        }
    }

    /// Walks over the tree of the bucket where the sink stands, and of all buckets in it. At the top
    /// there are only buckets.
    pub(super) fn bucket(&mut self, root: Pgid, is_top: bool, sink: &mut dyn Sink) -> Result<()> {
        let mut levels = vec![Level { name: &[], frames: Vec::new(), last: None }];
        self.descend(&mut levels, root, Bounds::default(), sink);
        while let Some(level) = levels.last_mut() {
            let Some(frame) = level.frames.last_mut() else {
                levels.pop();
                if !levels.is_empty() {
                    sink.leave();
                }
                continue;
            };
            let id = frame.id;
            match frame.step(|child| self.image.page(child, self.limit).ok()?.key(0).ok()) {
                Step::Child(page, bounds) => self.descend(&mut levels, page, bounds, sink),
                Step::Entry(entry) => {
                    level.last = Some(entry.key);
                    if entry.is_bucket {
                        self.enter(&mut levels, id, entry, sink)?;
                    } else {
                        let is_top = is_top && levels.len() == 1;
                        self.put(&levels, id, entry, is_top, sink)?;
                    }
                }
                Step::Gap { first, last, why, from, up_to } => {
                    let what = format!("{} not to be believed: {}", elements(first, last), why.why());
                    self.lost(&levels, id, from, up_to, &what, sink);
                }
                Step::End => {
                    if !frame.is_inline {
                        self.open.remove(id);
                    }
                    level.frames.pop();
                }
            }
        }
        Ok(())
    }

    /// Goes down to a page of the innermost bucket.
    fn descend(&mut self, levels: &mut [Level<'a>], id: Pgid, bounds: Bounds<'a>, sink: &mut dyn Sink) {
        let Some(level) = levels.last_mut() else { return };
        let bounds = Bounds { after: level.last, ..bounds };
        let Bounds { low, high, .. } = bounds;
        let again = self.visited.contains(id);
        let looked = if level.frames.len() < MAX_DEPTH {
            self.look(id, &bounds, !level.frames.is_empty())
        } else {
            Err(format!("the tree is deeper than {MAX_DEPTH} levels"))
        };
        let vetted = match looked {
            Ok(vetted) => vetted,
            Err(what) => return self.lost(levels, id, low, high, &what, sink),
        };
        let pages = vetted.size().div_ceil(self.image.page_size as usize) as u64;
        self.tally.pages += pages;
        sink.walked(pages);
        let doubt = if again {
            Some("two places lead to it, and what it holds was taken for both")
        } else if vetted.is_first(&bounds) == Some(false) {
            Some("its first key is not the one that the branch above names: it may be another page than it should be")
        } else {
            None
        };
        level.frames.push(Frame { id, is_inline: false, vetted, next: 0, low, high, ahead: (0, None) });
        if let Some(what) = doubt {
            self.tally.doubtful += 1;
            sink.doubtful(&RepairPlace { page: id, path: &path_of(levels), from: low, up_to: high, what });
        }
    }

    /// Looks into a page, if it can be one of this place.
    fn look(&mut self, id: Pgid, bounds: &Bounds<'a>, is_below_branch: bool) -> Result<Vetted<'a>, String> {
        let page = self.image.page(id, self.limit).map_err(|error| match error {
            Error::Corrupt { what, .. } => what,
            other => other.to_string(),
        })?;
        if self.open.contains(id) {
            return Err("it would contain itself".into());
        }
        if self.only_unused && self.used.contains(id) {
            return Err("it is used".into());
        }
        if !can_fit(&page, bounds) {
            return Err("its keys are not among those that the pages above speak of".into());
        }
        let vetted = Vetted::new(page, bounds);
        if is_below_branch && vetted.len() == 0 {
            return Err("it is empty".into());
        }
        // Of two references to a page one is wrong, and nobody knows which; but a branch names the first key.
        let is_first = vetted.is_first(bounds).unwrap_or(bounds.first.is_none());
        if self.visited.contains(id) && (self.visited_again.contains(id) || !is_first) {
            return Err("another place led to it before".into());
        }
        let size = vetted.size() as u64;
        let left = self.allowance.checked_sub(size);
        self.allowance = left.ok_or_else(|| "what was found up to here is more than the file can hold".to_owned())?;
        if !self.visited.insert(id) {
            self.visited_again.insert(id);
        }
        self.open.insert(id);
        for page in id..id + size.div_ceil(self.image.page_size.into()) {
            self.used.insert(page);
        }
        Ok(vetted)
    }

    fn put(
        &mut self,
        levels: &[Level<'a>],
        id: Pgid,
        entry: LeafEntry<'a>,
        is_top: bool,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let LeafEntry { key, value, .. } = entry;
        let what = if is_top {
            "a value among the buckets at the top, where none can be"
        } else if key.len() > MAX_KEY_SIZE || value.len() > MAX_VALUE_SIZE {
            "an entry that is larger than any can be"
        } else {
            self.tally.values += 1;
            return sink.put(key, value);
        };
        self.lost(levels, id, Some(key), Some(key), what, sink);
        Ok(())
    }

    /// Goes into a bucket whose entry was found on page `id`. Whatever is wrong with its tree, the bucket is there.
    fn enter(
        &mut self,
        levels: &mut Vec<Level<'a>>,
        id: Pgid,
        entry: LeafEntry<'a>,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let LeafEntry { key: name, value, .. } = entry;
        if levels.len() > MAX_NESTING {
            let what = format!("a bucket that lies in {MAX_NESTING} others");
            self.lost(levels, id, Some(name), Some(name), &what, sink);
            return Ok(());
        }
        let header = BucketHeader::read_from_prefix(value).ok();
        sink.enter(name, header.map_or(0, |(header, _)| header.sequence.get()))?;
        self.tally.buckets += 1;
        let mut level = Level { name, frames: Vec::new(), last: None };
        let value = bucket_value(id, value);
        if let Ok((_, Some(leaf))) = value {
            let vetted = Vetted::new(Page::Leaf(leaf), &Bounds::default());
            level.frames.push(Frame { id, is_inline: true, vetted, next: 0, low: None, high: None, ahead: (0, None) });
        }
        levels.push(level);
        match value {
            Ok((header, None)) => self.descend(levels, header.root.get(), Bounds::default(), sink),
            Ok((_, Some(_))) => {}
            Err(Error::Corrupt { what, .. }) => self.lost(levels, id, None, None, &what, sink),
            Err(other) => return Err(other),
        }
        Ok(())
    }

    fn lost(
        &mut self,
        levels: &[Level<'_>],
        page: Pgid,
        from: Option<&[u8]>,
        up_to: Option<&[u8]>,
        what: &str,
        sink: &mut dyn Sink,
    ) {
        self.tally.lost += 1;
        sink.lost(&RepairPlace { page, path: &path_of(levels), from, up_to, what });
    }
}

impl<'a> Frame<'a> {
    /// Goes on; `first_key` tells with which key another page really begins.
    fn step(&mut self, first_key: impl FnOnce(Pgid) -> Option<&'a [u8]>) -> Step<'a> {
        let index = self.next;
        if index >= self.vetted.len() {
            return Step::End;
        }
        self.next += 1;
        match self.vetted.page {
            Page::Branch(branch) => {
                let first = self.vetted.key(index);
                self.low = first.or(self.low);
                if self.ahead.0 <= index {
                    // Of a key that is damaged, and the page with which it does not agree, the higher one does no harm.
                    let next = self.vetted.next_key(self.next).map(|(index, key)| {
                        let really = branch.child(index).ok().and_then(first_key);
                        (index, Some(really.map_or(key, |really| really.max(key))))
                    });
                    self.ahead = next.unwrap_or((self.vetted.len(), None));
                }
                let high = self.ahead.1.or(self.high);
                let bounds = Bounds { first, low: self.low, high, after: None };
                Step::Child(branch.child(index).unwrap_or(0), bounds)
            }
            Page::Leaf(leaf) => match (self.vetted.verdict(index), leaf.entry(index)) {
                (Verdict::Believed, Ok(entry)) => {
                    self.low = Some(entry.key);
                    Step::Entry(entry)
                }
                (why, _) => self.gap(index, why),
            },
        }
    }

    /// The elements from `first` on that are not believed, in one.
    fn gap(&mut self, first: usize, why: Verdict) -> Step<'a> {
        let next = self.vetted.next_key(first);
        self.next = next.map_or(self.vetted.len(), |(next, _)| next);
        let up_to = next.map_or(self.high, |(_, key)| Some(key));
        Step::Gap { first, last: self.next - 1, why, from: self.low, up_to }
    }
}

fn path_of<'a>(levels: &[Level<'a>]) -> Vec<&'a [u8]> {
    levels.iter().skip(1).map(|level| level.name).collect()
}

fn elements(first: usize, last: usize) -> String {
    if first == last { format!("element {first} is") } else { format!("elements {first} to {last} are") }
}
