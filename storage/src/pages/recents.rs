//! What is new, in memory: patches of leaves that are still on their pages as they were.
//!
//! A memory is filled from its begin to its end, and never written twice before nobody has it any more; a table in it says
//! where the newest patch of a page lies. Patches have the number of their transaction, so that a reader passes over what
//! is newer than its snapshot. Only the writer writes either.
//!
//! There are two memories at a time. The *newer* one takes the patches of leaves that had none. While the leaves of the
//! *elder* one are written anew, it goes on with those that it has. So all patches of a page lie in one of them.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fnv::FnvBuildHasher;
use zerocopy::FromBytes as _;

use crate::disk::{Map, Region, prefetch};
use crate::format::{PATCH_HEADER, PatchHeader, Patched, Pgid, TxId, UNIT};

/// An entry of the table: the page, whether its patches are of the past, and where the newest lies (0: none counts).
const PAGE_SHIFT: u32 = 24;
const PAST: u64 = 1 << 23;
const AT: u64 = PAST - 1;
/// Pages from here on do not fit an entry: they get no patches.
const PAGES: Pgid = 1 << (64 - PAGE_SHIFT);
/// The longest memory whose places fit an entry, in bytes.
const LONGEST: usize = (AT as usize + 1) * UNIT;
/// Bytes of memory for each entry of the table: about those of one patch.
const BYTES_AN_ENTRY: usize = 128;

/// Bytes before a patch's end that a look-up reads: of most patches that is all but the entry.
const SOON: usize = 256;

