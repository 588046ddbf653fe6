//! Syncs what was committed unsynced when its time has come: one thread a database, which sleeps while nothing is due.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::Shared;
use crate::{Error, Result};

/// How long it waits at least before it tries again after a full disk.
const SHORTEST_RETRY: Duration = Duration::from_millis(100);

/// When something is due, and how long it could wait.
struct Due {
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

    /// A commit is to be synced at that moment, after it could wait for `every`.
    pub(crate) fn note(&self, at: Instant, every: Duration) {
        if let Some(thread) = self.thread().as_ref() {
            // The thread is gone where no more writes are taken.
            let _ = thread.due.send(Due { at, every });
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
    while let Ok(first) = due.recv() {
        let Some(mut next) = wait(first, due) else { return };
        while let Some(shared) = database.upgrade() {
            match shared.sync_point() {
                Ok(_) => break,
                Err(Error::Poisoned { .. }) => return,
                // A full disk may have room next time; any other failure stops all writes.
                Err(_) => {}
            }
            drop(shared);
            next.at = Instant::now() + next.every.max(SHORTEST_RETRY);
            let Some(again) = wait(next, due) else { return };
            next = again;
        }
    }
}

/// Sleeps until the first of what is due; `None` where the database is closed.
fn wait(mut next: Due, due: &Receiver<Due>) -> Option<Due> {
    loop {
        match due.recv_timeout(next.at.saturating_duration_since(Instant::now())) {
            Ok(other) if other.at < next.at => next = other,
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => return Some(next),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}
