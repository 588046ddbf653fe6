//! Looking for a key in a page. What answers `None` here is for loops that take a few nanoseconds a step: nothing goes
//! through memory that need not; why there is nothing, [`Keys::fault`] says afterwards.

use std::ops::Range;

use zerocopy::little_endian::U32;

use super::page::{data_start, sound_data};
use super::search::{Between, prefix_at, search};
use super::{BranchPage, LeafPage, prefix};
use crate::{Error, Result};

/// A page with keys.
pub(crate) trait Keys<'a> {
    /// All bytes of the page.
    fn bytes(&self) -> &'a [u8];
    /// Where element `index` says that its key lies, and how long it is.
    fn place(&self, index: usize) -> Option<(U32, U32)>;
    /// Why a key is not to be had.
    fn fault(&self) -> Error;

    #[inline]
    fn sound_key(&self, index: usize) -> Option<&'a [u8]> {
        let (pos, ksize) = self.place(index)?;
        sound_data(self.bytes(), index, pos, ksize)
    }

    /// The prefix of key `index`, behind its first `alike` bytes; `None` also where more than one look is needed.
    #[inline]
    fn sound_prefix(&self, index: usize, alike: usize) -> Option<u64> {
        let (pos, ksize) = self.place(index)?;
        let start = usize::try_from(data_start(index, pos) + alike as u64).ok()?;
        prefix_at(self.bytes(), start, (ksize.get() as usize).checked_sub(alike)?)
    }

    /// `Ok(i)`: the key is at `i`, one of `within`; `Err(i)`: it would stand there. `None` where a key that it needs is
    /// damaged: one whose prefix lies on the page is passed over by that, however long it says to be.
    ///
    /// What `between` says is believed: a key outside of it, which `check` reports, may not be found.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for `Pages::sound_page`")]
    fn sound_search(
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
}

impl<'a> Keys<'a> for LeafPage<'a> {
    #[inline]
    fn bytes(&self) -> &'a [u8] {
        self.bytes()
    }

    #[inline]
    fn place(&self, index: usize) -> Option<(U32, U32)> {
        self.elements().get(index).map(|element| (element.pos, element.ksize))
    }

    #[cold]
    fn fault(&self) -> Error {
        first_fault(self.len(), |index| self.key(index))
    }
}

impl<'a> Keys<'a> for BranchPage<'a> {
    #[inline]
    fn bytes(&self) -> &'a [u8] {
        self.bytes()
    }

    #[inline]
    fn place(&self, index: usize) -> Option<(U32, U32)> {
        self.elements().get(index).map(|element| (element.pos, element.ksize))
    }

    #[cold]
    fn fault(&self) -> Error {
        first_fault(self.len(), |index| self.key(index))
    }
}

/// The first error among the keys of a page.
#[cold]
fn first_fault<'a>(len: usize, key: impl Fn(usize) -> Result<&'a [u8]>) -> Error {
    let fault = (0..len).find_map(|index| key(index).err());
    fault.expect("a search ends early at a damaged key only")
}
