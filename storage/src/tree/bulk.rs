//! Deleting many entries at once.
//!
//! Leaves that come out empty go at once, not at commit: whoever deletes from one end would
//! otherwise walk over all that he has emptied before, at each step.

use std::ops::Bound;

use super::node::Node;
use super::undo::Undo;
use super::work::Work;
use super::{BucketId, NodeId};
use crate::handles::Range;
use crate::handles::{Bucket, Deleted};
use crate::{Error, Result};

/// Keys that are gathered before something is done with them.
const BATCH: usize = 256;

impl Work {
    /// Deletes up to `limit` values between two bounds, from the lowest key on.
    pub(crate) fn delete_range(
        &mut self,
        bucket: BucketId,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        limit: usize,
    ) -> Result<Deleted> {
        // First all that can fail: every leaf is read and taken apart.
        let (count, last) = self.for_keys(bucket, low, high, limit, |work, key| work.leaf_of(bucket, key).map(drop))?;
        let low_of_rest = last.as_deref().map_or(low, Bound::Excluded);
        let more = count == limit && Range::new(self.bucket(bucket).cursor(), low_of_rest, high).next().is_some();
        self.for_keys(bucket, low, high, count, |work, key| work.remove_and_prune(bucket, key))?;
        Ok(Deleted { count, more })
    }

    /// Takes the first entry out; an error where it is a bucket.
    pub(crate) fn pop_first(&mut self, bucket: BucketId) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let Some((key, value)) = self.bucket(bucket).cursor().first()? else { return Ok(None) };
        let Some(value) = value else { return Err(Error::incompatible(key, true)) };
        let entry = (key.to_vec(), value.to_vec());
        self.leaf_of(bucket, &entry.0)?;
        self.remove_and_prune(bucket, &entry.0)?;
        Ok(Some(entry))
    }

    fn bucket(&self, bucket: BucketId) -> Bucket<'_> {
        Bucket::of_work(self, bucket)
    }

    /// Calls `act` with up to `limit` keys of values, in order; returns how many, and the last.
    fn for_keys(
        &mut self,
        bucket: BucketId,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        limit: usize,
        mut act: impl FnMut(&mut Self, &[u8]) -> Result<()>,
    ) -> Result<(usize, Option<Vec<u8>>)> {
        let mut count = 0;
        let mut last: Option<Vec<u8>> = None;
        while count < limit {
            let from = last.as_deref().map_or(low, Bound::Excluded);
            let range = Range::new(self.bucket(bucket).cursor(), from, high);
            let keys = range.take(BATCH.min(limit - count)).map(|entry| match entry? {
                (key, Some(_)) => Ok(key.to_vec()),
                (key, None) => Err(Error::incompatible(key, true)),
            });
            let keys = keys.collect::<Result<Vec<_>>>()?;
            if keys.is_empty() {
                break;
            }
            keys.iter().try_for_each(|key| act(self, key))?;
            count += keys.len();
            last = keys.into_iter().next_back();
        }
        Ok((count, last))
    }

    /// The leaf that holds `key`, as a node.
    fn leaf_of(&mut self, bucket: BucketId, key: &[u8]) -> Result<NodeId> {
        let leaf = self.leaf_node(bucket, key)?;
        if self.node(leaf).slots.search(key, self.bytes()).is_ok() {
            return Ok(leaf);
        }
        let page = self.node(leaf).page.map_or(0, |run| run.start);
        Err(Error::corrupt(page, "a key is not where its branch leads to"))
    }

    /// Removes an entry, and what is then empty: its leaf, and branches above it.
    fn remove_and_prune(&mut self, bucket: BucketId, key: &[u8]) -> Result<()> {
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
                self.note(Undo::Pruned { node: id, page, parent, slot });
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
