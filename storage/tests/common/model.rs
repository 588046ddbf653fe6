//! What a database holds, as ordered maps: the plainest thing that the engine must agree with.

use boltkv_storage::{Bucket, Error, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::Hasher as _;
use std::ops::{Bound, RangeBounds as _};

/// The names of a bucket and of those around it, from the top down.
pub type BucketPath = Vec<Vec<u8>>;

/// A key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// The longest key or bucket name, in bytes.
pub const MAX_KEY: usize = 32_768;

/// The longest value, in bytes, that a dump shows as it is.
const LONGEST_SHOWN: usize = 64;

/// A bucket and all in it; the top of a database is one too, holding only buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    pub sequence: u64,
    pub items: BTreeMap<Vec<u8>, Item>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Value(Vec<u8>),
    Bucket(Model),
}

/// Why the engine does not do what it is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    BucketNotFound,
    BucketExists,
    IncompatibleValue,
    BucketNameRequired,
    KeyRequired,
    KeyTooLarge,
    SequenceExhausted,
    SameBuckets,
    MovedIntoItself,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::BucketNotFound { .. } => Self::BucketNotFound,
            Error::BucketExists { .. } => Self::BucketExists,
            Error::IncompatibleValue { .. } => Self::IncompatibleValue,
            Error::BucketNameRequired => Self::BucketNameRequired,
            Error::KeyRequired => Self::KeyRequired,
            Error::KeyTooLarge { .. } => Self::KeyTooLarge,
            Error::SequenceExhausted => Self::SequenceExhausted,
            Error::SameBuckets { .. } => Self::SameBuckets,
            Error::MovedIntoItself { .. } => Self::MovedIntoItself,
            other => panic!("not a refusal but a failure: {other}"),
        }
    }
}

