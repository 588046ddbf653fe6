//! Patches: what a leaf has become since it was written to its page, in memory.
//!
//! A patch tells all that its leaf holds: the page's elements, in which order, and entries that were added, which lie in
//! the same memory, behind this patch or an earlier one of the page. So a leaf is read by its newest patch alone, and by
//! an earlier one as it was then. What is in memory this process has written; it is read with every bound checked all the
//! same.

mod change;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Between, ELEMENT, LeafEntry, LeafPage, PAGE_HEADER, Page, PageWriter, Pgid, TxId};
pub(crate) use change::{Change, Changes};
use change::{Spot, spot};

/// What the places of patches and entries are multiples of, in bytes.
pub(crate) const UNIT: usize = 8;
/// Most changes that a patch tells of: with more, a leaf is written anew.
pub(crate) const MOST_CHANGES: usize = 48;
/// Most patches that one page gets, each of which refers to the one before: who reads an old state looks through them.
pub(crate) const MOST_PATCHES: u8 = 128;

/// What a patch ends with. Before it lie the entry that was put, or the key that was deleted, and the changes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct PatchHeader {
    /// The transaction that it is of.
    pub(crate) txid: U64,
    /// The page's patch before this one; 0 for none.
    pub(crate) before: U32,
    /// The number of the bucket that the leaf is of.
    pub(crate) bucket: U32,
    /// Bytes that the leaf takes on a page.
    pub(crate) size: U16,
    /// How many entries it has.
    pub(crate) len: U16,
    /// How much lies before it, in units.
    pub(crate) entry: U16,
    /// How many changes lie before it, and which of the page's patches this is.
    pub(crate) changes: u8,
    pub(crate) number: u8,
}

/// How long an entry's key and value are, before them.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct EntryHeader {
    key: U16,
    value: U16,
}

pub(crate) const PATCH_HEADER: usize = size_of::<PatchHeader>();
const CHANGE: usize = size_of::<Change>();
const ENTRY_HEADER: usize = size_of::<EntryHeader>();

/// Which patch it is of those that a page has had, in whatever memory, and also of those that another leaf had on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PatchId {
    txid: TxId,
    /// Where it lies: a transaction may have patched a page several times.
    at: u32,
}

impl PatchId {
    pub(crate) fn new(at: u32, header: &PatchHeader) -> Self {
        Self { txid: header.txid.get(), at }
    }
}

/// A leaf's patch, and the memory that its entries lie in.
#[derive(Clone, Copy)]
pub(crate) struct Patched<'a> {
    /// All of it up to the end of the patch, which is at least a header: from there on the writer may write.
    memory: &'a [u8],
}

impl PatchHeader {
    /// The key that the patch at `at` is about, which ends with this; `memory` is all up to there.
    pub(crate) fn key<'a>(&self, memory: &'a [u8], at: u32) -> Option<&'a [u8]> {
        entry_at(memory, at.checked_sub(self.entry.get().into())?).map(|entry| entry.key)
    }
}

fn entry_at(memory: &[u8], at: u32) -> Option<LeafEntry<'_>> {
    let (key, data) = entry_data(memory, at)?;
    let (key, value) = data.split_at(key);
    Some(LeafEntry { key, value, is_bucket: false })
}

/// The length of an entry's key, and the key with the value behind it.
fn entry_data(memory: &[u8], at: u32) -> Option<(usize, &[u8])> {
    let (header, data) = EntryHeader::ref_from_prefix(memory.get(at as usize * UNIT..)?).ok()?;
    let (key, value) = (usize::from(header.key.get()), usize::from(header.value.get()));
    Some((key, data.get(..key + value)?))
}

fn units(bytes: usize) -> u16 {
    u16::try_from(bytes / UNIT).expect("only short entries are patched")
}

/// Writes a patch into `bytes`, which are empty and will lie at `next`; answers where the patch itself lies then. `added` is
/// the change of the entry; none for a key that was deleted.
pub(crate) fn write_patch(
    bytes: &mut Vec<u8>,
    next: u32,
    header: &PatchHeader,
    changes: &mut Changes,
    added: Option<usize>,
    (key, value): (&[u8], &[u8]),
) -> u32 {
    if let Some(added) = added {
        let change = changes.list[added];
        changes.list[added] = Change::new(change.at(), change.base(), next);
    }
    let short = |len: usize| u16::try_from(len).expect("only short entries are patched").into();
    bytes.extend_from_slice(EntryHeader { key: short(key.len()), value: short(value.len()) }.as_bytes());
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(UNIT), 0);
    bytes.extend_from_slice(changes.list.as_bytes());
    let entry = units(bytes.len());
    bytes.extend_from_slice(PatchHeader { entry: entry.into(), ..*header }.as_bytes());
    next + u32::from(entry)
}

/// Entries of a patched leaf that follow one another.
pub(crate) enum Piece<'a> {
    /// Elements of the page.
    Base(std::ops::Range<usize>),
    /// The length of a key, and the key with its value behind it.
    Added(usize, &'a [u8]),
}

impl<'a> Patched<'a> {
    /// The patch that `memory` ends with; `None` where that is too short for one.
    pub(crate) fn ending(memory: &'a [u8]) -> Option<Self> {
        (memory.len() >= PATCH_HEADER).then_some(Self { memory })
    }

    pub(crate) fn id(self) -> PatchId {
        let at = (self.memory.len() - PATCH_HEADER) / UNIT;
        PatchId::new(u32::try_from(at).expect("a memory is not longer than 64 MiB"), self.header())
    }

