//! The buckets whose leaves have patches, by number.

use std::collections::{HashMap, HashSet};

use fnv::FnvBuildHasher;

use crate::format::Pgid;
use crate::{Error, Result};

/// Bytes of names of buckets at most, before leaves of others are written as if there were no memory.
const MOST_NAMES: usize = 1 << 20;

/// Buckets, by number: 0 is the root bucket.
#[derive(Debug, Default, Clone)]
pub(crate) struct Names {
    /// The number of the bucket that each is in, and its name there.
    list: Vec<(u32, Box<[u8]>)>,
    numbers: HashMap<Box<[u8]>, u32>,
    bytes: usize,
    /// Those that were deleted, and whose pages are still to be found: their leaves may have patches, and nothing leads to
    /// them.
    cut_off: HashSet<u32, FnvBuildHasher>,
}

impl Names {
    /// The number of a bucket, which it is given where it has none.
    pub(super) fn number(&mut self, within: u32, name: &[u8]) -> Option<u32> {
        if self.is_full() { self.known(within, name) } else { self.add(within, name) }
    }

    /// The same, also where there are many. `None` where there are more than numbers.
    pub(super) fn add(&mut self, within: u32, name: &[u8]) -> Option<u32> {
        if let Some(number) = self.known(within, name) {
            return Some(number);
        }
        let number = u32::try_from(self.list.len() + 1).ok()?;
        self.bytes += 2 * (name.len() + 64);
        self.list.push((within, name.into()));
        self.numbers.insert(key(within, name), number);
        Some(number)
    }

    /// Whether there are many.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > MOST_NAMES
    }

    /// The number of a bucket, if it has one.
    pub(super) fn known(&self, within: u32, name: &[u8]) -> Option<u32> {
        self.numbers.get(&key(within, name)).copied()
    }

    /// How many buckets have a number, but for the root bucket.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether a bucket has this number: one that was numbered later has none here.
    pub(crate) fn has(&self, number: u32) -> bool {
        number as usize <= self.len()
    }

    /// The names that lead to a bucket that [`Self::has`] a number.
    pub(crate) fn path(&self, number: u32) -> Vec<&[u8]> {
        debug_assert!(self.has(number), "bucket {number} has no name here");
        let mut path: Vec<_> = self.way_up(number).filter_map(|number| Some(self.get(number)?.1)).collect();
        path.reverse();
        path
    }

    /// These buckets were deleted, and their pages are still to be found.
    pub(super) fn cut_off(&mut self, numbers: &[u32]) {
        self.cut_off.extend(numbers);
    }

    /// All pages of buckets that were deleted are found.
    pub(super) fn found_all(&mut self) {
        self.cut_off.clear();
    }

    /// Whether a bucket was cut off, or one that it was in.
    fn is_cut_off(&self, number: u32) -> bool {
        !self.cut_off.is_empty() && self.way_up(number).any(|number| self.cut_off.contains(&number))
    }

    /// Nothing leads to this leaf of a bucket, of which something is in memory.
    ///
    /// # Errors
    /// Where the bucket was not cut off with pages that are still to be found: of any other that a commit takes away, it knows
    /// the page. So one above it is another page, and what memory has would be lost.
    pub(crate) fn check_gone(&self, leaf: Pgid, bucket: u32) -> Result<()> {
        if self.is_cut_off(bucket) {
            return Ok(());
        }
        Err(Error::corrupt(leaf, "nothing leads to the leaf, of which there are changes in memory"))
    }

    /// From now on what is called so has another number: the one that it had.
    pub(super) fn forget(&mut self, within: u32, name: &[u8]) -> Option<u32> {
        self.numbers.remove(&key(within, name))
    }

    /// The number of the bucket that this one is in, and its name there; `None` of the root bucket.
    pub(super) fn get(&self, number: u32) -> Option<(u32, &[u8])> {
        let (within, name) = (number as usize).checked_sub(1).and_then(|place| self.list.get(place))?;
        Some((*within, name))
    }

    /// The numbers of the bucket `number`, of the one that it is in, and so on up to the root bucket.
    pub(super) fn way_up(&self, number: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(number), |&next| self.get(next).map(|(within, _)| within))
    }

    /// Whether bucket `number` is `above`, or lies in it.
    pub(super) fn is_within(&self, number: u32, above: u32) -> bool {
        self.way_up(number).any(|next| next == above)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

fn key(within: u32, name: &[u8]) -> Box<[u8]> {
    [&within.to_le_bytes(), name].concat().into()
}
