//! Reading a file that another process has open and writes: without its lock, and without an answer that was never true.
//!
//! What a commit frees is written over by the commits after it at the earliest, when its own meta is in the file. So
//! pages that were read below a meta belong together where that meta is still the newest one afterwards; otherwise what
//! was read is thrown away, and read again. Nothing goes through a map, and nothing is ever written: a page that changes
//! while it is read gives an answer that is thrown away, at worst.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use super::inspect::PageType;
use super::raw::{RawFile, RawPage};
use crate::base::BucketPath;
use crate::format::{Between, LeafEntry, LeafPage, MetaFields, Pgid, TxId, bucket_value};
use crate::pages::MAX_DEPTH;
use crate::{Error, Result};

/// How often something is read again before it is given up. A lookup fits between two commits of any writer that syncs.
const ATTEMPTS: u32 = 10_000;
/// A walk looks at the meta again after so many pages: what it reads may have changed long ago.
const PAGES_AT_ONCE: u32 = 256;
/// And before it reads a value of more than so many bytes: the number may be none.
const LARGE: u32 = 1 << 20;

/// A file that is read without its lock, while another process writes it: one that etcd, containerd or a boltkv server
/// has open. What a [`look`](Self::look) answers is of one transaction.
///
/// It sees what is in the file. Of a database with a journal that is the state of the last checkpoint: what was committed
/// after it lies in the journal ([`FileJournal`](crate::tools::FileJournal)); of one that this crate writes without syncing each
/// commit ([`Durability`](crate::Durability)) it is the state of the last sync. It goes on with the file that was opened: one that
/// takes its place is not noticed. On a file system that is shared between machines, what one machine writes must show
/// to the others at once and in its order, which network file systems do not promise.
///
/// ```
/// # fn main() -> boltkv_storage::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("app.db");
/// # let db = boltkv_storage::Db::open(&path)?;
/// # db.update(|tx| { let mut users = tx.create_bucket("users")?; users.put("ada", "1815")?; users.put("bob", "2") })?;
/// use boltkv_storage::tools::Peek;
///
/// // The file is open, and locked, somewhere else.
/// let mut peek = Peek::open(&path)?;
/// let both = peek.look(|state| Ok((state.get(&["users"], b"ada")?, state.get(&["users"], b"eve")?)))?;
/// assert_eq!(both.value, (Some(b"1815".to_vec()), None));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Peek {
    file: RawFile,
    path: PathBuf,
}

/// What was read of one state of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peeked<T> {
    /// What was read.
    pub value: T,
    /// The newest transaction in that state.
    pub txid: TxId,
}

/// Some entries of a bucket, in the order of their keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PeekedEntries {
    /// The keys; and the values, or `None` where it is a bucket.
    pub entries: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Whether there are more behind them.
    pub more: bool,
}

/// One state of a file, as far as it has not changed meanwhile: that is found out when the look at it is over.
#[derive(Debug)]
pub struct PeekState<'file> {
    file: &'file RawFile,
    meta: MetaFields,
    /// Pages that were read since the meta was looked at.
    pages: Cell<u32>,
}

/// Where a bucket's tree begins.
enum Root {
    Page(Pgid),
    /// The bucket's value, which lies on this page.
    Inline(Pgid, Vec<u8>),
}

impl Peek {
    /// Opens a file. It is not locked, and may be locked by anybody.
    ///
    /// # Errors
    /// [`Error::EmptyFile`]; [`Error::NotABoltFile`]; [`Error::Io`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Ok(Self { file: RawFile::open(path, None)?, path: path.into() })
    }

    /// Bytes of a page.
    #[must_use]
    pub fn page_size(&self) -> u32 {
        self.file.page_size()
    }

    /// Has `read` read the newest state, again and again until the file did not change meanwhile: what it answers is of
    /// one transaction. The less it reads, the sooner it fits between two commits. What it finds while the file changes may be
    /// anything, and what it makes of that is thrown away: it has to answer, and not to believe, before it has returned.
    ///
    /// # Errors
    /// What `read` answers of a state that did not change; [`Error::FileChanging`] where the file has changed each time;
    /// [`Error::ChecksumMismatch`] where no meta is valid, [`Error::Io`].
    pub fn look<T>(&mut self, mut read: impl FnMut(&PeekState<'_>) -> Result<T>) -> Result<Peeked<T>> {
        for _ in 0..ATTEMPTS {
            self.file.look_again()?;
            // A meta that is just being written is no meta, and the other one may be damaged.
            if let Some(meta) = self.file.newest_meta() {
                let state = PeekState { file: &self.file, meta, pages: Cell::new(0) };
                let result = read(&state);
                if state.is_newest()? {
                    return result.map(|value| Peeked { value, txid: meta.txid });
                }
            }
            // Who writes may be waiting for this processor.
            std::thread::yield_now();
        }
        self.file.newest_meta().ok_or(Error::ChecksumMismatch)?;
        Err(Error::FileChanging { path: self.path.clone(), times: ATTEMPTS })
    }
}

