//! Walking a bucket in key order.

mod ahead;
mod draw;

use super::{Bucket, BucketMut};
use crate::format::{Between, LeafEntry, LeafPage};
use crate::pages::MAX_DEPTH;
use crate::tree::{At, View, in_page, too_deep};
use crate::{Error, Result};

/// What a cursor stands on: the key, and its value, or `None` where it is a bucket.
pub type Entry<'tx> = (&'tx [u8], Option<&'tx [u8]>);

#[inline]
pub(crate) fn shown(entry: LeafEntry<'_>) -> Entry<'_> {
    (entry.key, (!entry.is_bucket).then_some(entry.value))
}

/// A place in a bucket, from which to go on in either direction.
///
/// Steps that lead past an end answer `None` and leave the cursor on the last (or first) entry, as
/// in bbolt: after a `next` that answered `None`, `prev` answers the last entry but one. Only a
/// [`seek`](Self::seek) past the last key stands behind it, so that `prev` answers the last entry.
/// On a fresh cursor, `next` is `first` and `prev` is `last`.
///
/// A file that goes in circles ends in [`Error::Corrupt`]: from leaf to leaf the keys must ascend.
#[derive(Clone)]
pub struct Cursor<'tx> {
    bucket: Bucket<'tx>,
    /// From the root to a leaf; empty as long as the cursor is fresh.
    stack: Vec<Frame<'tx>>,
    /// It stands behind the entry that the stack leads to.
    behind: bool,
    /// Leaves that it has stepped to since it last went somewhere else.
    leaves: u64,
}

#[derive(Clone, Copy)]
struct Frame<'tx> {
    view: View<'tx>,
    at: At,
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Forward,
    Backward,
}
use Direction::{Backward, Forward};

/// Where the only frame of an empty root leaf stands.
const NOWHERE: At = At { chunk: 0, index: 0 };

impl<'tx> Cursor<'tx> {
    pub(crate) fn new(bucket: Bucket<'tx>) -> Self {
        Self { bucket, stack: Vec::new(), behind: false, leaves: 0 }
    }

