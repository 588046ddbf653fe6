//! Who reads which snapshot.
//!
//! The lock here is held for the length of a map look-up and never over I/O: a reader never waits
//! for a commit, only for another's look-up.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
#[cfg(not(all(test, loom)))]
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

// The model tests (`interleavings.rs`) go through every order in which threads can come by this lock.
#[cfg(all(test, loom))]
use loom::sync::{Mutex, MutexGuard};

use crate::disk::Map;
use crate::format::{Meta, Pgid, TxId};
use crate::tx::Pages;

/// One state of the database: its meta, and a map that covers all its pages.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) meta: Meta,
    pub(crate) map: Arc<Map>,
}

impl Snapshot {
    pub(crate) fn pages(&self) -> Pages<'_> {
        Pages::new(&self.map, &self.meta)
    }
}

/// The newest snapshot, and how many readers each snapshot has.
#[derive(Debug)]
pub(crate) struct Readers {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    current: Arc<Snapshot>,
    open: BTreeMap<TxId, Open>,
}

/// The readers of one state.
#[derive(Debug)]
struct Open {
    count: usize,
    since: Instant,
    /// The highest high-water mark that one of them may read below. (A sync point can raise it
    /// without changing the state.)
    mark: Pgid,
}

impl Readers {
    pub(crate) fn new(current: Snapshot) -> Self {
        Self { state: Mutex::new(State { current: Arc::new(current), open: BTreeMap::new() }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock with the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn current(&self) -> Arc<Snapshot> {
        Arc::clone(&self.state().current)
    }

    /// Registers a reader of the newest snapshot: its pages stay as they are until it leaves.
    pub(crate) fn enter(&self) -> Arc<Snapshot> {
        let mut state = self.state();
        let current = Arc::clone(&state.current);
        let none = || Open { count: 0, since: Instant::now(), mark: 0 };
        let open = state.open.entry(current.meta.txid).or_insert_with(none);
        open.count += 1;
        open.mark = open.mark.max(current.meta.mark);
        current
    }

    pub(crate) fn leave(&self, txid: TxId) {
        let mut state = self.state();
        if let Some(open) = state.open.get_mut(&txid) {
            open.count -= 1;
            if open.count == 0 {
                state.open.remove(&txid);
            }
        }
    }

    /// What readers that enter from now on see.
    pub(crate) fn publish(&self, snapshot: Arc<Snapshot>) {
        let old = std::mem::replace(&mut self.state().current, snapshot);
        // Dropped after the lock is released: it may be the last owner of an old map.
        drop(old);
    }

    pub(crate) fn any_open(&self) -> bool {
        !self.state().open.is_empty()
    }

    /// How many readers there are, and how long the oldest snapshot has been read.
    pub(crate) fn count(&self) -> (usize, Option<Duration>) {
        let state = self.state();
        let age = state.open.first_key_value().map(|(_, open)| open.since.elapsed());
        (state.open.values().map(|open| open.count).sum(), age)
    }

    /// The highest high-water mark of the newest snapshot and those that are being read.
    pub(crate) fn highest_mark(&self) -> Pgid {
        let state = self.state();
        state.open.values().map(|open| open.mark).fold(state.current.meta.mark, Pgid::max)
    }

    /// The snapshots that are being read, ascending.
    pub(crate) fn open(&self) -> Vec<TxId> {
        self.state().open.keys().copied().collect()
    }
}
