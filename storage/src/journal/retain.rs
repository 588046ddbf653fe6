//! How large a journal gets, how long it is kept, and which segment is used again next.

use std::collections::VecDeque;
use std::time::Duration;

use super::block::BLOCK_LEN;
use super::segment::SHORTEST_SEGMENT;
use crate::base::TxId;

/// How long a journal is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum JournalKeep {
    /// Until what it records is in the database's file.
    #[default]
    UntilCheckpoint,
    /// And beyond that so many bytes.
    Bytes(u64),
    /// And beyond that for so long.
    Time(Duration),
}

/// Sizes of a journal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalLimits {
    /// Bytes of a segment: a multiple of 4096, at least 8192.
    pub(crate) segment_size: u64,
    /// Bytes of records after which a checkpoint is due.
    pub(crate) checkpoint_size: u64,
    pub(crate) keep: JournalKeep,
    /// Whether threads make new segments and begin checkpoints; otherwise that is done where it is needed.
    pub(crate) ahead: bool,
}

impl JournalLimits {
    /// With segments of so many bytes at most, but for what the shortest one needs.
    pub(super) fn within(self, max_len: Option<u64>) -> Self {
        let most = max_len.map_or(u64::MAX, |max| (max - max % BLOCK_LEN).max(SHORTEST_SEGMENT));
        Self { segment_size: self.segment_size.min(most), ..self }
    }

    /// Free segments that are worth keeping: with those in use enough up to the next checkpoint.
    pub(super) fn most_free(&self) -> usize {
        usize::try_from(self.checkpoint_size / self.segment_size).unwrap_or(usize::MAX).saturating_add(2)
    }
}

/// A segment that is full, or was found.
#[derive(Debug, Clone)]
pub(super) struct Used {
    pub(super) number: u64,
    pub(super) name: String,
    pub(super) len: u64,
    /// The last record that begins in it or before.
    pub(super) last: TxId,
    /// When that was written.
    pub(super) last_time_ms: u64,
}

/// The segments behind the one that is being written, from the oldest on.
#[derive(Debug, Default)]
pub(super) struct History(VecDeque<Used>);

impl History {
    pub(super) fn push(&mut self, used: Used) {
        self.0.push_back(used);
    }

    /// The oldest one is still there.
    pub(super) fn put_back(&mut self, oldest: Used) {
        self.0.push_front(oldest);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Numbers and files.
    pub(super) fn names(&self) -> impl Iterator<Item = (u64, String)> {
        self.0.iter().map(|used| (used.number, used.name.clone()))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.iter().map(|used| used.len).sum()
    }

    /// The oldest one, if nobody needs it any more: its number is below `link`, all up to `contains` is in the file, and it is
    /// kept no longer.
    pub(super) fn take_unneeded(&mut self, link: u64, contains: TxId, keep: JournalKeep, now_ms: u64) -> Option<Used> {
        let oldest = self.0.front().filter(|oldest| oldest.number < link && oldest.last <= contains)?;
        let is_kept = match keep {
            JournalKeep::UntilCheckpoint => false,
            JournalKeep::Bytes(bytes) => self.bytes() - oldest.len < bytes,
            JournalKeep::Time(time) => u128::from(now_ms.saturating_sub(oldest.last_time_ms)) < time.as_millis(),
        };
        if is_kept { None } else { self.0.pop_front() }
    }

    /// The number of the newest one that may have been in use again before the journal was opened; 0: none.
    pub(super) fn unneeded(&self, contains: TxId, keep: JournalKeep, now_ms: u64) -> u64 {
        let (mut rest, mut newest) = (Self(self.0.clone()), 0);
        while let Some(unneeded) = rest.take_unneeded(u64::MAX, contains, keep, now_ms) {
            newest = unneeded.number;
        }
        newest
    }
}
