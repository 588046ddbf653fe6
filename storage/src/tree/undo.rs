//! Savepoints: a write transaction can be taken back to a mark.
//!
//! From the first savepoint on, every change notes how it is undone. An undo meets the tree as the
//! change left it, because what came after has been undone before; the bytes it needs are still
//! there, because the arena and the map keep everything until the transaction ends.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::arena::Bytes;
use super::buckets::Name;
use super::effects::EffectsMark;
use super::node::Node;
use super::slots::{At, Content, Slot};
use super::work::Work;
use super::{BucketId, Fill, NodeId};
use crate::pages::Run;
use crate::{Error, Result};

/// A mark in a write transaction, to which it can be taken back.
#[derive(Debug, PartialEq, Eq)]
pub struct Savepoint {
    number: u64,
    /// What was to be called after the commit when it was made.
    pub(crate) callbacks: usize,
}

/// How one change is undone.
pub(super) enum Undo {
    /// An entry was inserted.
    Inserted(BucketId, Slot),
    /// An entry was replaced; this is what stood there.
    Replaced(BucketId, Slot),
    /// An entry was removed.
    Removed(BucketId, Slot),
    /// An entry was inserted, replaced or removed by a patch.
    Patched(Box<Undo>),
    /// A bucket's sequence was changed; this is what it was.
    Sequence(BucketId, u64),
    /// A bucket was deleted, whose runs stand at `freed` in the list of freed ones, and what was detached from
    /// `detached` on in that list. Where it had been opened for writing, `opened` is it and then those opened in it.
    Deleted { opened: Vec<BucketId>, freed: Range<usize>, detached: usize },
    /// A bucket was moved, which is open for writing; this is where it had been, and its name there.
    Moved { bucket: BucketId, before: Option<(BucketId, Name)> },
    /// A bucket's fill was changed; this is what it was.
    Fill(BucketId, Fill),
    /// A node that was empty went, and its page is the last of the freed ones; this stood for it in its parent.
    Pruned { node: NodeId, page: Option<Run>, parent: NodeId, slot: Slot },
}

/// The changes since the first savepoint, and where in them the savepoints lie.
#[derive(Default)]
pub(super) struct UndoList {
    changes: Vec<Undo>,
    marks: Vec<Mark>,
    /// How many of them stay, whatever is forgotten.
    kept: usize,
}

/// A savepoint's place.
struct Mark {
    number: u64,
    changes: usize,
    effects: EffectsMark,
}

impl Work {
    pub(crate) fn savepoint(&mut self, callbacks: usize) -> Savepoint {
        // Unique in the process, so that a savepoint of another transaction is recognised.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let effects = self.effects.mark();
        let undo = self.undo.get_or_insert_default();
        undo.marks.push(Mark { number, changes: undo.changes.len(), effects });
        Savepoint { number, callbacks }
    }

    /// The savepoints that there are stay until they are [let go](Self::let_savepoints_go).
    pub(crate) fn keep_savepoints(&mut self) {
        if let Some(undo) = &mut self.undo {
            undo.kept = undo.marks.len();
        }
    }

    /// No other savepoint can be gone back to any more; where none stays, what was noted for them goes.
    pub(crate) fn forget_savepoints(&mut self) {
        match &mut self.undo {
            Some(undo) if undo.kept > 0 => undo.marks.truncate(undo.kept),
            _ => self.undo = None,
        }
    }

    /// No savepoint can be gone back to any more.
    pub(crate) fn let_savepoints_go(&mut self) {
        self.undo = None;
    }

