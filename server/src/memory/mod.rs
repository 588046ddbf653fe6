//! The memory that all connections share: one budget, from which everything large takes its part.
//!
//! A connection has a little room of its own ([`OWN_INPUT`], [`OWN_OUTPUT`]). What goes beyond that, a long frame as it
//! arrives and as it waits to be written, or replies that the client has not taken yet, needs a [`Lease`]. Who finds nothing
//! left is not read until there is, in the order in which they came.
//!
//! Nobody waits for memory while holding some that only it can set free: a frame takes all it needs before it is read, what
//! a connection has to send leaves whether it waits or not, and where a request holds memory and its reply finds none, the
//! reply is `OVERLOADED`. So what is waited for comes, at the latest when a deadline ends whoever holds it. What is kept for as
//! long as a client likes, what it has queued after MULTI and the keys that it watches, has [half](Memory::try_keep) of the
//! budget, and nobody waits for a place in that: the other half is there for the frames of those who keep something, too.

mod machine;

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of requests that a connection keeps without a lease.
pub(crate) const OWN_INPUT: usize = 16 * 1024;
/// Bytes of replies that a connection keeps without a lease.
pub(crate) const OWN_OUTPUT: usize = 16 * 1024;
/// The least that is taken and counted.
const UNIT: usize = 1024;

/// The budget.
#[derive(Debug)]
pub(crate) struct Memory {
    /// In units.
    total: u32,
    free: Arc<Semaphore>,
    /// What of it may still be kept.
    keepable: Arc<Semaphore>,
}

/// A part of the budget, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    taken: OwnedSemaphorePermit,
    /// What was taken of shares of the budget for it, too.
    of_shares: Vec<OwnedSemaphorePermit>,
}

impl Memory {
    /// The largest budget that there can be, in bytes: a round number, for people, whose units can be counted.
    pub(crate) const MOST: usize = 2 << 40;

    /// A budget of `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        let total = units(limit);
        let free = Arc::new(Semaphore::new(total as usize));
        Self { total, free, keepable: Arc::new(Semaphore::new(total as usize / 2)) }
    }

    /// A quarter of the memory that this process may use, or `least` bytes if that is more.
    pub(crate) fn usual_limit(least: usize) -> usize {
        machine::memory().map_or(0, |memory| usize::try_from(memory / 4).unwrap_or(usize::MAX)).max(least)
    }

    /// The whole of it, in bytes.
    pub(crate) const fn limit(&self) -> usize {
        self.total as usize * UNIT
    }

    /// What is taken of it, in bytes.
    pub(crate) fn used(&self) -> usize {
        self.limit().saturating_sub(self.left())
    }

    /// What is left of it, in bytes: nothing where somebody waits for some.
    pub(crate) fn left(&self) -> usize {
        self.free.available_permits() * UNIT
    }

    /// Takes `bytes`, if they are there and nobody waits for them.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<Lease> {
        Arc::clone(&self.free).try_acquire_many_owned(units(bytes)).ok().map(Lease::of)
    }

    /// Takes `bytes` for what is kept for as long as a client likes, if they are there: of half of the budget.
    pub(crate) fn try_keep(&self, bytes: usize) -> Option<Lease> {
        let kept = Arc::clone(&self.keepable).try_acquire_many_owned(units(bytes)).ok()?;
        self.try_take(bytes).map(|lease| lease.of_share(kept))
    }

    /// Takes `bytes` that count in a share of the budget, too, if they are in both.
    pub(crate) fn try_take_of(&self, share: &Self, bytes: usize) -> Option<Lease> {
        let of_share = share.try_take(bytes)?;
        self.try_take(bytes).map(|lease| lease.of_share(of_share.taken))
    }

    /// Takes `bytes` as soon as they are there, in its turn; at most the whole budget. Dropped before, it takes nothing.
    pub(crate) fn take(&self, bytes: usize) -> impl Future<Output = Lease> + Send + use<> {
        let (free, wanted) = (Arc::clone(&self.free), units(bytes).min(self.total));
        async move {
            match free.acquire_many_owned(wanted).await {
                Ok(permit) => Lease::of(permit),
                // Nobody closes it.
                Err(_) => std::future::pending().await,
            }
        }
    }
}