    /// Goes to the first entry.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the file is damaged; likewise for all other steps.
    pub fn first(&mut self) -> Result<Option<Entry<'tx>>> {
        Ok(self.end(Forward)?.map(shown))
    }

    /// Goes to the last entry.
    ///
    /// # Errors
    /// As [`Self::first`].
    pub fn last(&mut self) -> Result<Option<Entry<'tx>>> {
        Ok(self.end(Backward)?.map(shown))
    }

    /// Goes to the next entry.
    ///
    /// # Errors
    /// As [`Self::first`].
    #[expect(clippy::should_implement_trait, reason = "bbolt's name; `Range` is the iterator")]
    pub fn next(&mut self) -> Result<Option<Entry<'tx>>> {
        Ok(self.forward()?.map(shown))
    }

    /// Goes to the entry before.
    ///
    /// # Errors
    /// As [`Self::first`].
    pub fn prev(&mut self) -> Result<Option<Entry<'tx>>> {
        Ok(self.backward()?.map(shown))
    }

    /// Goes to the first entry whose key is `key` or after it.
    ///
    /// # Errors
    /// As [`Self::first`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Entry<'tx>>> {
        Ok(self.seek_entry(key.as_ref())?.map(shown))
    }

    #[inline]
    pub(crate) fn forward(&mut self) -> Result<Option<LeafEntry<'tx>>> {
        if self.stack.is_empty() {
            return self.end(Forward);
        }
        if self.behind { Ok(None) } else { self.step(Forward) }
    }

    pub(crate) fn backward(&mut self) -> Result<Option<LeafEntry<'tx>>> {
        if self.stack.is_empty() {
            return self.end(Backward);
        }
        if std::mem::take(&mut self.behind)
            && let Some(entry) = self.entry()?
        {
            return Ok(Some(entry));
        }
        self.step(Backward)
    }

    fn leave(&mut self) {
        self.stack.clear();
        self.behind = false;
        self.leaves = 0;
    }

    fn end(&mut self, direction: Direction) -> Result<Option<LeafEntry<'tx>>> {
        self.go_to_end(direction).map_err(|error| self.bucket.located(error))
    }

    fn go_to_end(&mut self, direction: Direction) -> Result<Option<LeafEntry<'tx>>> {
        self.leave();
        let root = self.bucket.source.root(self.bucket.root)?;
        if !self.descend(root, direction)? {
            return self.step(direction);
        }
        self.entry()
    }

    pub(crate) fn seek_entry(&mut self, key: &[u8]) -> Result<Option<LeafEntry<'tx>>> {
        self.go_to_key(key).map_err(|error| self.bucket.located(error))
    }

    fn go_to_key(&mut self, key: &[u8]) -> Result<Option<LeafEntry<'tx>>> {
        self.leave();
        let mut view = self.bucket.source.root(self.bucket.root)?;
        let mut between = Between::ANY;
        while !view.is_leaf() {
            let at = view.seek(key, &mut between)?.unwrap_or(NOWHERE);
            view = self.push_and_follow(view, at)?;
        }
        if let Some(at) = view.seek(key, &mut between)? {
            self.stack.push(Frame { view, at });
            return self.entry();
        }
        // Past this leaf's end: the next leaf begins with a larger key.
        self.stack.push(Frame { view, at: view.last().unwrap_or(NOWHERE) });
        let next = self.step(Forward)?;
        self.behind = next.is_none();
        Ok(next)
    }

    /// The entry that the stack leads to.
    pub(crate) fn entry(&self) -> Result<Option<LeafEntry<'tx>>> {
        match self.stack.last() {
            Some(Frame { view, at }) if view.first().is_some() => view.entry(*at).map(Some),
            _ => Ok(None),
        }
    }

    /// The leaf page that the cursor stands on, and the place behind its own; `None` where the leaf is a node, or its
    /// place is the last.
    pub(crate) fn rest_of_leaf(&self) -> Option<(LeafPage<'tx>, usize)> {
        let Frame { view: View::Leaf(leaf), at } = *self.stack.last()? else { return None };
        let next = at.index as usize + 1;
        (next < leaf.len()).then_some((leaf, next))
    }

    /// Goes to another place of the leaf page that the cursor stands on.
    pub(crate) fn move_in_leaf(&mut self, index: usize) {
        if let Some(leaf) = self.stack.last_mut() {
            leaf.at = in_page(index);
        }
    }

    /// One entry further. Where there is none, the cursor stays.
    #[inline]
    fn step(&mut self, direction: Direction) -> Result<Option<LeafEntry<'tx>>> {
        let Some(leaf) = self.stack.last_mut() else { return Ok(None) };
        if let Some(at) = one_on(leaf.view, leaf.at, direction) {
            leaf.at = at;
            return leaf.view.entry(at).map(Some).map_err(|error| self.bucket.located(error));
        }
        self.step_to_another_leaf(direction).map_err(|error| self.bucket.located(error))
    }

    fn step_to_another_leaf(&mut self, direction: Direction) -> Result<Option<LeafEntry<'tx>>> {
        let from = self.entry()?.map(|entry| entry.key);
        let stood = self.stack.clone();
        let mut empty = 0;
        loop {
            let up = self
                .stack
                .iter()
                .rposition(|frame| !frame.view.is_leaf() && one_on(frame.view, frame.at, direction).is_some());
            let Some(level) = up else {
                self.stack = stood;
                return Ok(None);
            };
            self.stack.truncate(level + 1);
            let Some(Frame { view, at }) = self.stack.pop() else { return Ok(None) };
            let Some(at) = one_on(view, at, direction) else { return Ok(None) };
            let child = self.push_and_follow(view, at)?;
            self.prefetch(view, at, direction);
            let is_beside = child.is_leaf();
            if self.descend(child, direction)? {
                self.check_order(from, direction)?;
                self.read_ahead(is_beside);
                return self.entry();
            }
            // An empty leaf is borne (transactions leave some until commit), a circle of them is not.
            empty += 1;
            if empty > self.bucket.source.pages.mark() {
                return Err(Error::corrupt(child.page(), "empty leaves go in circles"));
            }
        }
    }

    /// Pushes the way to the first or last leaf below `view`; `false` if it is empty.
    fn descend(&mut self, mut view: View<'tx>, direction: Direction) -> Result<bool> {
        loop {
            let end = match direction {
                Forward => view.first(),
                Backward => view.last(),
            };
            if view.is_leaf() {
                self.stack.push(Frame { view, at: end.unwrap_or(NOWHERE) });
                return Ok(end.is_some());
            }
            let Some(at) = end else { return Ok(false) };
            view = self.push_and_follow(view, at)?;
        }
    }

    fn push_and_follow(&mut self, view: View<'tx>, at: At) -> Result<View<'tx>> {
        if self.stack.len() >= MAX_DEPTH {
            return Err(too_deep(&view));
        }
        self.stack.push(Frame { view, at });
        self.bucket.source.view(view.child(at)?)
    }

    /// A new leaf must lie wholly beyond the key that the last one was left at: otherwise a damaged
    /// file could lead us round for ever.
    fn check_order(&self, from: Option<&[u8]>, direction: Direction) -> Result<()> {
        let Some(Frame { view, .. }) = self.stack.last() else { return Ok(()) };
        let (Some(first), Some(last)) = (view.first(), view.last()) else { return Ok(()) };
        let (first, last) = (view.entry(first)?.key, view.entry(last)?.key);
        let beyond = from.is_none_or(|from| if direction == Forward { from < first } else { last < from });
        if beyond && first <= last {
            return Ok(());
        }
        Err(Error::corrupt(view.page(), "its keys are not in order with those of the leaf before"))
    }
}

