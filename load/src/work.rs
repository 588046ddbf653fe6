//! What is to be done in one run.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::keys::least_key_size;
use crate::{Error, Mix, Op, Order};

/// When a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// After so many requests.
    Requests(u64),
    /// After so long. What is in flight then is still waited for.
    Time(Duration),
}

/// The most that requests in flight may take in the generator's memory, in bytes.
pub const MOST_MEMORY: u64 = 1 << 30;

/// One run: what is asked, of which keys, by how many, how fast and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// Which requests.
    pub mix: Mix,
    /// In which order keys come.
    pub order: Order,
    /// How many keys there are, at least 1.
    pub keys: u64,
    /// Bytes of a key: enough for the number of keys in decimal, at most 250, which is memcached's limit.
    pub key_size: usize,
    /// Bytes of a value: of each as many as any other within this range.
    pub value_size: RangeInclusive<usize>,
    /// How many entries a SCAN asks for; 0: all.
    pub scan_length: u64,
    /// How many connections, at least 1.
    pub connections: usize,
    /// How many requests each has in flight at once, at least 1.
    pub pipeline: usize,
    /// How many threads drive them, at least 1; never more than connections.
    pub threads: usize,
    /// Requests a second, of all connections together, whatever the answers take; `None`: the next one is sent when one
    /// was answered.
    pub rate: Option<u64>,
    /// When it is over.
    pub limit: Limit,
    /// A connection that owes answers and says nothing for so long is given up.
    pub timeout: Duration,
    /// What is drawn at random is drawn from here: the same seed, the same requests.
    pub seed: u64,
}

impl Default for Work {
    /// GETs of keys of 16 bytes out of 100,000, values of 100 bytes, 50 connections with one request in flight each, for
    /// 5 s.
    fn default() -> Self {
        Self {
            mix: Mix::only(Op::Get),
            order: Order::Uniform,
            keys: 100_000,
            key_size: 16,
            value_size: 100..=100,
            scan_length: 100,
            connections: 50,
            pipeline: 1,
            threads: 1,
            rate: None,
            limit: Limit::Time(Duration::from_secs(5)),
            timeout: Duration::from_secs(30),
            seed: 1,
        }
    }
}

/// So many keys tell whether there are any.
const LOOKED_FOR: u64 = 100;

/// memcached's limit; Redis and boltkv take longer ones.
const MOST_KEY: usize = 250;
/// More a second than any generator can send: an interval has to be a whole number of nanoseconds and more.
const MOST_RATE: u64 = 100_000_000;

impl Work {
    /// Puts every key once, in this order, with many in flight: what there has to be before anything is read.
    #[must_use]
    pub fn loading(&self, order: Order) -> Self {
        let room = usize::try_from(MOST_MEMORY).unwrap_or(usize::MAX) / self.connections.max(1) / self.request_size();
        Self {
            mix: Mix::only(Op::Set),
            order,
            rate: None,
            limit: Limit::Requests(self.keys),
            pipeline: 16.max(self.pipeline).min(room.max(1)),
            ..self.clone()
        }
    }

    /// Looks for a hundred of the keys, drawn at random: whether an earlier run has left them.
    #[must_use]
    pub fn looking(&self) -> Self {
        Self {
            mix: Mix::only(Op::Get),
            order: Order::Uniform,
            rate: None,
            limit: Limit::Requests(LOOKED_FOR),
            connections: 1,
            threads: 1,
            // Not those that a run has just drawn, which may have deleted them.
            seed: !self.seed,
            ..self.clone()
        }
    }

    /// What the largest request takes, in bytes, roughly.
    fn request_size(&self) -> usize {
        (*self.value_size.end()).saturating_add(self.key_size).saturating_add(64)
    }

    /// Says what of it cannot be done, before anything is.
    ///
    /// # Errors
    /// [`Error::Impossible`].
    pub fn check(&self) -> Result<(), Error> {
        let least = least_key_size(self.keys);
        let why = if self.keys == 0 || self.connections == 0 || self.pipeline == 0 || self.threads == 0 {
            "keys, connections, requests in flight and threads are at least 1 each".to_owned()
        } else if !(least..=MOST_KEY).contains(&self.key_size) {
            format!("{} keys need from {least} to {MOST_KEY} bytes each, not {}", self.keys, self.key_size)
        } else if self.value_size.is_empty() {
            "the smallest value is larger than the largest".to_owned()
        } else if !self.rate.is_none_or(|rate| (1..=MOST_RATE).contains(&rate)) {
            format!("a rate is from 1 to {MOST_RATE} requests a second")
        } else if u32::try_from(self.pipeline).is_err() || self.in_flight() > u128::from(MOST_MEMORY) {
            format!(
                "{} connections with {} requests of up to {} bytes in flight each take more than {MOST_MEMORY} bytes",
                self.connections,
                self.pipeline,
                self.request_size()
            )
        } else {
            return Ok(());
        };
        Err(Error::Impossible(why))
    }

    /// What all requests in flight take, in bytes.
    fn in_flight(&self) -> u128 {
        let writes = self.mix.has(Op::Set);
        let each = if writes { self.request_size() } else { self.key_size.saturating_add(64) };
        [self.connections, self.pipeline, each].into_iter().fold(1, |product, factor| {
            product * u128::try_from(factor).unwrap_or(u128::from(u64::MAX)).min(u128::from(u32::MAX))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_done_is_refused_before_anything_is() {
        assert!(Work::default().check().is_ok());
        let wrong = [
            Work { keys: 0, ..Work::default() },
            Work { connections: 0, ..Work::default() },
            Work { pipeline: 0, ..Work::default() },
            Work { threads: 0, ..Work::default() },
            Work { keys: 1_000_001, key_size: 6, ..Work::default() },
            Work { key_size: 251, ..Work::default() },
            #[expect(clippy::reversed_empty_ranges, reason = "that is what is wrong with it")]
            Work { value_size: 2..=1, ..Work::default() },
            Work { rate: Some(0), ..Work::default() },
            Work { rate: Some(u64::MAX), ..Work::default() },
            Work { mix: Mix::only(Op::Set), value_size: 0..=100 << 20, ..Work::default() },
            Work { mix: Mix::only(Op::Set), value_size: 0..=usize::MAX, ..Work::default() },
            Work { connections: usize::MAX, pipeline: usize::MAX, ..Work::default() },
        ];
        for work in wrong {
            assert!(matches!(work.check(), Err(Error::Impossible(_))), "{work:?}");
        }
    }

    #[test]
    fn loading_large_values_has_fewer_in_flight() {
        let work = Work { value_size: 0..=10 << 20, ..Work::default() };
        assert_eq!(work.loading(Order::Sequential).pipeline, 2);
        assert!(work.loading(Order::Sequential).check().is_ok());
        assert_eq!(Work::default().loading(Order::Sequential).pipeline, 16);
    }
}
