//! What was changed of a leaf page that has not been written anew.
//!
//! A leaf of many entries of which one was put would be 4 KiB to pack and to write, for 100 bytes that the journal has
//! already. So a commit with a journal may leave the page where it is, and keep what it put to it in memory: a patch. Whoever
//! reads the page through the snapshot sees its entries as they are now, and none of those that are gone.

use super::page::{LeafEntry, LeafPage, Page, PageHeader};
use super::search::{Between, search_whole};

/// Set in the places of [`Patch::order`] that are entries of `put`.
const PUT: u16 = 1 << 15;

/// The entries of a leaf page as they are now.
#[derive(Clone)]
pub(crate) struct Patch {
    /// Of each entry, in order: which element of the page it is, or, with [`PUT`], which of `put`.
    order: Box<[u16]>,
    /// How many of them are the page's own.
    own: usize,
    /// The entries that were put: a leaf page of them.
    put: Box<[u8]>,
}

/// Where an entry of a patched page lies.
pub(super) enum Place<'a> {
    Own(usize),
    Put(LeafPage<'a>, usize),
}

/// One entry of a patch that is being made.
#[derive(Clone, Copy)]
pub(crate) enum Patched {
    /// The page's element of this number.
    Own(u16),
    /// The next one of those that were put.
    Put,
}

impl Patch {
    /// The most elements that a page, and its patch, may have.
    pub(crate) const MOST: usize = PUT as usize - 1;

    /// Of these entries in order, at most [`Self::MOST`]; `put` is a leaf page of those that were put, in their order.
    pub(crate) fn new(entries: impl Iterator<Item = Patched>, put: Vec<u8>) -> Self {
        let (mut next, mut own) = (0, 0);
        let order = entries.map(|entry| match entry {
            Patched::Own(index) => {
                own += 1;
                index
            }
            Patched::Put => {
                next += 1;
                PUT | (next - 1)
            }
        });
        let order = order.collect();
        Self { order, own, put: put.into() }
    }

    /// Bytes of memory that it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.order) + self.put.len()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// What was put, as a page.
    fn put(&self) -> Option<LeafPage<'_>> {
        let header = PageHeader::of(&self.put)?;
        match Page::sound(header.id.get(), &self.put, header, header.count.get().into())? {
            Page::Leaf(leaf) => Some(leaf),
            Page::Branch(_) => None,
        }
    }

    #[inline]
    pub(super) fn place(&self, index: usize) -> Option<Place<'_>> {
        let place = *self.order.get(index)?;
        if place & PUT == 0 { Some(Place::Own(place.into())) } else { Some(Place::Put(self.put()?, (place & !PUT).into())) }
    }

    /// The entries in order, each with what was put if it is of that kind.
    pub(crate) fn entries(&self) -> impl Iterator<Item = std::result::Result<u16, LeafEntry<'_>>> {
        let put = self.put();
        self.order.iter().map_while(move |&place| {
            if place & PUT == 0 { Some(Ok(place)) } else { put?.sound_entry((place & !PUT).into()).map(Err) }
        })
    }

    /// Whether the page's element `index` is one of the entries.
    fn has(&self, index: usize, of: usize) -> bool {
        self.own == of || self.order.iter().any(|&place| usize::from(place) == index)
    }
}

impl<'a> LeafPage<'a> {
    /// The same page with what was changed of it since.
    #[inline]
    pub(crate) fn patched(self, patch: &'a Patch) -> Self {
        self.with_patch(Some(patch))
    }

    /// The entry of exactly this key in a page with a patch; `None` where something is damaged.
    #[inline(never)]
    pub(super) fn find_patched(&self, patch: &'a Patch, key: &[u8], between: Between) -> Option<Option<LeafEntry<'a>>> {
        let put = patch.put()?;
        if let Ok(index) = put.sound_search(0..put.len(), key, Between::ANY)? {
            return put.sound_entry(index).map(Some);
        }
        let own = self.with_patch(None);
        match own.sound_search(0..own.len(), key, between)? {
            Ok(index) if patch.has(index, own.len()) => own.sound_entry(index).map(Some),
            _ => Some(None),
        }
    }
}

impl<'a, E: super::page::Element> super::page::TreePage<'a, E> {
    /// As [`Self::sound_search`] in a page with a patch.
    #[inline(never)]
    pub(super) fn search_patched(
        &self,
        within: std::ops::Range<usize>,
        key: &[u8],
    ) -> Option<std::result::Result<usize, usize>> {
        search_whole(within, |index| Some(self.key(index).ok()?.cmp(key)))
    }
}
