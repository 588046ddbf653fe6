//! Patched leaves are copied to pages, as they are in one state.

use std::io;

use super::Shared;
use super::commit::LONGEST_WRITE;
use crate::format::{LeafPage, PatchId, Patched, Pgid, bucket_value};
use crate::pages::{Pages, Run, Snapshot};
use crate::tree::{Child, Names, PatchedLeaf, Root, Source, leaf_in};
use crate::{Error, Result};

/// So many leaves are looked up ahead at a time.
const FETCHED: usize = 32;

/// A leaf that is to be written, as its newest patch told of it.
pub(super) struct Ahead<'a> {
    pub(super) bucket: u32,
    /// The beginning of the key, behind what is alike in all of the bucket's.
    pub(super) prefix: u64,
    pub(super) key: &'a [u8],
    /// By now this may be another leaf's.
    pub(super) page: Pgid,
    pub(super) patch: PatchId,
}

impl<'a> Ahead<'a> {
    pub(super) fn patched(&self) -> PatchedLeaf<'a> {
        PatchedLeaf { number: self.bucket, key: self.key, page: self.page }
    }
}

/// One that was written, as this patch told of it.
pub(super) struct Copied<'a> {
    pub(super) leaf: &'a Ahead<'a>,
    pub(super) patch: PatchId,
    /// None where it was not.
    pub(super) to: Option<Pgid>,
    /// It has buckets, whose entries the commit may change: it is to be taken apart.
    pub(super) has_buckets: bool,
}

/// What became of a batch.
#[derive(Default)]
pub(super) struct Copies<'a> {
    pub(super) written: Vec<Copied<'a>>,
    /// Leaves that no bucket has any more. By now their pages may be others.
    pub(super) gone: Vec<&'a Ahead<'a>>,
    pub(super) unused: Vec<Pgid>,
    pub(super) bytes: u64,
    pub(super) writes: u64,
}

/// Writes leaves as they are in one state.
pub(super) struct Copier<'a> {
    state: &'a Snapshot,
    /// The bucket that was looked up last, and its root page, if it has pages.
    bucket: Option<(u32, Option<Pgid>)>,
    out: Out<'a>,
}

/// Pages that are written, those side by side together.
pub(super) struct Out<'a> {
    shared: &'a Shared,
    page_size: usize,
    buffer: Vec<u8>,
    /// Where the pages in the buffer begin.
    start: Pgid,
    pub(super) bytes: u64,
    pub(super) writes: u64,
}

impl<'a> Copier<'a> {
    pub(super) fn new(shared: &'a Shared, state: &'a Snapshot) -> Self {
        Self { state, bucket: None, out: Out::new(shared, state.meta.page_size as usize) }
    }

    /// Writes the leaves of a batch to pages, in the order of both; `all` also those with buckets.
    pub(super) fn copy<'b>(
        mut self,
        batch: &'b [Ahead<'b>],
        names: &Names,
        pages: &[Pgid],
        all: bool,
    ) -> Result<Copies<'b>> {
        self.out.shared.check_usable()?;
        let mut copies = Copies::default();
        let mut free = pages.iter().copied();
        for ahead in batch.chunk_by(|one, other| one.bucket == other.bucket).flat_map(|leaves| leaves.chunks(FETCHED)) {
            self.out.shared.give_way();
            let root = ahead.first().map(|leaf| self.root(leaf.bucket, names)).transpose()?.flatten();
            for (ahead, leaf) in find(self.state.pages(), root, ahead)? {
                let Some(leaf) = leaf.filter(|leaf| leaf.id() == ahead.page) else {
                    copies.gone.push(ahead);
                    continue;
                };
                // It may have no patch in this state: it is newer.
                let Some(patch) = leaf.patch() else { continue };
                leaf.check_fit(patch)?;
                let has_buckets = leaf.buckets() > 0;
                let to = if all || !has_buckets { free.next() } else { None };
                if let Some(to) = to {
                    leaf.write_anew(patch, self.out.pages(Run { start: to, len: 1 })?, to);
                }
                if to.is_some() || has_buckets && !all {
                    copies.written.push(Copied { leaf: ahead, patch: patch.id(), to, has_buckets });
                }
            }
        }
        self.out.write()?;
        copies.unused = free.collect();
        (copies.bytes, copies.writes) = (self.out.bytes, self.out.writes);
        Ok(copies)
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

impl<'a> Out<'a> {
    pub(super) fn new(shared: &'a Shared, page_size: usize) -> Self {
        Self { shared, page_size, buffer: Vec::new(), start: 0, bytes: 0, writes: 0 }
    }

    /// What these pages will be, to be filled in.
    pub(super) fn pages(&mut self, run: Run) -> Result<&mut [u8]> {
        let end = self.start + (self.buffer.len() / self.page_size) as u64;
        if end != run.start || self.buffer.len() >= LONGEST_WRITE {
            self.write()?;
            self.start = run.start;
        }
        let begin = self.buffer.len();
        let len = usize::try_from(run.len).map_err(io::Error::other).map_err(Error::io("write", None))?;
        self.buffer.resize(begin + len * self.page_size, 0);
        Ok(&mut self.buffer[begin..])
    }

    /// Writes what was filled in and not written yet.
    pub(super) fn write(&mut self) -> Result<()> {
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

/// Looks leaves of the bucket with this root page up, and has fetched what they are written from.
fn find<'a, 'b>(
    pages: Pages<'a>,
    root: Option<Pgid>,
    leaves: &'b [Ahead<'b>],
) -> Result<Vec<(&'b Ahead<'b>, Option<LeafPage<'a>>)>> {
    if let Some(root) = root {
        let keys: Vec<_> = leaves.iter().map(|leaf| leaf.key).collect();
        Source { pages, work: None }.prefetch(Root::Tree(Child::Page(root)), &keys);
    }
    let found = leaves.iter().map(|ahead| {
        let leaf = root.map(|root| leaf_in(pages, root, ahead.key)).transpose()?.flatten();
        leaf.and_then(|leaf| leaf.patch()).into_iter().for_each(Patched::prefetch);
        Ok((ahead, leaf))
    });
    found.collect()
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
