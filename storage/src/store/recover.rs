//! Opening a file that has a journal: what was recorded beyond the file's newest meta is done again, or waits for who can.
//!
//! Doing it again changes nothing that is durable until it is done: commits go into memory and free pages, and no meta is
//! written. Much is read at once, and made in the keys' order, so that most leaves are written once; in parts, between two of
//! which is a state that never was: nobody reads before all is done. Then a new segment is begun, whose header follows the last
//! record that was read and names the old meta as the newest in the file; then comes a checkpoint. A crash before the
//! checkpoint's meta leaves the old meta, and the journal with the same records beyond it: the new segment has none, and a link
//! that no meta fits is harmless. A crash after it leaves the new meta, to which the new segment has the link. So opening can be
//! interrupted as often as it likes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::begin::Word;
use super::durable::{is_full, now_ms, sync_point};
use super::journal_options::Discard;
use super::replay::Way;
use super::{JournalOptions, Options, Shared, Writer};
use crate::disk::{JournalFolder, OsJournalFolder, folder_of, journal_of, journal_path};
use crate::format::Meta;
use crate::journal::{DamagedPage, Journal, MetaBytes, Waiting, read, refuse_missing, scan};
use crate::tree::Fill;
use crate::{Error, Result};

/// Bytes of the disk that are left to who has to be frugal with them, the shortest segment of the journal among them.
const LEFT: u64 = 1 << 20;

/// A journal, and what it holds beyond the file.
#[derive(Debug)]
pub(super) struct Found {
    folder: Arc<dyn JournalFolder>,
    waiting: Waiting,
}

/// The journals that a file at `path` may have: the one that is asked for, and the one in the usual place.
pub(super) fn folders(path: &Path, options: &Options) -> Result<Vec<Arc<dyn JournalFolder>>> {
    let mut folders: Vec<Arc<dyn JournalFolder>> = Vec::new();
    let named = named(options);
    // Who names one may mean that which was left beside a link.
    let usual = if named.is_some() { path.canonicalize().map(|real| journal_of(&real)) } else { journal_path(path) };
    let usual = usual.map_err(Error::io("look for the journal of", Some(path)))?;
    let asked = options.journal.as_ref().map(|_| named.unwrap_or(&usual));
    match asked {
        Some(asked) if options.keeps_journal() => {
            let folder = OsJournalFolder::open_or_create(asked, path)?;
            if named.is_none() && !folder.is_on_device_of(path)? {
                let what = "it is on another device than the database's file: one could be mounted without the other; \
                            name the folder that is meant";
                let error = io::Error::new(io::ErrorKind::InvalidInput, what);
                return Err(Error::journal_io("keep a journal in", asked)(error));
            }
            folders.push(Arc::new(folder));
        }
        Some(asked) => {
            let found = opened(asked, path, options)?;
            if found.is_none() && named.is_some() {
                let what = "it is not there: without it the newest state is not known";
                let error = io::Error::new(io::ErrorKind::NotFound, what);
                return Err(Error::journal_io("read the journal in", asked)(error));
            }
            folders.extend(found);
        }
        None => {}
    }
    if !asked.is_some_and(|asked| is_same_place(asked, &usual)) {
        folders.extend(opened(&usual, path, options)?);
    }
    Ok(folders)
}

/// The folder in which a journal is to be kept.
pub(super) fn asked(path: &Path, options: &Options) -> Option<PathBuf> {
    let journal = options.journal.as_ref().filter(|_| options.keeps_journal())?;
    journal.folder.clone().or_else(|| journal_path(path).ok())
}

/// The folder that the options name for the journal.
fn named(options: &Options) -> Option<&Path> {
    options.journal.as_ref().and_then(|journal| journal.folder.as_deref())
}

