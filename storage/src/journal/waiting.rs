//! What was read of a journal beyond its file's meta, for who opens it.

use std::io;
use std::path::{Path, PathBuf};

use super::forward::Reach;
use super::log::Segment;
use super::replay::Records;
use crate::base::TxId;

/// What is recorded beyond a meta.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(super) folder: PathBuf,
    /// The segments that follow each other, as far as they were read and beyond.
    pub(super) path: Vec<Segment>,
    /// Files that nobody needs, and their lengths.
    pub(super) free: Vec<(String, u64)>,
    pub(super) store: Option<u64>,
    /// The highest number that a segment has.
    pub(super) highest: u64,
    pub(super) contains: TxId,
    /// The number of the segment with which reading of what the meta does not contain begins, at the latest; 0 where it does
    /// not begin.
    pub(super) first: u64,
    /// How far the segments were read; `None` where they are left aside.
    pub(super) reach: Option<Reach>,
}

impl Waiting {
    /// The journal's folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether it says where the file stands: it is the journal that was kept of it last.
    pub(crate) fn knows_file(&self) -> bool {
        self.store.is_some() && self.changed_since().is_none()
    }

    /// Whether no record waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.records() == 0
    }

    /// Whether it goes on beyond the file: records wait, or there were checkpoints, without any, that the file is of before.
    pub(crate) fn is_ahead(&self) -> bool {
        !self.is_empty() || self.last() > self.contains
    }

    /// The last transaction that the database's file contains.
    pub(crate) fn contains(&self) -> TxId {
        self.contains
    }

    /// Whether the database was closed, so that others may change its file.
    pub(crate) fn is_closed(&self) -> bool {
        self.highest == 0 || self.reach.is_some_and(|reach| reach.closed.is_some())
    }

    /// What the journal was closed with, where the file was changed without it since.
    pub(crate) fn changed_since(&self) -> Option<TxId> {
        self.reach.and_then(|reach| reach.changed_since)
    }

    /// How many records wait.
    pub(crate) fn records(&self) -> u64 {
        self.reach.map_or(0, |reach| reach.records)
    }

    /// The bytes of these records, with what fills their blocks.
    pub(crate) fn bytes(&self) -> u64 {
        self.reach.map_or(0, |reach| reach.bytes)
    }

    /// When the last transaction that the file contains was written, or the next opening was, in milliseconds since 1970.
    pub(crate) fn contains_time_ms(&self) -> u64 {
        self.reach.map_or(0, |reach| reach.contains_time_ms)
    }

    /// The greatest number of a transaction or of a checkpoint.
    pub(crate) fn newest(&self) -> TxId {
        self.reach.map_or(self.contains, |reach| reach.newest)
    }

    /// The last transaction that waits; where none does, the last one in the file.
    pub(crate) fn last(&self) -> TxId {
        self.reach.map_or(self.contains, |reach| reach.last)
    }

    /// Where reading ended at something that is not whole and was never synced: the segment's file, and where in it.
    pub(crate) fn torn_at(&self) -> Option<(PathBuf, u64)> {
        let (segment, offset) = self.reach?.torn?;
        Some((self.folder.join(self.path[segment].file.name()), offset))
    }

    /// The records, in the order of their numbers.
    pub(crate) fn iter(&self) -> Records<'_> {
        let start = self.reach.map_or((0, 0), |reach| reach.start);
        Records::new(&self.path, &self.folder, start, self.contains, self.records())
    }

    /// Syncs what was read. A process that was killed may have left it in the system's cache only.
    pub(super) fn sync(&self) -> io::Result<()> {
        let read = self.reach.map_or(0..0, |reach| reach.start.0..reach.end.0 + 1);
        self.path[read].iter().try_for_each(|segment| segment.file.sync())
    }
}
