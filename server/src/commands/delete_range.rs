//! `DELETE_RANGE`: many values at once, but never so many that everybody's writes wait for long.

use std::num::NonZeroU64;
use std::ops::Bound;

use boltkv_protocol::{ErrorCode, ErrorReply, KeyRange, Path};

use super::expiry::Timed;
use super::write::{Effect, Refused};

/// The most values that one request deletes, and all requests of one transaction together.
const MOST: u64 = 10_000;

/// So many keys that have expired, and were not removed yet, may lie between them.
const MOST_EXPIRED: usize = 10_000;

/// Deletes as many values as one request may, from the lowest key on.
pub(super) fn delete_range(
    timed: &mut Timed<'_>,
    path: &Path,
    range: KeyRange,
    limit: Option<NonZeroU64>,
) -> Result<Effect, Refused> {
    timed.enter_bucket(path)?;
    let limit = limit.map_or(MOST, |limit| limit.get().min(MOST));
    let (low, high) = range.into_bounds();
    let Some(found) = timed.look_into_range(path, (&low, &high), limit, MOST_EXPIRED)? else {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let deleted = timed.tx.bucket_mut_path(path.names())?.delete_range((low, high), limit)?;
        return Ok(Effect::DeletedRange { deleted: deleted.count as u64, more: deleted.more });
    };
    timed.undoably(|timed| {
        timed.clear_range(path, &found)?;
        if let Some((first, last)) = &found.ends {
            let bounds = (Bound::Included(first), Bound::Included(last));
            // All that lies between them was looked at.
            let _ = timed.tx.bucket_mut_path(path.names())?.delete_range(bounds, usize::MAX)?;
        }
        Ok(Effect::DeletedRange { deleted: found.count, more: found.more })
    })
}

/// What the ranges of one transaction delete, counted: none of it may be left out in silence.
#[derive(Debug, Default)]
pub(super) struct Counted {
    deleted: u64,
}

impl Counted {
    /// Counts what a range's request has done, whose `limit` this was.
    pub(super) fn add(&mut self, deleted: u64, more: bool, limit: Option<NonZeroU64>) -> Result<(), ErrorReply> {
        self.deleted += deleted;
        let is_cut = more && limit.is_none_or(|limit| limit.get() > deleted);
        if self.deleted <= MOST && !is_cut {
            return Ok(());
        }
        let message = format!(
            "the ranges of a transaction have at most {MOST} values to delete together, because all writes wait for it"
        );
        Err(ErrorReply::new(ErrorCode::TxnTooLarge, message))
    }
}
