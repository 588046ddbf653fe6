//! Room: how the file grows, what is kept of its room for what is to come, and what is said where there is none.

use std::io;
use std::path::Path;

use super::place::is_lost;
use super::writer::map_size;
use super::{Options, Shared, Writer};
use crate::disk::{Disk, Room, free_bytes, is_no_room, is_out_of_files};
use crate::format::Pgid;
use crate::pages::Run;
use crate::tree::Work;
use crate::{Error, Result};

/// Up to this many bytes a file grows to the size of its map, beyond by this much more than it
/// needs: bbolt's `AllocSize`.
const GROW_STEP: u64 = 16 << 20;

/// Pages that are kept beside those of leaves and branches: for roots, and the list of free pages.
const FOR_THE_REST: u64 = 16;
/// On a full disk: so many pages are left to what only deletes; and so many more are wanted before the disk is not full any
/// more.
const SOME: u64 = if cfg!(test) { 16 } else { 64 };

/// What there was too little of when it was last wanted, and is not known to be enough since.
#[derive(Debug, Default)]
pub(crate) struct Lacks {
    /// Pages for what is in memory and for what deletes, free ones or others: no more leaves get patches.
    room: bool,
    /// Room behind the file's pages: free ones are taken, wherever they lie.
    growth: bool,
}

/// Bytes that the file may have: what the options say, or the process's limit of what its files may (`ulimit -f`).
pub(super) fn limit(options: &Options, disk: &dyn Disk) -> Option<u64> {
    [options.max_size, disk.max_len()].into_iter().flatten().min()
}

impl Shared {
    /// The file is closed, and nothing is in memory any more: it gives back the room that was kept for that.
    pub(super) fn give_room_back(&self, writer: &mut Writer) -> Result<()> {
        let len = writer.len_without_room.take().unwrap_or(writer.file_len);
        let most = writer.file_len.saturating_sub(len);
        if most > 0 { self.cut(writer, most).map(drop) } else { Ok(()) }
    }
}

impl Writer {
    /// Has the disk keep room for all patched leaves to be written, and the branches above them, before patches are
    /// acknowledged; the commit's own pages end at `mark`. So a checkpoint can always be made. Pages that the commit raises
    /// the mark by have nothing on them, but are handed out as if they had. At a sync point all leaves are written.
    ///
    /// What adds, and takes more than it frees, leaves room for what deletes, too, while the disk is not known to be full;
    /// then [`keep_reserve`] sees to it.
    ///
    /// # Errors
    /// The disk is full, or the file may not grow.
    pub(crate) fn keep_room(
        &mut self,
        shared: &Shared,
        mark: Pgid,
        work: &Work,
        taken: &[Run],
        is_point: bool,
    ) -> io::Result<()> {
        let is_kept_for_deletions = shared.options.max_size_reserve > 0;
        if !is_kept_for_deletions && (is_point || work.spare.patcher.is_none()) {
            return Ok(());
        }
        // What is done again is acknowledged, and is written before anything else is.
        let patched = if is_point || self.is_replaying { 0 } else { Self::patched_pages(work) };
        let is_to_leave = is_kept_for_deletions && !self.is_full() && takes_more(work, taken);
        let more = if is_to_leave { self.for_deletions(shared, mark) } else { 0 };
        self.keep_room_for(shared, mark, work, patched + more)
    }

    /// Pages that patched leaves take when they are written, and the branches above them.
    fn patched_pages(work: &Work) -> u64 {
        let pages = work.spare.patcher.as_ref().map_or(0, |patcher| patcher.pages_to_write(&work.freed));
        if pages > 0 { pages + FOR_THE_REST } else { 0 }
    }

    /// Pages that are to be kept for what deletes; where the file's limit is nearer than the disk's, that has its own.
    fn for_deletions(&self, shared: &Shared, mark: Pgid) -> u64 {
        let pages = (shared.options.max_size_reserve / self.page_size).min(SOME);
        let is_near = |max: u64| (mark + 1 + pages).saturating_mul(self.page_size) > max;
        if self.max_size.is_some_and(is_near) { 0 } else { pages }
    }

    /// Up to where the mark may go, which is at `mark`: where the file may not grow, or could not, free pages are taken
    /// instead, wherever they lie.
    pub(super) fn mark_limit(&self, mark: Pgid) -> Pgid {
        let stays = self.is_full() || self.is_replaying;
        let len = if stays { self.kept_len } else { self.max_size.unwrap_or(u64::MAX) };
        (len / self.page_size).saturating_sub(1).max(mark)
    }

    /// A commit found no room in the file, or in the journal.
    pub(super) fn note_no_room(&mut self, error: &io::Error) {
        self.lacks.room |= is_no_room(error);
        self.lacks.growth |= matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    }

    pub(super) fn is_full(&self) -> bool {
        self.lacks.room || self.lacks.growth
    }

