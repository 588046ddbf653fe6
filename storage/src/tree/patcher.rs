//! What the writer has of the patches: the memories, whose leaves they are of, and what this transaction has added.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use fnv::FnvBuildHasher;

use crate::format::{Changes, PatchId, Pgid, TxId};
use crate::pages::{Before, Filling, Patches, Recents, Run};

/// Memories at most: two that are in use, and as many that readers of earlier states still have.
const MOST_MEMORIES: usize = 4;
/// So many transactions go without before there are more than two: who only reads something has its snapshot for less.
const PATIENCE: u32 = 64;
/// So many eighths of a memory are filled before its leaves are written anew: what is left is for their patches meanwhile.
const TURN: usize = 5;
/// Bytes of names of buckets at most, before leaves of others are written as if there were no memory.
const MOST_NAMES: usize = 1 << 20;

/// The patches, as the writer has them. It goes from one write transaction to the next.
pub(crate) struct Patcher {
    /// Bytes of each memory.
    each: usize,
    /// All memories, also those that only readers have.
    all: Vec<Arc<Patches>>,
    newer: Option<Filling>,
    elder: Option<Filling>,
    /// The same, to read with.
    recents: Recents,
    pub(super) names: Names,
    /// The number of each bucket of this transaction that was looked up.
    pub(super) numbers: Vec<Option<u32>>,
    /// What this transaction has added, the last at the end.
    added: Vec<(Which, Before)>,
    /// The number of this transaction.
    pub(super) txid: TxId,
    /// This transaction may patch.
    pub(super) is_on: bool,
    /// A checkpoint writes all leaves anew: no more of them get patches.
    is_closing: bool,
    /// The file has no room for more leaves than have patches.
    is_short: bool,
    pub(super) changes: Changes,
    pub(super) bytes: Vec<u8>,
    /// How many transactions have begun without a memory, because readers have them, since there was another one.
    without: u32,
    passes: u64,
    missed: u64,
}

/// What is kept in memory, in figures.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MemoryStats {
    /// Bytes that there may be.
    pub(crate) bytes: u64,
    pub(crate) used: u64,
    /// Leaves with patches.
    pub(crate) leaves: u64,
    /// How often a memory became the elder one.
    pub(crate) passes: u64,
    /// Transactions that have begun without one.
    pub(crate) missed: u64,
}

/// One of the two memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Newer,
    Elder,
}

