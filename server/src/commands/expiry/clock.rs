//! What time it is, for keys that expire: milliseconds since 1970.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

/// How often it is looked whether the time has come, at the least: somebody may have set the clock.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The same, where the clock is set by hand.
const LOOK_AT_HAND: Duration = Duration::from_millis(2);

/// The clock by which keys expire. It never goes back while the process lives: what has expired stays so, whatever somebody
/// does to the system's clock. All clones are the same clock.
#[derive(Debug, Clone, Default)]
pub struct Clock(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// The latest that was told.
    seen: AtomicU64,
    /// Only who holds it moves it on.
    by_hand: bool,
}

impl Clock {
    /// The system's.
    #[must_use]
    pub fn system() -> Self {
        Self::default()
    }

    /// One that stands at `now`, in milliseconds since 1970, until it is [set](Self::set). For tests.
    #[must_use]
    pub fn by_hand(now: u64) -> Self {
        Self(Arc::new(Shared { seen: AtomicU64::new(now), by_hand: true }))
    }

    /// Sets a clock to `now`, or a later time that it has told already. The system's goes on by itself from there.
    pub fn set(&self, now: u64) {
        self.0.seen.fetch_max(now, Relaxed);
    }

    /// The time, in milliseconds since 1970. No call answers less than one before it, in whatever thread.
    #[must_use]
    pub fn now(&self) -> u64 {
        if self.0.by_hand {
            return self.0.seen.load(Relaxed);
        }
        // A clock before 1970 counts as that.
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        self.0.seen.fetch_max(now, Relaxed).max(now)
    }

    /// How long to sleep before it is looked again whether it is `at`.
    pub(crate) fn sleep_until(&self, at: u64) -> Duration {
        let left = Duration::from_millis(at.saturating_sub(self.now()));
        left.min(if self.0.by_hand { LOOK_AT_HAND } else { LOOK_EVERY })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_goes_back() {
        let clock = Clock::system();
        let before = clock.now();
        assert!(before > 1_500_000_000_000, "it is later than 2017");
        clock.set(before + 1_000_000);
        assert!(clock.now() >= before + 1_000_000, "the system's clock is far behind now");
        clock.set(1);
        assert!(clock.now() >= before + 1_000_000);
        let by_hand = Clock::by_hand(5);
        by_hand.clone().set(7);
        by_hand.set(6);
        assert_eq!(by_hand.now(), 7);
        assert_eq!(by_hand.sleep_until(3), Duration::ZERO);
    }
}
