//! Giving every changed node its pages, at commit: split, allocate, and tell the parent.

use super::arena::Loc;
use super::node::{Growth, Node, slot_size};
use super::slots::{At, Content, Slot, Slots};
use super::work::Work;
use super::{BucketId, Fill, NodeId, ROOT_BUCKET};
use crate::format::{BUCKET_HEADER, BucketHeader, LeafEntry, MAX_ELEMENTS, PAGE_HEADER, Pgid, branch_page, leaf_page};
use crate::freelist::{Freelist, Run};
use crate::{Error, Result};
use zerocopy::IntoBytes as _;

/// Fewest entries of a part but the last, which has at least one more. A node is split only if it
/// has more than twice as many.
const MIN_KEYS: usize = 2;

/// Hands out pages to one commit.
pub(super) struct Allocator<'a> {
    pub(super) freelist: &'a mut Freelist,
    /// The high-water mark as it will be.
    pub(super) mark: Pgid,
    /// What came from the freelist, to be given back if the commit fails.
    pub(super) taken: Vec<Run>,
    /// Everything handed out.
    pub(super) all: Vec<Run>,
}

impl Allocator<'_> {
    pub(super) fn allocate(&mut self, pages: u64) -> Result<Run> {
        let run = if let Some(start) = self.freelist.take(pages) {
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
}

/// A page to be written: some entries of a node.
pub(super) struct Part {
    pub(super) run: Run,
    node: NodeId,
    from: At,
    count: usize,
}

impl Work {
    /// Gives pages to everything that was changed; returns the root bucket's root page and the
    /// pages to be written.
    pub(super) fn spill(&mut self, allocator: &mut Allocator<'_>) -> Result<(Pgid, Vec<Part>)> {
        let mut parts = Vec::new();
        let top_down = self.open_buckets();
        for &bucket in top_down[1..].iter().rev() {
            self.spill_child_bucket(bucket, allocator, &mut parts)?;
        }
        if let Some(root) = self.state(ROOT_BUCKET).root_node {
            let root = self.spill_root(root, self.state(ROOT_BUCKET).fill, allocator, &mut parts)?;
            self.state_mut(ROOT_BUCKET).root = root;
        }
        Ok((self.state(ROOT_BUCKET).root, parts))
    }

    /// The root bucket and all buckets that were opened for writing, each after its parent.
    fn open_buckets(&self) -> Vec<BucketId> {
        let mut found = vec![ROOT_BUCKET];
        let mut next = 0;
        while let Some(&bucket) = found.get(next) {
            found.extend(self.state(bucket).children.values());
            next += 1;
        }
        found
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
        let (fill, sequence) = (state.fill, state.sequence);
        let mut value = vec![0; BUCKET_HEADER];
        let root = if self.fits_inline(root) {
            let node = self.node(root);
            value.resize(BUCKET_HEADER + node.size(), 0);
            let entries = leaf_entries(node, self, node.slots.first(), node.slots.len());
            leaf_page(&mut value[BUCKET_HEADER..], 0, 0, node.slots.len(), entries);
            self.freed.extend(node.page);
            0
        } else {
            self.spill_root(root, fill, allocator, parts)?
        };
        let header = BucketHeader { root: root.into(), sequence: sequence.into() };
        value[..BUCKET_HEADER].copy_from_slice(header.as_bytes());
        let Some((parent, name)) = self.state_mut(bucket).parent.take() else { return Ok(()) };
        self.put_entry(parent, LeafEntry { key: &name, value: &value, is_bucket: true })
    }

    /// Whether a bucket's root is a single leaf without buckets that takes up to a quarter page.
    fn fits_inline(&self, root: NodeId) -> bool {
        let node = self.node(root);
        node.is_leaf
            && node.size() <= self.pages().page_size() / 4
            && node.slots.len() <= MAX_ELEMENTS
            && !node.slots.iter().any(|slot| matches!(slot.content, Content::Value { is_bucket: true, .. }))
    }

    /// Spills a tree; while its root comes out in several parts, a new root goes on top.
    fn spill_root(
        &mut self,
        root: NodeId,
        fill: Fill,
        allocator: &mut Allocator<'_>,
        parts: &mut Vec<Part>,
    ) -> Result<Pgid> {
        let mut children = self.spill_node(root, fill, allocator, parts)?;
        let growth = self.node(root).growth;
        loop {
            if let [only] = children.as_slice() {
                return match only.content {
                    Content::Page(id) => Ok(id),
                    _ => Err(Error::corrupt(0, "a spilled node has no page")),
                };
            }
            let mut node = Node { growth, ..Node::new(false) };
            for slot in children {
                node.push(slot);
            }
            let node = self.add_node(node);
            children = self.write_parts(node, fill, allocator, parts)?;
        }
    }

    /// Gives pages to a node and to what was changed below it; returns its slots for the parent.
    fn spill_node(
        &mut self,
        id: NodeId,
        fill: Fill,
        allocator: &mut Allocator<'_>,
        parts: &mut Vec<Part>,
    ) -> Result<Vec<Slot>> {
        if !self.node(id).is_leaf {
            self.spill_children(id, fill, allocator, parts)?;
        }
        self.write_parts(id, fill, allocator, parts)
    }

    /// Spills the children of a branch, whose slots then name their new pages and first keys.
    fn spill_children(
        &mut self,
        id: NodeId,
        fill: Fill,
        allocator: &mut Allocator<'_>,
        parts: &mut Vec<Part>,
    ) -> Result<()> {
        let old: Slots = std::mem::take(&mut self.node_mut(id).slots);
        let mut spilled = Node { page: self.node(id).page, ..Node::new(false) };
        let mut left = old.len();
        for slot in old.iter() {
            left -= 1;
            let Content::Node(child) = slot.content else {
                spilled.push(*slot);
                continue;
            };
            let children = self.spill_node(child, fill, allocator, parts)?;
            if children.len() > 1 {
                let appended = left == 0 && spilled.growth == Growth::None;
                spilled.growth = if appended { Growth::Appended } else { Growth::Mixed };
            }
            for child in children {
                spilled.push(child);
            }
        }
        *self.node_mut(id) = spilled;
        Ok(())
    }

    /// Splits a node and allocates its parts, from left to right.
    fn write_parts(
        &mut self,
        id: NodeId,
        fill: Fill,
        allocator: &mut Allocator<'_>,
        parts: &mut Vec<Part>,
    ) -> Result<Vec<Slot>> {
        let page_size = self.pages().page_size();
        let replaced = self.node_mut(id).page.take();
        self.freed.extend(replaced);
        let node = &self.nodes[id.0 as usize];
        let mut slots = Vec::new();
        let mut from = node.slots.first();
        for Cut { count, size } in cuts(node, page_size, fill.of_split(node.growth, page_size)) {
            let run = allocator.allocate(size.div_ceil(page_size) as u64)?;
            let Some(at) = from else {
                // Only the root of an empty bucket has no first key, and it has no parent either.
                parts.push(Part { run, node: id, from: At { chunk: 0, index: 0 }, count: 0 });
                return Ok(vec![Slot::new(&[], Loc::EMPTY, Content::Page(run.start))]);
            };
            parts.push(Part { run, node: id, from: at, count });
            if let Some(first) = node.slots.get(at) {
                slots.push(first.with(Content::Page(run.start)));
            }
            from = node.slots.skip(at, count);
        }
        self.splits += slots.len() as u64 - 1;
        Ok(slots)
    }

    /// Writes a part into `page`, which is zeroed and as long as its run.
    pub(super) fn encode(&self, part: &Part, page: &mut [u8]) {
        let node = self.node(part.node);
        let overflow = u32::try_from(part.run.len - 1).expect("a part is at most 2^32 bytes and its elements");
        if node.is_leaf {
            let entries = leaf_entries(node, self, Some(part.from), part.count);
            leaf_page(page, part.run.start, overflow, part.count, entries);
        } else {
            let bytes = self.bytes();
            let children = node.slots.iter_from(part.from).take(part.count).filter_map(|slot| match slot.content {
                Content::Page(child) => Some((slot.key(bytes), child)),
                _ => None,
            });
            branch_page(page, part.run.start, overflow, part.count, children);
        }
    }
}

fn leaf_entries<'a>(
    node: &'a Node,
    work: &'a Work,
    from: Option<At>,
    count: usize,
) -> impl Iterator<Item = LeafEntry<'a>> {
    let bytes = work.bytes();
    let slots = from.into_iter().flat_map(|at| node.slots.iter_from(at));
    slots.take(count).filter_map(move |slot| slot.entry(bytes))
}

