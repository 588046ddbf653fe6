//! Looking at how a database is built: its buckets and its pages.
//!
//! Headers of pages are read from the disk, never through the map: a page that is free may be
//! written at any moment.

use std::fmt;

use crate::bucket::Bucket;
use crate::check::{PageSet, reachable};
use crate::format::{NO_FREELIST, PAGE_HEADER, PageHeader, PageKind, Pgid, freelist_ids};
use crate::tx::Tx;
use crate::walk::{Allowance, buckets_in, pages};
use crate::{Error, Result};

/// A bucket, as [`Bucket::inspect`] lists it.
///
/// The list is bbolt's tree written down depth first: a bucket comes before those in it, and
/// `depth` tells whose it is. (A tree of nested values could not be dropped or printed without
/// recursion, and a file can nest buckets deeper than a stack is.)
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketStructure {
    /// Buckets around it, up to the one that was inspected: 0 for that one.
    pub depth: usize,
    /// Its name; of the one that was inspected: `root`, as in bbolt.
    pub name: Vec<u8>,
    /// Values in it, those of inner buckets not included.
    pub values: u64,
}

impl Bucket<'_> {
    /// Lists this bucket and all buckets in it, depth first in the order of their names. Reads all
    /// their pages.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the file is damaged.
    pub fn inspect(&self) -> Result<Vec<BucketStructure>> {
        let mut found = Vec::new();
        let mut allowance = Allowance::new(&self.source);
        let mut ahead = vec![(0, &b"root"[..], *self)];
        while let Some((depth, name, bucket)) = ahead.pop() {
            let (mut keys, mut inner) = (0, Vec::new());
            pages(bucket.source, bucket.root, &mut allowance, |view, _| {
                if view.is_leaf() {
                    keys += view.len();
                    buckets_in(&bucket, &view, &mut inner)?;
                }
                Ok(())
            })?;
            let values = (keys - inner.len()) as u64;
            found.push(BucketStructure { depth, name: name.to_vec(), values });
            ahead.extend(inner.into_iter().rev().map(|(name, bucket)| (depth + 1, name, bucket)));
        }
        Ok(found)
    }
}

/// What a page is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PageType {
    /// One of the two metas.
    Meta,
    /// The list of the free pages.
    Freelist,
    /// A branch of a bucket's tree.
    Branch,
    /// A leaf of a bucket's tree.
    Leaf,
    /// Nothing: it can be used again once no reader sees it.
    Free,
    /// No page begins here: another one runs on over it, or the file is damaged.
    Unknown,
}

impl fmt::Display for PageType {
    /// bbolt's name for it: `meta`, `freelist`, `branch`, `leaf`, `free` or `unknown`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Meta => "meta",
            Self::Freelist => "freelist",
            Self::Branch => "branch",
            Self::Leaf => "leaf",
            Self::Free => "free",
            Self::Unknown => "unknown",
        })
    }
}

/// A page, as its header describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageInfo {
    /// Its number.
    pub id: Pgid,
    /// What it is used for.
    pub page_type: PageType,
    /// Elements in it: entries of a leaf, children of a branch, ids in a freelist (0xFFFF where
    /// there are more than fit 16 bits). 0 for other types.
    pub count: u16,
    /// Pages that it runs on over. 0 where no page begins.
    pub overflow: u32,
}

impl Tx {
    /// Lists the database's buckets; see [`Bucket::inspect`].
    ///
    /// # Errors
    /// As [`Bucket::inspect`].
    pub fn inspect(&self) -> Result<Vec<BucketStructure>> {
        self.root().inspect()
    }

