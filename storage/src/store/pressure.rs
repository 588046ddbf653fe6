//! Commits fill the memory for patches, and a thread gives it back. As a rule the thread has to wait, which has much to do,
//! while those who wait for a commit have little. But commits may fill what is left of the memory no faster than the thread
//! comes on, and are held back a little each where they are faster: without memory each of them writes its leaves itself.
//!
//! Commits fill the journal, too, and the thread makes checkpoints. While one is made they may fill it as fast as that comes
//! on, too: with a full journal they would wait for all of a checkpoint at once.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::Shared;
use super::pace::{ALL, Pace};
use crate::tree::MemoryStats;

/// For how long a write transaction is held back at most: for the memory's sake, where each changes few leaves or hundreds; for
/// the journal's, and where that is full and the disk slow. Commits wait for as long several times while memory is given back.
const LONGEST: Duration = Duration::from_millis(4);
const LONGEST_OF_MANY: Duration = Duration::from_millis(20);
const LONGEST_FOR_JOURNAL: Duration = Duration::from_millis(50);
const LONGEST_WHERE_FULL: Duration = Duration::from_secs(2);
/// What it takes to write a leaf that finds no memory.
const A_LEAF: Duration = Duration::from_micros(25);
/// So much of a checkpoint is done once its leaves are written, and once the disk was told to take them. The journal may be
/// ahead of it by this; by so much more a transaction waits longest.
const LEAVES: u32 = 400;
const TAKEN: u32 = 850;
const SLACK: u32 = 50;
const FAR: u32 = 250;
/// What is taken of the memory may be ahead of who gives it back by this, which is about one of his steps.
const SLACK_OF_MEMORY: u32 = 100;
/// Where memory is not full yet, a transaction is held back for so much less than it would take without.
const YET_LESS: u32 = 4;

/// How full the memory is; how far it has been given back, and how far a checkpoint.
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
    /// The journal is filled, and a checkpoint made.
    checkpoint: Pace,
    /// Memory is filled, and the oldest of it given back, which took so many microseconds the last time.
    giving_back: Pace,
    last_took: AtomicU32,
}

/// While there is one, a checkpoint is made that commits are to be no faster than.
pub(super) struct Made<'a>(&'a Pressure);

impl Drop for Made<'_> {
    fn drop(&mut self) {
        self.0.checkpoint.end();
        self.0.tell();
    }
}

/// While there is one, memory is given back.
pub(super) struct GivingBack<'a> {
    pressure: &'a Pressure,
    since: Instant,
}

impl GivingBack<'_> {
    /// What is done now is this part of so much.
    pub(super) fn part(&self, part: &Range<usize>, of: usize) {
        let [from, to] = [part.start, part.end].map(|end| thousandths(end, of));
        self.pressure.giving_back.part(from, to);
    }

    /// So many steps of that are done.
    pub(super) fn step(&self, done: u64, of: u64) {
        self.pressure.giving_back.step(done, of);
        self.pressure.tell();
    }
}

impl Drop for GivingBack<'_> {
    fn drop(&mut self) {
        self.pressure.giving_back.end();
        let took = u32::try_from(self.since.elapsed().as_micros()).unwrap_or(u32::MAX);
        self.pressure.last_took.store(took, Ordering::Relaxed);
        self.pressure.tell();
    }
}

