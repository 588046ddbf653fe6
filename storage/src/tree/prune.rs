//! Removing an entry, and at once what it leaves empty.
//!
//! Other removals leave that to the commit. A caller that deletes from one end would then walk over all that it has
//! emptied before, at each step.

use super::effects::Done;
use super::node::Node;
use super::undo::Undo;
use super::work::Work;
use super::{BucketId, NodeId};
use crate::{Error, Result};

impl Work {
    /// The leaf that holds `key`, as a node.
    pub(crate) fn leaf_of(&mut self, bucket: BucketId, key: &[u8]) -> Result<NodeId> {
        let leaf = self.leaf_node(bucket, key)?;
        if self.node(leaf).slots.search(key, self.bytes()).is_ok() {
            return Ok(leaf);
        }
        let page = self.node(leaf).page.map_or(0, |run| run.start);
        Err(Error::corrupt(page, "a key is not where its branch leads to"))
    }

    /// Deletes a value that [`Self::leaf_of`] has found, and what is then empty.
    pub(crate) fn delete_and_prune(&mut self, bucket: BucketId, key: &[u8]) -> Result<()> {
        self.remove_and_prune(bucket, key)?;
        self.record(bucket, Done::Deleted { key });
        Ok(())
    }

    /// Records that all values from the first key to the last were taken out by [`Self::remove_and_prune`].
    pub(crate) fn record_range(&mut self, bucket: BucketId, first: &[u8], last: &[u8]) {
        self.record(bucket, Done::RangeDeleted { first, last });
    }

    /// Removes an entry, and what is then empty: its leaf, and branches above it. Who calls this says what it
    /// has done, with [`Self::record_range`] for instance.
    pub(crate) fn remove_and_prune(&mut self, bucket: BucketId, key: &[u8]) -> Result<()> {
        self.remove(bucket, key)?;
        let mut above = Vec::new();
        let mut id = self.root_node(bucket)?;
        while let Some(at) = self.node(id).child_for(key, self.bytes()).filter(|_| !self.node(id).is_leaf) {
            let (child, at) = self.child_node(id, at)?;
            above.push((id, at));
            id = child;
        }
        while self.node(id).slots.len() == 0 {
            let Some((parent, at)) = above.pop() else { break };
            let page = self.node_mut(id).page.take();
            self.freed.extend(page);
            let (node, bytes) = self.node_and_bytes(parent);
            if let Some(slot) = node.remove(at, bytes) {
                self.note(|| Undo::Pruned { node: id, page, parent, slot });
            }
            id = parent;
        }
        let node = self.node_mut(id);
        if node.slots.len() == 0 && !node.is_leaf {
            *node = Node { page: node.page, ..Node::new(true) };
        }
        Ok(())
    }
}
