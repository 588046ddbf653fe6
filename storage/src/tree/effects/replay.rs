//! Replay: makes recorded effects in a write transaction, whose base is the state that they were recorded on.
//!
//! Each effect has to find what it says was there. One that does not tells that the record is of another state, and is an
//! error: what such records lead to would be nobody's.
//!
//! Who opens a file waits for this. So what is done to single keys is gathered, across records, and made in the keys' order
//! before anything else is: keys without order would cost a wait for memory each. To one key all is done as it was.
//!
//! That may be done in parts, for one transaction that has done all would take as much memory as they all. What lies between
//! is a state that never was, with a number that its state has not: nobody is to see it, and it is not to become durable.

use std::collections::{HashMap, HashSet};

use fnv::FnvBuildHasher;

use super::codec::{Effect, Reader, Unreadable};
use super::gathered::{Gathered, One};
use super::range::delete_range;
use crate::base::{Error, TxId};
use crate::tree::names::Names;
use crate::tree::work::Work;
use crate::tree::{BucketId, ROOT_BUCKET};

/// Effects that are gathered before they are made: 24 bytes each.
const MOST_GATHERED: usize = if cfg!(any(test, fuzzing)) { 5 } else { 1 << 20 };

/// What an effect that is not on a single key counts for, in bytes of keys and values.
const OTHER: usize = 256;

/// What one transaction has recorded.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) txid: TxId,
    pub(crate) effects: Vec<u8>,
}

/// Why effects could not be made. The transaction is of no use then.
#[derive(Debug)]
pub(crate) enum Refused {
    /// From this byte of the record of `txid` on, the bytes are no effects, or the effect does not fit the state that it was
    /// to be made to.
    Record { txid: TxId, at: usize, what: String },
    /// The file is damaged.
    Damaged(Error),
}

