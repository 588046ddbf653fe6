//! The journal as it is written: what is recorded, what is synced, what is in the file.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::block::{BLOCK_LEN, ENTRY_HEADER, EntryKind, Header, Position, blocks_of};
use super::retain::{History, JournalLimits};
use super::segment::{Current, Spare};
use super::spares::Making;
use super::stats::JournalStats;
use super::sync::Outcome;
use super::tail::Tail;
use super::write::{Buffer, Entry, next_number};
use super::{JournalPosition, MetaBytes, PendingSync, Waiting};
use crate::base::TxId;
use crate::disk::{Disk, JournalFolder};
use crate::{Error, Result};

/// The journal as its one writer has it.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(super) folder: Arc<dyn JournalFolder>,
    pub(super) limits: JournalLimits,
    pub(super) current: Current,
    /// Full segments that are not synced, in their order.
    pub(super) unsynced: Vec<(u64, Arc<dyn Disk>)>,
    pub(super) synced: Position,
    /// The last transaction up to there.
    pub(super) synced_txid: TxId,
    /// What those who follow it are told.
    pub(super) tail: Arc<Tail>,
    pub(super) history: History,
    pub(super) spares: Vec<Spare>,
    /// The shortest one, for where no other can be had: once the file holds everything, or by the next opening.
    pub(super) last_resort: Option<Spare>,
    /// The thread that makes the next one.
    pub(super) making: Option<Making>,
    /// The checksum of the last entry, and the number of the last record.
    pub(super) last_crc: u32,
    pub(super) follows: TxId,
    /// The newest meta that is on the disk, and what it contains.
    pub(super) base: (TxId, MetaBytes),
    /// The last link, and how many bytes of records there were before it.
    linked: Option<(TxId, MetaBytes, u64)>,
    link_segment: u64,
    /// The segment with the link of that meta, and the first one whose header names the meta.
    pub(super) named_in: (u64, u64),
    /// Bytes of records, over all, as they [count](Entry::counts).
    recorded: u64,
    checkpoint: Checkpoint,
    pub(super) figures: JournalStats,
    pub(super) buffer: Buffer,
    /// The last entry says that the database was closed.
    pub(super) closed: bool,
    pub(super) outcome: Arc<Outcome>,
}

/// Bytes of records up to the state that the last checkpoint has brought to the file, and those that came while one was made.
#[derive(Debug, Default)]
struct Checkpoint {
    upto: u64,
    meanwhile: u64,
}

impl Journal {
    /// Goes on behind what was found, in a segment of its own: what was found may be in the system's cache only, and is not
    /// appended to. `base` is the newest meta on the disk, and `contains` the last transaction in it; `now_ms` the time, in
    /// milliseconds since 1970.
    ///
    /// When this returns, what was found and the new segment's header are synced.
    pub(crate) fn begin(
        folder: Arc<dyn JournalFolder>,
        limits: &JournalLimits,
        after: Waiting,
        base: &MetaBytes,
        contains: TxId,
        now_ms: u64,
    ) -> Result<Self> {
        let path = folder.path().to_path_buf();
        let limits = limits.within(folder.max_len());
        Self::begin_io(folder, limits, after, base, contains, now_ms)
            .map_err(Error::journal_io("begin the journal in", &path))
    }

    fn begin_io(
        folder: Arc<dyn JournalFolder>,
        limits: JournalLimits,
        after: Waiting,
        base: &MetaBytes,
        contains: TxId,
        now_ms: u64,
    ) -> io::Result<Self> {
        after.sync()?;
        let mut found = after.into_found(limits.keep, contains, now_ms);
        let (store, epoch) = (found.store.map_or_else(|| folder.random(), Ok)?, folder.random()?);
        let follows = found.last.max(contains);
        let header = Header {
            store,
            number: next_number(found.highest)?,
            generation: folder.random()?,
            epoch,
            time_ms: found.needed.now_ms,
            before: found.end,
            // What was found was synced just now.
            synced: found.end,
            before_crc: found.end_crc,
            carried: 0,
            follows,
            base: *base,
            contains,
        };
        let mut free = found.free(&*folder, &limits);
        let first = found.first(&mut free, &*folder, &limits)?;
        let current = Current::begin(first, header)?;
        current.disk.sync()?;
        folder.sync()?;
        let synced = Position { segment: header.number, offset: BLOCK_LEN };
        let newest = JournalPosition { epoch, txid: follows };
        let known = found.history.names().chain([(header.number, current.name.clone())]).collect();
        let doubtful = found.doubtful();
        let tail = Arc::new(Tail::new(Arc::clone(&folder), synced, newest, known, doubtful));
        let mut journal = Self {
            folder,
            limits,
            current,
            unsynced: Vec::new(),
            synced,
            synced_txid: follows,
            tail,
            history: found.history,
            spares: free,
            last_resort: found.last_resort,
            making: None,
            last_crc: header.before_crc,
            follows,
            base: (contains, *base),
            linked: None,
            link_segment: header.number,
            named_in: (header.number, header.number),
            recorded: found.waiting_bytes,
            checkpoint: Checkpoint::default(),
            figures: found.figures,
            buffer: Buffer::default(),
            closed: false,
            outcome: Arc::default(),
        };
        // Where records wait, the checkpoint of the opening is done first: it needs room, and makes segments free.
        if found.figures.replayed == 0 {
            journal.prepare_spare();
            journal.keep_last_resort();
        }
        Ok(journal)
    }

