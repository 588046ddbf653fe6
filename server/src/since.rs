//! What INFO counts from: what CONFIG RESETSTAT has it forget. The figures themselves only grow, for those who watch them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use boltkv_protocol::{ErrorCode, Op};

use crate::counters::Command;
use crate::shared::Shared;

/// The shortest time that is told as what it makes in a second.
const LEAST: Duration = Duration::from_secs(1);

/// Figures as they were.
#[derive(Debug)]
pub(crate) struct Since(Mutex<Looks>);

#[derive(Debug)]
struct Looks {
    /// From where it is counted.
    begin: Figures,
    /// As they were when somebody looked, and at a look before that: at the least [`LEAST`] lies between them.
    last: (Instant, Figures),
    before: (Instant, Figures),
}

/// Figures that grow.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    /// Connections that were accepted and that were refused.
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
    /// Requests that were answered.
    pub(crate) requests: u64,
    /// Bytes that came and that went.
    pub(crate) received: u64,
    pub(crate) sent: u64,
    /// GETs, of whatever dialect, that found something and that did not.
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

/// What came in a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ASecond {
    pub(crate) requests: f64,
    pub(crate) received: f64,
    pub(crate) sent: f64,
}

impl Since {
    /// From the server's start.
    pub(crate) fn new() -> Self {
        let start = (Instant::now(), Figures::default());
        Self(Mutex::new(Looks { begin: Figures::default(), last: start, before: start }))
    }

    /// From now on.
    pub(crate) fn reset(&self, server: &Shared) {
        self.lock().begin = Figures::now(server);
    }

    /// What came since.
    pub(crate) fn figures(&self, server: &Shared) -> Figures {
        Figures::now(server).without(self.lock().begin)
    }

    /// What came in a second, in the mean since somebody looked here, or since the server was started: nothing is counted by
    /// the clock.
    pub(crate) fn a_second(&self, server: &Shared) -> ASecond {
        self.lock().a_second((Instant::now(), Figures::now(server)))
    }

    fn lock(&self) -> MutexGuard<'_, Looks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Looks {
    fn a_second(&mut self, now: (Instant, Figures)) -> ASecond {
        if now.0.saturating_duration_since(self.last.0) >= LEAST {
            self.before = std::mem::replace(&mut self.last, now);
        }
        let (since, before) = self.before;
        let (time, come) = (now.0.saturating_duration_since(since).max(LEAST), now.1.without(before));
        #[expect(clippy::cast_precision_loss, reason = "above 2^53 the last digits do not matter")]
        let a_second = |figure: u64| figure as f64 / time.as_secs_f64();
        ASecond { requests: a_second(come.requests), received: a_second(come.received), sent: a_second(come.sent) }
    }
}

impl Figures {
    fn now(server: &Shared) -> Self {
        let Shared { stats, counters, .. } = server;
        let [_, accepted, refused] = stats.connections();
        let gets = |result| counters.requests(const { Command::of_op(Op::Get) }, result);
        Self {
            accepted,
            refused,
            requests: counters.answered(),
            received: counters.received(),
            sent: counters.sent(),
            hits: gets(None),
            misses: gets(Some(ErrorCode::KeyNotFound)) + gets(Some(ErrorCode::BucketNotFound)),
        }
    }

    const fn without(self, before: Self) -> Self {
        Self {
            accepted: self.accepted.saturating_sub(before.accepted),
            refused: self.refused.saturating_sub(before.refused),
            requests: self.requests.saturating_sub(before.requests),
            received: self.received.saturating_sub(before.received),
            sent: self.sent.saturating_sub(before.sent),
            hits: self.hits.saturating_sub(before.hits),
            misses: self.misses.saturating_sub(before.misses),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_in_a_second_is_the_mean_since_a_look_that_is_no_shorter_ago() {
        let since = Since::new();
        let mut looks = since.lock();
        let start = looks.last.0;
        let mut look = |seconds: f64, requests| {
            let now = Figures { requests, received: 1_000 * requests, ..Figures::default() };
            let told = looks.a_second((start + Duration::from_secs_f64(seconds), now));
            assert_eq!((told.received, told.sent), (1_000.0 * told.requests, 0.0));
            told.requests
        };
        // (when, how many there were by then, a second)
        let told = [(0.25, 10, 10.0), (4.0, 40, 10.0), (4.5, 90, 20.0), (9.0, 540, 100.0), (9.5, 540, 90.9)];
        for (seconds, requests, expected) in told {
            let a_second = look(seconds, requests);
            assert!((a_second - expected).abs() < 0.1, "{a_second} at {seconds}");
        }
    }
}