impl Model {
    /// Reads everything out of a transaction, given its top buckets.
    pub fn load<'tx, N: AsRef<[u8]>>(buckets: impl Iterator<Item = Result<(N, Bucket<'tx>)>>) -> Result<Self> {
        let mut top = Self::default();
        for item in buckets {
            let (name, bucket) = item?;
            let content = Self::load_bucket(bucket)?;
            top.items.insert(name.as_ref().to_vec(), Item::Bucket(content));
        }
        Ok(top)
    }

    fn load_bucket(bucket: Bucket<'_>) -> Result<Self> {
        let mut content = Self { sequence: bucket.sequence(), items: BTreeMap::new() };
        let mut last: Option<Vec<u8>> = None;
        for entry in &bucket {
            let (key, value) = entry?;
            assert!(last.as_deref().is_none_or(|last| last < key), "keys come in ascending order");
            last = Some(key.to_vec());
            let item = match value {
                Some(value) => Item::Value(value.to_vec()),
                None => Item::Bucket(Self::load_bucket(bucket.bucket(key)?)?),
            };
            content.items.insert(key.to_vec(), item);
        }
        Ok(content)
    }

    /// The bucket at a path; the empty path is the top.
    pub fn bucket(&self, path: &[Vec<u8>]) -> Result<&Self, Refusal> {
        path.iter().try_fold(self, |bucket, name| match bucket.items.get(name) {
            Some(Item::Bucket(inner)) => Ok(inner),
            Some(Item::Value(_)) => Err(Refusal::IncompatibleValue),
            None => Err(Refusal::BucketNotFound),
        })
    }

    fn bucket_mut(&mut self, path: &[Vec<u8>]) -> Result<&mut Self, Refusal> {
        path.iter().try_fold(self, |bucket, name| match bucket.items.get_mut(name) {
            Some(Item::Bucket(inner)) => Ok(inner),
            Some(Item::Value(_)) => Err(Refusal::IncompatibleValue),
            None => Err(Refusal::BucketNotFound),
        })
    }

    /// Makes the bucket at a path within one that is there.
    pub fn create(&mut self, path: &[Vec<u8>]) -> Result<(), Refusal> {
        let (name, above) = path.split_last().expect("a bucket has a name");
        let parent = self.bucket_mut(above)?;
        match parent.items.get(name) {
            _ if name.is_empty() => Err(Refusal::BucketNameRequired),
            _ if name.len() > MAX_KEY => Err(Refusal::KeyTooLarge),
            Some(Item::Bucket(_)) => Err(Refusal::BucketExists),
            Some(Item::Value(_)) => Err(Refusal::IncompatibleValue),
            None => {
                parent.items.insert(name.clone(), Item::Bucket(Self::default()));
                Ok(())
            }
        }
    }

    /// Makes the bucket at a path unless it is there.
    pub fn create_if_missing(&mut self, path: &[Vec<u8>]) -> Result<(), Refusal> {
        match self.create(path) {
            Err(Refusal::BucketExists) => Ok(()),
            other => other,
        }
    }

    /// Takes a bucket away with all in it.
    pub fn drop_bucket(&mut self, path: &[Vec<u8>]) -> Result<(), Refusal> {
        let (name, above) = path.split_last().expect("a bucket has a name");
        let parent = self.bucket_mut(above)?;
        match parent.items.get(name) {
            Some(Item::Bucket(_)) => {
                parent.items.remove(name);
                Ok(())
            }
            Some(Item::Value(_)) => Err(Refusal::IncompatibleValue),
            None => Err(Refusal::BucketNotFound),
        }
    }

    /// Moves a bucket with all in it into the one at another path, which may be the top, and calls it `its_name` there.
    pub fn move_bucket(&mut self, path: &[Vec<u8>], to: &[Vec<u8>], its_name: &[u8]) -> Result<(), Refusal> {
        let (name, from) = path.split_last().expect("a bucket has a name");
        let source = self.bucket(from)?;
        let target = self.bucket(to)?;
        let moved = match source.items.get(name) {
            Some(Item::Bucket(_)) if from == to && name == its_name => return Err(Refusal::SameBuckets),
            Some(Item::Bucket(_)) if name != its_name && its_name.is_empty() => {
                return Err(Refusal::BucketNameRequired);
            }
            Some(Item::Bucket(_)) if name != its_name && its_name.len() > MAX_KEY => return Err(Refusal::KeyTooLarge),
            Some(Item::Bucket(_)) if to.starts_with(path) => return Err(Refusal::MovedIntoItself),
            Some(Item::Bucket(moved)) => moved.clone(),
            Some(Item::Value(_)) => return Err(Refusal::IncompatibleValue),
            None => return Err(Refusal::BucketNotFound),
        };
        match target.items.get(its_name) {
            Some(Item::Bucket(_)) => return Err(Refusal::BucketExists),
            Some(Item::Value(_)) => return Err(Refusal::IncompatibleValue),
            None => {}
        }
        self.bucket_mut(to)?.items.insert(its_name.to_vec(), Item::Bucket(moved));
        self.bucket_mut(from)?.items.remove(name);
        Ok(())
    }

    pub fn get(&self, path: &[Vec<u8>], key: &[u8]) -> Result<Option<&[u8]>, Refusal> {
        match self.bucket(path)?.items.get(key) {
            Some(Item::Value(value)) => Ok(Some(value)),
            Some(Item::Bucket(_)) => Err(Refusal::IncompatibleValue),
            None => Ok(None),
        }
    }

    pub fn put(&mut self, path: &[Vec<u8>], key: &[u8], value: &[u8]) -> Result<(), Refusal> {
        let items = &mut self.bucket_mut(path)?.items;
        match items.get(key) {
            _ if key.is_empty() => Err(Refusal::KeyRequired),
            _ if key.len() > MAX_KEY => Err(Refusal::KeyTooLarge),
            Some(Item::Bucket(_)) => Err(Refusal::IncompatibleValue),
            _ => {
                items.insert(key.to_vec(), Item::Value(value.to_vec()));
                Ok(())
            }
        }
    }

    /// Takes an entry away; whether it was there.
    pub fn delete(&mut self, path: &[Vec<u8>], key: &[u8]) -> Result<bool, Refusal> {
        let items = &mut self.bucket_mut(path)?.items;
        match items.get(key) {
            Some(Item::Bucket(_)) => Err(Refusal::IncompatibleValue),
            _ => Ok(items.remove(key).is_some()),
        }
    }

    /// Takes away the values between two bounds, the first so many of them; how many, and whether there is more.
    pub fn delete_range(
        &mut self,
        path: &[Vec<u8>],
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        limit: usize,
    ) -> Result<(usize, bool), Refusal> {
        let items = &mut self.bucket_mut(path)?.items;
        let mut within = items.iter().filter(|(key, _)| bounds.contains(&key.as_slice()));
        let first: Vec<_> = within.by_ref().take(limit).map(|(key, item)| (key.clone(), item)).collect();
        if first.iter().any(|(_, item)| matches!(item, Item::Bucket(_))) {
            return Err(Refusal::IncompatibleValue);
        }
        let (keys, more): (Vec<_>, _) = (first.into_iter().map(|(key, _)| key).collect(), within.next().is_some());
        for key in &keys {
            items.remove(key);
        }
        Ok((keys.len(), more))
    }

    /// Takes the first entry away, which must be a value.
    pub fn pop_first(&mut self, path: &[Vec<u8>]) -> Result<Option<Entry>, Refusal> {
        let items = &mut self.bucket_mut(path)?.items;
        match items.first_key_value() {
            Some((_, Item::Bucket(_))) => Err(Refusal::IncompatibleValue),
            _ => Ok(items.pop_first().and_then(|(key, item)| match item {
                Item::Value(value) => Some((key, value)),
                Item::Bucket(_) => None,
            })),
        }
    }

    pub fn set_sequence(&mut self, path: &[Vec<u8>], number: u64) -> Result<(), Refusal> {
        self.bucket_mut(path)?.sequence = number;
        Ok(())
    }

    pub fn next_sequence(&mut self, path: &[Vec<u8>]) -> Result<u64, Refusal> {
        let sequence = &mut self.bucket_mut(path)?.sequence;
        *sequence = sequence.checked_add(1).ok_or(Refusal::SequenceExhausted)?;
        Ok(*sequence)
    }

    /// The keys of a bucket in order, each with its value, or `None` where it is a bucket.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = (&[u8], Option<&[u8]>)> {
        self.items.iter().map(|(key, item)| match item {
            Item::Value(value) => (key.as_slice(), Some(value.as_slice())),
            Item::Bucket(_) => (key.as_slice(), None),
        })
    }

    /// Whether a transaction with these top buckets sees exactly this.
    pub fn is_seen_in<'tx>(&self, buckets: impl Iterator<Item = Result<(&'tx [u8], Bucket<'tx>)>>) -> Result<bool> {
        let mut items = self.items.iter();
        for bucket in buckets {
            let (name, bucket) = bucket?;
            match items.next() {
                Some((key, Item::Bucket(inner))) if key == name && inner.is_in(bucket)? => {}
                _ => return Ok(false),
            }
        }
        Ok(items.next().is_none())
    }

    fn is_in(&self, bucket: Bucket<'_>) -> Result<bool> {
        let mut items = self.items.iter();
        for entry in &bucket {
            let (key, value) = entry?;
            let same = match (items.next(), value) {
                (Some((expected, Item::Value(held))), Some(value)) => expected == key && held == value,
                (Some((expected, Item::Bucket(inner))), None) => expected == key && inner.is_in(bucket.bucket(key)?)?,
                _ => false,
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(items.next().is_none() && self.sequence == bucket.sequence())
    }

    /// One of the values' keys: the one of that number, counted round and round.
    pub fn some_key(&self, number: u64) -> Option<Vec<u8>> {
        let keys: Vec<_> = self.entries().filter(|(_, value)| value.is_some()).collect();
        let at = number.checked_rem(keys.len() as u64)?;
        keys.get(usize::try_from(at).ok()?).map(|(key, _)| key.to_vec())
    }

    /// Every bucket's path, each before those inside it.
    pub fn bucket_paths(&self) -> Vec<BucketPath> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, path: &mut BucketPath, paths: &mut Vec<BucketPath>) {
        for (name, item) in &self.items {
            if let Item::Bucket(inner) = item {
                path.push(name.clone());
                paths.push(path.clone());
                inner.collect_paths(path, paths);
                path.pop();
            }
        }
    }

    /// One line for each bucket and entry, exactly as the Go program's `dump` prints them.
    pub fn dump(&self) -> String {
        let mut out = String::new();
        self.dump_into("", &mut out);
        out
    }

    fn dump_into(&self, path: &str, out: &mut String) {
        for (key, item) in &self.items {
            let key = hex(key);
            match item {
                Item::Value(value) => writeln!(out, "entry {path} {key} {}", shown(value)),
                Item::Bucket(inner) => {
                    let separator = if path.is_empty() { "" } else { "/" };
                    let path = format!("{path}{separator}{key}");
                    let written = writeln!(out, "bucket {path} {}", inner.sequence);
                    inner.dump_into(&path, out);
                    written
                }
            }
            .expect("a string takes everything");
        }
    }
}

pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 0x0F)]));
    }
    out
}

/// 64-bit FNV-1a.
pub fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = fnv::FnvHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

fn shown(value: &[u8]) -> String {
    match value.len() {
        0 => "-".to_owned(),
        1..=LONGEST_SHOWN => hex(value),
        len => format!("#{len}:{:016x}", hash(value)),
    }
}
