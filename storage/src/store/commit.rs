//! Commit: *make durable*, then *publish*; two steps that can be apart.
//!
//! Until the meta page is written nothing in the file refers to what a commit has written, so that
//! everything up to there can be undone. From the first sync on a failure leaves the outcome
//! unknown, and poisons the database.
//!
//! A commit that is not synced writes data pages only: no meta, no freelist. The next *sync point*
//! (a synced commit, or [`sync_point`](super::durable::sync_point)) writes both for all that came before it. Until then the
//! last durable state is pinned like a reader, so that the file is whole at any moment.
//!
//! With a journal all commits are of that kind: what makes them durable is their record, which is appended once their pages
//! have found room, and before anybody sees them.

use std::io;
use std::time::Instant;

use super::durable::{
    ask_for_checkpoint, ask_if_of_use, checkpoint_if_due, fit_to_file, make_durable, number_of_sync_point, record,
    write_leaves_if_due,
};
use super::place::is_lost;
use super::room::{keep_reserve, pages, with_need, with_room};
use super::{CommitStats, Shared, Writer};
use crate::check::CheckOptions;
use crate::disk::is_no_room;
use crate::format::{Meta, NO_FREELIST, PAGE_HEADER, Pgid, TxId, freelist_page};
use crate::journal::Journal;
use crate::pages::{Allocator, Lasts, Run, Snapshot};
use crate::tree::{BucketId, Fill, Part, Work};
use crate::{Error, Result};

/// Contiguous pages go out in one write, up to about this many bytes. Longer ones would make a growing file lie in
/// larger folios in the system's cache, in which a page costs more to write again.
pub(crate) const LONGEST_WRITE: usize = 1 << 16;
/// Bytes of the buffers that are kept from one commit to the next.
const KEPT: usize = 1 << 20;

/// What a commit will write, once every page has its place.
struct Prepared {
    meta: Meta,
    parts: Vec<Part>,
    /// Where the freelist goes, where it is stored: at sync points only.
    freelist: Option<Run>,
    allocated: Vec<Run>,
    /// The part of `allocated` that came from the freelist.
    taken: Vec<Run>,
}

/// Pages to be written.
#[derive(Clone, Copy)]
enum Written<'a> {
    Part(&'a Part),
    Freelist(Run),
}

impl Written<'_> {
    fn run(&self) -> Run {
        match self {
            Self::Part(part) => part.run,
            Self::Freelist(run) => *run,
        }
    }
}

impl Prepared {
    /// All that is written but the meta, in the order of the file, which the parts are in.
    fn in_order(&self) -> impl Iterator<Item = Written<'_>> {
        let list = self.freelist.map(Written::Freelist);
        let before = self.parts.partition_point(|part| list.is_some_and(|list| part.run.start < list.run().start));
        let (before, after) = self.parts.split_at(before);
        before.iter().map(Written::Part).chain(list).chain(after.iter().map(Written::Part))
    }

    /// Leaves to the next transaction what it can use.
    fn leave_memory(self, work: &mut Work) {
        work.spare.parts = self.parts;
        work.spare.taken = self.taken;
        work.spare.allocated = self.allocated;
    }
}

/// Whether a commit is followed by a sync point.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sync {
    /// It is: data, freelist and meta go to the disk, and stay.
    Point { store_freelist: bool },
    /// Data pages only, and a record in the journal, which is synced.
    Journal,
    /// Data pages only; the new state is published from memory. Where there is a journal it has a record.
    Later,
}

impl Sync {
    fn is_point(self) -> bool {
        matches!(self, Self::Point { .. })
    }
}

/// Commits what `work` has changed, under the next number.
pub(crate) fn commit(work: &mut Work, shared: &Shared, writer: &mut Writer, sync: Sync) -> Result<TxId> {
    let txid = work.base.meta.txid.checked_add(1).ok_or_else(ids_used_up)?;
    writer.usual_patches = (7 * writer.usual_patches + work.patched()).div_ceil(8);
    let txid = write(work, txid, shared, writer, sync)?;
    write_leaves_if_due(work, shared);
    checkpoint_if_due(work, shared, writer);
    Ok(txid)
}