impl Pressure {
    /// A checkpoint is begun, for which there is so much room in the journal: from what is recorded to where it is full.
    pub(super) fn make(&self, room: &Range<u64>) -> Made<'_> {
        self.checkpoint.begin(room);
        Made(self)
    }

    /// The oldest memory is about to be given back, for which there is so much room.
    pub(super) fn gives_back(&self, room: &Range<u64>) -> GivingBack<'_> {
        self.giving_back.begin(room);
        // What was given back before no commit has told yet.
        self.giving_back.note(room.start);
        GivingBack { pressure: self, since: Instant::now() }
    }

    /// What a checkpoint does now is to write leaves: so many parts of them are written, so many then.
    pub(super) fn writes_leaves(&self, parts: Range<usize>, of: usize) {
        let [from, to] = [parts.start, parts.end].map(|end| LEAVES * thousandths(end, of) / ALL);
        self.checkpoint.part(from, to);
    }

    /// What it does now is to have the disk take what was written.
    pub(super) fn writes_back(&self) {
        self.checkpoint.part(LEAVES, TAKEN);
    }

    /// So many steps of that are done.
    pub(super) fn step(&self, done: u64, of: u64) {
        self.checkpoint.step(done, of);
    }

    pub(super) fn note(&self, memory: &MemoryStats, usual_leaves: usize, recorded: u64) {
        self.usual_leaves.store(u32::try_from(usual_leaves).unwrap_or(u32::MAX), Ordering::Relaxed);
        self.checkpoint.note(recorded);
        self.giving_back.note(memory.room.start);
        let before = self.last_filled.swap(memory.last_filled, Ordering::Relaxed);
        if memory.last_filled < before {
            self.tell();
        }
    }

    /// Those who wait look whether they have to.
    fn tell(&self) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_less.notify_all();
    }

    /// Waits until that is so no more, at most so long.
    fn wait_while(&self, is_so: impl Fn() -> bool, longest: Duration) {
        self.held.fetch_add(1, Ordering::Relaxed);
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.is_less.wait_timeout_while(turn, longest, |()| is_so()));
    }

    /// Waits where more of the memory is taken than of it given back: for as long as that is behind by, but only for a part of
    /// the longest time while there is room. Others who come after have waited, too, then.
    fn keep_pace(&self, longest: Duration) {
        let ahead = self.giving_back.ahead(SLACK_OF_MEMORY);
        if ahead > 0 {
            let behind = Duration::from_micros(self.last_took.load(Ordering::Relaxed).into()) * ahead / ALL;
            let longest = if self.giving_back.taken() == ALL { longest } else { longest / YET_LESS };
            self.wait_while(|| self.giving_back.ahead(SLACK_OF_MEMORY) > 0, behind.min(longest));
        }
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

    /// Holds a write transaction back before it begins, where the journal fills faster than a checkpoint is made, or memory
    /// faster than it is given back.
    pub(crate) fn hold_back(&self) {
        let pressure = &self.pressure;
        let checkpoint = &pressure.checkpoint;
        let ahead = checkpoint.ahead(SLACK);
        if checkpoint.taken() == ALL {
            pressure.wait_while(|| checkpoint.taken() == ALL, LONGEST_WHERE_FULL);
        } else if ahead > 0 {
            let longest = LONGEST_FOR_JOURNAL * (ahead * ALL / FAR).min(ALL) / ALL;
            pressure.wait_while(|| checkpoint.ahead(SLACK) > 0, longest);
        }
        // Who finds no memory writes leaves for as long.
        let leaves = A_LEAF.saturating_mul(pressure.usual_leaves.load(Ordering::Relaxed));
        let filled = pressure.last_filled.load(Ordering::Relaxed);
        if pressure.giving_back.is_on() {
            pressure.keep_pace(leaves.min(LONGEST_OF_MANY));
        } else if filled > 0 && self.leaves.try_lock().is_err() {
            // He is about to, or has other things to do before.
            let longest = leaves.clamp(LONGEST, LONGEST_OF_MANY) * (filled * filled / ALL) / ALL;
            pressure.wait_while(|| pressure.last_filled.load(Ordering::Relaxed) >= filled, longest);
        }
    }
}

/// A part of something.
fn thousandths(part: usize, of: usize) -> u32 {
    u32::try_from(part.min(of) * ALL as usize / of.max(1)).unwrap_or(ALL)
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
    fn who_begins_to_write_waits_while_more_of_the_memory_is_taken_than_of_it_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new().journal(JournalOptions::new());
        let db = options.open(folder.path().join("a.db")).unwrap();
        let pressure = &db.0.shared.pressure;
        let begin = || drop(db.begin_mut().unwrap());
        let taken = |bytes| pressure.giving_back.note(bytes);
        begin();
        pressure.last_took.store(1000, Ordering::Relaxed);
        pressure.usual_leaves.store(1000, Ordering::Relaxed);
        taken(1900);
        let giving_back = pressure.gives_back(&(1000..2000));
        begin();
        assert_eq!(pressure.held(), 0, "that was before");
        taken(1100);
        begin();
        assert_eq!(pressure.held(), 0, "as much as he may be behind");
        taken(1300);
        begin();
        assert_eq!(pressure.held(), 1);
        giving_back.part(&(0..1), 4);
        giving_back.step(4, 5);
        begin();
        assert_eq!(pressure.held(), 1, "a fifth of it is given back");
        taken(2000);
        begin();
        assert_eq!(pressure.held(), 2, "there is no more");
        giving_back.part(&(1..4), 4);
        giving_back.step(9, 9);
        begin();
        assert_eq!(pressure.held(), 2, "all is given back, and is about to be there");
        giving_back.part(&(0..1), 4);
        pressure.last_took.store(u32::MAX, Ordering::Relaxed);
        thread::scope(|scope| {
            scope.spawn(begin);
            while pressure.held() < 3 {
                thread::yield_now();
            }
            drop(giving_back);
        });
        begin();
        assert_eq!(pressure.held(), 3, "nothing is given back");
    }

    #[test]
    fn who_begins_to_write_waits_while_the_journal_is_further_than_the_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new().journal(JournalOptions::new());
        let db = options.open(folder.path().join("a.db")).unwrap();
        let pressure = &db.0.shared.pressure;
        let begin = || drop(db.begin_mut().unwrap());
        let recorded = |bytes| pressure.checkpoint.note(bytes);
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
        assert_eq!(pressure.checkpoint.ahead(SLACK), 500 - 200 - SLACK);
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
