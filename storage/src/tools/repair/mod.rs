//! What a broken file still holds, written into a new one.
//!
//! Everything that a root leads to through undamaged pages is in the result, under its own path and
//! in its own order; what is not is named, page by page. The broken file is only read. Nothing is
//! taken from a page that its place, its branch and its own layout do not speak for, and nothing
//! that no root leads to comes among what one does. What is lost in the newest transaction is not
//! filled in from the one before: the result would be a state that never was.
//!
//! - `image`: the file as bytes, its page size, its metas
//! - `vet`: which elements of a page can be believed
//! - `walk`: from a root over all that can be had
//! - `journal`: what was committed since, and is not in the file yet
//! - `report`: what came of it
//! - `roots`: where to begin; `orphans`: what is left over

mod image;
mod journal;
mod orphans;
mod report;
mod roots;
mod vet;
mod walk;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::base::Excerpt;
use crate::disk::refuse_existing;
use crate::format::Pgid;
use crate::handles::Db;
use crate::store::DamagedMeta;
use crate::tools::rewrite::{Rewrite, TxSize, in_new_file};
use crate::{Error, Result};
use image::Image;
use orphans::Orphanage;
use roots::{How, Start};
use walk::{Sink, Walk};

pub use report::{Orphans, RepairAlternative, RepairRoot, Repaired, RepairedJournal};

/// What is written in one transaction: with what the engine needs to sort it, a few times as much
/// memory.
const TX_SIZE: TxSize = TxSize { max: 16 << 20, per_entry: 256 };
/// The bucket for what nothing leads to.
const ORPHANS: &str = "lost+found";
/// How many names are tried for it.
const MOST_NAMES: usize = 1000;

/// How [`Self::repair`] salvages what a broken file holds.
///
/// ```
/// # fn main() -> boltkv_storage::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let (broken, new) = (folder.path().join("broken.db"), folder.path().join("new.db"));
/// use boltkv_storage::Db;
/// use boltkv_storage::tools::{RepairEvent, RepairOptions};
/// # Db::open(&broken)?.update(|tx| tx.create_bucket("b")?.put("k", "v"))?;
///
/// let repaired = RepairOptions::new().repair(&broken, &new, |event| {
///     if let RepairEvent::Lost(place) | RepairEvent::Doubtful(place) = event {
///         eprintln!("{place}");
///     }
/// })?;
/// assert_eq!((repaired.values, repaired.lost), (1, 0));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct RepairOptions {
    page_size: Option<u32>,
    meta: Option<u8>,
    root_page: Option<Pgid>,
    orphans: bool,
    timeout: Option<Duration>,
    mode: u32,
}

impl Default for RepairOptions {
    fn default() -> Self {
        Self { page_size: None, meta: None, root_page: None, orphans: false, timeout: None, mode: 0o600 }
    }
}

/// A page with which something is wrong, and the keys that this concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairPlace<'a> {
    /// The page.
    pub page: Pgid,
    /// The bucket, from the top down; empty for the top.
    pub path: &'a [&'a [u8]],
    /// Keys are not below this one; `None`: from the bucket's first key on. An entry with this key
    /// may have been found.
    pub from: Option<&'a [u8]>,
    /// Keys are below this one; `None`: to the bucket's last key. Where it is `from`, that key alone
    /// is meant.
    pub up_to: Option<&'a [u8]>,
    /// What is wrong.
    pub what: &'a str,
}

