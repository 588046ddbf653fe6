//! Memory that one write transaction leaves to the next: to ask for it anew would be most of what a small commit has
//! the processor do.

use std::fmt;

use super::BucketId;
use super::arena::Arena;
use super::buckets::Buckets;
use super::cut::Cut;
use super::effects::Effects;
use super::node::Node;
use super::patcher::Patcher;
use super::slots::{Slot, Slots};
use super::spill::Part;
use crate::format::Pgid;
use crate::pages::Run;

/// Bytes of each collection that are kept.
const KEPT: usize = 1 << 16;
/// Nodes whose entries' memory is kept: more than the way to a few leaves has.
const KEPT_NODES: usize = 64;

/// Empty collections, with the room that they had. What a transaction only needs for a while it takes from here and
/// puts back.
#[derive(Default)]
pub(crate) struct Spare {
    pub(crate) arena: Arena,
    pub(crate) nodes: Vec<Node>,
    pub(crate) buckets: Buckets,
    pub(crate) freed: Vec<Run>,
    pub(super) effects: Effects,
    /// Of nodes that are no more.
    pub(crate) slots: Vec<Slots>,
    /// Those of children that have got their pages, on their way to their parents.
    pub(crate) children: Vec<Slot>,
    pub(super) cuts: Vec<Cut>,
    pub(crate) order: Vec<BucketId>,
    pub(crate) parts: Vec<Part>,
    pub(crate) taken: Vec<Run>,
    pub(crate) allocated: Vec<Run>,
    /// Pages of branches, and those that the commit has written the branches to instead.
    pub(super) branches: Vec<(Pgid, Pgid)>,
    /// A bucket's name and its new value.
    pub(crate) entry: Vec<u8>,
    /// What memory has of leaves, where it may have some.
    pub(crate) patcher: Option<Box<Patcher>>,
}

impl Spare {
    /// Patches are to say anew whose leaves they are of.
    pub(super) fn forget_bucket_numbers(&mut self) {
        if let Some(patcher) = &mut self.patcher {
            patcher.numbers.clear();
        }
    }

    /// All of it emptied, and what is too large given back. What was patched and not committed is taken back.
    pub(crate) fn emptied(mut self) -> Self {
        if let Some(patcher) = &mut self.patcher {
            patcher.end();
        }
        for node in self.nodes.drain(..) {
            if self.slots.len() == KEPT_NODES {
                break;
            }
            self.slots.push(node.slots.emptied());
        }
        Self {
            arena: self.arena.emptied(),
            nodes: emptied(self.nodes),
            buckets: self.buckets.emptied(KEPT / size_of::<Slot>()),
            freed: emptied(self.freed),
            effects: self.effects.emptied(),
            slots: self.slots,
            children: emptied(self.children),
            cuts: emptied(self.cuts),
            order: emptied(self.order),
            parts: emptied(self.parts),
            taken: emptied(self.taken),
            allocated: emptied(self.allocated),
            branches: emptied(self.branches),
            entry: emptied(self.entry),
            patcher: self.patcher,
        }
    }
}

/// A collection without what is in it, and with up to [`KEPT`] bytes of its memory.
fn emptied<T>(mut all: Vec<T>) -> Vec<T> {
    all.clear();
    all.shrink_to(KEPT / size_of::<T>());
    all
}

impl fmt::Debug for Spare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spare").finish_non_exhaustive()
    }
}
