//! Whether file and journal are still where they were opened: somebody may have moved or removed them, and what is written to
//! them then would not be found again.

use std::path::Path;
use std::{fmt, io};

use super::begin::{Word, sync_point_that_says};
use super::{Shared, Writer};
use crate::disk::{is_no_room, is_out_of_files};
use crate::{Error, Result};

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

/// A segment could not be made where the journal is not in its place any more.
#[derive(Debug)]
struct Lost(io::Error);

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it was removed or replaced while it was in use: {}", self.0)
    }
}

impl std::error::Error for Lost {}

/// Whether a commit failed for that alone: nothing that anything refers to was written. The checkpoint that comes thereupon
/// ends the writes.
pub(super) fn is_lost(error: &io::Error) -> bool {
    matches!(error.get_ref(), Some(error) if error.is::<Lost>())
}

/// The same of an error that was told.
pub(super) fn tells_of_lost(error: &Error) -> bool {
    matches!(error, Error::JournalIo { source, .. } if is_lost(source))
}

impl Shared {
    /// Asks the system. What it does not say of the file is taken to be in its place.
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

    /// The same error, of a segment that could not be made; it says so where the journal is lost, whatever is there instead.
    pub(super) fn no_segment(&self, error: io::Error) -> io::Error {
        if is_no_room(&error) || is_out_of_files(&error) || self.is_journal_in_place() {
            return error;
        }
        io::Error::new(error.kind(), Lost(error))
    }

    pub(super) fn journal_lost(&self, error: io::Error) -> Error {
        Error::journal_io("make a segment of the journal in", self.journal().unwrap_or(Path::new("")))(error)
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
        if let Err(error) = sync_point_that_says(Word::Closed, self, writer, self.stores_freelist()) {
            // Not even a link finds room: what nobody will find needs none.
            if !tells_of_lost(&error) {
                return Err(error);
            }
            writer.journal = None;
            sync_point_that_says(Word::Closed, self, writer, self.stores_freelist())?;
        }
        let folder = self.journal().unwrap_or(Path::new("")).display();
        let what = format!(
            "{folder}, or its newest segment, was removed or replaced while it was in use; the file has everything that was \
             committed, and opened again begins another journal (what lies there then and does not fit is to be moved away)"
        );
        Err(self.poison("go on with the journal of", io::Error::new(io::ErrorKind::NotFound, what)))
    }
}
