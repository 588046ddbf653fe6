//! Pages as they lie in a file, for looking at one that does not open.
//!
//! Nothing here trusts a meta or a page: every number is compared with the file's length before it
//! is followed, and what does not fit is an [`Error::Corrupt`] that names the page. Everything is
//! read from the disk when it is asked for, never through a map, so that a file which somebody
//! writes or cuts meanwhile gives odd answers at worst. Memory is bounded by the one key or value
//! that is asked for, whatever a page claims. Nothing here ever writes.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use zerocopy::FromBytes as _;
use zerocopy::little_endian::U64;

use super::inspect::PageType;
use crate::disk::MapOptions;
use crate::disk::{Disk as _, FileDisk, Folder as _, OsFolder};
use crate::format::{
    BUCKET_FLAG, BranchElement, BucketHeader, ELEMENT, LeafElement, MAX_ELEMENTS, META_BYTES, MetaFields, PAGE_HEADER,
    PageHeader, PageKind, Pgid, is_page_size,
};
use crate::{Error, MAX_VALUE_SIZE, Result};

/// A file that is read page by page. It is not locked, unless [`lock`](Self::lock) is called: one
/// that a server has open can be looked at, and pages can change while they are read.
///
/// ```
/// # fn main() -> boltkv_storage::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("app.db");
/// # drop(boltkv_storage::Db::open(&path)?);
/// use boltkv_storage::{PageType, RawFile};
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
    page_size: u32,
    metas: [Option<MetaFields>; 2],
}

/// Everything that a page's elements can occupy: what is read of a page at once.
const HEAD: u64 = (PAGE_HEADER + ELEMENT * (MAX_ELEMENTS + 1)) as u64;
/// Freelist ids that are read at once.
const IDS_AT_ONCE: u64 = 8192;

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
        let mut file = Self { disk, path: path.into(), len, page_size: 0, metas: [None; 2] };
        file.page_size = match page_size {
            Some(size) if !is_page_size(size) => return Err(Error::InvalidPageSize { found: size.into() }),
            Some(size) => size,
            None if len == 0 => return Err(Error::EmptyFile),
            None => file.find_page_size()?.ok_or(Error::NotABoltFile)?,
        };
        file.metas = [file.meta_at(0)?, file.meta_at(file.page_size.into())?];
        Ok(file)
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
        self.page_size
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
        self.len / u64::from(self.page_size)
    }

    /// The fields of the meta on page 0 or 1, as they were when the file was opened; `None` for
    /// other pages, and where the file ends before.
    #[must_use]
    pub fn meta(&self, page: Pgid) -> Option<MetaFields> {
        self.metas.get(usize::try_from(page).ok()?).copied().flatten()
    }

    /// The meta by which a database is opened: of those that are valid the one with the higher
    /// transaction number.
    #[must_use]
    pub fn newest_meta(&self) -> Option<MetaFields> {
        let valid = |meta: &MetaFields| meta.fault().is_none() && meta.page_size == self.page_size;
        self.metas.into_iter().flatten().filter(valid).max_by_key(|meta| meta.txid)
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
        let len = run * u64::from(self.page_size);
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
            return Ok(id * u64::from(self.page_size));
        }
        Err(Error::corrupt(id, format!("the file has only {} whole pages", self.pages())))
    }

    fn meta_at(&self, offset: u64) -> Result<Option<MetaFields>> {
        let mut page = [0; META_BYTES];
        let read = self.read_at(&mut page, offset)?;
        Ok(MetaFields::read(&page[..read]))
    }

    /// As [`Db::open`](crate::Db::open) finds it, and after that by metas that are damaged.
    fn find_page_size(&self) -> Result<Option<u32>> {
        let first = self.meta_at(0)?;
        let mut seconds = Vec::new();
        for size in (0..15).map(|power| 1024 << power) {
            let meta = self.meta_at(u64::from(size))?.filter(|meta| meta.page_size == size);
            seconds.extend(meta);
        }
        let metas = || first.iter().filter(|meta| is_page_size(meta.page_size)).chain(&seconds);
        let valid = metas().find(|meta| meta.fault().is_none());
        let found = valid.or_else(|| metas().find(|meta| meta.has_magic()));
        Ok(found.map(|meta| meta.page_size))
    }
}

/// The file system; nothing of this room is mapped.
fn folder() -> OsFolder {
    OsFolder { map: MapOptions::default() }
}

fn cut(id: Pgid) -> Error {
    Error::corrupt(id, "the file ends within it")
}

