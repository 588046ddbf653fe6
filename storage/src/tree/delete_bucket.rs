//! Deleting a bucket with everything in it.
//!
//! To free its pages each of them has to be read, to find those below. A large bucket is therefore *detached*: its entry
//! goes, the first pages are freed, and of the rest only the highest are noted, which nothing refers to once this is
//! committed. What is below them is freed later, in steps.

use std::collections::HashSet;

use fnv::FnvBuildHasher;

use super::effects::Done;
use super::undo::Undo;
use super::view::{Child, Root, View};
use super::walk::Allowance;
use super::work::Work;
use super::{BucketId, Fill, ROOT_BUCKET};
use crate::format::{Pgid, bucket_value};
use crate::pages::Run;
use crate::{Error, Result};

/// Pages that are freed at once: what is read for them delays the transaction. (In tests of this crate trees are small,
/// and most of what is deleted is to be detached.)
const FREED_AT_ONCE: usize = if cfg!(test) { 2 } else { 256 };

/// What becomes of a deleted bucket's pages.
#[derive(Default)]
struct Fate {
    freed: Vec<Run>,
    detached: Vec<Pgid>,
}

/// What is still to be looked at: a tree or a part of it, and its bucket if that is open for writing.
type Ahead<'a> = Vec<(Option<BucketId>, Root<'a>)>;

impl Work {
    /// Deletes a bucket with everything in it.
    pub(crate) fn delete_bucket(&mut self, parent: BucketId, name: &[u8]) -> Result<()> {
        let found = self.source().find(self.root(parent), name)?.ok_or_else(|| Error::bucket_not_found(name))?;
        if !found.is_bucket {
            return Err(Error::incompatible(name, false));
        }
        let opened = self.opened(parent, name);
        let fate = self.fate_of_bucket(opened, found.value)?;
        self.remove(parent, name)?;
        if !fate.detached.is_empty() {
            self.note_cut_off(parent, name);
        }
        let freed = self.freed.len()..self.freed.len() + fate.freed.len();
        self.freed.extend(fate.freed);
        let detached = self.detached.len();
        self.detached.extend(fate.detached);
        let opened = self.mark_deleted(opened);
        self.note(|| Undo::Deleted { opened, freed, detached });
        self.record(parent, Done::BucketDeleted { name });
        Ok(())
    }

    /// Notes that nothing leads any more to leaves of which memory may have something. Where the deletion is taken back that
    /// stays noted until all is found that was cut off, and meanwhile such a leaf is not missed.
    fn note_cut_off(&mut self, parent: BucketId, name: &[u8]) {
        let within = self.known_number(parent);
        let names = self.spare.patcher.as_ref().map(|patcher| &patcher.names);
        let number = names.zip(within).and_then(|(names, within)| names.known(within, name));
        self.cut_off.extend(number);
    }

    /// The pages that a bucket and the buckets in it have in the file.
    fn fate_of_bucket(&self, opened: Option<BucketId>, value: &[u8]) -> Result<Fate> {
        let at_once = match self.state(ROOT_BUCKET).fill {
            Fill::Auto => FREED_AT_ONCE,
            // As bbolt does it.
            Fill::Percent(_) => usize::MAX,
        };
        let mut fate = Fate::default();
        let mut seen = HashSet::<Pgid, FnvBuildHasher>::default();
        let mut ahead = vec![(opened, self.root_of(opened, value)?)];
        // Pages are seen once; inline buckets lie in them, and damaged ones overlap.
        let mut allowance = Allowance::new(&self.source());
        while let Some((bucket, root)) = ahead.pop() {
            if let Root::Tree(Child::Page(page)) = root
                && fate.freed.len() >= at_once
                && self.may_detach_from(bucket)
            {
                fate.detached.push(page);
                continue;
            }
            let view = self.source().root(root)?;
            allowance.spend_page(&view)?;
            match view {
                View::Leaf(leaf) if leaf.id() == 0 => {}
                View::Node(node, _) => fate.freed.extend(node.page),
                View::Leaf(_) | View::Branch(_) => {
                    let run = self.pages().run(view.page())?;
                    if !seen.insert(run.start) {
                        return Err(Error::corrupt(run.start, "the page is referenced twice"));
                    }
                    fate.freed.push(run);
                }
            }
            self.push_below(bucket, view, &mut ahead)?;
        }
        Ok(fate)
    }

    /// Whether a page of the bucket leads to just what it leads to in the file. A bucket in it that was opened may have
    /// changed, and the pages that it has lost are freed already.
    fn may_detach_from(&self, bucket: Option<BucketId>) -> bool {
        bucket.is_none_or(|bucket| self.buckets.children(bucket).next().is_none())
    }

    /// Adds a branch's children, or the roots of the buckets in a leaf.
    fn push_below<'a>(&'a self, bucket: Option<BucketId>, view: View<'a>, ahead: &mut Ahead<'a>) -> Result<()> {
        let mut next = view.first();
        while let Some(at) = next {
            if view.is_leaf() {
                let entry = view.entry(at)?;
                if entry.is_bucket {
                    let opened = bucket.and_then(|bucket| self.opened(bucket, entry.key));
                    ahead.push((opened, self.root_of(opened, entry.value)?));
                }
            } else {
                ahead.push((bucket, Root::Tree(view.child(at)?)));
            }
            next = view.next(at);
        }
        Ok(())
    }

    /// The root of a bucket whose entry has `value`.
    fn root_of<'a>(&'a self, opened: Option<BucketId>, value: &'a [u8]) -> Result<Root<'a>> {
        Ok(match opened {
            Some(id) => self.root(id),
            None => match bucket_value(0, value)? {
                (_, Some(leaf)) => Root::Inline(leaf),
                (header, None) => Root::Tree(Child::Page(header.root.get())),
            },
        })
    }
}
