//! Removing what has expired, between groups: when the earliest time comes, a step after each group, and one after the other
//! where there are none. Each is a transaction of its own.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use boltkv_storage::{Db, Durability, Error};
use tracing::{debug, warn};

use crate::commands::{Backlog, Clock, Timed, WatchedKeys, earliest};
use crate::stats::Stats;

/// Of so many steps one is synced, and the last. What a crash takes of the others is done again: nobody had been told of it.
const SYNCED_EVERY: u32 = 16;

/// Up to so many keys are gathered and sorted where writes wait for it, in a few milliseconds; more are by a thread.
const FEW: usize = 10_000;
/// How often it is looked whether the thread is done.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// When so many keys were removed, their pages are not left to wait for whenever the next checkpoint comes.
const MANY: u64 = 10_000;

/// How long to wait after a step that failed, at first, and at most.
const WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Removes keys whose time has come. It knows when that will be next, so that a file without such keys costs nothing.
pub(super) struct Reclaim {
    db: Db,
    clock: Clock,
    stats: Arc<Stats>,
    backlog: Backlog,
    /// The thread that gathers what is due, where that is much.
    gathering: Option<JoinHandle<Result<Backlog, Error>>>,
    /// No key expires before that; `None`: none ever does.
    due: Option<u64>,
    /// How many keys were removed since it was last seen to that their pages can be used again.
    removed: u64,
    /// How many steps were taken since the last that was synced.
    unsynced: u32,
    /// After a step that failed: when to try again, and how long that was.
    wait: Option<(Instant, Duration)>,
}

impl Reclaim {
    pub(super) fn new(db: Db, clock: Clock, stats: Arc<Stats>) -> Self {
        // Whether there is anything, and from when on, the first step finds out.
        let backlog = Backlog::default();
        Self { db, clock, stats, backlog, gathering: None, due: Some(0), removed: 0, unsynced: 0, wait: None }
    }

    /// A key is to expire then.
    pub(super) fn expect(&mut self, at: Option<u64>) {
        if let Some(at) = at {
            self.due = Some(self.due.map_or(at, |due| due.min(at)));
        }
    }

    /// No key expires before that time; `None` where none ever does.
    pub(super) const fn due(&self) -> Option<u64> {
        self.due
    }

    /// How long there is nothing to do; `None` where there will not be anything.
    pub(super) fn idle_for(&self) -> Option<Duration> {
        if let Some(wait) = self.wait.and_then(|(again, _)| again.checked_duration_since(Instant::now())) {
            return Some(wait);
        }
        if !self.backlog.is_empty() {
            return Some(Duration::ZERO);
        }
        if self.gathering.is_some() {
            return Some(LOOK_EVERY);
        }
        self.due.map(|due| self.clock.sleep_until(due))
    }

    /// Takes a step if there is something to do, and tells who watches keys that it changes. `false` where that failed.
    pub(super) fn step_if_due(&mut self, watched: &WatchedKeys) -> bool {
        if self.wait.is_some_and(|(again, _)| again > Instant::now()) {
            return true;
        }
        let nothing_gathered = self.backlog.is_empty() && self.gathering.is_none();
        if nothing_gathered && self.due.is_none_or(|due| due > self.clock.now()) {
            return true;
        }
        let error = match self.step(watched) {
            // Whether what failed before goes well now is known when something is removed.
            Ok(removes) => {
                self.wait = self.wait.take().filter(|_| !removes);
                return true;
            }
            Err(error) => error,
        };
        let wait = self.wait.map_or(WAIT, |(_, wait)| (2 * wait).min(LONGEST_WAIT));
        self.wait = Some((Instant::now() + wait, wait));
        self.backlog = Backlog::default();
        warn!(%error, "what has expired could not be removed; nobody sees it, but it takes its place in the file");
        false
    }

    /// Gathers what is due; `None` while a thread does.
    fn gather(&mut self) -> Result<Option<Backlog>, Error> {
        if let Some(thread) = self.gathering.take() {
            if !thread.is_finished() {
                self.gathering = Some(thread);
                return Ok(None);
            }
            if let Ok(gathered) = thread.join() {
                return gathered.map(Some);
            }
            // It has panicked: here that would be told.
            return Backlog::gather(&self.db.begin()?, self.clock.now()).map(Some);
        }
        let (tx, now) = (self.db.begin()?, self.clock.now());
        if let Some(few) = Backlog::gather_few(&tx, now, FEW)? {
            return Ok(Some(few));
        }
        let thread = Builder::new().name("boltkv-expired".into()).spawn(move || Backlog::gather(&tx, now));
        match thread {
            Ok(thread) => {
                self.gathering = Some(thread);
                Ok(None)
            }
            // Without a thread, writes wait for it.
            Err(_) => Backlog::gather(&self.db.begin()?, now).map(Some),
        }
    }

    /// Whether it has removed something, or there is nothing to remove.
    fn step(&mut self, watched: &WatchedKeys) -> Result<bool, Error> {
        if self.backlog.is_empty() {
            let Some(gathered) = self.gather()? else { return Ok(false) };
            self.backlog = gathered;
            if self.backlog.is_empty() {
                self.due = earliest(&self.db.begin()?)?;
                if self.removed >= MANY {
                    self.removed = 0;
                    self.db.checkpoint_soon();
                }
                return Ok(true);
            }
        }
        let mut tx = self.db.begin_mut()?;
        let mut timed = Timed::new(&mut tx, self.clock.now());
        let stepped = self.backlog.step(&mut timed)?;
        let expired = timed.expired;
        watched.touch_expired(&mut timed);
        let begun = Instant::now();
        self.unsynced += 1;
        if self.unsynced >= SYNCED_EVERY || stepped.is_over() {
            self.unsynced = 0;
            tx.commit()?;
        } else {
            tx.commit_with(Durability::Never)?;
        }
        self.stats.committed(begun.elapsed());
        self.stats.expired(expired);
        debug!(expired, "removed what has expired");
        self.removed += expired;
        self.backlog.committed(&stepped);
        Ok(true)
    }
}

impl Drop for Reclaim {
    fn drop(&mut self) {
        // It keeps the file open.
        if let Some(thread) = self.gathering.take() {
            let _ = thread.join();
        }
    }
}
