//! Removing what has expired, in steps that are short enough to stand between other writes.
//!
//! What is due is gathered first, as much of it as memory may be taken for, and sorted: keys that were set in any order are
//! removed in the order in which they lie, so that each page is changed once and not once for each key on it. Where nothing is
//! due, what buckets that are gone have left behind is dropped.

use std::ops::Bound;
use std::time::{Duration, Instant};

use boltkv_storage::{BucketMut, Error, Result, Tx, TxMut};

use super::records::{Place, Stamp, parse_due};
use super::timed::{Timed, found_mut};
use super::view::{found, of_in, stamp_in, times_in};
use super::{AT, GONE, IDS, OF, OWN};
use crate::commands::state::State as _;

/// Keys that are gathered at most,
const MOST_GATHERED: usize = 1_000_000;
/// and their bytes.
const MOST_BYTES: usize = 16 << 20;
/// How long a step takes at most, and a little: others' writes wait for it.
const LONGEST_STEP: Duration = Duration::from_millis(2);
/// So many keys of a bucket are removed together, and it is looked then how long it took.
const TOGETHER: usize = 64;
/// Entries of what is due that a step drops at most, when all that they say was done.
const MOST_DROPPED: usize = 4_000;
/// So many of those that a bucket which is gone has left are dropped together, in the order in which they lie.
const LEFT_TOGETHER: usize = 512;

/// Keys whose time has come, in the order in which they are removed.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    due: Vec<Due>,
    /// The bytes of their keys, one after the other.
    keys: Vec<u8>,
    /// How many of them were removed.
    done: usize,
    /// The last that was gathered, as what is due is sorted: so far nothing is left when all of them are done.
    through: Option<Stamp>,
    /// Nothing was due, and there are records of buckets that are gone.
    has_gone: bool,
}

/// A key, as it was gathered.
#[derive(Debug, Clone, Copy)]
struct Due {
    /// The number of its bucket.
    id: u64,
    /// Where its bytes begin, and how many there are.
    at: u32,
    len: u16,
}

impl Due {
    fn key(self, keys: &[u8]) -> &[u8] {
        let at = self.at as usize;
        keys.get(at..at + usize::from(self.len)).unwrap_or_default()
    }
}

/// How far a step came. It counts once its transaction is committed.
#[derive(Debug)]
pub(crate) struct Stepped {
    done: usize,
    is_over: bool,
}

impl Stepped {
    /// Whether nothing is left that was gathered.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }
}

/// The earliest time that any key has, by what is stored; `None` where none has one.
///
/// # Errors
/// Those of reading the file.
pub(crate) fn earliest(tx: &Tx) -> Result<Option<u64>> {
    let Some(own) = found(tx.top(OWN))? else { return Ok(None) };
    let Some(at) = found(own.bucket(AT))? else { return Ok(None) };
    let mut stamps = at.iter().filter_map(|entry| entry.map(|(stamp, _)| Stamp::parse(stamp)).transpose());
    Ok(stamps.next().transpose()?.map(|stamp| stamp.time))
}

impl Backlog {
    /// Whether nothing is left that was gathered.
    pub(crate) const fn is_empty(&self) -> bool {
        self.through.is_none() && !self.has_gone
    }

    /// Gathers what has expired by now; `None` where that is more keys than so many.
    ///
    /// # Errors
    /// Those of reading the file.
    pub(crate) fn gather_few(tx: &Tx, now: u64, most: usize) -> Result<Option<Self>> {
        let gathered = Self::gather_up_to(tx, now, most + 1)?;
        Ok((gathered.due.len() <= most).then_some(gathered))
    }

    /// Gathers what has expired by now, of a million keys at most: that takes a third of a second.
    ///
    /// # Errors
    /// Those of reading the file.
    pub(crate) fn gather(tx: &Tx, now: u64) -> Result<Self> {
        Self::gather_up_to(tx, now, MOST_GATHERED)
    }

