//! A database as commands see it.

use std::borrow::Cow;

use boltkv_protocol::Path;
use boltkv_storage::{Bucket, BucketMut, Error, TxMut};

use super::database::Database;
use super::failure::Failure;
use super::watching::WatchedKeys;
use crate::commands::results::ReplyRoom;
use crate::commands::state::State;
use crate::memory::Lease;

/// Entries of a bucket that are looked at to tell whether it holds buckets, and so is no hash.
const LOOKED_AT: usize = 128;

/// What a key holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Held<'s> {
    String(&'s [u8]),
    Hash(Bucket<'s>),
}

/// A database in some state.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keyspace<'s> {
    /// `None` where nothing was put yet.
    pub(super) bucket: Option<Bucket<'s>>,
    /// The time, in milliseconds since 1970.
    pub(super) now: u64,
}

impl<'s> Keyspace<'s> {
    pub(super) fn of(state: &'s impl State, db: Database, now: u64) -> Result<Self, Failure> {
        let bucket = found(state.bucket_at(db.path()))?;
        Ok(Self { bucket, now })
    }

    /// What a key holds, if it is there.
    pub(super) fn find(&self, key: &[u8]) -> Result<Option<Held<'s>>, Failure> {
        let Some(bucket) = self.bucket else { return Ok(None) };
        match bucket.get(key) {
            Ok(value) => Ok(value.map(Held::String)),
            Err(Error::IncompatibleValue { .. }) => Ok(Some(Held::Hash(bucket.bucket(key)?))),
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
    pub(super) fn hash(&self, key: &[u8]) -> Result<Option<Bucket<'s>>, Failure> {
        match self.find(key)? {
            None => Ok(None),
            Some(Held::Hash(hash)) if !holds_buckets(&hash)? => Ok(Some(hash)),
            Some(_) => Err(Failure::wrong_type()),
        }
    }

    pub(super) fn exists(&self, key: &[u8]) -> Result<bool, Failure> {
        Ok(self.find(key)?.is_some())
    }

    /// When a key will be gone, in milliseconds since 1970; `None` where it stays, or is not there.
    pub(super) fn expires_at(&self, _key: &[u8]) -> Result<Option<u64>, Failure> {
        Ok(None)
    }
}

