//! Merging, at commit, the nodes that deletes have left too small.
//!
//! The rules are bbolt's. Where several nodes of one transaction are unbalanced, bbolt takes them
//! in the random order of a Go map; here children come before their parent, left before right.

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
        self.rebalance_root(root, fill)
    }

    /// A root branch that is left with one child becomes that child; with none, an empty leaf.
    fn rebalance_root(&mut self, root: NodeId, fill: Fill) -> Result<()> {
        self.rebalances += u64::from(self.node(root).unbalanced);
        let node = self.node(root);
        if !node.unbalanced || node.is_leaf || !self.is_too_small(root, fill) {
            return Ok(());
        }
        match (node.slots.first(), node.slots.len()) {
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
            _ => {}
        }
        Ok(())
    }

    fn rebalance_children(&mut self, parent: NodeId, fill: Fill) -> Result<()> {
        if self.node(parent).is_leaf {
            return Ok(());
        }
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
        Ok(())
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
        if !unbalanced || !self.is_too_small(child, fill) {
            return Ok(self.node(parent).slots.next(at));
        }
        if let Some(left) = self.node(parent).slots.prev(at) {
            let (left, left_at) = self.child_node(parent, left)?;
            // Where the child stands may have changed with its neighbour.
            let at = self.node(parent).slots.next(left_at).unwrap_or(at);
            self.merge(left, child, parent, at)?;
            self.drop_child(parent, at, child);
            return Ok(self.node(parent).slots.settle(at));
        }
        if let Some(right_at) = self.node(parent).slots.next(at) {
            let (right, right_at) = self.child_node(parent, right_at)?;
            self.rebalance_children(right, fill)?;
            self.merge(child, right, parent, right_at)?;
            self.drop_child(parent, right_at, right);
        }
        Ok(self.node(parent).slots.next(at))
    }

    /// Moves all of `right`, which stands at `at` in its parent, to the end of its left neighbour, whatever size that
    /// gives: the split at commit sorts it out.
    fn merge(&mut self, left: NodeId, right: NodeId, parent: NodeId, at: At) -> Result<()> {
        if self.node(left).is_leaf != self.node(right).is_leaf {
            let page = self.node(right).page.map_or(0, |run| run.start);
            return Err(Error::corrupt(page, "a leaf and a branch are children of one branch"));
        }
        self.begin_as_in_parent(right, parent, at);
        let (content, slots) = self.node_mut(right).take_slots();
        self.node_mut(left).append(content, slots);
        Ok(())
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