    fn gather_up_to(tx: &Tx, now: u64, most: usize) -> Result<Self> {
        let mut gathered = Self::default();
        let Some(own) = found(tx.top(OWN))? else { return Ok(gathered) };
        let has_gone = found(own.bucket(GONE))?.is_some();
        let Some(at) = found(own.bucket(AT))? else { return Ok(Self { has_gone, ..gathered }) };
        for entry in &at {
            let (stamp, value) = entry?;
            // What was not written here is dropped with what comes before it.
            let Some(stamp) = Stamp::parse(stamp) else { continue };
            if !stamp.is_past(now) || gathered.due.len() == most || gathered.keys.len() > MOST_BYTES {
                break;
            }
            gathered.through = Some(stamp);
            let due = value.and_then(parse_due);
            if let Some((id, key)) = due
                && let (Ok(at), Ok(len)) = (u32::try_from(gathered.keys.len()), u16::try_from(key.len()))
            {
                gathered.due.push(Due { id, at, len });
                gathered.keys.extend_from_slice(key);
            }
        }
        gathered.has_gone = has_gone && gathered.through.is_none();
        let Self { due, keys, .. } = &mut gathered;
        due.sort_unstable_by(|one, other| one.id.cmp(&other.id).then_with(|| one.key(keys).cmp(other.key(keys))));
        Ok(gathered)
    }

    /// Removes the next of what was gathered, as far as that is still so.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the file is damaged; the transaction must not be committed then.
    pub(crate) fn step(&self, timed: &mut Timed<'_>) -> Result<Stepped> {
        let begun = Instant::now();
        let rest = self.due.get(self.done..).unwrap_or_default();
        if self.has_gone {
            return drop_gone(timed);
        }
        if rest.is_empty() {
            return self.drop_due(timed);
        }
        let mut done = 0;
        for of_one in rest.chunk_by(|one, other| one.id == other.id) {
            let place = of_one.first().map_or(Ok(None), |due| timed.place(due.id))?;
            for together in of_one.chunks(TOGETHER) {
                if let Some(place) = &place {
                    let keys: Vec<_> = together.iter().map(|due| due.key(&self.keys)).collect();
                    timed.reclaim(Place(place), &keys)?;
                }
                done += together.len();
                if begun.elapsed() >= LONGEST_STEP {
                    return Ok(Stepped { done, is_over: false });
                }
            }
        }
        Ok(Stepped { done, is_over: false })
    }

    /// What was gathered is done: nothing of it is due any more.
    fn drop_due(&self, timed: &mut Timed<'_>) -> Result<Stepped> {
        let over = Stepped { done: 0, is_over: true };
        let Some(through) = self.through else { return Ok(over) };
        if !timed.any()? {
            return Ok(over);
        }
        let Some(mut at) = found_mut(timed.tx.bucket_mut_path([OWN, AT]))? else { return Ok(over) };
        let bounds = (Bound::Unbounded, Bound::Included(through.to_bytes()));
        let deleted = at.delete_range(bounds, MOST_DROPPED)?;
        Ok(Stepped { done: 0, is_over: !deleted.more })
    }

    /// What a step has done is committed.
    pub(crate) fn committed(&mut self, stepped: &Stepped) {
        self.done += stepped.done;
        if stepped.is_over {
            *self = Self::default();
        }
    }
}

