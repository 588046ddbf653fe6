//! A memory of patches as the writer has it, which alone fills it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fnv::FnvBuildHasher;

use super::Patches;
use super::recents::{AT, PAGE_SHIFT, PAGES, PAST, at};
use crate::format::{PatchHeader, Pgid, UNIT};

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
    use super::super::Recents;
    use super::*;
    use crate::format::{Changes, Edit, TxId, write_patch};

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
