//! When a key is to expire, as requests say it. Times are milliseconds since 1970, by the server's clock.

use bytes::{BufMut, BytesMut};

use crate::NEVER;
use crate::field::{DecodeError, Fields};

/// When a key expires whose value is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Expiry {
    /// When it did before; one that is not there, or that has expired, never does.
    Keep,
    /// At this time, in milliseconds since 1970. Where that is past, the key is not there afterwards.
    At(u64),
    /// So many milliseconds from when the server does it.
    In(u64),
}

/// When a key that is there is to expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExpireTo {
    /// Never.
    Never,
    /// At this time, in milliseconds since 1970. Where that is past, the key is removed.
    At(u64),
    /// So many milliseconds from when the server does it.
    In(u64),
}

/// When to change the time at which a key expires. Never counts as later than all times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ExpireCond {
    /// Always.
    #[default]
    Always,
    /// Only if it never expires so far.
    IfNone,
    /// Only if it does.
    IfSome,
    /// Only if it expires later then.
    IfLater,
    /// Only if it expires earlier then.
    IfEarlier,
}

impl ExpireCond {
    /// Whether it holds of a key that expires at `from` so far, and at `to` from now on; `None` is never.
    #[must_use]
    pub fn holds(self, from: Option<u64>, to: Option<u64>) -> bool {
        let (from, to) = (from.unwrap_or(NEVER), to.unwrap_or(NEVER));
        match self {
            Self::Always => true,
            Self::IfNone => from == NEVER,
            Self::IfSome => from < NEVER,
            Self::IfLater => to > from,
            Self::IfEarlier => to < from,
        }
    }

    pub(super) fn decode(fields: &mut Fields) -> Result<Self, DecodeError> {
        Ok(match fields.u8("cond")? {
            0 => Self::Always,
            1 => Self::IfNone,
            2 => Self::IfSome,
            3 => Self::IfLater,
            4 => Self::IfEarlier,
            kind => return Err(DecodeError::BadValue { field: "cond", value: kind.into() }),
        })
    }

    pub(super) fn encode(self, out: &mut BytesMut) {
        out.put_u8(match self {
            Self::Always => 0,
            Self::IfNone => 1,
            Self::IfSome => 2,
            Self::IfLater => 3,
            Self::IfEarlier => 4,
        });
    }
}

const AT: u8 = 2;
const IN: u8 = 3;

impl Expiry {
    pub(super) fn decode(fields: &mut Fields) -> Result<Self, DecodeError> {
        Ok(match fields.u8("expiry")? {
            1 => Self::Keep,
            AT => Self::At(fields.u64("expiry")?),
            IN => Self::In(fields.u64("expiry")?),
            kind => return Err(DecodeError::BadValue { field: "expiry", value: kind.into() }),
        })
    }

    pub(super) fn encode(self, out: &mut BytesMut) {
        match self {
            Self::Keep => out.put_u8(1),
            Self::At(at) => put(AT, at, out),
            Self::In(ms) => put(IN, ms, out),
        }
    }
}

impl ExpireTo {
    /// The number always follows, also where it says nothing.
    pub(super) fn decode(fields: &mut Fields) -> Result<Self, DecodeError> {
        let kind = fields.u8("expiry")?;
        let number = fields.u64("expiry")?;
        Ok(match kind {
            0 => Self::Never,
            AT => Self::At(number),
            IN => Self::In(number),
            kind => return Err(DecodeError::BadValue { field: "expiry", value: kind.into() }),
        })
    }

    pub(super) fn encode(self, out: &mut BytesMut) {
        match self {
            Self::Never => put(0, 0, out),
            Self::At(at) => put(AT, at, out),
            Self::In(ms) => put(IN, ms, out),
        }
    }
}

fn put(kind: u8, number: u64, out: &mut BytesMut) {
    out.put_u8(kind);
    out.put_u64(number);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_is_later_than_all_times() {
        use ExpireCond::{Always, IfEarlier, IfLater, IfNone, IfSome};
        for (from, to, holding) in [
            (None, None, &[Always, IfNone][..]),
            (None, Some(5), &[Always, IfNone, IfEarlier]),
            (Some(5), None, &[Always, IfSome, IfLater]),
            (Some(5), Some(6), &[Always, IfSome, IfLater]),
            (Some(5), Some(4), &[Always, IfSome, IfEarlier]),
            (Some(5), Some(5), &[Always, IfSome]),
        ] {
            for cond in [Always, IfNone, IfSome, IfLater, IfEarlier] {
                assert_eq!(cond.holds(from, to), holding.contains(&cond), "{cond:?} of {from:?} to {to:?}");
            }
        }
    }
}
