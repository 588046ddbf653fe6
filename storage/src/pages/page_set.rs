//! A set of pages, which several threads can fill.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::format::Pgid;

/// A set of pages: one bit each.
///
/// Nothing but the bits themselves is shared through it, so that no order among them is needed.
pub(crate) struct PageSet {
    bits: Vec<AtomicU64>,
}

impl PageSet {
    pub(crate) fn new(mark: Pgid) -> Self {
        // One bit a page. The high-water mark is within the file's length, so this takes 1/32,768 of that.
        let words = usize::try_from(mark.div_ceil(64)).unwrap_or(0);
        Self { bits: std::iter::repeat_with(AtomicU64::default).take(words).collect() }
    }

    pub(crate) fn contains(&self, id: Pgid) -> bool {
        self.word(id).is_some_and(|word| word.load(Ordering::Relaxed) & bit(id) != 0)
    }

    /// `false` if it was there already.
    pub(crate) fn insert(&self, id: Pgid) -> bool {
        self.word(id).is_none_or(|word| word.fetch_or(bit(id), Ordering::Relaxed) & bit(id) == 0)
    }

    pub(crate) fn remove(&self, id: Pgid) {
        if let Some(word) = self.word(id) {
            word.fetch_and(!bit(id), Ordering::Relaxed);
        }
    }

    fn word(&self, id: Pgid) -> Option<&AtomicU64> {
        self.bits.get(usize::try_from(id / 64).ok()?)
    }
}

fn bit(id: Pgid) -> u64 {
    1 << (id % 64)
}
