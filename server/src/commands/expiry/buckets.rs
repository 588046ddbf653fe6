//! What becomes of the times of keys when something happens to whole buckets, or to many keys of one.
//!
//! All of it costs as much as there are buckets with such keys, and where a range of keys is deleted, as many as are in it.

use std::ops::Bound;

use boltkv_protocol::Path;
use boltkv_storage::{Error, Result};

use super::records::{Place, Stamp};
use super::sieve::Sieve;
use super::timed::{Timed, found_mut, part};
use super::{IDS, OF, OWN};

/// What of a range is to be deleted.
#[derive(Debug, Default)]
pub(in crate::commands) struct InRange {
    /// Values that have not expired, and may be deleted.
    pub(in crate::commands) count: u64,
    /// There is more than may be.
    pub(in crate::commands) more: bool,
    /// The first and the last of these values.
    pub(in crate::commands) ends: Option<(Vec<u8>, Vec<u8>)>,
    /// What has expired.
    expired: Vec<(Vec<u8>, Stamp)>,
    /// Those of the values that would.
    stamped: Vec<Vec<u8>>,
}

impl Timed<'_> {
    /// Forgets the times of all keys in a bucket that was deleted, and its own; and those in the buckets within it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the file is damaged. It must be within [`Self::undoably`].
    pub(crate) fn forget_bucket(&mut self, path: &Path) -> Result<()> {
        let place = Place::from(path);
        if let Some((within, name)) = place.split() {
            self.forget_key(within, name)?;
        }
        self.forget_within(place)
    }

    /// The same, but for its own.
    pub(super) fn forget_within(&mut self, place: Place<'_>) -> Result<()> {
        let places = self.places(place)?;
        if places.is_empty() {
            return Ok(());
        }
        for (place, id) in places {
            self.forget_place(&place, id)?;
        }
        self.clean_up()
    }

    /// A bucket was moved, with all that is in it: so are the times of its keys, and its own.
    ///
    /// # Errors
    /// [`Error::IncompatibleValue`] where it has a time and was moved to the top, where nothing expires.
    /// [`Error::KeyTooLarge`] where the names that lead to a bucket in it are too long together now. [`Error::Corrupt`] where
    /// the file is damaged. It must be within [`Self::undoably`].
    pub(crate) fn move_bucket(&mut self, from: &Path, to: &Path) -> Result<()> {
        if !self.any()? {
            return Ok(());
        }
        let (from, to) = (Place::from(from), Place::from(to));
        // There was no such bucket: what is said of it nevertheless would be in the way.
        self.forget_within(to)?;
        for (place, id) in self.places(from)? {
            let moved = [to.0, place.get(from.0.len()..).unwrap_or_default()].concat();
            self.tx.move_bucket_as(&place, &[OWN, OF], &[OWN, OF], &moved)?;
            part(self.tx, IDS)?.put(id.to_be_bytes(), &moved)?;
        }
        let (Some((from, name)), Some((to, its_name))) = (from.split(), to.split()) else { return Ok(()) };
        self.forget_key(to, its_name)?;
        let Some(stamp) = self.stamp(from, name)? else { return Ok(()) };
        self.set_stamp(to, its_name, None, stamp.time)?;
        self.forget_key(from, name)
    }

    /// Whether a bucket whose keys have times would have more names, were that one moved, than a path has: nobody could be told
    /// that a key in it has expired.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the file is damaged.
    pub(crate) fn moves_too_deep(&mut self, from: &Path, to: &Path) -> Result<bool> {
        let Some(deeper) = to.depth().checked_sub(from.depth()).filter(|deeper| *deeper > 0) else { return Ok(false) };
        let mut depths = self.places(Place::from(from))?.into_iter().map(|(place, _)| Place(&place).names().count());
        Ok(depths.any(|depth| depth + deeper > Path::MOST_NAMES))
    }

    /// The buckets whose keys have times, of a bucket and all in it, and their numbers.
    fn places(&mut self, place: Place<'_>) -> Result<Vec<(Vec<u8>, u64)>> {
        if !self.any()? {
            return Ok(Vec::new());
        }
        let Some(of) = found_mut(self.tx.bucket_mut_path([OWN, OF]))? else { return Ok(Vec::new()) };
        let of = of.as_bucket();
        of.prefix(place.0)
            .filter_map(|entry| match entry {
                Ok((name, None)) => Some(of.bucket(name).map(|times| (name.to_vec(), times.sequence()))),
                Ok((_, Some(_))) => None,
                Err(error) => Some(Err(error)),
            })
            .collect()
    }

    /// What of a range can be deleted, from the lowest key on: values up to `limit`, and as many keys more as have expired up
    /// to `most`. `None` where no key of the bucket has a time.
    ///
    /// # Errors
    /// [`Error::IncompatibleValue`] for a bucket among them that has not expired; those of the bucket's look-up.
    pub(in crate::commands) fn look_into_range(
        &mut self,
        path: &Path,
        range: (&Bound<impl AsRef<[u8]>>, &Bound<impl AsRef<[u8]>>),
        limit: u64,
        most: usize,
    ) -> Result<Option<InRange>> {
        let Some(times) = self.times(Place::from(path))? else { return Ok(None) };
        let (low, high) = (range.0.as_ref().map(AsRef::as_ref), range.1.as_ref().map(AsRef::as_ref));
        let bucket = self.tx.bucket_path(path.names())?;
        let mut sieve = Sieve::new(Some(times), false);
        let (mut found, mut ends) = (InRange::default(), None);
        for entry in bucket.range((low, high)) {
            let (key, value) = entry?;
            let stamp = sieve.stamp(key)?;
            let expired = stamp.filter(|stamp| stamp.is_past(self.now()));
            if expired.is_none() && found.count == limit || found.expired.len() == most {
                found.more = true;
                break;
            }
            match (expired, stamp) {
                (Some(expired), _) => found.expired.push((key.to_vec(), expired)),
                (None, _) if value.is_none() => return Err(is_bucket(key)),
                (None, stamp) => {
                    found.count += 1;
                    found.stamped.extend(stamp.map(|_| key.to_vec()));
                    ends = Some((ends.map_or(key, |(first, _)| first), key));
                }
            }
        }
        found.ends = ends.map(|(first, last)| (first.to_vec(), last.to_vec()));
        Ok(Some(found))
    }

    /// Removes what has expired of a range, and forgets the times of what is to be deleted.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the file is damaged. It must be within [`Self::undoably`].
    pub(in crate::commands) fn clear_range(&mut self, path: &Path, found: &InRange) -> Result<()> {
        let place = Place::from(path);
        for (key, stamp) in &found.expired {
            self.remove(place, key, *stamp)?;
        }
        for key in &found.stamped {
            self.forget_key(place, key)?;
        }
        Ok(())
    }
}

fn is_bucket(key: &[u8]) -> Error {
    Error::IncompatibleValue { key: key.to_vec(), within: boltkv_storage::BucketPath::default(), is_bucket: true }
}