/// Whether both paths lead to one folder; where there is none, by their words.
fn is_same_place(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// Refuses the folder of the database's file for its journal: nothing else may use a journal's folder. Before anything is made.
pub(super) fn refuse_own_folder(path: &Path, options: &Options) -> Result<()> {
    let Some(asked) = named(options) else { return Ok(()) };
    let file = path.canonicalize().ok();
    let own = file.as_deref().map_or_else(|| folder_of(path), folder_of).canonicalize().ok();
    if own.is_none() || asked.canonicalize().ok() != own {
        return Ok(());
    }
    let what = "the database's file is in it, and nothing but a journal may be in a journal's folder: name one of its own \
                (segments that lie there already can be moved into it)";
    Err(Error::journal_io("keep a journal in", asked)(io::Error::new(io::ErrorKind::InvalidInput, what)))
}

/// Refuses a folder for the journal that is none, or cannot be made, before a file is made that would be left.
pub(super) fn refuse_no_folder(path: &Path, options: &Options) -> Result<()> {
    let is_to_be_made = options.keeps_journal() && !path.exists();
    let Some(asked) = named(options).filter(|_| is_to_be_made) else { return Ok(()) };
    let is_folder = match asked.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            folder_of(asked).metadata().map(|parent| parent.is_dir())
        }
        there => there.map(|there| there.is_dir()),
    };
    let refused = match is_folder {
        Ok(true) => return Ok(()),
        Ok(false) => io::ErrorKind::NotADirectory.into(),
        Err(error) => error,
    };
    Err(Error::journal_io("keep a journal in", asked)(refused))
}

/// The folder of a journal that will not be kept, if it is there.
fn opened(path: &Path, file: &Path, options: &Options) -> Result<Option<Arc<dyn JournalFolder>>> {
    // A file of that name is somebody else's.
    if !path.is_dir() {
        return Ok(None);
    }
    if options.read_only || !file.exists() {
        return Ok(OsJournalFolder::open(path)?.map(|folder| Arc::new(folder) as _));
    }
    Ok(Some(Arc::new(OsJournalFolder::open_or_create(path, file)?)))
}

/// Refuses a journal with something in it beside a file that is about to be created: all new files are alike, so that it
/// would seem to be this one's.
pub(crate) fn refuse_orphans(path: &Path, options: &Options) -> Result<()> {
    let is_new = path.metadata().map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |file| file.len() == 0);
    let discards = options.discards() != Discard::Nothing;
    if !is_new || !options.create || options.read_only || discards {
        return Ok(());
    }
    let beside = folder_of(path);
    let usual = beside.canonicalize().ok().zip(path.file_name()).map(|(folder, name)| journal_of(&folder.join(name)));
    let asked = named(options).map(Path::to_path_buf);
    for folder in asked.into_iter().chain(usual) {
        if let Some(folder) = opened(&folder, path, options)?
            && !read(&folder)?.is_empty()
        {
            return Err(Error::JournalWithoutFile { folder: folder.path().into() });
        }
    }
    Ok(())
}

/// Looks into the journals of a file whose newest meta this is. What it holds beyond that is the first one's, if one is to
/// be kept; otherwise nothing may wait, and a file that will be changed without its journal is said to.
pub(super) fn look(
    journals: Vec<Arc<dyn JournalFolder>>,
    meta: &Meta,
    path: Option<&Path>,
    is_in_doubt: bool,
    options: &Options,
) -> Result<Option<Found>> {
    let looked = journals.into_iter().enumerate().map(|(place, folder)| {
        // What is asked for comes first.
        let discards = if place == 0 && options.journal.is_some() { Discard::All } else { Discard::Unfit };
        Found::look(folder, meta, options.discards().min(discards))
    });
    let found: Vec<Found> = looked.collect::<Result<_>>()?;
    // An older meta may say what the damaged one did not; that it is the older one is told.
    if !is_in_doubt {
        refuse_left_open(&found, meta, path, options)?;
    }
    let mut found = found.into_iter();
    let kept = if options.keeps_journal() { found.next() } else { None };
    for found in found {
        found.refuse_waiting(meta)?;
        if !options.read_only && !found.waiting.is_closed() {
            found.leave(meta)?;
        }
    }
    Ok(kept)
}

/// Refuses a file that was left open by who kept its journal, where none of these is that.
fn refuse_left_open(found: &[Found], meta: &Meta, path: Option<&Path>, options: &Options) -> Result<()> {
    if options.discards() != Discard::Nothing || found.iter().any(|found| found.waiting.knows_file()) {
        return Ok(());
    }
    let usual = || path.and_then(|path| journal_path(path).ok()).unwrap_or_default();
    refuse_missing(meta, &found.first().map_or_else(usual, |found| found.folder.path().into()))
}

/// The meta that stood on this page of a file whose newest one left is `left`, where a journal shows that it was on the disk.
/// That is no record to be given up: it is the state of the file as it is.
pub(super) fn known_meta(
    journals: &[Arc<dyn JournalFolder>],
    left: &Meta,
    damaged: &DamagedPage,
    options: &Options,
) -> Result<Option<Meta>> {
    let discards = options.discards() != Discard::Nothing;
    for folder in journals {
        let known = if discards {
            match scan(folder)?.meta_on(damaged, left) {
                Err(lost @ Error::MetaLost { .. }) => return Err(lost),
                // Whatever is wrong with a journal that is given up.
                known => known.ok().flatten(),
            }
        } else {
            read(folder)?.meta_on(damaged, left)?
        };
        if known.is_some() {
            return Ok(known);
        }
    }
    Ok(None)
}

