//! The place of the one who writes: the writer's thread, or whoever brings a request while nobody else does.
//!
//! To hand a request to another thread and its answer back takes two threads that are woken, some tens of microseconds:
//! a lone client that waits for each of its writes waits for that, too. Where one client's requests have come one by one for
//! a while, its next is therefore done where it arrives. As soon as two come at the same time, it is the thread again that
//! gathers them; and as soon as one of another client comes, it is the thread's, because who serves many clients would keep
//! those waiting, each time it writes for one of them.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::Work;

/// So many requests of a client came one by one before one is done where it arrives.
const IN_A_ROW: u32 = 16;

/// Whoever holds the lock writes.
pub(super) struct Seat {
    /// `None` once it is over.
    work: Mutex<Option<Box<dyn Work>>>,
    /// Requests that are queued, held or being done, and the thread where it has something to do of its own.
    under_way: AtomicUsize,
    /// Who came last, and how often it has come, one by one, since anybody else did.
    last: AtomicU64,
    in_a_row: AtomicU32,
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("under_way", &self.under_way).finish_non_exhaustive()
    }
}

impl Seat {
    pub(super) fn new(work: impl Work) -> Self {
        let work: Box<dyn Work> = Box::new(work);
        Self {
            work: Mutex::new(Some(work)),
            under_way: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            in_a_row: AtomicU32::new(0),
        }
    }

    /// A request of this client has come. Whether it is the only one, and the client has been for a while.
    pub(super) fn come(&self, client: u64) -> bool {
        let is_alone = self.under_way.fetch_add(1, Ordering::AcqRel) == 0;
        let is_same = self.last.swap(client, Ordering::Relaxed) == client;
        let in_a_row = if is_alone && is_same { self.in_a_row.load(Ordering::Relaxed).saturating_add(1) } else { 0 };
        self.in_a_row.store(in_a_row, Ordering::Relaxed);
        in_a_row >= IN_A_ROW
    }

    /// The thread has something to do of its own.
    pub(super) fn begin(&self) {
        self.under_way.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether it still is.
    pub(super) fn is_only_one(&self) -> bool {
        self.under_way.load(Ordering::Acquire) == 1
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.load(Ordering::Acquire) == 0
    }

    /// So many have done what they had to do.
    pub(super) fn leave(&self, requests: usize) {
        self.under_way.fetch_sub(requests, Ordering::AcqRel);
    }

    /// Has the thread do something, once nobody else does.
    ///
    /// # Panics
    /// Where somebody has panicked here: what was begun is half done.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut dyn Work) -> T) -> Option<T> {
        let mut work = self.work.lock().expect("who has brought a request has stopped half way");
        work.as_deref_mut().map(act)
    }

    /// Has who brings a request do something, if nobody else does.
    pub(super) fn try_with<T>(&self, act: impl FnOnce(&mut dyn Work) -> T) -> Option<T> {
        // Where somebody has panicked here the thread finds that out, too, and says so.
        let mut work = self.work.try_lock().ok()?;
        work.as_deref_mut().map(act)
    }

    /// Nobody writes any more.
    pub(super) fn end(&self) {
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(work);
    }
}
