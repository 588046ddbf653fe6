//! What the writer has of the patches: the memory, whose leaves they are of, and what this transaction has added.

use std::fmt;
use std::ops::Range;

use super::names::Names;
use crate::Result;
use crate::base::shared::Arc;
use crate::format::{Changes, PatchHeader, PatchId, Patched, Pgid, TxId, write_patch};
use crate::pages::{Before, Filling, For, Oldest, Recents, Run, Table};

/// The patches, as the writer has them. It goes from one write transaction to the next.
pub(crate) struct Patcher {
    /// Bytes of memory.
    bytes: usize,
    filling: Filling,
    /// The same, to read with.
    recents: Recents,
    pub(super) names: Names,
    /// The number of each bucket of this transaction that was looked up.
    pub(super) numbers: Vec<Option<u32>>,
    /// What this transaction has added, the last at the end.
    added: Vec<Before>,
    /// The number of this transaction.
    pub(super) txid: TxId,
    /// This transaction may patch.
    pub(super) is_on: bool,
    /// A checkpoint writes all leaves anew: no more of them get patches.
    is_closing: bool,
    /// The file has no room for more leaves than have patches.
    is_short: bool,
    /// The last transaction that found no memory.
    without: TxId,
    pub(super) changes: Changes,
    /// A patch that is being written.
    patch: Vec<u8>,
    passes: u64,
    missed: u64,
}

/// What is kept in memory, in figures.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryStats {
    /// Bytes that there may be.
    pub(crate) bytes: u64,
    pub(crate) used: u64,
    /// Bytes that are there for it.
    pub(crate) allocated: u64,
    /// Leaves with patches.
    pub(crate) leaves: u64,
    /// How often the oldest of it was given back.
    pub(crate) passes: u64,
    /// Transactions that found none.
    pub(crate) missed: u64,
    /// Readers of earlier states have all that could be had beside what is in use.
    pub(crate) is_kept: bool,
    /// How full the last slab is, in thousandths; 0 where there are others.
    pub(crate) last_filled: u32,
    /// From how many bytes on there is room, and up to how many.
    pub(crate) room: Range<u64>,
}

