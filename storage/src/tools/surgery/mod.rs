//! Changing single pages of a file that is damaged, or to be looked into, on a copy.
//!
//! What is done to a page is worked out from the source, of which nothing is believed that was not
//! compared with the file's length; only then is the copy made, so that an operation that cannot be
//! done leaves nothing behind. The source is never written, and the copy has its name only when it
//! is whole. Where an operation succeeds in both, the copy equals byte for byte that of bbolt's
//! `surgery`, with the exceptions that the operations' documents name.
//!
//! - `pages`: copying a page, clearing elements; `meta`: the two metas; `freelist`: giving it up and
//!   finding it again

mod freelist;
mod meta;
mod pages;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::disk::MapOptions;
use crate::disk::{Disk as _, Existing, FileDisk, Folder as _, OsFolder, new_file, refuse_existing};
use crate::format::{META_BYTES, Meta, PAGE_HEADER};
use crate::journal::MetaBytes;
use crate::tools::raw::RawFile;
use crate::{Error, Result};

pub use freelist::{Abandoned, Rebuilt};
pub use meta::{MetaChange, MetaUpdated, Reverted};
pub use pages::{Cleared, Copied};

/// Bytes that are copied at a time.
const PIECE: u64 = 1 << 20;

/// Operations on single pages of a bolt file, each of which writes a changed copy.
///
/// The source is locked like a file that is read, and left as it is. The copy gets the source's
/// permissions; it is written under a temporary name, synced, and then named, and a file that is
/// there already is never replaced: [`Error::Io`] of the kind `AlreadyExists`.
///
/// ```
/// # fn main() -> boltkv_storage::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let (source, output) = (folder.path().join("app.db"), folder.path().join("reverted.db"));
/// use boltkv_storage::Db;
/// use boltkv_storage::tools::Surgery;
///
/// let db = Db::open(&source)?;
/// db.update(|tx| tx.create_bucket("kept").map(drop))?;
/// db.update(|tx| tx.create_bucket("taken back").map(drop))?;
/// drop(db);
///
/// let reverted = Surgery::new(&source, &output).revert_meta_page()?;
/// assert_eq!(reverted.txid, 2);
/// let db = Db::open(&output)?;
/// assert!(db.begin()?.bucket("kept").is_ok() && db.begin()?.bucket("taken back").is_err());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Surgery {
    source: PathBuf,
    output: PathBuf,
    timeout: Duration,
    page_size: Option<u32>,
    lock: bool,
}

/// What an operation changes in the copy, in this order.
type Changes = Vec<Change>;

/// One of the changes; offsets are those of the file.
#[derive(Debug)]
enum Change {
    /// These bytes.
    Write { at: u64, bytes: Vec<u8> },
    /// Bytes of the source in another place.
    Copy { from: u64, len: u64, to: u64 },
}

impl Surgery {
    /// Reads `source` and will write `output`.
    pub fn new(source: impl Into<PathBuf>, output: impl Into<PathBuf>) -> Self {
        let (source, output) = (source.into(), output.into());
        Self { source, output, timeout: Duration::ZERO, page_size: None, lock: true }
    }

    /// How long to wait for a source that another process writes, before [`Error::LockTimeout`].
    /// Default: not at all.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Bytes of a page, where both metas are too damaged to say. Default: what a meta says.
    #[must_use]
    pub fn page_size(mut self, bytes: u32) -> Self {
        self.page_size = Some(bytes);
        self
    }

    /// Do not lock the source, as bbolt does: of what another process writes meanwhile, the copy may have
    /// a part. Default: it is locked.
    #[must_use]
    pub fn unlocked(mut self) -> Self {
        self.lock = false;
        self
    }

    /// Writes the copy with the changes that `plan` makes of the source.
    fn operate<T>(&self, plan: impl FnOnce(&RawFile) -> Result<(T, Changes)>) -> Result<T> {
        self.copy(plan, |_, changed| Ok(changed))
    }

    /// The same, and then has `finish` do the rest to the copy that has no name yet.
    fn copy<P, T>(
        &self,
        plan: impl FnOnce(&RawFile) -> Result<(P, Changes)>,
        finish: impl FnOnce(&FileDisk, P) -> Result<T>,
    ) -> Result<T> {
        let folder = OsFolder { map: MapOptions::default() };
        refuse_existing(&self.output)?;
        let source = RawFile::open(&self.source, self.page_size)?;
        if self.lock {
            source.lock(self.timeout)?;
        }
        let (planned, changes) = plan(&source)?;
        let mode = folder.mode(source.disk()).map_err(Error::io("look at", Some(&self.source)))?;
        new_file(&folder, &self.output, mode, Existing::Refuse, |copy| {
            let failed = |error| Error::io("copy", Some(&self.source))(error);
            copy_range(source.disk(), copy, 0, source.len(), 0).map_err(failed)?;
            for change in &changes {
                change.apply(source.disk(), copy).map_err(failed)?;
            }
            (0..2).try_for_each(|page| close(copy, page * u64::from(source.page_size()))).map_err(failed)?;
            finish(copy, planned)
        })
    }

    fn output(&self) -> &Path {
        &self.output
    }
}

impl Change {
    fn apply(&self, source: &FileDisk, copy: &FileDisk) -> io::Result<()> {
        match *self {
            Self::Write { at, ref bytes } => copy.write_at(bytes, at),
            Self::Copy { from, len, to } => copy_range(source, copy, from, len, to),
        }
    }
}

/// Has the meta there say that no journal holds more: the copy is all there is.
fn close(copy: &FileDisk, at: u64) -> io::Result<()> {
    let mut page = [0; META_BYTES];
    let read = copy.read_at(&mut page, at)?;
    match Meta::decode(&page[..read]) {
        Ok(meta) if meta.is_left_open() => copy.write_at(&MetaBytes::of(&meta.closed()).0, at + PAGE_HEADER as u64),
        _ => Ok(()),
    }
}

/// Copies bytes piece by piece.
fn copy_range(source: &FileDisk, copy: &FileDisk, mut from: u64, len: u64, mut to: u64) -> io::Result<()> {
    let end = from + len;
    let mut piece = vec![0; len.min(PIECE) as usize];
    while from < end {
        let part = &mut piece[..(end - from).min(PIECE) as usize];
        if source.read_at(part, from)? < part.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        copy.write_at(part, to)?;
        from += part.len() as u64;
        to += part.len() as u64;
    }
    Ok(())
}

fn refused(what: impl Into<String>) -> Error {
    Error::Surgery { what: what.into() }
}
