//! When the next request is due in an open loop: at even intervals from the start, whatever happens meanwhile.

/// The times at which one thread's requests are due, in nanoseconds since the start. With several threads their times
/// interleave.
#[derive(Debug)]
pub(crate) struct Pace {
    rate: u64,
    thread: u64,
    threads: u64,
    /// How many were taken.
    taken: u64,
}

const SECOND: u128 = 1_000_000_000;

impl Pace {
    /// For one of the threads that together send `rate` requests a second, at least 1.
    pub(crate) const fn new(rate: u64, thread: u64, threads: u64) -> Self {
        Self { rate, thread, threads, taken: 0 }
    }

    /// When the next one is due.
    pub(crate) fn due(&self) -> u64 {
        let number = u128::from(self.taken) * u128::from(self.threads) + u128::from(self.thread);
        u64::try_from(number * SECOND / u128::from(self.rate)).unwrap_or(u64::MAX)
    }

    /// Takes the next one, if it is due by now, and says when it was.
    pub(crate) fn take(&mut self, now: u64) -> Option<u64> {
        let due = self.due();
        if due > now {
            return None;
        }
        self.taken += 1;
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_missed_keeps_the_time_at_which_it_was_due() {
        let mut pace = Pace::new(1000, 0, 1);
        assert_eq!(pace.take(0), Some(0));
        assert_eq!(pace.take(999_999), None);
        let late: Vec<_> = std::iter::from_fn(|| pace.take(3_500_000)).collect();
        assert_eq!(late, [1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn threads_take_turns_and_intervals_do_not_add_up_to_a_drift() {
        let mut paces = [Pace::new(3, 0, 2), Pace::new(3, 1, 2)];
        let due: Vec<_> = (0..6).map(|turn| paces[turn % 2].take(u64::MAX).unwrap()).collect();
        assert_eq!(due, [0, 333_333_333, 666_666_666, 1_000_000_000, 1_333_333_333, 1_666_666_666]);
    }
}
