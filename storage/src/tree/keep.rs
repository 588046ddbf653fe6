//! Leaves that stay where they are: what a commit has put to them is kept in memory, as a patch of their pages, and neither
//! they nor the branches above them are written. A later commit takes them in, and writes what has gathered at once.

use std::collections::HashMap;
use std::sync::Arc;

use fnv::FnvBuildHasher;

use super::node::Node;
use super::slots::{Chunk, Content, Slot, Slots, Stretch};
use super::view::Child;
use super::work::Work;
use super::{BucketId, Fill, NodeId, ROOT_BUCKET};
use crate::format::{LeafEntry, PAGE_HEADER, Page, PageWriter, Patch, Patched, Pgid};
use crate::pages::{LeafPlace, PatchMemory, PlacedPatch, Run};
use crate::{Error, Result};

/// The longest key of a leaf's place, in bytes: what is kept of each.
const LONGEST_KEY: usize = 256;

/// What a commit may keep, and keeps.
#[derive(Debug)]
pub(crate) struct Keeping {
    pub(crate) memory: PatchMemory,
    /// Leaves up to this place have been written anew, and are not to wait for that again.
    pub(crate) written_up_to: Option<Arc<LeafPlace>>,
    /// The pages that stay, each with what is to be kept of it; nothing, where it is as it was in the file.
    pub(crate) kept: Vec<(Pgid, Option<Arc<PlacedPatch>>)>,
    names: HashMap<u32, Arc<[Box<[u8]>]>, FnvBuildHasher>,
}

impl Keeping {
    pub(crate) fn new(memory: PatchMemory, written_up_to: Option<Arc<LeafPlace>>) -> Self {
        Self { memory, written_up_to, kept: Vec::new(), names: HashMap::default() }
    }
}

impl Work {
    /// Has the leaf of a patched page written anew by this commit.
    pub(crate) fn take_in(&mut self, place: &LeafPlace, page: Pgid) -> Result<()> {
        let bucket = self.open_path(&place.bucket)?;
        let leaf = self.leaf_node(bucket, &place.key)?;
        let node = self.node_mut(leaf);
        if node.page.is_none_or(|run| run.start != page) {
            return Err(Error::corrupt(page, "a leaf that was changed is not where it was"));
        }
        node.moves = true;
        Ok(())
    }

    /// Page `id` as a node, with what was changed of it since it was written.
    pub(super) fn taken_apart(&mut self, child: Child, slots: Slots) -> Result<Node> {
        let Child::Page(id) = child else { return Err(Error::corrupt(0, "a node cannot be taken apart")) };
        let base = Arc::clone(&self.base);
        let (run, bytes) = base.pages().bytes(id)?;
        let page = Page::parse(id, bytes)?;
        let Some(patch) = base.pages().patch(id) else { return Node::of_page(Some(run), &page, slots, self.bytes()) };
        let stretch = Stretch::of_page(&page, self.bytes()).map(|(stretch, _)| stretch);
        let mut node = Node { page: Some(run), slots, ..Node::new(true) };
        let mut own = 0..0;
        for entry in patch.entries() {
            match entry {
                Ok(index) if usize::from(index) == own.end && own.start < own.end => own.end += 1,
                Ok(index) => {
                    self.push_part(&mut node, stretch, own);
                    own = usize::from(index)..usize::from(index) + 1;
                }
                Err(LeafEntry { key, value, is_bucket }) => {
                    self.push_part(&mut node, stretch, std::mem::take(&mut own));
                    let len = u32::try_from(value.len()).expect("a patch is shorter than a page");
                    let loc = self.arena.push(key, value);
                    node.push(Slot::new(key, loc, Content::Value { len, is_bucket }));
                }
            }
        }
        self.push_part(&mut node, stretch, own);
        Ok(node)
    }

    fn push_part(&self, node: &mut Node, stretch: Option<Stretch>, part: std::ops::Range<usize>) {
        if let Some(part) = stretch.and_then(|stretch| stretch.part(part.start, part.end)) {
            node.push_stretch(part, part.size(self.bytes()), self.bytes());
        }
    }

    /// Keeps what it can of a bucket that was changed, where anything is to be kept; what then is as the file has it is no
    /// node any more.
    pub(super) fn keep_leaves(&mut self, bucket: BucketId) {
        let state = self.state(bucket);
        let (Some(root), false, Fill::Auto) = (state.root_node, state.deleted, state.fill) else { return };
        // Its header is written with its root.
        let may_stay = state.sequence == state.stored_sequence && (bucket == ROOT_BUCKET || !self.fits_inline(root));
        let Some(mut keeping) = self.keeping.take() else { return };
        if self.keep_below(root, bucket, may_stay, &mut keeping) {
            self.state_mut(bucket).root_node = None;
        }
        self.keeping = Some(keeping);
    }