    pub(crate) fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        let undo = self.undo.as_mut().ok_or(Error::SavepointNotFound)?;
        let mark = undo.marks.iter().rposition(|mark| mark.number == savepoint.number);
        let at = mark.ok_or(Error::SavepointNotFound)?;
        undo.marks.truncate(at + 1);
        let Mark { changes, effects, .. } = undo.marks[at];
        let changes = undo.changes.split_off(changes);
        self.effects.take_back_to(effects);
        // A bucket may be back where it was moved from.
        self.spare.forget_bucket_numbers();
        // Undoing changes nodes too, and must not be recorded as a change.
        let list = self.undo.take();
        let undone = changes.into_iter().rev().try_for_each(|change| self.undo_one(change));
        self.undo = list;
        undone
    }

    #[inline]
    pub(super) fn note(&mut self, change: impl FnOnce() -> Undo) {
        if let Some(undo) = &mut self.undo {
            undo.changes.push(change());
        }
    }

    fn undo_one(&mut self, change: Undo) -> Result<()> {
        match change {
            Undo::Inserted(bucket, slot) => {
                self.forget_opened(bucket, slot);
                self.with_leaf(bucket, slot, |leaf, found, bytes| {
                    if let Ok(at) = found {
                        leaf.take(at, bytes);
                    }
                })
            }
            Undo::Replaced(bucket, slot) => self.with_leaf(bucket, slot, |leaf, found, bytes| {
                if let Ok(at) = found
                    && let Some(new) = leaf.slots.get(at, bytes)
                {
                    leaf.replace(at, &new, slot, bytes);
                }
            }),
            Undo::Removed(bucket, slot) => self.with_leaf(bucket, slot, |leaf, found, bytes| {
                if let Err(at) = found {
                    leaf.put_back(at, slot, bytes);
                }
            }),
            Undo::Patched(change) => self.undo_patch(*change),
            Undo::Sequence(bucket, sequence) => {
                self.state_mut(bucket).sequence = sequence;
                Ok(())
            }
            Undo::Deleted { opened, freed, detached } => {
                self.freed.drain(freed);
                self.detached.truncate(detached);
                for &id in &opened {
                    self.state_mut(id).deleted = false;
                }
                if let Some(&first) = opened.first() {
                    let (buckets, bytes) = self.buckets_and_bytes();
                    buckets.name(first, bytes);
                }
                Ok(())
            }
            Undo::Moved { bucket, before } => {
                if let Some((from, name)) = before {
                    self.relink(bucket, from, name);
                }
                Ok(())
            }
            Undo::Fill(bucket, fill) => {
                self.state_mut(bucket).fill = fill;
                Ok(())
            }
            Undo::Pruned { node, page, parent, slot } => {
                self.undo_prune((node, page), parent, slot);
                Ok(())
            }
        }
    }

    /// Takes the patch back that has done the change; where its leaf was taken apart since, undoes it there.
    fn undo_patch(&mut self, change: Undo) -> Result<()> {
        match change {
            Undo::Inserted(bucket, slot) | Undo::Replaced(bucket, slot) | Undo::Removed(bucket, slot)
                if self.take_patch_back(bucket, slot) =>
            {
                Ok(())
            }
            change => self.undo_one(change),
        }
    }

    fn undo_prune(&mut self, (node, page): (NodeId, Option<Run>), parent: NodeId, slot: Slot) {
        if page.is_some() {
            self.freed.pop();
        }
        self.node_mut(node).page = page;
        let (parent, bytes) = self.node_and_bytes(parent);
        // A root that had lost its last child is a leaf by now.
        parent.is_leaf = false;
        if let Err(at) = parent.slots.search(slot.key(bytes), bytes) {
            parent.put_back(at, slot, bytes);
        }
    }

    /// The leaf that the slot's key belongs to, and where the key stands or would stand in it.
    fn with_leaf(
        &mut self,
        bucket: BucketId,
        slot: Slot,
        change: impl FnOnce(&mut Node, std::result::Result<At, At>, Bytes<'_>),
    ) -> Result<()> {
        let key = slot.key(self.bytes()).to_vec();
        let leaf = self.leaf_node(bucket, &key)?;
        let (leaf, bytes) = self.node_and_bytes(leaf);
        change(leaf, leaf.slots.search(&key, bytes), bytes);
        Ok(())
    }

    /// A bucket whose entry goes is no longer open.
    fn forget_opened(&mut self, parent: BucketId, slot: Slot) {
        if !matches!(slot.content(), Content::Value { is_bucket: true, .. }) {
            return;
        }
        let opened = self.opened(parent, slot.key(self.bytes()));
        self.mark_deleted(opened);
    }

    /// Marks a bucket and those opened in it as deleted; returns them, the bucket itself first.
    pub(super) fn mark_deleted(&mut self, bucket: Option<BucketId>) -> Vec<BucketId> {
        let Some(bucket) = bucket else { return Vec::new() };
        let (buckets, bytes) = self.buckets_and_bytes();
        buckets.forget_name(bucket, bytes);
        let mut deleted = vec![bucket];
        let mut next = 0;
        while let Some(&id) = deleted.get(next) {
            self.state_mut(id).deleted = true;
            deleted.extend(self.buckets.children(id).filter(|child| !self.state(*child).deleted));
            next += 1;
        }
        deleted
    }
}