/// One part of a node: so many entries, which take so many bytes with the page's header.
struct Cut {
    count: usize,
    size: usize,
}

/// Where bbolt would split a node, and further where its rule leaves a part that no page can hold.
fn cuts(node: &Node, page_size: usize, threshold: usize) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let mut sizes = node.slots.iter().map(slot_size).peekable();
    let (mut left, mut left_size) = (node.slots.len(), node.size());
    loop {
        let whole = left <= 2 * MIN_KEYS || left_size < page_size;
        let most = if whole { left } else { left - MIN_KEYS - 1 };
        let mut cut = Cut { count: 0, size: PAGE_HEADER };
        while cut.count < most {
            let Some(&size) = sizes.peek() else { break };
            let full = !whole && cut.count >= MIN_KEYS && cut.size + size > threshold;
            if full || !can_hold(&cut, size) {
                break;
            }
            sizes.next();
            cut.count += 1;
            cut.size += size;
        }
        left -= cut.count;
        left_size -= cut.size - PAGE_HEADER;
        cuts.push(cut);
        if left == 0 {
            return cuts;
        }
    }
}

/// Whether a page can hold one more entry: its count and the offsets in it have 16 and 32 bits.
fn can_hold(cut: &Cut, size: usize) -> bool {
    let offsets_fit = u32::try_from(cut.size + size).is_ok();
    cut.count == 0 || (cut.count < MAX_ELEMENTS && offsets_fit)
}

impl Fill {
    /// The size in bytes up to which a part is filled.
    fn of_split(self, growth: Growth, page_size: usize) -> usize {
        match self {
            Self::Auto if growth == Growth::Appended => page_size,
            other => other.threshold(page_size),
        }
    }
}
