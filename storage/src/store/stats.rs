//! Figures about a database: what a snapshot is, who uses it, and what commits have cost.

use std::fmt;
use std::time::Duration;

use crate::format::{Pgid, TxId};
use crate::journal::Journal;
use crate::tree::MemoryStats;

/// Figures about a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The newest transaction.
    pub txid: TxId,
    /// Bytes of a page.
    pub page_size: u32,
    /// The high-water mark: pages that the file uses or has used, the metas included.
    pub pages: Pgid,
    /// The size in bytes that the file may not grow past, where there is one.
    pub max_size: Option<u64>,
    /// Pages that could be used when the last write transaction ended; `None` read-only, unless the
    /// freelist was pre-loaded.
    pub free_pages: Option<u64>,
    /// Pages that are free once the readers (and the durable state) that can see them are gone;
    /// those that the last commit freed are among them. `None` as above.
    pub pending_pages: Option<u64>,
    /// Read transactions that are open.
    pub open_readers: usize,
    /// For how long the oldest snapshot that is still read has not been the newest: from then on it keeps pages from
    /// being used again. `None` where all readers see the newest state.
    pub oldest_reader_age: Option<Duration>,
    /// The transaction of that snapshot.
    pub oldest_reader: Option<TxId>,
    /// Commits that are not durable yet.
    pub unsynced_commits: u64,
    /// What commits have done since the database was opened.
    pub commits: CommitStats,
    /// The journal's; `None` where there is none.
    pub journal: Option<JournalFigures>,
}

/// Figures about a journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalFigures {
    /// Drawn anew at each opening: numbers of transactions are counted on within it. Where commits are not synced one by
    /// one, a power cut can take some, and their numbers come again.
    pub epoch: u64,
    /// Transactions that were found in the journal and not in the file when the database was opened, and done again.
    pub replayed: u64,
    /// The transaction with which it had been closed, where the database was opened with a file that was changed without it
    /// since: by another program, or by taking its place.
    pub changed_since: Option<u64>,
    /// What it ended with then was not whole, and nothing showed that it had been synced: a crash cut it off, or it was the
    /// newest, and damaged. It was passed over.
    pub torn: bool,
    /// How long that took, with the checkpoint after it; zero where there was nothing to do.
    pub replay_time: Duration,
    /// Commits that were recorded since the database was opened.
    pub records: u64,
    /// Bytes that were written to the journal since then.
    pub bytes_written: u64,
    /// Bytes of records that the file does not hold yet; one that is shorter than half of the blocks that it takes counts that.
    pub since_checkpoint: u64,
    /// After so many of them a checkpoint is due, as [`JournalOptions::checkpoint_size`](crate::JournalOptions::checkpoint_size)
    /// says.
    pub checkpoint_size: u64,
    /// Files of the journal, and their bytes: those that are written, kept, and ready to be written over.
    pub segments: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// How often the file was brought up to date since the database was opened, closing it aside.
    pub checkpoints: u64,
    /// For how long writes have waited for that, the longest time and the last.
    pub longest_stall: Duration,
    /// The last time.
    pub last_stall: Duration,
    /// Bytes that commits may keep what is new in, as [`JournalOptions::memory`](crate::JournalOptions::memory) says; twice as
    /// many while readers still see what was in it.
    pub memory: u64,
    /// Bytes of it that are taken.
    pub memory_used: u64,
    /// Bytes that the process has for it: what only readers of earlier states see, and what is free again, among them.
    pub memory_allocated: u64,
    /// Leaves that are in it as they are now, and in the file as they were.
    pub memory_leaves: u64,
    /// How often the oldest of it was given back beside the commits, because it was nearly full.
    pub memory_passes: u64,
    /// Transactions that were held back before they began: 4 ms at most because it was nearly full; mostly 50 ms, 2 s at most,
    /// because the journal filled faster than a checkpoint was made.
    pub memory_waits: u64,
    /// Transactions that found nothing of it free: readers had it, or writes came faster than it was given back.
    pub memory_missed: u64,
    /// When it was last looked for some of it, readers of earlier states had all that they may keep from being used again.
    pub memory_kept: bool,
}

