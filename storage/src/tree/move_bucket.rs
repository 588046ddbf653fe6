//! Moving a bucket from one parent to another, or to another name: its entry goes, its pages stay where they are.

use super::buckets::Name;
use super::edit::check_name;
use super::effects::Done;
use super::undo::Undo;
use super::work::Work;
use super::{BucketId, ROOT_BUCKET};
use crate::format::LeafEntry;
use crate::{Error, Result};

impl Work {
    /// The bucket that a path of names leads to, opened for writing; the root bucket for no names.
    pub(crate) fn open_path<N: AsRef<[u8]>>(&mut self, path: &[N]) -> Result<BucketId> {
        path.iter().try_fold(ROOT_BUCKET, |bucket, name| {
            self.open_bucket(bucket, name.as_ref()).map_err(|error| self.located(bucket, error))
        })
    }

    /// Moves the bucket `name` from one bucket to another, where it is called `its_name`, by bbolt's rules. (bbolt gives none
    /// another name.)
    pub(crate) fn move_bucket(&mut self, name: &[u8], from: BucketId, to: BucketId, its_name: &[u8]) -> Result<()> {
        let missing = || self.located(from, Error::bucket_not_found(name));
        let found = self.source().find(self.root(from), name)?.ok_or_else(missing)?;
        if !found.is_bucket {
            return Err(Error::incompatible(name, false));
        }
        let value = found.value.to_vec();
        if from == to && name == its_name {
            return Err(Error::same_buckets(name));
        }
        // One that is not renamed was named by somebody, and bbolt limits no name's length.
        if name != its_name {
            check_name(its_name)?;
        }
        if self.is_within(to, from, name) {
            return Err(Error::moved_into_itself(name));
        }
        match self.source().find(self.root(to), its_name)? {
            Some(found) if found.is_bucket => return Err(self.located(to, Error::bucket_exists(its_name))),
            Some(_) => return Err(Error::incompatible(its_name, false)),
            None => {}
        }
        // The last that can fail; what comes then finds both leaves taken apart. Opened, the bucket keeps its state
        // wherever it goes: also back, when this is undone after something was changed in it.
        let bucket = self.open_bucket(from, name)?;
        self.take_bucket_apart(bucket)?;
        self.leaf_node(from, name)?;
        self.leaf_node(to, its_name)?;
        self.put_entry(to, LeafEntry { key: its_name, value: &value, is_bucket: true })?;
        self.adds = true;
        self.remove(from, name)?;
        let its_new_name = Name::new(self.arena.push(its_name, &[]), its_name.len());
        let before = self.relink(bucket, to, its_new_name);
        self.note(|| Undo::Moved { bucket, before });
        self.record(from, Done::Moved { name, to, its_name });
        Ok(())
    }

    /// Whether `bucket` is the one called `name` in `parent`, or lies within that one.
    fn is_within(&self, mut bucket: BucketId, parent: BucketId, name: &[u8]) -> bool {
        while let Some((above, its_name)) = self.state(bucket).parent {
            if above == parent && its_name.get(self.bytes()) == name {
                return true;
            }
            bucket = above;
        }
        false
    }

    /// Makes a bucket that is opened for writing a child of another one, of this name. Whose it was, and its name there.
    pub(super) fn relink(&mut self, bucket: BucketId, to: BucketId, name: Name) -> Option<(BucketId, Name)> {
        let (buckets, bytes) = self.buckets_and_bytes();
        buckets.relink(bucket, to, name, bytes)
    }
}
