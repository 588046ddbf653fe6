//! Making the newest state durable: in the file, at a *sync point*; or in the journal, where there is one.
//!
//! With a journal a sync point is a *checkpoint*: it does nothing for the commits, which are durable by their records, but
//! brings the file up to them. No meta is written before the journal has a link to it on the disk, whatever the durability,
//! because the links are what tells, after a crash, where the file stands in the journal.

use std::io;
use std::sync::MutexGuard;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::commit::{Sync, ids_used_up, write, write_out};
use super::place::tells_of_lost;
use super::{CommitStats, Reading, Shared, What, Writer};
use crate::format::{Meta, TxId};
use crate::journal::{Journal, MetaBytes};
use crate::tree::Work;
use crate::{Error, Result};

/// How long the thread that syncs waits before it tries again, where a checkpoint found no room.
const RETRY: Duration = Duration::from_secs(1);

/// Changes the newest state, once what no reader sees any more can be used. What the transaction has of the memory goes to the
/// next one, however it ends.
pub(super) fn in_work<T>(
    shared: &Shared,
    writer: &mut Writer,
    change: impl FnOnce(&mut Work, &mut Writer) -> Result<T>,
) -> Result<T> {
    let current = shared.readers.current();
    writer.release_pages(shared, current.pages())?;
    let mut work = Work::new(current, std::mem::take(&mut writer.spare), shared.options.fill);
    let done = change(&mut work, writer);
    if done.is_err() {
        // What nothing was made of.
        writer.freelist.give_back(&std::mem::take(&mut work.spare.taken));
    }
    writer.spare = work.take_spare();
    done
}

/// Makes the newest state durable in the file, if it is not; `store_freelist` also where only the list is missing and can be
/// stored.
pub(crate) fn sync_point(shared: &Shared, writer: &mut Writer, store_freelist: bool) -> Result<TxId> {
    shared.check_usable()?;
    let txid = shared.readers.current().meta.txid;
    let store_freelist = store_freelist && writer.is_accounted_for();
    if writer.is_durable(txid, store_freelist) {
        return Ok(txid);
    }
    let clock = Instant::now();
    let mut synced = write_point(shared, writer, store_freelist);
    // Once more with free pages wherever they lie; and without the list, which wants some side by side: opening then looks
    // for free pages itself.
    if synced.as_ref().is_err_and(is_full) {
        let lacks_list_only = writer.is_durable(txid, false);
        synced = if lacks_list_only { Ok(txid) } else { write_point(shared, writer, false) };
    }
    if writer.journal.is_some() {
        writer.stalls.note(clock.elapsed());
        shared.note_figures(writer);
    }
    synced
}

/// Leaves that have patches are written anew: the pages that those had are used again once nobody reads the state, which
/// therefore is another one, with another number.
fn write_point(shared: &Shared, writer: &mut Writer, store_freelist: bool) -> Result<TxId> {
    in_work(shared, writer, |work, writer| {
        let is_patched = work.spare.patcher.as_ref().is_some_and(|patcher| patcher.live() > 0);
        let txid = work.base.meta.txid.checked_add(u64::from(is_patched)).ok_or_else(ids_used_up)?;
        write(work, txid, shared, writer, Sync::Point { store_freelist })
    })
}

/// Has memory and journal grow with the file, where nothing was said of their sizes.
pub(super) fn fit_to_file(meta: &Meta, work: &mut Work, shared: &Shared, writer: &mut Writer) {
    let Some(options) = &shared.options.journal else { return };
    let file = meta.used_len();
    if let Some(patcher) = &mut work.spare.patcher {
        patcher.allow(options.memory_for(file));
    }
    if let Some(journal) = &mut writer.journal {
        journal.allow(options.checkpoint_size_for(file));
    }
}

/// Has the oldest memory given back, where the memory for patches is nearly full.
pub(super) fn write_leaves_if_due(work: &mut Work, shared: &Shared) {
    if work.spare.patcher.as_mut().is_some_and(|patcher| patcher.is_due()) {
        shared.syncer.note(What::Leaves, Instant::now(), RETRY);
    }
}

