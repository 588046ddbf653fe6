//! Numbers with a fraction, as Redis adds them: in the 80 bits of a `long double` on x86-64, 64 of them digits.
//!
//! The same sum as Redis', to the last digit, needs the same rounding in the same places: when a number is read, when two are
//! added, and when the sum is written with 17 digits behind the point. No type of Rust's has this width, so it is done here
//! with whole numbers.
//!
//! - `parse`: what C's `strtold` takes for a number; `print`: what `%.17Lf` makes of one; `big`: whole numbers of any length

mod big;
mod parse;
mod print;

/// The lowest bit that a number can have is worth 2 to this.
const LOWEST: i32 = -16_445;
/// The lowest bit of the largest numbers is worth 2 to this.
const HIGHEST: i32 = 16_383 - 63;

/// A number, or what is larger than all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LongDouble {
    Finite(Finite),
    Infinite { is_negative: bool },
}

/// `digits` · 2^`exponent`. The highest bit of the digits is set, but for 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Finite {
    is_negative: bool,
    digits: u64,
    exponent: i32,
}

/// A whole number times 2^`exponent`, and whether what is meant is a little more.
#[derive(Debug, Clone, Copy)]
struct Unrounded {
    bits: u128,
    exponent: i32,
    has_more: bool,
}

impl LongDouble {
    /// The number that a word is.
    pub(super) fn parse(word: &[u8]) -> Option<Self> {
        parse::parse(word)
    }

    pub(super) const fn is_infinite(self) -> bool {
        matches!(self, Self::Infinite { .. })
    }

    /// The sum, where it is a number and not too large for one.
    pub(super) fn add(self, other: Self) -> Option<Finite> {
        match (self, other) {
            (Self::Finite(one), Self::Finite(other)) => one.add(other),
            _ => None,
        }
    }
}

impl Finite {
    const fn zero(is_negative: bool) -> Self {
        Self { is_negative, digits: 0, exponent: 0 }
    }

    fn add(self, other: Self) -> Option<Self> {
        // So many bits of the smaller one are added below the digits of the larger one; what lies below these, too, only
        // tells which way to round.
        const BELOW: u8 = 62;
        if self.digits == 0 || other.digits == 0 {
            let both_negative = self.is_negative && other.is_negative;
            return Some(match (self.digits, other.digits) {
                (0, 0) => Self::zero(both_negative),
                (0, _) => other,
                _ => self,
            });
        }
        let is_larger = (self.exponent, self.digits) >= (other.exponent, other.digits);
        let (large, small) = if is_larger { (self, other) } else { (other, self) };
        let apart = large.exponent.abs_diff(small.exponent);
        let whole = u128::from(small.digits) << BELOW;
        let lower = whole.checked_shr(apart).unwrap_or(0);
        let has_more = lower.checked_shl(apart).unwrap_or(0) != whole;
        let upper = u128::from(large.digits) << BELOW;
        let bits = if large.is_negative == small.is_negative {
            upper + lower
        } else {
            // A little more is taken away than `lower`: what is left is a little more than one less.
            upper - lower - u128::from(has_more)
        };
        if bits == 0 && !has_more {
            return Some(Self::zero(false));
        }
        let sum = Unrounded { bits, exponent: large.exponent - i32::from(BELOW), has_more };
        sum.round(large.is_negative)
    }
}

impl Unrounded {
    /// The nearest number, the even one of two; `None` where it is too large.
    fn round(self, is_negative: bool) -> Option<Finite> {
        let Self { bits, exponent, has_more } = self;
        let len = i32::try_from(128 - bits.leading_zeros()).unwrap_or(128);
        // What the lowest digit is worth.
        let lowest = (exponent + len - 64).max(LOWEST);
        let (digits, lowest) = match u32::try_from(lowest - exponent) {
            Ok(dropped) => {
                let kept = bits.checked_shr(dropped).unwrap_or(0);
                let rest = bits ^ kept.checked_shl(dropped).unwrap_or(0);
                let half = if dropped == 0 { 0 } else { 1_u128.checked_shl(dropped - 1).unwrap_or(0) };
                let is_half = half != 0 && rest & half != 0;
                let is_above = has_more || (half != 0 && rest & (half - 1) != 0);
                (kept + u128::from(is_half && (is_above || kept & 1 == 1)), lowest)
            }
            // Fewer digits than there is room for.
            Err(_) => (bits, exponent),
        };
        if digits == 0 {
            return Some(Finite::zero(is_negative));
        }
        let shift = i32::try_from(digits.leading_zeros()).unwrap_or(0) - 64;
        let exponent = lowest - shift;
        // A digit too many is a 0: it comes of rounding up.
        let digits = if shift < 0 { digits >> 1 } else { digits << shift };
        let digits = u64::try_from(digits).ok()?;
        (exponent <= HIGHEST).then_some(Finite { is_negative, digits, exponent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(one: &str, other: &str) -> Option<String> {
        let (one, other) = (LongDouble::parse(one.as_bytes())?, LongDouble::parse(other.as_bytes())?);
        Some(one.add(other)?.to_string())
    }

    #[test]
    fn sums_are_those_of_eighty_bits() {
        for (one, other, expected) in [
            ("0", "0", "0"),
            ("-0", "-0", "0"),
            ("3", "1.1", "4.1"),
            ("1", "-1.1", "-0.1"),
            ("0.1", "0.2", "0.3"),
            ("1e-17", "0", "0.00000000000000001"),
            ("4e-18", "-0", "0"),
            ("-4e-18", "0", "0"),
            ("5.0e3", "2.0e2", "5200"),
            ("1000000", "0.1", "1000000.10000000000002274"),
            ("17179869184", "1.5", "17179869185.5"),
            ("1e20", "1", "100000000000000000000"),
            ("18446744073709551616", "1", "18446744073709551616"),
            ("18446744073709551618", "1", "18446744073709551620"),
            ("0x1p4", "-0X.8", "15.5"),
        ] {
            assert_eq!(sum(one, other).as_deref(), Some(expected), "{one} + {other}");
        }
    }

    #[test]
    fn what_is_no_number_or_beyond_all_has_no_sum() {
        for word in ["", ".", "1e", "0x", "0x1p", " 1", "1 ", "nan", "1..2", "1e4933", "1e-5000", "-inf", "Infinity"] {
            assert_eq!(sum(word, "1"), None, "{word}");
        }
        assert_eq!(sum("1.1e4932", "1.1e4932"), None);
        assert_eq!(sum("0e99999999999", "1.1e4932").map(|digits| digits.len()), Some(4_933));
    }
}
