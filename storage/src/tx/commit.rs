//! Commit: *make durable*, then *publish*; two steps that can be apart.
//!
//! Until the meta page is written nothing in the file refers to what a commit has written, so that
//! everything up to there can be undone. From the first sync on a failure leaves the outcome
//! unknown, and poisons the database.

use std::io;
use std::sync::Arc;

use super::BucketId;
use super::spill::{Allocator, Part};
use super::work::Work;
use crate::db::{Shared, Snapshot, Writer};
use crate::disk::Map;
use crate::format::{Meta, NO_FREELIST, PAGE_HEADER, Pgid, TxId, freelist_page};
use crate::freelist::Run;
use crate::options::FreelistStored;
use crate::{Error, Result};

/// Contiguous pages go out in one write, up to about this many bytes.
const WRITE_BUFFER: usize = 1 << 20;

/// What a commit will write, once every page has its place.
struct Prepared {
    meta: Meta,
    parts: Vec<Part>,
    freelist: Option<(Run, Vec<Pgid>)>,
    taken: Vec<Run>,
    allocated: Vec<Run>,
}

pub(super) fn commit(work: &mut Work, shared: &Shared, writer: &mut Writer) -> Result<TxId> {
    shared.check_usable()?;
    let prepared = prepare(work, shared, writer)?;
    let meta = prepared.meta;
    let written = write_pages(work, &prepared, shared, writer).and_then(|()| writer.map(shared));
    let map = written.map_err(|error| {
        writer.freelist.give_back(&prepared.taken);
        if is_no_space(&error) { Error::NoSpace { source: error } } else { shared.poison("write pages to", error) }
    })?;
    make_durable(&meta, shared)?;
    publish(work, &prepared, map, shared, writer);
    Ok(meta.txid)
}

/// Everything that needs no disk: merge, split, give each node its pages.
fn prepare(work: &mut Work, shared: &Shared, writer: &mut Writer) -> Result<Prepared> {
    for number in 0..work.buckets.len() {
        work.rebalance_bucket(BucketId(u32::try_from(number).expect("buckets are numbered with a u32")))?;
    }
    let mark = work.base.meta.mark;
    let mut allocator = Allocator { freelist: &mut writer.freelist, mark, taken: Vec::new(), all: Vec::new() };
    match place(work, shared, &mut allocator) {
        Ok((meta, parts, freelist)) => {
            let Allocator { taken, all, .. } = allocator;
            Ok(Prepared { meta, parts, freelist, taken, allocated: all })
        }
        Err(error) => {
            allocator.freelist.give_back(&allocator.taken);
            Err(error)
        }
    }
}

type Placed = (Meta, Vec<Part>, Option<(Run, Vec<Pgid>)>);

fn place(work: &mut Work, shared: &Shared, allocator: &mut Allocator<'_>) -> Result<Placed> {
    let (root, parts) = work.spill(allocator)?;
    let base = work.base.meta;
    if base.freelist != NO_FREELIST {
        let old = work.pages().run(base.freelist)?;
        work.freed.push(old);
    }
    let freelist = match shared.freelist_stored {
        FreelistStored::Never => None,
        FreelistStored::Always => {
            let run = allocator.allocate(freelist_pages(work, allocator))?;
            Some((run, allocator.freelist.ids_with(&work.freed)?))
        }
    };
    let meta = Meta {
        root,
        freelist: freelist.as_ref().map_or(NO_FREELIST, |(run, _)| run.start),
        mark: allocator.mark,
        txid: base.txid + 1,
        ..base
    };
    Ok((meta, parts, freelist))
}

/// Pages that the freelist takes: reckoned, as bbolt does, before these pages themselves are taken.
fn freelist_pages(work: &Work, allocator: &Allocator<'_>) -> u64 {
    let freed: u64 = work.freed.iter().map(|run| run.len).sum();
    let mut ids = allocator.freelist.free_pages() + allocator.freelist.waiting_pages() + freed;
    if ids >= 0xFFFF {
        ids += 1;
    }
    (PAGE_HEADER as u64 + 8 * ids) / work.pages().page_size() as u64 + 1
}

/// Grows the file if need be and writes all pages but the meta, in the order of the file.
fn write_pages(work: &Work, prepared: &Prepared, shared: &Shared, writer: &mut Writer) -> io::Result<()> {
    let page_size = work.pages().page_size();
    if prepared.meta.mark > work.base.meta.mark {
        writer.grow(shared, prepared.meta.mark)?;
    }
    let mut parts: Vec<(Run, Option<&Part>)> = prepared.parts.iter().map(|part| (part.run, Some(part))).collect();
    parts.extend(prepared.freelist.as_ref().map(|(run, _)| (*run, None)));
    parts.sort_unstable_by_key(|(run, _)| run.start);
    let mut buffer = Vec::new();
    let mut start = 0;
    let mut end = 0;
    for (run, part) in parts {
        if run.start != end || buffer.len() >= WRITE_BUFFER {
            shared.disk.write_at(&buffer, start * page_size as u64)?;
            buffer.clear();
            start = run.start;
        }
        end = run.start + run.len;
        let from = buffer.len();
        let len = usize::try_from(run.len).map_err(io::Error::other)? * page_size;
        buffer.resize(from + len, 0);
        match (part, &prepared.freelist) {
            (Some(part), _) => work.encode(part, &mut buffer[from..]),
            (None, Some((run, ids))) => {
                let overflow = u32::try_from(run.len - 1).map_err(io::Error::other)?;
                freelist_page(&mut buffer[from..], run.start, overflow, ids);
            }
            (None, None) => {}
        }
    }
    shared.disk.write_at(&buffer, start * page_size as u64)
}

/// Syncs the pages, then writes and syncs the meta that refers to them.
fn make_durable(meta: &Meta, shared: &Shared) -> Result<()> {
    let offset = meta.slot() * u64::from(meta.page_size);
    shared.disk.sync().map_err(|error| shared.poison("sync", error))?;
    shared.disk.write_at(&meta.encode(), offset).map_err(|error| shared.poison("write the meta page of", error))?;
    shared.disk.sync().map_err(|error| shared.poison("sync", error))
}

/// Shows the new state to readers, and tells the freelist.
fn publish(work: &Work, prepared: &Prepared, map: Arc<Map>, shared: &Shared, writer: &mut Writer) {
    let meta = prepared.meta;
    shared.readers.publish(Arc::new(Snapshot { meta, map }));
    writer.freelist.committed(meta.txid, &prepared.allocated, &work.freed, shared.readers.any_open());
}

/// A full disk, quota, file-size limit or address space: nothing refers to the pages yet, so nothing is lost.
fn is_no_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::OutOfMemory
    )
}
