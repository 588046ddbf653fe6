//! Everything a write transaction has changed so far. Dropping it is the rollback.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::arena::{Arena, Bytes};
use super::buckets::{BucketState, Buckets, Name};
use super::effects::Effects;
use super::node::Node;
use super::slots::{At, Content, Slots};
use super::spare::Spare;
use super::undo::UndoList;
use super::view::{Child, Root, Source, View, too_deep};
use super::{BucketId, Fill, NodeId, ROOT_BUCKET};
use crate::base::BucketPath;
use crate::format::{Between, LeafPage, Page, Pgid, bucket_value};
use crate::pages::Run;
use crate::pages::Snapshot;
use crate::pages::{MAX_DEPTH, Pages};
use crate::{Error, Result};

/// The nodes, bytes and buckets of one write transaction, over the snapshot it began with.
pub(crate) struct Work {
    /// Unique in the process: a handle of another transaction is recognised by it.
    pub(crate) number: u64,
    pub(crate) base: Arc<Snapshot>,
    pub(crate) nodes: Vec<Node>,
    /// Buckets that were opened for writing, and some that were deleted since.
    pub(crate) buckets: Buckets,
    pub(crate) arena: Arena,
    /// Pages that this transaction no longer needs.
    pub(crate) freed: Vec<Run>,
    /// The highest pages of what this transaction has cut off and not looked through. All below them is to be freed.
    pub(crate) detached: Vec<Pgid>,
    /// The numbers of the buckets whose pages these are, where patches speak of them.
    pub(super) cut_off: Vec<u32>,
    pub(crate) spare: Spare,
    /// What was done so far, for a journal.
    pub(super) effects: Effects,
    /// How to get back to the savepoints; nothing is noted before there is one.
    pub(super) undo: Option<UndoList>,
    /// The commit gives up the free pages at the end of the file.
    pub(crate) lower_mark: bool,
    /// Pages by which the commit raises the high-water mark, with nothing on them.
    pub(crate) raised: u64,
    /// Something was put, created or moved, and not only deleted; also where that was undone.
    pub(crate) adds: bool,
    /// For the statistics.
    pub(crate) splits: u64,
    pub(crate) rebalances: u64,
}

