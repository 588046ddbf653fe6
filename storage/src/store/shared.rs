//! The open database, as its handles and write transactions share it.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::begin::{Word, sync_point_that_says};
use super::durable::unless_full;
use super::pressure::Pressure;
use super::{
    CommitStats, DamagedMeta, Figures, FreelistStored, JournalFigures, Options, Readers, Syncer, Writer, WriterSlot,
};
use crate::disk::Disk;
use crate::journal::{Journal, Tail};
use crate::pages::Snapshot;
use crate::{Error, Result};

/// What the handles and write transactions of a database have in common. A read transaction needs none of it: its token
/// keeps the snapshot and the disk.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) readers: Readers,
    pub(crate) writer: WriterSlot,
    pub(crate) options: Options,
    figures: Mutex<Figures>,
    path: Option<PathBuf>,
    /// Whose turn it is to sync the file.
    syncs: Mutex<()>,
    /// Whose turn it is to write leaves that have patches.
    pub(super) leaves: Mutex<()>,
    pub(super) pressure: Pressure,
    /// The folder of the journal, where one is kept.
    journal: OnceLock<PathBuf>,
    /// For those who follow it.
    tail: OnceLock<Arc<Tail>>,
    pub(crate) syncer: Syncer,
    /// What was wrong with the other meta when the file was opened.
    damaged_meta: Option<DamagedMeta>,
}

impl Shared {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        path: Option<&Path>,
        options: &Options,
        snapshot: Snapshot,
        writer: Option<Writer>,
        figures: &Figures,
        damaged_meta: Option<DamagedMeta>,
    ) -> Self {
        Self {
            readers: Readers::new(snapshot, Arc::clone(&disk)),
            disk,
            writer: WriterSlot::new(writer),
            options: options.clone(),
            figures: Mutex::new(*figures),
            path: path.map(Into::into),
            syncs: Mutex::new(()),
            leaves: Mutex::new(()),
            pressure: Pressure::default(),
            journal: OnceLock::new(),
            tail: OnceLock::new(),
            syncer: Syncer::default(),
            damaged_meta,
        }
    }

    /// Stops all further writes; returns the error for the one that failed.
    pub(crate) fn poison(&self, op: &'static str, source: std::io::Error) -> Error {
        let error = Error::io(op, self.path.as_deref())(source);
        self.writer.end(error.to_string());
        error
    }

    /// The file; `None` for a database in memory.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Why no more writes are taken.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.writer.failure()
    }

    /// The folder of the journal, where one is kept.
    pub(crate) fn journal(&self) -> Option<&Path> {
        self.journal.get().map(PathBuf::as_path)
    }

    /// Says where the journal is that is kept from now on.
    pub(super) fn keeps_journal_in(&self, folder: &Path) {
        self.journal.get_or_init(|| folder.into());
    }

    /// For who follows the journal; `None` where none is kept.
    pub(crate) fn tail(&self) -> Option<&Arc<Tail>> {
        self.tail.get()
    }

    /// Lets the journal that is kept from now on be followed.
    pub(super) fn lets_follow(&self, tail: &Arc<Tail>) {
        self.tail.get_or_init(|| Arc::clone(tail));
    }

    /// What was wrong with the other meta when the file was opened.
    pub(crate) fn damaged_meta(&self) -> Option<DamagedMeta> {
        self.damaged_meta
    }

    /// What was kept last of the writer's side.
    pub(crate) fn figures(&self) -> Figures {
        *self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After each change of the writer's side: tells those who follow the journal what is durable, and keeps what
    /// [`Db::stats`](crate::Db::stats) says.
    pub(crate) fn note_figures(&self, writer: &Writer) {
        writer.journal.iter().for_each(Journal::tell);
        let recorded = writer.journal.as_ref().map_or(0, Journal::recorded);
        self.pressure.note(&writer.memory, writer.usual_patches, recorded);
        let figures = Figures {
            free_pages: Some(writer.freelist.free_pages()),
            pending_pages: Some(writer.freelist.waiting_pages()),
            unsynced_commits: writer.syncing + writer.not_durable().map_or(0, |unsynced| unsynced.commits),
            journal: writer.journal.as_ref().map(|journal| {
                let waits = self.pressure.held();
                JournalFigures::new(journal, writer.replay_time, &writer.stalls, &writer.memory, waits)
            }),
            commits: if self.options.statistics { writer.commits } else { CommitStats::default() },
        };
        *self.figures.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }

    /// Cuts off at most so many bytes of what lies behind the last page that the metas and the open snapshots speak of;
    /// whether there was anything to cut off.
    pub(crate) fn cut(&self, writer: &mut Writer, most: u64) -> Result<bool> {
        let current = self.readers.current().meta;
        let mark = self.readers.highest_mark().max(writer.older_mark).max(writer.durable.mark);
        let len = (mark * u64::from(current.page_size)).max(writer.file_len.saturating_sub(most));
        if len >= writer.file_len {
            return Ok(false);
        }
        self.disk.set_len(len).map_err(Error::io("cut", self.path.as_deref()))?;
        writer.file_len = len;
        writer.kept_len = writer.kept_len.min(len);
        Ok(true)
    }

    /// Syncs the file. Syncs take turns, and one that fails ends all writes before the next is begun: the system tells of a
    /// page that it could not write once, to whoever syncs first.
    ///
    /// # Errors
    /// This sync failed, or an earlier one.
    pub(crate) fn sync_file(&self) -> Result<()> {
        let _turn = self.syncs.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_usable()?;
        self.disk.sync().map_err(|error| self.poison("sync", error))
    }

    /// Writes a part of the file back, as a sync does that makes nothing durable.
    pub(super) fn write_back_piece(&self, offset: u64, len: u64) -> Result<()> {
        let _turn = self.syncs.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_usable()?;
        self.disk.write_back(offset, len).map_err(|error| self.poison("write back", error))
    }

    /// Whether a sync point stores the freelist, other than the one that closes the database.
    pub(crate) fn stores_freelist(&self) -> bool {
        self.options.freelist == FreelistStored::Always
    }

    /// What a clean close leaves in the file.
    pub(crate) fn sync_for_close(&self) -> Result<()> {
        if self.options.read_only {
            return Ok(());
        }
        let store_freelist = self.options.freelist != FreelistStored::Never;
        // Where there is no room for it, what then keeps the writer finds out.
        self.write_leaves(&self.turn_to_write()).or_else(unless_full)?;
        self.writer.with(|writer| {
            self.check_usable()?;
            if store_freelist {
                writer.free_all_detached(self.readers.current().pages());
            }
            sync_point_that_says(Word::Closed, self, writer, store_freelist)?;
            // A file that stays longer is as good.
            let _ = self.give_room_back(writer);
            self.close_journal(writer)
        })
    }

    pub(crate) fn check_usable(&self) -> Result<()> {
        self.failure().map_or(Ok(()), |reason| Err(Error::Poisoned { reason: reason.into() }))
    }
}

/// The open database, as its handles and write transactions have it: the last of them closes it. The thread that syncs has
/// only what is in it, so that no close is ever left to that thread.
#[derive(Debug)]
pub(crate) struct Opened(Arc<Shared>);

impl Opened {
    pub(crate) fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    /// Starts the thread that syncs what is due, unless it runs.
    pub(crate) fn start_syncer(&self) -> Result<()> {
        self.syncer.start(Arc::downgrade(&self.0))
    }
}

impl Deref for Opened {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // Who wants to know whether it worked calls `Db::close`.
        let _ = self.sync_for_close();
        // It may be in the middle of a sync, and keeps the file locked that long.
        self.syncer.stop();
    }
}