fn one_on(view: View<'_>, at: At, direction: Direction) -> Option<At> {
    match direction {
        Forward => view.next(at),
        Backward => view.prev(at),
    }
}

impl std::fmt::Debug for Cursor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("depth", &self.stack.len()).finish_non_exhaustive()
    }
}

/// A cursor that can delete what it stands on.
///
/// Keys and values that it answers live until its next step: that is what keeps them from being
/// looked at after they were deleted. Each step is a look-up of its own, so that it costs O(log n);
/// to only read, take a [`Cursor`].
///
/// After [`delete`](Self::delete) the cursor stands between the neighbours of the deleted entry:
/// `next` answers the one after it, `prev` the one before. Nothing is skipped (in bbolt, `Next`
/// after `Delete` could skip an entry).
pub struct CursorMut<'tx> {
    bucket: BucketMut<'tx>,
    place: Place,
}

enum Place {
    Fresh,
    /// On this key.
    On(Vec<u8>),
    /// Where this key was before it was deleted, or behind the last key.
    Gap(Option<Vec<u8>>),
}

impl<'tx> CursorMut<'tx> {
    pub(crate) fn new(bucket: BucketMut<'tx>) -> Self {
        Self { bucket, place: Place::Fresh }
    }

    /// Goes to the first entry.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the file is damaged; likewise for all other steps.
    pub fn first(&mut self) -> Result<Option<Entry<'_>>> {
        self.go(|cursor| cursor.first())
    }

    /// Goes to the last entry.
    ///
    /// # Errors
    /// As [`Self::first`].
    pub fn last(&mut self) -> Result<Option<Entry<'_>>> {
        self.go(|cursor| cursor.last())
    }

    /// Goes to the first entry whose key is `key` or after it.
    ///
    /// # Errors
    /// As [`Self::first`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Entry<'_>>> {
        let found = self.bucket.as_bucket().cursor().seek(key.as_ref())?.map(|(key, _)| key.to_vec());
        let Some(key) = found else {
            self.place = Place::Gap(None);
            return Ok(None);
        };
        self.stand_on(key)
    }

    /// Goes to the next entry.
    ///
    /// # Errors
    /// As [`Self::first`].
    #[expect(clippy::should_implement_trait, reason = "bbolt's name; it lends, so it is no iterator")]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>> {
        match std::mem::replace(&mut self.place, Place::Fresh) {
            Place::Fresh => self.first(),
            Place::On(key) => {
                self.place = Place::On(key.clone());
                self.go(|cursor| match cursor.seek(&key)? {
                    Some((found, _)) if found == key => cursor.next(),
                    other => Ok(other),
                })
            }
            Place::Gap(Some(key)) => {
                self.place = Place::Gap(Some(key.clone()));
                self.go(|cursor| cursor.seek(&key))
            }
            Place::Gap(None) => {
                self.place = Place::Gap(None);
                Ok(None)
            }
        }
    }

    /// Goes to the entry before.
    ///
    /// # Errors
    /// As [`Self::first`].
    pub fn prev(&mut self) -> Result<Option<Entry<'_>>> {
        let place = std::mem::replace(&mut self.place, Place::Fresh);
        let (Place::On(key) | Place::Gap(Some(key))) = &place else { return self.last() };
        let key = key.clone();
        self.place = place;
        self.go(|cursor| cursor.seek(&key).and_then(|_| cursor.prev()))
    }

    /// Deletes the value that the cursor stands on; nothing where it stands on none.
    ///
    /// # Errors
    /// [`Error::IncompatibleValue`] on a bucket, which only `delete_bucket` deletes.
    pub fn delete(&mut self) -> Result<()> {
        let Place::On(key) = &self.place else { return Ok(()) };
        self.bucket.delete(key)?;
        if let Place::On(key) = std::mem::replace(&mut self.place, Place::Fresh) {
            self.place = Place::Gap(Some(key));
        }
        Ok(())
    }

    /// Moves to what `step` finds, and stays where it is if that is nothing.
    fn go<'a>(
        &'a mut self,
        step: impl for<'b> FnOnce(&mut Cursor<'b>) -> Result<Option<Entry<'b>>>,
    ) -> Result<Option<Entry<'a>>> {
        let found = step(&mut self.bucket.as_bucket().cursor())?.map(|(key, _)| key.to_vec());
        match found {
            Some(key) => self.stand_on(key),
            None => Ok(None),
        }
    }

    fn stand_on(&mut self, key: Vec<u8>) -> Result<Option<Entry<'_>>> {
        let found = self.bucket.as_bucket().cursor().seek(&key);
        self.place = Place::On(key);
        found
    }
}

impl std::fmt::Debug for CursorMut<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CursorMut").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