impl Patcher {
    /// With so many bytes of memory.
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            bytes,
            filling: Filling::new(bytes),
            recents: Recents { table: None, upto: TxId::MAX },
            names: Names::default(),
            numbers: Vec::new(),
            added: Vec::new(),
            txid: 0,
            is_on: false,
            is_closing: false,
            is_short: false,
            without: 0,
            changes: Changes::default(),
            patch: Vec::new(),
            passes: 0,
            missed: 0,
        }
    }

    /// From now on there may be so many bytes, if that is more than before.
    pub(crate) fn allow(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.bytes = bytes;
            self.filling.allow(bytes);
        }
    }

    pub(crate) fn stats(&self) -> MemoryStats {
        MemoryStats {
            bytes: self.bytes as u64,
            used: self.filling.used(),
            allocated: self.filling.allocated(),
            leaves: self.live(),
            passes: self.passes,
            missed: self.missed,
            is_kept: self.filling.is_kept(),
            last_filled: self.filling.last_filled(),
            room: self.room(),
        }
    }

    /// From how many bytes on there is room, and up to how many.
    pub(crate) fn room(&self) -> Range<u64> {
        self.filling.room()
    }

    /// The transaction `txid` begins, which may patch.
    pub(super) fn begin(&mut self, txid: TxId) {
        self.txid = txid;
        self.is_on = true;
        self.numbers.clear();
    }

    /// Notes what patches are read with, where that may be another table now.
    fn note_table(&mut self) {
        self.recents.table = self.filling.table().cloned();
    }

    pub(super) fn recents(&self) -> &Recents {
        &self.recents
    }

    /// What readers of the state `upto` need, which this transaction makes.
    pub(super) fn published(&self, upto: TxId) -> Recents {
        Recents { table: self.recents.table.clone().filter(|_| self.live() > 0), upto }
    }

    /// How many leaves of the newest state have patches.
    pub(crate) fn live(&self) -> u64 {
        self.filling.live()
    }

    /// Pages that it takes at most to write them all, and the branches above them, once the transaction has `freed` these.
    pub(crate) fn pages_to_write(&self, freed: &[Run]) -> u64 {
        match self.filling.pages_to_write(freed.iter().map(|run| run.start)) {
            0 => 0,
            // A bucket's root is in a leaf of the one that it is in, which has branches above it, too. Not all that have a name
            // have patches.
            pages => pages + 2 * self.live().min(self.names.len() as u64),
        }
    }

    /// From now on only leaves that have patches get more; or others do again, too.
    pub(crate) fn note_room(&mut self, is_short: bool) {
        self.is_short = is_short;
    }

    /// Whether a page that has no patches may get one.
    pub(super) fn takes_more(&self) -> bool {
        !self.is_closing && !self.is_short
    }

    pub(super) fn is_patched(&self, page: Pgid) -> bool {
        self.newest_header(page).is_some()
    }

    /// Where the newest patch of a page lies, and what it begins with.
    pub(super) fn newest_header(&self, page: Pgid) -> Option<(u32, &PatchHeader)> {
        self.filling.newest(page)
    }

    /// The newest patch of a page.
    pub(crate) fn newest(&self, page: Pgid) -> Option<PatchId> {
        self.newest_header(page).map(|(at, header)| PatchId::new(at, header))
    }

    /// Looks for room for a patch of so many bytes.
    pub(super) fn reserve(&mut self, page: Pgid, bytes: usize, is_first: bool) -> bool {
        let has_room = self.filling.reserve(page, bytes, For::Change { is_first });
        self.note_table();
        if !has_room && self.without != self.txid {
            (self.without, self.missed) = (self.txid, self.missed + 1);
        }
        has_room
    }

    /// Adds a patch of a page, for which there is room. `above` is the page of the branch above it, `added` the change of the
    /// entry, if there is one.
    pub(super) fn push(
        &mut self,
        (page, above): (Pgid, Option<Pgid>),
        header: PatchHeader,
        (changes, added): (&mut Changes, Option<usize>),
        entry: (&[u8], &[u8]),
    ) {
        let Some((at, slot)) = self.filling.next() else { return };
        let oldest = self.newest_header(page).map_or(slot, |(_, newest)| newest.oldest);
        self.patch.clear();
        write_patch(&mut self.patch, at, &header.since(oldest), changes, added, entry);
        self.added.extend(self.filling.push(page, above, &self.patch));
    }

    /// How many patches this transaction has added.
    pub(super) fn added(&self) -> usize {
        self.added.len()
    }

    /// The transaction is over; what it has added and not committed is taken back.
    pub(super) fn end(&mut self) {
        self.is_on = false;
        while self.take_back() {}
    }

    /// Takes back what was added last; `false` where nothing was.
    pub(super) fn take_back(&mut self) -> bool {
        self.added.pop().map(|before| self.filling.take_back(before)).is_some()
    }

    /// These pages are about to be written: nobody reads what was on them.
    pub(crate) fn forget(&mut self, pages: &[Run]) {
        if self.filling.table().is_some() {
            // Also those within a run, which begins no leaf: who copies pages asks for each.
            for page in pages.iter().flat_map(|run| run.start..run.start + run.len) {
                self.filling.forget(page);
            }
        }
    }

    /// The transaction is committed, and about to be shown. The pages that it has freed are only read by who reads an earlier
    /// state. What was on the pages of `branches` is on others now. `is_whole` where nothing is left in memory.
    pub(super) fn committed(&mut self, freed: &[Run], branches: &[(Pgid, Pgid)], is_whole: bool) {
        self.added.clear();
        if self.filling.table().is_some() {
            self.filling.branches_moved(branches);
            for run in freed {
                self.filling.leave(run.start);
            }
        }
        self.clear_if_done(is_whole);
    }

    /// Where no leaf has patches any more, the memory begins anew, and with it the names: a number has one meaning in all
    /// tables that follow one another.
    fn clear_if_done(&mut self, is_whole: bool) {
        if is_whole || self.live() == 0 && !self.filling.is_little() {
            self.filling.clear();
            self.names.clear();
            self.numbers.clear();
            self.note_table();
        }
    }

    /// Gives all memory back that nobody has.
    pub(crate) fn let_go(&mut self) {
        self.note_table();
        self.filling.let_go();
    }

    /// The newest state does not lead to this page any more.
    pub(crate) fn leave(&mut self, page: Pgid) {
        self.filling.leave(page);
        self.clear_if_done(false);
    }

    /// All pages of buckets that were deleted are found.
    pub(crate) fn found_all(&mut self) {
        self.names.found_all();
    }

    /// As [`Names::check_gone`], of the newest state.
    pub(crate) fn check_gone(&self, page: Pgid, bucket: u32) -> Result<()> {
        self.names.check_gone(page, bucket)
    }

    /// Whether the memory is so full that its oldest slabs are to be given back, which nobody was told yet.
    pub(crate) fn is_due(&mut self) -> bool {
        self.filling.is_due_first()
    }

    /// The next commit is to tell again whether it is.
    pub(crate) fn is_not_told(&mut self) {
        self.filling.is_not_told();
    }

    /// All leaves of the newest state that refer to these slabs were taken apart: what else does was cut off with its bucket.
    pub(crate) fn leave_all_of(&mut self, oldest: &Oldest) {
        let Some(table) = self.filling.table().cloned() else { return };
        let refers = |at: u32| table.header(at).is_some_and(|header| oldest.are_meant(header));
        for (page, _) in table.all().filter(|&(_, at)| refers(at)) {
            self.leave(page);
        }
    }

    /// The slabs that are to be given back, where there still are too many.
    pub(crate) fn oldest(&mut self) -> Option<Oldest> {
        let oldest = self.filling.oldest();
        self.passes += u64::from(oldest.is_some());
        oldest
    }

    /// Has what these leaves have in the oldest slabs lie in the newest one; `false` where there is no room for that.
    pub(crate) fn move_on(&mut self, pages: &[Pgid], oldest: &Oldest) -> bool {
        let moved = pages.iter().all(|&page| {
            let is_meant = self.newest_header(page).is_some_and(|(_, header)| oldest.are_meant(header));
            !is_meant || self.filling.move_on(page, &mut self.patch)
        });
        self.note_table();
        moved
    }

    /// Prepares for [`Self::begin_slab`] to take no time, in steps of so many entries; whether nothing is left to do.
    pub(crate) fn prepare(&mut self, entries: usize) -> bool {
        self.filling.prepare(entries)
    }

    /// The memory as it is now, which stays as it is, and the slots of its slabs, from the oldest on; `None` where there is
    /// none, or no room for what comes.
    pub(crate) fn begin_slab(&mut self) -> Option<(Arc<Table>, Vec<u8>)> {
        let begun = self.filling.begin_slab();
        self.note_table();
        begun
    }

    /// The leaf of a page was written to page `to` as `written` tells: what has changed since is told of that one. `false`
    /// where there is no room for it.
    pub(super) fn rebase(&mut self, page: Pgid, to: Pgid, written: Patched<'_>) -> bool {
        let before = self.filling.rebase(page, to, written, &mut self.patch);
        self.note_table();
        self.added.extend(before);
        before.is_some()
    }

    /// From now on, until there was a checkpoint, no more leaves get patches; or they do again.
    pub(crate) fn close(&mut self, is_closing: bool) {
        self.is_closing = is_closing;
    }

    /// The memory, and the names of the buckets that its patches speak of.
    pub(crate) fn to_be_written(&self) -> (Recents, Names) {
        (self.recents.clone(), self.names.clone())
    }
}

impl fmt::Debug for Patcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patcher").field("bytes", &self.bytes).field("live", &self.live()).finish_non_exhaustive()
    }
}
