//! Who reads which snapshot.
//!
//! A reader holds a token of its snapshot; a snapshot is read for as long as somebody but the registry has one. So a
//! reader comes and goes without a lock, without a system call, and without telling the writer: it is the writer that
//! looks, once a transaction, whose tokens have come back.
//!
//! Readers do not write to the same memory either, or each would take it from the other cores. A token of the newest
//! snapshot is not counted: it is noted in a slot of the thread that took it (a *debt* of `arc_swap`'s). Whoever swaps
//! the newest token for another counts the noted ones first, so that none is missed once the old one is in hand: if one
//! were, dropping it would free what that reader reads. `arc_swap` could not be sound otherwise.

use std::ops::Deref;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

#[cfg(not(all(test, loom)))]
use std::sync::{Arc as Token, Mutex, MutexGuard};

// The model tests (`interleavings.rs`) go through every order in which threads can come by these.
#[cfg(all(test, loom))]
use loom::sync::{Arc as Token, Mutex, MutexGuard};

use crate::disk::Disk;
use crate::format::{Pgid, TxId};
use crate::pages::{Recents, Snapshot};

/// What the tokens of a snapshot have in common.
#[derive(Debug)]
struct Registered {
    snapshot: Arc<Snapshot>,
    /// Open, and so locked, for as long as somebody reads, whatever has become of the handles.
    disk: Arc<dyn Disk>,
}

/// A reader's token: while it lives, its snapshot's pages stay as they are, and the file stays open and locked.
#[derive(Debug)]
pub(crate) struct Reading(Loaded);

impl Reading {
    pub(crate) fn disk(&self) -> &dyn Disk {
        &*self.0.disk
    }
}

impl Deref for Reading {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        &self.0.snapshot
    }
}

#[cfg(not(all(test, loom)))]
type Newest = arc_swap::ArcSwap<Registered>;

/// A token that may not be counted yet.
#[cfg(not(all(test, loom)))]
type Loaded = arc_swap::Guard<Token<Registered>>;

/// What `ArcSwap` does, for loom, which cannot look into it.
#[cfg(all(test, loom))]
#[derive(Debug)]
struct Newest(Mutex<Token<Registered>>);

#[cfg(all(test, loom))]
type Loaded = Token<Registered>;

#[cfg(all(test, loom))]
impl Newest {
    fn new(token: Token<Registered>) -> Self {
        Self(Mutex::new(token))
    }

    fn load(&self) -> Loaded {
        Token::clone(&self.0.lock().unwrap())
    }

    fn swap(&self, token: Token<Registered>) -> Token<Registered> {
        std::mem::replace(&mut *self.0.lock().unwrap(), token)
    }
}

/// The newest snapshot, and the older ones that are still read.
#[derive(Debug)]
pub(crate) struct Readers {
    disk: Arc<dyn Disk>,
    /// Swapped under the lock of `past` only.
    newest: Newest,
    /// Only the writer and who asks for figures come here.
    past: Mutex<Past>,
}

/// What is behind the newest snapshot.
#[derive(Debug, Default)]
struct Past {
    /// Ascending.
    older: Vec<Older>,
    /// The token of a snapshot that nobody reads, whose memory the next one gets.
    spare: Option<Token<Registered>>,
}

impl Past {
    /// Forgets snapshots that nobody reads.
    fn forget(&mut self, newest: &Snapshot) {
        let Self { older, spare } = self;
        older.retain_mut(|older| {
            let is_read = older.is_read();
            // A map that was replaced is not kept for the sake of a few bytes.
            if !is_read && Arc::ptr_eq(&older.snapshot().map, &newest.map) {
                *spare = Some(Token::clone(&older.token));
            }
            is_read
        });
        // Nor is what it has of memory that others may use.
        let unused = spare.as_mut().and_then(Token::get_mut).and_then(|unused| Arc::get_mut(&mut unused.snapshot));
        if let Some(unused) = unused {
            unused.recents = Recents::default();
        }
    }

    /// A token for a new snapshot.
    fn token(&mut self, snapshot: Snapshot, disk: &Arc<dyn Disk>) -> Token<Registered> {
        if let Some(mut token) = self.spare.take()
            && let Some(old) = Token::get_mut(&mut token).and_then(|old| Arc::get_mut(&mut old.snapshot))
        {
            *old = snapshot;
            return token;
        }
        Token::new(Registered { snapshot: Arc::new(snapshot), disk: Arc::clone(disk) })
    }
}

/// A snapshot that is not the newest any more.
#[derive(Debug)]
struct Older {
    token: Token<Registered>,
    since: Instant,
}

impl Older {
    fn snapshot(&self) -> &Snapshot {
        &self.token.snapshot
    }

    /// Whether a reader has a token, too. None can come back: new readers get tokens of the newest snapshot.
    fn is_read(&mut self) -> bool {
        // The swap that gave us ours has counted all others. What the last reader did with its pages has happened
        // before this sees that it is gone.
        Token::get_mut(&mut self.token).is_none()
    }
}

impl Readers {
    pub(crate) fn new(newest: Snapshot, disk: Arc<dyn Disk>) -> Self {
        let mut past = Past::default();
        let newest = Newest::new(past.token(newest, &disk));
        Self { disk, newest, past: Mutex::new(past) }
    }

    fn lock(&self) -> MutexGuard<'_, Past> {
        // Nothing under this lock can panic with the list half changed.
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The past, with those older snapshots only that are read.
    fn past(&self) -> MutexGuard<'_, Past> {
        let mut past = self.lock();
        past.forget(&self.newest.load().snapshot);
        past
    }

    pub(crate) fn current(&self) -> Arc<Snapshot> {
        Arc::clone(&self.newest.load().snapshot)
    }

    /// Begins to read the newest snapshot: its pages stay as they are until the token is dropped.
    pub(crate) fn enter(&self) -> Reading {
        Reading(self.newest.load())
    }

    /// What readers that enter from now on see.
    pub(crate) fn publish(&self, snapshot: Snapshot) {
        let mut past = self.lock();
        let newer = past.token(snapshot, &self.disk);
        // Whoever got a token of the old one by now is counted when this returns.
        let token = self.newest.swap(newer);
        past.older.push(Older { token, since: Instant::now() });
    }

    /// Whether snapshots are read that are not the newest.
    pub(crate) fn any_older(&self) -> bool {
        !self.past().older.is_empty()
    }

    /// How many readers there are; the oldest of their snapshots, and for how long it has not been the newest. Who only asks
    /// for [`Self::current`] at this moment may be taken for one.
    pub(crate) fn count(&self) -> (usize, Option<(TxId, Duration)>) {
        let older = &self.past().older;
        // Swapped for itself, so that its readers are counted.
        let newest = self.newest.swap(Token::clone(&self.newest.load()));
        // The registry has a token of each, and this function one of the newest.
        let of_newest = Token::strong_count(&newest) - 2;
        let of_older: usize = older.iter().map(|older| Token::strong_count(&older.token) - 1).sum();
        (of_newest + of_older, older.first().map(|oldest| (oldest.snapshot().meta.txid, oldest.since.elapsed())))
    }

    /// The highest high-water mark of the newest snapshot and those that are being read.
    pub(crate) fn highest_mark(&self) -> Pgid {
        let newest = self.current().meta.mark;
        self.past().older.iter().map(|older| older.snapshot().meta.mark).fold(newest, Pgid::max)
    }

    /// The snapshots other than the newest that are being read, ascending.
    pub(crate) fn older_txids(&self) -> Vec<TxId> {
        self.past().older.iter().map(|older| older.snapshot().meta.txid).collect()
    }
}
