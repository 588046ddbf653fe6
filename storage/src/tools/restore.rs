//! Restoring: a backup, and the records that followed it in a journal, make the state that any transaction left.
//!
//! The journal is only read, also where a database that is open is writing it. The backup has to be of a state that the
//! journal names by the bytes of its meta: numbers alone could be those of another file, or of transactions that a crash took
//! back and that were given to others. [`Db::begin_checkpointed`] begins a transaction on such a state.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::journal::settled;
use crate::disk::{Appender, Existing, FileDisk, MapOptions, OsFolder, new_file, refuse_existing};
use crate::handles::{Db, Tx};
use crate::journal::{MetaBytes, Stretch, Until, Waiting};
use crate::store::{Durability, JournalOptions, Options, refuse_orphans};
use crate::{Error, Result, TxId};

/// A backup, and what a journal records beyond it.
///
/// ```
/// # fn main() -> boltkv_storage::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = |name: &str| folder.path().join(name);
/// use boltkv_storage::{Db, JournalKeep, JournalOptions, Options};
/// use boltkv_storage::tools::{Restore, RestoreTo};
///
/// let journal = JournalOptions::new().keep(JournalKeep::Bytes(1 << 30));
/// let db = Options::new().journal(journal).open(path("app.db"))?;
/// db.update(|tx| tx.create_bucket("users")?.put("ada", "lovelace"))?;
/// db.begin_checkpointed()?.copy_file(path("backup.db"), 0o600)?;
///
/// db.update(|tx| tx.bucket_mut("users")?.put("grace", "hopper"))?;
/// let before = db.begin()?.id();
/// db.update(|tx| tx.delete_bucket("users"))?;
///
/// let restore = Restore::find(path("backup.db"), path("app.db-journal"))?;
/// restore.to_file(RestoreTo::Transaction(before), path("restored.db"), 0o600, &mut |_, _| ())?;
/// let restored = Db::open(path("restored.db"))?.begin()?;
/// assert_eq!(restored.bucket("users")?.get("grace")?, Some(&b"hopper"[..]));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Restore {
    backup: Tx,
    journal: PathBuf,
    waiting: Waiting,
    /// Why there is nothing behind the last record.
    damage: Option<Error>,
}

/// Which state is to be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreTo {
    /// The newest that the journal leads to.
    Newest,
    /// The one that this transaction left, or the one before it where the number is a checkpoint's.
    Transaction(TxId),
    /// The one of this time, in milliseconds since 1970: before the first transaction that was written later, as the clock of
    /// the machine had it.
    Time(u64),
}

/// A transaction whose state can be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreMoment {
    /// Its number.
    pub txid: TxId,
    /// When it was recorded, in milliseconds since 1970.
    pub time_ms: u64,
}

/// What was restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The last transaction in it. The file's own number may be one more.
    pub txid: TxId,
    /// When that was recorded, in milliseconds since 1970; `None` where it is the backup's.
    pub time_ms: Option<u64>,
    /// Transactions after the backup.
    pub transactions: u64,
    /// When the next one was recorded, where the journal has it.
    pub next_time_ms: Option<u64>,
    /// Length of the file, in bytes.
    pub bytes: u64,
}

impl Restore {
    /// Looks at a backup and at a journal: the folder of a database, which may be open in this process or another one, or one
    /// to which its segments were copied. Reads all that the journal records beyond the backup, and writes nothing.
    ///
    /// # Errors
    /// [`Error::JournalGap`] where what followed the backup is not kept any more; [`Error::JournalDoesNotFit`] where the
    /// journal does not name the backup's state: it is of another file, or was not made with
    /// [`Db::begin_checkpointed`]; [`Error::Corrupt`] where one of the backup's metas is damaged; [`Error::JournalIo`]; those
    /// of opening the backup to read it. Damage in the journal is told by [`Self::damage`].
    pub fn find(backup: impl AsRef<Path>, journal: impl AsRef<Path>) -> Result<Self> {
        let (backup, journal) = (backup.as_ref(), journal.as_ref());
        let options = Options::new().read_only(true).timeout(Duration::ZERO);
        let db = match options.open(backup) {
            // The journal that a copy of a file in use lacks is the one that is named.
            Err(Error::JournalMissing { .. }) => options.journal(JournalOptions::new().discard(true)).open(backup)?,
            opened => opened?,
        };
        if let Some(damaged) = db.damaged_meta() {
            return Err(Error::corrupt(damaged.page, "this meta of the backup is damaged: it may be the newer one"));
        }
        let backup = db.begin()?;
        let meta = MetaBytes::of(&backup.snapshot().meta);
        let (waiting, damage) = settled(journal, |log| log.since(&meta))?;
        Ok(Self { backup, journal: journal.into(), waiting, damage })
    }

    /// The backup's transaction.
    #[must_use]
    pub fn backup_txid(&self) -> TxId {
        self.backup.id()
    }

    /// The earliest time that [`RestoreTo::Time`] can name, in milliseconds since 1970: no later than when the backup's
    /// transaction was followed by another one.
    #[must_use]
    pub fn earliest_time_ms(&self) -> u64 {
        self.waiting.contains_time_ms()
    }

    /// How many transactions follow the backup.
    #[must_use]
    pub fn transactions(&self) -> u64 {
        self.waiting.records()
    }

