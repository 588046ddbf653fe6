//! Pages as they lie in a file, for looking at one that does not open.
//!
//! Nothing here trusts a meta or a page: every number is compared with the file's length before it
//! is followed, and what does not fit is an [`Error::Corrupt`] that names the page. Everything is
//! read from the disk when it is asked for, never through a map, so that a file which somebody
//! writes or cuts meanwhile gives odd answers at worst. Memory is bounded by the one key or value
//! that is asked for, whatever a page claims. Nothing here ever writes.

mod page;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::disk::MapOptions;
use crate::disk::{Disk as _, FileDisk, Folder as _, OsFolder};
use crate::format::{
    ELEMENT, MAX_ELEMENTS, META_BYTES, MetaFields, Metas, PAGE_HEADER, PageHeader, Pgid, is_page_size, page_sizes,
};
use crate::{Error, Result};

pub(crate) use page::Slot;
pub use page::{RawBranchElement, RawHeader, RawLeafElement, RawPage};

/// A file that is read page by page. It is not locked, unless [`lock`](Self::lock) is called: one
/// that a server has open can be looked at, and pages can change while they are read.
///
/// ```
/// # fn main() -> boltkv_storage::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("app.db");
/// # drop(boltkv_storage::Db::open(&path)?);
/// use boltkv_storage::PageType;
/// use boltkv_storage::tools::RawFile;
///
/// let file = RawFile::open(&path, None)?;
/// let root = file.newest_meta().map_or(3, |meta| meta.root);
/// assert_eq!(file.page(root)?.header().page_type(), PageType::Leaf);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct RawFile {
    disk: FileDisk,
    path: PathBuf,
    len: u64,
    metas: Metas,
}

/// Everything that a page's elements can occupy: what is read of a page at once.
const HEAD: u64 = (PAGE_HEADER + ELEMENT * (MAX_ELEMENTS + 1)) as u64;

impl RawFile {
    /// Opens a file. Without a `page_size`, in bytes, it is what a valid meta says, or else what the
    /// rest of a damaged one says.
    ///
    /// # Errors
    /// [`Error::EmptyFile`]; [`Error::NotABoltFile`] where no page size is given and nothing like a meta is found;
    /// [`Error::InvalidPageSize`] for a given one that no file can have; [`Error::Io`].
    pub fn open(path: impl AsRef<Path>, page_size: Option<u32>) -> Result<Self> {
        let path = path.as_ref();
        let disk = folder().open(path, false).map_err(Error::io("open", Some(path)))?;
        let len = disk.len().map_err(Error::io("look at", Some(path)))?;
        let read = |offset| meta_at(&disk, path, offset);
        let metas = match page_size {
            Some(size) if !is_page_size(size) => return Err(Error::InvalidPageSize { found: size.into() }),
            Some(size) => Metas::of(size, read)?,
            None if len == 0 => return Err(Error::EmptyFile),
            None => match Metas::find(read)? {
                Some(metas) => metas,
                None => Metas::of(size_by_damaged(read)?.ok_or(Error::NotABoltFile)?, read)?,
            },
        };
        Ok(Self { disk, path: path.into(), len, metas })
    }

    /// The file itself.
    pub(crate) fn disk(&self) -> &FileDisk {
        &self.disk
    }

    /// Locks the file, shared with other readers, until this value is dropped.
    ///
    /// # Errors
    /// [`Error::LockTimeout`] if another process writes it for longer than `timeout`; [`Error::Io`],
    /// also where the path names another file by then.
    pub fn lock(&self, timeout: Duration) -> Result<()> {
        if folder().lock(&self.disk, &self.path, true, Some(timeout))? {
            return Ok(());
        }
        let gone = std::io::Error::other("another file has taken its name");
        Err(Error::io("lock", Some(&self.path))(gone))
    }

    /// Bytes of a page: those given when it was opened, or found in a meta.
    #[must_use]
    pub fn page_size(&self) -> u32 {
        self.metas.page_size()
    }