impl Timed<'_> {
    /// The path of the bucket with this number, if there is one.
    fn place(&mut self, id: u64) -> Result<Option<Vec<u8>>> {
        if !self.any()? {
            return Ok(None);
        }
        let Some(ids) = found_mut(self.tx.bucket_mut_path([OWN, IDS]))? else { return Ok(None) };
        Ok(ids.get(id.to_be_bytes())?.map(<[u8]>::to_vec))
    }

    /// Removes those of a bucket's keys whose time has come by what is stored now, and leaves what is due to whoever removes
    /// that for many. Keys are in order.
    fn reclaim(&mut self, place: Place<'_>, keys: &[&[u8]]) -> Result<()> {
        let past = self.past(place, keys)?;
        if past.is_empty() {
            return Ok(());
        }
        if let Some(mut bucket) = found_mut(self.tx.bucket_mut_path(place.names()))? {
            let buckets = delete_values(&mut bucket, &past)?;
            for name in buckets {
                self.remove_entry(place, name)?;
            }
        }
        self.forget_in_of(place, &past)?;
        self.note_expired(place, past.len() as u64);
        Ok(())
    }

    /// Those of a bucket's keys whose time has come.
    fn past<'k>(&mut self, place: Place<'_>, keys: &[&'k [u8]]) -> Result<Vec<&'k [u8]>> {
        if !self.any()? {
            return Ok(Vec::new());
        }
        let Some(of) = of_in(&*self.tx)? else { return Ok(Vec::new()) };
        let Some(times) = times_in(of, place)? else { return Ok(Vec::new()) };
        let mut past = Vec::with_capacity(keys.len());
        for key in keys {
            if stamp_in(times, key)?.is_some_and(|stamp| stamp.is_past(self.now())) {
                past.push(*key);
            }
        }
        // What is due twice is removed once.
        past.dedup();
        Ok(past)
    }

    /// Removes what `of` says of keys, and what nothing is left in.
    pub(super) fn forget_in_of(&mut self, place: Place<'_>, keys: &[&[u8]]) -> Result<()> {
        let mut times = self.tx.bucket_mut_path([OWN, OF, place.0])?;
        for key in keys {
            times.delete(key)?;
        }
        if times.first()?.is_some() {
            return Ok(());
        }
        let id = times.sequence();
        self.forget_place(place.0, id)?;
        self.clean_up()
    }
}

/// Drops some of what buckets that are gone have left.
fn drop_gone(timed: &mut Timed<'_>) -> Result<Stepped> {
    let begun = Instant::now();
    while begun.elapsed() < LONGEST_STEP {
        if !timed.any()? || !drop_some_of_gone(timed.tx)? {
            return Ok(Stepped { done: 0, is_over: true });
        }
    }
    Ok(Stepped { done: 0, is_over: false })
}

/// Whether there is more.
fn drop_some_of_gone(tx: &mut TxMut) -> Result<bool> {
    let Some(gone) = found_mut(tx.bucket_mut_path([OWN, GONE]))? else { return Ok(false) };
    let first = gone.as_bucket().buckets().next().transpose()?;
    let Some((its_number, times)) = first.map(|(number, times)| (number.to_vec(), times)) else {
        tx.bucket_mut(OWN)?.delete_bucket(GONE)?;
        return Ok(false);
    };
    let mut stamps = Vec::with_capacity(LEFT_TOGETHER);
    let mut last = None;
    for entry in times.iter().take(LEFT_TOGETHER) {
        let (key, stamp) = entry?;
        last = Some(key.to_vec());
        stamps.extend(stamp.and_then(Stamp::parse));
    }
    stamps.sort_unstable();
    if let Some(mut at) = found_mut(tx.bucket_mut_path([OWN, AT]))? {
        stamps.iter().try_for_each(|stamp| at.delete(stamp.to_bytes()).map(drop))?;
    }
    let is_all = match last {
        Some(last) => {
            let mut times = tx.bucket_mut_path([OWN, GONE, &its_number])?;
            match times.delete_range(..=last, LEFT_TOGETHER) {
                // Somebody else's.
                Err(Error::IncompatibleValue { .. }) => true,
                dropped => dropped.and_then(|_| Ok(times.first()?.is_none()))?,
            }
        }
        None => true,
    };
    if is_all {
        tx.bucket_mut_path([OWN, GONE])?.delete_bucket(its_number)?;
    }
    Ok(true)
}

/// Deletes those of the keys that are values; the others, which are buckets.
fn delete_values<'k>(bucket: &mut BucketMut<'_>, keys: &[&'k [u8]]) -> Result<Vec<&'k [u8]>> {
    let mut buckets = Vec::new();
    for key in keys {
        match bucket.delete(key) {
            Ok(_) => {}
            Err(Error::IncompatibleValue { .. }) => buckets.push(*key),
            Err(error) => return Err(error),
        }
    }
    Ok(buckets)
}
