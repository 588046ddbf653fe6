//! A state as it is to be seen at a time: without what has expired, though it may still be stored.

use std::cell::OnceCell;

use boltkv_protocol::{NEVER, Path};
use boltkv_storage::{Bucket, BucketPath, Cursor, Error, Result};

use super::clock::Clock;
use super::records::{Place, Stamp};
use super::{OF, OWN};
use crate::commands::state::State;

/// When something is looked at. The clock is read once, where a key has a time at all.
#[derive(Debug, Clone)]
pub(crate) struct Moment<'c> {
    clock: Option<&'c Clock>,
    now: OnceCell<u64>,
}

impl<'c> Moment<'c> {
    /// Whatever it is when somebody wants to know; the same from then on.
    pub(crate) const fn of(clock: &'c Clock) -> Self {
        Self { clock: Some(clock), now: OnceCell::new() }
    }

    /// This time, in milliseconds since 1970.
    pub(crate) fn at(now: u64) -> Self {
        Self { clock: None, now: now.into() }
    }

    pub(crate) fn now(&self) -> u64 {
        *self.now.get_or_init(|| self.clock.map_or(0, Clock::now))
    }

    /// Whether that has come.
    pub(super) fn is_past(&self, stamp: Stamp) -> bool {
        stamp.is_past(self.now())
    }
}

/// A state at a moment. In one that has no times it costs one look-up of a name at the top, however much is read.
#[derive(Debug)]
pub(crate) struct View<'s, S> {
    state: &'s S,
    moment: Moment<'s>,
    /// The records of all buckets, once they were looked for; `None` where there are none.
    of: OnceCell<Option<Bucket<'s>>>,
}

/// A bucket, and when its keys expire.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown<'s> {
    pub(crate) bucket: Bucket<'s>,
    /// `None` where none of its keys does.
    times: Option<Bucket<'s>>,
}

impl<'s, S: State> View<'s, S> {
    /// As of a moment.
    pub(crate) const fn new(state: &'s S, moment: Moment<'s>) -> Self {
        Self { state, moment, of: OnceCell::new() }
    }

    /// The same of a state of which it is known that no key in it has a time.
    pub(in crate::commands) fn without_times(state: &'s S, moment: Moment<'s>) -> Self {
        Self { state, moment, of: None.into() }
    }

    pub(crate) const fn moment(&self) -> &Moment<'s> {
        &self.moment
    }

    /// The bucket at a path. One that has expired, or that lies in one, is not there.
    pub(crate) fn bucket(&self, path: &Path) -> Result<Shown<'s>> {
        let times = self.times_on_the_way(Place::from(path))?;
        Ok(Shown { bucket: self.state.bucket_at(path)?, times })
    }

    /// A cursor over a bucket, or over the root, which holds buckets only; and when its keys expire.
    pub(crate) fn cursor(&self, path: &Path) -> Result<(Cursor<'s>, Option<Bucket<'s>>)> {
        let times = self.times_on_the_way(Place::from(path))?;
        Ok((self.state.cursor_at(path)?, times))
    }

    /// When the keys of a bucket expire; an error where one expired that leads to it.
    fn times_on_the_way(&self, place: Place<'_>) -> Result<Option<Bucket<'s>>> {
        let Some(of) = self.of()? else { return Ok(None) };
        for (within, name) in place.steps() {
            // At the top nothing expires.
            let Some(times) = times_in(of, within)? else { continue };
            if stamp_in(times, name)?.is_some_and(|stamp| self.moment.is_past(stamp)) {
                return Err(not_there(name));
            }
        }
        times_in(of, place)
    }

    /// What is stored of when keys expire, to look buckets up by that lie in those found here.
    pub(in crate::commands) fn records(&self) -> Result<Records<'s>> {
        self.of().map(Records)
    }

    fn of(&self) -> Result<Option<Bucket<'s>>> {
        if let Some(of) = self.of.get() {
            return Ok(*of);
        }
        let of = of_in(self.state)?;
        Ok(*self.of.get_or_init(|| of))
    }
}