    /// Before a transaction begins: makes available what no reader sees any more, and looks for room.
    pub(crate) fn prepare(&mut self, shared: &Shared, work: &mut Work) -> Result<()> {
        self.say_open(shared, work)?;
        // The memory of patches is told of pages that are found to be nobody's.
        std::mem::swap(&mut work.spare.patcher, &mut self.spare.patcher);
        let released = self.release_pages(shared, work.pages());
        std::mem::swap(&mut work.spare.patcher, &mut self.spare.patcher);
        released?;
        self.look_for_room(shared, work);
        Ok(())
    }

    /// Whether there is room now, where there was none. Until then no other leaves get patches than those that have some.
    fn look_for_room(&mut self, shared: &Shared, work: &mut Work) {
        let mark = work.base.meta.mark;
        if self.is_full() {
            // The process's limit may have been raised.
            self.max_size = limit(&shared.options, &*shared.disk);
        }
        // Asked for only where it is wanted: it asks the system.
        let more = if self.is_full() { self.for_deletions(shared, mark).max(SOME) } else { 0 };
        if self.lacks.room {
            let patched = Self::patched_pages(work).max(FOR_THE_REST);
            self.lacks.room = self.keep_room_for(shared, mark, work, patched + more).is_err();
        }
        if self.lacks.growth {
            // Free pages are no sign of it.
            let free = self.freelist.free_pages() + self.set_aside;
            self.lacks.growth = self.keep_room_for(shared, mark, work, free + more).is_err();
        }
        if let Some(patcher) = &mut work.spare.patcher {
            patcher.note_room(self.lacks.room);
        }
    }

    /// Keeps so much room, and the commit's own up to its end: what of that it does not write is free, and counted on later.
    fn keep_room_for(&mut self, shared: &Shared, mark: Pgid, work: &Work, needed: u64) -> io::Result<()> {
        let (end, before) = (mark + 1, work.base.meta.mark + 1);
        let kept = (self.kept_len / self.page_size).max(before);
        // Pages by which the commit raises the mark are free behind it; of others that it has taken at the end, what it does
        // not write is free already, and has nothing on it either.
        let behind = kept.saturating_sub(end) + work.raised;
        let lacks = needed.saturating_sub(self.freelist.free_pages() + self.set_aside + behind);
        let wanted = kept.max(end) + lacks;
        if wanted <= kept {
            return Ok(());
        }
        let len = self.file_len;
        self.grow(shared, wanted - 1, work)?;
        if self.file_len > len {
            self.len_without_room.get_or_insert(len);
        }
        // The file has a page more than the mark says, on which nothing was ever written: where no room was kept yet, it has none.
        let begin = self.kept_len.max(work.base.meta.mark * self.page_size);
        let wanted = wanted * self.page_size;
        let step = wanted.saturating_add(GROW_STEP).min(self.file_len);
        // Some file systems (ext4) keep what they found also where that was too little: a step is asked for where there is one.
        let has_step = shared.disk.room().is_none_or(|room| room.free >= step - begin);
        let keep = |end: u64| shared.disk.keep_room(begin, end - begin).map(|()| end);
        self.kept_len = match keep(if has_step { step } else { wanted }) {
            Err(error) if has_step && is_no_room(&error) => keep(wanted)?,
            kept => kept?,
        };
        Ok(())
    }

    /// Makes room in the file for all pages below `mark`, in bbolt's steps. For a list of free pages alone as much as it needs:
    /// a file that was made smaller is to be so after its clean close, too.
    ///
    /// A limit holds for what adds. Of a file that is beyond it already no page may be free: what only deletes lets it grow by
    /// what is kept for that, once.
    pub(crate) fn grow(&mut self, shared: &Shared, mark: Pgid, work: &Work) -> io::Result<()> {
        let needed = mark.checked_add(1).and_then(|pages| pages.checked_mul(self.page_size));
        let needed = needed.ok_or(io::ErrorKind::FileTooLarge)?;
        if needed >= self.map_len {
            self.map_len = map_size(needed);
        }
        if needed > self.file_len {
            let mut max = self.max_size.unwrap_or(u64::MAX);
            if !work.adds && self.file_len > max {
                let most = self.file_len.saturating_add(shared.options.max_size_reserve);
                max = *self.most_for_deletions.get_or_insert(most);
            }
            if needed > max {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            let len = match self.map_len {
                _ if work.nodes.is_empty() && work.patched() == 0 => needed,
                len if len <= GROW_STEP => len,
                _ => needed + GROW_STEP,
            };
            let len = len.min(max.max(self.file_len));
            self.file_len = match shared.disk.set_len(len) {
                // Where there is no room for a step, there may be for what is needed.
                Err(error) if is_no_room(&error) => shared.disk.set_len(needed).map(|()| needed)?,
                grown => grown.map(|()| len)?,
            };
        }
        Ok(())
    }
}

impl Shared {
    /// The error for pages that could not be written, to which nothing refers: where there is no room, the database goes on.
    pub(super) fn unwritten(&self, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::QuotaExceeded | io::ErrorKind::StorageFull | io::ErrorKind::OutOfMemory => {
                Error::NoSpace { source: error }
            }
            // The journal's next file could not be opened: nothing has been written that anything refers to.
            _ if is_out_of_files(&error) => Error::NoSpace { source: error },
            _ if is_lost(&error) => self.journal_lost(error),
            io::ErrorKind::FileTooLarge => Error::MaxSizeReached { max: limit(&self.options, &*self.disk) },
            _ => self.poison("write pages to", error),
        }
    }
}