    /// Whether node `id` may be forgotten.
    fn keep_below(&mut self, id: NodeId, bucket: BucketId, may_stay: bool, keeping: &mut Keeping) -> bool {
        if self.node(id).is_leaf {
            return may_stay && self.keep_leaf(id, bucket, keeping).is_some();
        }
        let (mut next, mut all_stay) = (self.node(id).slots.first(), may_stay);
        while let Some(mut at) = next {
            if let Some(child) = self.node(id).child_at(at) {
                let page = self.node(child).page;
                if self.keep_below(child, bucket, true, keeping)
                    && let Some(run) = page
                    && let Some(slot) = self.node(id).slots.get(at, self.bytes())
                {
                    let (node, bytes) = self.node_and_bytes(id);
                    at = node.replace(at, &slot, slot.with(Content::Page(run.start)), bytes);
                } else {
                    all_stay = false;
                }
            }
            next = self.node(id).slots.next_changed(at);
        }
        all_stay && self.is_as_on_its_page(id)
    }

    /// Whether a branch says what the page says that it was made of.
    fn is_as_on_its_page(&self, id: NodeId) -> bool {
        let node = self.node(id);
        let Some(run) = node.page.filter(|_| !node.moves) else { return false };
        let Ok(Page::Branch(page)) = self.pages().page(run.start) else { return false };
        let (mut index, bytes) = (0, self.bytes());
        for chunk in node.slots.chunks() {
            match chunk {
                Chunk::Untouched(stretch) => {
                    let Some(elements) = stretch.elements_of(run, bytes) else { return false };
                    if usize::from(elements.start) != index {
                        return false;
                    }
                    index += elements.len();
                }
                Chunk::Changed(slots) => {
                    for slot in slots.range(0..slots.len()) {
                        let (Ok(key), Ok(child)) = (page.key(index), page.child(index)) else { return false };
                        if slot.content() != Content::Page(child) || slot.key(bytes) != key {
                            return false;
                        }
                        index += 1;
                    }
                }
            }
        }
        index == page.len()
    }

    fn keep_leaf(&self, id: NodeId, bucket: BucketId, keeping: &mut Keeping) -> Option<()> {
        let node = self.node(id);
        let run = node.page.filter(|run| run.len == 1 && !node.moves)?;
        let before = self.pages().patch(run.start);
        let names = keeping.names.entry(bucket.0).or_insert_with(|| self.names_of(bucket));
        let place = match before.map(|before| &before.place) {
            // Unless the bucket was moved.
            Some(place) if place.bucket == *names => Arc::clone(place),
            Some(place) => Arc::new(LeafPlace { bucket: Arc::clone(names), key: place.key.clone() }),
            None => self.place_of(run.start, names)?,
        };
        if keeping.written_up_to.as_ref().is_some_and(|written| place <= *written) {
            return None;
        }
        let patch = self.patch_of(node, run)?;
        let placed = patch.map(|patch| Arc::new(PlacedPatch::new(patch, place, &keeping.memory)));
        if before.is_some() || placed.is_some() {
            keeping.kept.push((run.start, placed));
        }
        Some(())
    }

    /// Where the leaf on page `id`, of which nothing was changed before, is found.
    fn place_of(&self, id: Pgid, names: &Arc<[Box<[u8]>]>) -> Option<Arc<LeafPlace>> {
        let Ok(Page::Leaf(leaf)) = self.pages().page(id) else { return None };
        let key = if leaf.len() == 0 { &[] } else { leaf.key(0).ok()? };
        if key.len() > LONGEST_KEY {
            return None;
        }
        Some(Arc::new(LeafPlace { bucket: Arc::clone(names), key: key.into() }))
    }

    /// The names that lead to a bucket, from the outermost in.
    fn names_of(&self, bucket: BucketId) -> Arc<[Box<[u8]>]> {
        let mut names = Vec::new();
        let mut next = self.state(bucket).parent;
        while let Some((parent, name)) = next {
            names.push(Box::from(name.get(self.bytes())));
            next = self.state(parent).parent;
        }
        names.into_iter().rev().collect()
    }

    /// What is to be kept of a leaf that was on the page `run`: `None` where it is to be written; a patch, or nothing where it
    /// is as the page has it.
    fn patch_of(&self, node: &Node, run: Run) -> Option<Option<Patch>> {
        let (bytes, page_size) = (self.bytes(), self.pages().page_size());
        if node.size() > page_size || node.slots.len() > Patch::MOST {
            return None;
        }
        let (mut entries, mut put, mut size) = (Vec::with_capacity(node.slots.len()), Vec::new(), PAGE_HEADER);
        for chunk in node.slots.chunks() {
            match chunk {
                Chunk::Untouched(stretch) => entries.extend(stretch.elements_of(run, bytes)?.map(Patched::Own)),
                Chunk::Changed(slots) => {
                    for slot in slots.range(0..slots.len()) {
                        size += slot.size();
                        entries.push(Patched::Put);
                        put.push(*slot);
                    }
                }
            }
        }
        // Then the page is as soon written as patched, and read faster.
        if size > page_size / 2 {
            return None;
        }
        let Ok((_, page)) = self.pages().bytes(run.start) else { return None };
        let own = Page::parse(run.start, page).ok()?.len();
        if own > Patch::MOST {
            return None;
        }
        if put.is_empty() && entries.len() == own {
            return Some(None);
        }
        let mut buffer = vec![0; size];
        let mut page = PageWriter::leaf(&mut buffer, run.start, 0, put.len());
        for slot in &put {
            let Content::Value { is_bucket, .. } = slot.content() else { return None };
            let (key_len, data) = slot.data(bytes);
            page.entry(key_len, data, is_bucket);
        }
        Some(Some(Patch::new(entries.into_iter(), buffer)))
    }
}
