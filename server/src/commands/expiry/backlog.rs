//! Removing what has expired, in steps that are short enough to stand between other writes.
//!
//! What is due is gathered first, so much of it that it is worth to sort it: keys that were set in any order are removed in
//! the order in which they lie, so that each page is changed once and not once for each key on it.

use std::ops::Bound;
use std::time::{Duration, Instant};

use boltkv_storage::{Result, Tx};

use super::records::{Place, Stamp, parse_due};
use super::timed::{Timed, found_mut};
use super::view::found;
use super::{AT, IDS, OWN};
use crate::commands::state::State as _;

/// Keys that are gathered at most,
const MOST_GATHERED: usize = 250_000;
/// and their bytes.
const MOST_BYTES: usize = 16 << 20;
/// Keys that a step removes at most,
const MOST_IN_STEP: usize = 2_000;
/// and how long it takes at most: others' writes wait for it.
const LONGEST_STEP: Duration = Duration::from_millis(2);
/// It is looked how long it took whenever so many were removed.
const LOOK_EVERY: usize = 32;
/// Entries of what is due that a step drops at most, when all that they say was done.
const MOST_DROPPED: usize = 20_000;

/// Keys whose time has come, in the order in which they are removed.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    due: Vec<Due>,
    /// How many of them were removed.
    done: usize,
    /// The last that was gathered, as what is due is sorted: so far nothing is left when all of them are done.
    through: Option<Stamp>,
}

/// The number of its bucket comes first, then the key, so that it sorts as it lies.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    id: u64,
    key: Box<[u8]>,
    stamp: Stamp,
}

/// How far a step came. It counts once its transaction is committed.
#[derive(Debug)]
pub(crate) struct Stepped {
    done: usize,
    is_over: bool,
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
        self.through.is_none()
    }

    /// Gathers what has expired by now.
    ///
    /// # Errors
    /// Those of reading the file.
    pub(crate) fn gather(&mut self, tx: &Tx, now: u64) -> Result<()> {
        *self = Self::default();
        let Some(own) = found(tx.top(OWN))? else { return Ok(()) };
        let Some(at) = found(own.bucket(AT))? else { return Ok(()) };
        let mut bytes = 0;
        for entry in &at {
            let (stamp, value) = entry?;
            // What was not written here is dropped with what comes before it.
            let Some(stamp) = Stamp::parse(stamp) else { continue };
            if !stamp.is_past(now) || self.due.len() == MOST_GATHERED || bytes > MOST_BYTES {
                break;
            }
            self.through = Some(stamp);
            if let Some((id, key)) = value.and_then(parse_due) {
                bytes += size_of::<Due>() + key.len();
                self.due.push(Due { id, key: key.into(), stamp });
            }
        }
        self.due.sort_unstable();
        Ok(())
    }

    /// Removes the next of what was gathered, as far as that is still so.
    ///
    /// # Errors
    /// [`boltkv_storage::Error::Corrupt`] where the file is damaged; the transaction must not be committed then.
    pub(crate) fn step(&self, timed: &mut Timed<'_>) -> Result<Stepped> {
        let begun = Instant::now();
        let rest = self.due.get(self.done..).unwrap_or_default();
        if rest.is_empty() {
            return self.drop_due(timed);
        }
        let mut place: Option<(u64, Option<Vec<u8>>)> = None;
        let mut done = 0;
        for Due { id, key, stamp } in rest.iter().take(MOST_IN_STEP) {
            if done % LOOK_EVERY == 0 && done > 0 && begun.elapsed() >= LONGEST_STEP {
                break;
            }
            if place.as_ref().is_none_or(|(of, _)| of != id) {
                place = Some((*id, timed.place(*id)?));
            }
            if let Some((_, Some(place))) = &place {
                timed.reclaim(Place(place), key, *stamp)?;
            }
            done += 1;
        }
        Ok(Stepped { done, is_over: false })
    }

    /// What was gathered is done: nothing of it is due any more.
    fn drop_due(&self, timed: &mut Timed<'_>) -> Result<Stepped> {
        let over = Stepped { done: 0, is_over: true };
        let Some(through) = self.through.filter(|_| timed.any().unwrap_or(true)) else { return Ok(over) };
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

    /// Removes a key if its time is the one that is due, and leaves what is due to whoever removes that for many.
    fn reclaim(&mut self, place: Place<'_>, key: &[u8], due: Stamp) -> Result<()> {
        if self.stamp(place, key)? != Some(due) || !due.is_past(self.now()) {
            return Ok(());
        }
        self.remove_entry(place, key)?;
        self.forget_in_of(place, key)?;
        self.expired += 1;
        Ok(())
    }
}
