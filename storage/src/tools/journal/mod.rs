//! What lies in a file's journal, and what an opening would make of it, found without opening the database: nothing is
//! written, and a file that a server has open can be looked at, too.

#[cfg(fuzzing)]
mod bytes;
mod committed;
mod effects;
mod follow;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{JournalFolder, OsJournalFolder, journal_path};
use crate::format::{META_BYTES, Meta, Metas};
use crate::journal::{DamagedPage, EntryKind, Header, Listing, Log, MetaBytes, read, refuse_missing, scan};
use crate::tools::raw::RawFile;
use crate::{Error, Result, TxId};

pub(super) use committed::settled;
pub use committed::{Committed, CommittedChanges, CommittedTransaction};
pub use effects::{JournalChange, JournalEffect, JournalEntry};
pub use follow::{Follower, FollowerStop};

/// The journal of a file.
///
/// ```
/// # fn main() -> boltkv_storage::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("app.db");
/// use boltkv_storage::{JournalOptions, Options};
/// use boltkv_storage::tools::FileJournal;
///
/// assert!(FileJournal::find(&path, None)?.is_none());
/// let db = Options::new().journal(JournalOptions::new()).open(&path)?;
/// db.update(|tx| tx.create_bucket("users")?.put("ada", "lovelace"))?;
/// // As after a crash: what was committed is in the journal only.
/// let journal = FileJournal::find(&path, None)?.expect("it is there");
/// assert_eq!(journal.state().unwrap().records, 1);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct FileJournal {
    folder: PathBuf,
    file: Result<TxId>,
    listing: Listing,
    state: Result<JournalState>,
}

/// What a journal that fits its file holds beyond it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalState {
    /// The newest transaction that the file contains.
    pub contains: TxId,
    /// The newest that the journal records; the one above, where no record waits.
    pub newest: TxId,
    /// Records that wait.
    pub records: u64,
    /// Their bytes, with what fills their blocks.
    pub bytes: u64,
    /// The database was closed, or no segment is in use: the file may be changed without the journal.
    pub closed: bool,
    /// The transaction with which it was closed, where the file was changed without it since: by another program, or by taking
    /// its place.
    pub changed_since: Option<TxId>,
    /// Where something was written that is not whole and was never synced: a segment's file, and the byte. It is passed over.
    pub torn: Option<(PathBuf, u64)>,
}

/// A segment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalSegment {
    /// The name of its file.
    pub file: String,
    /// Counts the uses of segments, from 1 on.
    pub number: u64,
    /// Drawn for this use.
    pub generation: u64,
    /// Drawn when the database was opened.
    pub epoch: u64,
    /// When it was begun, in milliseconds since 1970.
    pub time_ms: u64,
    /// The length of its file, in bytes.
    pub len: u64,
    /// The last transaction recorded before it.
    pub follows: TxId,
    /// The last transaction that the file held on the disk when it was begun.
    pub contains: TxId,
    /// Later segments lead to it. Otherwise it lies behind a tear that an opening has gone past.
    pub is_reached: bool,
}