/// Only a damaged meta can bring us here.
pub(super) fn ids_used_up() -> Error {
    Error::corrupt(0, "the numbers of transactions are used up (2^64 - 1)")
}

/// Commits what `work` has changed, under this number or, at a sync point, the next.
pub(super) fn write(
    work: &mut Work,
    mut txid: TxId,
    shared: &Shared,
    writer: &mut Writer,
    mut sync: Sync,
) -> Result<TxId> {
    shared.check_usable()?;
    if let Sync::Point { store_freelist } = &mut sync {
        // A list that is not whole is not stored.
        *store_freelist &= work.detached.is_empty() && writer.is_accounted_for();
    }
    let clock = shared.options.statistics.then(Instant::now);
    if sync.is_point() {
        // The slot of the last durable meta is not touched before this one is durable.
        txid = number_of_sync_point(txid, writer)?;
    }
    if sync.is_point() {
        work.take_patched_apart(None)?;
    }
    let mut prepared = prepare(work, txid, writer, sync)?;
    work.forget_patches(&prepared.allocated);
    let written = keep_reserve(work, &prepared.allocated, prepared.meta.mark, shared, writer)
        .and_then(|()| write_pages(work, &mut prepared, shared, writer, sync))
        .map_err(|error| with_room(with_need(error, pages(&prepared.allocated), work), "file", shared.path()))
        .and_then(|()| {
            let reserved = writer.reserve_journal(work, sync);
            reserved.map_err(|error| with_room(shared.no_segment(error), "journal", shared.journal()))
        })
        .and_then(|()| writer.map(shared, prepared.meta.mark));
    let map = written.map_err(|error| {
        if is_no_room(&error) && !sync.is_point() {
            ask_if_of_use(shared, writer);
        } else if is_lost(&error) {
            ask_for_checkpoint(shared, writer);
        }
        writer.note_no_room(&error);
        writer.freelist.give_back(&prepared.taken);
        writer.keep_map(shared);
        shared.unwritten(error)
    })?;
    let mut snapshot = Snapshot::new(prepared.meta, map, work.recents(txid, sync.is_point()));
    if shared.options.strict
        && let Some(problem) = crate::check::check(&snapshot, &CheckOptions::new().most_problems(1)).into_iter().next()
    {
        writer.freelist.give_back(&prepared.taken);
        return Err(Error::corrupt(problem.page, format!("the commit would leave: {}", problem.what)));
    }
    record(work, txid, shared, writer, sync)?;
    snapshot.meta = writer.told_of_journal(snapshot.meta);
    if sync.is_point() {
        let recorded = writer.journal.as_ref().map_or(0, Journal::recorded);
        make_durable(&snapshot.meta, recorded, shared, writer)?;
    }
    publish(work, &prepared, snapshot, shared, writer, sync);
    if let Some(clock) = clock {
        count(work, &prepared, &mut writer.commits, clock);
    }
    fit_to_file(&prepared.meta, work, shared, writer);
    writer.memory = work.memory_stats();
    shared.note_figures(writer);
    prepared.leave_memory(work);
    Ok(txid)
}

