//! Patched leaves are written anew, beside the commits: where memory is nearly full, and before a checkpoint.
//!
//! In batches, in the order of the keys: pages are set aside for one, the leaves are written to them as they are in the
//! newest state, and a short commit has the branches lead there. A leaf that got another patch meanwhile stays as it was, and
//! has its turn again. Nothing is synced, and no commit waits for more than such a short one. A checkpoint takes all leaves,
//! and while it does no others get patches; the few that are left in the end it writes itself.
//!
//! Where memory is nearly full, its oldest slabs are given back: of the leaves that have something there those are written
//! that have most, because a page costs the same whether one entry of it is new or many; what others have is moved on.

use std::sync::MutexGuard;

use super::commit::{Sync, ids_used_up, write};
use super::copier::{Ahead, Copied, Copier, Copies};
use super::durable::{in_work, is_full};
use super::pressure::GivingBack;
use super::{Shared, Writer};
use crate::format::{PatchId, Pgid, alike_in_all, prefix};
use crate::pages::{Oldest, Recents, Run, Table};
use crate::tree::{BucketId, Names, Work};
use crate::{Error, Result};

/// Leaves of a batch: of more there are more below one branch, but commits wait for all of them. So there are as many as a few
/// commits change: where small commits came fast, batches of 512 made the longest hundredth half as long again; where large
/// ones did, batches of 128 made it twice as long, with one and a half times the bytes to the disk.
pub(super) const BATCH: usize = if cfg!(test) { 3 } else { 512 };
const SMALL_BATCH: usize = if cfg!(test) { 2 } else { 128 };
const COMMITS: usize = 4;
/// So many leaves at most are left to a checkpoint, which takes them apart.
pub(super) const FEW: u64 = if cfg!(test) { 2 } else { 64 };
/// How often the leaves that got patches meanwhile are gone through again, at most.
const ROUNDS: usize = 8;
/// Of ten entries in the oldest slabs so many are moved on at most: more would leave too little room for new ones.
const MOVED_OF_TEN: u64 = 5;
/// To write a leaf takes so many times as long as to move its patches on.
const WRITE: usize = 4;
/// Pages by which the file grows where none is free.
pub(super) const GROWTH: u64 = if cfg!(test) { 4 } else { 1024 };

