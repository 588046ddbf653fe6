//! Patches: what a leaf has become since it was written to its page, in memory.
//!
//! A patch tells all that its leaf holds: the page's elements, in which order, and entries that were added, which lie behind
//! this patch or an earlier one of the page. So a leaf is read by its newest patch alone, and by an earlier one as it was
//! then. What is in memory this process has written; it is read with every bound checked all the same.

mod anew;
mod change;
mod moved;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros as _, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Between, LeafEntry, LeafPage, Page, TxId};
use crate::Result;
use crate::disk::{Slabs, UNIT};
pub(crate) use change::{Change, Changes};
use change::{Place, Spot, spot, where_is};

/// Most changes that a patch tells of: with more, a leaf is written anew.
pub(crate) const MOST_CHANGES: usize = 48;
/// Most patches that one page gets, each of which refers to the one before: who reads an old state looks through them.
pub(crate) const MOST_PATCHES: u8 = 128;

/// What a patch begins with. Behind it lie its changes, and then the entry that was put, or the key that was deleted; of a
/// patch that was moved, all entries of memory that it has.
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
    /// The slot of the oldest slab that it refers to.
    pub(crate) oldest: u8,
    /// How many changes lie behind it, and which of the page's patches this is.
    pub(crate) changes: u8,
    pub(crate) number: u8,
    unused: u8,
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
/// Bytes of an entry that are fetched ahead.
const SOON: usize = 192;

/// Which patch it is of those that a page has had, and also of those that another leaf had on the page.
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
    slabs: &'a Slabs,
    /// Where the patch lies.
    at: u32,
}

impl PatchHeader {
    /// Of what a patch makes of a leaf: it will have `len` entries, and take `size` bytes on a page.
    pub(crate) fn new(size: u16, len: u16, before: u32, number: u8) -> Self {
        Self { size: size.into(), len: len.into(), before: before.into(), number, ..Self::new_zeroed() }
    }

    /// The same of a transaction, about a bucket.
    pub(crate) fn by(self, txid: TxId, bucket: u32) -> Self {
        Self { txid: txid.into(), bucket: bucket.into(), ..self }
    }

    /// The same, referring to nothing older than this slab.
    pub(crate) fn since(self, oldest: u8) -> Self {
        Self { oldest, ..self }
    }

    /// How far behind it the entries begin.
    fn entries(&self) -> u32 {
        units(PATCH_HEADER + usize::from(self.changes) * CHANGE)
    }

    /// The key that the patch at `at` is about, which begins with this: it tells where the leaf is.
    pub(crate) fn key<'a>(&self, slabs: &'a Slabs, at: u32) -> Option<&'a [u8]> {
        entry_at(slabs, at + self.entries()).map(|entry| entry.key)
    }
}

fn entry_at(slabs: &Slabs, at: u32) -> Option<LeafEntry<'_>> {
    let (key, data) = entry_data(slabs, at)?;
    let (key, value) = data.split_at(key);
    Some(LeafEntry { key, value, is_bucket: false })
}

/// The length of an entry's key, and the key with the value behind it.
fn entry_data(slabs: &Slabs, at: u32) -> Option<(usize, &[u8])> {
    let header = EntryHeader::ref_from_bytes(slabs.bytes(at, ENTRY_HEADER)?).ok()?;
    let (key, value) = (usize::from(header.key.get()), usize::from(header.value.get()));
    Some((key, &slabs.bytes(at, ENTRY_HEADER + key + value)?[ENTRY_HEADER..]))
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes / UNIT).expect("only short entries are patched")
}

/// Writes a patch into `bytes`, which are empty and will lie at `at`. `added` is the change of the entry; none for a key that
/// was deleted.
pub(crate) fn write_patch(
    bytes: &mut Vec<u8>,
    at: u32,
    header: &PatchHeader,
    changes: &mut Changes,
    added: Option<usize>,
    (key, value): (&[u8], &[u8]),
) {
    let header = PatchHeader { changes: changes.counted(), ..*header };
    if let Some(added) = added {
        let change = changes.list[added];
        changes.list[added] = Change::new(change.at(), change.base(), at + header.entries());
    }
    bytes.resize(PATCH_HEADER, 0);
    bytes.extend_from_slice(changes.list.as_bytes());
    push_entry(bytes, key.len(), &[key, value]);
    finish(bytes, &header);
}

fn push_entry(bytes: &mut Vec<u8>, key: usize, data: &[&[u8]]) {
    let short = |len: usize| u16::try_from(len).expect("only short entries are patched").into();
    let value = data.iter().map(|data| data.len()).sum::<usize>() - key;
    bytes.extend_from_slice(EntryHeader { key: short(key), value: short(value) }.as_bytes());
    for data in data {
        bytes.extend_from_slice(data);
    }
    bytes.resize(bytes.len().next_multiple_of(UNIT), 0);
}

