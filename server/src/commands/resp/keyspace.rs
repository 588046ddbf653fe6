//! A database as commands see it.

use boltkv_protocol::{ErrorCode, NEVER, Path, Reply};
use boltkv_storage::{Bucket, BucketMut, Error};

use super::database::Database;
use super::failure::Failure;
use super::hash_mut::{Change, HashMut};
use super::watching::WatchedKeys;
use crate::commands::expiry::{Moment, Records, Shown, Timed, View};
use crate::commands::results::ReplyRoom;
use crate::commands::state::State;
use crate::memory::Lease;
use boltkv_protocol::resp::names::stored;

/// Entries of a bucket that are looked at to tell whether it holds buckets, and so is no hash.
const LOOKED_AT: usize = 128;

/// What a key holds.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::large_enum_variant, reason = "it lives for a look-up, and lies on the stack")]
pub(super) enum Held<'s> {
    String(&'s [u8]),
    Hash(Shown<'s>),
}

/// What TYPE calls it.
pub(super) fn kind_of(held: &Held<'_>) -> Result<&'static str, Failure> {
    Ok(match held {
        Held::String(_) => "string",
        Held::Hash(hash) if holds_buckets(&hash.bucket)? => "bucket",
        Held::Hash(_) => "hash",
    })
}

/// A database in some state, as it is to be seen at some moment.
#[derive(Debug, Clone)]
pub(super) struct Keyspace<'s> {
    db: Database,
    /// `None` where nothing was put yet.
    pub(super) shown: Option<Shown<'s>>,
    records: Records<'s>,
    pub(super) moment: Moment<'s>,
}

impl<'s> Keyspace<'s> {
    pub(super) fn of(view: &View<'s, impl State>, db: Database) -> Result<Self, Failure> {
        let shown = match view.bucket(db.path()) {
            Ok(shown) => Some(shown),
            Err(Error::BucketNotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { db, shown, records: view.records()?, moment: view.moment().clone() })
    }

    /// What a key holds, if it is there.
    pub(super) fn find(&self, key: &[u8]) -> Result<Option<Held<'s>>, Failure> {
        let (Some(shown), key) = (&self.shown, stored(key)) else { return Ok(None) };
        match shown.get(key, &self.moment) {
            Ok(value) => Ok(value.map(Held::String)),
            Err(Error::IncompatibleValue { .. }) => {
                let hash = self.records.bucket_in(self.db.path(), shown.bucket, key)?;
                Ok(if is_vacant(&hash, &self.moment)? { None } else { Some(Held::Hash(hash)) })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The value of a key that holds one, if it is there.
    pub(super) fn string(&self, key: &[u8]) -> Result<Option<&'s [u8]>, Failure> {
        match self.find(key)? {
            None => Ok(None),
            Some(Held::String(value)) => Ok(Some(value)),
            Some(Held::Hash(_)) => Err(Failure::wrong_type()),
        }
    }

    /// The hash that a key holds, if it is there.
    pub(super) fn hash(&self, key: &[u8]) -> Result<Option<Shown<'s>>, Failure> {
        match self.find(key)? {
            None => Ok(None),
            Some(Held::Hash(hash)) if !holds_buckets(&hash.bucket)? => Ok(Some(hash)),
            Some(_) => Err(Failure::wrong_type()),
        }
    }

    pub(super) fn exists(&self, key: &[u8]) -> Result<bool, Failure> {
        Ok(self.find(key)?.is_some())
    }

    /// Whether a key that is stored has expired.
    pub(super) fn is_gone(&self, key: &[u8]) -> Result<bool, Failure> {
        Ok(self.shown.map_or(Ok(false), |shown| shown.is_past(key, &self.moment))?)
    }

    /// When a key will be gone, in milliseconds since 1970; `None` where it stays, or is not there.
    pub(super) fn expires_at(&self, key: &[u8]) -> Result<Option<u64>, Failure> {
        let time = self.shown.map_or(Ok(None), |shown| shown.time_of(stored(key), &self.moment))?;
        Ok(time.filter(|time| *time != NEVER))
    }

    /// What time it is, in milliseconds since 1970.
    pub(super) fn now(&self) -> u64 {
        self.moment.now()
    }
}

/// Whether nothing is left in a bucket that has not expired, as far as its first entries tell: a hash of no fields is none.
///
/// The bucket itself stays until a client of Redis writes there. It is not removed with its last field's time: a program
/// that speaks another dialect, or Go's tools, may have made it, gives its keys times, and counts on its being there. So KEYS
/// and the like tell its name: to look into every bucket that they pass would cost all others a page for each.
fn is_vacant(hash: &Shown<'_>, moment: &Moment<'_>) -> Result<bool, Failure> {
    for (looked_at, entry) in hash.bucket.iter().enumerate() {
        let (key, _) = entry?;
        if looked_at == LOOKED_AT || !hash.is_past(key, moment)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a bucket holds buckets, as far as its first entries tell: a hash holds values only.
fn holds_buckets(bucket: &Bucket<'_>) -> Result<bool, Failure> {
    for entry in bucket.iter().take(LOOKED_AT) {
        if entry?.1.is_none() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A database that is being changed, in the writer's transaction. All changes go through it, so that whoever watches a key
/// is told. What has expired is removed before its key is changed.
#[derive(Debug)]
pub(super) struct KeyspaceMut<'a, 't> {
    pub(super) timed: &'a mut Timed<'t>,
    pub(super) watched: &'a WatchedKeys,
    pub(super) db: Database,
    pub(super) changed: bool,
    /// What bounds values that are made here, and the memory that these take.
    room: Option<&'a ReplyRoom>,
    made: Option<Lease>,
}

/// Values that are made and take no more than this take no memory of the server's.
const SHORT: usize = 4 * 1_024;

impl<'a, 't> KeyspaceMut<'a, 't> {
    pub(super) const fn of(timed: &'a mut Timed<'t>, watched: &'a WatchedKeys, db: Database) -> Self {
        Self { timed, watched, db, changed: false, room: None, made: None }
    }

    /// The same, where values that are made are no longer than a frame, and take memory of the server's until they are
    /// committed.
    pub(super) const fn with_room(mut self, room: &'a ReplyRoom) -> Self {
        self.room = Some(room);
        self
    }

    /// Whether anything was changed.
    pub(super) const fn has_changed(&self) -> bool {
        self.changed
    }

    pub(super) const fn now(&self) -> u64 {
        self.timed.now()
    }

    pub(super) const fn database(&self) -> Database {
        self.db
    }

    /// Another database, in the same transaction.
    pub(super) fn in_database<T>(&mut self, db: Database, act: impl FnOnce(&mut Self) -> T) -> T {
        let here = std::mem::replace(&mut self.db, db);
        let done = act(self);
        self.db = here;
        done
    }

    /// The state as it is by now.
    pub(super) fn look(&self) -> Result<Keyspace<'_>, Failure> {
        Keyspace::of(&self.timed.view(), self.db)
    }

    /// Puts a value under a key, in the place of whatever it held, but for buckets that hold buckets. The key's time stays: see [`Self::expire`].
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let key = stored(key);
        let path = self.db.path();
        let time = self.enter(key)?;
        let put = self.bucket()?.put(key, value);
        if let Err(Error::IncompatibleValue { .. }) = put {
            self.spare_buckets(key)?;
            self.timed.remove_key(path, key)?;
            self.bucket()?.put(key, value)?;
            if time.is_some() {
                self.timed.set_expiry(path, key, time)?;
            }
        } else {
            put?;
        }
        self.touch(key);
        Ok(())
    }

    /// Comes to a key in order to put something there: when that expires.
    fn enter(&mut self, key: &[u8]) -> Result<Option<u64>, Failure> {
        let path = self.db.path();
        let time = self.timed.enter(path, key)?;
        if time.is_some() && self.look()?.find(key)?.is_none() {
            // Somebody else has taken the key away, and left its time.
            self.timed.undoably(|timed| timed.forget(path, key))?;
            return Ok(None);
        }
        Ok(time)
    }

    /// To be called before a value of `len` bytes is made of what is there: a few words can ask for a long one, again and
    /// again, and the transaction keeps them all.
    pub(super) fn make_room(&mut self, len: usize) -> Result<(), Failure> {
        let Some(room) = self.room else { return Ok(()) };
        if len > self.most() {
            return Err(Failure::string_too_long());
        }
        if len > SHORT {
            let lease = room.try_take(len).ok_or_else(|| room.no_memory("the value"))?;
            match &mut self.made {
                Some(made) => made.add(lease),
                none => *none = Some(lease),
            }
        }
        Ok(())
    }

    /// The longest value that is made: a GET's reply is a frame.
    pub(super) fn most(&self) -> usize {
        let beside = Reply::<&[u8]>::value_frame_len(0);
        self.room.map_or(usize::MAX, |room| room.max_frame().saturating_sub(beside))
    }

    /// Room for what is copied, which may be more than one value.
    pub(super) fn make_room_for_copy(&mut self, len: usize) -> Result<(), Failure> {
        let piece = self.most().max(1);
        (0..len / piece).try_for_each(|_| self.make_room(piece))?;
        self.make_room(len % piece)
    }

    /// The memory that values take that were made.
    pub(super) const fn take_made(&mut self) -> Option<Lease> {
        self.made.take()
    }

    /// Removes a key, whatever it holds. Whether it was there.
    pub(super) fn remove(&mut self, key: &[u8]) -> Result<bool, Failure> {
        let key = stored(key);
        // An empty bucket goes, but was no hash.
        let was_vacant = match self.timed.tx.bucket_path(self.db.path().names()).and_then(|keys| keys.get(key)) {
            Err(Error::IncompatibleValue { .. }) => self.look()?.find(key)?.is_none(),
            _ => false,
        };
        let removed = self.timed.remove_key(self.db.path(), key)?;
        self.changed |= removed;
        if removed && !was_vacant {
            self.touch(key);
        }
        Ok(removed && !was_vacant)
    }

    /// Removes what a key holds, so that something else takes its place.
    pub(super) fn make_way(&mut self, key: &[u8]) -> Result<bool, Failure> {
        self.spare_buckets(key)?;
        self.remove(key)
    }

    /// A bucket that holds buckets is none of the things that Redis knows, and goes only when it is itself what is to be
    /// removed: who puts a value where he knows of nothing must not lose a whole tree.
    fn spare_buckets(&self, key: &[u8]) -> Result<(), Failure> {
        match self.look()?.find(key)? {
            Some(Held::Hash(hash)) if holds_buckets(&hash.bucket)? => Err(Failure::wrong_type()),
            _ => Ok(()),
        }
    }

    /// Changes a hash, which is made where the key is not there, and goes where nothing is left in it.
    pub(super) fn in_hash<T>(
        &mut self,
        key: &[u8],
        act: impl FnOnce(&mut HashMut<'_, 't>) -> Result<(T, Change), Failure>,
    ) -> Result<T, Failure> {
        let key = stored(key);
        self.enter(key)?;
        // Whether it is one: nothing is made of what is something else.
        self.look()?.hash(key)?;
        let path = Path::from_names(self.db.path().names().chain([key]));
        let path = path.map_err(|error| Failure::new(ErrorCode::KeyTooLarge, format!("ERR {error}")))?;
        self.bucket()?.create_bucket_if_not_exists(key)?;
        let mut hash = HashMut::of(self.timed, path);
        let (result, change) = act(&mut hash)?;
        let is_empty = hash.is_empty()?;
        if is_empty {
            self.timed.remove_key(self.db.path(), key)?;
        }
        if change == Change::Something {
            self.touch(key);
        }
        Ok(result)
    }

    /// From when on a key that is there is gone, in milliseconds since 1970; `None`: it stays. Whether that changed anything.
    /// Who watches it is told of the time that it has already, too, as Redis tells.
    pub(super) fn expire(&mut self, key: &[u8], at: Option<u64>) -> Result<bool, Failure> {
        let key = stored(key);
        let changed = self.timed.set_expiry(self.db.path(), key, at)?;
        self.changed |= changed;
        if changed || at.is_some() {
            self.watched.touch(self.db.path(), key);
        }
        Ok(changed)
    }

    /// Gives what a key holds, with its time, another key, in the place of what that held.
    pub(super) fn transfer(&mut self, from: &[u8], db: Database, to: &[u8]) -> Result<(), Failure> {
        let (from, to) = (stored(from), stored(to));
        self.in_database(db, |there| there.make_way(to))?;
        let look = self.look()?;
        let time = look.expires_at(from)?;
        match look.find(from)? {
            None => return Err(Failure::no_such_key()),
            Some(Held::String(value)) => {
                let len = value.len();
                self.make_room(len)?;
                let Some(Held::String(value)) = self.look()?.find(from)? else { return Ok(()) };
                let value = value.to_vec();
                self.remove(from)?;
                self.in_database(db, |there| {
                    there.put(to, &value)?;
                    there.expire(to, time)
                })?;
            }
            Some(Held::Hash(_)) => {
                self.in_database(db, |there| there.bucket().map(drop))?;
                let (here, there) = (self.db.path(), db.path());
                let names = |path: &'static Path| path.names().collect::<Vec<_>>();
                self.timed.tx.move_bucket_as(from, &names(here), &names(there), to)?;
                let path = |path: &Path, key| {
                    let path = Path::from_names(path.names().chain([key]));
                    path.map_err(|error| Failure::new(ErrorCode::KeyTooLarge, format!("ERR {error}")))
                };
                self.timed.move_bucket(&path(here, from)?, &path(there, to)?)?;
                self.touch(from);
                self.in_database(db, |there| there.touch(to));
            }
        }
        Ok(())
    }

    /// Whoever watches the key is told that it has changed.
    pub(super) fn touch(&mut self, key: &[u8]) {
        let key = stored(key);
        self.changed = true;
        self.watched.touch(self.db.path(), key);
    }

    /// The database's bucket, which is made where it is missing.
    fn bucket(&mut self) -> Result<BucketMut<'_>, Failure> {
        // Databases lie at the top.
        let name = self.db.path().names().next().unwrap_or_default();
        Ok(self.timed.tx.create_bucket_if_not_exists(name)?)
    }

    /// Removes all keys of the database. Whether there were any.
    pub(super) fn clear(&mut self) -> Result<bool, Failure> {
        let path = self.db.path();
        match self.timed.tx.delete_bucket(path.names().next().unwrap_or_default()) {
            Ok(()) => {}
            Err(Error::BucketNotFound { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        self.timed.forget_bucket(path)?;
        self.changed = true;
        self.watched.touch_those_there(path);
        Ok(true)
    }
}
