//! Merging, at commit, the nodes that deletes have left too small.
//!
//! The rules are bbolt's. Where several nodes of one transaction are unbalanced, bbolt takes them
//! in the random order of a Go map; here children come before their parent, left before right.
//!
//! No branch is left with one child: bbolt never makes one, and where it deletes below one, it panics, or writes a branch with
//! none. A child without neighbours has them only once its parent was merged, or is left over as the root: until then it stays
//! unbalanced.

use std::iter;

use super::node::Node;
use super::slots::{At, Content};
use super::work::Work;
use super::{BucketId, Fill, NodeId};
use crate::{Error, Result};

impl Work {
    pub(crate) fn rebalance_bucket(&mut self, bucket: BucketId) -> Result<()> {
        let state = self.state(bucket);
        let (Some(root), fill) = (state.root_node, state.fill) else { return Ok(()) };
        if state.deleted {
            return Ok(());
        }
        self.rebalance_children(root, fill)?;
        self.rebalance_root(root)
    }

    /// A root branch that is left with one child becomes that child, as often as it takes; with none, an empty leaf.
    fn rebalance_root(&mut self, root: NodeId) -> Result<()> {
        self.rebalances += u64::from(self.node(root).unbalanced);
        loop {
            let node = self.node(root);
            match (node.slots.first(), node.slots.len()) {
                _ if node.is_leaf => return Ok(()),
                (Some(only), 1) => {
                    let (child, _) = self.child_node(root, only)?;
                    let child = std::mem::take(self.node_mut(child));
                    self.freed.extend(child.page);
                    let page = self.node(root).page;
                    *self.node_mut(root) = Node { page, ..child };
                }
                (None, _) => {
                    let root = self.node_mut(root);
                    *root = Node { page: root.page, ..Node::new(true) };
                }
                _ => return Ok(()),
            }
        }
    }

    fn rebalance_children(&mut self, parent: NodeId, fill: Fill) -> Result<()> {
        if self.node(parent).is_leaf {
            return Ok(());
        }
        loop {
            let mut next = self.node(parent).slots.first();
            while let Some(at) = next {
                next = match self.node(parent).child_at(at) {
                    Some(child) => {
                        self.rebalance_children(child, fill)?;
                        self.rebalance_child(parent, at, child, fill)?
                    }
                    None => self.node(parent).slots.next_changed(at),
                };
            }
            // What two became may be too small again. Each time there are fewer.
            if !self.node(parent).unbalanced || !self.has_lonely_child(parent) {
                return Ok(());
            }
        }
    }

    fn has_one_child(&self, id: NodeId) -> bool {
        let node = self.node(id);
        !node.is_leaf && node.slots.len() == 1
    }

    /// Whether a child that has neighbours has one child itself.
    fn has_lonely_child(&self, parent: NodeId) -> bool {
        let node = self.node(parent);
        let changed = iter::successors(node.slots.first(), |&at| node.slots.next_changed(at));
        node.slots.len() > 1 && changed.filter_map(|at| node.child_at(at)).any(|child| self.has_one_child(child))
    }

    /// Removes or merges `child`, which stands at `at`, if it must be; returns where to go on.
    fn rebalance_child(&mut self, parent: NodeId, at: At, child: NodeId, fill: Fill) -> Result<Option<At>> {
        let unbalanced = std::mem::take(&mut self.node_mut(child).unbalanced);
        self.rebalances += u64::from(unbalanced);
        // Also one that was empty before, which only surgery leaves: it has no key for its parent.
        if self.node(child).slots.len() == 0 {
            self.drop_child(parent, at, child);
            return Ok(self.node(parent).slots.settle(at));
        }
        if !(unbalanced || self.has_one_child(child)) || !self.is_too_small(child, fill) {
            return Ok(self.node(parent).slots.next(at));
        }
        if let Some(left) = self.node(parent).slots.prev(at) {
            let (left, left_at) = self.child_node(parent, left)?;
            // Where the child stands may have changed with its neighbour.
            let at = self.node(parent).slots.next(left_at).unwrap_or(at);
            self.merge(left, child, (parent, at), fill)?;
            self.drop_child(parent, at, child);
            return Ok(self.node(parent).slots.settle(at));
        }
        if let Some(right_at) = self.node(parent).slots.next(at) {
            let (right, right_at) = self.child_node(parent, right_at)?;
            self.rebalance_children(right, fill)?;
            self.merge(child, right, (parent, right_at), fill)?;
            self.drop_child(parent, right_at, right);
        } else {
            self.node_mut(child).unbalanced = true;
        }
        Ok(self.node(parent).slots.next(at))
    }

    /// Moves all of `right`, which stands there, to the end of its left neighbour, whatever size that gives: the split at
    /// commit sorts it out.
    fn merge(&mut self, left: NodeId, right: NodeId, (parent, at): (NodeId, At), fill: Fill) -> Result<()> {
        if self.node(left).is_leaf != self.node(right).is_leaf {
            let page = self.node(right).page.map_or(0, |run| run.start);
            return Err(Error::corrupt(page, "a leaf and a branch are children of one branch"));
        }
        self.begin_as_in_parent(right, parent, at);
        let was_lonely = self.has_one_child(left) || self.has_one_child(right);
        let (content, slots) = self.node_mut(right).take_slots();
        self.node_mut(left).append(content, slots);
        // An only child has neighbours now.
        if was_lonely { self.rebalance_children(left, fill) } else { Ok(()) }
    }

    /// Has a branch, which stands at `at` in its parent, begin with the key that it has there. Its first child may have
    /// been removed (`prune.rs`): then keys that would have gone there went to the next one, and may lie before that one's
    /// own key. As the first of its branch it was found with them all the same; behind other children it would not be.
    fn begin_as_in_parent(&mut self, branch: NodeId, parent: NodeId, at: At) {
        let slots = &self.node(branch).slots;
        let (Some(begin), Some(in_parent)) = (slots.first(), self.node(parent).slots.get(at, self.bytes())) else {
            return;
        };
        // A child that is still a page has nothing before its key.
        let Some(child) = self.node(branch).child_at(begin) else { return };
        let (node, bytes) = self.node_and_bytes(branch);
        if node.slots.get(begin, bytes).is_some_and(|first| in_parent.key(bytes) < first.key(bytes)) {
            node.take(begin, bytes);
            node.put_back(begin, in_parent.with(Content::Node(child)), bytes);
        }
    }

    /// Takes `child` out of its parent and gives its pages back.
    fn drop_child(&mut self, parent: NodeId, at: At, child: NodeId) {
        let (node, bytes) = self.node_and_bytes(parent);
        node.remove(at, bytes);
        self.freed.extend(self.node(child).page);
    }

    fn is_too_small(&self, id: NodeId, fill: Fill) -> bool {
        let node = self.node(id);
        let fewest = match (node.is_leaf, fill) {
            // A page with one large value has few keys on purpose, and is not merged for that.
            (true, Fill::Auto) => 0,
            (true, Fill::Percent(_)) => 1,
            (false, _) => 2,
        };
        node.size() <= fill.threshold(self.pages().page_size()) / 2 || node.slots.len() <= fewest
    }
}
