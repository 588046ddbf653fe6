//! The memory that all connections share: one budget, from which everything large takes its part.
//!
//! A connection has a little room of its own ([`OWN_INPUT`], [`OWN_OUTPUT`]). What goes beyond that, a long frame as it
//! arrives and as it waits to be written, or replies that the client has not taken yet, needs a [`Lease`]. Who finds nothing
//! left is not read until there is, in the order in which they came.
//!
//! Nobody waits for memory while holding some that only it can set free: a frame takes all it needs before it is read, what
//! a connection has to send leaves whether it waits or not, and where a request holds memory and its reply finds none, the
//! reply is `OVERLOADED`. So what is waited for comes, at the latest when a deadline ends whoever holds it.

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
}

/// A part of the budget, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Lease(OwnedSemaphorePermit);

impl Memory {
    /// The largest budget that there can be, in bytes: a round number, for people, whose units can be counted.
    pub(crate) const MOST: usize = 2 << 40;

    /// A budget of `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        let total = units(limit);
        Self { total, free: Arc::new(Semaphore::new(total as usize)) }
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
        self.limit().saturating_sub(self.free.available_permits() * UNIT)
    }

    /// Takes `bytes`, if they are there and nobody waits for them.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<Lease> {
        Arc::clone(&self.free).try_acquire_many_owned(units(bytes)).ok().map(Lease)
    }

    /// Takes `bytes` as soon as they are there, in its turn; at most the whole budget. Dropped before, it takes nothing.
    pub(crate) fn take(&self, bytes: usize) -> impl Future<Output = Lease> + Send + use<> {
        let (free, wanted) = (Arc::clone(&self.free), units(bytes).min(self.total));
        async move {
            match free.acquire_many_owned(wanted).await {
                Ok(permit) => Lease(permit),
                // Nobody closes it.
                Err(_) => std::future::pending().await,
            }
        }
    }
}

impl Lease {
    /// How many bytes it is for.
    pub(crate) fn bytes(&self) -> usize {
        self.0.num_permits() * UNIT
    }

    /// Adds another lease of the same budget to this one.
    pub(crate) fn add(&mut self, other: Self) {
        self.0.merge(other.0);
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
