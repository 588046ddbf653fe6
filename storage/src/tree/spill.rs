//! Giving every changed node its pages, at commit: split, allocate, and tell the parent.

use super::arena::Loc;
use super::cut::{Cut, cuts};
use super::node::{Growth, Node};
use super::slots::{At, Chunk, Content, Slot};
use super::work::Work;
use super::{BucketId, Fill, NodeId, ROOT_BUCKET};
use crate::format::{BUCKET_HEADER, BucketHeader, LeafEntry, MAX_ELEMENTS, PageWriter, Pgid};
use crate::pages::Run;
use crate::pages::{Allocator, Lasts};
use crate::{Error, Result};
use zerocopy::IntoBytes as _;

/// Where a node begins.
const START: At = At { chunk: 0, index: 0 };

/// A page to be written: some entries of a node.
pub(crate) struct Part {
    pub(crate) run: Run,
    node: NodeId,
    from: At,
    count: usize,
}

impl Work {
    /// Gives pages to everything that was changed; returns the root bucket's root page and the
    /// pages to be written.
    pub(crate) fn spill(&mut self, allocator: &mut Allocator<'_>) -> Result<(Pgid, Vec<Part>)> {
        let mut parts = std::mem::take(&mut self.spare.parts);
        let mut top_down = std::mem::take(&mut self.spare.order);
        self.buckets.top_down(&mut top_down);
        for &bucket in top_down[1..].iter().rev() {
            self.spill_child_bucket(bucket, allocator, &mut parts)?;
        }
        self.spare.order = top_down;
        if let Some(root) = self.state(ROOT_BUCKET).root_node {
            let root = self.spill_root(root, self.state(ROOT_BUCKET).fill, Lasts::Briefly, allocator, &mut parts)?;
            self.state_mut(ROOT_BUCKET).root = root;
        }
        Ok((self.state(ROOT_BUCKET).root, parts))
    }

    /// Writes a changed bucket's pages, or its inline page, and its header into its parent.
    fn spill_child_bucket(
        &mut self,
        bucket: BucketId,
        allocator: &mut Allocator<'_>,
        parts: &mut Vec<Part>,
    ) -> Result<()> {
        let state = self.state(bucket);
        let (false, Some(root)) = (state.deleted, state.root_node) else { return Ok(()) };
        let Some((parent, name)) = state.parent else { return Ok(()) };
        let (fill, sequence) = (state.fill, state.sequence);
        let mut entry = std::mem::take(&mut self.spare.entry);
        entry.clear();
        entry.extend_from_slice(name.get(self.bytes()));
        let value_start = entry.len();
        let page_start = value_start + BUCKET_HEADER;
        entry.resize(page_start, 0);
        let root = if self.fits_inline(root) {
            let node = self.node(root);
            entry.resize(page_start + node.size(), 0);
            let mut page = PageWriter::leaf(&mut entry[page_start..], 0, 0, node.slots.len());
            node.slots.write(START, node.slots.len(), &mut page, self.bytes());
            self.freed.extend(node.page);
            0
        } else {
            // The root of a tree of several levels changes with every commit that changes any page below it.
            let lasts = if self.node(root).is_leaf { Lasts::Long } else { Lasts::Briefly };
            self.spill_root(root, fill, lasts, allocator, parts)?
        };
        let header = BucketHeader { root: root.into(), sequence: sequence.into() };
        entry[value_start..page_start].copy_from_slice(header.as_bytes());
        let (key, value) = entry.split_at(value_start);
        self.put_entry(parent, LeafEntry { key, value, is_bucket: true })?;
        self.spare.entry = entry;
        Ok(())
    }

    /// Whether a bucket's root is a single leaf without buckets that takes up to a quarter page.
    fn fits_inline(&self, root: NodeId) -> bool {
        let node = self.node(root);
        node.is_leaf
            && node.size() <= self.pages().page_size() / 4
            && node.slots.len() <= MAX_ELEMENTS
            && !node.slots.has_bucket(self.bytes())
    }

    /// Spills a tree; while its root comes out in several parts, a new root goes on top.
    fn spill_root(
        &mut self,
        root: NodeId,
        fill: Fill,
        lasts: Lasts,
        allocator: &mut Allocator<'_>,
        parts: &mut Vec<Part>,
    ) -> Result<Pgid> {
        let mut count = self.spill_node(root, fill, lasts, allocator, parts)?;
        let growth = self.node(root).growth;
        while count > 1 {
            let mut node = Node { growth, slots: self.spare_slots(), ..Node::new(false) };
            self.hand_over(count, &mut node);
            let node = self.add_node(node);
            count = self.write_parts(node, fill, lasts, allocator, parts)?;
        }
        match self.spare.children.pop().map(|only| only.content()) {
            Some(Content::Page(id)) => Ok(id),
            _ => Err(Error::corrupt(0, "a spilled node has no page")),
        }
    }