/// An effect that does not fit, or another error.
pub(super) enum Failed {
    DoesNotFit(String),
    Engine(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// Where an effect is recorded.
#[derive(Debug, Clone, Copy)]
struct Place {
    txid: TxId,
    at: usize,
}

impl Place {
    fn refused(self, failed: Failed) -> Refused {
        let Self { txid, at } = self;
        match failed {
            Failed::DoesNotFit(what) => Refused::Record { txid, at, what },
            Failed::Engine(error @ Error::Corrupt { .. }) => Refused::Damaged(error),
            Failed::Engine(error) => Refused::Record { txid, at, what: error.to_string() },
        }
    }
}

/// Makes the effects of records that follow one another, in parts: each in a transaction on the state that the one before led to.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    records: &'a [Recorded],
    /// The record that is read, and how far.
    record: usize,
    reader: Reader<'a>,
    names: Names,
    /// Of those, the buckets that were deleted: one that is called so later is another one, with another number.
    gone: HashSet<u32, FnvBuildHasher>,
    /// Those that the transaction has opened.
    opened: HashMap<u32, BucketId, FnvBuildHasher>,
    /// The buckets that the record calls by numbers, by their numbers among the names, from 1 on. The first so many stand for
    /// nothing any more.
    buckets: Vec<u32>,
    forgotten: usize,
    /// What is still to be done to single keys, since the state of this number.
    gathered: Gathered,
    since: TxId,
    /// The number of the state that was reached.
    reached: TxId,
    /// What is to be done once that is.
    next: Option<(Effect<'a>, Place)>,
}

impl<'a> Replay<'a> {
    pub(crate) fn new(records: &'a [Recorded]) -> Self {
        let reader = Reader::new(records.first().map_or(&[], |record| &record.effects));
        let reached = records.first().map_or(0, |record| record.txid.saturating_sub(1));
        Self {
            records,
            record: 0,
            reader,
            names: Names::default(),
            gone: HashSet::default(),
            opened: HashMap::default(),
            buckets: Vec::new(),
            forgotten: 0,
            gathered: Gathered::default(),
            since: reached,
            reached,
            next: None,
        }
    }

    /// Makes all effects of records in one transaction.
    pub(crate) fn make_all(work: &mut Work, records: &'a [Recorded]) -> Result<(), Refused> {
        Self::new(records).make(work, usize::MAX)
    }

    /// Whether all was made.
    pub(crate) fn is_done(&self) -> bool {
        self.record == self.records.len() && self.gathered.is_empty() && self.next.is_none()
    }

    /// A number for the state that was reached now: after those that others have, and before what is left. `None` where there is
    /// none, so that more belongs to it.
    pub(crate) fn reach(&mut self) -> Option<TxId> {
        let last = self.records.last()?.txid;
        let next = if self.is_done() {
            last
        } else {
            let before = self.records.get(self.record).map_or(last, |record| record.txid).saturating_sub(1);
            let (taken, of) = (self.gathered.taken() as u128, self.gathered.len() as u128);
            // Evenly, and one more part than there are numbers: the last one has the next record's.
            let part = (u128::from(before.saturating_sub(self.since)) + 1) * taken;
            let reached = |part| self.since.saturating_add(u64::try_from(part).unwrap_or(u64::MAX)).min(before);
            part.checked_div(of).map_or(before, reached)
        };
        let is_new = next > self.reached;
        self.reached = self.reached.max(next);
        is_new.then_some(next)
    }

    /// Makes the next effects, until keys and values have so many bytes, or all of them.
    pub(crate) fn make(&mut self, work: &mut Work, bytes: usize) -> Result<(), Refused> {
        let mut left = bytes;
        self.opened.clear();
        loop {
            self.make_gathered(work, &mut left)?;
            if left > 0
                && let Some((effect, place)) = self.next.take()
            {
                self.make_one(work, effect).map_err(|failed| place.refused(failed))?;
                left = left.saturating_sub(OTHER);
            }
            if left == 0 || self.is_done() {
                return Ok(());
            }
            self.since = self.reached;
            self.gather()?;
        }
    }

    /// Gathers what is done to single keys, up to what has to wait for that.
    fn gather(&mut self) -> Result<(), Refused> {
        while self.next.is_none() && self.gathered.len() < MOST_GATHERED {
            let Some(Recorded { txid, .. }) = self.records.get(self.record) else { break };
            let place = Place { txid: *txid, at: self.reader.at() };
            match self.reader.next() {
                Some(effect) => {
                    let effect = effect.map_err(|Unreadable { what, .. }| Failed::DoesNotFit(what.into()));
                    effect.and_then(|effect| self.note(effect, place)).map_err(|failed| place.refused(failed))?;
                }
                None if self.begin_record() => {}
                None => break,
            }
        }
        self.gathered.sort(self.records);
        Ok(())
    }

    /// On to the next record; `false` where all that is gathered is to be made before.
    fn begin_record(&mut self) -> bool {
        if self.names.is_full() && !self.gathered.is_empty() {
            return false;
        }
        if self.names.is_full() {
            self.names = Names::default();
            self.gone.clear();
            self.opened.clear();
        }
        self.buckets.clear();
        self.forgotten = 0;
        self.record += 1;
        self.reader = Reader::new(self.records.get(self.record).map_or(&[], |record| &record.effects));
        true
    }

    /// Gathers an effect, if it is one on a single key.
    fn note(&mut self, effect: Effect<'a>, place: Place) -> Result<(), Failed> {
        match effect {
            Effect::Put { bucket, .. } | Effect::Deleted { bucket, .. } | Effect::Sequence { bucket, .. } => {
                match One::new(self.name(bucket)?, self.record, place.at) {
                    Some(one) => self.gathered.push(one),
                    None => self.next = Some((effect, place)),
                }
            }
            Effect::Path { within, name } => self.note_bucket(within, name)?,
            other => self.next = Some((other, place)),
        }
        Ok(())
    }

    /// Makes what is gathered, in the keys' order, as long as something is `left`.
    fn make_gathered(&mut self, work: &mut Work, left: &mut usize) -> Result<(), Refused> {
        while *left > 0
            && let Some(one) = self.gathered.take(self.records)
        {
            let failed = |failed| Place { txid: one.record(self.records).txid, at: one.at() }.refused(failed);
            let bucket = self.open(work, one.bucket).map_err(failed)?;
            let effect = one.effect(self.records);
            *left = left.saturating_sub(make_on_key(work, bucket, effect).map_err(failed)?);
        }
        Ok(())
    }

    fn make_one(&mut self, work: &mut Work, effect: Effect<'a>) -> Result<(), Failed> {
        match effect {
            Effect::Created { within, name } => {
                let bucket = self.bucket(work, within)?;
                work.create_bucket(bucket, name)?;
                self.note_bucket(within, name)?;
            }
            Effect::RangeDeleted { bucket, first, last } => {
                let bucket = self.bucket(work, bucket)?;
                delete_range(work, bucket, first, last)?;
            }
            Effect::BucketDeleted { within, name } => {
                let bucket = self.bucket(work, within)?;
                work.delete_bucket(bucket, name)?;
                self.forget(within, name)?;
            }
            Effect::Moved { from, name, to, its_name } => {
                let (from, to) = (self.bucket(work, from)?, self.bucket(work, to)?);
                work.move_bucket(name, from, to, its_name)?;
                self.forgotten = self.buckets.len();
                self.opened.clear();
            }
            Effect::Put { bucket, .. } | Effect::Deleted { bucket, .. } | Effect::Sequence { bucket, .. } => {
                let bucket = self.bucket(work, bucket)?;
                make_on_key(work, bucket, Some(effect))?;
            }
            Effect::Path { within, name } => self.note_bucket(within, name)?,
        }
        Ok(())
    }

    /// The bucket that the record calls by this number.
    fn bucket(&mut self, work: &mut Work, number: u32) -> Result<BucketId, Failed> {
        self.open(work, self.name(number)?)
    }

    /// The one that is called by this number among the names.
    fn open(&mut self, work: &mut Work, number: u32) -> Result<BucketId, Failed> {
        let mut way = Vec::new();
        let (mut next, mut bucket) = (number, ROOT_BUCKET);
        while let Some((within, name)) = self.names.get(next) {
            if let Some(&opened) = self.opened.get(&next) {
                bucket = opened;
                break;
            }
            way.push((next, name));
            next = within;
        }
        for (number, name) in way.into_iter().rev() {
            bucket = work.open_bucket(bucket, name)?;
            self.opened.insert(number, bucket);
        }
        Ok(bucket)
    }

    /// The number among the names of the bucket that the record calls by this one.
    fn name(&self, number: u32) -> Result<u32, Failed> {
        let named = match number {
            0 => Some(0),
            number => {
                let place = number as usize - 1;
                self.buckets.get(place).filter(|_| place >= self.forgotten).copied()
            }
        };
        let is_there =
            |named: &u32| self.gone.is_empty() || !self.names.way_up(*named).any(|above| self.gone.contains(&above));
        named.filter(is_there).ok_or_else(|| Failed::DoesNotFit(format!("number {number} stands for no bucket")))
    }

    /// From now on the record's next number stands for this bucket.
    fn note_bucket(&mut self, within: u32, name: &[u8]) -> Result<(), Failed> {
        let number = self.names.add(self.name(within)?, name);
        self.buckets.push(number.ok_or_else(|| Failed::DoesNotFit("more buckets than there are numbers".into()))?);
        Ok(())
    }

    /// From now on no number stands for this bucket, or for one in it.
    fn forget(&mut self, within: u32, name: &[u8]) -> Result<(), Failed> {
        self.gone.extend(self.names.forget(self.name(within)?, name));
        Ok(())
    }
}

/// Makes an effect on a single key; the bytes of key and value.
fn make_on_key(work: &mut Work, bucket: BucketId, effect: Option<Effect<'_>>) -> Result<usize, Failed> {
    match effect {
        Some(Effect::Put { key, value, .. }) => {
            work.put(bucket, key, value)?;
            Ok(key.len() + value.len())
        }
        Some(Effect::Deleted { key, .. }) if work.delete(bucket, key)? => Ok(key.len()),
        Some(Effect::Sequence { sequence, .. }) => {
            work.set_sequence(bucket, sequence)?;
            Ok(size_of::<u64>())
        }
        _ => Err(Failed::DoesNotFit("it deletes a key that is not there".into())),
    }
}
