//! Patched leaves that are to be written: taken apart, for the commit to write them, or exchanged for copies that were
//! written beside the commits.

use std::collections::HashSet;
use std::sync::Arc;

use fnv::FnvBuildHasher;

use super::BucketId;
use super::node::Node;
use super::patch::leaf_in;
use super::slots::{Content, Slot, Slots, Stretch};
use super::view::{Child, Root};
use super::work::Work;
use crate::format::{Page, Patched, Pgid, Piece};
use crate::pages::{MAX_DEPTH, Oldest, Pages, Recents, Run};
use crate::{Error, Result};

/// A leaf of which memory has something.
#[derive(Clone, Copy)]
pub(crate) struct PatchedLeaf<'a> {
    /// Its bucket's.
    pub(crate) number: u32,
    /// One that leads to it.
    pub(crate) key: &'a [u8],
    pub(crate) page: Pgid,
}

impl Work {
    /// Takes a patched leaf apart. What the patch has added is copied: the memory may be given back before the transaction
    /// ends.
    pub(super) fn patched_leaf(&mut self, id: Pgid, slots: Slots) -> Result<Node> {
        let base = Arc::clone(&self.base);
        let recents = self.spare.patcher.as_ref().map(|patcher| patcher.recents().clone()).unwrap_or_default();
        let written = Pages::new(&base.map, &base.meta);
        let (page, run) = written.with(&recents).page_and_run(id)?;
        let Page::Leaf(leaf) = page else { return Err(Error::corrupt(id, "a leaf page is expected")) };
        let Some(patch) = leaf.patch() else { return Node::of_page(Some(run), &page, slots, self.bytes()) };
        let (all, _) = Stretch::of_page(&written.page(id)?, self.bytes())
            .ok_or_else(|| Error::corrupt(id, "a page was patched whose data is not packed"))?;
        leaf.check_fit(patch)?;
        let mut node = Node { page: Some(run), slots, ..Node::new(true) };
        self.push_pieces(&mut node, patch, all);
        Ok(node)
    }

    fn push_pieces(&mut self, node: &mut Node, patch: Patched<'_>, all: Stretch) {
        for piece in patch.pieces() {
            match piece {
                Piece::Base(elements) => {
                    if let Some(part) = all.part(elements.start, elements.end) {
                        node.push_stretch(part, part.size(self.bytes()), self.bytes());
                    }
                }
                Piece::Added(key_len, data) => {
                    let (key, value) = data.split_at(key_len);
                    let len = u32::try_from(value.len()).expect("only short entries are patched");
                    let loc = self.arena.push(key, value);
                    node.push(Slot::new(key, loc, Content::Value { len, is_bucket: false }));
                }
            }
        }
    }

    /// Takes all patched leaves apart, or those that refer to the oldest slabs, so that the commit writes them.
    pub(crate) fn take_patched_apart(&mut self, oldest: Option<&Oldest>) -> Result<()> {
        self.take_apart_within(0, oldest)
    }

    /// Takes the patched leaves of a bucket apart, and of those in it: patches say by names whose leaves they are of, and it
    /// is about to get another.
    pub(super) fn take_bucket_apart(&mut self, bucket: BucketId) -> Result<()> {
        self.spare.patcher.iter_mut().for_each(|patcher| patcher.numbers.clear());
        self.known_number(bucket).map_or(Ok(()), |number| self.take_apart_within(number, None))
    }

    fn take_apart_within(&mut self, above: u32, oldest: Option<&Oldest>) -> Result<()> {
        let Some(patcher) = self.spare.patcher.as_ref().filter(|patcher| patcher.live() > 0) else { return Ok(()) };
        let (Recents { table: Some(table), .. }, names) = patcher.to_be_written() else { return Ok(()) };
        let meant = table.all().filter_map(|(page, at)| {
            let (header, key) = table.header(at).zip(table.key(at))?;
            let is_meant = oldest.is_none_or(|oldest| oldest.are_meant(header));
            let leaf = PatchedLeaf { number: header.bucket.get(), key, page };
            (is_meant && names.is_within(leaf.number, above)).then_some(leaf)
        });
        let mut meant = meant.peekable();
        let done = if meant.peek().is_some() { self.pages_done_with() } else { HashSet::default() };
        for leaf in meant.filter(|leaf| !done.contains(&leaf.page)) {
            match self.bucket_of_patch(&names.path(leaf.number))? {
                Some(bucket) => self.take_leaf_apart(bucket, leaf)?,
                None => self.check_gone(leaf)?,
            }
        }
        Ok(())
    }

    /// Pages that this transaction has taken apart, or away. Where they were, another bucket may be by now, or none: memory has
    /// them until the commit.
    fn pages_done_with(&self) -> HashSet<Pgid, FnvBuildHasher> {
        let apart = self.nodes.iter().filter_map(|node| node.page);
        self.freed.iter().copied().chain(apart).map(|run| run.start).collect()
    }