/// What [`RepairOptions::repair`] tells while it works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RepairEvent<'a> {
    /// What was there could not be found: it is not in the result.
    Lost(RepairPlace<'a>),
    /// It is in the result, and may not belong there, or not be all that was there.
    Doubtful(RepairPlace<'a>),
    /// Something that the file's journal recorded is not in the result, or may not be.
    JournalLost {
        /// What, and why.
        what: &'a str,
    },
    /// Where the journal ends with what is not whole, and was not synced as far as can be seen: a crash cut it off, or it is
    /// the newest, and damaged. It is passed over, as by an opening.
    JournalTorn {
        /// The segment.
        file: &'a Path,
        /// Where in it.
        offset: u64,
    },
    /// So much more was read.
    Read {
        /// Bytes.
        bytes: u64,
        /// Bytes that the file has, those of free pages among them.
        of: u64,
    },
}

impl RepairOptions {
    /// The defaults: everything is found out from the file; orphans stay where they are; the file's
    /// lock is waited for without end; the result has the permissions `0o600`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The page size, in bytes. Default: the one that a meta names or, where both are damaged, the
    /// one at which most pages stand where their headers say.
    #[must_use]
    pub fn page_size(mut self, bytes: u32) -> Self {
        self.page_size = Some(bytes);
        self
    }

    /// Begin with the meta of page 0 or 1. Default: the one of the newest transaction whose root can
    /// be read.
    #[must_use]
    pub fn meta(mut self, slot: u8) -> Self {
        self.meta = Some(slot);
        self
    }

    /// Begin with this page as the root bucket's root. Default: the meta's.
    #[must_use]
    pub fn root_page(mut self, page: Pgid) -> Self {
        self.root_page = Some(page);
        self
    }

    /// Salvage also what is on pages that nothing leads to, into a bucket of its own at the top:
    /// `lost+found`, or the first of `lost+found 2`, … that is not taken. There, each tree of pages
    /// has a bucket named after its highest one: `page 17`. Some of it may be old: deleted or
    /// overwritten since. Default: `false`.
    #[must_use]
    pub fn orphans(mut self, orphans: bool) -> Self {
        self.orphans = orphans;
        self
    }

    /// How long to wait for the file's lock, which is shared: others may read it too. Default: for
    /// ever.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Permissions of the result, before the process's umask. Default: `0o600`.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }

    /// Writes everything that can still be reached in the file `broken` into a new file, `result`,
    /// with the same page size. Tells `on_event` what was lost, as it goes. `broken` is only read.
    ///
    /// Takes memory for some 16 MiB of entries, for the longest value, and for one byte a page. The
    /// result has its name only when all of it is on the disk; after a crash there may be one with a
    /// temporary name beside it. What the file's journal, in the usual place, records beyond the file is done again in the
    /// result, as far as it can be read and fits what is left. Where `broken` is on a disk that fails, copy it first, with a tool
    /// that bears that: a page that the disk does not give ends the process, as with every map.
    ///
    /// # Errors
    /// Only what keeps it from doing anything: [`Error::Io`], of the kind `AlreadyExists` where there
    /// is a file `result`; [`Error::NotABoltFile`] where no page size makes sense of it;
    /// [`Error::FileTooShort`] where it has not even a meta; [`Error::InvalidPageSize`];
    /// [`Error::LockTimeout`]; those of [`TxMut::commit`](crate::TxMut::commit) on the result. There
    /// is no result then.
    pub fn repair(
        &self,
        broken: impl AsRef<Path>,
        result: impl AsRef<Path>,
        mut on_event: impl FnMut(RepairEvent<'_>),
    ) -> Result<Repaired> {
        let result = result.as_ref();
        refuse_existing(result)?;
        let broken = broken.as_ref();
        let mut image = Image::open(broken, self)?;
        let from_journal = image.damaged_page().and_then(|(left, page)| {
            let meta = journal::known_meta(broken, &left, &page)?;
            image.metas[usize::from(page.page == 1)] = Some(meta);
            Some(meta)
        });
        in_new_file(result, self.mode, image.page_size, |target| {
            let mut repaired = self.salvage(broken, &image, target, &mut on_event)?;
            if let (RepairRoot::Meta { txid }, Some(meta)) = (repaired.root, from_journal)
                && txid == meta.txid
            {
                repaired.root = RepairRoot::JournalMeta { txid };
            }
            Ok(repaired)
        })
    }

    fn salvage(
        &self,
        broken: &Path,
        image: &Image,
        target: &Db,
        on_event: &mut dyn FnMut(RepairEvent<'_>),
    ) -> Result<Repaired> {
        let start = Start::choose(image, self)?;
        let mut walk = Walk::new(image, start.limit);
        let mut writer =
            Writer { rewrite: Rewrite::new(target, TX_SIZE), pages: image.pages, page_size: image.page_size, on_event };
        let mut lost = self.lost_before(image, &start, &mut writer);
        let before = self.doubtful_before(image, &start, &mut writer);
        if let Some(root) = start.root {
            walk.bucket(root, true, &mut writer)?;
        }
        let found = walk.tally;
        lost += found.lost;
        let orphans = self.orphans_of(image, &start, &mut walk, &mut writer)?;
        writer.rewrite.finish()?;
        let taken = if let How::Meta(meta) = &start.how { Some(meta) } else { None };
        let journal = journal::apply(broken, taken, target, writer.on_event)?;
        let (buckets, values) = match &journal {
            Some(RepairedJournal { applied: 1.., .. }) => journal::count(target, orphans.bucket.as_deref())?,
            _ => (found.buckets, found.values),
        };
        let alternative = if lost > 0 { start.alternative(image)? } else { None };
        Ok(Repaired {
            page_size: image.page_size,
            root: match start.how {
                How::Meta(meta) => RepairRoot::Meta { txid: meta.txid },
                How::Given => RepairRoot::Given,
                How::Found(candidates) => RepairRoot::Found { candidates },
            },
            root_page: start.root,
            buckets,
            values,
            lost: lost + journal.map_or(0, |journal| journal.lost),
            doubtful: before + found.doubtful,
            orphans,
            alternative,
            journal,
        })
    }

    /// What is lost with the choice of the root: how many places.
    fn lost_before(&self, image: &Image, start: &Start, writer: &mut Writer<'_>) -> u64 {
        let newest = roots::by_age(image, self.meta).into_iter().map(|(_, meta)| meta).next();
        let metas = self.meta.map_or_else(|| "both metas are".to_owned(), |slot| format!("meta {slot} is"));
        let (page, what) = match (&start.how, newest) {
            (How::Meta(taken), Some(newest)) if *taken != newest => {
                let (lost, kept) = (newest.txid, taken.txid);
                (
                    newest.root,
                    format!("the root of transaction {lost} is damaged: what follows is transaction {kept}'s"),
                )
            }
            (How::Found(0), _) => (0, format!("{metas} of no use, and no page looks like a root")),
            (How::Found(_), _) => {
                let what = format!("{metas} of no use: the newest changes may be missing");
                (start.root.unwrap_or(0), what)
            }
            _ => return 0,
        };
        writer.lost(&RepairPlace { page, path: &[], from: None, up_to: None, what: &what });
        1
    }

    /// Whether the other meta, which cannot be read, may have been the newer one: how many places.
    fn doubtful_before(&self, image: &Image, start: &Start, writer: &mut Writer<'_>) -> u64 {
        let (How::Meta(taken), None) = (&start.how, self.meta) else { return 0 };
        let Some(page) = image.metas.iter().position(Option::is_none) else { return 0 };
        let damaged = DamagedMeta { page: page as u64, newest_left: taken.txid, is_known: false };
        writer.doubtful(&RepairPlace {
            page: damaged.page,
            path: &[],
            from: None,
            up_to: None,
            what: &damaged.to_string(),
        });
        1
    }

    fn orphans_of<'a>(
        &self,
        image: &'a Image,
        start: &Start,
        walk: &mut Walk<'a>,
        writer: &mut Writer<'_>,
    ) -> Result<Orphans> {
        let meta = if let How::Meta(meta) = &start.how { Some(meta) } else { None };
        let orphanage = Orphanage::new(image, start.limit, meta);
        let pages = orphanage.count(walk);
        let mut orphans = Orphans { pages, free_pages_known: orphanage.knows_free_pages(), bucket: None, values: 0 };
        if self.orphans && pages > 0 {
            orphans.bucket = Some(writer.enter_new(ORPHANS)?);
            orphans.values = orphanage.write(walk, writer)?.values;
            writer.leave();
        }
        Ok(orphans)
    }
}

/// Writes what a walk finds, and passes on what it tells.
struct Writer<'a> {
    rewrite: Rewrite<'a>,
    pages: u64,
    page_size: u32,
    on_event: &'a mut dyn FnMut(RepairEvent<'_>),
}

