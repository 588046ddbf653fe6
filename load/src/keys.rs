//! Which keys are asked for, and what they look like: `key:000000000042`.

use std::ops::Range;

use rand::RngExt as _;
use rand::rngs::SmallRng;
use rand_distr::{Distribution as _, Zipf};

/// In which order keys come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Each as likely as any other.
    Uniform,
    /// A few much oftener than the rest: the one of rank *r* in proportion to 1/*r*^0.99, as YCSB has it. Ranks are
    /// spread over the keys, so that those in demand do not lie side by side.
    Zipfian,
    /// Ascending, and again from the first one. Each thread goes through its own part.
    Sequential,
    /// Each once before any comes again, in an order that looks random.
    Shuffled,
}

/// What a zipfian order is skewed by: YCSB's constant.
const SKEW: f64 = 0.99;
/// What keys begin with, where there is room.
const PREFIX: &[u8] = b"key:";
/// The largest prime below 2^64: it divides no number of keys but itself, so that its multiples go through all of them.
const STRIDE: u128 = 18_446_744_073_709_551_557;

/// Draws the numbers of keys, for one thread.
#[derive(Debug)]
pub(crate) struct Picker {
    order: Order,
    keys: u64,
    /// This thread's part, for orders that go through keys.
    part: Range<u64>,
    next: u64,
    zipf: Option<Zipf<f64>>,
}

impl Picker {
    /// For thread `thread` of `threads`, over `keys` keys, at least 1.
    #[expect(clippy::cast_precision_loss, reason = "which of 2^53 keys is the last one does not show")]
    pub(crate) fn new(order: Order, keys: u64, thread: u64, threads: u64) -> Self {
        let part = share(keys, thread, threads);
        let zipf = if order == Order::Zipfian { Zipf::new(keys as f64, SKEW).ok() } else { None };
        Self { order, keys, next: part.start, part, zipf }
    }

    /// The next key's number, below the number of keys.
    pub(crate) fn next(&mut self, random: &mut SmallRng) -> u64 {
        match (self.order, &self.zipf) {
            (Order::Sequential, _) => self.step(),
            (Order::Shuffled, _) => {
                let step = self.step();
                self.spread(step)
            }
            (Order::Zipfian, Some(zipf)) => {
                let rank = zipf.sample(random);
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number from 1 on")]
                let rank = rank as u64;
                self.spread(rank.saturating_sub(1))
            }
            (Order::Uniform | Order::Zipfian, _) => random.random_range(0..self.keys),
        }
    }

    /// The next one of this thread's part; more threads than keys make empty parts, which ask for the first key.
    fn step(&mut self) -> u64 {
        if self.next >= self.part.end {
            self.next = self.part.start;
        }
        let step = self.next.min(self.keys - 1);
        self.next += 1;
        step
    }

    /// Another number for each number, all over the keys.
    fn spread(&self, number: u64) -> u64 {
        let spread = u128::from(number) * STRIDE % u128::from(self.keys);
        u64::try_from(spread).unwrap_or(0)
    }
}

/// One of `parts` parts of so many, all together, and none larger by more than one.
pub(crate) fn share(total: u64, part: u64, parts: u64) -> Range<u64> {
    let at = |part: u64| {
        let at = u128::from(total) * u128::from(part) / u128::from(parts.max(1));
        u64::try_from(at).unwrap_or(total)
    };
    at(part)..at(part + 1)
}

/// The fewest bytes that tell so many keys apart.
pub(crate) fn least_key_size(keys: u64) -> usize {
    keys.saturating_sub(1).checked_ilog10().map_or(1, |digits| digits as usize + 1)
}

