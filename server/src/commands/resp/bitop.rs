//! What BITOP does with the bits of values, the shorter ones of which have zeros behind them.

use boltkv_protocol::ErrorCode;

use super::failure::Failure;

/// All values together are no longer: all other writes wait meanwhile, and a key can be named as often as one likes.
const MOST_WORK: usize = 256 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    And,
    Or,
    Xor,
    Not,
}

impl Operation {
    pub(super) fn named(word: &[u8]) -> Option<Self> {
        let all = [("AND", Self::And), ("OR", Self::Or), ("XOR", Self::Xor), ("NOT", Self::Not)];
        all.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes())).map(|(_, operation)| operation)
    }

    /// What comes of the first value, in a result of `len` bytes.
    pub(super) fn begin(self, value: &[u8], len: usize) -> Vec<u8> {
        let mut result = Vec::with_capacity(len);
        result.extend_from_slice(value);
        result.resize(len, 0);
        if self == Self::Not {
            for byte in &mut result {
                *byte = !*byte;
            }
        }
        result
    }

    /// What comes of another one.
    pub(super) fn add(self, result: &mut [u8], value: &[u8]) {
        let both = result.iter_mut().zip(value);
        match self {
            Self::And => {
                both.for_each(|(byte, other)| *byte &= other);
                result.iter_mut().skip(value.len()).for_each(|byte| *byte = 0);
            }
            Self::Or => both.for_each(|(byte, other)| *byte |= other),
            Self::Xor => both.for_each(|(byte, other)| *byte ^= other),
            // It is of one value.
            Self::Not => {}
        }
    }
}

/// Whether values of these lengths can be looked at in one go. AND clears what lies behind a short one, so each is counted
/// with the longest one's length.
pub(super) fn check_work(lens: &[usize]) -> Result<(), Failure> {
    let longest = lens.iter().copied().max().unwrap_or(0);
    if longest.saturating_mul(lens.len()) > MOST_WORK {
        let line =
            format!("ERR BITOP looks at {MOST_WORK} bytes at most: the longest value, as often as there are keys");
        return Err(Failure::new(ErrorCode::TxnTooLarge, line));
    }
    Ok(())
}