    /// The pages on the way to a key: from the root bucket's root through the buckets that the path
    /// names to the leaf that holds its last name, a key or a bucket. A bucket that lies inline adds
    /// none. `None` where the last bucket has no such key.
    ///
    /// # Errors
    /// [`Error::BucketNotFound`], [`Error::IncompatibleValue`] on the way; [`Error::Corrupt`] where a
    /// page on the way is damaged; [`Error::KeyRequired`] for an empty path.
    pub fn pages_to<N: AsRef<[u8]>>(&self, path: impl IntoIterator<Item = N>) -> Result<Option<Vec<Pgid>>> {
        let mut names = path.into_iter().peekable();
        let mut bucket = self.root();
        let mut way = Vec::new();
        while let Some(name) = names.next() {
            let name = name.as_ref();
            let found = bucket.source.find_telling(bucket.root, name, |page| way.push(page))?;
            match (found, names.peek().is_some()) {
                (Some(entry), true) if entry.is_bucket => bucket = bucket.bucket_of(entry)?,
                (Some(_), true) => return Err(Error::incompatible(name, false)),
                (None, true) => return Err(Error::bucket_not_found(name)),
                (Some(_), false) => return Ok(Some(way)),
                (None, false) => return Ok(None),
            }
        }
        Err(Error::KeyRequired)
    }

    /// What page `id` is; `None` at and above the high-water mark. Reads the freelist, or, where the
    /// file stores none, all pages: to look at many, take [`Self::page_infos`].
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the freelist, or without one any page, is damaged; [`Error::Io`].
    pub fn page_info(&self, id: Pgid) -> Result<Option<PageInfo>> {
        self.page_infos()?.at(id)
    }

    /// All pages below the high-water mark, in the order of the file. Those that another page runs
    /// on over are passed over.
    ///
    /// # Errors
    /// As [`Self::page_info`].
    pub fn page_infos(&self) -> Result<PageInfos<'_>> {
        Ok(PageInfos { tx: self, free: self.free_pages()?, next: 0 })
    }

    /// The pages that this snapshot does not use.
    fn free_pages(&self) -> Result<PageSet> {
        let snapshot = self.snapshot();
        let (freelist, mark) = (snapshot.meta.freelist, snapshot.meta.mark);
        let free = PageSet::new(mark);
        if freelist == NO_FREELIST {
            let used = reachable(snapshot)?;
            for id in (2..mark).filter(|&id| !used.contains(id)) {
                free.insert(id);
            }
        } else {
            let (_, bytes) = snapshot.pages().bytes(freelist)?;
            for id in freelist_ids(freelist, bytes)? {
                free.insert(id);
            }
        }
        Ok(free)
    }
}

/// An iterator over the pages of a snapshot; see [`Tx::page_infos`].
pub struct PageInfos<'tx> {
    tx: &'tx Tx,
    free: PageSet,
    next: Pgid,
}

impl PageInfos<'_> {
    fn at(&self, id: Pgid) -> Result<Option<PageInfo>> {
        let meta = &self.tx.snapshot().meta;
        if id >= meta.mark {
            return Ok(None);
        }
        if self.free.contains(id) {
            return Ok(Some(PageInfo { id, page_type: PageType::Free, count: 0, overflow: 0 }));
        }
        let mut header = [0; PAGE_HEADER];
        let read = self.tx.shared.disk.read_at(&mut header, id * u64::from(meta.page_size));
        let read = read.map_err(Error::io("read the header of a page", None))?;
        let header = PageHeader::read(&header[..read]).filter(|header| header.id == id);
        let kind = header.and_then(|header| PageKind::of(header.flags.get()));
        Ok(Some(match (header, kind) {
            (Some(header), Some(kind)) => {
                PageInfo { id, page_type: kind.into(), count: header.count.get(), overflow: header.overflow.get() }
            }
            _ => PageInfo { id, page_type: PageType::Unknown, count: 0, overflow: 0 },
        }))
    }
}

impl From<PageKind> for PageType {
    fn from(kind: PageKind) -> Self {
        match kind {
            PageKind::Branch => Self::Branch,
            PageKind::Leaf => Self::Leaf,
            PageKind::Meta => Self::Meta,
            PageKind::Freelist => Self::Freelist,
        }
    }
}

impl Iterator for PageInfos<'_> {
    type Item = Result<PageInfo>;

    fn next(&mut self) -> Option<Self::Item> {
        let info = self.at(self.next).transpose()?;
        self.next = self.next.saturating_add(1);
        if let Ok(info) = &info {
            self.next = self.next.saturating_add(info.overflow.into());
        }
        Some(info)
    }
}

impl fmt::Debug for PageInfos<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageInfos").field("next", &self.next).finish_non_exhaustive()
    }
}
