//! A page that a write transaction has taken apart.

use super::arena::Bytes;
use super::slots::{At, Content, Slot, Slots};
use crate::Result;
use crate::format::{BranchPage, ELEMENT, LeafPage, PAGE_HEADER};
use crate::freelist::Run;

/// How the entries of a node came to be more, for `Fill::Auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Growth {
    /// Nothing was inserted.
    #[default]
    None,
    /// Every insert came after the then last key.
    Appended,
    /// Some came elsewhere.
    Mixed,
}

/// A leaf or branch in memory. Its keys and values stay where they lie: in the map, or in the arena.
#[derive(Default)]
pub(crate) struct Node {
    pub(crate) is_leaf: bool,
    /// The pages it was read from, which its successor replaces.
    pub(crate) page: Option<Run>,
    pub(crate) slots: Slots,
    /// Bytes of the elements and their data, without the page's header.
    pub(super) content: usize,
    /// Something was deleted: commit looks whether it should be merged.
    pub(crate) unbalanced: bool,
    pub(crate) growth: Growth,
}

impl Node {
    pub(crate) fn new(is_leaf: bool) -> Self {
        Self { is_leaf, ..Self::default() }
    }

    /// Takes a leaf apart. `run` is `None` for an inline page, which has no pages to free.
    pub(crate) fn of_leaf(run: Option<Run>, leaf: &LeafPage<'_>, bytes: Bytes<'_>) -> Result<Self> {
        let mut node = Self { page: run, ..Self::new(true) };
        let page = bytes.loc_of(leaf.bytes());
        for index in 0..leaf.len() {
            let entry = leaf.entry(index)?;
            let key = page.plus(leaf.offset_of(entry.key));
            let len = u32::try_from(entry.value.len()).expect("vsize is a u32");
            let content = Content::Value { loc: key.plus(entry.key.len()), len, is_bucket: entry.is_bucket };
            node.push(Slot::new(entry.key, key, content));
        }
        Ok(node)
    }

    /// Takes a branch apart.
    pub(crate) fn of_branch(run: Run, branch: &BranchPage<'_>, bytes: Bytes<'_>) -> Result<Self> {
        let mut node = Self { page: Some(run), ..Self::new(false) };
        let page = bytes.loc_of(branch.bytes());
        for index in 0..branch.len() {
            let key = branch.key(index)?;
            node.push(Slot::new(key, page.plus(branch.offset_of(key)), Content::Page(branch.child(index)?)));
        }
        Ok(node)
    }

    /// Bytes that it takes on pages.
    pub(crate) fn size(&self) -> usize {
        PAGE_HEADER + self.content
    }

    pub(crate) fn push(&mut self, slot: Slot) {
        self.content += slot_size(&slot);
        self.slots.push(slot);
    }

    pub(crate) fn insert(&mut self, at: At, slot: Slot) {
        self.content += slot_size(&slot);
        let appended = self.slots.insert(at, slot);
        self.growth = match self.growth {
            Growth::None | Growth::Appended if appended => Growth::Appended,
            _ => Growth::Mixed,
        };
    }

    pub(crate) fn replace(&mut self, at: At, content: Content) {
        if let Some(slot) = self.slots.get_mut(at) {
            self.content -= slot_size(slot);
            *slot = slot.with(content);
            self.content += slot_size(slot);
        }
    }

    pub(crate) fn remove(&mut self, at: At) -> Slot {
        self.unbalanced = true;
        self.take(at)
    }

    /// Removes what was inserted and is undone: that unbalances nothing.
    pub(crate) fn take(&mut self, at: At) -> Slot {
        let slot = self.slots.remove(at);
        self.content -= slot_size(&slot);
        slot
    }

    /// Gives away all entries, with the bytes that they take.
    pub(crate) fn take_slots(&mut self) -> (usize, Slots) {
        (std::mem::take(&mut self.content), std::mem::take(&mut self.slots))
    }

    /// Takes over what its right neighbour gave away.
    pub(crate) fn append(&mut self, content: usize, slots: Slots) {
        self.content += content;
        self.slots.append(slots);
        self.growth = Growth::Mixed;
    }

    /// The child at `at`, if this transaction has taken it apart.
    pub(crate) fn child_at(&self, at: At) -> Option<super::NodeId> {
        match self.slots.get(at)?.content {
            Content::Node(child) => Some(child),
            Content::Page(_) | Content::Value { .. } => None,
        }
    }

    /// The child in whose subtree `key` lies; `None` where there are no children.
    pub(crate) fn child_for(&self, key: &[u8], bytes: Bytes<'_>) -> Option<At> {
        match self.slots.search(key, bytes) {
            Ok(at) => Some(at),
            Err(at) => self.slots.prev(at).or(self.slots.first()),
        }
    }
}

/// Bytes of a slot on a page: the element, the key and the value.
pub(crate) fn slot_size(slot: &Slot) -> usize {
    ELEMENT + slot.key_len() + slot.value_len()
}
