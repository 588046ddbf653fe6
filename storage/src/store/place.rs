//! Whether file and journal are still where they were opened: somebody may have moved or removed them, and what is written to
//! them then would not be found again.

use std::io;
use std::path::Path;

use super::{Shared, Writer, sync_point};
use crate::Result;

/// What is not in its place any more while it is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Displaced {
    /// The file: its path leads to nothing, or to another one. What is committed goes on to be written to it, and only this
    /// process can read that: a backup saves it.
    File,
    /// The journal: its folder, or the segment that is written. What is committed from now on would be lost in a crash until
    /// the next [`Db::checkpoint`](crate::Db::checkpoint), which ends all writes once the file has everything.
    Journal,
}

impl Shared {
    /// Asks the system. What it does not say is taken to be in its place.
    pub(crate) fn displaced(&self) -> Option<Displaced> {
        if !self.is_journal_in_place() {
            return Some(Displaced::Journal);
        }
        let is_file_there = self.path().is_none_or(|path| self.disk.is_at(path).unwrap_or(true));
        (!is_file_there).then_some(Displaced::File)
    }

    pub(super) fn is_journal_in_place(&self) -> bool {
        self.tail().is_none_or(|tail| tail.is_in_place())
    }

    /// Ends all writes where the journal is not in its place any more, so that a crash would take what it has, once the file
    /// has everything: opened again it begins another.
    ///
    /// # Errors
    /// It is so.
    pub(super) fn keep_journal_in_place(&self, writer: &mut Writer) -> Result<()> {
        if self.options.read_only || self.is_journal_in_place() {
            return Ok(());
        }
        sync_point(self, writer, self.stores_freelist())?;
        let folder = self.journal().unwrap_or(Path::new("")).display();
        let what = format!(
            "{folder}, or its newest segment, was removed or replaced while it was in use; the file has everything that was \
             committed, and opened again begins another journal (what lies there then and does not fit is to be moved away)"
        );
        Err(self.poison("go on with the journal of", io::Error::new(io::ErrorKind::NotFound, what)))
    }
}