impl Writer<'_> {
    /// Creates a bucket at the top under a name that is not taken.
    fn enter_new(&mut self, name: &str) -> Result<String> {
        let mut tried = name.to_owned();
        for number in 2.. {
            match self.rewrite.enter(tried.as_bytes(), 0) {
                Err(Error::BucketExists { .. }) if number <= MOST_NAMES => tried = format!("{name} {number}"),
                other => return other.map(|()| tried),
            }
        }
        Ok(tried)
    }
}

impl Sink for Writer<'_> {
    fn enter(&mut self, name: &[u8], sequence: u64) -> Result<()> {
        self.rewrite.enter(name, sequence)
    }

    fn leave(&mut self) {
        self.rewrite.leave();
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.rewrite.put(key, value)
    }

    fn lost(&mut self, place: &RepairPlace<'_>) {
        (self.on_event)(RepairEvent::Lost(*place));
    }

    fn doubtful(&mut self, place: &RepairPlace<'_>) {
        (self.on_event)(RepairEvent::Doubtful(*place));
    }

    fn walked(&mut self, pages: u64) {
        let page_size = u64::from(self.page_size);
        (self.on_event)(RepairEvent::Read { bytes: pages * page_size, of: self.pages * page_size });
    }
}

impl fmt::Display for RepairPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {}: ", self.page)?;
        for (depth, name) in self.path.iter().enumerate() {
            write!(f, "{}{}", if depth == 0 { "bucket " } else { " / " }, Excerpt(name))?;
        }
        if self.path.is_empty() {
            write!(f, "at the top")?;
        }
        match (self.from, self.up_to) {
            (None, None) => write!(f, ", all keys")?,
            (Some(from), Some(up_to)) if from == up_to => write!(f, ", key {}", Excerpt(from))?,
            (Some(from), Some(up_to)) => write!(f, ", keys from {} up to {}", Excerpt(from), Excerpt(up_to))?,
            (Some(from), None) => write!(f, ", keys from {} on", Excerpt(from))?,
            (None, Some(up_to)) => write!(f, ", keys up to {}", Excerpt(up_to))?,
        }
        write!(f, ": {}", self.what)
    }
}
