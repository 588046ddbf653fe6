//! Random changes that can be done: the generator knows what is there, and what it makes is the same for the same seed.

use super::model::{BucketPath, Item, Model};
use super::random::Random;
use super::trace::{Change, Trace};

/// The deepest that buckets are nested.
const DEEPEST: usize = 5;

/// The most buckets that a database gets.
const MOST_BUCKETS: usize = 40;

pub struct Generator {
    random: Random,
    /// What the database holds once all that was generated is done.
    pub model: Model,
    drops_first: bool,
}

impl Generator {
    /// Starts from what a database holds.
    pub fn new(seed: u64, model: Model) -> Self {
        Self { random: Random::new(seed), model, drops_first: false }
    }

    /// Drops a bucket only as the first change of a transaction, as Go's bbolt needs it: of a bucket that it has already
    /// changed in the transaction, it walks the inner buckets while it deletes them, skips some, and loses their pages.
    pub fn with_drops_first(mut self) -> Self {
        self.drops_first = true;
        self
    }

    /// Transactions with up to `changes` changes each; about one in eight is taken back, and the file is reopened now
    /// and then.
    pub fn trace(&mut self, transactions: usize, changes: usize) -> Trace {
        let mut trace = Trace::default();
        for _ in 0..transactions {
            let before = self.random.once_in(8).then(|| self.model.clone());
            let count = 1 + self.random.below(changes);
            let batch: Vec<Change> = (0..count).map(|at| self.change(at)).collect();
            if let Some(before) = before {
                trace.rollback(batch);
                self.model = before;
            } else {
                trace.commit(batch);
            }
            if self.random.once_in(6) {
                trace.reopen();
            }
        }
        trace
    }

    fn change(&mut self, at: usize) -> Change {
        let change = if self.drops_first && at > 0 { self.choose_keeping_buckets() } else { self.choose() };
        change.apply_to_model(&mut self.model);
        change
    }

    fn choose(&mut self) -> Change {
        // Where drops come first, a transaction has one chance of it.
        let times = if self.drops_first { 4 } else { 50 };
        let paths = self.model.bucket_paths();
        if !paths.is_empty() && self.random.once_in(times) {
            return Change::Drop(paths[self.random.below(paths.len())].clone());
        }
        self.choose_keeping_buckets()
    }

    fn choose_keeping_buckets(&mut self) -> Change {
        let paths = self.model.bucket_paths();
        let create = paths.is_empty() || (paths.len() < MOST_BUCKETS && self.random.once_in(25));
        if create {
            return Change::Create(self.new_bucket(&paths));
        }
        let path = paths[self.random.below(paths.len())].clone();
        match self.random.below(100) {
            0..=4 => Change::Sequence(path, self.random.next()),
            5..=40 => self.some_entry(&path).map_or(Change::Sequence(path.clone(), 1), |key| Change::Delete(path, key)),
            41..=55 => match self.some_entry(&path) {
                Some(key) => Change::Put(path, key, self.value()),
                None => self.put(path),
            },
            _ => self.put(path),
        }
    }

    fn put(&mut self, path: BucketPath) -> Change {
        loop {
            let key = self.key();
            let bucket = self.model.bucket(&path).unwrap();
            if !matches!(bucket.items.get(&key), Some(Item::Bucket(_))) {
                return Change::Put(path, key, self.value());
            }
        }
    }

    fn new_bucket(&mut self, paths: &[BucketPath]) -> BucketPath {
        loop {
            let mut path = match paths.len() {
                0 => Vec::new(),
                _ if self.random.once_in(3) => Vec::new(),
                count => paths[self.random.below(count)].clone(),
            };
            let name = self.key();
            let taken = self.model.bucket(&path).unwrap().items.contains_key(&name);
            path.push(name);
            if path.len() <= DEEPEST && !taken {
                return path;
            }
        }
    }

    fn some_entry(&mut self, path: &[Vec<u8>]) -> Option<Vec<u8>> {
        let bucket = self.model.bucket(path).unwrap();
        let keys: Vec<&[u8]> = bucket.entries().filter_map(|(key, value)| value.map(|_| key)).collect();
        let key = *keys.get(self.random.below(keys.len().max(1)))?;
        Some(key.to_vec())
    }

    /// Mostly short, so that keys meet again; some long ones.
    fn key(&mut self) -> Vec<u8> {
        let len = match self.random.below(100) {
            0..=1 => 1 + self.random.below(2000),
            2..=29 => 1 + self.random.below(3),
            _ => 4 + self.random.below(20),
        };
        self.random.bytes(len)
    }

    /// From nothing to several pages.
    fn value(&mut self) -> Vec<u8> {
        let len = match self.random.below(100) {
            0..=9 => 0,
            10..=11 => self.random.below(40_000),
            12..=19 => self.random.below(3000),
            _ => self.random.below(120),
        };
        self.random.bytes(len)
    }
}
