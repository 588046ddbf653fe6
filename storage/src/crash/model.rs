//! What a database holds, as ordered maps, and the changes of it.

use std::collections::BTreeMap;

use super::random::Random;
use crate::{Bucket, Result, Tx, TxMut};

/// The names of a bucket and of those around it, from the top down.
pub(super) type BucketPath = Vec<Vec<u8>>;

/// A bucket and all in it; the top of a database is one too, holding only buckets.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    sequence: u64,
    items: BTreeMap<Vec<u8>, Item>,
}

#[derive(Debug, Clone)]
enum Item {
    Value(Vec<u8>),
    Bucket(Model),
}

#[derive(Debug, Clone)]
pub(super) enum Change {
    Create(BucketPath),
    /// With all in it.
    Drop(BucketPath),
    Put(BucketPath, Vec<u8>, Vec<u8>),
    Delete(BucketPath, Vec<u8>),
    Sequence(BucketPath, u64),
}

impl Change {
    pub(super) fn apply(&self, tx: &mut TxMut) -> Result<()> {
        match self {
            Self::Create(path) => match path.as_slice() {
                [name] => tx.create_bucket(name).map(drop),
                [above @ .., name] => tx.bucket_mut_path(above)?.create_bucket(name).map(drop),
                [] => panic!("a bucket has a name"),
            },
            Self::Drop(path) => match path.as_slice() {
                [name] => tx.delete_bucket(name),
                [above @ .., name] => tx.bucket_mut_path(above)?.delete_bucket(name),
                [] => panic!("a bucket has a name"),
            },
            Self::Put(path, key, value) => tx.bucket_mut_path(path)?.put(key, value),
            Self::Delete(path, key) => tx.bucket_mut_path(path)?.delete(key).map(drop),
            Self::Sequence(path, number) => tx.bucket_mut_path(path)?.set_sequence(*number),
        }
    }

    pub(super) fn apply_to_model(&self, model: &mut Model) {
        match self {
            Self::Create(path) | Self::Drop(path) => {
                let (name, above) = path.split_last().expect("a bucket has a name");
                let items = &mut model.bucket_mut(above).items;
                if matches!(self, Self::Create(_)) {
                    items.insert(name.clone(), Item::Bucket(Model::default()));
                } else {
                    items.remove(name);
                }
            }
            Self::Put(path, key, value) => {
                model.bucket_mut(path).items.insert(key.clone(), Item::Value(value.clone()));
            }
            Self::Delete(path, key) => {
                model.bucket_mut(path).items.remove(key);
            }
            Self::Sequence(path, number) => model.bucket_mut(path).sequence = *number,
        }
    }
}

impl Model {
    pub(super) fn bucket(&self, path: &[Vec<u8>]) -> &Self {
        path.iter().fold(self, |bucket, name| match bucket.items.get(name) {
            Some(Item::Bucket(inner)) => inner,
            other => panic!("no bucket {path:?}, but {other:?}"),
        })
    }

    fn bucket_mut(&mut self, path: &[Vec<u8>]) -> &mut Self {
        path.iter().fold(self, |bucket, name| match bucket.items.get_mut(name) {
            Some(Item::Bucket(inner)) => inner,
            other => panic!("no bucket {path:?}, but {other:?}"),
        })
    }

    /// Every bucket's path, each before those inside it.
    pub(super) fn bucket_paths(&self) -> Vec<BucketPath> {
        let mut paths = Vec::new();
        self.collect_paths(&[], &mut paths);
        paths
    }

    fn collect_paths(&self, above: &[Vec<u8>], paths: &mut Vec<BucketPath>) {
        for (name, item) in &self.items {
            if let Item::Bucket(inner) = item {
                let path = [above, std::slice::from_ref(name)].concat();
                paths.push(path.clone());
                inner.collect_paths(&path, paths);
            }
        }
    }

    pub(super) fn has(&self, key: &[u8]) -> bool {
        self.items.contains_key(key)
    }

    /// The keys of the values, without the buckets.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.items.iter().filter(|(_, item)| matches!(item, Item::Value(_))).map(|(key, _)| key)
    }

    pub(super) fn some_key(&self, random: &mut Random) -> Option<Vec<u8>> {
        let count = self.keys().count();
        (count > 0).then(|| random.below(count)).and_then(|at| self.keys().nth(at)).cloned()
    }

    /// Whether a transaction sees exactly this.
    pub(super) fn is_seen_by(&self, tx: &Tx) -> Result<bool> {
        let mut items = self.items.iter();
        for bucket in tx.buckets() {
            let (name, bucket) = bucket?;
            match items.next() {
                Some((key, Item::Bucket(inner))) if key == name && inner.is_in(&bucket)? => {}
                _ => return Ok(false),
            }
        }
        Ok(items.next().is_none())
    }

    fn is_in(&self, bucket: &Bucket<'_>) -> Result<bool> {
        let mut items = self.items.iter();
        for entry in bucket {
            let (key, value) = entry?;
            let same = match (items.next(), value) {
                (Some((expected, Item::Value(held))), Some(value)) => expected == key && held == value,
                (Some((expected, Item::Bucket(inner))), None) => {
                    expected == key && inner.is_in(&bucket.bucket(key)?)?
                }
                _ => false,
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(items.next().is_none() && self.sequence == bucket.sequence())
    }
}
