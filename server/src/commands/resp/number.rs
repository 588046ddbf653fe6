//! Numbers as Redis reads and writes them.

use super::failure::Failure;
use crate::commands::number;

/// The whole number that a word is.
pub(super) fn integer(word: &[u8]) -> Result<i64, Failure> {
    number::parse(word).ok_or_else(Failure::not_an_integer)
}
