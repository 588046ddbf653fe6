//! Looking at how a database is built: its buckets and its pages.
//!
//! Headers of pages are read from the disk, never through the map: a page that is free may be
//! written at any moment.

use std::fmt;
use std::ops::ControlFlow;

use crate::check::reachable;
use crate::format::{Between, ELEMENT, NO_FREELIST, PAGE_HEADER, PageHeader, PageKind, Pgid, freelist_ids};
use crate::handles::{Bucket, Cursor, Tx};
use crate::pages::PageSet;
use crate::tree::{Allowance, View, pages_as_they_lie};
use crate::{Error, Result};

/// A bucket, as [`Bucket::structure`] finds it.
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
    /// Buckets that lie in it directly.
    pub buckets: u64,
    /// Pages of its own tree, those that others run on over included; 0 where it lies inline in its
    /// parent's leaf.
    pub pages: u64,
    /// Its sequence.
    pub sequence: u64,
    /// Whether no bucket comes behind it in the same parent.
    pub is_last: bool,
}

/// An iterator over a bucket and all buckets in it; see [`Bucket::structure`].
pub struct Structure<'tx> {
    allowance: Allowance,
    /// The bucket to begin with.
    first: Option<Bucket<'tx>>,
    /// The way down to where it stands.
    way: Vec<Level<'tx>>,
    /// Bytes that were read so far, and who wants to know.
    read: u64,
    reached: &'tx dyn Fn(u64),
}

/// A bucket whose inner buckets are being visited.
struct Level<'tx> {
    bucket: Bucket<'tx>,
    cursor: Cursor<'tx>,
    /// Inner buckets still to come.
    left: u64,
}

impl<'tx> Bucket<'tx> {
    /// This bucket and all buckets in it, depth first in the order of their names. Reads all their
    /// pages; keeps no more in memory than the way down to where it is.
    ///
    /// After an error, [`Error::Corrupt`] where the file is damaged, it ends.
    #[must_use]
    pub fn structure(&self) -> Structure<'tx> {
        let allowance = Allowance::new(&self.source);
        Structure { allowance, first: Some(*self), way: Vec::new(), read: 0, reached: &|_| () }
    }

    /// The whole list of [`Self::structure`].
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the file is damaged.
    pub fn inspect(&self) -> Result<Vec<BucketStructure>> {
        self.structure().collect()
    }
}

impl<'tx> Structure<'tx> {
    /// Whom to tell, while pages are read, how many bytes were read so far. (Buckets that hold other
    /// buckets are read twice.) Default: nobody.
    #[must_use]
    pub fn progress(mut self, reached: &'tx dyn Fn(u64)) -> Self {
        self.reached = reached;
        self
    }

    fn step(&mut self) -> Result<Option<BucketStructure>> {
        if let Some(first) = self.first.take() {
            return self.enter(b"root", first, true).map(Some);
        }
        while let Some(level) = self.way.last_mut() {
            let Some(entry) = level.cursor.forward()? else {
                self.way.pop();
                continue;
            };
            self.read += (ELEMENT + entry.key.len() + entry.value.len()) as u64;
            (self.reached)(self.read);
            if entry.is_bucket {
                level.left = level.left.saturating_sub(1);
                let (inner, is_last) = (level.bucket.bucket_of(entry)?, level.left == 0);
                return self.enter(entry.key, inner, is_last).map(Some);
            }
        }
        Ok(None)
    }

    /// Looks at a bucket's own pages, and leaves those in it for the next steps.
    fn enter(&mut self, name: &[u8], bucket: Bucket<'tx>, is_last: bool) -> Result<BucketStructure> {
        let page_size = bucket.source.pages.page_size();
        let inline = bucket.is_inline();
        let (mut values, mut buckets, mut own_pages) = (0, 0, 0);
        let before = self.read;
        let _: ControlFlow<()> = pages_as_they_lie(bucket.source, bucket.root, &mut self.allowance, |view, _| {
            if !inline {
                own_pages += pages_under(&view, page_size);
                self.read = before + own_pages * page_size as u64;
                (self.reached)(self.read);
            }
            if view.is_leaf() {
                let inner = view.count_buckets()?;
                buckets += inner;
                values += view.len() as u64 - inner;
            }
            Ok(ControlFlow::Continue(()))
        })
        .map_err(|error| bucket.located(error))?;
        let depth = self.way.len();
        if buckets > 0 {
            self.way.push(Level { bucket, cursor: bucket.cursor(), left: buckets });
        }
        Ok(BucketStructure {
            depth,
            name: name.to_vec(),
            values,
            buckets,
            pages: own_pages,
            sequence: bucket.sequence(),
            is_last,
        })
    }
}

/// Pages that a page of a tree spans, or will when it is written.
fn pages_under(view: &View<'_>, page_size: usize) -> u64 {
    let bytes = match view {
        View::Leaf(leaf) => leaf.bytes().len(),
        View::Branch(branch) => branch.bytes().len(),
        View::Node(node, _) => node.size(),
    };
    bytes.div_ceil(page_size) as u64
}

impl Iterator for Structure<'_> {
    type Item = Result<BucketStructure>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.way.clear();
        }
        step.transpose()
    }
}

impl fmt::Debug for Structure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Structure").field("depth", &self.way.len()).finish_non_exhaustive()
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
    /// All buckets of the database, below one that holds those at the top; see [`Bucket::structure`].
    #[must_use]
    pub fn structure(&self) -> Structure<'_> {
        self.root().structure()
    }

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
            let found = bucket.source.find_telling(bucket.root, name, Between::ANY, |page| way.push(page))?;
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
        let read = self.tx.disk().read_at(&mut header, id * u64::from(meta.page_size));
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
