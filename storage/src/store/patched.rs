//! Patched leaves are written anew, beside the commits: when a memory is nearly full, and before a checkpoint.
//!
//! In batches, in the order of the keys: pages are set aside for one, the leaves are written to them as they are in the
//! newest state, and a short commit has the branches lead there. A leaf that got another patch meanwhile stays as it was, and
//! has its turn again. Nothing is synced, and no commit waits for more than such a short one. A checkpoint takes all leaves,
//! and while it does no others get patches; the few that are left in the end it writes itself.

use std::sync::{MutexGuard, PoisonError};

use super::commit::{LONGEST_WRITE, Sync, ids_used_up, write};
use super::durable::{begin, is_full};
use super::{Durability, Reading, Shared, Writer};
use crate::Result;
use crate::format::{PatchId, Pgid, alike, bucket_value, prefix};
use crate::pages::{Pages, Recents, Run};
use crate::tree::{BucketId, Child, Names, Root, Source, Work, leaf_in};

/// Leaves of a batch.
const BATCH: usize = if cfg!(test) { 3 } else { 1024 };
/// So many leaves are looked up ahead at a time.
const FETCHED: usize = 32;
/// So many leaves at most are left to a checkpoint, which takes them apart.
const FEW: u64 = if cfg!(test) { 2 } else { 64 };
/// How often the leaves that got patches meanwhile are gone through again, at most.
const ROUNDS: usize = 8;
/// Pages by which the file grows where none is free.
const GROWTH: u64 = if cfg!(test) { 4 } else { 1024 };

/// Which leaves are to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// Those of the elder memory.
    OfElder,
    All,
}

/// A leaf that is to be written, as its newest patch told of it.
struct Ahead<'a> {
    bucket: u32,
    /// The beginning of the key, behind what is alike in all of the bucket's.
    prefix: u64,
    key: &'a [u8],
    /// By now this may be another leaf's.
    page: Pgid,
    patch: PatchId,
}

/// One that was written, as this patch told of it.
struct Copied<'a> {
    leaf: &'a Ahead<'a>,
    patch: PatchId,
    /// None where it is to be taken apart: it has buckets, whose entries the commit may change.
    to: Option<Pgid>,
}

/// What became of a batch.
#[derive(Default)]
struct Copies<'a> {
    written: Vec<Copied<'a>>,
    /// Leaves that no bucket has any more. By now their pages may be others.
    gone: Vec<&'a Ahead<'a>>,
    unused: Vec<Pgid>,
    bytes: u64,
    writes: u64,
}

impl Shared {
    /// Whose turn it is to write leaves: pages that another has set aside for them would be missing.
    pub(super) fn turn_to_write(&self) -> MutexGuard<'_, ()> {
        self.leaves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes patched leaves to pages, until few or none are left. For who has the turn.
    pub(super) fn write_leaves(&self, which: Leaves, _turn: &MutexGuard<'_, ()>) -> Result<()> {
        let few = if which == Leaves::All { FEW } else { 0 };
        for _ in 0..ROUNDS {
            let left = self.writer.with(|writer| {
                let patcher = writer.spare.patcher.as_ref()?;
                let live = if which == Leaves::All { patcher.live() } else { patcher.live_in_elder() };
                (live > few).then(|| patcher.to_be_written(which == Leaves::OfElder))
            });
            let Some((recents, names)) = left else { return Ok(()) };
            self.check_usable()?;
            self.write_round(&recents, &names)?;
        }
        if which == Leaves::All {
            return Ok(());
        }
        // Leaves that get patches all the time are left to a commit.
        self.writer.with(|writer| commit(self, writer, |work| work.take_patched_apart(true)))
    }

    /// Goes once through the leaves that have patches now.
    fn write_round(&self, recents: &Recents, names: &Names) -> Result<()> {
        let mut ahead: Vec<Ahead<'_>> = Vec::new();
        for patches in recents.all() {
            ahead.extend(patches.all().filter_map(|(page, at)| {
                let header = patches.header(at)?;
                let (bucket, patch) = (header.bucket.get(), PatchId::new(at, header));
                Some(Ahead { bucket, prefix: 0, key: patches.key(at)?, page, patch })
            }));
        }
        ahead.sort_unstable_by_key(|leaf| leaf.bucket);
        ahead.chunk_by_mut(|one, other| one.bucket == other.bucket).for_each(sort_by_key);
        for batch in ahead.chunks(BATCH) {
            self.write_batch(batch, names)?;
            // The thread that does this is the one that syncs in time.
            if matches!(self.options.durability, Durability::Interval { .. }) {
                self.sync()?;
            }
        }
        Ok(())
    }

