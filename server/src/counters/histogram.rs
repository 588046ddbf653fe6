//! A histogram with fixed bounds: how many values were at most so large, and what they add up to.

use std::array;
use std::iter::Sum;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How many buckets a histogram of times has: one for each bound, and one for what took longer.
pub(crate) const TIMES: usize = TIME_BOUNDS.len() + 1;

/// From 10 µs to 10 s, in nanoseconds: what a read from memory takes, and what nobody waits for.
pub(crate) const TIME_BOUNDS: [u64; 19] = [
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// `N` buckets: one for each bound, and one for what is above all of them.
#[derive(Debug)]
pub(crate) struct Histogram<const N: usize> {
    bounds: &'static [u64],
    counts: [AtomicU64; N],
    sum: AtomicU64,
}

/// What a histogram holds at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Buckets<const N: usize> {
    /// How many values fell into each bucket, those below it not counted.
    pub(crate) counts: [u64; N],
    sum: u64,
}

impl<const N: usize> Histogram<N> {
    /// An empty one; of bounds there is one fewer than of buckets.
    pub(crate) const fn new(bounds: &'static [u64]) -> Self {
        Self { bounds, counts: [const { AtomicU64::new(0) }; N], sum: AtomicU64::new(0) }
    }

    /// A value that occurred so many times.
    pub(crate) fn record(&self, value: u64, times: u32) {
        let bucket = self.bounds.partition_point(|bound| *bound < value).min(N - 1);
        self.counts[bucket].fetch_add(times.into(), Relaxed);
        self.sum.fetch_add(value.wrapping_mul(times.into()), Relaxed);
    }

    /// As [`record`](Self::record), for a time in nanoseconds.
    pub(crate) fn record_time(&self, time: Duration, times: u32) {
        self.record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), times);
    }

    pub(crate) fn buckets(&self) -> Buckets<N> {
        Buckets { counts: array::from_fn(|index| self.counts[index].load(Relaxed)), sum: self.sum.load(Relaxed) }
    }
}

impl<const N: usize> Buckets<N> {
    /// How many values there were.
    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// What they add up to.
    pub(crate) const fn sum(&self) -> u64 {
        self.sum
    }
}

impl<const N: usize> Sum for Buckets<N> {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        let empty = Self { counts: [0; N], sum: 0 };
        all.fold(empty, |sum, more| Self {
            counts: array::from_fn(|index| sum.counts[index] + more.counts[index]),
            sum: sum.sum.wrapping_add(more.sum),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_falls_below_the_first_bound_that_it_does_not_exceed() {
        let histogram = Histogram::<3>::new(&[10, 20]);
        for value in [0, 10, 11, 20, 21, 1_000] {
            histogram.record(value, 1);
        }
        histogram.record(15, 4);
        let buckets = histogram.buckets();
        assert_eq!((buckets.counts, buckets.count(), buckets.sum()), ([2, 6, 2], 10, 1_062 + 60));
        let both: Buckets<3> = [buckets, buckets].into_iter().sum();
        assert_eq!((both.counts, both.sum()), ([4, 12, 4], 2 * (1_062 + 60)));
    }

    #[test]
    fn the_bounds_of_times_ascend() {
        assert!(TIME_BOUNDS.is_sorted() && TIMES == 20);
    }
}