    /// Makes sure that a record with so many bytes of effects, where there is to be one, and a link after it find room
    /// without a new file. A link alone has the room that the last record left to it, whatever the disk says.
    ///
    /// # Errors
    /// A segment could not be made; nothing was written, and the journal goes on.
    pub(crate) fn reserve(&mut self, effects: Option<u64>) -> io::Result<()> {
        let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
        let record = effects.map(|effects| effects.checked_add(ENTRY_HEADER as u64).ok_or_else(too_large));
        let blocks = record.transpose()?.map_or(0, blocks_of);
        self.reserve_blocks(blocks.checked_add(1).ok_or_else(too_large)?)
    }

    /// The same for a link after which there is to be room for another one: the file holds less than the journal then.
    ///
    /// # Errors
    /// As [`Self::reserve`].
    pub(crate) fn reserve_two_links(&mut self) -> io::Result<()> {
        self.reserve_blocks(2)
    }

    fn reserve_blocks(&mut self, blocks: u64) -> io::Result<()> {
        let needed = blocks.checked_mul(BLOCK_LEN).ok_or(io::ErrorKind::FileTooLarge)?;
        loop {
            let room = self.current.room() + self.spares.iter().map(Spare::room).sum::<u64>();
            if room >= needed {
                return Ok(());
            }
            let spare = self.obtain_spare(needed - room)?;
            self.spares.insert(0, spare);
        }
    }

    /// Appends the record of a transaction, whose effects are these bytes in this order. It is not synced.
    ///
    /// # Errors
    /// What the system says. Nothing is written any more then: what is there of this record may survive.
    pub(crate) fn append(&mut self, txid: TxId, time_ms: u64, effects: &[&[u8]]) -> io::Result<()> {
        self.record(&Entry { kind: EntryKind::Record, txid, time_ms, payload: effects }, false)
    }

    /// The same, and syncs it, with all before it.
    ///
    /// # Errors
    /// As [`Self::append`] and [`Self::sync`].
    pub(crate) fn append_synced(&mut self, txid: TxId, time_ms: u64, effects: &[&[u8]]) -> io::Result<()> {
        let record = Entry { kind: EntryKind::Record, txid, time_ms, payload: effects };
        if self.goes_through(&record) {
            return self.record(&record, true);
        }
        self.record(&record, false)?;
        self.sync()
    }

    fn record(&mut self, record: &Entry<'_>, through: bool) -> io::Result<()> {
        self.write(record, through)?;
        self.recorded += record.counts();
        self.figures.records += 1;
        if through {
            self.figures.syncs += 1;
            (self.synced, self.synced_txid) = (self.end(), record.txid);
        }
        Ok(())
    }

