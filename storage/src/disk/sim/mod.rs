//! The simulated disk, for tests: a file on the heap that writes down everything that is done to
//! it, so that a test can ask what the real file might hold after a power cut at any moment.
//!
//! - here: the log, and the [`SimDisk`] that keeps it
//! - `platter`: what a crash may leave of a file
//! - `blocks`: the room that it takes
//! - `folder`: files by name, and what a crash may leave of the names
//! - `trap`: the call that fails
//!
//! Nothing here knows what the bytes mean, and nothing here may be kinder than a file system is
//! allowed to be.

mod blocks;
mod folder;
mod journal;
mod platter;
mod trap;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blocks::Blocks;
pub(crate) use folder::{NameOp, Names, SimFolder};
pub(crate) use journal::SimJournalFolder;
pub(crate) use platter::{FileOp, Harm, Loss, Platter};
pub(crate) use trap::{Call, Fault, Trap};

use super::{Disk, HeapDisk, Map, Room};

/// A file by its place in the order of creation.
pub(crate) type FileId = usize;

/// One thing that happened, in the order in which it happened.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// A file was changed; a crash may lose it.
    File(FileId, FileOp),
    /// All changes of the file so far are on the disk.
    SyncFile(FileId),
    /// The last change of the file is, and there was no other that was not.
    SyncChange(FileId),
    /// A name was changed; a crash may lose it.
    Name(NameOp),
    /// All names are on the disk as they are.
    SyncFolder,
    /// What the test has to say.
    Mark(Mark),
}

/// What a test notes between the calls of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A further state may appear after a crash from here on.
    Begun,
    /// The newest state that has begun must be there after a crash from here on.
    Durable,
    /// Somebody was told of the state of this number: that, or a later one, must be there after a crash from here on.
    Told(usize),
}

/// The events of all files of a folder, in one order. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Event>>>);

impl Log {
    fn events(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: Event) {
        self.events().push(event);
    }

    pub(crate) fn mark(&self, mark: Mark) {
        self.push(Event::Mark(mark));
    }

    /// Takes out everything that happened so far.
    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.events())
    }
}

/// A file whose every change is logged. Clones are the same file; reads and maps see its newest state.
#[derive(Debug, Clone)]
pub(crate) struct SimDisk {
    file: FileId,
    now: Arc<HeapDisk>,
    log: Log,
    trap: Trap,
    blocks: Blocks,
}

impl SimDisk {
    fn with_log(file: FileId, bytes: &[u8], log: Log, trap: Trap) -> Self {
        let now = HeapDisk::default();
        now.write_at(bytes, 0).expect("the heap takes it");
        Self { file, now: Arc::new(now), log, trap, blocks: Blocks::below(bytes.len() as u64) }
    }

    pub(crate) fn trap(&self) -> &Trap {
        &self.trap
    }

    /// Fails where the file may not have so many bytes.
    fn may_have(&self, len: u64) -> io::Result<()> {
        if self.max_len().is_some_and(|max| len > max) { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(()) }
    }

    fn logged(&self, op: FileOp) {
        self.log.push(Event::File(self.file, op));
    }
}

impl Disk for SimDisk {
    fn len(&self) -> io::Result<u64> {
        self.trap.call(Call::Len)?;
        self.now.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.trap.call(Call::Read)?;
        self.now.read_at(buf, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        if data.is_empty() {
            return Ok(()); // The system is not called for it.
        }
        let result = self.trap.call(Call::Write { offset });
        let written = if result.is_ok() { data } else { &data[..self.trap.part_of(data.len())] };
        if !written.is_empty() {
            self.may_have(offset + written.len() as u64)?;
            self.blocks.take(offset..offset + written.len() as u64, &self.trap)?;
            self.now.write_at(written, offset)?;
            let offset = usize::try_from(offset).map_err(io::Error::other)?;
            self.logged(FileOp::Write { offset, data: written.into() });
        }
        result
    }

    fn write_through_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(data, offset)?;
        // It is one call, which may fail with all of it on its way.
        self.trap.call(Call::Sync)?;
        self.log.push(Event::SyncChange(self.file));
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.trap.call(Call::SetLen)?;
        self.may_have(len)?;
        self.now.set_len(len)?;
        self.blocks.give_from(len, &self.trap);
        self.logged(FileOp::SetLen(usize::try_from(len).map_err(io::Error::other)?));
        Ok(())
    }

    fn max_len(&self) -> Option<u64> {
        self.trap.max_len()
    }

    fn room(&self) -> Option<Room> {
        let len = self.now.len().ok()?;
        self.trap.room().map(|free| Room { free, missing: self.blocks.missing_below(len) })
    }

    fn keep_room(&self, offset: u64, len: u64) -> io::Result<()> {
        self.trap.call(Call::SetLen)?;
        self.may_have(offset + len)?;
        self.blocks.take(offset..offset + len, &self.trap)
    }

    fn sync(&self) -> io::Result<()> {
        self.trap.call(Call::Sync)?;
        self.log.push(Event::SyncFile(self.file));
        Ok(())
    }

    fn map(&self, len: usize) -> io::Result<Map> {
        self.trap.call(Call::Map)?;
        self.now.map(len)
    }

    fn shows(&self, map: &Map) -> bool {
        self.now.shows(map)
    }
}