impl Lease {
    const fn of(taken: OwnedSemaphorePermit) -> Self {
        Self { taken, of_shares: Vec::new() }
    }

    fn of_share(mut self, of_share: OwnedSemaphorePermit) -> Self {
        self.of_shares.push(of_share);
        self
    }

    /// How many bytes it is for.
    pub(crate) fn bytes(&self) -> usize {
        self.taken.num_permits() * UNIT
    }

    /// Adds another lease of the same budget to this one.
    pub(crate) fn add(&mut self, other: Self) {
        self.taken.merge(other.taken);
        for more in other.of_shares {
            match self.of_shares.iter_mut().find(|held| Arc::ptr_eq(held.semaphore(), more.semaphore())) {
                Some(held) => held.merge(more),
                None => self.of_shares.push(more),
            }
        }
    }

    /// Ties the lease to bytes that it was taken for: it is given back when the last slice of them is gone.
    pub(crate) fn tie_to(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Leased { bytes, _lease: self })
    }
}

struct Leased {
    bytes: Bytes,
    _lease: Lease,
}

impl AsRef<[u8]> for Leased {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back_with_the_last_slice_of_what_it_was_taken_for() {
        let memory = Memory::new(10 * UNIT);
        let lease = memory.try_take(8 * UNIT - 1).unwrap();
        assert_eq!((memory.used(), memory.limit()), (8 * UNIT, 10 * UNIT));
        assert!(memory.try_take(3 * UNIT).is_none());
        let bytes = lease.tie_to(Bytes::from(vec![7; 100]));
        let slice = bytes.slice(40..41);
        drop(bytes);
        assert_eq!((memory.used(), &slice[..]), (8 * UNIT, &[7][..]));
        drop(slice);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn of_what_is_kept_there_is_half_and_the_rest_is_for_others() {
        let memory = Memory::new(10 * UNIT);
        let mut kept = memory.try_keep(2 * UNIT).unwrap();
        kept.add(memory.try_keep(3 * UNIT).unwrap());
        assert!(memory.try_keep(1).is_none());
        let taken = memory.try_take(5 * UNIT).unwrap();
        drop(kept);
        assert_eq!(memory.used(), 5 * UNIT);
        let kept = memory.try_keep(5 * UNIT).unwrap();
        drop(taken);
        assert!(memory.try_keep(1).is_none() && memory.try_take(5 * UNIT).is_some());
        drop(kept);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn what_counts_in_a_share_is_taken_of_both_or_of_none() {
        let (memory, share) = (Memory::new(10 * UNIT), Memory::new(4 * UNIT));
        let mut held = memory.try_take_of(&share, 3 * UNIT).unwrap();
        assert!(memory.try_take_of(&share, 2 * UNIT).is_none());
        held.add(memory.try_take_of(&share, UNIT).unwrap());
        held.add(memory.try_keep(UNIT).unwrap());
        assert_eq!((memory.used(), share.used()), (5 * UNIT, 4 * UNIT));
        drop(held);
        let taken = memory.try_take(8 * UNIT).unwrap();
        assert!(memory.try_take_of(&share, 5 * UNIT).is_none() && memory.try_take_of(&share, 3 * UNIT).is_none());
        assert_eq!((memory.used(), share.used()), (8 * UNIT, 0));
        drop(taken);
    }

    #[tokio::test]
    async fn who_waits_is_served_in_turn_and_nobody_overtakes() {
        let memory = Memory::new(10 * UNIT);
        let mut held = memory.try_take(6 * UNIT).unwrap();
        held.add(memory.try_take(UNIT).unwrap());
        assert_eq!(held.bytes(), 7 * UNIT);
        // More than there is: the whole of it.
        let large = tokio::spawn(memory.take(20 * UNIT));
        while memory.try_take(UNIT).is_some() {
            tokio::task::yield_now().await;
        }
        let small = tokio::spawn(memory.take(UNIT));
        drop(held);
        let large = large.await.unwrap();
        assert_eq!(large.bytes(), 10 * UNIT);
        assert!(!small.is_finished());
        drop(large);
        drop(small.await.unwrap());
        assert_eq!(memory.used(), 0);
    }
}