/// One memory.
pub(crate) struct Patches {
    region: Arc<Region>,
    map: Map,
    table: Box<[AtomicU64]>,
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
    fn entry(&self, page: Pgid) -> (usize, u64) {
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
    fn place(&self, page: Pgid, upto: TxId) -> Option<u32> {
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

fn at(entry: u64) -> u32 {
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

/// A memory as the writer has it.
#[derive(Debug)]
pub(crate) struct Filling {
    pub(crate) patches: Arc<Patches>,
    /// Bytes that are taken.
    filled: usize,
    /// Entries of the table that are taken.
    entries: usize,
    /// Pages whose patches are not of the past.
    pub(crate) live: u64,
    /// The branches above pages that were patched: these are written, too.
    above: HashSet<Pgid, FnvBuildHasher>,
}

/// How one patch is taken back: the table's entry as it was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    place: usize,
    entry: u64,
}

impl Filling {
    /// Of a memory in which nothing is.
    pub(crate) fn new(patches: Arc<Patches>) -> Self {
        // No patch lies at 0.
        Self { patches, filled: UNIT, entries: 0, live: 0, above: HashSet::default() }
    }

    /// Bytes of patches, also of those that only readers of earlier states see.
    pub(crate) fn used(&self) -> u64 {
        (self.filled - UNIT) as u64
    }

    /// Where the next patch will lie.
    pub(crate) fn next(&self) -> u32 {
        u32::try_from(self.filled / UNIT).expect("a memory is not longer than its table can say")
    }

    /// Whether there is room for a patch of so many bytes, and for another page, if it is the page's first.
    pub(crate) fn has_room(&self, page: Pgid, bytes: usize, is_first: bool) -> bool {
        let entries = !is_first || 2 * (self.entries + 1) <= self.patches.table.len();
        entries && page < PAGES && self.filled + bytes <= self.patches.map.len()
    }

    /// Whether so many eighths of it are taken.
    pub(crate) fn is_filled(&self, eighths: usize) -> bool {
        8 * self.filled >= eighths * self.patches.map.len() || 16 * self.entries >= eighths * self.patches.table.len()
    }

    /// Adds a patch of a page, for which [`Self::has_room`], and which then lies at `at`.
    pub(crate) fn push(&mut self, page: Pgid, above: Option<Pgid>, patch: &[u8], at: u32) -> Before {
        self.patches.region.write(self.filled, patch);
        self.filled += patch.len();
        let (place, entry) = self.patches.entry(page);
        self.entries += usize::from(entry == 0);
        if !is_live(entry) {
            self.live += 1;
            self.above.extend(above);
        }
        self.patches.table[place].store(page << PAGE_SHIFT | u64::from(at), Ordering::Release);
        Before { place, entry }
    }

    /// Pages that it takes at most to write all leaves, and the branches above them, but for those on pages that were `freed`.
    pub(crate) fn pages_to_write(&self, freed: impl Iterator<Item = Pgid>) -> u64 {
        if self.live == 0 {
            return 0;
        }
        let gone = freed.filter(|&page| self.patches.newest(page).is_some()).count() as u64;
        match self.live.saturating_sub(gone) {
            0 => 0,
            // Branches above branches are fewer than those, however long their keys are.
            leaves => leaves + 2 * self.above.len() as u64,
        }
    }

    /// What was on these pages is on others now; a branch that was split, on several.
    pub(crate) fn branches_moved(&mut self, branches: &[(Pgid, Pgid)]) {
        let new: Vec<Pgid> = branches.iter().filter(|(old, _)| self.above.contains(old)).map(|(_, new)| *new).collect();
        for (old, _) in branches {
            self.above.remove(old);
        }
        self.above.extend(new);
    }

    /// Takes back the newest patch of a page.
    pub(crate) fn take_back(&mut self, before: Before) {
        let Before { place, entry } = before;
        let now = self.patches.table[place].load(Ordering::Relaxed);
        self.live -= u64::from(is_live(now) && !is_live(entry));
        // What is in the table stays there, or what was put behind it would not be found.
        let entry = if entry == 0 { now & !(PAST | AT) } else { entry };
        self.patches.table[place].store(entry, Ordering::Release);
    }

    /// The newest state has the page no more: who reads an earlier one still sees its patches.
    pub(crate) fn leave(&mut self, page: Pgid) {
        // Also a branch may go, with all that is below it.
        self.above.remove(&page);
        let (place, entry) = self.patches.entry(page);
        if is_live(entry) {
            self.live -= 1;
            self.patches.table[place].store(entry | PAST, Ordering::Release);
        }
    }

    /// The newest state has none of the pages any more.
    pub(crate) fn leave_all(&mut self) {
        if self.live > 0 {
            let pages: Vec<Pgid> = self.patches.all().map(|(page, _)| page).collect();
            for page in pages {
                self.leave(page);
            }
        }
        self.above.clear();
    }

    /// Nobody reads what was on the page: it will be another one.
    pub(crate) fn forget(&mut self, page: Pgid) {
        let (place, entry) = self.patches.entry(page);
        if entry != 0 {
            self.live -= u64::from(is_live(entry));
            self.patches.table[place].store(page << PAGE_SHIFT, Ordering::Release);
        }
    }

    /// Whether it has no patches.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The newest patch of a page: where it lies, and what it ends with.
    pub(crate) fn newest(&self, page: Pgid) -> Option<(u32, &PatchHeader)> {
        let at = self.patches.newest(page)?;
        self.patches.header(at).map(|header| (at, header))
    }
}

fn is_live(entry: u64) -> bool {
    entry & PAST == 0 && at(entry) != 0
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
mod tests {
    use super::*;
    use crate::format::{Changes, Edit, write_patch};

    fn push(filling: &mut Filling, page: Pgid, txid: TxId) -> Before {
        let (mut bytes, mut changes) = (Vec::new(), Changes::default());
        let which = changes.make(Edit::Insert(0));
        let before = filling.newest(page).map_or(0, |(at, _)| at);
        let header = PatchHeader {
            txid: txid.into(),
            before: before.into(),
            bucket: 0.into(),
            size: 32.into(),
            len: 1.into(),
            entry: 0.into(),
            changes: 1,
            number: 1,
        };
        let at = write_patch(&mut bytes, filling.next(), &header, &mut changes, which, (b"key", b"value"));
        assert!(filling.has_room(page, bytes.len(), true));
        filling.push(page, None, &bytes, at)
    }

    fn seen(filling: &Filling, page: Pgid, upto: TxId) -> Option<u64> {
        Some(filling.patches.header(filling.patches.place(page, upto)?)?.txid.get())
    }

    #[test]
    fn each_state_has_its_patches_until_the_page_is_another_one() {
        let mut filling = Filling::new(Arc::new(Patches::new(1 << 12).unwrap()));
        for txid in 5..8 {
            push(&mut filling, 9, txid);
        }
        let before = push(&mut filling, 9, 8);
        assert_eq!([4, 5, 7, 9].map(|upto| seen(&filling, 9, upto)), [None, Some(5), Some(7), Some(8)]);
        filling.take_back(before);
        assert_eq!((seen(&filling, 9, 9), filling.live), (Some(7), 1));
        filling.leave(9);
        assert_eq!((seen(&filling, 9, 6), filling.live, filling.patches.all().count()), (Some(6), 0, 0));
        filling.forget(9);
        assert_eq!((seen(&filling, 9, 6), filling.live), (None, 0));
        push(&mut filling, 9, 9);
        assert_eq!((seen(&filling, 9, 9), seen(&filling, 9, 8), filling.live), (Some(9), None, 1));
    }

    #[test]
    fn the_first_patch_of_a_page_taken_back_leaves_others_to_be_found() {
        let mut filling = Filling::new(Arc::new(Patches::new(1 << 13).unwrap()));
        let all: Vec<_> = (2..30).map(|page| (page, push(&mut filling, page, 1))).collect();
        for &(page, before) in all.iter().rev().filter(|(page, _)| page % 3 == 0) {
            filling.take_back(before);
            assert_eq!(seen(&filling, page, 1), None);
        }
        for (page, _) in all {
            assert_eq!(seen(&filling, page, 1).is_some(), page % 3 != 0);
        }
    }

    /// What Miri looks at: readers take slices while the writer adds what lies behind them.
    #[test]
    fn readers_see_their_states_while_patches_are_added() {
        let mut filling = Filling::new(Arc::new(Patches::new(1 << 13).unwrap()));
        push(&mut filling, 5, 1);
        let recents = Recents { newer: Some(Arc::clone(&filling.patches)), elder: None, upto: 1 };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let patched = recents.find(5).unwrap();
                        assert_eq!(patched.pieces().count(), 1);
                        assert!(recents.find(6).is_none());
                    }
                });
            }
            for txid in 2..20 {
                push(&mut filling, 5 + txid % 2, txid);
            }
        });
        assert_eq!((seen(&filling, 5, 9), seen(&filling, 6, 9)), (Some(8), Some(9)));
    }

    #[test]
    fn half_of_the_table_stays_free() {
        let mut filling = Filling::new(Arc::new(Patches::new(1 << 13).unwrap()));
        let pages = (2..).take_while(|&page| {
            let has_room = filling.has_room(page, 64, true);
            if has_room {
                push(&mut filling, page, 1);
            }
            has_room
        });
        assert_eq!(pages.count(), 32);
        assert!(filling.has_room(2, 64, false) && filling.is_filled(8));
    }
}
