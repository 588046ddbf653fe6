//! What happened when: a run in slices of equal length. However long it goes on, there are no more than so many.

use std::time::Duration;

/// At most so many slices are kept; then each two become one.
const MOST_SLICES: usize = 1024;
/// The length of a slice at first, in nanoseconds.
const FIRST_WIDTH: u64 = 100_000_000;

/// A run over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// In nanoseconds.
    width: u64,
    slices: Vec<Slice>,
}

/// What happened within one slice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slice {
    /// How many requests were answered.
    pub answered: u64,
    /// The longest latency of these, in nanoseconds.
    pub longest: u64,
}

impl Default for Series {
    fn default() -> Self {
        Self { width: FIRST_WIDTH, slices: Vec::new() }
    }
}

impl Series {
    /// The length of each slice: 100 ms, doubled as often as a long run needs.
    #[must_use]
    pub const fn width(&self) -> Duration {
        Duration::from_nanos(self.width)
    }

    /// The slices, from the start of the run on. The last one may not be over.
    #[must_use]
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// Notes an answer at this time since the start, both in nanoseconds.
    pub(crate) fn note(&mut self, at: u64, latency: u64) {
        let slice = self.slice(at);
        slice.answered += 1;
        slice.longest = slice.longest.max(latency);
    }

    fn slice(&mut self, at: u64) -> &mut Slice {
        while at / self.width >= MOST_SLICES as u64 {
            self.halve();
        }
        // Below `MOST_SLICES`, as the loop has seen to.
        let index = usize::try_from(at / self.width).unwrap_or(0);
        if index >= self.slices.len() {
            self.slices.resize(index + 1, Slice::default());
        }
        &mut self.slices[index]
    }

    fn halve(&mut self) {
        self.width *= 2;
        let join = |pair: &[Slice]| Slice {
            answered: pair.iter().map(|slice| slice.answered).sum(),
            longest: pair.iter().map(|slice| slice.longest).max().unwrap_or(0),
        };
        self.slices = self.slices.chunks(2).map(join).collect();
    }

    /// Takes over what happened in another thread of the same run.
    pub(crate) fn add(&mut self, mut other: Self) {
        while other.width < self.width {
            other.halve();
        }
        while self.width < other.width {
            self.halve();
        }
        let len = self.slices.len().max(other.slices.len());
        self.slices.resize(len, Slice::default());
        for (own, other) in self.slices.iter_mut().zip(other.slices) {
            own.answered += other.answered;
            own.longest = own.longest.max(other.longest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_has_longer_slices_and_loses_nothing() {
        let mut series = Series::default();
        // A day, an answer every ten seconds.
        (0..8640_u64).for_each(|number| series.note(number * 10_000_000_000, number));
        assert!(series.slices().len() <= MOST_SLICES);
        assert_eq!(series.slices().iter().map(|slice| slice.answered).sum::<u64>(), 8640);
        assert_eq!(series.slices().last().map(|slice| slice.longest), Some(8639));
        series.note(u64::MAX, 1);
        assert_eq!(series.slices().iter().map(|slice| slice.answered).sum::<u64>(), 8641);
    }

    #[test]
    fn threads_whose_slices_differ_in_length_add_up() {
        let (mut short, mut long) = (Series::default(), Series::default());
        short.note(0, 5);
        short.note(150_000_000, 7);
        long.note(0, 9);
        long.note(150_000_000_000, 1);
        short.add(long.clone());
        assert_eq!(short.width(), Duration::from_millis(200));
        assert_eq!(short.slices()[0], Slice { answered: 3, longest: 9 });
        assert_eq!(short.slices().iter().map(|slice| slice.answered).sum::<u64>(), 4);
    }
}