    fn write_batch(&self, batch: &[Ahead<'_>], names: &Names) -> Result<()> {
        let pages = self.writer.with(|writer| set_aside(self, writer, batch.len()))?;
        let copies = Copier::new(self).copy(batch, names, &pages);
        self.writer.with(|writer| {
            writer.set_aside -= pages.len() as u64;
            let copies = copies.inspect_err(|_| writer.give_back(&pages))?;
            writer.give_back(&copies.unused);
            exchange(self, writer, &copies, names)
        })
    }
}

/// Sorts leaves of one bucket. The keys themselves, each of which has to be fetched, are seldom compared.
fn sort_by_key(leaves: &mut [Ahead<'_>]) {
    let Some(first) = leaves.first().map(|leaf| leaf.key) else { return };
    let common = leaves.iter().map(|leaf| alike(first, leaf.key)).min().unwrap_or(0);
    for leaf in &mut *leaves {
        leaf.prefix = prefix(&leaf.key[common..]);
    }
    leaves.sort_unstable_by(|one, other| (one.prefix, one.key).cmp(&(other.prefix, other.key)));
}

/// Writes leaves as they are in one state.
struct Copier<'a> {
    state: Reading,
    /// The bucket that was looked up last, and its root page, if it has pages.
    bucket: Option<(u32, Option<Pgid>)>,
    out: Out<'a>,
}

/// Pages that are written, those side by side together.
struct Out<'a> {
    shared: &'a Shared,
    page_size: usize,
    buffer: Vec<u8>,
    /// Where the pages in the buffer begin.
    start: Pgid,
    bytes: u64,
    writes: u64,
}

impl<'a> Copier<'a> {
    fn new(shared: &'a Shared) -> Self {
        let state = shared.readers.enter();
        let page_size = state.meta.page_size as usize;
        let out = Out { shared, page_size, buffer: Vec::new(), start: 0, bytes: 0, writes: 0 };
        Self { state, bucket: None, out }
    }