/// Everything that needs no disk: merge, split, give each node its pages.
fn prepare(work: &mut Work, txid: TxId, writer: &mut Writer, sync: Sync) -> Result<Prepared> {
    for number in 0..work.buckets.len() {
        let id = BucketId(u32::try_from(number).expect("buckets are numbered with a u32"));
        work.rebalance_bucket(id).map_err(|error| work.located(id, error))?;
    }
    if sync.is_point() {
        work.freed.extend(writer.stored_freelist);
    }
    let mut mark = work.base.meta.mark + work.raised;
    let mut taken = std::mem::take(&mut work.spare.taken);
    if work.lower_mark
        && let Some(last) = writer.freelist.take_last(mark)
    {
        mark = last.start;
        taken.push(last);
    }
    let lowest_only = writer.shrinking > 0 || work.buckets.iter().any(|bucket| matches!(bucket.fill, Fill::Percent(_)));
    let all = std::mem::take(&mut work.spare.allocated);
    // What adds leaves the last free runs to what does not.
    let may_grow = work.adds && !sync.is_point() && !writer.is_replaying;
    let limit = if may_grow { Pgid::MAX } else { writer.mark_limit(mark) };
    // Branches above leaves that were written to other pages: soon they are written again.
    let over_dirty = sync == Sync::Later && !work.has_effects();
    let allocator = Allocator::new(&mut writer.freelist, mark, taken, all, lowest_only);
    let mut allocator = allocator.below(limit).over_dirty(over_dirty);
    set_aside(work, &mut allocator, sync);
    let placed = place(work, txid, &mut allocator, sync);
    match placed {
        Ok((meta, parts, freelist)) => {
            let Allocator { taken, all, .. } = allocator;
            Ok(Prepared { meta, parts, freelist, taken, allocated: all })
        }
        Err(error) => {
            allocator.undo();
            Err(error)
        }
    }
}

/// Sets a run aside for what the next commit will write again: the roots of trees, and the list of free pages as long as
/// it gets if no node is split, merged or inline.
fn set_aside(work: &Work, allocator: &mut Allocator<'_>, sync: Sync) {
    let branches = work.buckets.iter().filter_map(|bucket| bucket.root_node).filter(|&root| !work.node(root).is_leaf);
    let list = if sync == (Sync::Point { store_freelist: true }) {
        // A bucket's new header changes its parent, which is only then taken apart, mostly a page.
        let parents = work.buckets.iter().filter(|bucket| bucket.root_node.is_none()).count() as u64;
        let freed: u64 = work.nodes.iter().filter_map(|node| node.page).map(|run| run.len).sum();
        freelist_pages(work, allocator, parents + freed)
    } else {
        0
    };
    allocator.set_aside(1 + branches.count() as u64 + list);
}

/// An error where a page that the freelist gave is one that this transaction replaces: only a damaged file has it in
/// both places. What is still to be copied from it would be overwritten.
fn refuse_reuse(taken: &mut [Run], replaced: &mut [Run]) -> Result<()> {
    taken.sort_unstable_by_key(|run| run.start);
    replaced.sort_unstable_by_key(|run| run.start);
    let mut taken = taken.iter().peekable();
    for run in replaced {
        while taken.next_if(|taken| taken.start + taken.len <= run.start).is_some() {}
        if let Some(taken) = taken.peek().filter(|taken| taken.start < run.start + run.len) {
            return Err(Error::corrupt(taken.start.max(run.start), "the page is in use, and in the freelist"));
        }
    }
    Ok(())
}

fn place(
    work: &mut Work,
    txid: TxId,
    allocator: &mut Allocator<'_>,
    sync: Sync,
) -> Result<(Meta, Vec<Part>, Option<Run>)> {
    let (root, parts) = work.spill(allocator)?;
    let freelist = if sync == (Sync::Point { store_freelist: true }) {
        Some(allocator.allocate(freelist_pages(work, allocator, 0), Lasts::Briefly)?)
    } else {
        None
    };
    allocator.give_back_rest();
    refuse_reuse(&mut allocator.taken, &mut work.freed)?;
    if freelist.is_some() {
        let taken = std::mem::take(&mut allocator.taken);
        let listed = allocator.freelist().list(&work.freed, &taken);
        allocator.taken = taken;
        listed?;
    }
    let freelist_page = freelist.map_or(NO_FREELIST, |run| run.start);
    let meta = Meta { root, freelist: freelist_page, mark: allocator.mark, txid, ..work.base.meta };
    Ok((meta, parts, freelist))
}

/// Pages that the freelist takes once `more` pages are freed: reckoned, as bbolt does, before these pages themselves are
/// taken.
fn freelist_pages(work: &Work, allocator: &Allocator<'_>, more: u64) -> u64 {
    let freed: u64 = work.freed.iter().map(|run| run.len).sum();
    let mut ids = allocator.unused_pages() + freed + more;
    if ids >= 0xFFFF {
        ids += 1;
    }
    (PAGE_HEADER as u64 + 8 * ids) / work.pages().page_size() as u64 + 1
}