/// Whether a bucket holds buckets, as far as its first entries tell: a hash holds values only.
pub(super) fn holds_buckets(bucket: &Bucket<'_>) -> Result<bool, Failure> {
    for entry in bucket.iter().take(LOOKED_AT) {
        if entry?.1.is_none() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn found(bucket: boltkv_storage::Result<Bucket<'_>>) -> Result<Option<Bucket<'_>>, Failure> {
    match bucket {
        Ok(bucket) => Ok(Some(bucket)),
        Err(Error::BucketNotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A database that is being changed, in the writer's transaction. All changes go through it, so that whoever watches a key
/// is told.
#[derive(Debug)]
pub(super) struct KeyspaceMut<'t> {
    tx: &'t mut TxMut,
    watched: &'t mut WatchedKeys,
    db: Database,
    now: u64,
    changed: bool,
    /// What bounds values that are made here, and the memory that these take.
    room: Option<&'t ReplyRoom>,
    made: Option<Lease>,
}

/// Values that are made and take no more than this take no memory of the server's.
const SHORT: usize = 4 * 1_024;

impl<'t> KeyspaceMut<'t> {
    pub(super) const fn of(tx: &'t mut TxMut, watched: &'t mut WatchedKeys, db: Database, now: u64) -> Self {
        Self { tx, watched, db, now, changed: false, room: None, made: None }
    }

    /// The same, where values that are made are no longer than a frame, and take memory of the server's until they are
    /// committed.
    pub(super) const fn with_room(mut self, room: &'t ReplyRoom) -> Self {
        self.room = Some(room);
        self
    }

    /// Whether anything was changed.
    pub(super) const fn has_changed(&self) -> bool {
        self.changed
    }

    pub(super) const fn now(&self) -> u64 {
        self.now
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
        Keyspace::of(&*self.tx, self.db, self.now)
    }

    /// Puts a value under a key, in the place of whatever it held. The key's time stays: see [`Self::expire`].
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let path = self.db.path();
        let put = in_bucket(self.tx, path, |mut bucket| match bucket.put(key, value) {
            Err(Error::IncompatibleValue { .. }) => {
                bucket.delete_bucket(key)?;
                bucket.put(key, value)
            }
            put => put,
        });
        put?;
        self.touch(key);
        Ok(())
    }

    /// To be called before a value of `len` bytes is made of what is there: a few words can ask for a long one, again and
    /// again, and the transaction keeps them all.
    pub(super) fn make_room(&mut self, len: usize) -> Result<(), Failure> {
        let Some(room) = self.room else { return Ok(()) };
        if len > room.max_frame() {
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

    /// The memory that values take that were made.
    pub(super) const fn take_made(&mut self) -> Option<Lease> {
        self.made.take()
    }

    /// Removes a key, whatever it holds. Whether it was there.
    pub(super) fn remove(&mut self, key: &[u8]) -> Result<bool, Failure> {
        let mut bucket = match self.tx.bucket_mut_path(self.db.path().names()) {
            Ok(bucket) => bucket,
            Err(Error::BucketNotFound { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let removed = match bucket.delete(key) {
            Err(Error::IncompatibleValue { .. }) => bucket.delete_bucket(key).map(|()| true)?,
            removed => removed?,
        };
        if removed {
            self.touch(key);
        }
        Ok(removed)
    }

    /// Changes a hash, which is made where the key is not there, and goes where nothing is left in it.
    pub(super) fn in_hash<T>(
        &mut self,
        key: &[u8],
        act: impl FnOnce(&mut BucketMut<'_>) -> Result<(T, Change), Failure>,
    ) -> Result<T, Failure> {
        // Whether it is one: nothing is made of what is something else.
        self.look()?.hash(key)?;
        let mut done = None;
        let mut refused = None;
        in_bucket(self.tx, self.db.path(), |mut bucket| {
            let mut hash = bucket.create_bucket_if_not_exists(key)?;
            match act(&mut hash) {
                Ok(did) => done = Some(did),
                Err(failure) => refused = Some(failure),
            }
            if hash.as_bucket().first()?.is_none() {
                bucket.delete_bucket(key)?;
            }
            Ok(())
        })?;
        if let Some(failure) = refused {
            return Err(failure);
        }
        let (result, change) = done.ok_or_else(Failure::no_such_key)?;
        if change == Change::Something {
            self.touch(key);
        }
        Ok(result)
    }

    /// From when on a key is gone, in milliseconds since 1970; `None`: it stays. Whether that changed anything.
    pub(super) fn expire(&mut self, _key: &[u8], at: Option<u64>) -> Result<bool, Failure> {
        if at.is_none() {
            return Ok(false);
        }
        Err(Failure::new(boltkv_protocol::ErrorCode::Unsupported, Cow::Borrowed("ERR expiry is not supported yet")))
    }

    /// Whoever watches the key is told that it has changed.
    pub(super) fn touch(&mut self, key: &[u8]) {
        self.changed = true;
        self.watched.touch(self.db.path(), key);
    }

    /// The transaction itself, for what is done with whole databases; [`Self::touch_all`] comes with it.
    pub(super) const fn transaction(&mut self) -> &mut TxMut {
        self.tx
    }

    /// Whoever watches any key of the database is told that it has changed.
    pub(super) fn touch_all(&mut self) {
        self.changed = true;
        self.watched.touch_within(self.db.path());
    }
}

/// Whether something was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Nothing,
    Something,
}

/// Does something in a bucket, which is made where it is missing.
fn in_bucket<T>(
    tx: &mut TxMut,
    path: &Path,
    act: impl FnOnce(BucketMut<'_>) -> boltkv_storage::Result<T>,
) -> boltkv_storage::Result<T> {
    // Databases lie at the top.
    let name = path.names().next().unwrap_or_default();
    act(tx.create_bucket_if_not_exists(name)?)
}
