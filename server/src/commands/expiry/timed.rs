//! The writer's transaction at a time.
//!
//! Whoever changes a key there says first which it is, so that what has expired is gone before; and says afterwards what
//! became of its time.

use boltkv_protocol::{NEVER, Path};
use boltkv_storage::{Bucket, BucketMut, Error, Result, TxMut};

use super::records::{Place, Stamp, due};
use super::view::{Moment, View, found, is_there, of_in, stamp_in, times_in};
use super::{AT, GONE, IDS, OF, OWN};

/// The latest time that there is.
const LATEST: u64 = NEVER - 1;

/// The writer's transaction, and what time it is in it: the same for all that is done in one.
#[derive(Debug)]
pub(crate) struct Timed<'t> {
    pub(in crate::commands) tx: &'t mut TxMut,
    now: u64,
    /// Whether there are times, as far as that was looked at.
    any: Option<bool>,
    /// Whether somebody has made a savepoint, who takes all back if anything fails.
    is_undoable: bool,
    /// Why the transaction must not be committed.
    pub(in crate::commands) broken: Option<Error>,
    /// The earliest time that was set; now, where there is something to drop.
    pub(crate) earliest: Option<u64>,
    /// How many keys were removed because their time had come.
    pub(crate) expired: u64,
    /// The buckets that they were in, as far as these are keys of others: each once in a row.
    expired_in: Vec<Vec<u8>>,
}

impl<'t> Timed<'t> {
    /// A transaction in which it is `now`.
    pub(crate) const fn new(tx: &'t mut TxMut, now: u64) -> Self {
        Self {
            tx,
            now,
            any: None,
            is_undoable: false,
            broken: None,
            earliest: None,
            expired: 0,
            expired_in: Vec::new(),
        }
    }

    /// What time it is, in milliseconds since 1970.
    pub(crate) const fn now(&self) -> u64 {
        self.now
    }

