//! What WATCH is told: which keys have changed since.
//!
//! All of it happens in the writer, in the order of the writes: a WATCH takes its turn among them, so that its client, once
//! answered, reads a state in which every write before it is, and every write after it is told. No key is locked. Who watches no
//! more takes his keys from the table himself: nothing is left there that the budget does not know of.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use boltkv_protocol::{Path, WriteRequest};
use boltkv_storage::Tx;
use bytes::Bytes;

use super::database::Database;
use super::failure::Failure;
use super::keyspace::Keyspace;
use super::work::Call;
use crate::commands::expiry::{Moment, Timed, View};
use crate::commands::results::ReplyRoom;
use crate::commands::state::State;
use crate::memory::Lease;
use boltkv_protocol::resp::names::stored;

/// What a connection watches. Dropped, it is watched no more.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    /// Also those have it who tell.
    has_changed: Arc<AtomicBool>,
    /// The transaction that made the state in which it was begun to watch, where nobody tells of changes.
    state: OnceLock<u64>,
    keys: Mutex<Keys>,
    /// Where its keys stand among all that are watched.
    among: OnceLock<Arc<Table>>,
}

#[derive(Debug, Default)]
struct Keys {
    /// Each key, and whether it was there.
    all: HashMap<(Database, Bytes), bool>,
    /// The memory that they take, among all that are watched, too.
    leases: Vec<Lease>,
}

/// Memory that a watched key takes beside its bytes.
const BESIDE: usize = 256;

impl Watching {
    /// From now on the keys of a WATCH are watched, as they are in this state; `watch` is told of those that were not, and
    /// whether they are there.
    pub(super) fn begin(
        &self,
        call: &Call,
        view: &View<'_, impl State>,
        room: &ReplyRoom,
        mut watch: impl FnMut(Bytes, bool),
    ) -> Result<(), Failure> {
        let keyspace = Keyspace::of(view, call.db)?;
        for key in call.spec.keys_of(&call.args) {
            let mut keys = held(&self.keys);
            let its_name = Bytes::copy_from_slice(stored(key));
            let place = (call.db, its_name.clone());
            if keys.all.contains_key(&place) {
                continue;
            }
            let lease = room.try_keep(key.len() + BESIDE);
            let lease = lease.ok_or_else(|| Failure::from(room.no_memory("what is watched")))?;
            let is_there = keyspace.exists(key)?;
            keys.all.insert(place, is_there);
            keys.leases.push(lease);
            drop(keys);
            watch(its_name, is_there);
        }
        Ok(())
    }

    /// The same where nobody changes anything any more: another state than this one is a change, should there be one.
    pub(crate) fn begin_in(&self, call: &Call, view: &View<'_, Tx>, tx: &Tx, room: &ReplyRoom) -> Result<(), Failure> {
        self.state.get_or_init(|| tx.id());
        self.begin(call, view, room, |_, _| {})
    }