impl Patcher {
    /// With so many bytes of memory.
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            each: bytes / 2,
            all: Vec::new(),
            newer: None,
            elder: None,
            recents: Recents::default(),
            names: Names::default(),
            numbers: Vec::new(),
            added: Vec::new(),
            txid: 0,
            is_on: false,
            is_closing: false,
            is_short: false,
            changes: Changes::default(),
            bytes: Vec::new(),
            without: 0,
            passes: 0,
            missed: 0,
        }
    }

    pub(crate) fn stats(&self) -> MemoryStats {
        let used = self.fillings().map(Filling::used).sum();
        let (bytes, leaves) = (2 * self.each as u64, self.live());
        MemoryStats { bytes, used, leaves, passes: self.passes, missed: self.missed }
    }

    /// The transaction `txid` begins, which may patch.
    pub(super) fn begin(&mut self, txid: TxId) {
        self.txid = txid;
        self.is_on = true;
        self.numbers.clear();
        // One in which nothing counts any more is of no use when it is full.
        if self.newer.take_if(|newer| newer.live == 0 && newer.is_filled(TURN)).is_some() {
            self.note_recents();
        }
        if self.newer.is_none()
            && !self.is_closing
            && let Some(memory) = self.memory()
        {
            self.newer = Some(Filling::new(memory));
            self.note_recents();
        }
    }

    /// A memory that nobody has; `None` where readers have all that there may be, or there is none to be had.
    fn memory(&mut self) -> Option<Arc<Patches>> {
        let mut free = 0;
        self.all.retain_mut(|patches| {
            free += usize::from(Arc::get_mut(patches).is_some());
            // One is enough at a time.
            free <= 1 || Arc::strong_count(patches) > 1
        });
        if let Some(patches) = self.all.iter_mut().find(|patches| Arc::strong_count(patches) == 1) {
            Arc::get_mut(patches)?.clear();
            return Some(Arc::clone(patches));
        }
        self.without += 1;
        self.missed += 1;
        if self.all.len() == MOST_MEMORIES || self.all.len() >= 2 && self.without < PATIENCE {
            return None;
        }
        (self.without, self.missed) = (0, self.missed - 1);
        let patches = Arc::new(Patches::new(self.each).ok()?);
        self.all.push(Arc::clone(&patches));
        Some(patches)
    }

    fn note_recents(&mut self) {
        let patches = |filling: &Option<Filling>| filling.as_ref().map(|filling| Arc::clone(&filling.patches));
        self.recents = Recents { newer: patches(&self.newer), elder: patches(&self.elder), upto: TxId::MAX };
    }

    pub(super) fn recents(&self) -> &Recents {
        &self.recents
    }

    /// What readers of the state `upto` need, which this transaction makes.
    pub(super) fn published(&self, upto: TxId) -> Recents {
        let needed = |filling: &Option<Filling>| {
            filling.as_ref().filter(|filling| filling.live > 0).map(|filling| Arc::clone(&filling.patches))
        };
        Recents { newer: needed(&self.newer), elder: needed(&self.elder), upto }
    }

    fn fillings(&self) -> impl Iterator<Item = &Filling> {
        self.newer.iter().chain(&self.elder)
    }

    fn fillings_mut(&mut self) -> impl Iterator<Item = &mut Filling> {
        self.newer.iter_mut().chain(&mut self.elder)
    }

    pub(super) fn filling(&self, which: Which) -> Option<&Filling> {
        match which {
            Which::Newer => self.newer.as_ref(),
            Which::Elder => self.elder.as_ref(),
        }
    }

    fn filling_mut(&mut self, which: Which) -> Option<&mut Filling> {
        match which {
            Which::Newer => self.newer.as_mut(),
            Which::Elder => self.elder.as_mut(),
        }
    }

    /// How many leaves of the newest state have patches.
    pub(crate) fn live(&self) -> u64 {
        self.fillings().map(|filling| filling.live).sum()
    }

    /// Pages that it takes at most to write them all, and the branches above them, once the transaction has `freed` these.
    pub(crate) fn pages_to_write(&self, freed: &[Run]) -> u64 {
        let leaves: u64 =
            self.fillings().map(|filling| filling.pages_to_write(freed.iter().map(|run| run.start))).sum();
        // A bucket's root is in a leaf of the one that it is in, which has branches above it, too.
        if leaves == 0 { 0 } else { leaves + 2 * self.names.list.len() as u64 }
    }

    /// From now on only leaves that have patches get more; or others do again, too.
    pub(crate) fn note_room(&mut self, is_short: bool) {
        self.is_short = is_short;
    }

    /// How many leaves of the elder memory are to be written.
    pub(crate) fn live_in_elder(&self) -> u64 {
        self.elder.as_ref().map_or(0, |elder| elder.live)
    }

    /// In which memory a page has patches; of a page that has none, where it may get one.
    pub(super) fn place_of(&self, page: Pgid) -> Option<(Which, bool)> {
        let has = |filling: &Option<Filling>| {
            filling.as_ref().is_some_and(|filling| filling.live > 0 && filling.patches.newest(page).is_some())
        };
        if has(&self.newer) {
            Some((Which::Newer, false))
        } else if has(&self.elder) {
            Some((Which::Elder, false))
        } else {
            (self.newer.is_some() && !self.is_closing && !self.is_short).then_some((Which::Newer, true))
        }
    }

    pub(super) fn is_patched(&self, page: Pgid) -> bool {
        self.place_of(page).is_some_and(|(_, is_first)| !is_first)
    }

    /// The newest patch of a page.
    pub(crate) fn newest(&self, page: Pgid) -> Option<PatchId> {
        let (which, is_first) = self.place_of(page)?;
        let newest = self.filling(which)?.newest(page).filter(|_| !is_first);
        newest.map(|(at, header)| PatchId::new(at, header))
    }

    /// Adds what [`Self::bytes`] has to a memory, as the newest patch of a page, which then lies at `at`.
    /// `above` is the page of the branch above it.
    pub(super) fn push(&mut self, which: Which, page: Pgid, above: Option<Pgid>, at: u32) {
        let bytes = std::mem::take(&mut self.bytes);
        let before = self.filling_mut(which).map(|filling| filling.push(page, above, &bytes, at));
        self.added.extend(before.map(|before| (which, before)));
        self.bytes = bytes;
    }

    /// Whether this transaction has added something.
    pub(super) fn has_added(&self) -> bool {
        !self.added.is_empty()
    }

    /// The transaction is over; what it has added and not committed is taken back.
    pub(super) fn end(&mut self) {
        self.is_on = false;
        while self.take_back() {}
    }

    /// Takes back what was added last; `false` where nothing was.
    pub(super) fn take_back(&mut self) -> bool {
        let Some((which, before)) = self.added.pop() else { return false };
        if let Some(filling) = self.filling_mut(which) {
            filling.take_back(before);
        }
        true
    }

    /// These pages are about to be written: nobody reads what was on them.
    pub(super) fn forget(&mut self, pages: &[Run]) {
        for filling in self.fillings_mut().filter(|filling| !filling.is_empty()) {
            for run in pages {
                filling.forget(run.start);
            }
        }
    }

    /// The transaction is committed, and about to be shown. The pages that it has freed are only read by who reads an earlier
    /// state. What was on the pages of `branches` is on others now.
    pub(super) fn committed(&mut self, freed: &[Run], branches: &[(Pgid, Pgid)]) {
        self.added.clear();
        for filling in self.fillings_mut().filter(|filling| !filling.is_empty()) {
            filling.branches_moved(branches);
            for run in freed {
                filling.leave(run.start);
            }
        }
        if self.elder.as_ref().is_some_and(|elder| elder.live == 0) {
            self.elder = None;
            self.note_recents();
        }
        if self.live() == 0 {
            self.names.clear();
            self.numbers.clear();
        }
    }

    /// The newest state has nothing in memory: it was written whole.
    pub(super) fn checkpointed(&mut self) {
        self.elder = None;
        // What is left of it is enough for a while; and who reads an earlier state keeps it.
        self.newer.take_if(|newer| newer.is_filled(4));
        self.newer.iter_mut().for_each(Filling::leave_all);
        self.is_closing = false;
        self.names.clear();
        self.note_recents();
    }

    /// The newest state does not lead to this page any more.
    pub(crate) fn leave(&mut self, page: Pgid) {
        self.fillings_mut().for_each(|filling| filling.leave(page));
        if self.live_in_elder() == 0 && self.elder.take().is_some() {
            self.note_recents();
        }
    }

    /// Where the newer memory is nearly full, and nothing is left in the elder one, it becomes that: its leaves are to be
    /// written anew.
    pub(crate) fn turn(&mut self) -> bool {
        if self.elder.is_some() || !self.newer.as_ref().is_some_and(|newer| newer.is_filled(TURN) && newer.live > 0) {
            return false;
        }
        self.elder = self.newer.take();
        self.newer = self.memory().map(Filling::new);
        self.passes += 1;
        self.note_recents();
        true
    }

    /// From now on, until there was a checkpoint, no more leaves get patches; or they do again.
    pub(crate) fn close(&mut self, is_closing: bool) {
        self.is_closing = is_closing;
    }

    /// The memories, and the names of the buckets that their patches speak of.
    pub(crate) fn to_be_written(&self, elder_only: bool) -> (Recents, Names) {
        let newer = self.recents.newer.clone().filter(|_| !elder_only);
        (Recents { newer, ..self.recents.clone() }, self.names.clone())
    }
}