impl PeekState<'_> {
    /// The meta that this state begins with.
    #[must_use]
    pub fn meta(&self) -> MetaFields {
        self.meta
    }

    /// Whole pages in the file, in use or not.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.file.pages()
    }

    /// Pages that the stored freelist lists; `None` where it is not stored.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn free_pages(&self) -> Result<Option<u64>> {
        if !self.meta.stores_freelist() {
            return Ok(None);
        }
        self.page(self.meta.freelist)?.freelist().map(|(count, _)| Some(count))
    }

    /// The value of a key in the bucket that these names lead to, from the top down; `None` where there is no such key.
    ///
    /// # Errors
    /// [`Error::BucketNotFound`]; [`Error::IncompatibleValue`] where the key is a bucket, or a name is not;
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn get<N: AsRef<[u8]>>(&self, bucket: &[N], key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.find(&self.bucket(bucket)?, key)? {
            Some(Found { is_bucket: true, .. }) => Err(incompatible(key, true, bucket)),
            found => Ok(found.map(|found| found.value)),
        }
    }

    /// The entries of a bucket (without a name: the buckets at the top) from a key on: as many as have together `bytes`,
    /// but one at least.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn entries<N: AsRef<[u8]>>(&self, bucket: &[N], from: Bound<&[u8]>, bytes: usize) -> Result<PeekedEntries> {
        let mut taken = Taken { found: PeekedEntries::default(), left: bytes };
        match self.bucket(bucket)? {
            Root::Inline(page, value) => {
                let leaf = inline(page, &value)?;
                for index in 0..leaf.len() {
                    let LeafEntry { key, value, is_bucket } = leaf.entry(index)?;
                    if !is_before(key, from) && !taken.takes(key, is_bucket, || Ok(value.into()))? {
                        break;
                    }
                }
            }
            Root::Page(id) => self.walk(id, from, &mut taken)?,
        }
        Ok(taken.found)
    }

    /// Takes entries of the tree that page `id` begins, until there is no more room for them.
    fn walk(&self, id: Pgid, from: Bound<&[u8]>, taken: &mut Taken) -> Result<()> {
        // The pages on the way, and in each the element that is next.
        let mut way = vec![self.entered(id, from)?];
        while let Some((page, next)) = way.last_mut() {
            if *next >= page.header().count {
                way.pop();
                continue;
            }
            let index = *next;
            *next += 1;
            if page.header().page_type() == PageType::Branch {
                let child = page.branch_element(index)?.child;
                if way.len() == MAX_DEPTH {
                    return Err(too_deep(child));
                }
                // Of children behind the one that `from` leads to, all keys are behind `from`, too.
                way.push(self.entered(child, from)?);
            } else {
                let is_bucket = page.slot(index.into())?.element.is_bucket();
                if !taken.takes(&key(page, index)?, is_bucket, || self.value(page, index))? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// A page of a tree, and the element to begin with for all entries from `from` on.
    fn entered(&self, id: Pgid, from: Bound<&[u8]>) -> Result<(RawPage<'_>, u16)> {
        let page = self.page(id)?;
        let index = match from {
            _ if page.header().page_type() != PageType::Branch => first(&page, |key| is_before(key, from))?,
            Bound::Unbounded => 0,
            Bound::Included(from) | Bound::Excluded(from) => child_for(&page, from)?,
        };
        Ok((page, index))
    }

    fn bucket<N: AsRef<[u8]>>(&self, names: &[N]) -> Result<Root> {
        let mut root = Root::Page(self.meta.root);
        let mut roots = BTreeSet::from([self.meta.root]);
        for (depth, name) in names.iter().enumerate() {
            let (name, within) = (name.as_ref(), &names[..depth]);
            root = match self.find(&root, name)? {
                Some(Found { is_bucket: true, page, value }) => match bucket_value(page, &value)? {
                    (_, Some(_)) => Root::Inline(page, value),
                    (header, None) if roots.insert(header.root.get()) => Root::Page(header.root.get()),
                    (header, None) => {
                        let what = "the root of a bucket, and of one within it: they go in circles";
                        return Err(located(Error::corrupt(header.root.get(), what), &names[..=depth]));
                    }
                },
                Some(_) => return Err(incompatible(name, false, within)),
                None => return Err(located(Error::bucket_not_found(name), within)),
            };
        }
        Ok(root)
    }

    /// The entry of exactly this key.
    fn find(&self, root: &Root, wanted: &[u8]) -> Result<Option<Found>> {
        let mut id = match root {
            Root::Page(id) => *id,
            Root::Inline(page, value) => {
                let found = inline(*page, value)?.find(wanted, Between::ANY)?;
                return Ok(found.map(|entry| Found {
                    is_bucket: entry.is_bucket,
                    page: *page,
                    value: entry.value.into(),
                }));
            }
        };
        for _ in 0..MAX_DEPTH {
            let page = self.page(id)?;
            if page.header().page_type() == PageType::Branch {
                id = page.branch_element(child_for(&page, wanted)?)?.child;
                continue;
            }
            let index = first(&page, |key| key < wanted)?;
            if index == page.header().count || *key(&page, index)? != *wanted {
                return Ok(None);
            }
            let is_bucket = page.slot(index.into())?.element.is_bucket();
            return Ok(Some(Found { is_bucket, page: id, value: self.value(&page, index)? }));
        }
        Err(too_deep(id))
    }

    /// A page of a tree, or another one.
    fn page(&self, id: Pgid) -> Result<RawPage<'_>> {
        self.pages.set(self.pages.get() + 1);
        if self.pages.get() > PAGES_AT_ONCE {
            self.pages.set(0);
            self.expect_newest(id)?;
        }
        self.file.page(id)
    }

    /// The value of a leaf's element.
    fn value(&self, page: &RawPage<'_>, index: u16) -> Result<Vec<u8>> {
        let slot = page.slot(index.into())?;
        if slot.len > LARGE.into() {
            self.expect_newest(page.header().id)?;
        }
        page.leaf_element(index).map(|element| element.value.into_owned())
    }

    fn expect_newest(&self, page: Pgid) -> Result<()> {
        // The words are for nobody: what was read is thrown away.
        if self.is_newest()? { Ok(()) } else { Err(Error::corrupt(page, "the file has changed")) }
    }

    fn is_newest(&self) -> Result<bool> {
        Ok(self.file.read_newest_meta()? == Some(self.meta))
    }
}

/// An entry that was looked for.
struct Found {
    is_bucket: bool,
    /// The page that it is on.
    page: Pgid,
    value: Vec<u8>,
}

/// Entries that were taken, and the room for more.
struct Taken {
    found: PeekedEntries,
    left: usize,
}

impl Taken {
    /// Takes an entry, if there is room; `false` where there is none.
    fn takes(&mut self, key: &[u8], is_bucket: bool, value: impl FnOnce() -> Result<Vec<u8>>) -> Result<bool> {
        if self.left == 0 && !self.found.entries.is_empty() {
            self.found.more = true;
            return Ok(false);
        }
        let value = if is_bucket { None } else { Some(value()?) };
        self.left = self.left.saturating_sub(key.len() + value.as_ref().map_or(0, Vec::len));
        self.found.entries.push((key.into(), value));
        Ok(true)
    }
}

/// The page of an inline bucket, in its value.
fn inline(page: Pgid, value: &[u8]) -> Result<LeafPage<'_>> {
    bucket_value(page, value)?.1.ok_or_else(|| Error::corrupt(page, "an inline bucket has no page"))
}

