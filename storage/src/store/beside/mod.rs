//! A checkpoint beside the commits: one state is written to the file while they go on from it.
//!
//! What memory has of that state stays as it is, because from then on patches are added in another slab. Slab by slab, from
//! the oldest on, its leaves are copied to pages as they are in it. Short commits have the newest state's branches lead to
//! these copies, too; what was patched since has a patch of the copy that tells the rest. So each leaf is written once,
//! however often it is patched meanwhile, and slabs become free one after the other. At the end the state gets branches of
//! its own that lead to the copies, the link, and its meta. Commits wait for the places of these pages, and for the meta.
//!
//! The file then holds that state and no other, under its own number, and the journal what follows it. Which of its pages
//! others use, too, the freelist knows by that number (see `pages/freelist`): copies are as old as the state, and pages that
//! only it has are free once the next one is in the file.

mod place;

use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use super::commit::{Sync, ids_used_up, write};
use super::copier::{Ahead, Copied, Copier, Copies, Out};
use super::durable::{in_work, make_meta_durable, number_of_sync_point};
use super::patched::{FEW, commit, open_bucket, set_aside};
use super::writer::{Coming, Unsynced};
use super::{Shared, What, Writer};
use crate::base::shared;
use crate::format::{Meta, Pgid, TxId};
use crate::journal::Journal;
use crate::pages::{Recents, Run, SLABS_TOGETHER, Snapshot};
use crate::tree::{BucketId, Names, Spare, Work};
use crate::{Error, Result};

/// So many entries of a table are prepared at a time, and as often at most.
const STEP: usize = 1 << 14;
const STEPS: usize = 1000;
/// So many leaves are led to before others have their turn.
const LED_TO: usize = 64;

/// A state that is being written.
pub(crate) struct Beside<'a> {
    shared: &'a Shared,
    turn: &'a MutexGuard<'a, ()>,
    /// The state, with the memory whose leaves were not written yet.
    state: Snapshot,
    names: Arc<Names>,
    /// The slabs of that memory that are left, from the oldest on.
    slots: VecDeque<u8>,
    /// How many there were.
    all_slots: usize,
    /// How many leaves it has to write, and how many of them nothing leads to.
    leaves: u64,
    gone: u64,
    copies: Vec<Copy>,
    /// The keys of these.
    keys: Vec<u8>,
    /// What had been recorded, and not brought to the file, when the state was the newest.
    recorded: u64,
    unsynced: u64,
    since: Instant,
}

/// A leaf that was written.
struct Copy {
    bucket: u32,
    /// Where in the keys the one is that leads to it.
    key: (usize, usize),
    old: Pgid,
    new: Pgid,
}

/// Why it ended before its end.
pub(crate) enum End {
    /// Another state came to the file meanwhile.
    Overtaken,
    Failed(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Shared {
    /// Brings the file up to the newest state while commits go on from it; `false` where that cannot be done, and a checkpoint
    /// is wanted that they wait for.
    pub(crate) fn checkpoint_beside(&self, turn: &MutexGuard<'_, ()>) -> Result<bool> {
        let write = |mut beside: Beside<'_>| {
            while beside.write_next()? {}
            beside.finish()
        };
        match Beside::begin(self, turn).map(|begun| begun.map(write)) {
            Ok(None) => Ok(false),
            Ok(Some(Ok(()) | Err(End::Overtaken))) => Ok(true),
            // Nothing refers to what was written, but for the newest state: a checkpoint may still find room.
            Err(error) | Ok(Some(Err(End::Failed(error)))) => self.check_usable().map_err(|_| error).map(|()| false),
        }
    }
}

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        self.shared.writer.with(|writer| writer.beside = None);
    }
}

