//! Who reads which snapshot.
//!
//! A reader holds a token of its snapshot; a snapshot is read for as long as somebody but the registry has one. So a
//! reader comes and goes without a lock, without a system call, and without telling the writer: it is the writer that
//! looks, once a transaction, whose tokens have come back.

use std::ops::Deref;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

#[cfg(not(all(test, loom)))]
use std::sync::{Arc as Token, Mutex, MutexGuard};

// The model tests (`interleavings.rs`) go through every order in which threads can come by these.
#[cfg(all(test, loom))]
use loom::sync::{Arc as Token, Mutex, MutexGuard};

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

/// What the tokens of a snapshot have in common.
#[derive(Debug)]
struct Registered(Arc<Snapshot>);

/// A reader's token: while it lives, its snapshot's pages stay as they are.
#[derive(Debug)]
pub(crate) struct Reading(Token<Registered>);

impl Deref for Reading {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        &self.0.0
    }
}

#[cfg(not(all(test, loom)))]
type Newest = arc_swap::ArcSwap<Registered>;

/// What `ArcSwap` does, for loom, which cannot look into it.
#[cfg(all(test, loom))]
#[derive(Debug)]
struct Newest(Mutex<Token<Registered>>);

#[cfg(all(test, loom))]
impl Newest {
    fn new(token: Token<Registered>) -> Self {
        Self(Mutex::new(token))
    }

    fn load_full(&self) -> Token<Registered> {
        Token::clone(&self.0.lock().unwrap())
    }

    fn swap(&self, token: Token<Registered>) -> Token<Registered> {
        std::mem::replace(&mut *self.0.lock().unwrap(), token)
    }
}

/// The newest snapshot, and the older ones that are still read.
#[derive(Debug)]
pub(crate) struct Readers {
    newest: Newest,
    /// Ascending. Only the writer and who asks for figures come here.
    older: Mutex<Vec<Older>>,
}

/// A snapshot that is not the newest any more.
#[derive(Debug)]
struct Older {
    token: Token<Registered>,
    since: Instant,
}

impl Older {
    fn snapshot(&self) -> &Snapshot {
        &self.token.0
    }

    /// Whether a reader has a token, too. None can come back: new readers get tokens of the newest snapshot.
    fn is_read(&mut self) -> bool {
        // What the last reader did with its pages has happened before this sees that it is gone.
        Token::get_mut(&mut self.token).is_none()
    }
}

impl Readers {
    pub(crate) fn new(newest: Snapshot) -> Self {
        let token = Token::new(Registered(Arc::new(newest)));
        Self { newest: Newest::new(token), older: Mutex::new(Vec::new()) }
    }

    /// The older snapshots that are read.
    fn older(&self) -> MutexGuard<'_, Vec<Older>> {
        // Nothing under this lock can panic with the list half changed.
        let mut older = self.older.lock().unwrap_or_else(PoisonError::into_inner);
        older.retain_mut(Older::is_read);
        older
    }

    pub(crate) fn current(&self) -> Arc<Snapshot> {
        Arc::clone(&self.newest.load_full().0)
    }

    /// Begins to read the newest snapshot: its pages stay as they are until the token is dropped.
    pub(crate) fn enter(&self) -> Reading {
        Reading(self.newest.load_full())
    }

    /// What readers that enter from now on see.
    pub(crate) fn publish(&self, snapshot: Arc<Snapshot>) {
        // Whoever got a token of the old one by now is counted when this returns.
        let token = self.newest.swap(Token::new(Registered(snapshot)));
        self.older.lock().unwrap_or_else(PoisonError::into_inner).push(Older { token, since: Instant::now() });
    }

    /// Whether snapshots are read that are not the newest.
    pub(crate) fn any_older(&self) -> bool {
        !self.older().is_empty()
    }

    /// How many readers there are, and for how long the oldest of their snapshots has not been the newest.
    pub(crate) fn count(&self) -> (usize, Option<Duration>) {
        let newest = self.newest.load_full();
        // The registry has a token of each, and this function one of the newest.
        let of_newest = Token::strong_count(&newest).saturating_sub(2);
        let older = self.older();
        let of_older: usize = older.iter().map(|older| Token::strong_count(&older.token) - 1).sum();
        (of_newest + of_older, older.first().map(|oldest| oldest.since.elapsed()))
    }

    /// The highest high-water mark of the newest snapshot and those that are being read.
    pub(crate) fn highest_mark(&self) -> Pgid {
        let newest = self.current().meta.mark;
        self.older().iter().map(|older| older.snapshot().meta.mark).fold(newest, Pgid::max)
    }

    /// The snapshots other than the newest that are being read, ascending.
    pub(crate) fn older_txids(&self) -> Vec<TxId> {
        self.older().iter().map(|older| older.snapshot().meta.txid).collect()
    }
}