/// Writes a key: its number in decimal, zeros before it, and `key:` at the start if that leaves room for the number.
pub(crate) fn write_key(mut number: u64, prefixed: bool, key: &mut [u8]) {
    let digits = if prefixed { PREFIX.len() } else { 0 };
    for byte in key.iter_mut().skip(digits).rev() {
        *byte = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
    key.iter_mut().zip(PREFIX).take(digits).for_each(|(byte, letter)| *byte = *letter);
}

/// Whether keys of this size have room for the prefix.
pub(crate) fn is_prefixed(keys: u64, key_size: usize) -> bool {
    key_size >= least_key_size(keys) + PREFIX.len()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::SeedableRng as _;

    use super::*;

    fn key(number: u64, keys: u64, size: usize) -> String {
        let mut key = vec![0; size];
        write_key(number, is_prefixed(keys, size), &mut key);
        String::from_utf8(key).unwrap()
    }

    #[test]
    fn a_key_has_its_size_and_its_number() {
        assert_eq!(key(42, 1_000_000, 16), "key:000000000042");
        assert_eq!(key(42, 1_000_000, 10), "key:000042");
        assert_eq!(key(42, 1_000_000, 9), "000000042");
        assert_eq!(key(999_999, 1_000_000, 6), "999999");
        assert_eq!([1, 2, 10, 11, 1_000_000, 1_000_001].map(least_key_size), [1, 1, 1, 2, 6, 7]);
        assert_eq!(key(u64::MAX - 1, u64::MAX, least_key_size(u64::MAX)), (u64::MAX - 1).to_string());
    }

    #[test]
    fn a_shuffled_order_has_each_key_once_over_all_threads() {
        for (keys, threads) in [(1, 1), (10, 3), (1000, 4), (4096, 1), (65_521, 2)] {
            let mut seen = vec![0; usize::try_from(keys).unwrap()];
            let mut random = SmallRng::seed_from_u64(1);
            for thread in 0..threads {
                let mut picker = Picker::new(Order::Shuffled, keys, thread, threads);
                let part = share(keys, thread, threads);
                part.for_each(|_| seen[usize::try_from(picker.next(&mut random)).unwrap()] += 1);
            }
            assert!(seen.iter().all(|times| *times == 1), "{keys} keys");
        }
    }

    #[test]
    fn a_sequential_order_ascends_and_begins_again() {
        let mut random = SmallRng::seed_from_u64(1);
        let mut picker = Picker::new(Order::Sequential, 10, 1, 3);
        let drawn: Vec<_> = (0..8).map(|_| picker.next(&mut random)).collect();
        assert_eq!(drawn, [3, 4, 5, 3, 4, 5, 3, 4]);
        let mut idle = Picker::new(Order::Sequential, 1, 0, 3);
        assert_eq!([idle.next(&mut random), idle.next(&mut random)], [0, 0]);
    }

    /// Rank by rank what the formula says: the first of a million keys in 1 of about 15.4 requests.
    #[test]
    fn a_zipfian_order_draws_each_rank_as_often_as_it_should_and_spreads_the_ranks() {
        const KEYS: u64 = 1_000_000;
        const DRAWN: u32 = 400_000;
        let (mut random, mut picker) = (SmallRng::seed_from_u64(5), Picker::new(Order::Zipfian, KEYS, 0, 1));
        let mut seen = BTreeMap::<u64, u32>::new();
        (0..DRAWN).for_each(|_| *seen.entry(picker.next(&mut random)).or_default() += 1);
        let zeta: f64 = (1..=1_000_000).map(|rank| f64::from(rank).powf(-SKEW)).sum();
        for rank in [1_u32, 2, 3, 10, 100] {
            let expected = f64::from(DRAWN) * f64::from(rank).powf(-SKEW) / zeta;
            let key = picker.spread(u64::from(rank) - 1);
            let drawn = f64::from(*seen.get(&key).unwrap_or(&0));
            // Five standard deviations.
            assert!((drawn - expected).abs() < 5.0 * expected.sqrt(), "rank {rank}: {drawn} instead of {expected}");
        }
        assert!(picker.spread(0).abs_diff(picker.spread(1)) > KEYS / 100, "neighbours in rank are no neighbours");
    }

    #[test]
    fn a_uniform_order_draws_all_keys_alike() {
        let (mut random, mut picker) = (SmallRng::seed_from_u64(5), Picker::new(Order::Uniform, 10, 0, 1));
        let mut seen = [0_u32; 10];
        (0..10_000).for_each(|_| seen[usize::try_from(picker.next(&mut random)).unwrap()] += 1);
        assert!(seen.iter().all(|times| (850..1150).contains(times)), "{seen:?}");
    }
}