/// A checkpoint, where one is due. A failure is not that of the commit before it, which is durable: a full disk is tried
/// again with the next commit, and the journal keeps what the file lacks; any other failure stops all writes.
///
/// Where the thread that syncs is in time, none ever is: it is asked before, and keeps writes waiting for less.
pub(super) fn checkpoint_if_due(work: &mut Work, shared: &Shared, writer: &mut Writer) {
    let Some(journal) = &writer.journal else { return };
    if journal.is_checkpoint_due(writer.checkpoint_asked) {
        if writer.retry_at.is_some_and(|at| Instant::now() < at) {
            return;
        }
        // What the transaction has of the memory goes to the checkpoint's, and back.
        std::mem::swap(&mut work.spare.patcher, &mut writer.spare.patcher);
        let done =
            sync_point(shared, writer, shared.stores_freelist()).map_err(|error| shared.unless_tried_again(error));
        writer.retry_at = done.is_err().then(|| Instant::now() + RETRY);
        std::mem::swap(&mut work.spare.patcher, &mut writer.spare.patcher);
    } else if journal.is_checkpoint_near() {
        ask_for_checkpoint(shared, writer);
    }
}

/// Has the thread that syncs make a checkpoint, unless it was asked already.
pub(super) fn ask_for_checkpoint(shared: &Shared, writer: &mut Writer) {
    if !std::mem::replace(&mut writer.checkpoint_asked, true) {
        shared.syncer.note(What::Checkpoint, Instant::now(), RETRY);
    }
}

/// The same, where there is something for it to do. Then pages that have become free since the last one can be used.
pub(super) fn ask_if_of_use(shared: &Shared, writer: &mut Writer) {
    if writer.journal.is_some() && writer.unsynced.is_some() {
        ask_for_checkpoint(shared, writer);
    }
}

/// Whether a commit has a record. The link says what a checkpoint contains; every other commit has one, so that none seems
/// to be missing.
pub(super) fn is_recorded(work: &Work, sync: Sync) -> bool {
    work.has_effects() || !matches!(sync, Sync::Point { .. })
}

