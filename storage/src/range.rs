//! Iterating over a part of a bucket, from either end.

use std::ops::Bound;

use crate::Result;
use crate::cursor::{Cursor, Entry, shown};
use crate::format::LeafEntry;

/// The entries of a bucket between two bounds, in key order; from both ends, if you like. Keys come
/// with their values, or with `None` where they are buckets.
///
/// After an error it ends.
#[derive(Debug, Clone)]
pub struct Range<'tx> {
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    front: Cursor<'tx>,
    back: Cursor<'tx>,
    /// The last key that each end answered.
    front_key: Option<&'tx [u8]>,
    back_key: Option<&'tx [u8]>,
    done: bool,
}

impl<'tx> Range<'tx> {
    pub(crate) fn new(cursor: Cursor<'tx>, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Self {
        Self {
            low: low.map(<[u8]>::to_vec),
            high: high.map(<[u8]>::to_vec),
            back: cursor.clone(),
            front: cursor,
            front_key: None,
            back_key: None,
            done: false,
        }
    }

    fn step_front(&mut self) -> Result<Option<LeafEntry<'tx>>> {
        let found = match (self.front_key, &self.low) {
            (Some(_), _) | (None, Bound::Unbounded) => self.front.forward()?,
            (None, Bound::Included(low)) => self.front.seek_entry(low)?,
            (None, Bound::Excluded(low)) => match self.front.seek_entry(low)? {
                Some(entry) if entry.key == low => self.front.forward()?,
                other => other,
            },
        };
        let Some(entry) = found else { return Ok(None) };
        let within = match &self.high {
            Bound::Unbounded => true,
            Bound::Included(high) => entry.key <= high.as_slice(),
            Bound::Excluded(high) => entry.key < high.as_slice(),
        };
        if !within || self.back_key.is_some_and(|back| entry.key >= back) {
            return Ok(None);
        }
        self.front_key = Some(entry.key);
        Ok(Some(entry))
    }

    fn step_back(&mut self) -> Result<Option<LeafEntry<'tx>>> {
        let found = match (self.back_key, &self.high) {
            (Some(_), _) | (None, Bound::Unbounded) => self.back.backward()?,
            (None, Bound::Excluded(high)) => {
                self.back.seek_entry(high)?;
                self.back.backward()?
            }
            (None, Bound::Included(high)) => match self.back.seek_entry(high)? {
                Some(entry) if entry.key == high => Some(entry),
                _ => self.back.backward()?,
            },
        };
        let Some(entry) = found else { return Ok(None) };
        let within = match &self.low {
            Bound::Unbounded => true,
            Bound::Included(low) => entry.key >= low.as_slice(),
            Bound::Excluded(low) => entry.key > low.as_slice(),
        };
        if !within || self.front_key.is_some_and(|front| entry.key <= front) {
            return Ok(None);
        }
        self.back_key = Some(entry.key);
        Ok(Some(entry))
    }

    pub(crate) fn next_entry(&mut self) -> Option<Result<LeafEntry<'tx>>> {
        self.answer(Self::step_front)
    }

    fn answer(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<Option<LeafEntry<'tx>>>,
    ) -> Option<Result<LeafEntry<'tx>>> {
        if self.done {
            return None;
        }
        let answer = step(self).transpose();
        self.done = !matches!(answer, Some(Ok(_)));
        answer
    }
}

impl<'tx> Iterator for Range<'tx> {
    type Item = Result<Entry<'tx>>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_entry()?.map(shown))
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.answer(Self::step_back)?.map(shown))
    }
}

impl std::iter::FusedIterator for Range<'_> {}

/// The bounds of all keys that begin with `prefix`.
pub(crate) fn prefix_bounds(prefix: &[u8]) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let low = if prefix.is_empty() { Bound::Unbounded } else { Bound::Included(prefix.to_vec()) };
    // The first key after all of them: the last byte that can be raised is, what follows it goes.
    let raisable = prefix.iter().rposition(|&byte| byte < u8::MAX);
    let high = raisable.map_or(Bound::Unbounded, |at| {
        let mut after = prefix[..=at].to_vec();
        after[at] += 1;
        Bound::Excluded(after)
    });
    (low, high)
}

#[cfg(test)]
mod tests;
