//! Reading: what C's `strtold` takes for a number, if all of a word is one.

use super::big::Big;
use super::{LongDouble, Unrounded};

/// No longer word is looked at.
const LONGEST: usize = 5 * 1_024 - 1;
/// Numbers are between 10 to the minus this and 10 to this, or they are none.
const MOST_DECIMAL: i64 = 4_970;
/// Exponents of 2 beyond this make no number.
const MOST_BINARY: i64 = 60_000;
/// A quotient of so many bits has more than the digits that are kept.
const QUOTIENT: usize = 100;

/// The digits of a number, in one base.
struct Digits {
    /// Those before the point and those behind it.
    digits: Vec<u32>,
    /// How many lie behind it.
    behind: i64,
    /// What is written behind the `e` or `p`.
    exponent: i64,
}

pub(super) fn parse(word: &[u8]) -> Option<LongDouble> {
    if word.is_empty() || word.len() > LONGEST {
        return None;
    }
    let (is_negative, rest) = match word {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if rest.eq_ignore_ascii_case(b"inf") || rest.eq_ignore_ascii_case(b"infinity") {
        return Some(LongDouble::Infinite { is_negative });
    }
    let unrounded = match rest {
        [b'0', b'x' | b'X', rest @ ..] => binary(&Digits::read(rest, 16, b'p')?)?,
        rest => decimal(&Digits::read(rest, 10, b'e')?)?,
    };
    let is_zero = unrounded.bits == 0 && !unrounded.has_more;
    let finite = unrounded.round(is_negative)?;
    // What is too small to be told from 0 is no number, and 0 is one.
    (finite.digits != 0 || is_zero).then_some(LongDouble::Finite(finite))
}

impl Digits {
    fn read(text: &[u8], base: u32, mark: u8) -> Option<Self> {
        let marked = text.iter().position(|byte| byte.eq_ignore_ascii_case(&mark));
        let (number, exponent) = match marked {
            Some(at) => (text.get(..at)?, read_exponent(text.get(at + 1..)?)?),
            None => (text, 0),
        };
        let point = number.iter().position(|byte| *byte == b'.');
        let digits = number.iter().enumerate().filter(|(at, _)| Some(*at) != point);
        let digits: Option<Vec<_>> = digits.map(|(_, byte)| char::from(*byte).to_digit(base)).collect();
        let digits = digits.filter(|digits| !digits.is_empty())?;
        let behind = point.map_or(0, |point| number.len() - point - 1);
        Some(Self { digits, behind: i64::try_from(behind).ok()?, exponent })
    }

    fn big(&self, base: u32) -> Big {
        let mut big = Big::default();
        for digit in &self.digits {
            big.multiply(base, *digit);
        }
        big
    }

    /// How many digits there are behind those that are 0.
    fn significant(&self) -> Option<i64> {
        let zeros = self.digits.iter().take_while(|digit| **digit == 0).count();
        i64::try_from(self.digits.len() - zeros).ok()
    }
}

/// A sign perhaps, and digits. What is beyond all numbers is only known to be so.
fn read_exponent(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0_i64, |number, digit| (10 * number + i64::from(digit - b'0')).min(1 << 32));
    Some(if is_negative { -number } else { number })
}

const ZERO: Unrounded = Unrounded { bits: 0, exponent: 0, has_more: false };

fn binary(digits: &Digits) -> Option<Unrounded> {
    let big = digits.big(16);
    if big.is_zero() {
        return Some(ZERO);
    }
    let exponent = digits.exponent - 4 * digits.behind;
    if exponent.abs() > MOST_BINARY {
        return None;
    }
    Some(highest(big, i32::try_from(exponent).ok()?))
}

fn decimal(digits: &Digits) -> Option<Unrounded> {
    let mut big = digits.big(10);
    if big.is_zero() {
        return Some(ZERO);
    }
    let power = digits.exponent - digits.behind;
    if (power + digits.significant()?).abs() > MOST_DECIMAL {
        return None;
    }
    let ten_to = usize::try_from(power.unsigned_abs()).ok()?;
    if power >= 0 {
        big.multiply_by_ten_to(ten_to);
        return Some(highest(big, 0));
    }
    let mut divisor = Big::one();
    divisor.multiply_by_ten_to(ten_to);
    // So that the quotient has enough bits, and not many more.
    let (bits, wanted) = (big.bits(), divisor.bits() + QUOTIENT);
    let mut dropped = false;
    if bits < wanted {
        big.shift_left(wanted - bits);
    } else {
        dropped = big.shift_right(bits - wanted);
    }
    let exponent = i32::try_from(bits).ok()? - i32::try_from(wanted).ok()?;
    let (quotient, has_rest) = big.divide(divisor);
    Some(Unrounded { bits: quotient, exponent, has_more: has_rest || dropped })
}

/// The highest bits of a number, and whether there are others.
fn highest(mut big: Big, exponent: i32) -> Unrounded {
    let below = big.bits().saturating_sub(128);
    let has_more = big.shift_right(below);
    // No word is long enough for this to be out of range.
    let below = i32::try_from(below).unwrap_or(i32::MAX / 2);
    Unrounded { bits: big.low(), exponent: exponent + below, has_more }
}