/// A page's first 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawHeader {
    /// Its number; not always that of the place where it stands.
    pub id: Pgid,
    /// What kind of page it is: 1 branch, 2 leaf, 4 meta, 16 freelist.
    pub flags: u16,
    /// Elements in it; of a freelist 0xFFFF where there are more than fit 16 bits.
    pub count: u16,
    /// Pages that it runs on over.
    pub overflow: u32,
}

impl RawHeader {
    /// What its flags say; never [`PageType::Free`], of which only the freelist knows.
    #[must_use]
    pub fn page_type(&self) -> PageType {
        PageKind::of(self.flags).map_or(PageType::Unknown, PageType::from)
    }
}

impl From<PageHeader> for RawHeader {
    fn from(header: PageHeader) -> Self {
        Self {
            id: header.id.get(),
            flags: header.flags.get(),
            count: header.count.get(),
            overflow: header.overflow.get(),
        }
    }
}

/// A page of a [`RawFile`], whose elements are read as they are asked for.
#[derive(Debug)]
pub struct RawPage<'file> {
    file: &'file RawFile,
    header: RawHeader,
    /// Where it begins in the file.
    start: u64,
    /// Bytes of its run.
    len: u64,
    /// The first of them: all elements, and most often everything.
    head: Vec<u8>,
}

/// An element of a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawLeafElement<'page> {
    /// 1 where the value is a bucket.
    pub flags: u32,
    /// Its key.
    pub key: Cow<'page, [u8]>,
    /// Its value; a bucket's begins with root page and sequence.
    pub value: Cow<'page, [u8]>,
}

/// An element of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawBranchElement<'page> {
    /// The lowest key in the child, when it was written.
    pub key: Cow<'page, [u8]>,
    /// The child's page.
    pub child: Pgid,
}

/// Where an element's key and value lie: `len` bytes from offset `at` of its page.
pub(crate) struct Slot {
    pub(crate) at: u64,
    pub(crate) len: u64,
    pub(crate) element: Element,
}

/// An element as it stands in its page.
pub(crate) enum Element {
    Leaf(LeafElement),
    Branch(BranchElement),
}

impl Element {
    /// Its bytes, with key and value so many bytes behind its own first.
    pub(crate) fn with_pos(self, pos: u32) -> [u8; ELEMENT] {
        match self {
            Self::Leaf(element) => zerocopy::transmute!(LeafElement { pos: pos.into(), ..element }),
            Self::Branch(element) => zerocopy::transmute!(BranchElement { pos: pos.into(), ..element }),
        }
    }
}

impl RawLeafElement<'_> {
    /// Whether the value is a bucket.
    #[must_use]
    pub fn is_bucket(&self) -> bool {
        self.flags & BUCKET_FLAG != 0
    }

    /// A bucket's root page (0: it lies inline, right here) and sequence; `None` where the value is
    /// no bucket, or too short for one.
    #[must_use]
    pub fn bucket(&self) -> Option<(Pgid, u64)> {
        let (header, _) = BucketHeader::read_from_prefix(&self.value).ok().filter(|_| self.is_bucket())?;
        Some((header.root.get(), header.sequence.get()))
    }
}

