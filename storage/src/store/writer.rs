//! The write side of a database: who has it may change the file. There is one.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::begin::Word;
use super::commit::Sync;
use super::detached::Detached;
use super::durable::is_recorded;
use super::room::Lacks;
use super::{CommitStats, Durability, Shared, Stalls};
use crate::Result;
use crate::disk::Map;
use crate::format::{Meta, Pgid, TxId};
use crate::journal::Journal;
use crate::pages::{Freelist, Pages, Pins, Run};
use crate::tree::{MemoryStats, Spare, Work};

/// Smallest map: bbolt's.
const MIN_MAP: u64 = 1 << 15;
/// From here on maps grow by this much: bbolt's.
const MAP_STEP: u64 = 1 << 30;

/// Bytes that the map of `size` bytes is made to cover, so that it need not be made anew often.
pub(crate) fn map_size(size: u64) -> u64 {
    if size <= MAP_STEP {
        size.next_power_of_two().max(MIN_MAP)
    } else {
        size.checked_next_multiple_of(MAP_STEP).unwrap_or(u64::MAX)
    }
}

/// What only the writer may touch.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) freelist: Freelist,
    /// Length of the file in bytes.
    pub(crate) file_len: u64,
    /// Up to where the disk keeps room for it, beyond the pages that are written.
    pub(crate) kept_len: u64,
    pub(super) lacks: Lacks,
    /// When a checkpoint that is due for the journal's length is tried again, where there was no room for one.
    pub(super) retry_at: Option<Instant>,
    /// The length that it had before it was made longer for that.
    pub(super) len_without_room: Option<u64>,
    /// The part of it that is locked in memory, where that is asked for; opening has locked all of it.
    locked_len: u64,
    /// Bytes that the newest map covers, or will cover once this commit is published.
    pub(crate) map_len: u64,
    pub(crate) page_size: u64,
    /// The meta that the file would be opened with after a crash.
    pub(crate) durable: Meta,
    /// What it says of the file, and what it is to say.
    pub(super) says: Word,
    pub(super) wanted: Word,
    /// The high-water mark of the file's other meta, or more.
    pub(crate) older_mark: Pgid,
    /// What is to be free, and not in the freelist yet.
    pub(crate) detached: Detached,
    /// The pages of the freelist that `durable` refers to.
    pub(crate) stored_freelist: Option<Run>,
    /// The state that is being written to the file [beside the commits](super::beside).
    pub(super) beside: Option<Coming>,
    /// What was committed since.
    pub(crate) unsynced: Option<Unsynced>,
    /// Where all commits are recorded, if that is asked for.
    pub(crate) journal: Option<Journal>,
    /// What it had is being done again, which is to take as little room as it can.
    pub(super) is_replaying: bool,
    /// How many patches a commit has added lately.
    pub(super) usual_patches: usize,
    /// Bytes of the disk into which the file may not grow.
    pub(super) left: u64,
    /// How long it took to do again what it had, and to bring the file up to that.
    pub(super) replay_time: Duration,
    /// What was recorded in it since it was synced, and how many commits are being synced.
    pub(crate) unsynced_records: Option<Unsynced>,
    pub(crate) syncing: u64,
    /// The thread that syncs was asked for the next checkpoint.
    pub(crate) checkpoint_asked: bool,
    /// How long checkpoints have kept writes waiting.
    pub(crate) stalls: Stalls,
    /// What commits keep in memory.
    pub(crate) memory: MemoryStats,
    pub(crate) commits: CommitStats,
    /// Memory of the last transaction, for the next.
    pub(crate) spare: Spare,
    /// The same for what is about to be written.
    pub(crate) buffer: Vec<u8>,
    /// Free pages that are not in the freelist, because leaves are being written to them.
    pub(crate) set_aside: u64,
    /// How many are making the file smaller: meanwhile all commits take the lowest free pages.
    pub(crate) shrinking: usize,
    /// The length in bytes that the file may not grow past; none while a journal is done again.
    pub(super) max_size: Option<u64>,
    /// What a file that was larger already may grow to by deletions.
    pub(super) most_for_deletions: Option<u64>,
}

