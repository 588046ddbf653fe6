//! What differs between two files: one walk over both at once, in the order of their keys.
//!
//! Nothing is collected on the way: what differs is told as it is found, and of either file no more is held than the way
//! down to where the walk stands. It knows nothing of how a difference is printed.

use std::cmp::Ordering;

use boltkv_storage::{self as storage, Bucket, Buckets, Cursor, Tx};

/// Bytes that an entry takes in its page beside its key and value.
const ELEMENT: u64 = 16;

/// One of the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Old,
    New,
}

/// Something that is not the same in both files.
#[derive(Debug, Clone, Copy)]
pub(super) enum Difference<'a> {
    /// A value, `None` where there is none (or a bucket), in the bucket of that path.
    Value { path: &'a [&'a [u8]], key: &'a [u8], old: Option<&'a [u8]>, new: Option<&'a [u8]> },
    /// The bucket of that path: its sequence, `None` where there is no such bucket. All that is in it comes after it.
    Bucket { path: &'a [&'a [u8]], old: Option<u64>, new: Option<u64> },
}

/// Why a comparison ends early.
#[derive(Debug)]
pub(super) enum Error<E> {
    /// A file could not be read.
    Read(Side, storage::Error),
    /// A file leads to more than it can hold: it is damaged, and goes in circles.
    Endless(Side),
    /// What the caller's function returned.
    Told(E),
}

/// Calls `tell` with everything that differs, a bucket before what is in it; and `seen` for every entry looked at, with
/// the bytes that have been read of each file.
pub(super) fn compare<'tx, E>(
    old: &'tx Tx,
    new: &'tx Tx,
    mut tell: impl FnMut(Difference<'_>) -> Result<(), E>,
    mut seen: impl FnMut(u64, u64),
) -> Result<(), Error<E>> {
    let sizes = (old.size(), new.size());
    let mut allowances = Allowances { old: sizes.0, new: sizes.1 };
    let mut levels = vec![Level {
        old: Some(Entries::Top(Box::new(old.buckets())).into()),
        new: Some(Entries::Top(Box::new(new.buckets())).into()),
    }];
    let mut path: Vec<&'tx [u8]> = Vec::new();
    while let Some(level) = levels.last_mut() {
        let Some(Pair { key, old, new }) = level.next(&mut allowances)? else {
            levels.pop();
            path.pop();
            continue;
        };
        seen(sizes.0 - allowances.old, sizes.1 - allowances.new);
        let (old_value, new_value) = (old.and_then(Item::value), new.and_then(Item::value));
        if old_value != new_value {
            tell(Difference::Value { path: &path, key, old: old_value, new: new_value }).map_err(Error::Told)?;
        }
        let (old, new) = (old.and_then(Item::bucket), new.and_then(Item::bucket));
        if old.is_none() && new.is_none() {
            continue;
        }
        path.push(key);
        let sequences = (old.map(|bucket| bucket.sequence()), new.map(|bucket| bucket.sequence()));
        if sequences.0 != sequences.1 {
            let different = Difference::Bucket { path: &path, old: sequences.0, new: sequences.1 };
            tell(different).map_err(Error::Told)?;
        }
        let side = |bucket: Bucket<'tx>| Entries::Inner(bucket, Box::new(bucket.cursor())).into();
        levels.push(Level { old: old.map(side), new: new.map(side) });
    }
    Ok(())
}

/// What a key stands for.
#[derive(Clone, Copy)]
enum Item<'tx> {
    Value(&'tx [u8]),
    Bucket(Bucket<'tx>),
}

impl<'tx> Item<'tx> {
    fn value(self) -> Option<&'tx [u8]> {
        if let Self::Value(value) = self { Some(value) } else { None }
    }

    fn bucket(self) -> Option<Bucket<'tx>> {
        if let Self::Bucket(bucket) = self { Some(bucket) } else { None }
    }
}

/// A key, and what it stands for in each of the files.
struct Pair<'tx> {
    key: &'tx [u8],
    old: Option<Item<'tx>>,
    new: Option<Item<'tx>>,
}

/// A bucket, as far as it is walked over; missing from a file that does not have it.
struct Level<'tx> {
    old: Option<Walk<'tx>>,
    new: Option<Walk<'tx>>,
}

impl<'tx> Level<'tx> {
    /// The next key of either file, with what it stands for in both.
    fn next<E>(&mut self, allowances: &mut Allowances) -> Result<Option<Pair<'tx>>, Error<E>> {
        let old = peek(self.old.as_mut(), Side::Old, allowances)?;
        let new = peek(self.new.as_mut(), Side::New, allowances)?;
        let order = match (old, new) {
            (None, None) => return Ok(None),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => old.cmp(new),
        };
        let old = self.old.as_mut().filter(|_| order.is_le()).and_then(|walk| walk.ahead.take());
        let new = self.new.as_mut().filter(|_| order.is_ge()).and_then(|walk| walk.ahead.take());
        let key = old.or(new).map(|(key, _)| key);
        Ok(key.map(|key| Pair { key, old: old.map(|(_, item)| item), new: new.map(|(_, item)| item) }))
    }
}

/// The key that comes next in one file.
fn peek<'tx, E>(
    walk: Option<&mut Walk<'tx>>,
    side: Side,
    allowances: &mut Allowances,
) -> Result<Option<&'tx [u8]>, Error<E>> {
    let Some(walk) = walk else { return Ok(None) };
    if walk.ahead.is_none() {
        walk.ahead = walk.entries.next().map_err(|error| Error::Read(side, error))?;
        if let Some((key, item)) = walk.ahead {
            allowances.spend(side, key, item)?;
        }
    }
    Ok(walk.ahead.map(|(key, _)| key))
}

/// The entries of a bucket that are still to come.
struct Walk<'tx> {
    entries: Entries<'tx>,
    ahead: Option<(&'tx [u8], Item<'tx>)>,
}

impl<'tx> From<Entries<'tx>> for Walk<'tx> {
    fn from(entries: Entries<'tx>) -> Self {
        Self { entries, ahead: None }
    }
}

enum Entries<'tx> {
    /// At the top there are only buckets.
    Top(Box<Buckets<'tx>>),
    Inner(Bucket<'tx>, Box<Cursor<'tx>>),
}

impl<'tx> Entries<'tx> {
    fn next(&mut self) -> storage::Result<Option<(&'tx [u8], Item<'tx>)>> {
        match self {
            Self::Top(buckets) => {
                buckets.next().transpose().map(|next| next.map(|(name, bucket)| (name, Item::Bucket(bucket))))
            }
            Self::Inner(bucket, cursor) => Ok(match cursor.next()? {
                Some((key, Some(value))) => Some((key, Item::Value(value))),
                Some((name, None)) => Some((name, Item::Bucket(bucket.bucket(name)?))),
                None => None,
            }),
        }
    }
}

/// Bytes that are still to be found in each file: every entry of a sound one has bytes of its own.
struct Allowances {
    old: u64,
    new: u64,
}

impl Allowances {
    fn spend<E>(&mut self, side: Side, key: &[u8], item: Item<'_>) -> Result<(), Error<E>> {
        let left = if side == Side::Old { &mut self.old } else { &mut self.new };
        let bytes = ELEMENT + key.len() as u64 + item.value().map_or(0, |value| value.len() as u64);
        *left = left.checked_sub(bytes).ok_or(Error::Endless(side))?;
        Ok(())
    }
}