/// Writes down what a commit has done, before anybody sees it; and syncs it where that is asked for.
pub(super) fn record(work: &Work, txid: TxId, shared: &Shared, writer: &mut Writer, sync: Sync) -> Result<()> {
    let Some(journal) = writer.journal.as_mut().filter(|_| is_recorded(work, sync)) else { return Ok(()) };
    let failed = |error| shared.poison("write the journal of", error);
    if sync == Sync::Journal {
        let append = || work.with_effects(|effects| journal.append_synced(txid, now_ms(), effects)).map_err(failed);
        counted(shared, &mut writer.commits, append)
    } else {
        work.with_effects(|effects| journal.append(txid, now_ms(), effects)).map_err(failed)
    }
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a record tells when it was written, to people")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Syncs all records.
fn sync_journal(shared: &Shared, writer: &mut Writer) -> Result<()> {
    let Some(journal) = &mut writer.journal else { return Ok(()) };
    let sync = || journal.sync().map_err(|error| shared.poison("sync the journal of", error));
    counted(shared, &mut writer.commits, sync)?;
    writer.unsynced_records = None;
    Ok(())
}

/// Syncs the pages, then writes and syncs the meta that refers to them.
pub(super) fn make_durable(meta: &Meta, recorded: u64, shared: &Shared, writer: &mut Writer) -> Result<()> {
    sync_file(shared, writer)?;
    make_meta_durable(meta, recorded, shared, writer)
}

/// Writes and syncs the meta that refers to pages that are on the disk: the one place where an open database gets a new meta.
/// Before it the journal gets a link to it. When its state was the newest, so many bytes had been `recorded`.
pub(super) fn make_meta_durable(meta: &Meta, recorded: u64, shared: &Shared, writer: &mut Writer) -> Result<()> {
    if let Some(journal) = &mut writer.journal {
        let linked = journal.link(meta.txid, &MetaBytes::of(meta), recorded);
        linked.map_err(|error| shared.poison("write the journal of", error))?;
        sync_journal(shared, writer)?;
    }
    let offset = meta.slot() * u64::from(meta.page_size);
    let mut buffer = std::mem::take(&mut writer.buffer);
    let page_size = meta.page_size as usize;
    if buffer.len() < page_size {
        buffer.resize(page_size, 0);
    }
    meta.write(&mut buffer[..page_size]);
    let written = write_out(&buffer[..page_size], offset, shared, writer);
    writer.buffer = buffer;
    written.map_err(|error| shared.poison("write the meta page of", error))?;
    sync_file(shared, writer)?;
    if let Some(journal) = &mut writer.journal {
        journal.checkpointed();
        writer.checkpoint_asked = false;
    }
    Ok(())
}

fn sync_file(shared: &Shared, writer: &mut Writer) -> Result<()> {
    counted(shared, &mut writer.commits, || shared.sync_file())
}

/// Does a sync, and counts it.
fn counted(shared: &Shared, commits: &mut CommitStats, sync: impl FnOnce() -> Result<()>) -> Result<()> {
    let clock = shared.options.statistics.then(Instant::now);
    sync()?;
    commits.count_sync(clock.map_or(Duration::ZERO, |clock| clock.elapsed()));
    Ok(())
}

/// The number that a sync point gives the state `txid`: one more where its meta would take the place of the durable one.
pub(super) fn number_of_sync_point(txid: TxId, writer: &Writer) -> Result<TxId> {
    txid.checked_add(u64::from(txid % 2 == writer.durable.slot())).ok_or_else(ids_used_up)
}

/// No more leaves get patches, until there was a checkpoint; or they do again.
fn close_patches(writer: &mut Writer, is_closing: bool) {
    if let Some(patcher) = &mut writer.spare.patcher {
        patcher.close(is_closing);
    }
}

impl Shared {
    /// Makes the newest state durable, as a synced commit does.
    pub(crate) fn sync(&self) -> Result<TxId> {
        self.sync_records()?.map_or_else(|| self.checkpoint(), Ok)
    }

    /// The same by the journal; `None` where there is none.
    pub(super) fn sync_records(&self) -> Result<Option<TxId>> {
        let Some((txid, pending)) = self.writer.with(|writer| {
            let journal = writer.journal.as_ref()?;
            let pending = journal.begin_sync();
            let unsynced = writer.unsynced_records.take().filter(|_| pending.is_some());
            writer.syncing = unsynced.map_or(0, |unsynced| unsynced.commits);
            Some((self.readers.current().meta.txid, pending))
        }) else {
            return Ok(None);
        };
        self.check_usable()?;
        let Some(pending) = pending else { return Ok(Some(txid)) };
        // The writer goes on meanwhile.
        let synced = pending.run();
        self.writer.with(|writer| {
            writer.syncing = 0;
            if let Some(journal) = &mut writer.journal {
                match synced {
                    Ok(()) => journal.synced(&pending),
                    Err(error) => return Err(self.poison("sync the journal of", error)),
                }
            }
            // No commit took that time.
            writer.commits.count_sync(Duration::ZERO);
            self.note_figures(writer);
            Ok(Some(txid))
        })
    }

    /// Syncs the journal where commits are to be durable by now: for who keeps the thread that syncs from doing so.
    pub(super) fn sync_if_due(&self) -> Result<()> {
        let is_due = self.writer.with(|writer| {
            let due = writer.unsynced_records.as_ref().and_then(|unsynced| unsynced.due);
            due.is_some_and(|due| due <= Instant::now()) && !writer.is_replaying
        });
        if is_due { self.sync_records().map(drop) } else { Ok(()) }
    }

    /// Writes patched leaves, and syncs the pages that commits have written, while they go on.
    fn write_leaves_back(&self, turn: &MutexGuard<'_, ()>) -> Result<()> {
        self.writer.with(|writer| close_patches(writer, true));
        // Without room for that, the checkpoint itself may still find some.
        self.write_leaves(turn).or_else(unless_full)?;
        self.write_back()
    }

    /// Whether all that was committed is in the journal, on the disk, whatever becomes of the file; `None` where no journal is
    /// kept. What is in it and not synced yet is synced for the answer.
    pub(crate) fn is_all_in_journal(&self) -> Option<bool> {
        self.writer.with(|writer| writer.journal.as_mut().map(|journal| journal.sync().is_ok()))
    }

    /// Tells the journal that the file holds everything.
    pub(super) fn close_journal(&self, writer: &mut Writer) -> Result<()> {
        let closed = writer.journal.as_mut().map_or(Ok(()), Journal::close);
        closed.map_err(|error| self.poison("write the journal of", error))
    }

    /// Asks the thread that syncs for a checkpoint, where there is something for it to do.
    pub(crate) fn checkpoint_soon(&self) {
        self.writer.with(|writer| ask_if_of_use(self, writer));
    }

    /// Does the checkpoint that the thread that syncs was asked for, unless another has come before.
    pub(super) fn checkpoint_as_asked(&self) -> Result<()> {
        let (is_wanted, later, near) = self.writer.with(|writer| {
            let near = writer.journal.as_ref().filter(|journal| journal.is_checkpoint_near());
            (writer.wants_checkpoint(), writer.checkpoint_due(), near.map(Journal::room))
        });
        if !is_wanted {
            // It took what was written since that other one to be due no later than what it was asked for.
            if let Some(at) = later {
                self.syncer.note(What::Checkpoint, at, RETRY);
            }
            return Ok(());
        }
        let _made = near.as_ref().map(|room| self.pressure.make(room));
        // While much is written.
        if near.is_some() && self.is_journal_in_place() && self.checkpoint_beside(&self.turn_to_write())? {
            return Ok(());
        }
        self.written_back(|writer| {
            let store_freelist = self.stores_freelist();
            if writer.wants_checkpoint() { sync_point(self, writer, store_freelist).map(drop) } else { Ok(()) }
        })?;
        if near.is_none() {
            self.let_memory_go();
        }
        Ok(())
    }

    /// Lets `then` have the writer once most of what a checkpoint writes is on the disk.
    fn written_back<T>(&self, then: impl FnOnce(&mut Writer) -> Result<T>) -> Result<T> {
        let turn = self.turn_to_write();
        let written = if self.options.journal.is_some() { self.write_leaves_back(&turn) } else { Ok(()) };
        self.writer.with(|writer| {
            let done = written.and_then(|()| then(writer));
            close_patches(writer, false);
            if done.as_ref().err().is_none_or(tells_of_lost) {
                self.keep_journal_in_place(writer)?;
            }
            done
        })
    }

    /// Begins to read the newest state once the file is up to it.
    pub(crate) fn enter_checkpointed(&self) -> Result<Reading> {
        if self.options.read_only {
            return Ok(self.readers.enter());
        }
        self.written_back(|writer| {
            sync_point(self, writer, self.stores_freelist())?;
            Ok(self.readers.enter())
        })
    }

    /// Brings the file up to the newest state, durably. With a journal, most pages are written back before that keeps anybody
    /// waiting.
    pub(crate) fn checkpoint(&self) -> Result<TxId> {
        self.written_back(|writer| sync_point(self, writer, self.stores_freelist()))
    }
}

impl Shared {
    /// What a checkpoint has failed with that nobody waits for. Where it would fail again (a page cannot be read), the journal
    /// would grow without end and nobody know why: no more writes are taken.
    pub(super) fn unless_tried_again(&self, error: Error) -> Error {
        if is_full(&error) || tells_of_lost(&error) || matches!(error, Error::Poisoned { .. }) {
            return error;
        }
        self.poison("make a checkpoint of", io::Error::other(error.to_string()))
    }
}

/// Leaves that found no room stay in memory, and find it at the next checkpoint; it needs none in the journal, whose folder may
/// be lost.
pub(super) fn unless_full(error: Error) -> Result<()> {
    if is_full(&error) || tells_of_lost(&error) { Ok(()) } else { Err(error) }
}

/// An error that tells of a full disk or file: nothing was lost, and it can be tried again.
pub(super) fn is_full(error: &Error) -> bool {
    matches!(error, Error::NoSpace { .. } | Error::MaxSizeReached { .. })
}