    /// Writes the leaves of a batch to pages, in the order of both.
    fn copy<'b>(mut self, batch: &'b [Ahead<'b>], names: &Names, pages: &[Pgid]) -> Result<Copies<'b>> {
        self.out.shared.check_usable()?;
        let mut copies = Copies::default();
        let mut free = pages.iter().copied();
        for (index, ahead) in batch.iter().enumerate() {
            let root = self.root(ahead.bucket, names)?;
            if index % FETCHED == 0 {
                self.fetch(root, &batch[index..]);
            }
            let leaf = root.map(|root| leaf_in(self.state.pages(), root, ahead.key)).transpose()?.flatten();
            let Some(leaf) = leaf.filter(|leaf| leaf.id() == ahead.page) else {
                copies.gone.push(ahead);
                continue;
            };
            // It may have no patch in this state: it is newer.
            let Some(patch) = leaf.patch() else { continue };
            let buckets = leaf.buckets();
            let to = if buckets == 0 { free.next() } else { None };
            if let Some(to) = to {
                leaf.write_anew(patch, self.out.page(to)?, to);
            }
            if to.is_some() || buckets > 0 {
                copies.written.push(Copied { leaf: ahead, patch: patch.id(), to });
            }
        }
        self.out.write()?;
        copies.unused = free.collect();
        (copies.bytes, copies.writes) = (self.out.bytes, self.out.writes);
        Ok(copies)
    }

    /// Has the next of these leaves fetched, as far as they are in the same bucket as the first.
    fn fetch(&self, root: Option<Pgid>, leaves: &[Ahead<'_>]) {
        let (Some(root), Some(bucket)) = (root, leaves.first().map(|leaf| leaf.bucket)) else { return };
        let next = leaves.iter().take(FETCHED).take_while(|leaf| leaf.bucket == bucket);
        let keys: Vec<_> = next.map(|leaf| leaf.key).collect();
        Source { pages: self.state.pages(), work: None }.prefetch(Root::Tree(Child::Page(root)), &keys);
    }

    fn root(&mut self, bucket: u32, names: &Names) -> Result<Option<Pgid>> {
        match self.bucket {
            Some((last, root)) if last == bucket => Ok(root),
            _ => {
                let root = root_of(self.state.pages(), self.state.meta.root, &names.path(bucket))?;
                self.bucket = Some((bucket, root));
                Ok(root)
            }
        }
    }
}

impl Out<'_> {
    /// What page `to` will be, to be filled in.
    fn page(&mut self, to: Pgid) -> Result<&mut [u8]> {
        let end = self.start + (self.buffer.len() / self.page_size) as u64;
        if end != to || self.buffer.len() >= LONGEST_WRITE {
            self.write()?;
            self.start = to;
        }
        let begin = self.buffer.len();
        self.buffer.resize(begin + self.page_size, 0);
        Ok(&mut self.buffer[begin..])
    }

    fn write(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = self.shared.disk.write_at(&self.buffer, self.start * self.page_size as u64);
        written.map_err(|error| self.shared.unwritten(error))?;
        self.writes += 1;
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl Writer {
    fn give_back(&mut self, pages: &[Pgid]) {
        for &start in pages {
            self.freelist.give_back(&[Run { start, len: 1 }]);
        }
    }
}

/// Commits what `change` does, without a sync: it changes nothing that anybody sees. Without a change there is no commit.
fn commit(shared: &Shared, writer: &mut Writer, change: impl FnOnce(&mut Work) -> Result<()>) -> Result<()> {
    let mut work = begin(shared, writer)?;
    let done = change(&mut work).and_then(|()| {
        if work.nodes.is_empty() && work.raised == 0 {
            return Ok(());
        }
        let txid = work.base.meta.txid.checked_add(1).ok_or_else(ids_used_up)?;
        write(&mut work, txid, shared, writer, Sync::Later).map(drop)
    });
    writer.spare = work.take_spare();
    done
}

/// Sets so many free pages aside, ascending.
fn set_aside(shared: &Shared, writer: &mut Writer, pages: usize) -> Result<Vec<Pgid>> {
    shared.check_usable()?;
    writer.release_pages(shared, shared.readers.current().pages())?;
    let lacks = (pages as u64).saturating_sub(writer.freelist.free_pages());
    if lacks > 0 {
        let grown = grow(shared, writer, lacks.max(GROWTH));
        // Where there is no room for a step, there may be for what is needed; and a part of the batch is better than none.
        let grown = grown.or_else(|error| if is_full(&error) { grow(shared, writer, lacks) } else { Err(error) });
        grown.or_else(|error| {
            let goes_on = is_full(&error) && writer.freelist.free_pages() > 0;
            if goes_on { Ok(()) } else { Err(error) }
        })?;
    }
    let mut set_aside: Vec<Pgid> = std::iter::from_fn(|| writer.freelist.take_next(1)).take(pages).collect();
    set_aside.sort_unstable();
    writer.set_aside += set_aside.len() as u64;
    Ok(set_aside)
}

/// Has the file's pages end so much later; what is new is free.
fn grow(shared: &Shared, writer: &mut Writer, pages: u64) -> Result<()> {
    let start = shared.readers.current().meta.mark;
    commit(shared, writer, |work| {
        work.raised = pages;
        Ok(())
    })?;
    writer.freelist.give_back(&[Run { start, len: pages }]);
    Ok(())
}

/// Has the branches lead to what was written, where it still is what the newest state holds.
fn exchange(shared: &Shared, writer: &mut Writer, copies: &Copies<'_>, names: &Names) -> Result<()> {
    writer.commits.writes += copies.writes;
    writer.commits.bytes_written += copies.bytes;
    if let Some(patcher) = &mut writer.spare.patcher {
        let gone = copies.gone.iter().filter(|gone| patcher.newest(gone.page) == Some(gone.patch));
        let gone: Vec<Pgid> = gone.map(|gone| gone.page).collect();
        for page in gone {
            patcher.leave(page);
        }
    }
    // Pages that are not taken stay free: all of them, unless the commit is begun, which then gives back its own.
    let mut left: Vec<Pgid> = copies.written.iter().filter_map(|copy| copy.to).collect();
    let exchanged = commit(shared, writer, |work| {
        let mut not_taken = Vec::new();
        let mut taken = Vec::new();
        let mut last = None;
        for copy in &copies.written {
            let is_taken = exchange_leaf(work, copy, names, &mut last)?;
            if let Some(to) = copy.to {
                if is_taken { taken.push(Run { start: to, len: 1 }) } else { not_taken.push(to) }
            }
        }
        work.spare.taken.extend_from_slice(&taken);
        work.spare.allocated.extend(taken);
        left = not_taken;
        Ok(())
    });
    writer.give_back(&left);
    exchanged
}

/// Has a branch lead to the copy of a leaf, unless that has got another patch; or takes it apart. Whether the copy is taken.
/// `last` is the bucket that was opened last.
fn exchange_leaf(
    work: &mut Work,
    copy: &Copied<'_>,
    names: &Names,
    last: &mut Option<(u32, Option<BucketId>)>,
) -> Result<bool> {
    let &Ahead { bucket: number, key, page, .. } = copy.leaf;
    if work.newest_patch(page) != Some(copy.patch) {
        return Ok(false);
    }
    let opened = match *last {
        Some((last, opened)) if last == number => opened,
        _ => work.bucket_of_patch(&names.path(number))?,
    };
    *last = Some((number, opened));
    match (opened, copy.to) {
        (None, _) => Ok(false),
        (Some(bucket), Some(to)) => work.exchange(bucket, key, page, to),
        (Some(bucket), None) => work.take_leaf_apart(bucket, key, page).map(|()| false),
    }
}

/// The root page of the bucket that names lead to; `None` where there is none, or it has no pages of its own.
fn root_of(pages: Pages<'_>, root: Pgid, path: &[&[u8]]) -> Result<Option<Pgid>> {
    let source = Source { pages, work: None };
    let mut root = root;
    for name in path {
        let found = source.find(source.tree(root), name)?;
        match found.filter(|found| found.is_bucket).map(|found| bucket_value(0, found.value)).transpose()? {
            Some((header, None)) => root = header.root.get(),
            _ => return Ok(None),
        }
    }
    Ok(Some(root))
}
