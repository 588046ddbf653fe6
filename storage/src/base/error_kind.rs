//! What an error is made of, and of which kind it is.

use std::io;

use super::excerpt::cut;
use super::{BucketPath, Error, Pgid};

impl Error {
    pub(crate) fn corrupt(page: Pgid, what: impl Into<String>) -> Self {
        Self::Corrupt { page, bucket: BucketPath::default(), what: what.into() }
    }

    pub(crate) fn io(op: &'static str, path: Option<&std::path::Path>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { op, path: path.map(Into::into), source }
    }

    pub(crate) fn journal_io(op: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::JournalIo { op, path: path.into(), source }
    }

    /// Whether it is about the journal beside the database's file, and not about the file: it cannot be had, or what it
    /// records and what the file holds do not go together.
    #[must_use]
    pub const fn is_of_journal(&self) -> bool {
        let is_kept = matches!(self, Self::JournalIo { .. } | Self::JournalVersion { .. } | Self::JournalInUse { .. });
        let is_of_both = matches!(self, Self::JournalGap { .. } | Self::JournalWaits { .. } | Self::MetaLost { .. });
        is_kept || self.can_discard_journal() || is_of_both
    }

    /// Whether [`JournalOptions::discard`](crate::JournalOptions::discard) goes past it, for who has decided to do without
    /// what only the journal records.
    #[must_use]
    pub const fn can_discard_journal(&self) -> bool {
        matches!(
            self,
            Self::JournalDoesNotFit { .. }
                | Self::FileOlderThanJournal { .. }
                | Self::JournalDamaged { .. }
                | Self::JournalDisjoint { .. }
                | Self::JournalMissing { .. }
                | Self::JournalWithoutFile { .. }
        )
    }

    /// The same failure, for another of those whom it concerns: what a commit can return.
    pub(crate) fn again(&self) -> Self {
        let same = |source: &io::Error| io::Error::new(source.kind(), source.to_string());
        match self {
            Self::Io { op, path, source } => Self::Io { op, path: path.clone(), source: same(source) },
            Self::NoSpace { source } => Self::NoSpace { source: same(source) },
            Self::MaxSizeReached { max } => Self::MaxSizeReached { max: *max },
            Self::Corrupt { page, bucket, what } => {
                Self::Corrupt { page: *page, bucket: bucket.clone(), what: what.clone() }
            }
            Self::ReadOnly => Self::ReadOnly,
            other => Self::Poisoned { reason: other.to_string() },
        }
    }

    pub(crate) fn bucket_not_found(name: &[u8]) -> Self {
        Self::BucketNotFound { name: cut(name), within: BucketPath::default() }
    }

    pub(crate) fn bucket_exists(name: &[u8]) -> Self {
        Self::BucketExists { name: cut(name), within: BucketPath::default() }
    }

    pub(crate) fn same_buckets(name: &[u8]) -> Self {
        Self::SameBuckets { name: cut(name) }
    }

    pub(crate) fn moved_into_itself(name: &[u8]) -> Self {
        Self::MovedIntoItself { name: cut(name) }
    }

    /// Where it says that something is, if it says so.
    pub(crate) fn place_mut(&mut self) -> Option<&mut BucketPath> {
        match self {
            Self::Corrupt { bucket: place, .. }
            | Self::BucketNotFound { within: place, .. }
            | Self::BucketExists { within: place, .. }
            | Self::IncompatibleValue { within: place, .. } => Some(place),
            _ => None,
        }
    }

    pub(crate) fn incompatible(key: &[u8], is_bucket: bool) -> Self {
        Self::IncompatibleValue { key: cut(key), within: BucketPath::default(), is_bucket }
    }
}
