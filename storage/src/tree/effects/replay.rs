//! Replay: makes recorded effects in a write transaction, whose base is the state that they were recorded on.
//!
//! Each effect has to find what it says was there. One that does not tells that the record is of another state, and is an
//! error: what such records lead to would be nobody's.
//!
//! Who opens a file waits for this. So what is done to single keys is gathered, across records, and made in the keys' order
//! before anything else is: keys without order would cost a wait for memory each. To one key all is done as it was.

use super::codec::{Effect, Reader, Unreadable};
use crate::base::{Error, TxId};
use crate::format::{Between, LeafEntry, prefix};
use crate::pages::MAX_DEPTH;
use crate::tree::slots::At;
use crate::tree::view::{Source, View, too_deep};
use crate::tree::walk::Allowance;
use crate::tree::work::Work;
use crate::tree::{BucketId, ROOT_BUCKET};

/// Keys that are gathered before they are deleted.
const BATCH: usize = 256;
/// Effects that are gathered before they are made: less than 64 bytes each.
const MOST_GATHERED: usize = if cfg!(any(test, fuzzing)) { 5 } else { 1 << 17 };

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
enum Failed {
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

/// A value that is to be put, or `None`: a key that is to be deleted.
#[derive(Debug)]
struct Gathered<'a> {
    bucket: BucketId,
    prefix: u64,
    key: &'a [u8],
    value: Option<&'a [u8]>,
    place: Place,
}

impl Gathered<'_> {
    /// Whether `next` does away with all that this one does.
    fn is_undone_by(&self, next: &Self) -> bool {
        let is_same = self.bucket == next.bucket && self.key == next.key;
        is_same && self.value.is_some() && next.value.is_some()
    }
}

/// Makes the effects of records, and knows the buckets that the one of the moment calls by numbers.
#[derive(Debug, Default)]
pub(crate) struct Replay<'a> {
    /// By their numbers, from 1 on; `None` for those that stand for nothing any more.
    buckets: Vec<Option<BucketId>>,
    /// What is still to be done to single keys, in the order in which it was.
    gathered: Vec<Gathered<'a>>,
}

impl<'a> Replay<'a> {
    /// Makes all effects of records that follow one another.
    pub(crate) fn make_all(work: &mut Work, records: &'a [Recorded]) -> Result<(), Refused> {
        let mut replay = Self::default();
        for Recorded { txid, effects } in records {
            replay.buckets.clear();
            let mut effects = Reader::new(effects);
            loop {
                let place = Place { txid: *txid, at: effects.at() };
                let Some(effect) = effects.next() else { break };
                let effect =
                    effect.map_err(|Unreadable { what, .. }| place.refused(Failed::DoesNotFit(what.into())))?;
                replay.gather_or_make(work, effect, place)?;
            }
        }
        replay.make_gathered(work)
    }

    fn gather_or_make(&mut self, work: &mut Work, effect: Effect<'a>, place: Place) -> Result<(), Refused> {
        // These edits do not depend on the keys of values.
        let can_wait = matches!(
            effect,
            Effect::Put { .. } | Effect::Deleted { .. } | Effect::Path { .. } | Effect::Sequence { .. }
        );
        if !can_wait || self.gathered.len() >= MOST_GATHERED {
            self.make_gathered(work)?;
        }
        self.make(work, effect, place).map_err(|failed| place.refused(failed))
    }

    fn gather(&mut self, bucket: BucketId, key: &'a [u8], value: Option<&'a [u8]>, place: Place) {
        self.gathered.push(Gathered { bucket, prefix: prefix(key), key, value, place });
    }

    /// Makes what is gathered, in the keys' order.
    fn make_gathered(&mut self, work: &mut Work) -> Result<(), Refused> {
        self.gathered.sort_unstable_by(|a, b| {
            let keys = (a.bucket.0, a.prefix, a.key).cmp(&(b.bucket.0, b.prefix, b.key));
            keys.then_with(|| (a.place.txid, a.place.at).cmp(&(b.place.txid, b.place.at)))
        });
        let mut gathered = self.gathered.drain(..).peekable();
        while let Some(effect) = gathered.next() {
            if gathered.peek().is_some_and(|next| effect.is_undone_by(next)) {
                continue;
            }
            make_one(work, &effect).map_err(|failed| effect.place.refused(failed))?;
        }
        Ok(())
    }

