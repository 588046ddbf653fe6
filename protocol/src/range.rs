//! Which keys a scan covers: a low and a high bound, on the wire and as plain bounds.

use std::ops::Bound;

use bytes::{BufMut, Bytes, BytesMut};

use crate::field::{DecodeError, EncodeError, Fields, put_str16};

/// Where a range begins. Only this end can be a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LowBound {
    /// From the first key.
    #[default]
    Unbounded,
    /// From this key.
    Included(Bytes),
    /// From after this key.
    Excluded(Bytes),
    /// From this prefix, and only keys that start with it.
    Prefix(Bytes),
}

/// A range of keys. Low and high keep their places when a scan runs in reverse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// Where it begins.
    pub low: LowBound,
    /// Where it ends; narrows a prefix further.
    pub high: Bound<Bytes>,
}

impl Default for KeyRange {
    fn default() -> Self {
        Self::ALL
    }
}

impl KeyRange {
    /// Every key.
    pub const ALL: Self = Self { low: LowBound::Unbounded, high: Bound::Unbounded };

    /// All keys that start with `prefix`.
    #[must_use]
    pub fn prefix(prefix: impl Into<Bytes>) -> Self {
        Self { low: LowBound::Prefix(prefix.into()), high: Bound::Unbounded }
    }

    /// Both ends as plain bounds: a prefix becomes its first key and the key after its last.
    #[must_use]
    pub fn into_bounds(self) -> (Bound<Bytes>, Bound<Bytes>) {
        match self.low {
            LowBound::Unbounded => (Bound::Unbounded, self.high),
            LowBound::Included(key) => (Bound::Included(key), self.high),
            LowBound::Excluded(key) => (Bound::Excluded(key), self.high),
            LowBound::Prefix(prefix) => {
                let end = after_prefix(&prefix).map_or(Bound::Unbounded, Bound::Excluded);
                (Bound::Included(prefix), lower_of(end, self.high))
            }
        }
    }

    /// The keys that it is bounded by.
    pub(crate) const fn keys_mut(&mut self) -> (Option<&mut Bytes>, Option<&mut Bytes>) {
        let low = match &mut self.low {
            LowBound::Unbounded => None,
            LowBound::Included(key) | LowBound::Excluded(key) | LowBound::Prefix(key) => Some(key),
        };
        let high = match &mut self.high {
            Bound::Unbounded => None,
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
        };
        (low, high)
    }

    /// How many bytes the keys have that it is bounded by.
    pub(crate) const fn variable_len(&self) -> usize {
        let low = match &self.low {
            LowBound::Unbounded => 0,
            LowBound::Included(key) | LowBound::Excluded(key) | LowBound::Prefix(key) => key.len(),
        };
        let high = match &self.high {
            Bound::Unbounded => 0,
            Bound::Included(key) | Bound::Excluded(key) => key.len(),
        };
        low + high
    }

    pub(crate) fn decode(fields: &mut Fields) -> Result<Self, DecodeError> {
        let low = match fields.u8("low bound")? {
            0 => LowBound::Unbounded,
            1 => LowBound::Included(fields.str16("low bound")?),
            2 => LowBound::Excluded(fields.str16("low bound")?),
            3 => LowBound::Prefix(fields.str16("low bound")?),
            kind => {
                return Err(DecodeError::BadValue { field: "low bound", value: kind.into() });
            }
        };
        let high = match fields.u8("high bound")? {
            0 => Bound::Unbounded,
            1 => Bound::Included(fields.str16("high bound")?),
            2 => Bound::Excluded(fields.str16("high bound")?),
            kind => {
                return Err(DecodeError::BadValue { field: "high bound", value: kind.into() });
            }
        };
        Ok(Self { low, high })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        let (kind, key) = match &self.low {
            LowBound::Unbounded => (0, None),
            LowBound::Included(key) => (1, Some(key)),
            LowBound::Excluded(key) => (2, Some(key)),
            LowBound::Prefix(key) => (3, Some(key)),
        };
        put_bound(out, "low bound", kind, key)?;
        let (kind, key) = match &self.high {
            Bound::Unbounded => (0, None),
            Bound::Included(key) => (1, Some(key)),
            Bound::Excluded(key) => (2, Some(key)),
        };
        put_bound(out, "high bound", kind, key)
    }
}

fn put_bound(out: &mut BytesMut, field: &'static str, kind: u8, key: Option<&Bytes>) -> Result<(), EncodeError> {
    out.put_u8(kind);
    key.map_or(Ok(()), |key| put_str16(out, field, key))
}

/// The first key after all that start with `prefix`; `None` when there is none (the prefix is empty or all 0xff).
fn after_prefix(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix.get(..=last)?.to_vec();
    *end.last_mut()? += 1;
    Some(end.into())
}

/// The high bound that ends first.
fn lower_of(left: Bound<Bytes>, right: Bound<Bytes>) -> Bound<Bytes> {
    let rank = |bound: &Bound<Bytes>| match bound {
        Bound::Unbounded => (true, Bytes::new(), true),
        Bound::Included(key) => (false, key.clone(), true),
        Bound::Excluded(key) => (false, key.clone(), false),
    };
    if rank(&left) <= rank(&right) { left } else { right }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a prefix ends that a high bound narrows.
    fn end(prefix: &'static [u8], high: Bound<&'static [u8]>) -> Bound<Bytes> {
        KeyRange { high: high.map(Bytes::from_static), ..KeyRange::prefix(prefix) }.into_bounds().1
    }

    fn excluded(key: &'static [u8]) -> Bound<Bytes> {
        Bound::Excluded(Bytes::from_static(key))
    }

    #[test]
    fn a_prefix_ends_before_the_next_one() {
        assert_eq!(end(b"ab", Bound::Unbounded), excluded(b"ac"));
        assert_eq!(end(b"a\xff\xff", Bound::Unbounded), excluded(b"b"));
        assert_eq!(end(b"\xff\xff", Bound::Unbounded), Bound::Unbounded, "nothing comes after it");
        assert_eq!(end(b"", Bound::Unbounded), Bound::Unbounded, "every key starts with nothing");
    }

    #[test]
    fn a_high_bound_narrows_a_prefix_and_never_widens_it() {
        assert_eq!(end(b"ab", Bound::Excluded(b"abc")), excluded(b"abc"));
        let included = Bound::Included(Bytes::from_static(b"abc"));
        assert_eq!(end(b"ab", Bound::Included(b"abc")), included);
        assert_eq!(end(b"ab", Bound::Included(b"ac")), excluded(b"ac"));
        assert_eq!(end(b"ab", Bound::Included(b"z")), excluded(b"ac"));
    }
}