    /// The bucket that names lead to; `None` where there is none any more.
    pub(crate) fn bucket_of_patch(&mut self, path: &[&[u8]]) -> Result<Option<BucketId>> {
        match self.open_path(path) {
            Ok(bucket) => Ok(Some(bucket)),
            Err(Error::BucketNotFound { .. } | Error::IncompatibleValue { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Has the branch above a patched leaf lead to a copy of it, which was written to page `new`. `false` where no branch leads
    /// to it: then it is taken apart.
    ///
    /// # Errors
    /// As of [`Self::take_leaf_apart`].
    pub(crate) fn exchange_or_take_apart(
        &mut self,
        bucket: BucketId,
        leaf: PatchedLeaf<'_>,
        new: Pgid,
    ) -> Result<bool> {
        let is_exchanged = self.exchange(bucket, leaf.key, leaf.page, new)?;
        if !is_exchanged {
            self.take_leaf_apart(bucket, leaf)?;
        }
        Ok(is_exchanged)
    }

    /// Has the branch above a leaf lead to a copy of it; `false` where there is none, or it does not lead there.
    fn exchange(&mut self, bucket: BucketId, key: &[u8], old: Pgid, new: Pgid) -> Result<bool> {
        if matches!(self.root(bucket), Root::Inline(_)) {
            return Ok(false);
        }
        let mut id = self.root_node(bucket)?;
        for _ in 0..MAX_DEPTH {
            let node = self.node(id);
            if node.is_leaf {
                return Ok(false);
            }
            let Some(at) = node.child_for(key, self.bytes()) else { return Ok(false) };
            match node.slots.get(at, self.bytes()).map(|slot| (slot, slot.content())) {
                Some((slot, Content::Page(page))) if page == old => {
                    let (node, bytes) = self.node_and_bytes(id);
                    node.replace(at, &slot, slot.with(Content::Page(new)), bytes);
                    self.freed.push(Run { start: old, len: 1 });
                    return Ok(true);
                }
                Some((_, Content::Page(page))) if matches!(self.pages().page(page)?, Page::Leaf(_)) => {
                    return Ok(false);
                }
                _ => (id, _) = self.child_node(id, at)?,
            }
        }
        Ok(false)
    }

    /// Has what leads to a leaf lead to a copy of it, also where that is a bucket, and in a state that has nothing in memory.
    /// `false` where nothing leads to it.
    pub(crate) fn replace_leaf(&mut self, bucket: BucketId, key: &[u8], old: Pgid, new: Pgid) -> Result<bool> {
        if matches!(self.root(bucket), Root::Tree(Child::Page(root)) if root == old) {
            self.state_mut(bucket).root = new;
            self.root_node(bucket)?;
            return Ok(true);
        }
        self.exchange(bucket, key, old, new)
    }

    /// The leaf of a page was written to page `to` as `written` tells: what was patched since is told of that one. `false`
    /// where memory has no room for it.
    pub(crate) fn rebase(&mut self, page: Pgid, to: Pgid, written: Patched<'_>) -> bool {
        self.spare.patcher.as_mut().is_some_and(|patcher| patcher.rebase(page, to, written))
    }

    /// Takes back what was told last so.
    pub(crate) fn take_rebased_back(&mut self) {
        self.spare.patcher.iter_mut().for_each(|patcher| _ = patcher.take_back());
    }

    /// Takes a patched leaf apart, if that was not done, and unless it was cut off with its bucket.
    ///
    /// # Errors
    /// Where the way to it cannot be read, or leads elsewhere: what memory has of it must not be taken for done.
    pub(crate) fn take_leaf_apart(&mut self, bucket: BucketId, leaf: PatchedLeaf<'_>) -> Result<()> {
        if self.page_of_leaf(bucket, leaf.key)? != Some(leaf.page) {
            return self.check_gone(leaf);
        }
        self.leaf_node(bucket, leaf.key).map(drop)
    }

    /// That nothing leads to this leaf, which this transaction has not taken apart, is as it should be.
    pub(crate) fn check_gone(&self, leaf: PatchedLeaf<'_>) -> Result<()> {
        let Some(patcher) = &self.spare.patcher else { return Ok(()) };
        if self.cut_off.iter().any(|&above| patcher.names.is_within(leaf.number, above)) {
            return Ok(());
        }
        patcher.check_gone(leaf.page, leaf.number)
    }

    /// The page of the leaf to which `key` belongs, also where that is taken apart.
    fn page_of_leaf(&self, bucket: BucketId, key: &[u8]) -> Result<Option<Pgid>> {
        let mut child = match self.root(bucket) {
            Root::Tree(child) => child,
            Root::Read(page) => Child::Page(page.id()),
            Root::Inline(_) => return Ok(None),
        };
        loop {
            let node = match child {
                Child::Page(page) => return Ok(leaf_in(self.pages(), page, key)?.map(|leaf| leaf.id())),
                Child::Node(id) => self.node(id),
            };
            if node.is_leaf {
                return Ok(node.page.map(|run| run.start));
            }
            let below = node.child_for(key, self.bytes());
            child = match below.and_then(|at| node.slots.get(at, self.bytes())).map(|slot| slot.content()) {
                Some(Content::Page(page)) => Child::Page(page),
                Some(Content::Node(id)) => Child::Node(id),
                Some(Content::Value { .. }) | None => return Ok(None),
            };
        }
    }
}
