//! Addresses from which wrong tokens came. A token cannot be guessed, so nobody who has the right one is kept waiting; those
//! who try are, so that they do not keep the server busy.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::peer::{Origin, Peer};

/// The first answer waits so long, each further one twice as long,
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// up to this.
const LONGEST_WAIT: Duration = Duration::from_secs(if cfg!(fuzzing) { 0 } else { 2 });
/// An address from which nothing wrong came for so long is forgotten.
const REMEMBERED: Duration = Duration::from_secs(600);
/// So many addresses are remembered; where there are more, those are forgotten first that have been quiet for longest.
const MOST: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct Failures {
    count: AtomicU64,
    by_address: Mutex<HashMap<Origin, Tries>>,
}

#[derive(Debug, Clone, Copy)]
struct Tries {
    times: u32,
    last: Instant,
}

impl Failures {
    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Somebody did not know a token: how many times that was so from there, and how long his answer is to wait.
    pub(super) fn note(&self, peer: &Peer) -> (u32, Duration) {
        self.note_at(peer.origin(), Instant::now())
    }

    fn note_at(&self, origin: Origin, now: Instant) -> (u32, Duration) {
        self.count.fetch_add(1, Relaxed);
        // Nothing that holds it can panic half way.
        let mut known = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST && !known.contains_key(&origin) {
            known.retain(|_, tries| now.duration_since(tries.last) < REMEMBERED);
            if known.len() >= MOST
                && let Some(oldest) = known.iter().min_by_key(|(_, tries)| tries.last).map(|(origin, _)| *origin)
            {
                known.remove(&oldest);
            }
        }
        let tries = known.entry(origin).or_insert(Tries { times: 0, last: now });
        if now.duration_since(tries.last) >= REMEMBERED {
            tries.times = 0;
        }
        tries.times = tries.times.saturating_add(1);
        tries.last = now;
        let wait = FIRST_WAIT.saturating_mul(1_u32.checked_shl(tries.times - 1).unwrap_or(u32::MAX));
        (tries.times, wait.min(LONGEST_WAIT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_waits_longer_than_the_one_before_and_none_for_ever() {
        let (failures, now) = (Failures::default(), Instant::now());
        let there = Origin::V4([192, 0, 2, 1]);
        let waits: Vec<_> = (0..40).map(|_| failures.note_at(there, now).1).collect();
        assert_eq!(waits[..3], [100, 200, 400].map(Duration::from_millis));
        assert_eq!(waits[39], LONGEST_WAIT);
        assert_eq!(failures.note_at(Origin::Local(None), now), (1, FIRST_WAIT), "others wait as little as ever");
        assert_eq!(failures.note_at(there, now + REMEMBERED), (1, FIRST_WAIT), "it is forgotten");
        assert_eq!(failures.count(), 42);
    }

    #[test]
    fn no_more_addresses_are_remembered_than_there_is_room_for() {
        let (failures, now) = (Failures::default(), Instant::now());
        for n in 0..2 * MOST as u64 {
            failures.note_at(Origin::V6(n.to_be_bytes()), now + Duration::from_millis(n));
        }
        assert_eq!(failures.by_address.lock().unwrap().len(), MOST);
        let newest = Origin::V6((2 * MOST as u64 - 1).to_be_bytes());
        assert_eq!(failures.note_at(newest, now + Duration::from_secs(9)).0, 2, "the newest are remembered");
    }
}
