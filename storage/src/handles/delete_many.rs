//! Deleting many entries at once: first all that can fail, for all of them, then what cannot.

use std::ops::Bound;

use super::{BucketMut, Deleted, Range};
use crate::{Error, Result};

/// Keys that are gathered before something is done with them.
const BATCH: usize = 256;

impl BucketMut<'_> {
    /// Deletes up to `limit` values between two bounds, from the lowest key on.
    pub(super) fn delete_between(&mut self, low: Bound<&[u8]>, high: Bound<&[u8]>, limit: usize) -> Result<Deleted> {
        // Every leaf is read and taken apart.
        let (count, last) =
            self.for_keys(low, high, limit, |bucket, key| bucket.work.leaf_of(bucket.id, key).map(drop))?;
        let low_of_rest = last.as_deref().map_or(low, Bound::Excluded);
        let more = count == limit && Range::new(self.cursor(), low_of_rest, high).next().is_some();
        let mut first = None;
        let (_, last) = self.for_keys(low, high, count, |bucket, key| {
            first.get_or_insert_with(|| key.to_vec());
            bucket.work.remove_and_prune(bucket.id, key)
        })?;
        if let (Some(first), Some(last)) = (first, last) {
            self.work.record_range(self.id, &first, &last);
        }
        Ok(Deleted { count, more })
    }

    /// Takes the first entry out; an error where it is a bucket.
    pub(super) fn take_first(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let Some((key, value)) = self.cursor().first()? else { return Ok(None) };
        let Some(value) = value else { return Err(Error::incompatible(key, true)) };
        let entry = (key.to_vec(), value.to_vec());
        self.work.leaf_of(self.id, &entry.0)?;
        self.work.delete_and_prune(self.id, &entry.0)?;
        Ok(Some(entry))
    }

    /// Calls `act` with up to `limit` keys of values, in order; returns how many, and the last.
    fn for_keys(
        &mut self,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        limit: usize,
        mut act: impl FnMut(&mut Self, &[u8]) -> Result<()>,
    ) -> Result<(usize, Option<Vec<u8>>)> {
        let mut count = 0;
        let mut last: Option<Vec<u8>> = None;
        while count < limit {
            let from = last.as_deref().map_or(low, Bound::Excluded);
            let range = Range::new(self.cursor(), from, high);
            let keys = range.take(BATCH.min(limit - count)).map(|entry| match entry? {
                (key, Some(_)) => Ok(key.to_vec()),
                (key, None) => Err(Error::incompatible(key, true)),
            });
            let keys = keys.collect::<Result<Vec<_>>>()?;
            if keys.is_empty() {
                break;
            }
            keys.iter().try_for_each(|key| act(self, key))?;
            count += keys.len();
            last = keys.into_iter().next_back();
        }
        Ok((count, last))
    }
}