    /// Why the journal leads no further than to the last of the [moments](Self::moments), where that is not its end.
    #[must_use]
    pub fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }

    /// Hands over every transaction that follows the backup, in order.
    ///
    /// # Errors
    /// A segment could not be read, or was used again meanwhile; what `each` returns.
    pub fn moments<E: From<Error>>(&self, mut each: impl FnMut(RestoreMoment) -> Result<(), E>) -> Result<(), E> {
        self.waiting.iter().try_for_each(|record| {
            let record = record?;
            each(RestoreMoment { txid: record.txid, time_ms: record.time_ms })
        })
    }

    /// Makes a new file of that state, with the permissions `mode` (before the process's umask). It has its name only once it
    /// is whole, checked, and on the disk. Takes memory for 16 MiB of effects and the largest transaction at a time, and
    /// what the check takes. `progress` is told bytes of work that are done, and how many there are.
    ///
    /// # Errors
    /// [`Error::Io`] of the kind `AlreadyExists` where there is such a file, which is left as it is;
    /// [`Error::JournalWithoutFile`] where the journal of another one is in the place of its journal;
    /// [`Error::RestoreOutOfReach`] where backup and journal do not lead to the state; [`Error::JournalDamaged`] where it lies
    /// behind damage, or a record does not fit; [`Error::JournalDisjoint`] where it lies behind changes that were made without
    /// the journal; [`Error::JournalIo`]; [`Error::Corrupt`] where the backup is damaged; those
    /// of a commit. Nothing is left of what was written until then.
    pub fn to_file(
        mut self,
        to: RestoreTo,
        path: impl AsRef<Path>,
        mode: u32,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Restored> {
        let path = path.as_ref();
        let stretch = self.stretch(to)?;
        refuse_existing(path)?;
        refuse_orphans(path, &Options::new())?;
        let folder = OsFolder { map: MapOptions::default() };
        new_file(&folder, path, mode, Existing::Refuse, |file| self.fill(file, path, &stretch, progress))?;
        let (txid, time_ms) = stretch.last.map_or((self.backup.id(), None), |(txid, time)| (txid, Some(time)));
        let bytes = path.metadata().map_err(Error::io("look at", Some(path)))?.len();
        let Stretch { records: transactions, next_time_ms, .. } = stretch;
        Ok(Restored { txid, time_ms, transactions, next_time_ms, bytes })
    }

    /// The records up to a state; an error where that cannot be reached.
    fn stretch(&mut self, to: RestoreTo) -> Result<Stretch> {
        let (from, newest) = (self.waiting.contains(), self.waiting.newest());
        let out_of_reach = |what: String| Err(Error::RestoreOutOfReach { what });
        let (until, is_beyond) = match to {
            RestoreTo::Newest => (Until::End, true),
            RestoreTo::Transaction(txid) if txid < from => {
                return out_of_reach(format!(
                    "transaction {txid} came before the backup, which is of transaction {from}"
                ));
            }
            RestoreTo::Transaction(txid) if txid > newest && self.damage.is_none() => {
                let journal = self.journal.display();
                return out_of_reach(format!(
                    "the journal in {journal} ends with transaction {newest}: not with {txid}"
                ));
            }
            RestoreTo::Transaction(txid) => (Until::Txid(txid), txid > newest),
            RestoreTo::Time(time_ms) if time_ms < self.earliest_time_ms() => {
                let earliest = self.earliest_time_ms();
                return out_of_reach(format!(
                    "the backup is of a later time than {time_ms} ms after 1970: at the earliest of {earliest} ms"
                ));
            }
            RestoreTo::Time(time_ms) => (Until::Time(time_ms), false),
        };
        let stretch = self.waiting.stretch(until)?;
        // What was asked for may lie behind the damage.
        let is_beyond = is_beyond || matches!(to, RestoreTo::Time(_)) && stretch.next_time_ms.is_none();
        match self.damage.take() {
            Some(damage) if is_beyond => Err(damage),
            _ => Ok(stretch),
        }
    }

    fn fill(&self, file: &FileDisk, path: &Path, stretch: &Stretch, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let all = self.backup.size() + stretch.bytes;
        let mut told = Told { out: Appender::new(file), done: 0, all, progress };
        self.backup.write_to(&mut told)?;
        let Told { mut done, progress, .. } = told;
        // Nobody else sees it before it is whole.
        let options = Options::new().durability(Durability::Never).statistics(false);
        let disk = file.try_clone().map_err(Error::io("write", Some(path)))?;
        let target = Db::on_disk(Arc::new(disk), Some(path), &options)?;
        for batch in self.waiting.batches_of(stretch.records) {
            let bytes: u64 = batch.records.iter().map(|record| record.effects.len() as u64).sum();
            target.apply(batch, self.waiting.folder())?;
            done += bytes;
            progress(done, all);
        }
        if let Some(problem) = target.check()?.into_iter().next() {
            return Err(Error::corrupt(problem.page, format!("of what was restored: {}", problem.what)));
        }
        target.sync()?;
        // Behind its last page is only room to grow.
        target.cut_file()?;
        target.close()
    }
}

/// Says how much was written.
struct Told<'a, W> {
    out: W,
    done: u64,
    all: u64,
    progress: &'a mut dyn FnMut(u64, u64),
}

impl<W: Write> Write for Told<'_, W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let written = self.out.write(data)?;
        self.done += written as u64;
        (self.progress)(self.done, self.all);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