    /// Length in bytes, when it was opened.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it is a file's length, not a collection's")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whole pages in the file, in use or not.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.len / u64::from(self.page_size())
    }

    /// The fields of the meta on page 0 or 1, as they were when the file was opened; `None` for
    /// other pages, and where the file ends before.
    #[must_use]
    pub fn meta(&self, page: Pgid) -> Option<MetaFields> {
        self.metas.fields(page)
    }

    /// The meta by which a database is opened: of those that are valid the one with the higher
    /// transaction number.
    #[must_use]
    pub fn newest_meta(&self) -> Option<MetaFields> {
        newest_of(&self.metas)
    }

    /// The same, as it is by now.
    pub(in crate::tools) fn read_newest_meta(&self) -> Result<Option<MetaFields>> {
        self.read_metas().map(|metas| newest_of(&metas))
    }

    /// Goes on with the file as it is by now.
    pub(in crate::tools) fn look_again(&mut self) -> Result<()> {
        self.metas = self.read_metas()?;
        self.len = self.disk.len().map_err(Error::io("look at", Some(&self.path)))?;
        Ok(())
    }

    fn read_metas(&self) -> Result<Metas> {
        Metas::of(self.page_size(), |offset| meta_at(&self.disk, &self.path, offset))
    }

    /// The metas, and which of them are valid.
    pub(in crate::tools) fn metas(&self) -> &Metas {
        &self.metas
    }

    /// The page from which on none is in use: the newest meta's high-water mark, as far as the file
    /// goes; without a valid meta, the file's end.
    #[must_use]
    pub fn end(&self) -> Pgid {
        self.newest_meta().map_or(self.pages(), |meta| meta.high_water_mark.min(self.pages()))
    }

    /// Fills `buf` from a byte offset on; returns fewer bytes only where the file ends.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.disk.read_at(buf, offset).map_err(Error::io("read", Some(&self.path)))
    }

    /// The header of a page, whatever it says.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the file ends before the page does; [`Error::Io`].
    pub fn header(&self, id: Pgid) -> Result<RawHeader> {
        let mut bytes = [0; PAGE_HEADER];
        self.read_at(&mut bytes, self.offset(id)?)?;
        PageHeader::read(&bytes).map(RawHeader::from).ok_or_else(|| Error::corrupt(id, "it has no header"))
    }

    /// A page with all that it runs on over.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where its header names another page, or a run that goes beyond the end of
    /// the file; otherwise as [`Self::header`].
    pub fn page(&self, id: Pgid) -> Result<RawPage<'_>> {
        let header = self.header(id)?;
        if header.id != id {
            return Err(Error::corrupt(id, format!("its header says that it is page {}", header.id)));
        }
        let run = u64::from(header.overflow) + 1;
        if run > self.pages() - id {
            let what = format!("it is said to run on over {} pages, beyond the end of the file", header.overflow);
            return Err(Error::corrupt(id, what));
        }
        let len = run * u64::from(self.page_size());
        let mut head = vec![0; len.min(HEAD) as usize];
        let start = self.offset(id)?;
        let read = self.read_at(&mut head, start)?;
        if read < head.len() {
            return Err(cut(id));
        }
        Ok(RawPage { file: self, header, start, len, head })
    }

    /// Where a page begins, if the file has all of its first `page_size` bytes.
    fn offset(&self, id: Pgid) -> Result<u64> {
        if id < self.pages() {
            return Ok(id * u64::from(self.page_size()));
        }
        Err(Error::corrupt(id, format!("the file has only {} whole pages", self.pages())))
    }
}

fn meta_at(disk: &FileDisk, path: &Path, offset: u64) -> Result<Option<MetaFields>> {
    let mut page = [0; META_BYTES];
    let read = disk.read_at(&mut page, offset).map_err(Error::io("read", Some(path)))?;
    Ok(MetaFields::read(&page[..read]))
}

fn newest_of(metas: &Metas) -> Option<MetaFields> {
    let newest = metas.newest()?;
    [0, 1].into_iter().find(|&page| metas.meta(page) == Ok(newest)).and_then(|page| metas.fields(page))
}

/// The page size that a damaged meta names.
fn size_by_damaged(mut read: impl FnMut(u64) -> Result<Option<MetaFields>>) -> Result<Option<u32>> {
    let says = |meta: &MetaFields| meta.has_magic() && is_page_size(meta.page_size);
    if let Some(first) = read(0)?.filter(says) {
        return Ok(Some(first.page_size));
    }
    for size in page_sizes() {
        if read(size.into())?.is_some_and(|meta| says(&meta) && meta.page_size == size) {
            return Ok(Some(size));
        }
    }
    Ok(None)
}

/// The file system; nothing of this room is mapped.
fn folder() -> OsFolder {
    OsFolder { map: MapOptions::default() }
}

fn cut(id: Pgid) -> Error {
    Error::corrupt(id, "the file ends within it")
}
