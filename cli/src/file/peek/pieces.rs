//! A bucket read a piece at a time, each piece of one transaction.

use std::io::{self, Write as _};
use std::ops::Bound;
use std::path::Path;

use boltkv_storage::Error;
use boltkv_storage::tools::{Peek, PeekState, PeekedEntries};
use serde::Serialize;

use crate::failure::{Failure, Outcome};

/// Bytes of keys and values that are read in one piece, if there is time for so many. Read from memory they take a fraction
/// of a synced commit.
const PIECE: usize = 256 * 1024;

/// A file that is read in pieces, and which transactions these were of.
pub(super) struct Pieces<'a> {
    peek: Peek,
    path: &'a Path,
    /// What is said behind "not found"; empty where what is not in the file is nowhere.
    elsewhere: String,
    read: Read,
}

/// What was read, as JSON tells it.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Read {
    pub(super) pieces: u64,
    /// The transaction of the first piece.
    pub(super) first_txid: u64,
    /// And of the last.
    pub(super) last_txid: u64,
}

/// An entry as it is handed over; without a value it is a bucket.
pub(super) type Entry = (Vec<u8>, Option<Vec<u8>>);

impl<'a> Pieces<'a> {
    pub(super) fn new(peek: Peek, path: &'a Path, elsewhere: String) -> Self {
        Self { peek, path, elsewhere, read: Read::default() }
    }

    pub(super) fn path(&self) -> &Path {
        self.path
    }

    pub(super) fn page_size(&self) -> u32 {
        self.peek.page_size()
    }

    pub(super) fn read(&self) -> Read {
        self.read
    }

    /// One look at the file.
    pub(super) fn look<T>(&mut self, read: impl FnMut(&PeekState<'_>) -> Result<T, Error>) -> Outcome<T> {
        let looked = self.peek.look(read).map_err(|error| {
            let failure = Failure::storage(self.path, &error);
            match error {
                Error::BucketNotFound { .. } => failure.followed_by(&self.elsewhere),
                _ => failure,
            }
        })?;
        if self.read.pieces == 0 {
            self.read.first_txid = looked.txid;
        }
        self.read.pieces += 1;
        self.read.last_txid = looked.txid;
        Ok(looked.value)
    }

    /// The failure where the file does not have `what`.
    pub(super) fn not_found(&self, what: &str) -> Failure {
        Failure::not_done(format!("{}: no {what}{}", self.path.display(), self.elsewhere))
    }

    /// Some entries of a bucket, from a place on: the longer the file leaves no time for a piece, the smaller it gets.
    fn entries(&mut self, bucket: &[Vec<u8>], from: &Bound<Vec<u8>>) -> Outcome<PeekedEntries> {
        let mut bytes = 2 * PIECE;
        self.look(|state| {
            bytes /= 2;
            state.entries(bucket, from.as_ref().map(Vec::as_slice), bytes)
        })
    }

    /// The same; nothing where there is no such bucket any more.
    pub(super) fn entries_if_there(
        &mut self,
        bucket: &[Vec<u8>],
        from: &Bound<Vec<u8>>,
    ) -> Outcome<Option<PeekedEntries>> {
        let mut bytes = 2 * PIECE;
        self.look(|state| {
            bytes /= 2;
            match state.entries(bucket, from.as_ref().map(Vec::as_slice), bytes) {
                Err(Error::BucketNotFound { .. } | Error::IncompatibleValue { .. }) => Ok(None),
                read => read.map(Some),
            }
        })
    }

    /// Hands over the entries of a bucket, from a place on, until one is not wanted any more.
    pub(super) fn each(
        &mut self,
        bucket: &[Vec<u8>],
        from: Bound<Vec<u8>>,
        mut wants: impl FnMut(Entry) -> Outcome<bool>,
    ) -> Outcome {
        let mut from = Some(from);
        while let Some(next) = from {
            let piece = self.entries(bucket, &next)?;
            from = behind(&piece);
            for entry in piece.entries {
                if !wants(entry)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Says on standard error what was not read of one transaction.
    pub(super) fn say(&self) {
        let Read { pieces, first_txid, last_txid } = self.read;
        if first_txid != last_txid {
            let path = self.path.display();
            // If standard error is closed, nobody can be told.
            let _ = writeln!(
                io::stderr(),
                "note: {path} was written meanwhile: this was read in {pieces} pieces, of transactions {first_txid} to \
                 {last_txid}"
            );
        }
    }
}

/// Where the entries behind a piece begin, if there are any.
pub(super) fn behind(piece: &PeekedEntries) -> Option<Bound<Vec<u8>>> {
    piece.entries.last().filter(|_| piece.more).map(|(key, _)| Bound::Excluded(key.clone()))
}
