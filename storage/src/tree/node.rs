//! A page that a write transaction has taken apart.

use super::arena::Bytes;
use super::slots::{At, Content, Slot, Slots, Stretch};
use crate::format::{PAGE_HEADER, Page};
use crate::pages::Run;
use crate::{Error, Result};

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

    /// Takes a page apart. `run` is `None` for an inline page, which has no pages to free; `slots` are empty.
    pub(crate) fn of_page(run: Option<Run>, page: &Page<'_>, slots: Slots, bytes: Bytes<'_>) -> Result<Self> {
        let mut node = Self { page: run, slots, ..Self::new(matches!(page, Page::Leaf(_))) };
        if let Some((stretch, size)) = Stretch::of_page(page, bytes) {
            node.push_stretch(stretch, size, bytes);
        } else {
            let slots = Slots::of_loose_page(page, bytes)?;
            node.content = slots.sizes(bytes).sum();
            // Elements of a damaged page can overlap: copied one by one, they would take far more than the page.
            if node.size() > page.bytes().len() {
                return Err(Error::corrupt(page.id(), "its elements overlap: they take more than the page has"));
            }
            node.slots = slots;
        }
        Ok(node)
    }

    /// Bytes that it takes on pages.
    pub(crate) fn size(&self) -> usize {
        PAGE_HEADER + self.content
    }

    pub(crate) fn push(&mut self, slot: Slot) {
        self.content += slot.size();
        self.slots.push(slot);
    }

    /// Appends entries that are as they were, and take `size` bytes.
    pub(crate) fn push_stretch(&mut self, stretch: Stretch, size: usize, bytes: Bytes<'_>) {
        self.content += size;
        self.slots.push_stretch(stretch, bytes);
    }

    pub(crate) fn insert(&mut self, at: At, slot: Slot, bytes: Bytes<'_>) {
        self.content += slot.size();
        let appended = self.slots.insert(at, slot, bytes);
        self.growth = match self.growth {
            Growth::None | Growth::Appended if appended => Growth::Appended,
            _ => Growth::Mixed,
        };
    }

    /// Inserts what was removed, when that is undone: the node has not grown.
    pub(crate) fn put_back(&mut self, at: At, slot: Slot, bytes: Bytes<'_>) {
        self.content += slot.size();
        self.slots.insert(at, slot, bytes);
    }

    /// Puts `slot` in the place of `old`, which is at `at` and has the same key; returns where it now is.
    pub(crate) fn replace(&mut self, at: At, old: &Slot, slot: Slot, bytes: Bytes<'_>) -> At {
        self.content -= old.size();
        self.content += slot.size();
        self.slots.replace(at, slot, bytes)
    }

    pub(crate) fn remove(&mut self, at: At, bytes: Bytes<'_>) -> Option<Slot> {
        self.unbalanced = true;
        self.take(at, bytes)
    }

    /// Removes what was inserted and is undone: that unbalances nothing.
    pub(crate) fn take(&mut self, at: At, bytes: Bytes<'_>) -> Option<Slot> {
        let slot = self.slots.remove(at, bytes)?;
        self.content -= slot.size();
        Some(slot)
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
        match self.slots.changed(at)? {
            Content::Node(child) => Some(child),
            Content::Page(_) | Content::Value { .. } => None,
        }
    }

    /// The child in whose subtree `key` lies; `None` where there are no children.
    pub(crate) fn child_for(&self, key: &[u8], bytes: Bytes<'_>) -> Option<At> {
        self.child_at_or_before(self.slots.search(key, bytes))
    }

    /// The same, where the search has found the key.
    pub(crate) fn child_at_or_before(&self, found: std::result::Result<At, At>) -> Option<At> {
        match found {
            Ok(at) => Some(at),
            Err(at) => self.slots.prev(at).or(self.slots.first()),
        }
    }
}