    /// Gives the last `count` of the spilled children to their parent.
    fn hand_over(&mut self, count: usize, parent: &mut Node) {
        let from = self.spare.children.len() - count;
        self.spare.children.drain(from..).for_each(|child| parent.push(child));
    }

    /// Gives pages to a node and to what was changed below it. Its slots for the parent are then the last of the
    /// [`children`](super::spare::Spare::children); returns how many they are.
    fn spill_node(
        &mut self,
        id: NodeId,
        fill: Fill,
        lasts: Lasts,
        allocator: &mut Allocator<'_>,
        parts: &mut Vec<Part>,
    ) -> Result<usize> {
        if !self.node(id).is_leaf {
            self.spill_children(id, fill, allocator, parts)?;
        }
        self.write_parts(id, fill, lasts, allocator, parts)
    }

    /// Spills the children of a branch, whose slots then name their new pages and first keys.
    fn spill_children(
        &mut self,
        id: NodeId,
        fill: Fill,
        allocator: &mut Allocator<'_>,
        parts: &mut Vec<Part>,
    ) -> Result<()> {
        let old = std::mem::take(&mut self.node_mut(id).slots);
        let mut spilled = Node { page: self.node(id).page, slots: self.spare_slots(), ..Node::new(false) };
        let mut left = old.len();
        for chunk in old.chunks() {
            let slots = match chunk {
                Chunk::Untouched(stretch) => {
                    left -= stretch.len();
                    spilled.push_stretch(*stretch, stretch.size(self.bytes()), self.bytes());
                    continue;
                }
                Chunk::Changed(slots) => slots,
            };
            for &slot in slots.range(0..slots.len()) {
                left -= 1;
                let Content::Node(child) = slot.content() else {
                    spilled.push(slot);
                    continue;
                };
                let count = self.spill_node(child, fill, Lasts::Long, allocator, parts)?;
                if count > 1 {
                    let appended = left == 0 && spilled.growth == Growth::None;
                    spilled.growth = if appended { Growth::Appended } else { Growth::Mixed };
                }
                self.hand_over(count, &mut spilled);
            }
        }
        self.spare.slots.push(old.emptied());
        *self.node_mut(id) = spilled;
        Ok(())
    }

    /// Splits a node and allocates its parts, from left to right. A part that is all that was on the node's page, as
    /// when something was inserted beside a large value, is not written again: its page stays, unless bbolt's rule is
    /// asked for. The parts' slots and their number are left as by [`Self::spill_node`].
    fn write_parts(
        &mut self,
        id: NodeId,
        fill: Fill,
        lasts: Lasts,
        allocator: &mut Allocator<'_>,
        parts: &mut Vec<Part>,
    ) -> Result<usize> {
        let page_size = self.pages().page_size();
        let mut replaced = self.node_mut(id).page.take();
        let mut children = std::mem::take(&mut self.spare.children);
        let mut all_cuts = std::mem::take(&mut self.spare.cuts);
        all_cuts.clear();
        let node = &self.nodes[id.0 as usize];
        let mut from = node.slots.first();
        cuts(node, self.bytes(), fill, page_size, &mut all_cuts);
        let is_as_written = !replaced.is_some_and(|run| self.is_patched(run.start));
        let may_stay = all_cuts.len() > 1 && fill == Fill::Auto && is_as_written;
        for &Cut { count, size } in &all_cuts {
            let at = from.unwrap_or(START);
            let stays = may_stay && replaced.is_some_and(|run| node.slots.is_all_of(run, at, count, self.bytes()));
            let run = if let Some(run) = replaced.take_if(|_| stays) {
                run
            } else {
                let run = allocator.allocate(size.div_ceil(page_size) as u64, lasts)?;
                if let Some(old) = replaced.filter(|_| !node.is_leaf) {
                    self.spare.branches.push((old.start, run.start));
                }
                parts.push(Part { run, node: id, from: at, count });
                run
            };
            // Only the root of an empty bucket has no first key, and it has no parent either.
            let first = node
                .slots
                .get(at, self.bytes())
                .unwrap_or_else(|| Slot::new(&[], Loc::EMPTY, Content::Page(run.start)));
            children.push(first.with(Content::Page(run.start)));
            from = node.slots.skip(at, count);
        }
        let count = all_cuts.len();
        self.freed.extend(replaced);
        self.splits += count as u64 - 1;
        (self.spare.children, self.spare.cuts) = (children, all_cuts);
        Ok(count)
    }

    /// Writes a part over `page`, which is as long as its run.
    pub(crate) fn encode(&self, part: &Part, page: &mut [u8]) {
        let node = self.node(part.node);
        let overflow = u32::try_from(part.run.len - 1).expect("a part is at most 2^32 bytes and its elements");
        let begin = if node.is_leaf { PageWriter::leaf } else { PageWriter::branch };
        let mut page = begin(page, part.run.start, overflow, part.count);
        node.slots.write(part.from, part.count, &mut page, self.bytes());
        page.finish();
    }
}