/// The child in whose subtree `wanted` lies: the last whose key is not above it, or the first.
fn child_for(page: &RawPage<'_>, wanted: &[u8]) -> Result<u16> {
    if page.header().count == 0 {
        return Err(Error::corrupt(page.header().id, "a branch page without elements"));
    }
    first(page, |key| key <= wanted).map(|above| above.saturating_sub(1))
}

fn is_before(key: &[u8], from: Bound<&[u8]>) -> bool {
    match from {
        Bound::Unbounded => false,
        Bound::Included(from) => key < from,
        Bound::Excluded(from) => key <= from,
    }
}

/// The first element whose key is not before something; all those that are stand before it.
fn first(page: &RawPage<'_>, is_before: impl Fn(&[u8]) -> bool) -> Result<u16> {
    let (mut low, mut high) = (0, page.header().count);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(&key(page, middle)?) { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

/// The key of an element; its value is not read.
fn key<'page>(page: &'page RawPage<'_>, index: u16) -> Result<Cow<'page, [u8]>> {
    let slot = page.slot(index.into())?;
    page.bytes(slot.at, slot.element.key_len())
}

fn too_deep(page: Pgid) -> Error {
    Error::corrupt(page, format!("the tree is deeper than {MAX_DEPTH} levels: it goes in circles"))
}

fn incompatible(key: &[u8], is_bucket: bool, within: &[impl AsRef<[u8]>]) -> Error {
    located(Error::incompatible(key, is_bucket), within)
}

/// The same error, with where it was.
fn located(mut error: Error, within: &[impl AsRef<[u8]>]) -> Error {
    if let Some(place) = error.place_mut() {
        let mut path = BucketPath::default();
        within.iter().rev().for_each(|name| path.wrap(name.as_ref()));
        *place = path;
    }
    error
}
