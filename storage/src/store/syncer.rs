//! Syncs what was committed unsynced, and brings the file up to its journal, when the time has come: one thread a database, which sleeps while nothing is due.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::Shared;
use crate::{Error, Result};

/// How long it waits at least before it tries again after a full disk.
const SHORTEST_RETRY: Duration = Duration::from_millis(100);

/// What can be due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// To make durable what was committed.
    Sync,
    /// To bring the file up to its journal.
    Checkpoint,
    /// To give the oldest memory of patches back, where it is nearly full.
    Leaves,
}

/// When something is due, and how long it could wait.
struct Due {
    what: What,
    at: Instant,
    every: Duration,
}

/// The thread, once there is one.
#[derive(Debug, Default)]
pub(crate) struct Syncer(Mutex<Option<Thread>>);

#[derive(Debug)]
struct Thread {
    due: Sender<Due>,
    handle: JoinHandle<()>,
}

impl Syncer {
    fn thread(&self) -> MutexGuard<'_, Option<Thread>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the thread unless it runs.
    pub(super) fn start(&self, database: Weak<Shared>) -> Result<()> {
        let mut thread = self.thread();
        if thread.is_none() {
            let (sender, due) = mpsc::channel();
            let spawned = Builder::new().name("boltkv-sync".into()).spawn(move || run(&database, &due));
            let handle = spawned.map_err(Error::io("start the thread that syncs", None))?;
            *thread = Some(Thread { due: sender, handle });
        }
        Ok(())
    }

    /// A commit waits for that until this moment, after it could wait for `every`.
    pub(crate) fn note(&self, what: What, at: Instant, every: Duration) {
        if let Some(thread) = self.thread().as_ref() {
            // The thread is gone where no more writes are taken.
            let _ = thread.due.send(Due { what, at, every });
        }
    }

    /// Ends the thread, and waits for a sync that it has begun.
    pub(super) fn stop(&self) {
        let thread = self.thread().take();
        if let Some(Thread { due, handle }) = thread {
            drop(due);
            // If it panicked, its sync has poisoned the database or changed nothing.
            let _ = handle.join();
        }
    }
}

fn run(database: &Weak<Shared>, due: &Receiver<Due>) {
    let mut waiting = Vec::new();
    while let Some(Due { what, every, .. }) = next(&mut waiting, due) {
        let Some(shared) = database.upgrade() else { return };
        let done = catch_unwind(AssertUnwindSafe(|| match what {
            What::Sync => shared.sync().map(drop),
            What::Checkpoint => shared.checkpoint_as_asked(),
            What::Leaves => shared.give_back_memory(&shared.turn_to_write()),
        }));
        // Without this thread nothing is synced in time, so that writes end, and say why.
        let done =
            done.unwrap_or_else(|_| Err(shared.poison("sync", io::Error::other("the thread that syncs panicked"))));
        match done.map_err(|error| shared.unless_tried_again(error)) {
            Ok(()) => {}
            Err(_) if shared.failure().is_some() => return,
            // A full disk may have room next time.
            Err(_) => waiting.push(Due { what, at: Instant::now() + every.max(SHORTEST_RETRY), every }),
        }
    }
}

/// Sleeps until the first of what is due, at most one of each kind; `None` where the database is closed.
fn next(waiting: &mut Vec<Due>, due: &Receiver<Due>) -> Option<Due> {
    loop {
        let first = (0..waiting.len()).min_by_key(|&which| waiting[which].at);
        let heard = match first {
            Some(first) => due.recv_timeout(waiting[first].at.saturating_duration_since(Instant::now())),
            None => due.recv().map_err(RecvTimeoutError::from),
        };
        match (heard, first) {
            (Ok(another), _) => match waiting.iter_mut().find(|other| other.what == another.what) {
                Some(other) if other.at <= another.at => {}
                Some(other) => *other = another,
                None => waiting.push(another),
            },
            (Err(RecvTimeoutError::Timeout), Some(first)) => return Some(waiting.swap_remove(first)),
            (Err(_), _) => return None,
        }
    }
}