impl fmt::Debug for Patcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patcher").field("each", &self.each).field("live", &self.live()).finish_non_exhaustive()
    }
}

/// Buckets, by number: 0 is the root bucket.
#[derive(Debug, Default, Clone)]
pub(crate) struct Names {
    /// The number of the bucket that each is in, and its name there.
    list: Vec<(u32, Box<[u8]>)>,
    numbers: HashMap<Box<[u8]>, u32, FnvBuildHasher>,
    bytes: usize,
}

impl Names {
    /// The number of a bucket, which it is given where it has none.
    pub(super) fn number(&mut self, within: u32, name: &[u8]) -> Option<u32> {
        if let Some(number) = self.known(within, name) {
            return Some(number);
        }
        self.bytes += 2 * (name.len() + 64);
        if self.bytes > MOST_NAMES {
            return None;
        }
        self.list.push((within, name.into()));
        let number = u32::try_from(self.list.len()).ok()?;
        self.numbers.insert(key(within, name), number);
        Some(number)
    }

    /// The number of a bucket, if it has one.
    pub(super) fn known(&self, within: u32, name: &[u8]) -> Option<u32> {
        self.numbers.get(&key(within, name)).copied()
    }

    /// The names that lead to a bucket.
    pub(crate) fn path(&self, number: u32) -> Vec<&[u8]> {
        let mut path = Vec::new();
        let mut next = number;
        while let Some((within, name)) = (next as usize).checked_sub(1).and_then(|place| self.list.get(place)) {
            path.push(&**name);
            next = *within;
        }
        path.reverse();
        path
    }

    /// Whether bucket `number` is `above`, or lies in it.
    pub(super) fn is_within(&self, number: u32, above: u32) -> bool {
        let mut next = number;
        while next != above {
            match (next as usize).checked_sub(1).and_then(|place| self.list.get(place)) {
                Some((within, _)) => next = *within,
                None => return false,
            }
        }
        true
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

fn key(within: u32, name: &[u8]) -> Box<[u8]> {
    [&within.to_le_bytes(), name].concat().into()
}
