//! Records in batches: what waits in a journal is made again in few transactions, and never more of it is in memory than one
//! of them takes.

use std::io;
use std::iter::Peekable;
use std::path::Path;

use super::Recorded;
use crate::journal::{Record, Waiting};
use crate::{Error, Result};

/// Bytes of records after which a batch ends: many small transactions in one cost what one of that size does, and take five
/// times as much memory.
const AT_ONCE: u64 = if cfg!(any(test, fuzzing)) { 1 << 10 } else { 16 << 20 };

/// The records that wait, in batches, each of at least one record.
pub(crate) struct Batches<'a, I: Iterator<Item = Result<Record<'a>>>> {
    records: Peekable<I>,
    folder: &'a Path,
    at_once: u64,
}

/// Records that are made in one transaction.
pub(crate) struct Batch {
    pub(crate) records: Vec<Recorded>,
    /// Why the one behind them cannot be had.
    pub(crate) unreadable: Option<Error>,
}

impl Waiting {
    /// All that waits, in batches that are each made in one transaction.
    pub(crate) fn batches(&self) -> Batches<'_, impl Iterator<Item = Result<Record<'_>>>> {
        self.batches_of(u64::MAX)
    }

    /// The same of the first so many records.
    pub(crate) fn batches_of(&self, records: u64) -> Batches<'_, impl Iterator<Item = Result<Record<'_>>>> {
        let records = self.iter().take(usize::try_from(records).unwrap_or(usize::MAX));
        Batches { records: records.peekable(), folder: self.folder(), at_once: AT_ONCE }
    }
}

impl<'a, I: Iterator<Item = Result<Record<'a>>>> Batches<'a, I> {
    /// The same with so many bytes in a batch, as far as records are not longer.
    pub(crate) fn of_bytes(self, bytes: u64) -> Self {
        Self { at_once: bytes, ..self }
    }
}

impl<'a, I: Iterator<Item = Result<Record<'a>>>> Iterator for Batches<'a, I> {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        self.records.peek()?;
        let mut batch = Batch { records: Vec::new(), unreadable: None };
        let mut left = self.at_once;
        while let Some(record) = self.records.next_if(|_| left > 0) {
            match record.and_then(|record| in_memory(record, self.folder)) {
                Ok(record) => {
                    left = left.saturating_sub((record.effects.len() + size_of::<Recorded>()) as u64);
                    batch.records.push(record);
                }
                Err(error) => {
                    batch.unreadable = Some(error);
                    break;
                }
            }
        }
        Some(batch)
    }
}

fn in_memory(record: Record<'_>, folder: &Path) -> Result<Recorded> {
    let Record { txid, effects, .. } = record;
    let len = effects.left();
    let told = |error: io::Error| {
        let what = format!("the {len} bytes of effects of transaction {txid}: {error}");
        Error::journal_io("read the journal in", folder)(io::Error::new(error.kind(), what))
    };
    Ok(Recorded { txid, effects: effects.read_all().map_err(told)? })
}