/// Grows the file if need be and writes all pages but the meta, in the order of the file.
fn write_pages(
    work: &Work,
    prepared: &mut Prepared,
    shared: &Shared,
    writer: &mut Writer,
    sync: Sync,
) -> io::Result<()> {
    let page_size = work.pages().page_size();
    if prepared.meta.mark > work.base.meta.mark {
        writer.grow(shared, prepared.meta.mark, work)?;
    }
    writer.keep_room(shared, prepared.meta.mark, work, &prepared.allocated, sync.is_point())?;
    prepared.parts.sort_unstable_by_key(|part| part.run.start);
    let mut buffer = std::mem::take(&mut writer.buffer);
    let mut filled = 0;
    let mut start = 0;
    let mut end = 0;
    for page in prepared.in_order() {
        let run = page.run();
        if run.start != end || filled >= LONGEST_WRITE {
            write_out(&buffer[..filled], start * page_size as u64, shared, writer)?;
            filled = 0;
            start = run.start;
        }
        end = run.start + run.len;
        let from = filled;
        filled += usize::try_from(run.len).map_err(io::Error::other)? * page_size;
        // What is left in it from before is written over.
        if buffer.len() < filled {
            buffer.resize(filled, 0);
        }
        let pages = &mut buffer[from..filled];
        match page {
            Written::Part(part) => work.encode(part, pages),
            Written::Freelist(run) => {
                let overflow = u32::try_from(run.len - 1).map_err(io::Error::other)?;
                freelist_page(pages, run.start, overflow, writer.freelist.listed());
            }
        }
    }
    write_out(&buffer[..filled], start * page_size as u64, shared, writer)?;
    buffer.truncate(KEPT);
    buffer.shrink_to(KEPT);
    writer.buffer = buffer;
    Ok(())
}

pub(super) fn write_out(data: &[u8], offset: u64, shared: &Shared, writer: &mut Writer) -> io::Result<()> {
    if data.is_empty() {
        return Ok(());
    }
    writer.commits.count_writes(1, data.len() as u64);
    shared.disk.write_at(data, offset)
}

fn count(work: &Work, prepared: &Prepared, commits: &mut CommitStats, clock: Instant) {
    commits.count += 1;
    commits.time += clock.elapsed();
    commits.pages_allocated += pages(&prepared.allocated);
    commits.pages_freed += pages(&work.freed);
    commits.spills += prepared.parts.len() as u64;
    commits.splits += work.splits;
    commits.rebalances += work.rebalances;
}

/// Shows the new state to readers, and tells the freelist.
fn publish(work: &mut Work, prepared: &Prepared, snapshot: Snapshot, shared: &Shared, writer: &mut Writer, sync: Sync) {
    let meta = snapshot.meta;
    let taken = prepared.allocated.iter().map(|run| run.len).sum();
    writer.detached.committed(meta.txid, &mut work.detached, snapshot.pages(), taken);
    work.patches_committed(sync.is_point());
    shared.readers.publish(snapshot);
    match sync {
        Sync::Journal | Sync::Later => {
            writer.unsynced.get_or_insert_default().commits += 1;
            if sync == Sync::Journal {
                writer.unsynced_records = None;
            } else if writer.journal.is_some() && work.has_effects() {
                writer.unsynced_records.get_or_insert_default().commits += 1;
            }
        }
        Sync::Point { .. } => {
            writer.note_durable(meta, meta.txid);
            writer.stored_freelist = prepared.freelist;
            writer.beside.iter_mut().for_each(|coming| coming.is_next = false);
            writer.unsynced = None;
            writer.unsynced_records = None;
        }
    }
    // Who allocated a page matters while something older than it is pinned.
    let pinned = shared.readers.any_older() || writer.unsynced.is_some();
    writer.freelist.committed(meta.txid, &prepared.allocated, &work.freed, pinned, prepared.freelist.is_some());
}
