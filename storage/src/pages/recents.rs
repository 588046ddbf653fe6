//! What is new, in memory: patches of leaves that are still on their pages as they were.
//!
//! A memory is filled from its begin to its end, and never written twice before nobody has it any more; a table in it says
//! where the newest patch of a page lies. Patches have the number of their transaction, so that a reader passes over what
//! is newer than its snapshot. Only the writer writes either.
//!
//! There are two memories at a time. The *newer* one takes the patches of leaves that had none. While the leaves of the
//! *elder* one are written anew, it goes on with those that it has. So all patches of a page lie in one of them.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::FromBytes as _;

use crate::disk::{Map, Region, prefetch};
use crate::format::{PATCH_HEADER, PatchHeader, Patched, Pgid, TxId, UNIT};

/// An entry of the table: the page, whether its patches are of the past, and where the newest lies (0: none counts).
pub(super) const PAGE_SHIFT: u32 = 24;
pub(super) const PAST: u64 = 1 << 23;
pub(super) const AT: u64 = PAST - 1;
/// Pages from here on do not fit an entry: they get no patches.
pub(super) const PAGES: Pgid = 1 << (64 - PAGE_SHIFT);
/// The longest memory whose places fit an entry, in bytes.
const LONGEST: usize = (AT as usize + 1) * UNIT;
/// Bytes of memory for each entry of the table: about those of one patch.
const BYTES_AN_ENTRY: usize = 128;

/// Bytes before a patch's end that a look-up reads: of most patches that is all but the entry.
const SOON: usize = 256;

/// One memory.
pub(crate) struct Patches {
    pub(super) region: Arc<Region>,
    pub(super) map: Map,
    pub(super) table: Box<[AtomicU64]>,
}

impl Patches {
    /// A memory of so many bytes, up to [`LONGEST`].
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.min(LONGEST).next_multiple_of(UNIT);
        let region = Region::new(bytes)?;
        let entries = (bytes / BYTES_AN_ENTRY).next_power_of_two().max(64);
        let mut table = Vec::new();
        table.try_reserve_exact(entries).map_err(|_| io::ErrorKind::OutOfMemory)?;
        table.resize_with(entries, AtomicU64::default);
        let table = table.into_boxed_slice();
        Ok(Self { map: Map::of_region(Arc::clone(&region), bytes), region, table })
    }

    /// Forgets all patches, where nobody else has this memory.
    pub(crate) fn clear(&mut self) {
        self.table.iter_mut().for_each(|entry| *entry.get_mut() = 0);
    }

    /// What the patch at `at` ends with.
    pub(crate) fn header(&self, at: u32) -> Option<&PatchHeader> {
        PatchHeader::ref_from_bytes(self.map.bytes(u64::from(at) * UNIT as u64, PATCH_HEADER)?).ok()
    }

    /// The key that the patch at `at` is about.
    pub(crate) fn key(&self, at: u32) -> Option<&[u8]> {
        self.header(at)?.key(self.map.bytes(0, at as usize * UNIT)?, at)
    }

    fn patched(&self, at: u32) -> Option<Patched<'_>> {
        Patched::ending(self.map.bytes(0, at as usize * UNIT + PATCH_HEADER)?)
    }

    /// Where the page's entry is, if no other one is there.
    fn first_place(&self, page: Pgid) -> usize {
        let hash = page.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (hash >> 32) as usize & (self.table.len() - 1)
    }

    /// The page's entry, or the place where it would be.
    pub(super) fn entry(&self, page: Pgid) -> (usize, u64) {
        let mask = self.table.len() - 1;
        let mut place = self.first_place(page);
        loop {
            let entry = self.table[place].load(Ordering::Acquire);
            // Never more than half of them are taken.
            if entry == 0 || entry >> PAGE_SHIFT == page {
                return (place, entry);
            }
            place = (place + 1) & mask;
        }
    }

    /// Where the newest patch of a page lies that is not of the past.
    pub(crate) fn newest(&self, page: Pgid) -> Option<u32> {
        let (_, entry) = self.entry(page);
        (entry & PAST == 0).then_some(at(entry)).filter(|&at| at != 0)
    }

    /// Where the patch lies that tells of the page's leaf in the state `upto`.
    pub(super) fn place(&self, page: Pgid, upto: TxId) -> Option<u32> {
        let (_, entry) = self.entry(page);
        let mut place = at(entry);
        while place != 0 {
            let header = self.header(place)?;
            if header.txid.get() <= upto {
                return Some(place);
            }
            place = header.before.get();
        }
        None
    }

    /// The pages that have patches which are not of the past, and where the newest of each lies.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Pgid, u32)> {
        let entries = self.table.iter().map(|entry| entry.load(Ordering::Acquire));
        entries.filter(|entry| entry & PAST == 0 && at(*entry) != 0).map(|entry| (entry >> PAGE_SHIFT, at(entry)))
    }
}

pub(super) fn at(entry: u64) -> u32 {
    u32::try_from(entry & AT).unwrap_or(0)
}

impl fmt::Debug for Patches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patches").field("bytes", &self.map.len()).finish_non_exhaustive()
    }
}

/// The memories that a state is read with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recents {
    pub(crate) newer: Option<Arc<Patches>>,
    pub(crate) elder: Option<Arc<Patches>>,
    /// The state: what is newer is not seen.
    pub(crate) upto: TxId,
}

impl Recents {
    pub(crate) fn is_empty(&self) -> bool {
        self.newer.is_none() && self.elder.is_none()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Patches>> {
        self.elder.iter().chain(&self.newer)
    }

    /// It will be looked for the page's patches soon.
    pub(crate) fn prefetch_entry(&self, page: Pgid) {
        for patches in self.all() {
            prefetch(std::slice::from_ref(&patches.table[patches.first_place(page)]));
        }
    }

    /// The page's newest patch will be read soon.
    pub(crate) fn prefetch_newest(&self, page: Pgid) {
        for patches in self.all() {
            let at = at(patches.entry(page).1) as usize * UNIT;
            if at > 0 {
                patches.map.prefetch((at - at.min(SOON)) as u64, SOON + PATCH_HEADER);
            }
        }
    }

    /// What the page's leaf is in the state.
    pub(crate) fn find(&self, page: Pgid) -> Option<Patched<'_>> {
        let found = |patches: &'_ Option<Arc<Patches>>| patches.as_ref()?.place(page, self.upto);
        match (found(&self.newer), &self.newer) {
            (Some(at), Some(newer)) => newer.patched(at),
            _ => self.elder.as_ref()?.patched(found(&self.elder)?),
        }
    }
}
