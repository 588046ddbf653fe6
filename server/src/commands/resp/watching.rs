//! What WATCH is told: which keys have changed since.
//!
//! All of it happens in the writer, in the order of the writes: a WATCH takes its turn among them, so that its client, once
//! answered, reads a state in which every write before it is, and every write after it is told. No key is locked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use boltkv_protocol::{Path, WriteRequest};
use boltkv_storage::Tx;
use bytes::Bytes;

use super::database::Database;
use super::failure::Failure;
use super::keyspace::Keyspace;
use super::work::Call;
use crate::commands::expiry::{Moment, View};
use crate::commands::results::ReplyRoom;
use crate::commands::state::State;
use crate::memory::Lease;
use boltkv_protocol::resp::names::stored;

/// What a connection watches.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    has_changed: AtomicBool,
    /// The transaction that made the state in which it was begun to watch, where nobody tells of changes.
    state: OnceLock<u64>,
    keys: Mutex<Keys>,
}

#[derive(Debug, Default)]
struct Keys {
    /// Each key, and whether it was there.
    all: HashMap<(Database, Bytes), bool>,
    /// The memory that they take.
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
        mut watch: impl FnMut(&[u8], bool),
    ) -> Result<(), Failure> {
        let keyspace = Keyspace::of(view, call.db)?;
        for key in call.spec.keys_of(&call.args) {
            let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            let place = (call.db, Bytes::copy_from_slice(stored(key)));
            if keys.all.contains_key(&place) {
                continue;
            }
            let lease = room.try_take(key.len() + BESIDE);
            let lease = lease.ok_or_else(|| Failure::from(room.no_memory("what is watched")))?;
            let is_there = keyspace.exists(key)?;
            keys.all.insert(place, is_there);
            keys.leases.push(lease);
            drop(keys);
            watch(stored(key), is_there);
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
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.all.iter().filter(|(_, was_there)| **was_there).map(|(key, _)| key.clone()).collect()
    }
}

/// All keys that are watched by somebody.
#[derive(Debug, Default)]
pub(crate) struct WatchedKeys {
    by_bucket: HashMap<Path, HashMap<Bytes, Vec<Watcher>>>,
    /// How many there are, those included that nobody waits for any more; and when these are looked for.
    len: usize,
    look: usize,
}

/// Somebody who watches a key.
#[derive(Debug)]
struct Watcher {
    watching: Weak<Watching>,
    /// Whether the key was there when he began.
    was_there: bool,
}

/// So many are kept before it is looked which of them nobody waits for.
const LOOK: usize = 1_024;

impl WatchedKeys {
    /// From now on this key is watched.
    pub(super) fn watch(&mut self, watching: &Arc<Watching>, db: Database, key: &[u8], was_there: bool) {
        let bucket = self.by_bucket.entry(db.path().clone()).or_default();
        let watcher = Watcher { watching: Arc::downgrade(watching), was_there };
        bucket.entry(Bytes::copy_from_slice(key)).or_default().push(watcher);
        self.len += 1;
        if self.len > self.look.max(LOOK) {
            self.forget_those_gone();
        }
    }

    fn forget_those_gone(&mut self) {
        self.by_bucket.retain(|_, keys| {
            keys.retain(|_, watching| {
                watching.retain(|one| one.watching.strong_count() > 0);
                !watching.is_empty()
            });
            !keys.is_empty()
        });
        self.len = self.by_bucket.values().flat_map(HashMap::values).map(Vec::len).sum();
        self.look = 2 * self.len;
    }

    /// A key has changed, or something in the bucket that it is.
    pub(super) fn touch(&mut self, path: &Path, key: &[u8]) {
        if self.len == 0 {
            return;
        }
        if let Some(watching) = self.by_bucket.get_mut(path).and_then(|keys| keys.remove(key)) {
            self.len -= watching.len();
            tell(&watching);
        }
    }

    /// Everything in a bucket may have changed.
    pub(super) fn touch_within(&mut self, path: &Path) {
        if self.len == 0 {
            return;
        }
        for watching in self.by_bucket.remove(path).unwrap_or_default().values() {
            self.len -= watching.len();
            tell(watching);
        }
    }

    /// Those keys of a bucket have changed of which this says so.
    pub(super) fn touch_if(
        &mut self,
        path: &Path,
        mut has_changed: impl FnMut(&[u8]) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let Some(keys) = self.by_bucket.get(path) else { return Ok(()) };
        for (key, watchers) in keys {
            if has_changed(key)? {
                tell(watchers);
            }
        }
        Ok(())
    }

    /// All keys of a bucket are gone: those that were not there are still not.
    pub(super) fn touch_those_there(&mut self, path: &Path) {
        let Some(keys) = self.by_bucket.get(path) else { return };
        for watchers in keys.values() {
            tell(watchers.iter().filter(|watcher| watcher.was_there));
        }
    }

    /// A request of another dialect was done.
    pub(in crate::commands) fn touch_by(&mut self, request: &WriteRequest) {
        if self.len == 0 {
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
    fn touch_at(&mut self, path: &Path, key: Option<&[u8]>) {
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
    for watching in watchers.into_iter().filter_map(|watcher| watcher.watching.upgrade()) {
        watching.has_changed.store(true, Relaxed);
    }
}