/// A state that is being written to the file. Its pages are read until that ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Coming {
    pub(super) txid: TxId,
    /// No other came to the file since it was begun.
    pub(super) is_next: bool,
}

/// Commits that are not durable yet.
#[derive(Debug)]
pub(crate) struct Unsynced {
    pub(crate) commits: u64,
    pub(super) since: Instant,
    /// When the first of them that may not wait for ever is to be synced, and for how long it could wait.
    pub(super) due: Option<Instant>,
    pub(super) every: Option<Duration>,
}

impl Unsynced {
    fn due_within(&mut self, every: Duration) -> Option<Instant> {
        let at = Instant::now().checked_add(every)?;
        let is_first = self.due.is_none_or(|due| at < due);
        is_first.then(|| {
            self.every = Some(every);
            *self.due.insert(at)
        })
    }
}

impl Default for Unsynced {
    fn default() -> Self {
        Self { commits: 0, since: Instant::now(), due: None, every: None }
    }
}

impl Writer {
    pub(crate) fn new(
        freelist: Freelist,
        stored_freelist: Option<Run>,
        durable: Meta,
        file_len: u64,
        map_len: u64,
    ) -> Self {
        let page_size = u64::from(durable.page_size);
        let older_mark = file_len / page_size;
        let commits = CommitStats::default();
        Self {
            freelist,
            file_len,
            kept_len: 0,
            lacks: Lacks::default(),
            retry_at: None,
            len_without_room: None,
            locked_len: file_len,
            map_len,
            page_size,
            durable,
            says: Word::of(&durable, false),
            wanted: Word::Any,
            older_mark,
            detached: Detached::default(),
            stored_freelist,
            beside: None,
            unsynced: None,
            journal: None,
            is_replaying: false,
            usual_patches: 0,
            left: 0,
            replay_time: Duration::ZERO,
            unsynced_records: None,
            syncing: 0,
            checkpoint_asked: false,
            stalls: Stalls::default(),
            memory: MemoryStats::default(),
            commits,
            spare: Spare::default(),
            buffer: Vec::new(),
            set_aside: 0,
            shrinking: 0,
            max_size: None,
            most_for_deletions: None,
        }
    }

    /// Whether state `txid` is what the file holds, and its freelist if that is asked for.
    pub(crate) fn is_durable(&self, txid: TxId, with_freelist: bool) -> bool {
        let is_wanted = self.durable.txid == txid && self.says_what_is_wanted();
        is_wanted && (self.stored_freelist.is_some() || !with_freelist)
    }

    /// Whether a commit now has to be followed by a sync point.
    pub(crate) fn must_sync(&self, durability: Durability) -> bool {
        match durability {
            Durability::Always => true,
            Durability::Never => false,
            Durability::Interval { every, .. } if every.is_zero() => true,
            Durability::Interval { every, commits } => match self.not_durable() {
                None => commits <= 1,
                Some(unsynced) => unsynced.commits + 1 >= commits || unsynced.since.elapsed() >= every,
            },
        }
    }

    /// The commits that a power cut would take.
    pub(crate) fn not_durable(&self) -> Option<&Unsynced> {
        if self.journal.is_some() { self.unsynced_records.as_ref() } else { self.unsynced.as_ref() }
    }

    /// What was just committed unsynced is to be synced within `every`: when, unless something else is due before.
    pub(crate) fn due_within(&mut self, every: Duration) -> Option<Instant> {
        let unsynced = if self.journal.is_some() { &mut self.unsynced_records } else { &mut self.unsynced };
        unsynced.as_mut()?.due_within(every)
    }

    /// What was just recorded is to be in the file within `every`: when, unless something else is due before.
    pub(crate) fn checkpoint_due_within(&mut self, every: Duration) -> Option<Instant> {
        let unsynced = self.unsynced.as_mut().filter(|_| self.journal.is_some())?;
        unsynced.due_within(every)
    }

    /// Whether a checkpoint that was asked for has not been done.
    pub(crate) fn wants_checkpoint(&self) -> bool {
        self.checkpoint_asked || self.checkpoint_due().is_some_and(|due| due <= Instant::now())
    }