/// What is stored of when keys expire; `None` where no key does.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Records<'s>(Option<Bucket<'s>>);

impl<'s> Records<'s> {
    /// A bucket in the one at `path`, and when its keys expire.
    pub(in crate::commands) fn bucket_in(self, path: &Path, within: Bucket<'s>, name: &[u8]) -> Result<Shown<'s>> {
        let bucket = within.bucket(name)?;
        let times = match self.0 {
            Some(of) => times_in(of, Place(&Place::from(path).child(name)))?,
            None => None,
        };
        Ok(Shown { bucket, times })
    }
}

impl<'s> Shown<'s> {
    /// The value of a key that has not expired; `None` where there is none.
    pub(crate) fn get(&self, key: &[u8], moment: &Moment<'_>) -> Result<Option<&'s [u8]>> {
        if self.is_past(key, moment)? { Ok(None) } else { self.bucket.get(key) }
    }

    /// When a key expires, [`NEVER`] if it does not; `None` where it is not there, or has expired. A bucket in this one is a
    /// key like any other.
    pub(crate) fn time_of(&self, key: &[u8], moment: &Moment<'_>) -> Result<Option<u64>> {
        let stamp = self.stamp(key)?;
        if stamp.is_some_and(|stamp| moment.is_past(stamp)) || !is_there(self.bucket, key)? {
            return Ok(None);
        }
        Ok(Some(stamp.map_or(NEVER, |stamp| stamp.time)))
    }

    /// Whether a look-up of the key waits for no disk.
    pub(crate) fn is_resident(&self, key: &[u8]) -> bool {
        self.times.is_none_or(|times| times.is_resident(key)) && self.bucket.is_resident(key)
    }

    /// Waits until all pages are in memory that look-ups of these keys need.
    pub(crate) fn fault_in(&self, keys: &[impl AsRef<[u8]>]) {
        if let Some(times) = self.times {
            times.fault_in(keys);
        }
        self.bucket.fault_in(keys);
    }

    /// Whether a key has expired.
    pub(in crate::commands) fn is_past(&self, key: &[u8], moment: &Moment<'_>) -> Result<bool> {
        Ok(self.stamp(key)?.is_some_and(|stamp| moment.is_past(stamp)))
    }

    fn stamp(&self, key: &[u8]) -> Result<Option<Stamp>> {
        self.times.map_or(Ok(None), |times| stamp_in(times, key))
    }
}

/// The records of all buckets in a state, if it has any.
pub(super) fn of_in<S: State>(state: &S) -> Result<Option<Bucket<'_>>> {
    match found(state.top(OWN))? {
        Some(own) => found(own.bucket(OF)),
        None => Ok(None),
    }
}

/// Those of one bucket.
pub(super) fn times_in<'s>(of: Bucket<'s>, place: Place<'_>) -> Result<Option<Bucket<'s>>> {
    if place.is_root() { Ok(None) } else { found(of.bucket(place.0)) }
}

/// The one of a key.
pub(super) fn stamp_in(times: Bucket<'_>, key: &[u8]) -> Result<Option<Stamp>> {
    match times.get(key) {
        Ok(stamp) => Ok(stamp.and_then(Stamp::parse)),
        Err(Error::IncompatibleValue { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A bucket, if it is one: what somebody else has put in its place says nothing.
pub(super) fn found(bucket: Result<Bucket<'_>>) -> Result<Option<Bucket<'_>>> {
    match bucket {
        Ok(bucket) => Ok(Some(bucket)),
        Err(Error::BucketNotFound { .. } | Error::IncompatibleValue { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a bucket has a value or a bucket of this name.
pub(super) fn is_there(bucket: Bucket<'_>, key: &[u8]) -> Result<bool> {
    match bucket.get(key) {
        Ok(value) => Ok(value.is_some()),
        Err(Error::IncompatibleValue { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

#[cold]
fn not_there(name: &[u8]) -> Error {
    Error::BucketNotFound { name: name.to_vec(), within: BucketPath::default() }
}