impl FileJournal {
    /// Finds the journal of a file: in `folder`, or in the usual place, `NAME-journal` beside the file. `None` where there is
    /// no such folder, and the file does not say that it lacks one. The file need not be free of damage. No lock is taken: of a database that is open and written, what is
    /// found may be odd.
    ///
    /// # Errors
    /// [`Error::JournalIo`]; [`Error::JournalVersion`].
    pub fn find(file: impl AsRef<Path>, folder: Option<&Path>) -> Result<Option<Self>> {
        let file = file.as_ref();
        let usual = match folder {
            Some(folder) => folder.to_path_buf(),
            None => match journal_path(file) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                found => found.map_err(Error::io("look for the journal of", Some(file)))?,
            },
        };
        let Some(found) = OsJournalFolder::look(&usual)? else {
            return Ok(if folder.is_none() { Self::missing(usual, file) } else { None });
        };
        let folder: Arc<dyn JournalFolder> = Arc::new(found);
        Self::of(&folder, || FileMeta::of_file(file)).map(Some)
    }

    /// Of a file that was left open, in whose journal's place there is nothing.
    fn missing(folder: PathBuf, file: &Path) -> Option<Self> {
        // An older meta may say what a damaged one did not.
        let FileMeta { newest: meta, damaged: None } = FileMeta::of_file(file).ok()? else { return None };
        let state = Err(refuse_missing(&meta, &folder).err()?);
        Some(Self { file: Ok(meta.txid), listing: Listing::none(folder.clone()), folder, state })
    }

    /// What lies in that folder, beside a file with these metas.
    fn of(folder: &Arc<dyn JournalFolder>, metas: impl FnOnce() -> Result<FileMeta>) -> Result<Self> {
        let listing = scan(folder)?.listing();
        let (file, state) = match metas() {
            Ok(metas) => {
                (Ok(metas.newest.txid), read(folder).and_then(|log| JournalState::of(log, metas, folder.path())))
            }
            Err(error) => (Err(error), Ok(JournalState::unknown())),
        };
        Ok(Self { folder: folder.path().into(), file, listing, state })
    }

    /// Where it lies.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file's newest transaction.
    ///
    /// # Errors
    /// Why the file has none that could be found.
    pub fn file_txid(&self) -> Result<TxId, &Error> {
        self.file.as_ref().copied()
    }

    /// What it holds beyond the file.
    ///
    /// # Errors
    /// The file's error, where it has no meta to be compared with; [`Error::JournalDoesNotFit`]; [`Error::JournalDamaged`];
    /// [`Error::JournalMissing`]; [`Error::MetaLost`].
    pub fn state(&self) -> Result<&JournalState, &Error> {
        self.file.as_ref().and(self.state.as_ref())
    }

    /// Whether the file is all there is: nothing waits, and nothing is wrong.
    #[must_use]
    pub fn is_contained(&self) -> bool {
        self.state().is_ok_and(|state| state.records == 0)
    }

    /// All segments in use: those that lead to one another from the oldest to the newest, then the others.
    pub fn segments(&self) -> impl Iterator<Item = JournalSegment> {
        self.listing.segments().map(|(file, header, len, is_reached)| {
            let &Header { number, generation, epoch, time_ms, follows, contains, .. } = header;
            let file = file.to_owned();
            JournalSegment { file, number, generation, epoch, time_ms, len, follows, contains, is_reached }
        })
    }

    /// How many files are no segments in use, and their bytes.
    #[must_use]
    pub fn spares(&self) -> (usize, u64) {
        let spares = self.listing.spares();
        (spares.len(), spares.iter().map(|(_, len)| len).sum())
    }

    /// Hands over every entry of the segment of that number, in order. Nothing where later segments do not lead to it.
    ///
    /// # Errors
    /// A segment could not be read; what `each` returns.
    pub fn entries<E: From<Error>>(
        &self,
        segment: u64,
        mut each: impl FnMut(JournalEntry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.listing.entries(segment, |listed| each(JournalEntry::new(listed)))
    }
}

impl JournalState {
    fn of(log: Log, metas: FileMeta, folder: &Path) -> Result<Self> {
        let FileMeta { newest, damaged } = metas;
        let known = damaged.map_or(Ok(None), |page| log.meta_on(&page, &newest))?;
        let meta = known.unwrap_or(newest);
        let waiting = log.after(&MetaBytes::of(&meta))?;
        // As above.
        if !waiting.knows_file() && (damaged.is_none() || known.is_some()) {
            refuse_missing(&meta, folder)?;
        }
        let (contains, newest, closed) = (waiting.contains(), waiting.last(), waiting.is_closed());
        let (records, bytes, torn) = (waiting.records(), waiting.bytes(), waiting.torn_at());
        let changed_since = waiting.changed_since();
        Ok(Self { contains, newest, records, bytes, closed, changed_since, torn })
    }

    /// Of a file whose error counts.
    fn unknown() -> Self {
        Self { contains: 0, newest: 0, records: 0, bytes: 0, closed: false, changed_since: None, torn: None }
    }
}

/// What a file says by its metas.
#[derive(Debug, Clone, Copy)]
struct FileMeta {
    /// The newest of those that are valid.
    newest: Meta,
    /// The page of the other one, where that is not valid.
    damaged: Option<DamagedPage>,
}

impl FileMeta {
    fn of_file(file: &Path) -> Result<Self> {
        let file = RawFile::open(file, None)?;
        Self::of(file.metas(), |offset, page| file.read_at(page, offset).map(drop))
    }

    fn of(metas: &Metas, read: impl FnOnce(u64, &mut [u8]) -> Result<()>) -> Result<Self> {
        let newest = metas.newest().ok_or(Error::ChecksumMismatch)?;
        let mut damaged = metas.damaged().map(|page| DamagedPage { page, bytes: [0; META_BYTES] });
        if let Some(DamagedPage { page, bytes }) = &mut damaged {
            read(*page * u64::from(newest.page_size), bytes)?;
        }
        Ok(Self { newest, damaged })
    }
}

/// What an entry of a journal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalEntryKind {
    /// A transaction's effects.
    Record,
    /// A meta that was about to be written to the file.
    Link,
    /// The file held everything, and could be changed by others from then on.
    Close,
}

impl From<EntryKind> for JournalEntryKind {
    fn from(kind: EntryKind) -> Self {
        match kind {
            EntryKind::Record => Self::Record,
            EntryKind::Link => Self::Link,
            EntryKind::Closed => Self::Close,
        }
    }
}