impl JournalFigures {
    /// `waits`: how many transactions were held back for the want of memory or of room in the journal.
    pub(super) fn new(
        journal: &Journal,
        replay_time: Duration,
        stalls: &Stalls,
        memory: &MemoryStats,
        waits: u64,
    ) -> Self {
        let stats = journal.stats();
        Self {
            epoch: journal.epoch(),
            replayed: stats.replayed,
            changed_since: stats.changed_since,
            torn: stats.torn,
            replay_time,
            records: stats.records,
            bytes_written: stats.bytes_written,
            since_checkpoint: stats.since_checkpoint,
            checkpoint_size: stats.checkpoint_size,
            segments: stats.segments,
            bytes: stats.bytes,
            checkpoints: stalls.count,
            longest_stall: stalls.longest,
            last_stall: stalls.last,
            memory: memory.bytes,
            memory_used: memory.used,
            memory_allocated: memory.allocated,
            memory_leaves: memory.leaves,
            memory_passes: memory.passes,
            memory_waits: waits,
            memory_missed: memory.missed,
            memory_kept: memory.is_kept,
        }
    }
}

/// How often, and for how long, writes have waited for checkpoints.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stalls {
    count: u64,
    longest: Duration,
    last: Duration,
}

impl Stalls {
    pub(super) fn note(&mut self, time: Duration) {
        self.count += 1;
        self.last = time;
        self.longest = self.longest.max(time);
    }
}

/// What commits have done since the database was opened; all zeros with statistics off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommitStats {
    /// Commits, sync points without a commit among them.
    pub count: u64,
    /// Time that they took, from the call to the return.
    pub time: Duration,
    /// Syncs: two to a synced commit, or one with a journal.
    pub syncs: u64,
    /// The part of `time` that was spent in syncs; what a thread syncs beside the commits is none of it.
    pub sync_time: Duration,
    /// The longest such sync.
    pub sync_longest: Duration,
    /// Pages that were allocated.
    pub pages_allocated: u64,
    /// Pages that were freed.
    pub pages_freed: u64,
    /// Nodes that were given new pages (bbolt: `Spill`).
    pub spills: u64,
    /// Parts beyond the first that nodes were split into (bbolt: `Split`).
    pub splits: u64,
    /// Nodes that were looked at because something was deleted in them (bbolt: `Rebalance`).
    pub rebalances: u64,
    /// Write calls, the metas' among them.
    pub writes: u64,
    /// Bytes that they wrote.
    pub bytes_written: u64,
}

impl CommitStats {
    /// A sync, for which commits have waited so long.
    pub(super) fn count_sync(&mut self, time: Duration) {
        self.syncs += 1;
        self.sync_time += time;
        self.sync_longest = self.sync_longest.max(time);
    }

    /// So many write calls wrote so many bytes.
    pub(super) fn count_writes(&mut self, writes: u64, bytes: u64) {
        self.writes += writes;
        self.bytes_written += bytes;
    }
}

/// What the last write transaction left: kept where it can be read while another is open.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    pub(crate) free_pages: Option<u64>,
    pub(crate) pending_pages: Option<u64>,
    pub(crate) unsynced_commits: u64,
    pub(crate) commits: CommitStats,
    pub(crate) journal: Option<JournalFigures>,
}

/// A file's meta page that cannot be read, beside one that can; see [`Db::damaged_meta`](crate::Db::damaged_meta).
///
/// The two metas are written in turn, so that a power cut in the middle of a commit can leave one like this, of a transaction
/// that nobody was told is committed. Damage to the meta of a transaction that was acknowledged looks just the same: it is in
/// doubt whether something is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedMeta {
    /// Its page: 0 or 1.
    pub page: Pgid,
    /// The newest transaction that is left: the other meta's, or the damaged one's, if it is known.
    pub newest_left: TxId,
    /// The journal has the damaged meta, and shows that it was the newest one: nothing is lost. Opening the file for writing
    /// has put it back.
    pub is_known: bool,
}

impl fmt::Display for DamagedMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { page, newest_left, is_known } = self;
        write!(f, "meta {page} is damaged: ")?;
        if *is_known {
            write!(f, "the journal has it, of transaction {newest_left}; nothing is lost")
        } else {
            write!(f, "transaction {newest_left} is the newest left, and a later one may be lost")
        }
    }
}
