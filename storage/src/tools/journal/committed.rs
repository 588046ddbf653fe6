//! Transactions that were committed, read from a journal from a position on.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(doc)]
use super::Follower;
use super::JournalEffect;
use super::effects::each_effect;
use crate::disk::{JournalFolder, OsJournalFolder};
use crate::journal::{JournalPosition, Kept, Log, Record, Waiting, read};
use crate::{Error, Result, TxId};

/// How often a journal that seems to be damaged is looked at again: it may have been written meanwhile.
const MOST_LOOKS: usize = 8;

/// What a journal records behind a position: every transaction, in order. The journal is only read, also where a database
/// that is open is writing it.
///
/// ```
/// # fn main() -> boltkv_storage::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("app.db");
/// use boltkv_storage::{Committed, JournalChange, JournalOptions, Options};
///
/// let db = Options::new().journal(JournalOptions::new()).open(&path)?;
/// db.update(|tx| tx.create_bucket("users")?.put("ada", "lovelace"))?;
///
/// let journal = db.journal().expect("it is kept");
/// let oldest = Committed::oldest(journal)?.expect("something is recorded");
/// let mut keys = Vec::new();
/// for transaction in Committed::after(journal, oldest)?.transactions() {
///     transaction?.changes(|effect| {
///         if let JournalChange::Put { key, .. } = effect.change {
///             keys.push(key.to_vec());
///         }
///         Ok::<_, boltkv_storage::Error>(())
///     })?;
/// }
/// assert_eq!(keys, [b"ada"]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Committed {
    waiting: Waiting,
    /// Why there is nothing behind the last one.
    damage: Option<Error>,
}

/// A transaction that was committed.
#[derive(Debug)]
pub struct CommittedTransaction<'a> {
    record: Record<'a>,
    folder: &'a Path,
    /// Of a journal that is followed while it is written.
    kept: Option<Kept<'a>>,
}

/// What a transaction has changed, in memory.
#[derive(Debug)]
pub struct CommittedChanges {
    bytes: Vec<u8>,
    txid: TxId,
    folder: PathBuf,
}

impl Committed {
    /// The position behind which the journal in a folder has everything; `None` where nothing is recorded.
    ///
    /// # Errors
    /// [`Error::JournalIo`]; [`Error::JournalDamaged`]; [`Error::JournalVersion`].
    pub fn oldest(folder: impl AsRef<Path>) -> Result<Option<JournalPosition>> {
        let found = settled(folder.as_ref(), |log| Ok((log.oldest(), None)))?;
        Ok(found.0)
    }

    /// What the journal in a folder records behind a position: at the time of this call, up to its end. Reads and checks all
    /// of that. Of a database that is open the last ones may not be on the disk yet, where its durability is not
    /// [`Durability::Always`](crate::Durability::Always), and a crash may take them back.
    ///
    /// # Errors
    /// [`Error::JournalGap`] where that is not kept any more, or a crash took the position back, or it is another journal's:
    /// what was made of the transactions so far is to be made anew, from a whole state. As [`Self::oldest`].
    pub fn after(folder: impl AsRef<Path>, position: JournalPosition) -> Result<Self> {
        let (waiting, damage) = settled(folder.as_ref(), |log| log.behind(position))?;
        Ok(Self { waiting, damage })
    }

    /// How many transactions there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.waiting.records()
    }

    /// The transactions, in order. Where the journal is damaged behind the last of them, or is used again while it is read,
    /// that is an error, and the end.
    pub fn transactions(&mut self) -> impl Iterator<Item = Result<CommittedTransaction<'_>>> {
        let Self { waiting, damage } = self;
        let damage = damage.take().map(Err);
        let folder = waiting.folder();
        waiting.iter().map(move |record| Ok(CommittedTransaction::new(record?, folder, None))).chain(damage)
    }
}

impl<'a> CommittedTransaction<'a> {
    pub(super) const fn new(record: Record<'a>, folder: &'a Path, kept: Option<Kept<'a>>) -> Self {
        Self { record, folder, kept }
    }

    /// Where it stands: reading goes on behind it.
    #[must_use]
    pub fn position(&self) -> JournalPosition {
        JournalPosition { epoch: self.record.epoch, txid: self.record.txid }
    }

    /// Its number.
    #[must_use]
    pub fn txid(&self) -> TxId {
        self.record.txid
    }

    /// When it was recorded, in milliseconds since 1970.
    #[must_use]
    pub fn time_ms(&self) -> u64 {
        self.record.time_ms
    }

    /// Bytes of its changes: so much memory [`Self::changes`] takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.record.effects.left()
    }

    /// Hands over what it has done, in order. A range and a bucket that were deleted stand for all that was in them; what is
    /// moved keeps its content.
    ///
    /// # Errors
    /// [`Error::JournalIo`], also where the segment was used again meanwhile, and [`Error::JournalGap`] where a [`Follower`] has
    /// handed it over; [`Error::JournalDamaged`] where the bytes are
    /// no effects; what `each` returns.
    pub fn changes<E: From<Error>>(self, each: impl FnMut(&JournalEffect<'_>) -> Result<(), E>) -> Result<(), E> {
        self.read()?.each(each)
    }

    /// Reads its changes, for who hands them on: [`Self::changes`] in two steps.
    ///
    /// # Errors
    /// As [`Self::changes`].
    pub fn read(self) -> Result<CommittedChanges> {
        let Self { record, folder, kept } = self;
        let txid = record.txid;
        let read = record.effects.read_all().map_err(Error::journal_io("read the journal in", folder));
        let bytes = read.map_err(|error| match kept {
            Some(kept) => kept.explain(error),
            None => error,
        })?;
        Ok(CommittedChanges { bytes, txid, folder: folder.into() })
    }
}

impl CommittedChanges {
    /// Hands them over, in order: as [`CommittedTransaction::changes`]. Keys and values are slices of [`AsRef::as_ref`].
    ///
    /// # Errors
    /// [`Error::JournalDamaged`] where the bytes are no effects; what `each` returns.
    pub fn each<E: From<Error>>(&self, each: impl FnMut(&JournalEffect<'_>) -> Result<(), E>) -> Result<(), E> {
        each_effect(&self.bytes, self.txid, &self.folder, 0, each)
    }
}

impl AsRef<[u8]> for CommittedChanges {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// What lies in a folder, looked at until it does not change any more what is wrong with it.
pub(in crate::tools) fn settled<T>(
    path: &Path,
    mut look: impl FnMut(Log) -> Result<(T, Option<Error>)>,
) -> Result<(T, Option<Error>)> {
    let mut seen = None;
    for _ in 0..MOST_LOOKS {
        let found = folder(path).and_then(|folder| read(&folder)).and_then(&mut look);
        let trouble = match &found {
            Ok((_, None)) => None,
            Ok((_, Some(error))) | Err(error) => Some(error.to_string()),
        };
        if trouble.is_none() || trouble == seen {
            return found;
        }
        seen = trouble;
    }
    let what = format!("it goes on changing: {}", seen.unwrap_or_default());
    Err(Error::journal_io("read the journal in", path)(io::Error::other(what)))
}

fn folder(path: &Path) -> Result<Arc<dyn JournalFolder>> {
    // In the system's words.
    let errno = if path.exists() { rustix::io::Errno::NOTDIR } else { rustix::io::Errno::NOENT };
    let missing = || Error::journal_io("read the journal in", path)(errno.into());
    Ok(Arc::new(OsJournalFolder::look(path)?.ok_or_else(missing)?))
}