/// Fails where a commit would leave too little room for one that only deletes: without any, nothing could be deleted any
/// more. What takes no more pages than it frees leaves as much as there was. Pages that wait for readers, or for a checkpoint,
/// are room too: they come back. On a full disk that is all the room that there is.
pub(super) fn keep_reserve(
    work: &Work,
    allocated: &[Run],
    mark: Pgid,
    shared: &Shared,
    writer: &Writer,
) -> io::Result<()> {
    leave_room(work, mark, shared, writer)?;
    let is_full_disk = writer.is_full() && writer.max_size.is_none();
    if writer.max_size.is_none() && !is_full_disk {
        return Ok(());
    }
    let page_size = work.pages().page_size() as u64;
    if !takes_more(work, allocated) {
        return Ok(());
    }
    let left = writer.freelist.free_pages() + writer.freelist.waiting_pages() + pages(&work.freed);
    if is_full_disk {
        let behind = (writer.kept_len / page_size).saturating_sub(mark + 1);
        let kept = Writer::patched_pages(work) + writer.for_deletions(shared, mark).max(SOME);
        if left + behind < kept {
            return Err(io::ErrorKind::StorageFull.into());
        }
    }
    let Some(max) = writer.max_size else { return Ok(()) };
    // A file that is longer already stays so. As it grows, it has a page more than are in use.
    let most = max.max(writer.file_len) / page_size;
    let beyond = most.saturating_sub(1).saturating_sub(mark);
    // Who sets the process's limit has not said what is to be kept of it.
    let most_kept = if shared.options.max_size.is_some() { u64::MAX } else { max / 16 };
    if left + beyond < shared.options.max_size_reserve.min(most_kept) / page_size {
        Err(io::ErrorKind::FileTooLarge.into())
    } else {
        Ok(())
    }
}

/// Fails where a commit would have the file grow into what is left of the disk for others.
fn leave_room(work: &Work, mark: Pgid, shared: &Shared, writer: &Writer) -> io::Result<()> {
    let grows = mark.saturating_sub(work.base.meta.mark) * writer.page_size;
    if writer.left == 0 || grows == 0 {
        return Ok(());
    }
    let Some(Room { free, missing }) = shared.disk.room() else { return Ok(()) };
    let behind = ((mark + 1) * writer.page_size).saturating_sub(writer.file_len);
    let takes = grows.min(missing + behind);
    if takes == 0 || free >= takes + writer.left {
        return Ok(());
    }
    let what = format!("the file has to grow by {takes} bytes, and the journal needs {} then", writer.left);
    Err(io::Error::new(io::ErrorKind::StorageFull, what))
}

/// Whether a commit that takes these pages adds something, and takes more than it frees.
fn takes_more(work: &Work, taken: &[Run]) -> bool {
    work.adds && pages(taken) > pages(&work.freed)
}

pub(super) fn pages(runs: &[Run]) -> u64 {
    runs.iter().map(|run| run.len).sum()
}

/// A disk that is full, and how much was to be written to it: no more room than that was missing.
pub(super) fn with_need(error: io::Error, pages: u64, work: &Work) -> io::Error {
    if error.kind() != io::ErrorKind::StorageFull || pages == 0 {
        return error;
    }
    let bytes = pages.saturating_mul(work.pages().page_size() as u64);
    io::Error::new(error.kind(), format!("{error}; {bytes} bytes were to be written to the file"))
}

/// A disk that is full, and how much it has left: where that is more than nothing, the commit wanted more than that.
pub(super) fn with_room(error: io::Error, what: &str, path: Option<&Path>) -> io::Error {
    let free = path.filter(|_| error.kind() == io::ErrorKind::StorageFull).map(free_bytes);
    match free {
        Some(Ok(free)) => {
            io::Error::new(error.kind(), format!("{error}; the disk of the {what} has {free} bytes left"))
        }
        _ => error,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use crate::{JournalOptions, Options};

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no such files")]
    fn room_is_kept_from_the_first_page_on_that_was_never_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.db");
        let options = Options::new().journal(JournalOptions::new().checkpoint_size(1 << 20).memory(1 << 20));
        let put = |db: &crate::Db, key: u8| {
            db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(&[key][..], &[key; 1000][..])).unwrap();
        };
        let db = options.clone().open(&file).unwrap();
        (0..100).for_each(|key| put(&db, key));
        db.close().unwrap();
        // A file that was closed ends behind its last page.
        let db = options.open(&file).unwrap();
        let size = || file.metadata().map(|file| (file.len(), file.blocks() * 512)).unwrap();
        let (end, had) = size();
        put(&db, 1);
        let kept = db.0.shared.writer.with(|writer| writer.kept_len);
        let (len, has) = size();
        assert!(kept > end && len >= kept, "{kept} bytes are kept of {len}");
        // Beside its bytes a file may take blocks for what leads to them.
        assert!(has - had >= kept - end, "{} bytes came to the disk, {} are counted on", has - had, kept - end);
    }
}