impl RawPage<'_> {
    /// Its header.
    #[must_use]
    pub fn header(&self) -> RawHeader {
        self.header
    }

    /// Bytes of all the pages that it spans.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a page has at least its header")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The meta in it, if it is one.
    #[must_use]
    pub fn meta(&self) -> Option<MetaFields> {
        MetaFields::read(&self.head).filter(|_| self.header.page_type() == PageType::Meta)
    }

    /// Element `index` of a leaf, counted from 0. Keeps no more in memory than its key and value.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the page is no leaf or has no such element, or where the element
    /// points outside of it; [`Error::Io`].
    pub fn leaf_element(&self, index: u16) -> Result<RawLeafElement<'_>> {
        let (at, bytes) = self.element(index, PageType::Leaf)?;
        let element = LeafElement::read_from_bytes(bytes).map_err(|_| self.no_element(index))?;
        let (start, key_len) = (at + u64::from(element.pos), element.ksize.get());
        let key = self.data(index, start, key_len)?;
        let value = self.data(index, start + u64::from(key_len), element.vsize.get())?;
        Ok(RawLeafElement { flags: element.flags.get(), key, value })
    }

    /// Element `index` of a branch, counted from 0.
    ///
    /// # Errors
    /// As [`Self::leaf_element`].
    pub fn branch_element(&self, index: u16) -> Result<RawBranchElement<'_>> {
        let (at, bytes) = self.element(index, PageType::Branch)?;
        let element = BranchElement::read_from_bytes(bytes).map_err(|_| self.no_element(index))?;
        let key = self.data(index, at + u64::from(element.pos), element.ksize.get())?;
        Ok(RawBranchElement { key, child: element.child.get() })
    }

    /// How many ids a freelist page lists, and these ids in the order in which they stand there.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the page is no freelist, or claims more ids than fit; [`Error::Io`].
    /// Reading the ids can fail likewise.
    pub fn freelist(&self) -> Result<(u64, impl Iterator<Item = Result<Pgid>>)> {
        const ID: u64 = size_of::<U64>() as u64;
        self.expect(PageType::Freelist)?;
        let mut at = PAGE_HEADER as u64;
        let mut count = u64::from(self.header.count);
        if self.header.count == 0xFFFF {
            let bytes = self.bytes(at, ID)?;
            count = U64::read_from_bytes(&bytes).map_err(|_| cut(self.header.id))?.get();
            at += ID;
        }
        let fits = (self.len - at) / ID;
        if count > fits {
            let what = format!("the freelist claims {count} ids, and {fits} fit");
            return Err(Error::corrupt(self.header.id, what));
        }
        let chunk = move |first: u64| {
            let ids = self.bytes(at + first * ID, (count - first).min(IDS_AT_ONCE) * ID);
            let (ids, failed) = match ids {
                Ok(bytes) => (bytes.chunks_exact(ID as usize).map(id_of).collect(), None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            ids.into_iter().map(Ok).chain(failed)
        };
        let firsts = (0..count).step_by(IDS_AT_ONCE as usize);
        Ok((count, firsts.flat_map(chunk)))
    }

    /// Where the key and value of element `index` lie, which are not read.
    pub(crate) fn slot(&self, index: usize) -> Result<Slot> {
        let index = u16::try_from(index).map_err(|_| self.no_element(u16::MAX))?;
        let (at, bytes) = self.element(index, self.header.page_type())?;
        let (element, pos, len) = if self.header.page_type() == PageType::Branch {
            let element = BranchElement::read_from_bytes(bytes).map_err(|_| self.no_element(index))?;
            (Element::Branch(element), element.pos, u64::from(element.ksize))
        } else {
            let element = LeafElement::read_from_bytes(bytes).map_err(|_| self.no_element(index))?;
            (Element::Leaf(element), element.pos, u64::from(element.ksize) + u64::from(element.vsize))
        };
        let at = at + u64::from(pos);
        if at + len > self.len {
            return Err(self.outside(index, at, len));
        }
        Ok(Slot { at, len, element })
    }

    /// Where element `index` stands, and its 16 bytes.
    fn element(&self, index: u16, page_type: PageType) -> Result<(u64, &[u8])> {
        self.expect(page_type)?;
        if index >= self.header.count {
            return Err(self.no_element(index));
        }
        let at = PAGE_HEADER + usize::from(index) * ELEMENT;
        let bytes = self.head.get(at..at + ELEMENT).ok_or_else(|| self.outside(index, at as u64, ELEMENT as u64))?;
        Ok((at as u64, bytes))
    }

    fn data(&self, index: u16, start: u64, len: u32) -> Result<Cow<'_, [u8]>> {
        if u64::from(len) > MAX_VALUE_SIZE as u64 || start + u64::from(len) > self.len {
            return Err(self.outside(index, start, len.into()));
        }
        self.bytes(start, len.into())
    }

    /// Bytes of the page; the caller has seen that it has them.
    fn bytes(&self, start: u64, len: u64) -> Result<Cow<'_, [u8]>> {
        if let Some(bytes) = self.head.get(start as usize..(start + len) as usize) {
            return Ok(Cow::Borrowed(bytes));
        }
        let mut bytes = vec![0; len as usize];
        let read = self.file.read_at(&mut bytes, self.start + start)?;
        if read < bytes.len() {
            return Err(cut(self.header.id));
        }
        Ok(Cow::Owned(bytes))
    }

    fn expect(&self, expected: PageType) -> Result<()> {
        let found = self.header.page_type();
        if found == expected {
            return Ok(());
        }
        Err(Error::corrupt(self.header.id, format!("it is no {expected} page: its type is {found}")))
    }

    fn no_element(&self, index: u16) -> Error {
        Error::corrupt(self.header.id, format!("it has {} elements, and none with index {index}", self.header.count))
    }

    fn outside(&self, index: u16, start: u64, len: u64) -> Error {
        let what = format!("element {index} points to {len} bytes at offset {start}, outside of its page");
        Error::corrupt(self.header.id, what)
    }
}

fn id_of(bytes: &[u8]) -> Pgid {
    U64::read_from_bytes(bytes).map_or(0, U64::get)
}
