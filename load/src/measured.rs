//! What a run took.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::{Error, Op, Series};

/// A latency of more than an hour counts as one of an hour. With bounds a histogram never grows.
const LONGEST: u64 = 3_600_000_000_000;
/// Latencies keep so many digits.
const DIGITS: u8 = 3;
/// So many kinds of errors are told apart; what comes after goes under [`OTHER_ERRORS`].
const MOST_KINDS: usize = 16;
/// An error's message is cut after so many characters.
const MOST_MESSAGE: usize = 200;
const OTHER_ERRORS: &str = "other errors";

/// What a run took.
#[derive(Debug, Clone)]
pub struct Measured {
    /// From the start to the last answer, or to the end of the time.
    pub elapsed: Duration,
    /// How many requests were answered within it, and not by an error. A request of a GET that found nothing is one.
    pub requests: u64,
    /// The same kind by kind, with latencies.
    pub of: BTreeMap<Op, OfOp>,
    /// Errors by what was said, and how often.
    pub errors: BTreeMap<String, u64>,
    /// How many connections were lost on the way; none is made anew.
    pub lost: usize,
    /// How many requests were due, in an open loop, and could not be sent: every connection had as many in flight as it
    /// may. They are in the latencies with the time for which they had waited when the run ended, which is the least that
    /// they would have taken.
    pub unsent: u64,
    /// The run in slices.
    pub series: Series,
    /// Processor time of the generator itself. One that is near [`elapsed`](Self::elapsed) times the threads measures the
    /// generator, not the server.
    pub cpu: Duration,
    /// Of the time of all processors of this machine, the share that it was ready to use and that its host kept from it
    /// ("steal"), from 0 to 1. Nobody was served meanwhile, so the latencies have it. `None`: the system does not say.
    pub stolen: Option<f64>,
    /// Whether it was ended before its time.
    pub interrupted: bool,
}

/// What requests of one kind took.
#[derive(Debug, Clone)]
pub struct OfOp {
    /// Latencies in nanoseconds, from when a request was put on its way, or was due, to its answer. It has those that were
    /// answered after the end of the time, too.
    pub latencies: Histogram<u64>,
    /// GETs and DELETEs of keys that are not there.
    pub missing: u64,
    /// Entries that SCANs brought.
    pub entries: u64,
}

impl Measured {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            elapsed: Duration::ZERO,
            requests: 0,
            of: BTreeMap::new(),
            errors: BTreeMap::new(),
            lost: 0,
            unsent: 0,
            series: Series::default(),
            cpu: Duration::ZERO,
            stolen: None,
            interrupted: false,
        }
    }

    /// Requests a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        per_second(self.requests, self.elapsed)
    }

    /// Entries that SCANs brought, a second.
    #[must_use]
    pub fn entries_rate(&self) -> f64 {
        per_second(self.of.values().map(|of| of.entries).sum(), self.elapsed)
    }

    /// How many errors there were, of all kinds.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// The latencies of all kinds together.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn latencies(&self) -> Result<Histogram<u64>, Error> {
        let mut all = OfOp::new()?.latencies;
        for of in self.of.values() {
            all.add(&of.latencies).map_err(|error| Error::Impossible(error.to_string()))?;
        }
        Ok(all)
    }

    /// Notes what was said instead of an answer, `times` times.
    pub(crate) fn fail(&mut self, what: &str, times: u64) {
        let what: String = what.chars().take(MOST_MESSAGE).collect();
        let known = self.errors.contains_key(&what) || self.errors.len() < MOST_KINDS;
        let what = if known { what } else { OTHER_ERRORS.to_owned() };
        *self.errors.entry(what).or_default() += times;
    }

    /// Takes over what another thread of the same run has measured.
    pub(crate) fn add(&mut self, other: Self) -> Result<(), Error> {
        self.elapsed = self.elapsed.max(other.elapsed);
        self.requests += other.requests;
        for (op, of) in other.of {
            match self.of.get_mut(&op) {
                Some(own) => own.add(&of)?,
                None => drop(self.of.insert(op, of)),
            }
        }
        other.errors.iter().for_each(|(what, times)| self.fail(what, *times));
        self.lost += other.lost;
        self.unsent += other.unsent;
        self.series.add(other.series);
        self.cpu += other.cpu;
        self.interrupted |= other.interrupted;
        Ok(())
    }
}

impl OfOp {
    pub(crate) fn new() -> Result<Self, Error> {
        let latencies =
            Histogram::new_with_max(LONGEST, DIGITS).map_err(|error| Error::Impossible(error.to_string()))?;
        Ok(Self { latencies, missing: 0, entries: 0 })
    }

    fn add(&mut self, other: &Self) -> Result<(), Error> {
        self.missing += other.missing;
        self.entries += other.entries;
        self.latencies.add(&other.latencies).map_err(|error| Error::Impossible(error.to_string()))
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn per_second(count: u64, elapsed: Duration) -> f64 {
    if elapsed.is_zero() { 0.0 } else { count as f64 / elapsed.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_says_something_new_each_time_fills_no_memory() {
        let mut measured = Measured::new();
        (0..1000).for_each(|number| measured.fail(&format!("{number}{}", "x".repeat(1000)), 1));
        measured.fail("0", 2);
        assert_eq!((measured.errors.len(), measured.failed()), (MOST_KINDS + 1, 1002));
        assert!(measured.errors.keys().all(|what| what.len() <= MOST_MESSAGE));
        assert_eq!(measured.errors[OTHER_ERRORS], 1000 - MOST_KINDS as u64 + 2);
    }
}