impl Found {
    /// What is recorded beyond `meta`; nothing is changed.
    fn look(folder: Arc<dyn JournalFolder>, meta: &Meta, discards: Discard) -> Result<Self> {
        let fits = |folder| read(folder).and_then(|log| log.after(&MetaBytes::of(meta)));
        let waiting = match discards {
            Discard::Nothing => fits(&folder)?,
            // Whatever is wrong with it.
            Discard::All => scan(&folder)?.discarded(meta.txid),
            Discard::Unfit => match fits(&folder) {
                Err(error) if error.can_discard_journal() => scan(&folder)?.discarded(meta.txid),
                looked => looked?,
            },
        };
        Ok(Self { folder, waiting })
    }

    /// Says in a journal in which nothing waits that the file is changed without it from now on.
    fn leave(self, meta: &Meta) -> Result<()> {
        let Self { folder, waiting } = self;
        let limits = JournalOptions::new().limits(0);
        let path = folder.path().to_path_buf();
        let mut journal = Journal::begin(folder, &limits, waiting, &MetaBytes::of(meta), meta.txid, now_ms())?;
        journal.close().map_err(Error::journal_io("write the journal in", &path))
    }

    /// An error where something waits.
    pub(super) fn refuse_waiting(&self, meta: &Meta) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        Err(Error::JournalWaits { folder: self.folder.path().into(), file: meta.txid, newest: self.waiting.last() })
    }
}

impl Shared {
    /// Brings the file up to what its journal records, and keeps that journal from now on.
    ///
    /// # Errors
    /// Where there was too little room, which [`Way::Frugal`] may still find, nothing durable has changed.
    pub(super) fn keep_journal(&self, found: Found, way: Way) -> Result<()> {
        let Found { folder, waiting } = found;
        let options = self.options.journal.clone().unwrap_or_default();
        let (is_behind, clock) = (waiting.is_ahead(), Instant::now());
        // One that was given up is begun anew, and one that was closed, others may have been kept after.
        let is_ours = self.options.discards() == Discard::Nothing && waiting.knows_file() && !waiting.is_closed();
        let (base, max_size) = self.writer.with(|writer| {
            writer.is_replaying = true;
            writer.left = if way == Way::Fast { LEFT } else { 0 };
            // Nobody has closed it, and given back the room that was kept behind its pages.
            let is_left_open = is_behind || writer.stored_freelist.is_none();
            writer.len_without_room = is_left_open.then(|| writer.durable.used_len());
            // What was committed is not refused, whatever the limit was then.
            (writer.durable, writer.max_size.take())
        });
        // Memory has room kept for its leaves, which is not to be more than a limit; and none stay in it that keep bbolt's fill.
        let stays = way == Way::Fast && self.options.max_size.is_none() && matches!(self.options.fill, Fill::Auto);
        if stays {
            self.writer.with(|writer| self.begin_memory(writer));
        }
        if is_behind {
            self.replay(&waiting, options.memory_for(base.used_len()), way, stays)?;
        }
        self.writer.with(|writer| {
            (writer.max_size, writer.left) = (max_size, 0);
            if !stays {
                self.begin_memory(writer);
            }
            let limits = options.limits(base.used_len());
            self.keeps_journal_in(folder.path());
            let journal = Journal::begin(folder, &limits, waiting, &MetaBytes::of(&base), base.txid, now_ms())?;
            self.lets_follow(journal.tail());
            writer.journal = Some(journal);
            writer.says = Word::of(&writer.durable, is_ours);
            if is_behind {
                match sync_point(self, writer, self.stores_freelist()) {
                    // The journal has it, and the next checkpoint may find room.
                    Err(error) if is_full(&error) => {}
                    checkpointed => drop(checkpointed?),
                }
            }
            writer.is_replaying = false;
            writer.replay_time = if is_behind { clock.elapsed() } else { Duration::ZERO };
            self.note_figures(writer);
            Ok(())
        })
    }

    /// From now on what is done to leaves may stay in memory.
    fn begin_memory(&self, writer: &mut Writer) {
        let file = self.readers.current().meta.used_len();
        writer.spare.patcher = self.options.journal.as_ref().and_then(|options| options.patcher(file));
        writer.note_memory();
    }
}
