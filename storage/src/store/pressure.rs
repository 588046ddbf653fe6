//! Commits fill the memory for patches, and a thread gives it back. Which of the two has to wait depends on how full it is:
//! as a rule the thread, which has much to do, while those who wait for a commit have little; near the end the commits,
//! a little each, for without memory each of them writes its leaves itself.
//!
//! Commits fill the journal, too, and the thread makes checkpoints. While one is made they may fill it as fast as that comes
//! on, and are held back where they are faster: with a full journal they would wait for all of a checkpoint at once.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::Shared;
use crate::tree::MemoryStats;

/// For how long a write transaction is held back at most: for the memory's sake, where each changes few leaves or hundreds; for
/// the journal's, and where that is full and the disk slow.
const LONGEST: Duration = Duration::from_millis(4);
const LONGEST_OF_MANY: Duration = Duration::from_millis(20);
const LONGEST_FOR_JOURNAL: Duration = Duration::from_millis(50);
const LONGEST_WHERE_FULL: Duration = Duration::from_secs(2);
/// What it takes to write a leaf that finds no memory.
const A_LEAF: Duration = Duration::from_micros(25);
/// What is counted in thousandths.
const ALL: u32 = 1000;
/// So much of a checkpoint is done once its leaves are written, and once the disk was told to take them. The journal may be
/// ahead of it by this; by so much more a transaction waits longest.
const LEAVES: usize = 400;
const TAKEN: u32 = 850;
const SLACK: u32 = 50;
const FAR: u32 = 250;

/// How full the memory is, and how far a checkpoint.
#[derive(Debug, Default)]
pub(super) struct Pressure {
    /// How full the last slab is, in thousandths; 0 where there are others.
    last_filled: AtomicU32,
    /// How many leaves a transaction changes, as a rule.
    usual_leaves: AtomicU32,
    /// For who waits until it is less.
    turn: Mutex<()>,
    is_less: Condvar,
    /// How many transactions were held back.
    held: AtomicU64,
    making: Making,
}

/// A checkpoint that is made while commits go on.
#[derive(Debug, Default)]
struct Making {
    /// What had been recorded when it was begun, and what will be when the journal is full; 0 where none is made.
    from: AtomicU64,
    full: AtomicU64,
    /// What is recorded now.
    recorded: AtomicU64,
    /// How much of it is done, in thousandths; and the part that is being done: from where to where.
    done: AtomicU32,
    part: [AtomicU32; 2],
}

impl Making {
    /// How much of the room that there is for it in the journal is taken, in thousandths; 0 where none is made.
    fn taken(&self) -> u32 {
        let (from, full) = (self.from.load(Ordering::Relaxed), self.full.load(Ordering::Relaxed));
        let taken = self.recorded.load(Ordering::Relaxed).saturating_sub(from);
        match full.saturating_sub(from) {
            _ if full == 0 => 0,
            room if taken >= room => ALL,
            room => u32::try_from(u128::from(taken) * u128::from(ALL) / u128::from(room)).unwrap_or(ALL),
        }
    }

    /// By how many thousandths the journal has come on further than it may.
    fn ahead(&self) -> u32 {
        self.taken().saturating_sub(self.done.load(Ordering::Relaxed) + SLACK)
    }
}

/// While there is one, a checkpoint is made that commits are to be no faster than.
pub(super) struct Made<'a>(&'a Pressure);

impl Drop for Made<'_> {
    fn drop(&mut self) {
        self.0.making.full.store(0, Ordering::Relaxed);
        let _turn = self.0.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.is_less.notify_all();
    }
}

