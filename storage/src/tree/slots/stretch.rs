//! Entries of a page that a node still has as the file has them. They are neither read nor copied one by one: a
//! commit packs a whole stretch with one copy.

use super::slot::Slot;
use crate::format::{Between, PAGE_HEADER, Packed, Page, PageHeader, PageWriter, prefix};
use crate::pages::Run;
use crate::tree::arena::{Bytes, Loc};

/// The entries `from..to` of a leaf or branch page whose data is packed. Never empty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    /// Where the page lies, in the map or (an inline page) in the arena, and its bytes.
    page: Loc,
    len: usize,
    from: u16,
    to: u16,
}

impl Stretch {
    /// All entries of `page`, if there are any, and its data is packed; with the bytes that they take.
    pub(crate) fn of_page(page: &Page<'_>, bytes: Bytes<'_>) -> Option<(Self, usize)> {
        let all = page.bytes();
        let end = page.packed_end()?;
        let to = u16::try_from(page.len()).ok()?;
        Some((Self { page: bytes.loc_of(all), len: all.len(), from: 0, to }, end - PAGE_HEADER))
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.to - self.from)
    }

    /// A part of it.
    pub(crate) fn part(&self, from: usize, to: usize) -> Option<Self> {
        let at = |index: usize| self.from + u16::try_from(index).expect("an index within a page");
        (from < to).then(|| Self { from: at(from), to: at(to), ..*self })
    }

    #[inline]
    fn page<'a>(&self, bytes: Bytes<'a>) -> Page<'a> {
        let page = bytes.at(self.page, self.len);
        let page = PageHeader::of(page).and_then(|header| Page::sound(0, page, header, header.count.get().into()));
        page.expect("the page was parsed when the stretch was made")
    }

    /// Entry `index` as a slot.
    pub(super) fn slot(&self, index: usize, bytes: Bytes<'_>) -> Option<Slot> {
        let index = usize::from(self.from) + index;
        Slot::of_page(&self.page(bytes), self.page, index).ok()
    }

    pub(super) fn first_prefix(&self, bytes: Bytes<'_>) -> u64 {
        prefix(self.key(0, bytes))
    }

    pub(super) fn key<'a>(&self, index: usize, bytes: Bytes<'a>) -> &'a [u8] {
        let index = usize::from(self.from) + index;
        self.page(bytes).key(index).expect("all elements were looked at when the stretch was made")
    }

    /// Where `key` stands in the stretch, or would stand.
    pub(super) fn search(&self, key: &[u8], between: Between, bytes: Bytes<'_>) -> std::result::Result<usize, usize> {
        let within = usize::from(self.from)..usize::from(self.to);
        let found = self.page(bytes).search_in(within, key, between);
        let found = found.expect("all elements were looked at when the stretch was made");
        found.map(|index| index - usize::from(self.from)).map_err(|index| index - usize::from(self.from))
    }

    fn packed<'a>(&self, bytes: Bytes<'a>) -> Packed<'a> {
        self.page(bytes).packed_part(self.from.into()..self.to.into())
    }

    /// Bytes that its entries take on a page.
    pub(crate) fn size(&self, bytes: Bytes<'_>) -> usize {
        self.packed(bytes).size()
    }

    /// Bytes that each of its entries takes on a page.
    pub(super) fn sizes<'a>(&self, bytes: Bytes<'a>) -> impl Iterator<Item = usize> + use<'a> {
        self.packed(bytes).sizes()
    }

    /// Whether it is all that is on the pages `run`.
    pub(super) fn is_all_of(&self, run: Run, bytes: Bytes<'_>) -> bool {
        bytes.is_run(self.page, self.len, run) && self.from == 0 && self.len() == self.page(bytes).len()
    }

    /// Whether one of its entries is a bucket.
    pub(super) fn has_bucket(&self, bytes: Bytes<'_>) -> bool {
        self.packed(bytes).has_bucket()
    }

    pub(super) fn write(&self, page: &mut PageWriter<'_>, bytes: Bytes<'_>) {
        page.packed(&self.packed(bytes));
    }
}
