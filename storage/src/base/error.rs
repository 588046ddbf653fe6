//! Everything that can go wrong, one variant a kind, so that a caller can tell them apart.
//!
//! Messages name what was wrong and where: the page, the bucket, the key (escaped and cut), the limit.
//! Nothing here ever carries a whole value.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::Pgid;
use super::excerpt::{BucketPath, Excerpt, In};
use super::words::{follows, found, in_path, size_limit};

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a call on a database can answer instead of its result.
///
/// A call that returns one of these on a transaction has changed nothing in it: the transaction can
/// go on, be committed or be dropped. The exceptions are [`Error::Poisoned`] and [`Error::Io`] from
/// a commit, after which the outcome of that commit is unknown until the file is opened again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused or failed.
    #[error("could not {op}{}: {source}", in_path(path.as_ref()))]
    Io {
        /// What was being done, as a verb: `open`, `lock`, `read`, `write the meta page of`.
        op: &'static str,
        /// The file, where there is one.
        path: Option<PathBuf>,
        /// What the system said.
        source: io::Error,
    },
    /// The operating system refused or failed, when the journal was to be found, made or read: nothing was lost by it. What
    /// fails in writing it, for a commit, is an [`Error::Io`].
    #[error("could not {op} {}: {source}", path.display())]
    JournalIo {
        /// What was being done, as a verb: `make the journal's folder`, `read`.
        op: &'static str,
        /// The journal's folder, or a segment.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Neither meta page starts with bolt's magic number (bbolt: `ErrInvalid`).
    #[error("not a bolt file: neither meta page holds the magic number 0xED0CDAED")]
    NotABoltFile,
    /// The file has no bytes. Opened for writing it would become a new database; it was opened for reading only.
    #[error("the file is empty: it holds no database (opening it for writing makes one)")]
    EmptyFile,
    /// The file is of another version of the format (bbolt: `ErrVersionMismatch`).
    #[error("the file has format version {found}; only version 2 is known")]
    VersionMismatch {
        /// The version that the file names.
        found: u32,
    },
    /// Both meta pages are damaged (bbolt: `ErrChecksum`).
    #[error("both meta pages are damaged: their checksums do not match")]
    ChecksumMismatch,
    /// The file ends before it can hold what its meta page promises. It was left as it is.
    #[error("the file is cut: it has {len} bytes and needs at least {needed}")]
    FileTooShort {
        /// Bytes that are there.
        len: u64,
        /// Bytes that have to be there.
        needed: u64,
    },
    /// A page size that is no power of two in 1,024..=16,777,216 bytes.
    #[error("page size {found} is not a power of two from 1024 to 16777216")]
    InvalidPageSize {
        /// The size asked for or found.
        found: u64,
    },
    /// A journal was asked for with less between two checkpoints than it can work with
    /// ([`JournalOptions::checkpoint_size`](crate::JournalOptions::checkpoint_size)).
    #[error("a checkpoint after every {found} bytes of journal is too often: {least} bytes is the least")]
    InvalidJournalSize {
        /// The bytes asked for.
        found: u64,
        /// The least there can be.
        least: u64,
    },
    /// A page says something that cannot be. The file is damaged; `check` tells more.
    #[error("page {page}{} is damaged: {what}", In(bucket))]
    Corrupt {
        /// The page of the damage, or that leads to it; an inline bucket is on its leaf's page. 0 and 1 are the metas.
        page: Pgid,
        /// The bucket that was being read or written.
        bucket: BucketPath,
        /// What is wrong with it.
        what: String,
    },
    /// Another process holds the file's lock (bbolt: `ErrTimeout`).
    #[error("{} is locked by another process (waited {:.1} s)", path.display(), waited.as_secs_f64())]
    LockTimeout {
        /// The file.
        path: PathBuf,
        /// How long this call waited.
        waited: Duration,
    },
    /// This process has the file open already, under this path or another one: clone its [`Db`](crate::Db) instead. Two
    /// that only read may have it open at a time. A `Db` is open until its last handle and transaction are gone.
    #[error("{} is open in this process already", path.display())]
    AlreadyOpen {
        /// The file.
        path: PathBuf,
    },
    /// A file that is read without its lock ([`Peek`](crate::tools::Peek)) has changed each time before the reading was
    /// done. Less at a time may fit between two commits.
    #[error("{} has changed {times} times while this was read", path.display())]
    FileChanging {
        /// The file.
        path: PathBuf,
        /// How often it was read.
        times: u32,
    },
    /// A write was asked of a database that was opened read-only.
    #[error("the database is open read-only")]
    ReadOnly,
    /// The disk or the quota is full, or the memory that may be mapped or locked, or the process has as many files open as
    /// it may (of a database with a journal). The transaction was rolled back, nothing was lost, and the database goes on:
    /// a later commit may fit.
    #[error("no space left for the commit: {source}")]
    NoSpace {
        /// What the system said.
        source: io::Error,
    },
    /// The file has reached the size that the options, or the file system, allow. The transaction
    /// was rolled back, nothing was lost, and the database goes on.
    #[error("the file would grow past {}", size_limit(*max))]
    MaxSizeReached {
        /// The options' limit, in bytes, or without one the process's (`RLIMIT_FSIZE`); `None` where it is the file
        /// system's.
        max: Option<u64>,
    },
    /// The journal is not that of this file as it is: nothing in it names the file's newest meta. It is another file's, or
    /// the file was changed without it, by another program or by taking its place. Nothing was written.
    #[error("the journal in {} does not fit the file, whose newest transaction is {file}: {}", folder.display(), follows(found, *file))]
    JournalDoesNotFit {
        /// The journal's folder.
        folder: PathBuf,
        /// The newest transaction in the file.
        file: u64,
        /// Transactions of metas that the journal names: the newest ones, in their order.
        found: Vec<u64>,
    },
    /// The journal shows that the file held more than it does: an older copy was put in its place, or another file that was
    /// never written to. Nothing was written.
    #[error(
        "the file is as transaction {file} left it, but its journal in {} shows that it held transaction {held}: {} has its \
         place",
        folder.display(),
        if file < held { "an older copy or another file" } else { "another file" }
    )]
    FileOlderThanJournal {
        /// The journal's folder.
        folder: PathBuf,
        /// The newest transaction in the file.
        file: u64,
        /// One that the file held.
        held: u64,
    },
    /// What a journal recorded behind a transaction that is asked for is not there: its segments were used again, or are kept
    /// somewhere else; or there never was such a transaction in this journal, or a crash took it back.
    #[error(
        "the journal in {}, which goes back to transaction {oldest}, does not tell what followed transaction {wanted}: \
         it is not kept any more, a crash took that transaction back, or it is another file's",
        folder.display()
    )]
    JournalGap {
        /// The journal's folder.
        folder: PathBuf,
        /// The transaction behind which it was to be read.
        wanted: u64,
        /// The oldest one behind which everything is there.
        oldest: u64,
    },
    /// What is committed cannot be followed, because no journal is kept.
    #[error("no journal is kept, so that what was committed cannot be followed")]
    JournalNotKept,
    /// A state that is to be restored is not one that the backup and the journal lead to.
    #[error("{what}")]
    RestoreOutOfReach {
        /// Which one, and which ones there are.
        what: String,
    },
    /// One of the file's metas is damaged, and the journal knows of a newer one than the other, which is left: pages of that one
    /// may have been written over since. What the damaged one was cannot be told for sure; where it can, it is put back. Nothing
    /// was written. [`RepairOptions`](crate::tools::RepairOptions) salvages what can be reached.
    #[error(
        "meta {page} is damaged, and the journal in {} knows of transaction {newest} in the file: pages of {left}, the \
         newest that is left, may be written over",
        folder.display()
    )]
    MetaLost {
        /// The damaged meta's page: 0 or 1.
        page: Pgid,
        /// The other meta's transaction.
        left: u64,
        /// The transaction of the newest meta that was in the file, as the journal knows it.
        newest: u64,
        /// The journal's folder.
        folder: PathBuf,
    },
    /// The journal of the file records more than the file holds, and this opening cannot apply it: it is read-only, or was
    /// not told to keep a journal. Nothing was written. Open it once with
    /// [`Options::journal`](crate::Options::journal), and close it.
    #[error(
        "the file holds transactions up to {file}, and its journal in {} up to {newest}: open it with the journal first",
        folder.display()
    )]
    JournalWaits {
        /// The journal's folder.
        folder: PathBuf,
        /// The newest transaction in the file.
        file: u64,
        /// The newest one in the journal.
        newest: u64,
    },
    /// The file was not closed by who kept its journal, and no journal that knows it is where it was looked for: it may record
    /// more than the file holds. It is somewhere else, or the file is a copy of one that was in use, or the folder was lost.
    /// Nothing was written.
    #[error(
        "the file holds transactions up to {file}, and was not closed by who kept its journal, which may hold more: that is \
         not in {}",
        folder.display()
    )]
    JournalMissing {
        /// Where it was looked for.
        folder: PathBuf,
        /// The newest transaction in the file.
        file: u64,
    },
    /// A file is to be created where the journal of another one is, which is gone. Bring that one back, or move the journal
    /// away.
    #[error("the file is missing, and there is the journal of one in {}", folder.display())]
    JournalWithoutFile {
        /// The journal's folder.
        folder: PathBuf,
    },
    /// A journal holds something that was on the disk and is not whole any more, or something that no journal holds. It was
    /// not taken for the end; nothing was written.
    #[error("the journal is damaged: {}, byte {offset}: {what}", file.display())]
    JournalDamaged {
        /// The segment.
        file: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A journal goes on from a state to which what is recorded before does not lead: in between the file was changed without
    /// it, or another one took its place. Nothing was written.
    #[error(
        "{} goes on with a file as transaction {contains} left it, which the journal does not know: after transaction {last} \
         the file was changed without its journal, or replaced",
        file.display()
    )]
    JournalDisjoint {
        /// The segment that goes on.
        file: PathBuf,
        /// The last transaction of the state from which it does.
        contains: u64,
        /// The last transaction that is known before.
        last: u64,
    },
    /// A segment of a journal is of a later version of the format.
    #[error("{} is of version {found} of the journal's format; only version 1 is known", file.display())]
    JournalVersion {
        /// The segment.
        file: PathBuf,
        /// The version that it names.
        found: u32,
    },
    /// Another database has its journal in this folder, and is open.
    #[error("another database that is open keeps its journal in {}", folder.display())]
    JournalInUse {
        /// The folder.
        folder: PathBuf,
    },
    /// What was asked of [`Surgery`](crate::tools::Surgery) cannot be done to this file. Nothing was written.
    #[error("{what}")]
    Surgery {
        /// Why not.
        what: String,
    },
    /// A savepoint of another transaction, or one that an earlier rollback has undone.
    #[error("the savepoint is not one of this transaction, or was undone")]
    SavepointNotFound,
    /// A bucket's handle of another transaction.
    #[error("the bucket's handle is not one of this transaction")]
    ForeignHandle,
    /// An earlier write or sync failed, so nobody knows what the disk holds: no more writes are
    /// taken until the file is opened again. Reads go on.
    ///
    /// A second `fsync` after a failed one says nothing: the kernel may already have dropped the
    /// pages it could not write (see the "fsyncgate" discussions of `PostgreSQL`, 2018). For the same
    /// reason a file that is opened again in the same boot may be read from the kernel's cache, and
    /// look better than what the disk holds. To be sure, mend the disk, start the machine anew, and
    /// [`check`](crate::Db::check) the file.
    #[error("no more writes: an earlier one failed ({reason}); open the file again")]
    Poisoned {
        /// The failure that did it.
        reason: String,
    },
    /// There is no bucket of that name.
    #[error("no bucket {}{}", Excerpt(name), In(within))]
    BucketNotFound {
        /// The name, cut to what a message bears.
        name: Vec<u8>,
        /// Where it was looked for.
        within: BucketPath,
    },
    /// There is a bucket of that name already.
    #[error("bucket {}{} exists already", Excerpt(name), In(within))]
    BucketExists {
        /// The name, cut to what a message bears.
        name: Vec<u8>,
        /// Where it was to be created.
        within: BucketPath,
    },
    /// A bucket was to be moved to where it is (bbolt: `ErrSameBuckets`).
    #[error("bucket {} is to be moved from a bucket to the same bucket", Excerpt(name))]
    SameBuckets {
        /// The name of the bucket to be moved, cut to what a message bears.
        name: Vec<u8>,
    },
    /// A bucket was to be moved into itself, or into a bucket in it.
    #[error("bucket {} cannot be moved into itself", Excerpt(name))]
    MovedIntoItself {
        /// The name of the bucket to be moved, cut to what a message bears.
        name: Vec<u8>,
    },
    /// A bucket's name was empty.
    #[error("a bucket's name must have at least one byte")]
    BucketNameRequired,
    /// A key was empty.
    #[error("a key must have at least one byte")]
    KeyRequired,
    /// A key or a bucket's name is too long.
    #[error("the key has {len} bytes; the limit is {max}")]
    KeyTooLarge {
        /// Bytes it has.
        len: usize,
        /// Bytes it may have.
        max: usize,
    },
    /// A value is too long.
    #[error("the value has {len} bytes; the limit is {max}")]
    ValueTooLarge {
        /// Bytes it has.
        len: usize,
        /// Bytes it may have.
        max: usize,
    },
    /// A bucket where a value is meant, or a value where a bucket is meant.
    #[error("{}{} is a {}, not a {}", Excerpt(key), In(within), found(*is_bucket), found(!*is_bucket))]
    IncompatibleValue {
        /// The key, cut to what a message bears.
        key: Vec<u8>,
        /// Where it is.
        within: BucketPath,
        /// Whether it is a bucket.
        is_bucket: bool,
    },
    /// The bucket's sequence cannot be raised past 2^64 - 1.
    #[error("the bucket's sequence is at its end (2^64 - 1)")]
    SequenceExhausted,
}
