//! What changes a bucket: put, delete, create, sequences.
//!
//! Whatever can fail comes before the first change, so that an operation that returns an error has
//! changed nothing.

use super::arena::Loc;
use super::effects::Done;
use super::slots::{At, Content, Slot};
use super::undo::Undo;
use super::work::Work;
use super::{BucketId, Fill, NodeId};
use crate::format::{BUCKET_HEADER, LeafEntry, MAX_KEY_SIZE, MAX_VALUE_SIZE, PAGE_HEADER, PageWriter};
use crate::{Error, Result};

impl Work {
    pub(crate) fn put(&mut self, bucket: BucketId, key: &[u8], value: &[u8]) -> Result<()> {
        check_key(key)?;
        if value.len() > MAX_VALUE_SIZE {
            return Err(Error::ValueTooLarge { len: value.len(), max: MAX_VALUE_SIZE });
        }
        if self.put_by_patch(bucket, key, value) {
            self.adds = true;
            self.record(bucket, Done::Patched { key, value });
            return Ok(());
        }
        let put = self.put_entry(bucket, LeafEntry { key, value, is_bucket: false })?;
        self.adds = true;
        self.record(bucket, Done::Put { key, value: put, len: value.len() });
        Ok(())
    }

    /// Inserts or replaces an entry, which must be of the kind that is there. Returns where its value lies.
    pub(super) fn put_entry(&mut self, bucket: BucketId, entry: LeafEntry<'_>) -> Result<Loc> {
        let LeafEntry { key, value, is_bucket } = entry;
        let (leaf, between) = self.leaf_between(bucket, key)?;
        let found = self.node(leaf).slots.search_between(key, between, self.bytes());
        let len = u32::try_from(value.len()).expect("values are bounded before they get here");
        let old = found.ok().and_then(|at| Some((at, self.node(leaf).slots.get(at, self.bytes())?)));
        if let Some((_, old)) = old
            && let Content::Value { is_bucket: was_bucket, .. } = old.content()
            && was_bucket != is_bucket
        {
            return Err(Error::incompatible(key, was_bucket));
        }
        let loc = self.arena.push(key, value);
        let slot = Slot::new(key, loc, Content::Value { len, is_bucket });
        self.note(|| old.map_or(Undo::Inserted(bucket, slot), |(_, old)| Undo::Replaced(bucket, old)));
        let (leaf, bytes) = self.node_and_bytes(leaf);
        match (old, found) {
            (Some((at, old)), _) => drop(leaf.replace(at, &old, slot, bytes)),
            (None, Ok(at) | Err(at)) => leaf.insert(at, slot, bytes),
        }
        Ok(loc.plus(key.len()))
    }

    /// Deletes a value; `false` if there was none.
    pub(crate) fn delete(&mut self, bucket: BucketId, key: &[u8]) -> Result<bool> {
        match self.delete_by_patch(bucket, key) {
            Some(false) => return Ok(false),
            Some(true) => {}
            None => {
                let Some((leaf, at)) = self.leaf_with_value(bucket, key)? else { return Ok(false) };
                self.remove_at(bucket, leaf, at);
            }
        }
        self.record(bucket, Done::Deleted { key });
        Ok(true)
    }

    pub(super) fn remove(&mut self, bucket: BucketId, key: &[u8]) -> Result<()> {
        let (leaf, between) = self.leaf_between(bucket, key)?;
        if let Ok(at) = self.node(leaf).slots.search_between(key, between, self.bytes()) {
            self.remove_at(bucket, leaf, at);
        }
        Ok(())
    }

    fn remove_at(&mut self, bucket: BucketId, leaf: NodeId, at: At) {
        let (leaf, bytes) = self.node_and_bytes(leaf);
        if let Some(slot) = leaf.remove(at, bytes) {
            self.note(|| Undo::Removed(bucket, slot));
        }
    }

    pub(crate) fn create_bucket(&mut self, parent: BucketId, name: &[u8]) -> Result<BucketId> {
        check_name(name)?;
        self.add_bucket(parent, name)
    }

    /// Creates a bucket whose name was written by somebody: bbolt does not limit its length.
    pub(crate) fn add_bucket(&mut self, parent: BucketId, name: &[u8]) -> Result<BucketId> {
        match self.source().find(self.root(parent), name)? {
            Some(found) if found.is_bucket => return Err(Error::bucket_exists(name)),
            Some(_) => return Err(Error::incompatible(name, false)),
            None => {}
        }
        let mut empty = [0; BUCKET_HEADER + PAGE_HEADER];
        PageWriter::leaf(&mut empty[BUCKET_HEADER..], 0, 0, 0);
        self.put_entry(parent, LeafEntry { key: name, value: &empty, is_bucket: true })?;
        self.adds = true;
        let bucket = self.open_bucket(parent, name)?;
        self.record(parent, Done::Created { bucket });
        Ok(bucket)
    }

    pub(crate) fn create_bucket_if_not_exists(&mut self, parent: BucketId, name: &[u8]) -> Result<BucketId> {
        check_name(name)?;
        match self.open_bucket(parent, name) {
            Err(Error::BucketNotFound { .. }) => self.create_bucket(parent, name),
            other => other,
        }
    }

    pub(crate) fn set_sequence(&mut self, bucket: BucketId, sequence: u64) -> Result<()> {
        // The root becomes a node so that the header is written at commit.
        self.root_node(bucket)?;
        let before = std::mem::replace(&mut self.state_mut(bucket).sequence, sequence);
        self.note(|| Undo::Sequence(bucket, before));
        self.record(bucket, Done::Sequence(sequence));
        Ok(())
    }

    pub(crate) fn next_sequence(&mut self, bucket: BucketId) -> Result<u64> {
        let next = self.sequence(bucket).checked_add(1).ok_or(Error::SequenceExhausted)?;
        self.set_sequence(bucket, next)?;
        Ok(next)
    }

    pub(crate) fn set_fill(&mut self, bucket: BucketId, fill: Fill) {
        let before = std::mem::replace(&mut self.state_mut(bucket).fill, fill);
        self.note(|| Undo::Fill(bucket, before));
    }
}

fn check_key(key: &[u8]) -> Result<()> {
    match key.len() {
        0 => Err(Error::KeyRequired),
        len if len > MAX_KEY_SIZE => Err(Error::KeyTooLarge { len, max: MAX_KEY_SIZE }),
        _ => Ok(()),
    }
}

pub(super) fn check_name(name: &[u8]) -> Result<()> {
    if name.is_empty() { Err(Error::BucketNameRequired) } else { check_key(name) }
}