/// Puts the header before what was written.
fn finish(bytes: &mut [u8], header: &PatchHeader) {
    bytes[..PATCH_HEADER].copy_from_slice(header.as_bytes());
}

/// Entries of a patched leaf that follow one another.
pub(crate) enum Piece<'a> {
    /// Elements of the page.
    Base(std::ops::Range<usize>),
    /// The length of a key, and the key with its value behind it.
    Added(usize, &'a [u8]),
}

impl<'a> Patched<'a> {
    /// The patch at a place; `None` where none is.
    pub(crate) fn at(slabs: &'a Slabs, at: u32) -> Option<Self> {
        slabs.bytes(at, PATCH_HEADER)?;
        Some(Self { slabs, at })
    }

    pub(crate) fn id(self) -> PatchId {
        PatchId::new(self.at, self.header())
    }

    #[inline]
    fn header(self) -> &'a PatchHeader {
        let header = self.slabs.bytes(self.at, PATCH_HEADER);
        let header = header.and_then(|bytes| PatchHeader::ref_from_bytes(bytes).ok());
        header.expect("that there is one was looked at before")
    }

    fn changes(self) -> &'a [Change] {
        let begin = self.at + units(PATCH_HEADER);
        let bytes = self.slabs.bytes(begin, usize::from(self.header().changes) * CHANGE);
        bytes.and_then(|bytes| <[Change]>::ref_from_bytes(bytes).ok()).unwrap_or_default()
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        self.header().len.get().into()
    }

    /// What it has added will be read soon.
    pub(crate) fn prefetch(self) {
        for added in self.changes().iter().filter_map(|change| change.added()) {
            self.slabs.prefetch(added, SOON);
        }
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
            let added = change.added().and_then(|at| entry_data(self.slabs, at));
            let added = added.map(|(key, data)| Piece::Added(key, data));
            let len = end_of(index + 1).saturating_sub(change.run_at());
            [added, (len > 0).then(|| Piece::Base(change.base()..change.base() + len))].into_iter().flatten()
        });
        (end_of(0) > 0).then(|| Piece::Base(0..end_of(0))).into_iter().chain(behind)
    }
}

impl<'a> LeafPage<'a> {
    /// As it is on its page.
    pub(super) fn as_written(mut self) -> Self {
        self.patch = None;
        self
    }

    /// The same page, with what memory has of it.
    pub(crate) fn with(mut self, patch: Patched<'a>) -> Self {
        self.patch = Some(patch);
        self
    }

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
        match spot(patch.changes(), index).0 {
            Spot::Base(element) => self.written_entry(element),
            Spot::Added(at) => entry_at(patch.slabs, at),
        }
    }

    /// The page up to the end of the entries that follow one another on it from the one at `index` on, and which element that
    /// one is: behind the end, where it is none.
    pub(crate) fn run_from(self, index: usize) -> (Self, usize) {
        let written = self.as_written();
        let Some(patch) = self.patch else { return (written, index) };
        match spot(patch.changes(), index) {
            (Spot::Base(element), next) => {
                let end = element + next.unwrap_or(patch.len()).saturating_sub(index);
                (written.up_to(end), element)
            }
            (Spot::Added(_), _) => (written.up_to(0), 0),
        }
    }

    /// What [`LeafPage::search`] answers. First it looks among the page's elements, where all keys lie together: of what was
    /// added, which lies wherever, only what stands where the key would is looked at.
    #[inline(never)]
    pub(super) fn patched_search(
        self,
        patch: Patched<'a>,
        key: &[u8],
        between: Between,
    ) -> Option<Result<usize, usize>> {
        let written = self.as_written();
        let found = written.sound_search(0..written.len(), key, between)?;
        let changes = patch.changes();
        let (among, behind) = match where_is(changes, patch.len(), found) {
            Place::OfElement(index) => return Some(found.map(|_| index).map_err(|_| index)),
            Place::Among(among, behind) => (&changes[among], behind),
        };
        // Behind a change that adds nothing is an element, so there can be one only at the end.
        let added = among.len() - among.iter().filter(|change| change.added().is_none()).count();
        let (mut low, mut high) = (0, added);
        while low < high {
            let middle = low.midpoint(high);
            let entry = entry_at(patch.slabs, among[middle].added()?)?;
            match entry.key.cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(Ok(among[middle].at())),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Some(Err(among[..added].get(low).map_or(behind, |change| change.at())))
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

    fn counted(&self) -> u8 {
        u8::try_from(self.list.len()).expect("a patch has few changes")
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// Bytes that a patch takes.
pub(crate) fn patch_bytes(changes: usize, entry: usize) -> usize {
    PATCH_HEADER + changes * CHANGE + (ENTRY_HEADER + entry).next_multiple_of(UNIT)
}