impl Shared {
    /// Whose turn it is to write leaves: pages that another has set aside for them would be missing. After one who has panicked
    /// nobody writes any more.
    pub(crate) fn turn_to_write(&self) -> MutexGuard<'_, ()> {
        self.leaves.lock().unwrap_or_else(|panicked| {
            self.writer.end("a panic while leaves were written".into());
            panicked.into_inner()
        })
    }

    /// Writes patched leaves to pages, until few are left. For who has the turn.
    pub(super) fn write_leaves(&self, _turn: &MutexGuard<'_, ()>) -> Result<()> {
        for round in 0..ROUNDS {
            let left = self.writer.with(|writer| {
                let patcher = writer.spare.patcher.as_ref()?;
                (patcher.live() > FEW).then(|| patcher.to_be_written())
            });
            let Some((Recents { table: Some(table), .. }, names)) = left else { return Ok(()) };
            self.check_usable()?;
            // Nearly all are written by the first.
            self.pressure.writes_leaves(round.min(1)..1, 1);
            self.write_round(&table, &names, table.all(), self.batches(&names), |done, all| {
                self.pressure.step(done, all);
            })?;
        }
        Ok(())
    }

    /// Gives the oldest memory back, while it is nearly full. For who has the turn.
    pub(super) fn give_back_memory(&self, turn: &MutexGuard<'_, ()>) -> Result<()> {
        // A checkpoint gives all of it back, and must not come too late.
        self.give_back_while_full(turn, |writer| !writer.checkpoint_asked).inspect_err(|_| {
            // It is tried again after a while: commits need not ask for it.
            self.writer.with(|writer| writer.spare.patcher.iter_mut().for_each(|patcher| _ = patcher.is_due()));
        })
    }

    /// The same, as long as it is wanted.
    pub(super) fn give_back_while_full(
        &self,
        _turn: &MutexGuard<'_, ()>,
        is_wanted: impl Fn(&Writer) -> bool,
    ) -> Result<()> {
        let (mut round, mut last) = (0, None);
        loop {
            let full = self.writer.with(|writer| {
                let is_wanted = is_wanted(writer);
                let patcher = writer.spare.patcher.as_mut()?;
                if !is_wanted {
                    patcher.is_not_told();
                    return None;
                }
                patcher.oldest().map(|oldest| (patcher.to_be_written(), oldest, patcher.room()))
            });
            let Some(((Recents { table: Some(table), .. }, names), oldest, room)) = full else { return Ok(()) };
            let giving_back = self.pressure.gives_back(&room);
            self.check_usable()?;
            round = if last == oldest.first() { round + 1 } else { 0 };
            last = oldest.first();
            if round < ROUNDS {
                self.write_or_move(&table, &names, &oldest, round == 0, &giving_back)?;
                continue;
            }
            // Leaves that get patches all the time, where there is no room to move them, are left to a commit.
            return self.writer.with(|writer| {
                commit(self, writer, |work| work.take_patched_apart(Some(&oldest)))?;
                writer.spare.patcher.iter_mut().for_each(|patcher| patcher.leave_all_of(&oldest));
                Ok(())
            });
        }
    }

    /// Gives the memory of patches back that nobody reads: little is written.
    pub(super) fn let_memory_go(&self) {
        // Nobody has to look at states that were read until now.
        self.readers.any_older();
        self.writer.with(|writer| {
            writer.spare.patcher.iter_mut().for_each(|patcher| patcher.let_go());
            writer.note_memory();
            self.note_figures(writer);
        });
    }

    /// Writes the leaves that refer to the oldest slabs, or moves what they have in memory: where not all `may_move`, only of
    /// those that got another patch meanwhile.
    fn write_or_move(
        &self,
        table: &Table,
        names: &Names,
        oldest: &Oldest,
        may_move: bool,
        giving_back: &GivingBack<'_>,
    ) -> Result<()> {
        let mut leaves = table.pages_of(oldest);
        let changes = |&(_, at): &(Pgid, u32)| table.header(at).map_or(0, |header| u64::from(header.changes) + 1);
        leaves.sort_by_cached_key(changes);
        let most = if may_move { oldest.patches * MOVED_OF_TEN / 10 } else { 0 };
        let mut moved = 0;
        let kept = leaves.iter().take_while(|leaf| {
            moved += changes(leaf);
            moved <= most
        });
        let kept = kept.count();
        let written = WRITE * (leaves.len() - kept);
        let all = written + leaves.len();
        giving_back.part(&(0..written), all);
        let tell = |done, all| giving_back.step(done, all);
        self.write_round(table, names, leaves[kept..].iter().copied(), self.batches(names), tell)?;
        // Also those that got another patch meanwhile.
        let pages: Vec<Pgid> = leaves.iter().map(|(page, _)| *page).collect();
        giving_back.part(&(written..all), all);
        for (number, batch) in pages.chunks(BATCH).enumerate() {
            giving_back.step((number * BATCH) as u64, pages.len() as u64);
            for &page in batch {
                table.prefetch(page);
            }
            let has_room = |writer: &mut Writer| {
                writer.spare.patcher.as_mut().is_some_and(|patcher| patcher.move_on(batch, oldest))
            };
            if !self.writer.with(has_room) {
                break;
            }
        }
        Ok(())
    }

    /// Goes once through these leaves that have patches, in batches: `write` has each written to pages that were set aside,
    /// and answers so many others, for the next batch; how many batches are done, and how many there are, it is to `tell`.
    pub(super) fn write_round<E: From<Error>>(
        &self,
        table: &Table,
        names: &Names,
        leaves: impl Iterator<Item = (Pgid, u32)>,
        mut write: impl FnMut(&[Ahead<'_>], &[Pgid], usize) -> Result<Vec<Pgid>, E>,
        tell: impl Fn(u64, u64),
    ) -> Result<(), E> {
        let ahead = leaves.filter_map(|(page, at)| {
            let header = table.header(at)?;
            let (bucket, patch) = (header.bucket.get(), PatchId::new(at, header));
            // Patches are added meanwhile, also of buckets that had no number yet.
            if !names.has(bucket) {
                return None;
            }
            Some(Ahead { bucket, prefix: 0, key: table.key(at)?, page, patch })
        });
        let mut ahead: Vec<Ahead<'_>> = ahead.collect();
        ahead.sort_unstable_by_key(|leaf| leaf.bucket);
        ahead.chunk_by_mut(|one, other| one.bucket == other.bucket).for_each(sort_by_key);
        let (is_replaying, usual) = self.writer.with(|writer| (writer.is_replaying, writer.usual_patches));
        let leaves = if is_replaying { BATCH } else { (COMMITS * usual).clamp(SMALL_BATCH, BATCH) };
        let mut pages = Vec::new();
        let mut batches = ahead.chunks(leaves).peekable();
        let all = batches.len() as u64;
        while let Some(batch) = batches.next() {
            tell(all - batches.len() as u64 - 1, all);
            if pages.is_empty() {
                pages = self.writer.with(|writer| set_aside(self, writer, batch.len()))?;
            }
            pages = write(batch, &pages, batches.peek().map_or(0, |next| next.len()))?;
            // Who does this is the thread that syncs in time, or keeps it waiting.
            self.sync_if_due()?;
        }
        Ok(())
    }

    /// Writes leaves of these buckets as they are in the newest state.
    fn batches<'a>(&'a self, names: &'a Names) -> impl FnMut(&[Ahead<'_>], &[Pgid], usize) -> Result<Vec<Pgid>> + 'a {
        |batch, pages, next| {
            let state = self.readers.enter();
            let copies = Copier::new(self, &state).copy(batch, names, pages, false);
            drop(state);
            self.writer.with(|writer| {
                writer.set_aside -= pages.len() as u64;
                let copies = copies.inspect_err(|_| writer.freelist.give_back_dirty(pages))?;
                writer.freelist.give_back_dirty(&copies.unused);
                exchange(self, writer, &copies, names)?;
                set_aside(self, writer, next)
            })
        }
    }
}

