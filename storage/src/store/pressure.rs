//! Commits fill the memory for patches, and a thread gives it back. Which of the two has to wait depends on how full it is:
//! as a rule the thread, which has much to do, while those who wait for a commit have little; near the end the commits,
//! a little each, for without memory each of them writes its leaves itself.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::Shared;
use crate::tree::MemoryStats;

/// For how long a write transaction is held back at most.
const LONGEST: Duration = Duration::from_millis(4);

/// How full the memory is.
#[derive(Debug, Default)]
pub(super) struct Pressure {
    /// How full the last slab is, in thousandths; 0 where there are others.
    last_filled: AtomicU32,
    /// For who waits until it is less.
    turn: Mutex<()>,
    is_less: Condvar,
    /// How many transactions were held back.
    held: AtomicU64,
}

impl Pressure {
    pub(super) fn note(&self, memory: &MemoryStats) {
        let before = self.last_filled.swap(memory.last_filled, Ordering::Relaxed);
        if memory.last_filled < before {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            self.is_less.notify_all();
        }
    }

    /// Waits until it is less full than that, the longer the fuller it is.
    fn wait(&self, filled: u32) {
        self.held.fetch_add(1, Ordering::Relaxed);
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let is_as_full = |(): &mut ()| self.last_filled.load(Ordering::Relaxed) >= filled;
        drop(self.is_less.wait_timeout_while(turn, LONGEST * filled / 1000, is_as_full));
    }

    pub(super) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// Lets others have the processor for a moment. For who writes leaves.
    pub(super) fn give_way(&self) {
        if self.pressure.last_filled.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
    }

    /// Holds a write transaction back before it begins, where memory is nearly full and somebody is giving it back.
    pub(crate) fn hold_back(&self) {
        let filled = self.pressure.last_filled.load(Ordering::Relaxed);
        if filled > 0 && self.leaves.try_lock().is_err() {
            self.pressure.wait(filled);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
mod tests {
    use super::*;
    use crate::{JournalOptions, Options};

    #[test]
    fn who_begins_to_write_waits_only_where_memory_is_nearly_full_and_is_being_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new().journal(JournalOptions::new().memory(8 << 10));
        let db = options.open(folder.path().join("a.db")).unwrap();
        let pressure = &db.0.shared.pressure;
        let begin = || drop(db.begin_mut().unwrap());
        begin();
        pressure.last_filled.store(500, Ordering::Relaxed);
        begin();
        assert_eq!(pressure.held(), 0, "nobody gives it back");
        let turn = db.0.shared.turn_to_write();
        begin();
        assert_eq!(pressure.held(), 1);
        pressure.last_filled.store(0, Ordering::Relaxed);
        begin();
        assert_eq!(pressure.held(), 1, "there is room");
        drop(turn);
    }
}
