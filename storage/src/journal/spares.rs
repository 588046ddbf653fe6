//! Free segments: one is ready before it is needed, so that no commit waits for a file to be made.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use super::Journal;
use super::block::BLOCK_LEN;
use super::retain::Needed;
use super::segment::{Spare, with_len};
use crate::disk::{JournalFolder, is_no_room, is_out_of_files};

/// How many segments are removed at a checkpoint: whoever writes waits for it.
const AT_ONCE: usize = 8;
/// How many short segments are made for one commit on a full disk.
const MOST_SHORT: u64 = 16;

/// A segment that a thread makes.
#[derive(Debug)]
pub(super) struct Making {
    thread: JoinHandle<io::Result<Spare>>,
    /// How long it is, once it is there.
    len: Arc<AtomicU64>,
}

impl Making {
    /// `None` where no thread can be had.
    fn begin(folder: Arc<dyn JournalFolder>, len: u64) -> Option<Self> {
        let there = Arc::new(AtomicU64::new(0));
        let told = Arc::clone(&there);
        let make = move || Spare::make(&*folder, len).inspect(|spare| told.store(spare.len, Ordering::Relaxed));
        let thread = thread::Builder::new().name("boltkv-journal".into()).spawn(make).ok()?;
        Some(Self { thread, len: there })
    }

    /// Bytes that it takes already: none where it is not there yet, or could not be made.
    pub(super) fn len(&self) -> Option<u64> {
        Some(self.len.load(Ordering::Relaxed)).filter(|&len| len > 0)
    }

    /// Waits for it.
    fn end(self) -> Option<Spare> {
        self.thread.join().ok()?.ok()
    }
}

impl Journal {
    /// Sees to it that there is a spare when the next segment is needed, without waiting for it.
    pub(super) fn prepare_spare(&mut self) {
        if !self.spares.is_empty() || self.making.is_some() {
            return;
        }
        if let Some(spare) = self.reuse() {
            self.spares.push(spare);
        } else if self.limits.ahead {
            // Where it cannot be made now, it is when it is needed.
            self.making = Making::begin(Arc::clone(&self.folder), self.limits.segment_size);
        }
    }

    /// Keeps a segment for where no other can be had: a short one, or where there is no room for that a spare. A disk may be
    /// filled by what the journal and the file take themselves; the next opening, which begins another segment before it
    /// brings the file up to date, would find nothing there that it could do without.
    pub(super) fn keep_last_resort(&mut self) {
        if self.last_resort.is_none() {
            let made = Spare::make_shortest(&*self.folder, &self.limits).ok();
            self.last_resort = made.or_else(|| self.spares.pop());
        }
    }

    /// The oldest segment, where it is needed no more, and is not the one that is kept for the last.
    fn reuse(&mut self) -> Option<Spare> {
        let spare = self.take_unneeded()?;
        self.spares.push(spare);
        self.keep_last_resort();
        self.spares.pop().or_else(|| self.take_unneeded())
    }

    /// A free segment: one that is no longer needed, or the one that is being made, or a new one. On a full disk that may be
    /// a short one, where only `lacks` bytes have to find room in it and some others. The one that is kept for the last is
    /// taken where the file holds everything: the one before it is free then.
    pub(super) fn obtain_spare(&mut self, lacks: u64) -> io::Result<Spare> {
        if let Some(spare) = self.reuse() {
            return Ok(spare);
        }
        if let Some(spare) = self.making.take().and_then(Making::end) {
            return Ok(spare);
        }
        let len = self.limits.segment_size;
        let mut made = Spare::make(&*self.folder, len).map_err(|error| with_len(error, len));
        if made.as_ref().is_err_and(is_no_room) && lacks <= MOST_SHORT * (self.limits.shortest() - BLOCK_LEN) {
            made = Spare::make_shortest(&*self.folder, &self.limits);
        }
        if made.as_ref().is_err_and(is_no_room) && self.since_checkpoint() == 0 {
            made = self.last_resort.take_if(|last| last.room() >= lacks).map_or(made, Ok);
        }
        made
    }

    /// The oldest segment, where it is needed no more.
    fn take_unneeded(&mut self) -> Option<Spare> {
        let needed = self.needed();
        while let Some(used) = self.history.take_unneeded(&needed) {
            // One of another size goes, so that a full disk does not come to hold many short ones, but for one of these that
            // is kept for the last; one that cannot be opened, or removed, is left to the next opening, which removes it.
            let is_kept = used.len == self.limits.segment_size;
            let is_last_resort = !is_kept && self.limits.is_last_resort(used.len, self.last_resort.as_ref());
            if !is_kept && !is_last_resort {
                self.tail.forget(used.number);
                let _ = self.folder.remove(&used.name);
                continue;
            }
            let opened = Spare::open(&*self.folder, &used.name, used.len);
            if opened.as_ref().is_err_and(is_out_of_files) {
                self.history.put_back(used);
                return None;
            }
            self.tail.forget(used.number);
            match opened {
                Ok(spare) if is_kept => return Some(spare),
                Ok(spare) => self.last_resort = Some(spare),
                Err(_) => {}
            }
        }
        None
    }

    /// Removes some of what nobody needs, if it is more than is worth keeping.
    pub(super) fn trim(&mut self) {
        let needed = self.needed();
        for _ in 0..AT_ONCE {
            let Some(used) = self.history.take_surplus(&needed, &self.limits) else { return };
            self.tail.forget(used.number);
            // One that cannot be removed is left to the next opening.
            let _ = self.folder.remove(&used.name);
        }
    }

    fn needed(&self) -> Needed {
        // A meta must be named somewhere on the disk: by its link, until it is by a header.
        let (link, header) = self.named_in;
        let link = if self.synced.segment >= header { u64::MAX } else { link };
        Needed { link, contains: self.base.0, keep: self.limits.keep, now_ms: self.current.last_time_ms }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // The folder is not left while somebody still works in it.
        drop(self.making.take().map(Making::end));
    }
}
