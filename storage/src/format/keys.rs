//! Looking for a key in a page. What answers `None` here is for loops that take a few nanoseconds a step: nothing goes
//! through memory that need not; why there is nothing, [`TreePage::fault`] says afterwards.

use std::ops::Range;

use super::page::{Element, TreePage, data_start, sound_data};
use super::prefix;
use super::search::{Between, prefix_at, search};
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
        let wanted = prefix(key.get(between.alike..)?);
        search(
            within.clone(),
            between.guess(&within, wanted),
            wanted,
            |index| self.sound_prefix(index, between.alike),
            |index| Some(self.sound_key(index)?.cmp(key)),
        )
    }

    /// The same among all keys of the page. Where nothing is known of them, its own first and last one say what all begin with:
    /// where that is a whole prefix, each would be compared whole otherwise.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for `Pages::sound_page`")]
    pub(super) fn sound_search_all(&self, key: &[u8], between: Between) -> Option<std::result::Result<usize, usize>> {
        let is_known = between != Between::ANY || self.sound_prefix(0, 0) != Some(prefix(key));
        let between = if is_known { between } else { self.between_ends(key) };
        self.sound_search(0..self.elements().len(), key, between)
    }

    /// What the first and the last key say of those between them; nothing where `key` does not begin as they do.
    #[inline(never)]
    fn between_ends(&self, key: &[u8]) -> Between {
        let ends = (self.sound_key(0), self.sound_key(self.elements().len().saturating_sub(1)));
        let (Some(first), Some(last)) = ends else { return Between::ANY };
        let between = Between::new(first, last, key);
        if first.get(..between.alike) == key.get(..between.alike) { between } else { Between::ANY }
    }

    /// Why a search ended at a key that is damaged: the error of the first such key.
    #[cold]
    pub(crate) fn fault(&self) -> Error {
        let fault = (0..self.elements().len()).find_map(|index| self.written_key(index).err());
        // In a damaged file a page can be in use and free, and be written over while it is read.
        fault.unwrap_or_else(|| Error::corrupt(self.id(), "it changed while a key was looked for"))
    }
}