impl<'a> Beside<'a> {
    /// Begins with the newest state, where there is much in memory, and nothing else is wanted of the file.
    pub(crate) fn begin(shared: &'a Shared, turn: &'a MutexGuard<'_, ()>) -> Result<Option<Self>> {
        // Otherwise a commit would wait for all of the table that comes next.
        let is_prepared =
            |writer: &mut Writer| writer.spare.patcher.as_mut().is_none_or(|patcher| patcher.prepare(STEP));
        let _ = (0..STEPS).find(|_| shared.writer.with(is_prepared));
        shared.writer.with(|writer| {
            shared.check_usable()?;
            if !writer.may_go_on_beside(shared) {
                return Ok(None);
            }
            // The slot of the durable meta is not for this one's.
            let newest = shared.readers.current().meta.txid;
            if number_of_sync_point(newest, writer)? != newest {
                commit_nothing(shared, writer)?;
            }
            let current = shared.readers.current();
            let Some(patcher) = &mut writer.spare.patcher else { return Ok(None) };
            let names = Arc::new(patcher.to_be_written().1);
            let Some((table, slots)) = patcher.begin_slab() else { return Ok(None) };
            let leaves = patcher.live();
            let (meta, map) = (current.meta, Arc::clone(&current.map));
            writer.beside = Some(Coming { txid: meta.txid, is_next: true });
            Ok(Some(Self {
                shared,
                turn,
                state: Snapshot::new(meta, map, Recents { table: Some(table), upto: meta.txid }),
                names,
                all_slots: slots.len(),
                slots: slots.into(),
                leaves,
                gone: 0,
                copies: Vec::new(),
                keys: Vec::new(),
                recorded: writer.journal.as_ref().map_or(0, Journal::recorded),
                unsynced: writer.unsynced.as_ref().map_or(0, |unsynced| unsynced.commits),
                since: Instant::now(),
            }))
        })
    }

    /// Lets `then` have the writer, where this still is what comes to the file next.
    fn with_writer<T>(&self, then: impl FnOnce(&mut Writer) -> Result<T>) -> Result<T, End> {
        self.shared.writer.with(|writer| if writer.is_next_beside() { Ok(then(writer)?) } else { Err(End::Overtaken) })
    }

