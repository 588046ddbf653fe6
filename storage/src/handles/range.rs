//! Iterating over a part of a bucket, from either end.

use std::ops::Bound;

use super::cursor::{Cursor, Entry, shown};
use crate::Result;
use crate::format::{LeafEntry, LeafPage};

/// The entries of a bucket between two bounds, in key order; from both ends, if you like. Keys come
/// with their values, or with `None` where they are buckets.
///
/// After an error it ends.
#[derive(Clone)]
pub struct Range<'tx> {
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    front: Cursor<'tx>,
    back: Cursor<'tx>,
    /// Which ends have answered an entry: their cursors stand on it.
    front_stands: bool,
    back_stands: bool,
    /// What comes next at the front; its cursor stays where this began.
    ahead: Option<Ahead<'tx>>,
    done: bool,
}

/// The rest of a leaf page that lies within the bounds: answered without a look at them, or at the cursor.
#[derive(Clone)]
struct Ahead<'tx> {
    leaf: LeafPage<'tx>,
    /// The same up to where entries stop following one another as they do on the page, of which `element` is the next.
    run: LeafPage<'tx>,
    element: usize,
    /// How far before its place among the leaf's entries that one stands on the page; it wraps.
    shift: usize,
}

impl<'tx> Ahead<'tx> {
    /// The next entry; `None` also where it cannot be read.
    #[inline]
    fn next(&mut self) -> Option<LeafEntry<'tx>> {
        let Some(entry) = self.run.written_entry(self.element) else { return self.next_change() };
        self.element += 1;
        Some(entry)
    }

    /// The same, where it does not follow the one before on the page.
    #[inline(never)]
    fn next_change(&mut self) -> Option<LeafEntry<'tx>> {
        let next = self.place();
        let entry = self.leaf.sound_entry(next)?;
        *self = Self::new(self.leaf, next + 1);
        Some(entry)
    }

    fn new(leaf: LeafPage<'tx>, next: usize) -> Self {
        let (run, element) = leaf.run_from(next);
        Self { leaf, run, element, shift: next.wrapping_sub(element) }
    }

    /// Where in the leaf the next entry stands.
    fn place(&self) -> usize {
        self.element.wrapping_add(self.shift)
    }
}

impl<'tx> Range<'tx> {
    pub(crate) fn new(cursor: Cursor<'tx>, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Self {
        Self {
            low: low.map(<[u8]>::to_vec),
            high: high.map(<[u8]>::to_vec),
            back: cursor.clone(),
            front: cursor,
            front_stands: false,
            back_stands: false,
            ahead: None,
            done: false,
        }
    }

    fn step_front(&mut self) -> Result<Option<LeafEntry<'tx>>> {
        self.settle_front();
        let found = if self.front_stands { self.front.forward()? } else { self.begin_front()? };
        let Some(entry) = found else { return Ok(None) };
        if !self.is_below_end(entry.key)
            || self.back_stands && self.back.entry()?.is_none_or(|back| entry.key >= back.key)
        {
            return Ok(None);
        }
        self.front_stands = true;
        self.look_ahead();
        Ok(Some(entry))
    }

    fn is_below_end(&self, key: &[u8]) -> bool {
        match &self.high {
            Bound::Unbounded => true,
            Bound::Included(high) => key <= high.as_slice(),
            Bound::Excluded(high) => key < high.as_slice(),
        }
    }

    /// Takes note of the rest of the leaf that the front stands on, if its last key lies below the end.
    fn look_ahead(&mut self) {
        if !self.back_stands
            && let Some((leaf, next)) = self.front.rest_of_leaf()
            && leaf.key(leaf.len() - 1).is_ok_and(|last| self.is_below_end(last))
        {
            self.ahead = Some(Ahead::new(leaf, next));
        }
    }

    /// Brings the front's cursor to what was answered last.
    fn settle_front(&mut self) {
        if let Some(ahead) = self.ahead.take() {
            self.front.move_in_leaf(ahead.place() - 1);
        }
    }

    fn begin_front(&mut self) -> Result<Option<LeafEntry<'tx>>> {
        match &self.low {
            Bound::Unbounded => self.front.forward(),
            Bound::Included(low) => self.front.seek_entry(low),
            Bound::Excluded(low) => match self.front.seek_entry(low)? {
                Some(entry) if entry.key == low => self.front.forward(),
                other => Ok(other),
            },
        }
    }

    fn step_back(&mut self) -> Result<Option<LeafEntry<'tx>>> {
        self.settle_front();
        let found = if self.back_stands { self.back.backward()? } else { self.begin_back()? };
        let Some(entry) = found else { return Ok(None) };
        let within = match &self.low {
            Bound::Unbounded => true,
            Bound::Included(low) => entry.key >= low.as_slice(),
            Bound::Excluded(low) => entry.key > low.as_slice(),
        };
        if !within || self.front_stands && self.front.entry()?.is_none_or(|front| entry.key <= front.key) {
            return Ok(None);
        }
        self.back_stands = true;
        Ok(Some(entry))
    }

    fn begin_back(&mut self) -> Result<Option<LeafEntry<'tx>>> {
        match &self.high {
            Bound::Unbounded => self.back.backward(),
            Bound::Excluded(high) => {
                self.back.seek_entry(high)?;
                self.back.backward()
            }
            Bound::Included(high) => match self.back.seek_entry(high)? {
                Some(entry) if entry.key == high => Ok(Some(entry)),
                _ => self.back.backward(),
            },
        }
    }

    #[inline]
    pub(crate) fn next_entry(&mut self) -> Option<Result<LeafEntry<'tx>>> {
        if let Some(entry) = self.ahead.as_mut().and_then(Ahead::next) {
            return Some(Ok(entry));
        }
        self.next_by_cursor()
    }

    fn next_by_cursor(&mut self) -> Option<Result<LeafEntry<'tx>>> {
        if self.done {
            return None;
        }
        let answer = self.step_front();
        self.done = !matches!(answer, Ok(Some(_)));
        answer.transpose()
    }
}

impl<'tx> Iterator for Range<'tx> {
    type Item = Result<Entry<'tx>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(entry) = self.ahead.as_mut().and_then(Ahead::next) {
            return Some(Ok(shown(entry)));
        }
        Some(self.next_by_cursor()?.map(shown))
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let answer = self.step_back();
        self.done = !matches!(answer, Ok(Some(_)));
        Some(answer.transpose()?.map(shown))
    }
}

impl std::fmt::Debug for Range<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Range").field("low", &self.low).field("high", &self.high).finish_non_exhaustive()
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