impl Work {
    pub(crate) fn new(base: Arc<Snapshot>, mut spare: Spare, fill: Fill) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let root = BucketState::new(base.meta.root, base.meta.sequence, None, fill);
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            base,
            nodes: std::mem::take(&mut spare.nodes),
            buckets: std::mem::take(&mut spare.buckets).begin(root),
            arena: std::mem::take(&mut spare.arena),
            freed: std::mem::take(&mut spare.freed),
            detached: Vec::new(),
            cut_off: Vec::new(),
            effects: std::mem::take(&mut spare.effects),
            spare,
            undo: None,
            lower_mark: false,
            raised: 0,
            adds: false,
            splits: 0,
            rebalances: 0,
        }
    }

    /// What the next transaction can use of its memory. This one is over.
    pub(crate) fn take_spare(&mut self) -> Spare {
        let spare = std::mem::take(&mut self.spare);
        let (nodes, buckets) = (std::mem::take(&mut self.nodes), std::mem::take(&mut self.buckets));
        let (arena, freed) = (std::mem::take(&mut self.arena), std::mem::take(&mut self.freed));
        let effects = std::mem::take(&mut self.effects);
        Spare { arena, nodes, buckets, freed, effects, ..spare }.emptied()
    }

    /// The pages of the base, with what memory has of them, this transaction's own patches among it.
    pub(crate) fn pages(&self) -> Pages<'_> {
        match &self.spare.patcher {
            Some(patcher) => self.base.pages().with(patcher.recents()),
            None => self.base.pages(),
        }
    }

    pub(crate) fn bytes(&self) -> Bytes<'_> {
        Bytes { pages: self.pages(), arena: &self.arena }
    }

    pub(crate) fn source(&self) -> Source<'_> {
        Source { pages: self.pages(), work: Some(self) }
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }

    pub(crate) fn state(&self, id: BucketId) -> &BucketState {
        self.buckets.get(id)
    }

    pub(crate) fn state_mut(&mut self, id: BucketId) -> &mut BucketState {
        self.buckets.get_mut(id)
    }

    pub(crate) fn sequence(&self, id: BucketId) -> u64 {
        self.state(id).sequence
    }

    /// The state of a child bucket that was opened for writing.
    pub(crate) fn opened(&self, parent: BucketId, name: &[u8]) -> Option<BucketId> {
        self.buckets.opened(parent, name, self.bytes())
    }

    /// Where the bucket's tree starts now.
    pub(crate) fn root(&self, id: BucketId) -> Root<'_> {
        let state = self.state(id);
        match (state.root_node, state.inline) {
            (Some(node), _) => Root::Tree(Child::Node(node)),
            (None, None) => Root::Tree(Child::Page(state.root)),
            (None, Some((loc, len))) => {
                let page = LeafPage::parse_inline(0, self.bytes().at(loc, len));
                Root::Inline(page.expect("the page was parsed when the bucket was opened, and never changes"))
            }
        }
    }

    /// Opens a child bucket for writing.
    pub(crate) fn open_bucket(&mut self, parent: BucketId, name: &[u8]) -> Result<BucketId> {
        if let Some(id) = self.opened(parent, name) {
            return Ok(id);
        }
        let found = self.source().find(self.root(parent), name)?.ok_or_else(|| Error::bucket_not_found(name))?;
        if !found.is_bucket {
            return Err(Error::incompatible(name, false));
        }
        let (header, inline) = bucket_value(0, found.value)?;
        let (sequence, name) = (header.sequence.get(), Name::of(found.key, self.bytes()));
        let inline = inline.map(|leaf| (self.bytes().loc_of(leaf.bytes()), leaf.bytes().len()));
        let state = BucketState::new(header.root.get(), sequence, inline, self.state(ROOT_BUCKET).fill);
        let (buckets, bytes) = self.buckets_and_bytes();
        Ok(buckets.open(state, parent, name, bytes))
    }

    pub(crate) fn add_node(&mut self, node: Node) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).expect("fewer than 2^32 nodes fit in memory"));
        self.nodes.push(node);
        id
    }

    /// The bucket's root as a node: from now on it will be written again.
    pub(crate) fn root_node(&mut self, bucket: BucketId) -> Result<NodeId> {
        if let Some(id) = self.state(bucket).root_node {
            return Ok(id);
        }
        let slots = self.spare_slots();
        let node = match self.root(bucket) {
            Root::Inline(leaf) => Node::of_page(None, &Page::Leaf(leaf), slots, self.bytes())?,
            Root::Tree(child) => self.taken_apart(child, slots)?,
            Root::Read(page) => self.taken_apart(Child::Page(page.id()), slots)?,
        };
        let id = self.add_node(node);
        self.state_mut(bucket).root_node = Some(id);
        Ok(id)
    }

    fn taken_apart(&mut self, child: Child, slots: Slots) -> Result<Node> {
        let Child::Page(id) = child else { return Err(Error::corrupt(0, "a node cannot be taken apart")) };
        if self.is_patched(id) {
            return self.patched_leaf(id, slots);
        }
        let (run, bytes) = self.pages().bytes(id)?;
        Node::of_page(Some(run), &Page::parse(id, bytes)?, slots, self.bytes())
    }

    /// For a new node: empty, with room if there is some.
    pub(crate) fn spare_slots(&mut self) -> Slots {
        self.spare.slots.pop().unwrap_or_default()
    }

    /// The child at `at` of a branch, as a node, and where it then stands.
    pub(crate) fn child_node(&mut self, parent: NodeId, at: At) -> Result<(NodeId, At)> {
        let slot = self.node(parent).slots.get(at, self.bytes());
        let (slot, page) = match slot.map(|slot| (slot, slot.content())) {
            Some((_, Content::Node(child))) => return Ok((child, at)),
            Some((slot, Content::Page(page))) => (slot, Child::Page(page)),
            _ => {
                let page = self.node(parent).page.map_or(0, |run| run.start);
                return Err(Error::corrupt(page, "a branch entry is expected"));
            }
        };
        let slots = self.spare_slots();
        let node = self.taken_apart(page, slots)?;
        let id = self.add_node(node);
        let (parent, bytes) = self.node_and_bytes(parent);
        Ok((id, parent.replace(at, &slot, slot.with(Content::Node(id)), bytes)))
    }

    /// A node to be changed, and what its entries are resolved with.
    pub(crate) fn node_and_bytes(&mut self, id: NodeId) -> (&mut Node, Bytes<'_>) {
        let bytes = Bytes { pages: self.base.pages(), arena: &self.arena };
        (&mut self.nodes[id.0 as usize], bytes)
    }

    /// The opened buckets to be changed, and what their names are resolved with.
    pub(crate) fn buckets_and_bytes(&mut self) -> (&mut Buckets, Bytes<'_>) {
        let bytes = Bytes { pages: self.base.pages(), arena: &self.arena };
        (&mut self.buckets, bytes)
    }

    /// The bucket that holds this bucket's header, and its name there.
    pub(crate) fn parent_of(&self, bucket: BucketId) -> Option<(BucketId, Vec<u8>)> {
        self.state(bucket).parent.map(|(parent, name)| (parent, name.get(self.bytes()).to_vec()))
    }

    /// The bucket's name; empty for the root bucket.
    pub(crate) fn name_of(&self, bucket: BucketId) -> &[u8] {
        self.state(bucket).parent.map_or(b"", |(_, name)| name.get(self.bytes()))
    }

    /// Puts the names that lead to the bucket around those of `place`.
    pub(crate) fn wrap_in_names(&self, bucket: BucketId, place: &mut BucketPath) {
        let mut next = self.state(bucket).parent;
        while let Some((parent, name)) = next {
            place.wrap(name.get(self.bytes()));
            next = self.state(parent).parent;
        }
    }

    /// An error of a bucket that was opened names it; see [`Source::located`].
    #[cold]
    pub(crate) fn located(&self, bucket: BucketId, error: Error) -> Error {
        self.source().located(self.root(bucket), error, |place| self.wrap_in_names(bucket, place))
    }

    /// Has the leaf of `key`, and all that leads to it, written to other pages by the commit. What leads to a leaf that is
    /// a node already is left to the commit, which writes it because that leaf has changed.
    pub(crate) fn rewrite(&mut self, bucket: BucketId, key: &[u8]) -> Result<()> {
        let mut next = Some((bucket, key.to_vec()));
        while let Some((bucket, key)) = next {
            let nodes = self.nodes.len();
            self.leaf_node(bucket, &key)?;
            next = if self.nodes.len() > nodes { self.parent_of(bucket) } else { None };
        }
        Ok(())
    }

    /// The leaf of `bucket` that `key` belongs to, and its ancestors, as nodes.
    pub(crate) fn leaf_node(&mut self, bucket: BucketId, key: &[u8]) -> Result<NodeId> {
        self.leaf_between(bucket, key).map(|(leaf, _)| leaf)
    }

    /// The same, and what its branch says of its keys.
    pub(crate) fn leaf_between(&mut self, bucket: BucketId, key: &[u8]) -> Result<(NodeId, Between)> {
        let root = self.root_node(bucket)?;
        self.leaf_below((root, Between::ANY), key, MAX_DEPTH)
    }

    /// The same from a node on, of whose keys something is known, in so many levels.
    fn leaf_below(
        &mut self,
        (mut id, mut between): (NodeId, Between),
        key: &[u8],
        levels: usize,
    ) -> Result<(NodeId, Between)> {
        for _ in 0..levels {
            let node = self.node(id);
            if node.is_leaf {
                return Ok((id, between));
            }
            let at = node.slots.search_between(key, between, self.bytes());
            let at = node.child_at_or_before(at).ok_or_else(|| Error::corrupt(0, "a branch without children"))?;
            between = node.slots.between(at, self.bytes());
            (id, _) = self.child_node(id, at)?;
        }
        Err(too_deep(&View::Node(self.node(id), self.bytes())))
    }

    /// The leaf of `bucket` that has a value under `key`, as a node, and where it stands there. What is not there takes no
    /// page apart: the pages below the lowest node on the way are looked at first.
    pub(super) fn leaf_with_value(&mut self, bucket: BucketId, key: &[u8]) -> Result<Option<(NodeId, At)>> {
        let (mut root, mut between, mut lowest) = (self.root(bucket), Between::ANY, None);
        let mut levels = MAX_DEPTH;
        while let Root::Tree(Child::Node(id)) = root {
            let slots = &self.node(id).slots;
            let found = slots.search_between(key, between, self.bytes());
            if self.node(id).is_leaf {
                return found.ok().map(|at| self.value_at(id, at, key)).transpose();
            }
            let at = self.node(id).child_at_or_before(found);
            let at = at.ok_or_else(|| Error::corrupt(0, "a branch without children"))?;
            between = slots.between(at, self.bytes());
            let view = View::Node(self.node(id), self.bytes());
            levels = levels.checked_sub(1).ok_or_else(|| too_deep(&view))?;
            (root, lowest) = (Root::Tree(view.child(at)?), Some((id, at)));
        }
        match self.source().find_telling(root, key, between, |_| ())? {
            None => return Ok(None),
            Some(found) if found.is_bucket => return Err(Error::incompatible(key, true)),
            Some(_) => {}
        }
        let top = match lowest {
            Some((parent, at)) => self.child_node(parent, at)?.0,
            None => self.root_node(bucket)?,
        };
        let (leaf, between) = self.leaf_below((top, between), key, levels)?;
        Ok(self.node(leaf).slots.search_between(key, between, self.bytes()).ok().map(|at| (leaf, at)))
    }

    /// The same place, where there is no bucket.
    fn value_at(&self, leaf: NodeId, at: At, key: &[u8]) -> Result<(NodeId, At)> {
        match self.node(leaf).slots.get(at, self.bytes()).map(|slot| slot.content()) {
            Some(Content::Value { is_bucket: true, .. }) => Err(Error::incompatible(key, true)),
            _ => Ok((leaf, at)),
        }
    }
}