    /// Whether one of the keys was changed, or its time has come.
    pub(super) fn has_changed(&self, view: &View<'_, impl State>) -> Result<bool, Failure> {
        if self.has_changed.load(Relaxed) {
            return Ok(true);
        }
        for (db, key) in self.were_there() {
            if !Keyspace::of(view, db)?.exists(&key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The same in a state that was begun just now: what was changed in it, was told before it was there.
    pub(super) fn has_changed_in(&self, tx: &Tx, now: u64) -> Result<bool, Failure> {
        let is_other = self.state.get().is_some_and(|state| *state != tx.id());
        Ok(is_other || self.has_changed(&View::new(tx, Moment::at(now)))?)
    }

    /// Those that were there when they began to be watched.
    fn were_there(&self) -> Vec<(Database, Bytes)> {
        let keys = held(&self.keys);
        keys.all.iter().filter(|(_, was_there)| **was_there).map(|(key, _)| key.clone()).collect()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let Some(table) = self.among.get() else { return };
        // The writer is not kept waiting for all of them together.
        for (db, key) in held(&self.keys).all.keys() {
            table.forget(db.path(), key, &self.has_changed);
        }
    }
}

/// All keys that are watched by somebody.
#[derive(Debug, Default)]
pub(crate) struct WatchedKeys(Arc<Table>);

#[derive(Debug, Default)]
struct Table {
    /// How many watchers there are of all keys: mostly none, and nobody need look.
    len: AtomicUsize,
    by_bucket: Mutex<ByBucket>,
}

type ByBucket = HashMap<Path, HashMap<Bytes, Vec<Watcher>>>;

/// Somebody who watches a key.
#[derive(Debug)]
struct Watcher {
    has_changed: Arc<AtomicBool>,
    /// Whether the key was there when he began.
    was_there: bool,
}

/// Those who watched more keys of a bucket than this leave no room behind that nobody needs.
const SPARE: usize = 64;

impl Table {
    /// Somebody watches the key no more.
    fn forget(&self, path: &Path, key: &Bytes, his: &Arc<AtomicBool>) {
        let mut by_bucket = held(&self.by_bucket);
        let Some(keys) = by_bucket.get_mut(path) else { return };
        let Some(watchers) = keys.get_mut(key) else { return };
        let before = watchers.len();
        watchers.retain(|watcher| !Arc::ptr_eq(&watcher.has_changed, his));
        self.len.fetch_sub(before - watchers.len(), Relaxed);
        if !watchers.is_empty() {
            return;
        }
        remove(&mut by_bucket, path, key);
    }

    fn tell_all<'w>(&self, watchers: impl IntoIterator<Item = &'w Vec<Watcher>>) {
        for watchers in watchers {
            self.len.fetch_sub(watchers.len(), Relaxed);
            tell(watchers);
        }
    }
}

/// Takes a key out, and the room that others do not need any more.
fn remove(by_bucket: &mut ByBucket, path: &Path, key: &[u8]) -> Option<Vec<Watcher>> {
    let keys = by_bucket.get_mut(path)?;
    let watchers = keys.remove(key);
    if keys.is_empty() {
        by_bucket.remove(path);
    } else if keys.capacity() > SPARE.max(4 * keys.len()) {
        keys.shrink_to(2 * keys.len());
    }
    watchers
}

impl WatchedKeys {
    /// From now on this key is watched.
    pub(super) fn watch(&self, watching: &Watching, db: Database, key: Bytes, was_there: bool) {
        watching.among.get_or_init(|| Arc::clone(&self.0));
        let watcher = Watcher { has_changed: Arc::clone(&watching.has_changed), was_there };
        let mut by_bucket = held(&self.0.by_bucket);
        by_bucket.entry(db.path().clone()).or_default().entry(key).or_default().push(watcher);
        self.0.len.fetch_add(1, Relaxed);
    }

    fn is_empty(&self) -> bool {
        self.0.len.load(Relaxed) == 0
    }

    /// A key has changed, or something in the bucket that it is.
    pub(super) fn touch(&self, path: &Path, key: &[u8]) {
        if self.is_empty() {
            return;
        }
        self.0.tell_all(&remove(&mut held(&self.0.by_bucket), path, key));
    }

    /// Everything in a bucket may have changed.
    fn touch_within(&self, path: &Path) {
        if self.is_empty() {
            return;
        }
        self.0.tell_all(held(&self.0.by_bucket).remove(path).unwrap_or_default().values());
    }

    /// Those keys of a bucket have changed of which this says so.
    pub(super) fn touch_if(
        &self,
        path: &Path,
        mut has_changed: impl FnMut(&[u8]) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        for (key, watchers) in held(&self.0.by_bucket).get(path).into_iter().flatten() {
            if has_changed(key)? {
                tell(watchers);
            }
        }
        Ok(())
    }

    /// All keys of a bucket are gone: those that were not there are still not.
    pub(super) fn touch_those_there(&self, path: &Path) {
        for watchers in held(&self.0.by_bucket).get(path).into_iter().flat_map(HashMap::values) {
            tell(watchers.iter().filter(|watcher| watcher.was_there));
        }
    }

    /// Fields of hashes have expired, of which nobody has asked anything.
    pub(crate) fn touch_expired(&self, timed: &mut Timed<'_>) {
        timed.tell_of_expired(|path, key| self.touch(path, key));
    }

    /// A request of another dialect was done.
    pub(in crate::commands) fn touch_by(&self, request: &WriteRequest) {
        if self.is_empty() {
            return;
        }
        match request {
            WriteRequest::Set { path, key, .. }
            | WriteRequest::Delete { path, key, .. }
            | WriteRequest::SetExpiring { path, key, .. }
            | WriteRequest::Expire { path, key, .. }
            | WriteRequest::Increment { path, key, .. } => self.touch_at(path, Some(key)),
            WriteRequest::DeleteRange { path, .. }
            | WriteRequest::CreateBucket(path)
            | WriteRequest::CreateBucketIfMissing(path)
            | WriteRequest::DeleteBucket(path) => self.touch_at(path, None),
            WriteRequest::MoveBucket { path, to } => {
                self.touch_at(path, None);
                self.touch_at(to, None);
            }
            WriteRequest::NextSequence(_) | WriteRequest::SetSequence { .. } => {}
            WriteRequest::Txn(txn) => {
                for request in txn.requests() {
                    if let boltkv_protocol::Request::Write(write) = request {
                        self.touch_by(&write);
                    }
                }
            }
        }
    }

    /// Something at this place has changed: the key, or any key, and the keys that the path's buckets are.
    fn touch_at(&self, path: &Path, key: Option<&[u8]>) {
        match key {
            Some(key) => self.touch(path, key),
            None => self.touch_within(path),
        }
        let names: Vec<_> = path.names().collect();
        for depth in 1..names.len() {
            // A beginning of a path is one.
            if let Ok(parent) = Path::from_names(&names[..depth]) {
                self.touch(&parent, names[depth]);
            }
        }
    }
}

fn tell<'w>(watchers: impl IntoIterator<Item = &'w Watcher>) {
    for watcher in watchers {
        watcher.has_changed.store(true, Relaxed);
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(watching: &Watching, keys: &WatchedKeys, names: std::ops::Range<u32>) {
        for name in names {
            let key = Bytes::copy_from_slice(&name.to_be_bytes());
            held(&watching.keys).all.insert((Database::default(), key.clone()), false);
            keys.watch(watching, Database::default(), key, false);
        }
    }

    #[test]
    fn who_watches_no_more_leaves_nothing_and_takes_nobody_elses() {
        let keys = WatchedKeys::default();
        let (one, other) = (Watching::default(), Watching::default());
        watched(&one, &keys, 0..10_000);
        watched(&other, &keys, 9_990..10_000);
        let room = || held(&keys.0.by_bucket)[Database::default().path()].capacity();
        assert!(room() >= 10_000);
        // What has changed is not watched any more.
        (0..9_000_u32).for_each(|name| keys.touch(Database::default().path(), &name.to_be_bytes()));
        assert!(one.has_changed.load(Relaxed));
        assert_eq!(keys.0.len.load(Relaxed), 1_010);
        assert!(room() < 5_000, "{}", room());
        drop(one);
        assert_eq!(keys.0.len.load(Relaxed), 10);
        assert!(room() < 100, "{}", room());
        assert!(!other.has_changed.load(Relaxed));
        keys.touch(Database::default().path(), &9_995_u32.to_be_bytes());
        assert!(other.has_changed.load(Relaxed));
        drop(other);
        assert!(keys.is_empty() && held(&keys.0.by_bucket).is_empty());
    }
}