/// Sorts leaves of one bucket. The keys themselves, each of which has to be fetched, are seldom compared.
fn sort_by_key(leaves: &mut [Ahead<'_>]) {
    let common = alike_in_all(leaves.iter().map(|leaf| leaf.key));
    for leaf in &mut *leaves {
        leaf.prefix = prefix(&leaf.key[common..]);
    }
    leaves.sort_unstable_by(|one, other| (one.prefix, one.key).cmp(&(other.prefix, other.key)));
}

impl Writer {
    /// No state that is still to come has these leaves.
    ///
    /// # Errors
    /// As of [`Names::check_gone`].
    pub(super) fn leave_gone(&mut self, gone: &[&Ahead<'_>]) -> Result<()> {
        let Some(patcher) = &mut self.spare.patcher else { return Ok(()) };
        for gone in gone {
            if patcher.newest(gone.page) == Some(gone.patch) {
                patcher.check_gone(gone.page, gone.bucket)?;
                patcher.leave(gone.page);
            }
        }
        Ok(())
    }
}

/// Commits what `change` does, without a sync: it changes nothing that anybody sees. Without a change there is no commit.
pub(super) fn commit(shared: &Shared, writer: &mut Writer, change: impl FnOnce(&mut Work) -> Result<()>) -> Result<()> {
    in_work(shared, writer, |work, writer| {
        change(work)?;
        if work.nodes.is_empty() && work.raised == 0 {
            return Ok(());
        }
        // Numbers are the records' while they are made again, when nobody reads.
        let another = u64::from(!writer.is_replaying);
        let txid = work.base.meta.txid.checked_add(another).ok_or_else(ids_used_up)?;
        write(work, txid, shared, writer, Sync::Later).map(drop)
    })
}

/// Sets so many free pages aside, ascending.
pub(super) fn set_aside(shared: &Shared, writer: &mut Writer, pages: usize) -> Result<Vec<Pgid>> {
    if pages == 0 {
        return Ok(Vec::new());
    }
    shared.check_usable()?;
    writer.release_pages(shared, shared.readers.current().pages())?;
    let lacks = (pages as u64).saturating_sub(writer.freelist.free_pages());
    if lacks > 0 {
        let step = if writer.is_replaying { lacks } else { lacks.max(GROWTH) };
        let grown = grow(shared, writer, step);
        // Where there is no room for a step, there may be for what is needed; and a part of the batch is better than none.
        let grown = grown.or_else(|error| if is_full(&error) { grow(shared, writer, lacks) } else { Err(error) });
        grown.or_else(|error| {
            let goes_on = is_full(&error) && writer.freelist.free_pages() > 0;
            if goes_on { Ok(()) } else { Err(error) }
        })?;
    }
    let mut set_aside: Vec<Pgid> = std::iter::from_fn(|| writer.freelist.take_dirty()).take(pages).collect();
    set_aside.sort_unstable();
    writer.set_aside += set_aside.len() as u64;
    Ok(set_aside)
}

/// Has the file's pages end so much later; what is new is free.
pub(super) fn grow(shared: &Shared, writer: &mut Writer, pages: u64) -> Result<()> {
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
    writer.commits.count_writes(copies.writes, copies.bytes);
    // Pages that are not taken stay free: all of them, unless the commit is begun, which then gives back its own.
    let mut left: Vec<Pgid> = copies.written.iter().filter_map(|copy| copy.to).collect();
    let exchanged = writer.leave_gone(&copies.gone).and_then(|()| {
        commit(shared, writer, |work| {
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
        })
    });
    writer.freelist.give_back_dirty(&left);
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
    let leaf = copy.leaf.patched();
    if work.newest_patch(leaf.page) != Some(copy.patch) {
        return Ok(false);
    }
    match (open_bucket(work, leaf.number, names, last)?, copy.to) {
        (None, _) => work.check_gone(leaf).map(|()| false),
        (Some(bucket), Some(to)) => work.exchange_or_take_apart(bucket, leaf, to),
        (Some(bucket), None) => work.take_leaf_apart(bucket, leaf).map(|()| false),
    }
}

/// The bucket of this number, if there is one.
pub(super) fn open_bucket(
    work: &mut Work,
    number: u32,
    names: &Names,
    last: &mut Option<(u32, Option<BucketId>)>,
) -> Result<Option<BucketId>> {
    let opened = match *last {
        Some((last, opened)) if last == number => opened,
        _ => work.bucket_of_patch(&names.path(number))?,
    };
    *last = Some((number, opened));
    Ok(opened)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
mod tests;
