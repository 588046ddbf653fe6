//! Looking for a key in a page. What answers `None` here is for loops that take a few nanoseconds a step: nothing goes
//! through memory that need not; why there is nothing, [`TreePage::fault`] says afterwards.

use std::ops::Range;

use super::page::{Element, TreePage, data_start, sound_data};
use super::prefix;
use super::search::{Between, prefix_at, search, search_or, search_whole};
use crate::Error;

impl<'a, E: Element> TreePage<'a, E> {
    #[inline]
    pub(super) fn sound_key(&self, index: usize) -> Option<&'a [u8]> {
        let (pos, ksize) = self.elements().get(index)?.key();
        sound_data(self.bytes(), index, pos, ksize)
    }

    /// The prefix of key `index`, behind its first `alike` bytes; `None` also where more than one look is needed.
    #[inline]
    fn sound_prefix(&self, index: usize, alike: usize) -> Option<u64> {
        let (pos, ksize) = self.elements().get(index)?.key();
        let start = usize::try_from(data_start(index, pos) + alike as u64).ok()?;
        prefix_at(self.bytes(), start, ksize.get() as usize, alike)
    }

    /// `Ok(i)`: the key is at `i`, one of `within`; `Err(i)`: it would stand there. `None` where a key that it needs is
    /// damaged: one whose prefix lies on the page is passed over by that, however long it says to be.
    ///
    /// What `between` says is believed: a key outside of it, which `check` reports, may not be found.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for `Pages::sound_page`")]
    pub(super) fn sound_search(
        &self,
        within: Range<usize>,
        key: &[u8],
        between: Between,
    ) -> Option<std::result::Result<usize, usize>> {
        let between = if between == Between::ANY && self.begins_alike(&within) {
            // Nobody says it of a root. Prefixes would not decide anything there.
            self.ends_of(&within, key)
        } else {
            between
        };
        let wanted = prefix(key.get(between.alike..)?);
        search_or(
            within.clone(),
            between.guess(&within, wanted),
            wanted,
            |index| self.sound_prefix(index, between.alike),
            |index| Some(self.sound_key(index)?.cmp(key)),
            |rest, _| self.search_alike(rest, key),
        )
    }

    #[inline]
    fn begins_alike(&self, within: &Range<usize>) -> bool {
        within.len() > 1 && self.sound_prefix(within.start, 0) == self.sound_prefix(within.end - 1, 0)
    }

    /// What these keys lie between themselves, to look for `key`.
    #[inline(never)]
    fn ends_of(&self, within: &Range<usize>, key: &[u8]) -> Between {
        let last = within.end.checked_sub(1).and_then(|last| self.sound_key(last));
        let (Some(first), Some(last)) = (self.sound_key(within.start), last) else { return Between::ANY };
        let between = Between::new(first, last, key);
        if first.get(..between.alike) == key.get(..between.alike) { between } else { Between::ANY }
    }

    /// The same among keys that may have their first bytes alike, which were compared already: what their ends have in common is
    /// passed over, or each would be compared whole.
    #[inline(never)]
    fn search_alike(&self, within: Range<usize>, key: &[u8]) -> Option<std::result::Result<usize, usize>> {
        let cmp = |index| Some(self.sound_key(index)?.cmp(key));
        let between = self.ends_of(&within, key);
        if between.alike == 0 {
            return search_whole(within, cmp);
        }
        let wanted = prefix(key.get(between.alike..)?);
        let guess = between.guess(&within, wanted);
        search(within, guess, wanted, |index| self.sound_prefix(index, between.alike), cmp)
    }

    /// Why a search ended at a key that is damaged: the error of the first such key.
    #[cold]
    pub(crate) fn fault(&self) -> Error {
        let fault = (0..self.elements().len()).find_map(|index| self.written_key(index).err());
        // In a damaged file a page can be in use and free, and be written over while it is read.
        fault.unwrap_or_else(|| Error::corrupt(self.id(), "it changed while a key was looked for"))
    }
}
