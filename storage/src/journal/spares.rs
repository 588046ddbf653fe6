//! Free segments: one is ready before it is needed, so that no commit waits for a file to be made.

use std::io;
use std::sync::Arc;
use std::thread;

use super::Journal;
use super::block::BLOCK_LEN;
use super::retain::Needed;
use super::segment::{SHORTEST_SEGMENT, Spare, with_len};
use crate::disk::is_out_of_files;

/// How many segments are removed at a checkpoint: whoever writes waits for it.
const AT_ONCE: usize = 8;

impl Journal {
    /// Sees to it that there is a spare when the next segment is needed, without waiting for it.
    pub(super) fn prepare_spare(&mut self) {
        if !self.spares.is_empty() || self.making.is_some() {
            return;
        }
        if let Some(spare) = self.reuse() {
            self.spares.push(spare);
        } else if self.limits.ahead {
            let (folder, len) = (Arc::clone(&self.folder), self.limits.segment_size);
            let make = move || Spare::make(&*folder, len);
            // Where no thread can be had, it is made when it is needed.
            self.making = thread::Builder::new().name("boltkv-journal".into()).spawn(make).ok();
        }
    }

    /// A free segment: one that is no longer needed, or the one that is being made, or a new one. On a full disk that may be
    /// a short one, where only `lacks` bytes have to find room in it.
    pub(super) fn obtain_spare(&mut self, lacks: u64) -> io::Result<Spare> {
        if let Some(spare) = self.reuse() {
            return Ok(spare);
        }
        if let Some(making) = self.making.take()
            && let Ok(Ok(spare)) = making.join()
        {
            return Ok(spare);
        }
        let len = self.limits.segment_size;
        if lacks <= SHORTEST_SEGMENT - BLOCK_LEN {
            Spare::make_or_shortest(&*self.folder, len)
        } else {
            Spare::make(&*self.folder, len).map_err(|error| with_len(error, len))
        }
    }

    /// The oldest segment, where it is needed no more.
    fn reuse(&mut self) -> Option<Spare> {
        let needed = self.needed();
        while let Some(used) = self.history.take_unneeded(&needed) {
            // One of another size goes, so that a full disk does not come to hold many short ones; one that cannot be opened,
            // or removed, is left to the next opening, which removes it.
            let is_as_long = used.len == self.limits.segment_size;
            let opened = is_as_long.then(|| self.folder.open(&used.name));
            if let Some(Err(error)) = &opened
                && is_out_of_files(error)
            {
                self.history.put_back(used);
                return None;
            }
            self.tail.forget(used.number);
            if !is_as_long {
                let _ = self.folder.remove(&used.name);
            }
            if let Some(Ok(disk)) = opened {
                return Some(Spare { name: used.name, disk, len: used.len });
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
        if let Some(making) = self.making.take() {
            let _ = making.join();
        }
    }
}
