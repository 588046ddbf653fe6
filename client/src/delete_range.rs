//! Which values are to be deleted. Nothing is sent until it is run.

use std::num::NonZeroU64;
use std::ops::Bound;

use boltkv_protocol::{KeyRange, LowBound, Path, Reply, WriteRequest};
use bytes::Bytes;

use crate::bucket::wrong_shape;
use crate::{Client, Error};

/// A deletion of many values: from [`Bucket::delete_range`](crate::Bucket::delete_range). Without bounds or a prefix it is of
/// all that the bucket holds.
#[derive(Debug, Clone)]
#[must_use = "nothing is deleted until it is run"]
pub struct DeleteRange {
    client: Client,
    path: Path,
    range: KeyRange,
    limit: Option<u64>,
}

/// What became of a deletion of many values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RangeDeleted {
    /// The id of the last transaction of those that did it; `None` if there was nothing to ask for.
    pub txid: Option<u64>,
    /// How many values were deleted.
    pub deleted: u64,
    /// Whether the limit stopped it: there are more within the bounds. Nothing was looked at for a limit of 0.
    pub more: bool,
}

impl DeleteRange {
    pub(crate) const fn new(client: Client, path: Path) -> Self {
        Self { client, path, range: KeyRange::ALL, limit: None }
    }

    /// Only keys within these bounds. Replaces earlier bounds or an earlier prefix.
    pub fn range<K: AsRef<[u8]>>(mut self, low: Bound<K>, high: Bound<K>) -> Self {
        self.range = bounds(low, high);
        self
    }

    /// Only keys that start so. Replaces earlier bounds or an earlier prefix.
    pub fn prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.range = KeyRange::prefix(Bytes::copy_from_slice(prefix.as_ref()));
        self
    }

    /// At most so many values, those of the lowest keys.
    pub const fn limit(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Deletes them, from the lowest key on. The server does no more than 10,000 at once, so that other writes get their turn:
    /// where there are more, it is asked again, and others may see a part of it done. So it may be run again after any error,
    /// and goes on where it was.
    ///
    /// ```no_run
    /// # async fn example(sessions: boltkv_client::Bucket) -> Result<(), boltkv_client::Error> {
    /// let deleted = sessions.delete_range().prefix("2030-01-").run().await?;
    /// println!("{} sessions of that month", deleted.deleted);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `BUCKET_NOT_FOUND`; `INCOMPATIBLE_VALUE` if a bucket is among what would be deleted. [`Error::OutcomeUnknown`] if the
    /// connection is lost before an answer. What was deleted before the error stays so.
    ///
    /// # Cancellation
    /// Dropped before it is ready, some of the values may have been deleted.
    pub async fn run(self) -> Result<RangeDeleted, Error> {
        let mut done = RangeDeleted { txid: None, deleted: 0, more: false };
        let mut left = self.limit;
        while left != Some(0) {
            let limit = left.and_then(NonZeroU64::new);
            let request = WriteRequest::DeleteRange { path: self.path.clone(), range: self.range.clone(), limit };
            let Reply::DeletedRange { txid, deleted, more } = self.client.call(request).await? else {
                return Err(wrong_shape());
            };
            done = RangeDeleted { txid: Some(txid), deleted: done.deleted.saturating_add(deleted), more };
            left = left.map(|left| left.saturating_sub(deleted));
            // A server that deletes nothing and says that there is more would be asked for ever.
            if !more || deleted == 0 {
                break;
            }
        }
        Ok(done)
    }

    /// The whole of it as one request; `None` where there is nothing to ask for.
    pub(crate) fn into_request(self) -> Option<WriteRequest<&'static [u8]>> {
        let Self { path, range, limit, .. } = self;
        if limit == Some(0) {
            return None;
        }
        Some(WriteRequest::DeleteRange { path, range, limit: limit.and_then(NonZeroU64::new) })
    }
}

/// Bounds as the wire has them.
pub(crate) fn bounds<K: AsRef<[u8]>>(low: Bound<K>, high: Bound<K>) -> KeyRange {
    let owned = |key: K| Bytes::copy_from_slice(key.as_ref());
    let low = match low {
        Bound::Unbounded => LowBound::Unbounded,
        Bound::Included(key) => LowBound::Included(owned(key)),
        Bound::Excluded(key) => LowBound::Excluded(owned(key)),
    };
    KeyRange { low, high: high.map(owned) }
}
