//! Replay: makes recorded effects in a write transaction, whose base is the state that they were recorded on.
//!
//! Each effect has to find what it says was there. One that does not tells that the record is of another state, and is an
//! error: what such records lead to would be nobody's.

use super::codec::{Effect, Reader, Unreadable};
use crate::base::Error;
use crate::format::{Between, LeafEntry};
use crate::pages::MAX_DEPTH;
use crate::tree::slots::At;
use crate::tree::view::{Source, View, too_deep};
use crate::tree::walk::Allowance;
use crate::tree::work::Work;
use crate::tree::{BucketId, ROOT_BUCKET};

/// Keys that are gathered before they are deleted.
const BATCH: usize = 256;

/// Why effects could not be made. The transaction is of no use then.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The bytes are no effects.
    Unreadable(Unreadable),
    /// The effect at this byte does not fit the state that it was to be made to.
    DoesNotFit { at: usize, what: String },
    /// The file is damaged.
    Damaged(Error),
}

impl From<Unreadable> for Refused {
    fn from(unreadable: Unreadable) -> Self {
        Self::Unreadable(unreadable)
    }
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

/// Makes the effects of one record, and knows the buckets that it calls by numbers.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    /// By their numbers, from 1 on; `None` for those that stand for nothing any more.
    buckets: Vec<Option<BucketId>>,
}

impl Replay {
    /// Makes all effects of one record.
    pub(crate) fn make_all(work: &mut Work, effects: &[u8]) -> Result<(), Refused> {
        let mut replay = Self::default();
        let mut effects = Reader::new(effects);
        loop {
            let at = effects.at();
            let Some(effect) = effects.next() else { return Ok(()) };
            let effect = effect?;
            replay.make(work, effect).map_err(|failed| match failed {
                Failed::DoesNotFit(what) => Refused::DoesNotFit { at, what },
                Failed::Engine(error @ Error::Corrupt { .. }) => Refused::Damaged(error),
                Failed::Engine(error) => Refused::DoesNotFit { at, what: error.to_string() },
            })?;
        }
    }

    fn make(&mut self, work: &mut Work, effect: Effect<'_>) -> Result<(), Failed> {
        match effect {
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
            Effect::Put { bucket, key, value } => work.put(self.bucket(work, bucket)?, key, value)?,
            Effect::Deleted { bucket, key } => {
                if !work.delete(self.bucket(work, bucket)?, key)? {
                    return Err(Failed::DoesNotFit("it deletes a key that is not there".into()));
                }
            }
            Effect::RangeDeleted { bucket, first, last } => {
                delete_range(work, self.bucket(work, bucket)?, first, last)?;
            }
            Effect::BucketDeleted { within, name } => work.delete_bucket(self.bucket(work, within)?, name)?,
            Effect::Moved { from, name, to } => {
                let (from, to) = (self.bucket(work, from)?, self.bucket(work, to)?);
                work.move_bucket(name, from, to)?;
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