    /// Writes the leaves that refer to the oldest slabs; `false` where no slabs are left.
    pub(crate) fn write_next(&mut self) -> Result<bool, End> {
        let done = self.all_slots - self.slots.len();
        let slots: Vec<u8> = self.slots.drain(..SLABS_TOGETHER.min(self.slots.len())).collect();
        let Some(table) = self.state.recents.table.clone().filter(|_| !slots.is_empty()) else { return Ok(false) };
        let is_meant = |at: u32| table.header(at).is_some_and(|header| slots.contains(&header.oldest));
        let leaves = table.all().filter(|&(_, at)| is_meant(at));
        let (shared, names) = (self.shared, Arc::clone(&self.names));
        shared.pressure.writes_leaves(done..done + slots.len(), self.all_slots);
        let room = shared
            .writer
            .with(|writer| writer.spare.patcher.as_ref().map(|patcher| patcher.room()).unwrap_or_default());
        let write = |batch: &[Ahead<'_>], pages: &[Pgid], next| self.write_batch(batch, pages, next);
        let giving_back = shared.pressure.gives_back(&room);
        giving_back.part(&(0..1), 1);
        let tell = |done, all| {
            shared.pressure.step(done, all);
            giving_back.step(done, all);
        };
        shared.write_round(&table, &names, leaves, write, tell)?;
        self.state.recents.table = Some(shared::Arc::new(table.without(&slots)));
        Ok(true)
    }

    /// Writes leaves to these pages; answers so many others for the next batch.
    fn write_batch(&mut self, batch: &[Ahead<'_>], pages: &[Pgid], next: usize) -> Result<Vec<Pgid>, End> {
        let copies = Copier::new(self.shared, &self.state).copy(batch, &self.names, pages, true);
        let exchanged = self.shared.writer.with(|writer| {
            writer.set_aside -= pages.len() as u64;
            let is_next = writer.is_next_beside();
            let copies = copies.and_then(|copies| match copies.written.len() + copies.gone.len() {
                all if all == batch.len() => Ok(copies),
                _ => Err(no_space()),
            });
            match copies {
                Ok(copies) if is_next => {
                    writer.freelist.give_back_dirty(&copies.unused);
                    self.exchange(writer, &copies)?;
                    Ok((copies, set_aside(self.shared, writer, next)?))
                }
                ended => {
                    writer.freelist.give_back_dirty(pages);
                    Err(ended.map_or_else(End::Failed, |_| End::Overtaken))
                }
            }
        });
        let (copies, pages) = exchanged?;
        self.gone += copies.gone.len() as u64;
        for Copied { leaf, to, .. } in copies.written {
            let begin = self.keys.len();
            self.keys.extend_from_slice(leaf.key);
            let key = (begin, self.keys.len());
            self.copies.extend(to.map(|new| Copy { bucket: leaf.bucket, key, old: leaf.page, new }));
        }
        Ok(pages)
    }

    /// Has the newest state's branches lead to the copies, where it still has these leaves.
    fn exchange(&self, writer: &mut Writer, copies: &Copies<'_>) -> Result<()> {
        writer.commits.count_writes(copies.writes, copies.bytes);
        let all = || copies.written.iter().filter_map(|copy| Some((copy.leaf.page, copy.to?)));
        let mut is_begun = false;
        let mut taken = Vec::new();
        // In the state that is written they are gone as well, whatever became of their pages since.
        let mut gone = copies.gone.iter().map(|leaf| self.names.check_gone(leaf.page, leaf.bucket));
        let left = gone.try_for_each(|gone| gone).and_then(|()| writer.leave_gone(&copies.gone));
        let exchanged = left.and_then(|()| {
            commit(self.shared, writer, |work| {
                // What memory has of who had these pages before.
                work.forget_patches(&all().map(|(_, to)| Run { start: to, len: 1 }).collect::<Vec<_>>());
                let mut last = None;
                for copy in &copies.written {
                    if self.exchange_leaf(work, copy, &mut last)? {
                        taken.extend(copy.to.map(|to| (copy.leaf.page, to)));
                    }
                }
                is_begun = !work.nodes.is_empty();
                if is_begun {
                    // For the case that it fails.
                    work.spare.taken.extend(all().map(|(_, to)| Run { start: to, len: 1 }));
                }
                Ok(())
            })
        });
        if let Err(error) = exchanged {
            if !is_begun {
                writer.freelist.give_back_dirty(&all().map(|(_, to)| to).collect::<Vec<_>>());
            }
            return Err(error);
        }
        taken.sort_unstable();
        let txid = self.state.meta.txid;
        writer.freelist.copied_for(txid, &taken);
        let is_taken = |&(old, _): &(Pgid, Pgid)| taken.binary_search_by_key(&old, |&(taken, _)| taken).is_ok();
        let others: Vec<_> = all().filter(|copy| !is_taken(copy)).collect();
        writer.freelist.only_of(txid, others.iter().map(|&(_, to)| Run { start: to, len: 1 }));
        // Whatever of them is to be found is on other pages now.
        if let Some(patcher) = &mut writer.spare.patcher {
            for (old, _) in others {
                patcher.leave(old);
            }
        }
        Ok(())
    }

    /// Has a branch lead to the copy of a leaf, and to what was patched since; or takes the leaf apart. Whether the copy is
    /// taken.
    fn exchange_leaf(
        &self,
        work: &mut Work,
        copy: &Copied<'_>,
        last: &mut Option<(u32, Option<BucketId>)>,
    ) -> Result<bool> {
        let leaf = copy.leaf.patched();
        let (Some(newest), Some(to)) = (work.newest_patch(leaf.page), copy.to) else { return Ok(false) };
        let Some(bucket) = open_bucket(work, leaf.number, &self.names, last)? else {
            return work.check_gone(leaf).map(|()| false);
        };
        let is_same = newest == copy.patch;
        let is_told = is_same || !copy.has_buckets && self.rebase(work, copy, to);
        if copy.has_buckets || !is_told {
            return work.take_leaf_apart(bucket, leaf).map(|()| false);
        }
        let is_taken = work.exchange_or_take_apart(bucket, leaf, to)?;
        if !is_taken && !is_same {
            work.take_rebased_back();
        }
        Ok(is_taken)
    }

    fn rebase(&self, work: &mut Work, copy: &Copied<'_>, to: Pgid) -> bool {
        let written = self.state.recents.find(copy.leaf.page);
        written.is_some_and(|written| work.rebase(copy.leaf.page, to, written))
    }

    /// Writes the branches of the state, and brings it to the file.
    pub(crate) fn finish(mut self) -> Result<(), End> {
        let shared = self.shared;
        // What was passed over would be taken for written.
        if self.copies.len() as u64 + self.gone != self.leaves {
            let (done, leaves) = (self.copies.len(), self.leaves);
            return Err(Error::corrupt(self.state.meta.root, format!("{done} of {leaves} leaves were found")).into());
        }
        let (mut work, meta) = self.with_copies()?;
        let (meta, mut parts) = self.place(&mut work, meta)?;
        parts.sort_unstable_by_key(|part| part.run.start);
        let mut out = Out::new(shared, meta.page_size as usize);
        for part in &parts {
            work.encode(part, out.pages(part.run)?);
        }
        out.write()?;
        shared.write_back_beside(self.turn)?;
        // Records that nobody asked to be synced yet would keep commits waiting for it.
        shared.sync_records()?;
        self.with_writer(|writer| {
            writer.commits.count_writes(out.writes, out.bytes);
            // It may have been lowered, and the file with it.
            if shared.readers.current().meta.mark < meta.mark {
                return Err(no_space());
            }
            let clock = Instant::now();
            if let Some(journal) = &mut writer.journal {
                journal.reserve_two_links().map_err(|error| shared.unwritten(error))?;
            }
            if let Some(list) = writer.stored_freelist.take() {
                writer.freelist.free_later(list, meta.txid)?;
            }
            // Its pages are synced: what commits have written since is not this state's. No record comes between the link
            // and the meta: one behind a link says that its meta is on the disk.
            make_meta_durable(&meta, self.recorded, shared, writer)?;
            self.is_in_the_file(meta, writer);
            writer.stalls.note(clock.elapsed());
            shared.note_figures(writer);
            Ok(())
        })
    }

    /// The state with what leads to the leaves leading to their copies, and its meta as far as it is known.
    fn with_copies(&mut self) -> Result<(Work, Meta)> {
        let Self { shared, copies, keys, names, state, .. } = self;
        let current = shared.readers.current();
        // Copies may lie behind where the state's pages ended. No leaf is read but by its copy, buckets' before what is in them.
        let meta = Meta { mark: current.meta.mark, ..state.meta };
        let base = Snapshot::new(meta, Arc::clone(&current.map), Recents::default());
        let mut work = Work::new(Arc::new(base), Spare::default(), shared.options.fill);
        let key = |copy: &Copy| &keys[copy.key.0..copy.key.1];
        copies.sort_unstable_by(|one, other| (one.bucket, key(one)).cmp(&(other.bucket, key(other))));
        let mut last = None;
        for (number, copy) in copies.iter().enumerate() {
            if number % LED_TO == 0 {
                shared.give_way();
            }
            let bucket = open_bucket(&mut work, copy.bucket, names, &mut last)?;
            let leads = bucket.map(|bucket| work.replace_leaf(bucket, key(copy), copy.old, copy.new)).transpose()?;
            if leads != Some(true) {
                return Err(Error::corrupt(copy.old, "nothing leads to the leaf any more"));
            }
        }
        Ok((work, meta))
    }

    /// Takes note that the file holds the state.
    fn is_in_the_file(&self, meta: Meta, writer: &mut Writer) {
        writer.note_durable(meta, self.shared.readers.current().meta.txid);
        // The newest state is on other pages, whatever was committed: the file's are kept.
        let unsynced = writer.unsynced.take();
        let every = unsynced.as_ref().and_then(|unsynced| unsynced.every);
        let commits = unsynced.map_or(0, |unsynced| unsynced.commits).saturating_sub(self.unsynced);
        writer.unsynced = Some(Unsynced { commits, since: self.since, due: None, every: None });
        if let Some(every) = every
            && let Some(at) = writer.checkpoint_due_within(every)
        {
            self.shared.syncer.note(What::Checkpoint, at, every);
        }
    }
}

impl Writer {
    /// Whether a state can be written to the file beside the commits. What is asked for otherwise (a list of free pages, a
    /// smaller file) or is short (room) needs one that they wait for.
    fn may_go_on_beside(&self, shared: &Shared) -> bool {
        let is_patched = self.spare.patcher.as_ref().is_some_and(|patcher| patcher.live() > FEW);
        let has_room = !self.is_full() && self.max_size.is_none();
        is_patched && self.journal.is_some() && !shared.stores_freelist() && has_room && self.shrinking == 0
    }

    /// Whether the state that is being written will be what comes to the file next.
    fn is_next_beside(&self) -> bool {
        self.beside.is_some_and(|coming| coming.is_next)
    }
}

/// Gives the newest state another number.
fn commit_nothing(shared: &Shared, writer: &mut Writer) -> Result<TxId> {
    in_work(shared, writer, |work, writer| {
        let txid = work.base.meta.txid.checked_add(1).ok_or_else(ids_used_up)?;
        write(work, txid, shared, writer, Sync::Later)
    })
}

fn no_space() -> Error {
    Error::NoSpace { source: std::io::ErrorKind::StorageFull.into() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
mod tests;
