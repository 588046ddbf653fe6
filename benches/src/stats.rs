//! What a few measurements of one thing come to.

use serde::{Deserialize, Serialize};

/// The middle of some measurements, and how far they lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Summary {
    /// Sums up; `None` where there is nothing.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Self { median: f64::midpoint(low, high), min, max })
    }

    /// What one takes, of how many there are.
    #[must_use]
    pub fn inverse(self) -> Self {
        Self { median: 1.0 / self.median, min: 1.0 / self.max, max: 1.0 / self.min }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one_or_between_the_two_middle_ones() {
        assert_eq!(Summary::of([3.0, 1.0, 2.0]), Some(Summary { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Summary::of([4.0, 1.0, 2.0, 3.0]).map(|s| s.median), Some(2.5));
        assert_eq!(Summary::of([]), None);
    }

    #[test]
    fn the_fastest_takes_the_least() {
        let times = Summary { median: 2.0, min: 1.0, max: 4.0 }.inverse();
        assert_eq!(times, Summary { median: 0.5, min: 0.25, max: 1.0 });
    }
}
