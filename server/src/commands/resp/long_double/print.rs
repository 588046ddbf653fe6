//! Writing: what C's `%.17Lf` makes of a number, without zeros at the end, as Redis shows it.

use std::fmt;

use super::Finite;
use super::big::Big;

/// So many digits stand behind the point.
const BEHIND: usize = 17;
const TEN_TO_BEHIND: u128 = 100_000_000_000_000_000;

impl fmt::Display for Finite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = self.parts();
        let mut text = whole;
        if fraction != 0 {
            text.push_str(&format!(".{fraction:0BEHIND$}"));
            text.truncate(text.trim_end_matches('0').len());
        }
        // Redis shows no minus before a 0 that has nothing behind it.
        let sign = if self.is_negative && text != "0" { "-" } else { "" };
        write!(f, "{sign}{text}")
    }
}

impl Finite {
    /// The digits before the point, and those behind it as a number.
    fn parts(self) -> (String, u128) {
        let Ok(down) = u32::try_from(-self.exponent) else {
            let mut whole = Big::default();
            whole.multiply(1, u32::try_from(self.digits >> 32).unwrap_or(0));
            whole.shift_left(32);
            whole.multiply(1, (self.digits & 0xffff_ffff) as u32);
            whole.shift_left(self.exponent.unsigned_abs() as usize);
            return (whole.decimal(), 0);
        };
        // At most 121 bits.
        let scaled = u128::from(self.digits) * TEN_TO_BEHIND;
        let whole = scaled.checked_shr(down).unwrap_or(0);
        let rest = scaled ^ whole.checked_shl(down).unwrap_or(0);
        // Beyond all bits there is less than half of anything.
        let half = down.checked_sub(1).and_then(|shift| 1_u128.checked_shl(shift)).unwrap_or(u128::MAX);
        let rounds_up = rest > half || (rest == half && whole % 2 == 1);
        let rounded = whole + u128::from(rounds_up);
        ((rounded / TEN_TO_BEHIND).to_string(), rounded % TEN_TO_BEHIND)
    }
}
