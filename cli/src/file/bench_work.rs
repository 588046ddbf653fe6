//! What `boltkv file bench` has a database do: the writes and reads of bbolt's bench, in the same buckets, with keys of the
//! same shape.

use std::time::{Duration, Instant};

use boltkv_storage::{Bucket, BucketMut, BucketPath, Db, Error, Fill, Result};
use clap::ValueEnum;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};

/// Reads are repeated for at least so long.
const READ_FOR: Duration = Duration::from_secs(1);
const BUCKET: &str = "bench";

/// Operations, and how long they took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    pub(super) ops: u64,
    pub(super) took: Duration,
}

/// In which order keys are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum WriteMode {
    /// Ascending
    Seq,
    /// At random
    Rnd,
    /// Ascending, each transaction in a bucket of its own
    SeqNest,
    /// At random, each transaction in a bucket of its own
    RndNest,
}

/// How much is written, and what.
pub(super) struct Work {
    pub(super) count: u32,
    /// Divides `count`.
    pub(super) batch_size: u32,
    /// At least 4.
    pub(super) key_size: usize,
    pub(super) value: Vec<u8>,
    pub(super) write_mode: WriteMode,
    pub(super) fill: Option<f64>,
}

/// A key that was written: the number of its bucket within the bench's, which only counts where buckets are nested, and its
/// own.
type Written = (u32, u32);

impl Work {
    /// Writes everything, and says what.
    pub(super) fn write(&self, db: &Db) -> Result<Vec<Written>> {
        let mut numbers = Numbers::new(matches!(self.write_mode, WriteMode::Rnd | WriteMode::RndNest));
        let mut written = Vec::with_capacity(self.count as usize);
        for _ in 0..self.count / self.batch_size {
            db.update(|tx| {
                let mut bucket = tx.create_bucket_if_not_exists(BUCKET)?;
                bucket.set_fill(self.fill());
                if !self.is_nested() {
                    return self.write_batch(bucket, 0, &mut numbers, &mut written);
                }
                let name = numbers.next();
                let mut inner = bucket.create_bucket_if_not_exists(self.key(name))?;
                inner.set_fill(self.fill());
                self.write_batch(inner, name, &mut numbers, &mut written)
            })?;
        }
        Ok(written)
    }

    fn write_batch(
        &self,
        mut bucket: BucketMut<'_>,
        name: u32,
        numbers: &mut Numbers,
        written: &mut Vec<Written>,
    ) -> Result<()> {
        for _ in 0..self.batch_size {
            let number = numbers.next();
            bucket.put(self.key(number), &self.value)?;
            written.push((name, number));
        }
        Ok(())
    }

    /// Reads everything with cursors.
    pub(super) fn read_in_order(&self, db: &Db) -> Result<Measured> {
        let tx = db.begin()?;
        repeat(|| {
            let bucket = tx.bucket(BUCKET)?;
            if !self.is_nested() {
                return count_values(bucket);
            }
            bucket.buckets().try_fold(0, |values, found| Ok(values + count_values(found?.1)?))
        })
    }

    /// Looks up every key by itself, in random order.
    pub(super) fn read_at_random(&self, db: &Db, mut keys: Vec<Written>) -> Result<Measured> {
        keys.shuffle(&mut SmallRng::seed_from_u64(1));
        let tx = db.begin()?;
        repeat(|| {
            let bucket = tx.bucket(BUCKET)?;
            for &(name, number) in &keys {
                let inner = if self.is_nested() { bucket.bucket(self.key(name))? } else { bucket };
                if inner.get(self.key(number))?.is_none() {
                    return Err(lost(&self.key(number)));
                }
            }
            Ok(keys.len() as u64)
        })
    }

    fn is_nested(&self) -> bool {
        matches!(self.write_mode, WriteMode::SeqNest | WriteMode::RndNest)
    }

    fn fill(&self) -> Fill {
        self.fill.map_or(Fill::Auto, Fill::Percent)
    }

    /// The key of a number: its four bytes, the highest first, and zeros.
    fn key(&self, number: u32) -> Vec<u8> {
        let mut key = vec![0; self.key_size];
        key[..size_of::<u32>()].copy_from_slice(&number.to_be_bytes());
        key
    }
}

fn count_values(bucket: Bucket<'_>) -> Result<u64> {
    let mut cursor = bucket.cursor();
    let mut values = 0;
    while let Some((key, value)) = cursor.next()? {
        if value.is_none() {
            return Err(lost(key));
        }
        values += 1;
    }
    Ok(values)
}

/// What was written must be read: anything else is no bench.
fn lost(key: &[u8]) -> Error {
    Error::IncompatibleValue { key: key.to_vec(), within: BucketPath::default(), is_bucket: true }
}

/// Reads until it has taken long enough.
fn repeat(mut read: impl FnMut() -> Result<u64>) -> Result<Measured> {
    let start = Instant::now();
    let mut ops = 0;
    loop {
        ops += read()?;
        let took = start.elapsed();
        if took >= READ_FOR {
            return Ok(Measured { ops, took });
        }
    }
}

/// 1, 2, 3 and so on, or numbers in which no order can be seen: the same ones in every run.
struct Numbers {
    last: u32,
    random: Option<SmallRng>,
}

impl Numbers {
    fn new(random: bool) -> Self {
        Self { last: 0, random: random.then(|| SmallRng::seed_from_u64(0)) }
    }

    fn next(&mut self) -> u32 {
        self.last = match &mut self.random {
            Some(random) => random.random(),
            None => self.last.saturating_add(1),
        };
        self.last
    }
}