    /// Takes note of what is kept in memory now.
    pub(super) fn note_memory(&mut self) {
        self.memory = self.spare.patcher.as_ref().map(|patcher| patcher.stats()).unwrap_or_default();
    }

    /// When the next checkpoint is due, however little is written.
    pub(crate) fn checkpoint_due(&self) -> Option<Instant> {
        self.unsynced.as_ref().filter(|_| self.journal.is_some()).and_then(|unsynced| unsynced.due)
    }

    /// Whose pages must stay as they are: those of the readers, of the durable state, and of one that is about to be. The
    /// newest snapshot is left out: no page of it is free before the next one is published.
    pub(crate) fn pins(&self, shared: &Shared) -> Pins {
        let durable = self.unsynced.is_some().then_some(self.durable.txid);
        Pins { readers: shared.readers.older_txids(), keepers: [durable, self.beside.map(|coming| coming.txid)] }
    }

    /// Makes the pages that nobody can see any more available to the next transaction. `pages` are those of the newest
    /// snapshot.
    pub(crate) fn release_pages(&mut self, shared: &Shared, pages: Pages<'_>) -> Result<()> {
        self.free_detached(pages);
        let mut released = self.freelist.release(self.pins(shared));
        // Where a file is to become smaller, or must not grow, all that is free is wanted now.
        if self.shrinking > 0 || self.max_size.or(shared.options.max_size).is_some() {
            released = released.and_then(|()| self.freelist.release_rest());
        }
        // A freelist that contradicts itself would hand out a page twice.
        released.map_err(|error| shared.poison("use the freelist of", io::Error::other(error.to_string())))
    }

    /// Sees to it that the journal, where there is one, has room for what is to be written to it.
    pub(crate) fn reserve_journal(&mut self, work: &Work, sync: Sync) -> io::Result<()> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let bytes = || work.with_effects(|effects| effects.iter().map(|piece| piece.len() as u64).sum());
        journal.reserve(is_recorded(work, sync).then(bytes))
    }

    /// Whether every page that nothing refers to is in the freelist.
    pub(crate) fn is_accounted_for(&self) -> bool {
        self.detached.is_accounted_for() && self.set_aside == 0
    }

    /// A map of the file as it has grown, for a state that ends at page `mark`: the current one, or a new generation.
    pub(crate) fn map(&mut self, shared: &Shared, mark: Pgid) -> io::Result<Arc<Map>> {
        let current = shared.readers.current();
        let len = usize::try_from(self.map_len).map_err(io::Error::other)?;
        // A growing file shows in a map of it, even where the map is no longer than it was; memory may have moved.
        let anew = len > current.map.len() || !shared.disk.shows(&current.map);
        let map = if anew { shared.disk.map(len).map(Arc::new)? } else { Arc::clone(&current.map) };
        if shared.options.mlock && (anew || mark * self.page_size > self.locked_len) {
            map.lock(usize::try_from(self.file_len).map_err(io::Error::other)?).map_err(|error| {
                let what = format!("to keep the file's {} bytes in memory (RLIMIT_MEMLOCK): {error}", self.file_len);
                io::Error::new(io::ErrorKind::OutOfMemory, what)
            })?;
            self.locked_len = self.file_len;
        }
        Ok(map)
    }

    /// After a commit that failed the next one starts from the map that there is, and need not map or lock more.
    pub(crate) fn keep_map(&mut self, shared: &Shared) {
        self.map_len = shared.readers.current().map.len() as u64;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
mod tests {
    use super::map_size;

    #[test]
    fn maps_double_to_1_gib_and_then_grow_by_1_gib() {
        let cases = [
            (0, 1 << 15),
            (1 << 15, 1 << 15),
            ((1 << 15) + 1, 1 << 16),
            (1 << 30, 1 << 30),
            ((1 << 30) + 1, 2 << 30),
            (u64::MAX - 1, u64::MAX),
        ];
        for (size, expected) in cases {
            assert_eq!(map_size(size), expected, "{size}");
        }
    }
}
