//! What is new, in memory: patches of leaves that are still on their pages as they were.
//!
//! Patches lie in slabs; a table says where the newest of a page lies. Patches have the number of their transaction, so that
//! a reader passes over what is newer than its snapshot. Only the writer writes either, and it changes neither the slabs of
//! a table nor what has been written to them: where it goes on in another slab, it has another table, too, and who has the
//! former one finds in it what was there when it was left.

use std::fmt;
use std::sync::atomic::Ordering;

use zerocopy::FromBytes as _;

use crate::base::shared::{Arc, AtomicU64};
use crate::disk::{PLACE_BITS, Slab, Slabs, prefetch};
use crate::format::{PATCH_HEADER, PatchHeader, Patched, Pgid, TxId};

/// An entry of the table: the page, whether its patches are of the past, and where the newest lies (0: none counts).
pub(super) const PAGE_SHIFT: u32 = PLACE_BITS + 1;
pub(super) const PAST: u64 = 1 << PLACE_BITS;
pub(super) const AT: u64 = PAST - 1;
/// Pages from here on do not fit an entry: they get no patches.
pub(super) const PAGES: Pgid = 1 << (64 - PAGE_SHIFT);

/// Bytes from a patch's begin on that a look-up reads: of most patches that is all but the entry.
const SOON: usize = 192;

/// Where the patches of pages lie, in which slabs.
pub(crate) struct Table {
    pub(super) slabs: Slabs,
    pub(super) entries: Entries,
}

/// One for each page, at the place that its hash says, or behind that. Their number is a power of two.
pub(super) type Entries = Arc<Vec<AtomicU64>>;

/// Where a page's entry is, if no other one is there.
fn first_place(entries: &[AtomicU64], page: Pgid) -> usize {
    // Of the product, the upper bits differ most; and in a longer table the order is the same.
    let hash = page.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (hash >> (entries.len().leading_zeros() + 1)) as usize
}

/// The page's entry, or the place where it would be.
pub(super) fn find(entries: &[AtomicU64], page: Pgid) -> (usize, u64) {
    let mask = entries.len() - 1;
    let mut place = first_place(entries, page);
    loop {
        let entry = entries[place].load(Ordering::Acquire);
        // Never more than half of them are taken.
        if entry == 0 || entry >> PAGE_SHIFT == page {
            return (place, entry);
        }
        place = (place + 1) & mask;
    }
}

impl Table {
    pub(super) fn new(slabs: Vec<Option<Arc<Slab>>>, entries: Vec<AtomicU64>) -> Self {
        Self { slabs: Slabs::new(slabs), entries: entries.into() }
    }

    /// The same without the slabs in these slots, for who needs them no more.
    pub(crate) fn without(&self, slots: &[u8]) -> Self {
        Self { slabs: self.slabs.without(slots), entries: Arc::clone(&self.entries) }
    }

    /// What the patch at `at` begins with.
    pub(crate) fn header(&self, at: u32) -> Option<&PatchHeader> {
        PatchHeader::ref_from_bytes(self.slabs.bytes(at, PATCH_HEADER)?).ok()
    }

    /// The key that the patch at `at` is about.
    pub(crate) fn key(&self, at: u32) -> Option<&[u8]> {
        self.header(at)?.key(&self.slabs, at)
    }

    pub(crate) fn patched(&self, at: u32) -> Option<Patched<'_>> {
        Patched::at(&self.slabs, at)
    }

    /// The page's entry, or the place where it would be.
    pub(super) fn entry(&self, page: Pgid) -> (usize, u64) {
        find(&self.entries, page)
    }

    /// Where the newest patch of a page lies that is not of the past.
    pub(crate) fn newest(&self, page: Pgid) -> Option<u32> {
        live(self.entry(page).1)
    }

    /// Where the patch lies that tells of the page's leaf in the state `upto`.
    pub(super) fn place(&self, page: Pgid, upto: TxId) -> Option<u32> {
        let mut place = at(self.entry(page).1);
        while place != 0 {
            let header = self.header(place)?;
            if header.txid.get() <= upto {
                return Some(place);
            }
            place = header.before.get();
        }
        None
    }

    /// All that memory has of a page will be read soon.
    pub(crate) fn prefetch(&self, page: Pgid) {
        let newest = self.newest(page).and_then(|at| self.patched(at));
        newest.into_iter().for_each(Patched::prefetch);
    }

    /// The pages that have patches which are not of the past, and where the newest of each lies.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Pgid, u32)> {
        let entries = self.entries.iter().map(|entry| entry.load(Ordering::Acquire));
        entries.filter_map(|entry| Some((entry >> PAGE_SHIFT, live(entry)?)))
    }
}

pub(super) fn at(entry: u64) -> u32 {
    u32::try_from(entry & AT).unwrap_or(0)
}

/// Where the newest patch lies that an entry tells of, if it is not of the past.
pub(super) fn live(entry: u64) -> Option<u32> {
    (entry & PAST == 0).then_some(at(entry)).filter(|&at| at != 0)
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

/// The memory that a state is read with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recents {
    pub(crate) table: Option<Arc<Table>>,
    /// The state: what is newer is not seen.
    pub(crate) upto: TxId,
}

impl Recents {
    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_none()
    }

    /// It will be looked for the page's patches soon.
    pub(crate) fn prefetch_entry(&self, page: Pgid) {
        if let Some(table) = &self.table {
            prefetch(std::slice::from_ref(&table.entries[first_place(&table.entries, page)]));
        }
    }

    /// The page's newest patch will be read soon.
    pub(crate) fn prefetch_newest(&self, page: Pgid) {
        if let Some(table) = &self.table
            && let at @ 1.. = at(table.entry(page).1)
        {
            table.slabs.prefetch(at, SOON);
        }
    }

    /// What the page's newest patch tells of will be read soon: all that was added.
    pub(crate) fn prefetch_added(&self, page: Pgid) {
        if let Some(table) = &self.table {
            table.prefetch(page);
        }
    }

    /// What the page's leaf is in the state.
    pub(crate) fn find(&self, page: Pgid) -> Option<Patched<'_>> {
        let table = self.table.as_ref()?;
        table.patched(table.place(page, self.upto)?)
    }
}