    /// Appends that `meta`, with all transactions up to `contains`, is about to be written; up to there so many bytes were
    /// [`recorded`](Self::recorded). It is not synced.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub(crate) fn link(&mut self, contains: TxId, meta: &MetaBytes, recorded: u64) -> io::Result<()> {
        let time_ms = self.current.last_time_ms;
        self.write(&Entry { kind: EntryKind::Link, txid: contains, time_ms, payload: &[&meta.0] }, false)?;
        self.linked = Some((contains, *meta, recorded));
        self.link_segment = self.current.header.number;
        self.figures.links += 1;
        Ok(())
    }

    /// Syncs all that was appended.
    ///
    /// # Errors
    /// What the system says. Nothing is written any more then: a second sync after a failed one says nothing.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.is_usable()?;
        let Some(pending) = self.begin_sync() else { return Ok(()) };
        pending.run()?;
        self.synced(&pending);
        Ok(())
    }

    /// What [`Self::sync`] would do now, to be run without the writer; `None` where there is nothing to sync. Tell
    /// [`Self::synced`] if it went well.
    pub(crate) fn begin_sync(&self) -> Option<PendingSync> {
        let upto = self.end();
        if upto == self.synced {
            return None;
        }
        let full = self.unsynced.iter().map(|(_, disk)| Arc::clone(disk));
        Some(PendingSync {
            disks: full.chain([Arc::clone(&self.current.disk)]).collect(),
            upto,
            txid: self.follows,
            outcome: Arc::clone(&self.outcome),
        })
    }

    /// Where the next entry begins.
    pub(super) fn end(&self) -> Position {
        Position { segment: self.current.header.number, offset: self.current.at }
    }

    /// Takes note that a sync went well.
    pub(crate) fn synced(&mut self, done: &PendingSync) {
        self.figures.syncs += done.disks.len() as u64;
        if (done.upto.segment, done.upto.offset) > (self.synced.segment, self.synced.offset) {
            (self.synced, self.synced_txid) = (done.upto, done.txid.max(self.synced_txid));
            self.unsynced.retain(|&(number, _)| number >= done.upto.segment);
        }
    }

    /// Tells those who follow it what is synced: once everybody sees it.
    pub(crate) fn tell(&self) {
        self.tail.tell(self.synced, self.synced_txid);
    }

    /// For who follows it.
    pub(crate) fn tail(&self) -> &Arc<Tail> {
        &self.tail
    }

    /// What tells the state that everything recorded has led to from others of the same number: metas say nothing of what is
    /// in the pages, and two copies of a file whose changes were of the same shape would have the same.
    pub(crate) fn stamp(&self) -> u32 {
        // A segment that was just begun has no entry.
        crc32c::crc32c_append(self.last_crc, &self.current.header.generation.to_le_bytes())
    }

    /// Bytes of records, over all.
    pub(crate) fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Bytes of records that are not in the file yet.
    pub(crate) fn since_checkpoint(&self) -> u64 {
        self.recorded - self.checkpoint.upto
    }

    /// From now on there may be so many bytes of records between two checkpoints, if that is more than before.
    pub(crate) fn allow(&mut self, checkpoint_size: u64) {
        self.limits.checkpoint_size = self.limits.checkpoint_size.max(checkpoint_size);
    }

    /// Whether a checkpoint is to be begun by a thread, so that none will be due while commits wait for it.
    pub(crate) fn is_checkpoint_near(&self) -> bool {
        let size = self.limits.checkpoint_size;
        // So early that it is not due before it is made.
        let enough = (size - size / 8).saturating_sub(self.checkpoint.meanwhile).clamp(size / 2, size / 4 * 3);
        self.limits.ahead && self.since_checkpoint() >= enough
    }

    /// Whether a checkpoint is due for the bytes of records. Where a thread `is_asked` for it there may be a quarter more.
    pub(crate) fn is_checkpoint_due(&self, is_asked: bool) -> bool {
        let more = if is_asked { self.limits.checkpoint_size / 4 } else { 0 };
        self.since_checkpoint() >= self.limits.checkpoint_size + more
    }

    /// From what is [recorded](Self::recorded) now up to where commits wait for a checkpoint that a thread makes: before it is
    /// due all the same.
    pub(crate) fn room(&self) -> Range<u64> {
        let size = self.limits.checkpoint_size;
        self.recorded..self.checkpoint.upto + size + size / 8
    }

    /// The meta of the last link is on the disk: what it contains is kept only as long as is asked.
    pub(crate) fn checkpointed(&mut self) {
        if let Some((contains, meta, recorded)) = self.linked.take() {
            self.base = (contains, meta);
            // Its number may be one that no record has: nothing was changed by it, and all before it is synced.
            self.synced_txid = self.synced_txid.max(contains);
            let meanwhile = (self.recorded - recorded).max(self.checkpoint.meanwhile / 2);
            self.checkpoint = Checkpoint { upto: recorded, meanwhile };
            self.named_in = (self.link_segment, self.current.header.number + 1);
            self.prepare_spare();
            self.trim();
            self.keep_last_resort();
        }
    }

    /// The folder, for who looks at its bytes.
    #[cfg(fuzzing)]
    pub(crate) fn folder(&self) -> Arc<dyn JournalFolder> {
        Arc::clone(&self.folder)
    }

    /// Drawn anew whenever the journal is begun.
    pub(crate) fn epoch(&self) -> u64 {
        self.current.header.epoch
    }
}
