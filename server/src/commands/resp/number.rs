//! Numbers as Redis reads and writes them.

use boltkv_protocol::ErrorCode;

use super::failure::Failure;
use super::long_double::LongDouble;
use crate::commands::number;

/// The whole number that a word is.
pub(super) fn integer(word: &[u8]) -> Result<i64, Failure> {
    number::parse(word).ok_or_else(Failure::not_an_integer)
}

/// The number, perhaps with a fraction, that a word is. It may be infinite, too.
pub(super) fn float(word: &[u8]) -> Result<LongDouble, Failure> {
    LongDouble::parse(word).ok_or_else(Failure::not_a_float)
}

/// The sum of two numbers, as it is kept and shown. Where nothing is kept yet, `old` is `0`.
pub(super) fn add_float(old: &[u8], delta: &[u8]) -> Result<String, Failure> {
    let (old, delta) = (float(old)?, float(delta)?);
    let sum = old
        .add(delta)
        .ok_or_else(|| Failure::say(ErrorCode::NumberOutOfRange, "ERR increment would produce NaN or Infinity"))?;
    Ok(sum.to_string())
}