    fn make(&mut self, work: &mut Work, effect: Effect<'a>, place: Place) -> Result<(), Failed> {
        match effect {
            Effect::Put { bucket, key, value } => self.gather(self.bucket(work, bucket)?, key, Some(value), place),
            Effect::Deleted { bucket, key } => self.gather(self.bucket(work, bucket)?, key, None, place),
            Effect::Path { within, name } => {
                let within = self.bucket(work, within)?;
                let bucket = work.open_bucket(within, name)?;
                self.buckets.push(Some(bucket));
            }
            Effect::Created { within, name } => {
                let within = self.bucket(work, within)?;
                let bucket = work.create_bucket(within, name)?;
                self.buckets.push(Some(bucket));
            }
            Effect::RangeDeleted { bucket, first, last } => {
                delete_range(work, self.bucket(work, bucket)?, first, last)?;
            }
            Effect::BucketDeleted { within, name } => work.delete_bucket(self.bucket(work, within)?, name)?,
            Effect::Moved { from, name, to, its_name } => {
                let (from, to) = (self.bucket(work, from)?, self.bucket(work, to)?);
                work.move_bucket(name, from, to, its_name)?;
                self.buckets.fill(None);
            }
            Effect::Sequence { bucket, sequence } => work.set_sequence(self.bucket(work, bucket)?, sequence)?,
        }
        Ok(())
    }

    fn bucket(&self, work: &Work, number: u32) -> Result<BucketId, Failed> {
        let bucket = match number {
            0 => Some(ROOT_BUCKET),
            number => self.buckets.get(number as usize - 1).copied().flatten(),
        };
        let bucket = bucket.filter(|&bucket| !work.state(bucket).deleted);
        bucket.ok_or_else(|| Failed::DoesNotFit(format!("number {number} stands for no bucket")))
    }
}

fn make_one(work: &mut Work, effect: &Gathered<'_>) -> Result<(), Failed> {
    match effect.value {
        Some(value) => Ok(work.put(effect.bucket, effect.key, value)?),
        None if work.delete(effect.bucket, effect.key)? => Ok(()),
        None => Err(Failed::DoesNotFit("it deletes a key that is not there".into())),
    }
}

/// Deletes all from `first` to `last`.
fn delete_range(work: &mut Work, bucket: BucketId, first: &[u8], last: &[u8]) -> Result<(), Failed> {
    let mut from = first.to_vec();
    let mut newest: Option<Vec<u8>> = None;
    loop {
        let keys = keys_between(work, bucket, &from, last)?;
        let Some(greatest) = keys.last().cloned() else { break };
        if newest.is_none() && keys.first().is_none_or(|least| least != first) {
            break;
        }
        for key in &keys {
            work.leaf_of(bucket, key)?;
            work.remove_and_prune(bucket, key)?;
        }
        from = [&greatest[..], &[0]].concat();
        newest = Some(greatest);
    }
    if newest.as_deref() != Some(last) {
        return Err(Failed::DoesNotFit("a range ends in a key that is not there".into()));
    }
    work.record_range(bucket, first, last);
    Ok(())
}

/// Up to [`BATCH`] keys of values from `first` to `last`, in order.
fn keys_between(work: &Work, bucket: BucketId, first: &[u8], last: &[u8]) -> Result<Vec<Vec<u8>>, Failed> {
    let source = work.source();
    let mut allowance = Allowance::new(&source);
    let mut above: Vec<(View<'_>, At)> = Vec::new();
    let mut between = Between::ANY;
    let mut view = source.root(work.root(bucket))?;
    let mut at = view.seek(first, &mut between)?;
    while let (false, Some(here)) = (view.is_leaf(), at) {
        above.push((view, here));
        view = below(&source, &above)?;
        at = view.seek(first, &mut between)?;
    }
    let mut keys: Vec<Vec<u8>> = Vec::new();
    loop {
        while let Some(here) = at {
            let LeafEntry { key, is_bucket, .. } = view.entry(here)?;
            if key > last || keys.len() == BATCH {
                return Ok(keys);
            }
            if is_bucket {
                return Err(Failed::DoesNotFit("there is a bucket in a range that is deleted".into()));
            }
            if key < first || keys.last().is_some_and(|before| &before[..] >= key) {
                return Err(Error::corrupt(view.page(), "its keys are not in order").into());
            }
            keys.push(key.to_vec());
            at = view.next(here);
        }
        // The leaf is at its end: on to the next one.
        let next = loop {
            let Some((branch, at)) = above.pop() else { return Ok(keys) };
            if let Some(next) = branch.next(at) {
                break (branch, next);
            }
        };
        above.push(next);
        view = below(&source, &above)?;
        allowance.spend_page(&view)?;
        at = view.first();
        while let (false, Some(here)) = (view.is_leaf(), at) {
            above.push((view, here));
            view = below(&source, &above)?;
            allowance.spend_page(&view)?;
            at = view.first();
        }
    }
}

/// What the last of a way down leads to.
fn below<'a>(source: &Source<'a>, above: &[(View<'a>, At)]) -> Result<View<'a>, Error> {
    match above {
        [.., (branch, at)] if above.len() <= MAX_DEPTH => source.view(branch.child(*at)?),
        [.., (branch, _)] => Err(too_deep(branch)),
        [] => Err(Error::corrupt(0, "a way down that leads nowhere")),
    }
}
