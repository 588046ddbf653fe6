//! How large a journal gets, how long it is kept, and which segment is used again next.

use std::collections::VecDeque;
use std::time::Duration;

use super::block::BLOCK_LEN;
use super::segment::{SHORTEST_SEGMENT, Spare};
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

    /// Bytes of the shortest segment.
    pub(super) fn shortest(&self) -> u64 {
        self.segment_size.min(SHORTEST_SEGMENT)
    }

    /// Whether a free segment of this length is kept for where no other can be had, as none is yet.
    pub(super) fn is_last_resort(&self, len: u64, kept: Option<&Spare>) -> bool {
        len == self.shortest() && kept.is_none()
    }

    /// Free segments that are worth keeping: with those in use enough up to the next checkpoint.
    pub(super) fn most_free(&self) -> usize {
        usize::try_from(self.checkpoint_size / self.segment_size).unwrap_or(usize::MAX).saturating_add(2)
    }

    /// The same of those that hold what nobody needs any more: what a checkpoint leaves, and what is written while the next one is
    /// made. More were kept for a time, or filled when the journal was to be larger.
    fn most_unneeded(&self) -> usize {
        self.most_free().saturating_mul(2)
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

    /// The oldest one, if nobody needs it any more.
    pub(super) fn take_unneeded(&mut self, needed: &Needed) -> Option<Used> {
        self.unneeded(needed).next()?;
        self.0.pop_front()
    }

    /// The oldest one, if there are more that nobody needs than are worth keeping.
    pub(super) fn take_surplus(&mut self, needed: &Needed, limits: &JournalLimits) -> Option<Used> {
        self.unneeded(needed).nth(limits.most_unneeded())?;
        self.0.pop_front()
    }

    /// The number of the newest one that may have been in use again before the journal was opened; 0: none.
    pub(super) fn newest_unneeded(&self, needed: &Needed) -> u64 {
        self.unneeded(needed).last().map_or(0, |used| used.number)
    }

    /// Those that nobody needs any more, from the oldest on.
    fn unneeded(&self, needed: &Needed) -> impl Iterator<Item = &Used> {
        let mut behind = self.bytes();
        self.0.iter().take_while(move |used| {
            behind -= used.len;
            used.number < needed.link && used.last <= needed.contains && !needed.keeps(used, behind)
        })
    }
}

/// What of a journal is needed: what begins with the segment `link`, or records what is not in the file, which `contains` all up to
/// that, or is to be kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needed {
    pub(super) link: u64,
    pub(super) contains: TxId,
    pub(super) keep: JournalKeep,
    pub(super) now_ms: u64,
}

impl Needed {
    /// Whether a segment is to be kept, with so many bytes in those behind it.
    fn keeps(&self, used: &Used, behind: u64) -> bool {
        match self.keep {
            JournalKeep::UntilCheckpoint => false,
            JournalKeep::Bytes(bytes) => behind < bytes,
            JournalKeep::Time(time) => u128::from(self.now_ms.saturating_sub(used.last_time_ms)) < time.as_millis(),
        }
    }
}