    #[inline]
    fn header(self) -> &'a PatchHeader {
        let header = PatchHeader::ref_from_suffix(self.memory);
        header.expect("the memory is at least as long as a header").1
    }

    fn changes(self) -> &'a [Change] {
        let end = self.memory.len() - PATCH_HEADER;
        let start = end.saturating_sub(usize::from(self.header().changes) * CHANGE);
        <[Change]>::ref_from_bytes(&self.memory[start..end]).unwrap_or_default()
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        self.header().len.get().into()
    }

    /// Bytes that the leaf takes on a page.
    pub(crate) fn size(self) -> usize {
        self.header().size.get().into()
    }

    /// All entries of the leaf, in order.
    pub(crate) fn pieces(self) -> impl Iterator<Item = Piece<'a>> {
        let changes = self.changes();
        let end_of = move |index: usize| changes.get(index).map_or(self.len(), |change| change.at());
        let behind = changes.iter().enumerate().flat_map(move |(index, change)| {
            let added = change.added().and_then(|at| entry_data(self.memory, at));
            let added = added.map(|(key, data)| Piece::Added(key, data));
            let len = end_of(index + 1).saturating_sub(change.run_at());
            [added, (len > 0).then(|| Piece::Base(change.base()..change.base() + len))].into_iter().flatten()
        });
        (end_of(0) > 0).then(|| Piece::Base(0..end_of(0))).into_iter().chain(behind)
    }

    fn key<'b>(self, change: Change, leaf: LeafPage<'b>) -> Option<&'b [u8]>
    where
        'a: 'b,
    {
        match change.added() {
            Some(at) => entry_at(self.memory, at).map(|entry| entry.key),
            None => leaf.sound_key(change.base()),
        }
    }
}

impl<'a> LeafPage<'a> {
    /// Bytes that its entries and its header take on a page, if it is packed.
    pub(crate) fn packed_size(self) -> Option<usize> {
        match self.patch {
            Some(patch) => Some(patch.size()),
            None => Page::Leaf(self).packed_end(),
        }
    }

    #[inline(never)]
    pub(super) fn patched_entry(self, patch: Patched<'a>, index: usize) -> Option<LeafEntry<'a>> {
        if index >= patch.len() {
            return None;
        }
        match spot(patch.changes(), index) {
            Spot::Base(element) => self.as_written().sound_entry(element),
            Spot::Added(at) => entry_at(patch.memory, at),
        }
    }

    /// What [`LeafPage::search`] answers. First it looks for the change before the key, then among the elements behind it.
    #[inline(never)]
    pub(super) fn patched_search(
        self,
        patch: Patched<'a>,
        key: &[u8],
        between: Between,
    ) -> Option<Result<usize, usize>> {
        let changes = patch.changes();
        let (mut low, mut high) = (0, changes.len());
        while low < high {
            let middle = low.midpoint(high);
            let change = changes[middle];
            match patch.key(change, self)?.cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(Ok(change.at())),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        let end = changes.get(low).map_or(patch.len(), |change| change.at());
        let (at, base) = low.checked_sub(1).map_or((0, 0), |last| (changes[last].run_at(), changes[last].base()));
        let elements = base..base + end.checked_sub(at)?;
        let place = |element: usize| element - base + at;
        Some(self.as_written().sound_search(elements, key, between)?.map(place).map_err(place))
    }

    /// Whether it is the page that the patch is of, as far as that can be told: it has all elements that are meant, and with
    /// what was added they fit a page.
    pub(crate) fn fits(self, patch: Patched<'a>) -> bool {
        if Page::Leaf(self.as_written()).packed_end().is_none() {
            return false;
        }
        let mut size = PAGE_HEADER;
        let has_all = patch.pieces().all(|piece| match piece {
            Piece::Base(elements) if elements.end <= self.as_written().len() => {
                size += Page::Leaf(self.as_written()).packed_part(elements).size();
                true
            }
            Piece::Base(_) => false,
            Piece::Added(_, data) => {
                size += ELEMENT + data.len();
                true
            }
        });
        has_all && size <= self.bytes().len()
    }

    /// Writes what it has become over `page`, which will be page `id`. Its own page is packed.
    pub(crate) fn write_anew(self, patch: Patched<'a>, page: &mut [u8], id: Pgid) {
        let mut writer = PageWriter::leaf(page, id, 0, patch.len());
        let base = Page::Leaf(self.as_written());
        for piece in patch.pieces() {
            match piece {
                Piece::Base(elements) => writer.packed(&base.packed_part(elements)),
                Piece::Added(key, data) => writer.entry(key, data, false),
            }
        }
        writer.finish();
    }

    pub(crate) fn patch(&self) -> Option<Patched<'a>> {
        self.patch
    }
}

/// The changes that a patch of this leaf begins with.
pub(crate) fn begin_changes(changes: &mut Changes, leaf: &LeafPage<'_>) {
    changes.begin(leaf.patch.map_or(&[], Patched::changes), leaf.len());
}

/// What is done to a leaf at a place that [`LeafPage::search`] has found.
#[derive(Clone, Copy)]
pub(crate) enum Edit {
    Replace(usize),
    Insert(usize),
    Remove(usize),
}

impl Changes {
    /// Makes an edit; answers the change of the entry that it adds.
    pub(crate) fn make(&mut self, edit: Edit) -> Option<usize> {
        match edit {
            Edit::Replace(index) => Some(self.replace(index, u32::MAX)),
            Edit::Insert(index) => Some(self.insert(index, u32::MAX)),
            Edit::Remove(index) => {
                self.remove(index);
                None
            }
        }
    }

    /// How many there are, and of how many entries.
    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// Bytes that a patch takes.
pub(crate) fn patch_bytes(changes: usize, entry: usize) -> usize {
    PATCH_HEADER + changes * CHANGE + (ENTRY_HEADER + entry).next_multiple_of(UNIT)
}
