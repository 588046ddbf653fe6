//! Commits fill something, and a thread makes room in it: whether the commits are further than the thread.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What is counted in thousandths.
pub(super) const ALL: u32 = 1000;

/// How far both are: how much of the room there was is taken, and how much of the work done that makes room.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Where commits were when the work was begun, and where there is no more room; 0 where none is done.
    from: AtomicU64,
    full: AtomicU64,
    /// Where they are now.
    at: AtomicU64,
    /// How much of it is done, in thousandths; and the part that is being done: from where to where.
    done: AtomicU32,
    part: [AtomicU32; 2],
}

impl Pace {
    /// Work is begun, for which there is so much room: from where commits are to where they can go no further.
    pub(super) fn begin(&self, room: &Range<u64>) {
        self.part(0, 0);
        self.from.store(room.start, Ordering::Relaxed);
        self.full.store(room.end, Ordering::Relaxed);
    }

    /// None is done any more.
    pub(super) fn end(&self) {
        self.full.store(0, Ordering::Relaxed);
    }

    /// Whether some is.
    pub(super) fn is_on(&self) -> bool {
        self.full.load(Ordering::Relaxed) > 0
    }

    /// So far commits are.
    pub(super) fn note(&self, at: u64) {
        self.at.store(at, Ordering::Relaxed);
    }

    /// What is done now is the part from one thousandth of the work to another.
    pub(super) fn part(&self, from: u32, to: u32) {
        self.part[0].store(from, Ordering::Relaxed);
        self.part[1].store(to, Ordering::Relaxed);
        self.done.store(from, Ordering::Relaxed);
    }

    /// So many steps of that part are done.
    pub(super) fn step(&self, done: u64, of: u64) {
        let [from, to] = [0, 1].map(|end| self.part[end].load(Ordering::Relaxed));
        let part = u64::from(to.saturating_sub(from)) * done.min(of) / of.max(1);
        self.done.store(from + u32::try_from(part).unwrap_or(0), Ordering::Relaxed);
    }

    /// How much of the room is taken, in thousandths; 0 where no work is done.
    pub(super) fn taken(&self) -> u32 {
        let (from, full) = (self.from.load(Ordering::Relaxed), self.full.load(Ordering::Relaxed));
        let taken = self.at.load(Ordering::Relaxed).saturating_sub(from);
        match full.saturating_sub(from) {
            _ if full == 0 => 0,
            room if taken >= room => ALL,
            room => u32::try_from(u128::from(taken) * u128::from(ALL) / u128::from(room)).unwrap_or(ALL),
        }
    }

    /// By how many thousandths more of the room is taken than of the work done, and so many.
    pub(super) fn ahead(&self, slack: u32) -> u32 {
        self.taken().saturating_sub(self.done.load(Ordering::Relaxed) + slack)
    }
}