    /// What is there, as it is to be seen.
    pub(crate) fn view(&self) -> View<'_, TxMut> {
        let moment = Moment::at(self.now);
        if self.any == Some(false) { View::without_times(self.tx, moment) } else { View::new(self.tx, moment) }
    }

    /// Whether any key has a time. Looked up once a transaction where none has.
    pub(in crate::commands) fn any(&mut self) -> Result<bool> {
        if self.any.is_none() {
            self.any = Some(found(self.tx.bucket(OWN))?.is_some());
        }
        Ok(self.any == Some(true))
    }

    /// Has `act` done wholly or not at all, and its savepoint let go. What is done within what can be undone, is undone with
    /// it.
    pub(crate) fn undoably<T, E>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        if self.is_undoable {
            return act(self);
        }
        let before = self.tx.savepoint();
        self.is_undoable = true;
        let done = act(self);
        self.is_undoable = false;
        if done.is_err() {
            self.broken = self.tx.rollback_to(&before).err();
            // What was found or made since may not be so any more.
            self.any = None;
        }
        self.tx.forget_savepoints();
        done
    }

    /// Has `act` done wholly or not at all, within what can be undone as a whole.
    pub(in crate::commands) fn attempt<T, E: From<Error>>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let before = self.tx.savepoint();
        let done = act(self);
        if done.is_err() {
            self.tx.rollback_to(&before)?;
            self.any = None;
        }
        done
    }

    /// Comes to a key in order to change it: removes it, or a bucket that leads to it, if the time of that has come.
    /// Returns when it expires otherwise, if it does. The bucket need not be there.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the file is damaged.
    pub(crate) fn enter(&mut self, path: &Path, key: &[u8]) -> Result<Option<u64>> {
        let stamp = self.enter_place(Place::from(path), key)?;
        Ok(stamp.map(|stamp| stamp.time))
    }

    /// The same for a bucket that is to be changed itself; one at the top never expires.
    ///
    /// # Errors
    /// As for [`Self::enter`].
    pub(crate) fn enter_bucket(&mut self, path: &Path) -> Result<()> {
        match Place::from(path).split() {
            Some((within, name)) => self.enter_place(within, name).map(drop),
            None => Ok(()),
        }
    }

    fn enter_place(&mut self, place: Place<'_>, key: &[u8]) -> Result<Option<Stamp>> {
        if !self.any()? {
            return Ok(None);
        }
        for (within, name) in place.steps() {
            if let Some(stamp) = self.stamp(within, name)?.filter(|stamp| stamp.is_past(self.now)) {
                self.remove(within, name, stamp)?;
                return Ok(None);
            }
        }
        let stamp = self.stamp(place, key)?;
        if let Some(stamp) = stamp.filter(|stamp| stamp.is_past(self.now)) {
            self.remove(place, key, stamp)?;
            return Ok(None);
        }
        Ok(stamp)
    }

    /// Sets when a key expires, a value or a bucket that is there, or that it never does; whether that is another time than
    /// before. Where that time has come the key is removed.
    ///
    /// # Errors
    /// [`Error::BucketNameRequired`] for the root: what is at the top does not expire. [`Error::KeyTooLarge`] where the names
    /// that lead to the bucket are too long together. [`Error::Corrupt`] where the file is damaged. It must be within
    /// [`Self::undoably`].
    pub(crate) fn set_expiry(&mut self, path: &Path, key: &[u8], at: Option<u64>) -> Result<bool> {
        let place = Place::from(path);
        if place.is_root() {
            return Err(Error::BucketNameRequired);
        }
        let before = self.stamp(place, key)?;
        match (before, at) {
            (None, None) => Ok(false),
            (Some(stamp), None) => self.forget_stamp(place, key, stamp).map(|()| true),
            (_, Some(at)) if at <= self.now => {
                self.remove_entry(place, key)?;
                if let Some(stamp) = before {
                    self.forget_stamp(place, key, stamp)?;
                }
                Ok(true)
            }
            (before, Some(at)) => self.set_stamp(place, key, before, at.min(LATEST)),
        }
    }

    /// A key is not there any more, or never expires from now on. One that has no time is not touched.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the file is damaged. It must be within [`Self::undoably`].
    pub(crate) fn forget(&mut self, path: &Path, key: &[u8]) -> Result<()> {
        self.forget_key(Place::from(path), key)
    }

    pub(super) fn forget_key(&mut self, place: Place<'_>, key: &[u8]) -> Result<()> {
        match self.stamp(place, key)? {
            Some(stamp) => self.forget_stamp(place, key, stamp),
            None => Ok(()),
        }
    }

    /// When a key expires, by what is stored.
    pub(super) fn stamp(&mut self, place: Place<'_>, key: &[u8]) -> Result<Option<Stamp>> {
        if !self.any()? {
            return Ok(None);
        }
        let Some(of) = of_in(&*self.tx)? else { return Ok(None) };
        times_in(of, place)?.map_or(Ok(None), |times| stamp_in(times, key))
    }

    /// Removes a key whose time has come, and what is stored about it.
    pub(super) fn remove(&mut self, place: Place<'_>, key: &[u8], stamp: Stamp) -> Result<()> {
        self.undoably(|timed| {
            timed.remove_entry(place, key)?;
            timed.forget_stamp(place, key, stamp)?;
            timed.note_expired(place, 1);
            Ok(())
        })
    }

    /// So many keys of a bucket were removed because their time had come.
    pub(super) fn note_expired(&mut self, place: Place<'_>, keys: u64) {
        self.expired += keys;
        let is_key = place.split().is_some_and(|(within, _)| !within.is_root());
        if is_key && self.expired_in.last().is_none_or(|last| last != place.0) {
            self.expired_in.push(place.0.to_vec());
        }
    }

    /// Has `tell` told of each key that is a bucket in which something has expired since it was asked for the last time: the
    /// bucket that it is in, and its name.
    pub(crate) fn tell_of_expired(&mut self, mut tell: impl FnMut(&Path, &[u8])) {
        for place in self.expired_in.drain(..) {
            if let Some((within, name)) = Place(&place).split()
                && let Ok(path) = Path::from_names(within.names())
            {
                tell(&path, name);
            }
        }
    }

    /// Removes a key, a value or a bucket, and its time; whether it was there.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the file is damaged. It must be within [`Self::undoably`].
    pub(in crate::commands) fn remove_key(&mut self, path: &Path, key: &[u8]) -> Result<bool> {
        self.enter(path, key)?;
        let was_there = match self.has(path, key) {
            Err(Error::BucketNotFound { .. }) => false,
            has => has?,
        };
        if was_there {
            self.remove_entry(Place::from(path), key)?;
        }
        self.forget(path, key)?;
        Ok(was_there)
    }

    /// Removes a value, or a bucket with what is stored about those in it.
    pub(super) fn remove_entry(&mut self, place: Place<'_>, key: &[u8]) -> Result<()> {
        let mut bucket = match self.tx.bucket_mut_path(place.names()) {
            Ok(bucket) => bucket,
            // Somebody else has taken it away.
            Err(Error::BucketNotFound { .. } | Error::IncompatibleValue { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        match bucket.delete(key) {
            Err(Error::IncompatibleValue { .. }) => bucket.delete_bucket(key)?,
            deleted => return deleted.map(drop),
        }
        self.forget_within(Place(&place.child(key)))
    }

    /// Writes down when a key expires; whether that is another time than before.
    pub(super) fn set_stamp(&mut self, place: Place<'_>, key: &[u8], before: Option<Stamp>, time: u64) -> Result<bool> {
        if before.is_some_and(|before| before.time == time) {
            return Ok(false);
        }
        let id = self.number(place)?;
        let mut at = part(self.tx, AT)?;
        let stamp = Stamp { time, serial: at.next_sequence()? };
        if let Some(before) = before {
            at.delete(before.to_bytes())?;
        }
        at.put(stamp.to_bytes(), due(id, key))?;
        self.tx.bucket_mut_path([OWN, OF, place.0])?.put(key, stamp.to_bytes())?;
        self.earliest = Some(self.earliest.map_or(time, |earliest| earliest.min(time)));
        Ok(true)
    }

    /// The number of a bucket whose keys have times; a new one where none has yet.
    fn number(&mut self, place: Place<'_>) -> Result<u64> {
        self.tx.create_bucket_if_not_exists(OWN)?;
        self.any = Some(true);
        let times = part(self.tx, OF)?.create_bucket_if_not_exists(place.0)?.sequence();
        if times > 0 {
            return Ok(times);
        }
        let mut ids = part(self.tx, IDS)?;
        let id = ids.next_sequence()?;
        ids.put(id.to_be_bytes(), place.0)?;
        self.tx.bucket_mut_path([OWN, OF, place.0])?.set_sequence(id)?;
        Ok(id)
    }

    fn forget_stamp(&mut self, place: Place<'_>, key: &[u8], stamp: Stamp) -> Result<()> {
        if let Some(mut at) = found_mut(self.tx.bucket_mut_path([OWN, AT]))? {
            at.delete(stamp.to_bytes())?;
        }
        self.forget_in_of(place, &[key])
    }

    /// Removes the records of a bucket, whatever they say of its keys.
    pub(super) fn forget_place(&mut self, place: &[u8], id: u64) -> Result<()> {
        let its_number = id.to_be_bytes();
        part(self.tx, IDS)?.delete(its_number)?;
        if self.tx.bucket_mut_path([OWN, OF, place])?.first()?.is_none() {
            return part(self.tx, OF)?.delete_bucket(place);
        }
        part(self.tx, GONE)?;
        self.earliest = Some(self.now);
        match self.tx.move_bucket_as(place, &[OWN, OF], &[OWN, GONE], its_number) {
            // Somebody else has given the number twice: what is left comes up in its time.
            Err(Error::BucketExists { .. } | Error::IncompatibleValue { .. }) => {
                part(self.tx, OF)?.delete_bucket(place)
            }
            moved => moved,
        }
    }

    /// Where no key has a time any more, nothing is left of any.
    pub(super) fn clean_up(&mut self) -> Result<()> {
        let is_empty = match of_in(&*self.tx)? {
            Some(of) => of.first()?.is_none(),
            None => true,
        };
        if is_empty {
            self.tx.delete_bucket(OWN)?;
            self.any = Some(false);
        }
        Ok(())
    }

    /// Whether a bucket has a time.
    ///
    /// # Errors
    /// As for [`Self::enter`].
    pub(in crate::commands) fn expires(&mut self, path: &Path) -> Result<bool> {
        let split = Place::from(path).split();
        split.map_or(Ok(false), |(within, name)| Ok(self.stamp(within, name)?.is_some()))
    }

    /// Whether there is a value or a bucket of that name.
    ///
    /// # Errors
    /// Those of the bucket's look-up.
    pub(crate) fn has(&self, path: &Path, key: &[u8]) -> Result<bool> {
        is_there(self.tx.bucket_path(path.names())?, key)
    }

    /// The times of a bucket's keys, if any has one.
    pub(super) fn times(&self, place: Place<'_>) -> Result<Option<Bucket<'_>>> {
        if self.any == Some(false) {
            return Ok(None);
        }
        of_in(&*self.tx)?.map_or(Ok(None), |of| times_in(of, place))
    }
}

/// A time from now on, in milliseconds; as late as there is where that is beyond all numbers.
pub(crate) const fn after(now: u64, ms: u64) -> u64 {
    now.saturating_add(ms)
}

/// A part of what is boltkv's own, made where it is missing.
pub(super) fn part<'t>(tx: &'t mut TxMut, name: &[u8]) -> Result<BucketMut<'t>> {
    let mut own = tx.bucket_mut(OWN)?;
    own.create_bucket_if_not_exists(name)?;
    tx.bucket_mut_path([OWN, name])
}

/// A bucket, if it is one.
pub(super) fn found_mut(bucket: Result<BucketMut<'_>>) -> Result<Option<BucketMut<'_>>> {
    match bucket {
        Ok(bucket) => Ok(Some(bucket)),
        Err(Error::BucketNotFound { .. } | Error::IncompatibleValue { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
