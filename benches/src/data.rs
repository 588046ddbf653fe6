//! The keys and values of every measurement, made as they are needed from their number alone. `go/data.go` makes the
//! same ones, byte for byte. Nothing here may depend on an engine, on time or on chance.

use serde::{Deserialize, Serialize};

/// The longest key that [`Keys`] makes, in bytes.
const LONGEST_KEY: usize = 16;

/// Entries of an owner in [`Keys::Clumped`].
const OWNED: u64 = 100;

/// Bytes that values are cut out of: more than a page holds, so that neighbours share nothing, and little enough to
/// stay in the processor's cache.
const POOL: usize = 1 << 16;

/// The next number of a splitmix64 sequence after the state `n`: a bijection, so different states give different
/// numbers.
#[must_use]
pub fn splitmix(n: u64) -> u64 {
    let mut x = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// How a number becomes a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keys {
    /// 8 bytes, ascending with the number.
    Sequential,
    /// 8 bytes, scattered over all of them.
    Random,
    /// 16 bytes, scattered.
    Random16,
    /// 16 bytes: an owner's, scattered, and the number. An owner's entries lie together, as those of real keys do.
    Clumped,
}

impl Keys {
    /// The key of entry number `n`.
    #[must_use]
    pub fn key(self, n: u64) -> Key {
        match self {
            Self::Sequential => Key::of(n, None),
            Self::Random => Key::of(splitmix(n), None),
            Self::Random16 => Key::of(splitmix(n), Some(splitmix(!n))),
            Self::Clumped => Key::of(splitmix(n / OWNED), Some(n)),
        }
    }

    /// Whether they are numbers of 8 bytes.
    #[must_use]
    pub fn are_numbers(self) -> bool {
        matches!(self, Self::Sequential | Self::Random)
    }
}

/// A key, kept without an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    bytes: [u8; LONGEST_KEY],
    len: usize,
}

impl Key {
    fn of(first: u64, second: Option<u64>) -> Self {
        let mut bytes = [0; LONGEST_KEY];
        let (head, tail) = bytes.split_at_mut(8);
        head.copy_from_slice(&first.to_be_bytes());
        tail.copy_from_slice(&second.unwrap_or_default().to_be_bytes());
        Self { bytes, len: if second.is_some() { 16 } else { 8 } }
    }

    /// The first 8 bytes as the number that they are: for engines that keep integers as such.
    #[must_use]
    pub fn number(&self) -> u64 {
        u64::from_be_bytes(std::array::from_fn(|at| self.bytes[at]))
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Makes values: windows into one pool of random bytes, so that making one costs nothing beside storing it.
#[derive(Debug)]
pub struct Values {
    pool: Vec<u8>,
    len: usize,
}

impl Values {
    /// Values of `len` bytes.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let words = (POOL + len).div_ceil(8) as u64;
        Self { pool: (0..words).flat_map(|n| splitmix(!n).to_le_bytes()).collect(), len }
    }

    /// The value of entry number `n`.
    #[must_use]
    pub fn value(&self, n: u64) -> &[u8] {
        // Masked to the pool, so it fits in any `usize`.
        #[expect(clippy::cast_possible_truncation)]
        let start = (splitmix(n) & (POOL as u64 - 1)) as usize;
        &self.pool[start..start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequential_keys_ascend_and_random_ones_do_not() {
        let ordered = |keys: Keys| (0..1000).map(|n| keys.key(n)).is_sorted_by(|a, b| a.as_ref() < b.as_ref());
        assert!(ordered(Keys::Sequential));
        assert!(!ordered(Keys::Random) && !ordered(Keys::Random16));
    }

    #[test]
    fn keys_have_the_length_that_their_kind_says() {
        for keys in [Keys::Sequential, Keys::Random, Keys::Random16, Keys::Clumped] {
            assert_eq!(keys.key(7).as_ref().len(), if keys.are_numbers() { 8 } else { 16 });
        }
        assert_eq!(Keys::Sequential.key(7).number(), 7);
    }

    #[test]
    fn clumped_keys_ascend_within_an_owner_and_owners_are_scattered() {
        let keys = |numbers: std::ops::Range<u64>| numbers.map(|n| Keys::Clumped.key(n)).collect::<Vec<_>>();
        assert!(keys(0..OWNED).is_sorted_by(|a, b| a.number() == b.number() && a.as_ref() < b.as_ref()));
        assert!(!keys(0..10 * OWNED).is_sorted_by(|a, b| a.as_ref() < b.as_ref()));
    }

    #[test]
    fn a_value_depends_on_its_number_alone() {
        let values = Values::new(100_000);
        assert_eq!(values.value(3).len(), 100_000);
        assert_eq!(values.value(3), Values::new(100_000).value(3));
        assert_ne!(values.value(3), values.value(4));
    }
}