impl Pressure {
    /// A checkpoint is begun, for which there is so much room in the journal: from what is recorded to where it is full.
    pub(super) fn make(&self, room: &Range<u64>) -> Made<'_> {
        self.part(0, 0);
        self.making.from.store(room.start, Ordering::Relaxed);
        self.making.full.store(room.end, Ordering::Relaxed);
        Made(self)
    }

    /// What is done now is to write leaves: so many parts of them are written, so many then.
    pub(super) fn writes_leaves(&self, parts: Range<usize>, of: usize) {
        let upto = |part: usize| u32::try_from(LEAVES * part.min(of) / of.max(1)).unwrap_or(ALL);
        self.part(upto(parts.start), upto(parts.end));
    }

    /// What is done now is to have the disk take what was written.
    pub(super) fn writes_back(&self) {
        self.part(u32::try_from(LEAVES).unwrap_or(ALL), TAKEN);
    }

    /// From one thousandth of it to another.
    fn part(&self, from: u32, to: u32) {
        self.making.part[0].store(from, Ordering::Relaxed);
        self.making.part[1].store(to, Ordering::Relaxed);
        self.making.done.store(from, Ordering::Relaxed);
    }

    /// So many steps of that part are done.
    pub(super) fn step(&self, done: u64, of: u64) {
        let [from, to] = [0, 1].map(|end| self.making.part[end].load(Ordering::Relaxed));
        let part = u64::from(to.saturating_sub(from)) * done.min(of) / of.max(1);
        self.making.done.store(from + u32::try_from(part).unwrap_or(0), Ordering::Relaxed);
    }

    pub(super) fn note(&self, memory: &MemoryStats, usual_leaves: usize, recorded: u64) {
        self.usual_leaves.store(u32::try_from(usual_leaves).unwrap_or(u32::MAX), Ordering::Relaxed);
        self.making.recorded.store(recorded, Ordering::Relaxed);
        let before = self.last_filled.swap(memory.last_filled, Ordering::Relaxed);
        if memory.last_filled < before {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            self.is_less.notify_all();
        }
    }

    /// Waits until that is so no more, at most for so many thousandths of the longest time.
    fn wait_while(&self, is_so: impl Fn() -> bool, longest: Duration, thousandths: u32) {
        self.held.fetch_add(1, Ordering::Relaxed);
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.is_less.wait_timeout_while(turn, longest * thousandths / ALL, |()| is_so()));
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

    /// Holds a write transaction back before it begins, where memory is nearly full and somebody is giving it back, or the
    /// journal fills faster than a checkpoint is made.
    pub(crate) fn hold_back(&self) {
        let pressure = &self.pressure;
        let making = &pressure.making;
        let ahead = making.ahead();
        if making.taken() == ALL {
            pressure.wait_while(|| making.taken() == ALL, LONGEST_WHERE_FULL, ALL);
        } else if ahead > 0 {
            pressure.wait_while(|| making.ahead() > 0, LONGEST_FOR_JOURNAL, (ahead * ALL / FAR).min(ALL));
        }
        let filled = pressure.last_filled.load(Ordering::Relaxed);
        if filled > 0 && self.leaves.try_lock().is_err() {
            // Who finds no memory writes leaves for as long.
            let leaves = A_LEAF.saturating_mul(pressure.usual_leaves.load(Ordering::Relaxed));
            let longest = leaves.clamp(LONGEST, LONGEST_OF_MANY);
            let share = filled * filled / ALL;
            pressure.wait_while(|| pressure.last_filled.load(Ordering::Relaxed) >= filled, longest, share);
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

    #[test]
    fn who_begins_to_write_waits_while_the_journal_is_further_than_the_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new().journal(JournalOptions::new());
        let db = options.open(folder.path().join("a.db")).unwrap();
        let pressure = &db.0.shared.pressure;
        let begin = || drop(db.begin_mut().unwrap());
        let recorded = |bytes| pressure.making.recorded.store(bytes, Ordering::Relaxed);
        // The first one has the file say that the journal may hold more.
        begin();
        recorded(600);
        begin();
        assert_eq!(pressure.held(), 0, "none is made");
        let made = pressure.make(&(100..1100));
        begin();
        assert_eq!(pressure.held(), 1, "half of the room is taken, and nothing is done");
        pressure.writes_leaves(0..1, 2);
        pressure.step(1, 1);
        assert_eq!(pressure.making.ahead(), 500 - 200 - SLACK);
        pressure.writes_back();
        pressure.step(1, 2);
        begin();
        assert_eq!(pressure.held(), 1, "more of it is done");
        recorded(1100);
        thread::scope(|scope| {
            scope.spawn(begin);
            while pressure.held() < 2 {
                thread::yield_now();
            }
            drop(made);
        });
        begin();
        assert_eq!(pressure.held(), 2, "it is made");
    }
}
