//! Doing again what was recorded: in the keys' order, so that most leaves are written once, and in parts.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread::{self, Builder};

use super::commit::{Sync, write};
use super::durable::{in_work, is_full, number_of_sync_point, sync_point, unless_full};
use super::patched::commit;
use super::room::Lacks;
use super::{Shared, Writer};
use crate::format::TxId;
use crate::journal::{SHORTEST_SEGMENT, Waiting};
use crate::tree::{Batch, Recorded, Refused, Replay};
use crate::{Error, Result};

/// Memories of records that are read together, and bytes of them at least: of the more the keys' order is known, the more
/// often is a leaf written once for all that is new in it.
const MEMORIES: u64 = 2;
const LEAST_READ: u64 = if cfg!(any(test, fuzzing)) { 1 << 10 } else { 1 << 20 };
/// Bytes of keys and values that are made in one transaction, before leaves are written; and after how many of them a thread
/// beside syncs those. A simulated disk is told all in one order.
const PART: usize = if cfg!(any(test, fuzzing)) { 64 } else { 256 << 10 };
const SYNCED: usize = 8 << 20;
const BESIDE: bool = !cfg!(any(test, fuzzing));

/// How what was recorded is done again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Much at once, and where that may be into memory, whose leaves are written after each part.
    Fast,
    /// With as little room as it took when it was committed, where there was too little for more.
    Frugal,
}

impl Shared {
    /// Makes what waits, with so many bytes of memory for what is new, where it `stays` there, as when it was committed.
    pub(super) fn replay(&self, waiting: &Waiting, memory: usize, way: Way, stays: bool) -> Result<()> {
        let turn = self.turn_to_write();
        let of_bytes = |bytes: u64| waiting.batches().of_bytes(bytes.max(LEAST_READ));
        let batches = match (memory as u64, way) {
            (0, _) => waiting.batches(),
            (memory, Way::Fast) => of_bytes(memory * MEMORIES),
            (memory, Way::Frugal) => of_bytes(memory / 2),
        };
        self.synced_beside(|written| {
            for batch in batches {
                self.make(batch, way, waiting.folder(), || {
                    written(PART);
                    if stays { self.write_leaves(&turn).or_else(unless_full) } else { Ok(()) }
                })?;
            }
            self.write_leaves(&turn).or_else(unless_full)
        })?;
        self.writer.with(|writer| {
            self.take_numbers(writer, waiting.last())?;
            // Whatever is left, for it has no room kept; and the checkpoint would take a number for it.
            commit(self, writer, |work| work.take_patched_apart(None))
        })
    }

    /// Gives the newest state the number that the journal's last one had, where checkpoints and closes have taken some since the
    /// last record, and the file is of before them: what is recorded from now on follows that.
    fn take_numbers(&self, writer: &mut Writer, last: TxId) -> Result<()> {
        if self.readers.current().meta.txid >= last {
            return Ok(());
        }
        in_work(self, writer, |work, writer| write(work, last, self, writer, Sync::Later).map(drop))
    }

    /// Lets `write` tell of bytes that it has written. What many of them were is synced by a thread beside it, where there can be
    /// one, so that little is left to sync in the end.
    fn synced_beside(&self, write: impl FnOnce(&mut dyn FnMut(usize)) -> Result<()>) -> Result<()> {
        thread::scope(|scope| {
            let (asks, asked) = sync_channel(1);
            let sync = move || asked.iter().try_for_each(|()| self.sync_file());
            let builder = Builder::new().name("boltkv-sync".into());
            let beside = if BESIDE { builder.spawn_scoped(scope, sync).ok() } else { None };
            let mut unsynced = 0;
            let written = write(&mut |bytes| {
                unsynced += bytes;
                if unsynced >= SYNCED {
                    // It may still be at it.
                    _ = asks.try_send(());
                    unsynced = 0;
                }
            });
            drop(asks);
            let synced = beside.map_or(Ok(()), |beside| beside.join().unwrap_or_else(|panic| resume_unwind(panic)));
            written.and(synced)
        })
    }

    /// Makes a batch of records, and does something `between` its parts. Nothing is synced.
    fn make(&self, batch: Batch, way: Way, folder: &Path, mut between: impl FnMut() -> Result<()>) -> Result<()> {
        batch.unreadable.map_or(Ok(()), Err)?;
        if way == Way::Frugal {
            return self.writer.with(|writer| self.make_in_halves(writer, &batch.records, folder));
        }
        let mut replay = Replay::new(&batch.records);
        while !replay.is_done() {
            self.writer.with(|writer| self.make_part(writer, &mut replay, PART, folder))?;
            between()?;
        }
        Ok(())
    }

    /// Makes all of these records at once, or where there is too little room for that, half of them first: what those have
    /// replaced is room for the others. One by one they take what they took when they were committed.
    fn make_in_halves(&self, writer: &mut Writer, records: &[Recorded], folder: &Path) -> Result<()> {
        // The journal may need what is left, but may also have a segment; and how much the file takes is an estimate.
        writer.left = if records.len() > 1 { SHORTEST_SEGMENT } else { 0 };
        match self.make_at_once(writer, records, folder) {
            Err(error) if is_full(&error) && records.len() > 1 => {
                // It is known only of all of them.
                writer.lacks = Lacks::default();
                let (first, others) = records.split_at(records.len() / 2);
                self.make_in_halves(writer, first, folder)?;
                self.make_in_halves(writer, others, folder)
            }
            made => made,
        }
    }

    /// Makes these records, under the number of the last of them.
    fn make_at_once(&self, writer: &mut Writer, records: &[Recorded], folder: &Path) -> Result<()> {
        self.make_part(writer, &mut Replay::new(records), usize::MAX, folder)
    }

    /// Makes what comes next, until it has so many bytes, in a transaction. Nothing is synced.
    fn make_part(&self, writer: &mut Writer, replay: &mut Replay<'_>, bytes: usize, folder: &Path) -> Result<()> {
        in_work(self, writer, |work, writer| {
            work.may_patch();
            let reached = loop {
                replay.make(work, bytes).map_err(|refused| match refused {
                    Refused::Record { txid, at, what } => damaged(folder, txid, at, &what),
                    Refused::Damaged(error) => error,
                })?;
                let reached = replay.reach();
                if reached.is_some() || replay.is_done() {
                    break reached;
                }
            };
            reached.map_or(Ok(0), |txid| write(work, txid, self, writer, Sync::Later)).map(drop)
        })
    }

    /// Makes a batch of records that follow the newest state, in a file that nobody else has seen and that keeps no journal.
    ///
    /// # Errors
    /// The batch's own; [`Error::JournalDamaged`] where it does not fit the state; those of a commit.
    pub(crate) fn apply(&self, batch: Batch, folder: &Path) -> Result<()> {
        self.writer.with(|writer| {
            // So that pages can be used again; but not where that would take a number, which may be the next record's.
            let txid = self.readers.current().meta.txid;
            if number_of_sync_point(txid, writer)? == txid {
                sync_point(self, writer, false)?;
            }
            batch.unreadable.map_or(Ok(()), Err)?;
            self.make_at_once(writer, &batch.records, folder)
        })
    }
}

fn damaged(folder: &Path, txid: TxId, at: usize, what: &str) -> Error {
    Error::JournalDamaged {
        file: folder.into(),
        offset: at as u64,
        what: format!("of the effects of transaction {txid}: {what}"),
    }
}
