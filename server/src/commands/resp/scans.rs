//! Where SCAN and HSCAN go on: a client is given a number, which stands for the last key that it was told.
//!
//! Keys have an order, and a number of 64 bits cannot say where in it a scan is; so the server remembers. What it remembers is
//! bounded. Where there is too much, whoever has most of it gives way, who is a token's holder or whoever comes from an
//! address: first his places from which somebody has gone on already, then his oldest. So no number of scans, of however long
//! keys, has the server forget where somebody else's are.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::peer::Origin;

/// The most bytes of all places,
const MOST: usize = 16 << 20;
/// of which each takes so many, and its key: there are 65,536 of keys that are no longer than this.
const BESIDE: usize = 128;

/// Whose a scan is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Owner {
    /// The holder of the token of this name.
    Holder(Box<str>),
    From(Origin),
}

/// The places of all scans.
#[derive(Debug)]
pub(crate) struct Scans(Mutex<Places>);

#[derive(Debug)]
struct Places {
    last: u64,
    all: HashMap<u64, Place>,
    bytes: usize,
    owners: HashMap<Owner, Own>,
    /// By how much they have: the last makes room.
    by_bytes: BTreeSet<(usize, Owner)>,
}

/// The last key that was told, and whose scan it is.
#[derive(Debug)]
struct Place {
    key: Bytes,
    owner: Owner,
}

/// What is somebody's.
#[derive(Debug, Default)]
struct Own {
    bytes: usize,
    /// Those from which nobody has gone on, the oldest first; and those from which somebody has.
    fresh: VecDeque<u64>,
    used: VecDeque<u64>,
}

impl Default for Scans {
    fn default() -> Self {
        // Drawn, so that a number of the server before this one is hardly ever taken for one of this.
        let last = RandomState::new().hash_one(0) >> 16;
        let (all, owners, by_bytes) = (HashMap::new(), HashMap::new(), BTreeSet::new());
        Self(Mutex::new(Places { last, all, bytes: 0, owners, by_bytes }))
    }
}

impl Scans {
    /// The last key that was told, where this number says so.
    pub(super) fn passed(&self, cursor: u64) -> Option<Bytes> {
        self.lock().all.get(&cursor).map(|place| place.key.clone())
    }

    /// A number for somebody's scan that has told all keys up to this one, and came here from `before`.
    pub(super) fn remember(&self, owner: &Owner, before: u64, passed: &[u8]) -> u64 {
        let mut places = self.lock();
        // A reply that finds no room is made once more.
        if let Some(again) = places.newest(owner).filter(|newest| places.all[newest].key == passed) {
            places.use_up(before);
            return again;
        }
        places.last += 1;
        let cursor = places.last;
        places.all.insert(cursor, Place { key: Bytes::copy_from_slice(passed), owner: owner.clone() });
        places.add(owner, passed.len() + BESIDE, cursor);
        places.use_up(before);
        while places.bytes > MOST && places.forget_one() {}
        cursor
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        // Nothing that holds it can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    fn add(&mut self, owner: &Owner, bytes: usize, cursor: u64) {
        let own = self.owners.entry(owner.clone()).or_default();
        self.by_bytes.remove(&(own.bytes, owner.clone()));
        own.bytes += bytes;
        own.fresh.push_back(cursor);
        self.by_bytes.insert((own.bytes, owner.clone()));
        self.bytes += bytes;
    }

    /// The last of somebody's places from which nobody has gone on.
    fn newest(&self, owner: &Owner) -> Option<u64> {
        self.owners.get(owner)?.fresh.back().copied()
    }

    /// Somebody has gone on from there; he may ask once more, if he has not got the answer.
    fn use_up(&mut self, cursor: u64) {
        let Some(own) = self.all.get(&cursor).and_then(|place| self.owners.get_mut(&place.owner)) else { return };
        // A scan goes on soon, so that it is found near the end.
        if let Some(at) = own.fresh.iter().rposition(|one| *one == cursor) {
            own.fresh.remove(at);
            own.used.push_back(cursor);
        }
    }

    /// Whoever has most loses a place. `false` if there is none.
    fn forget_one(&mut self) -> bool {
        let Some((had, owner)) = self.by_bytes.pop_last() else { return false };
        let Some(own) = self.owners.get_mut(&owner) else { return false };
        let oldest = own.used.pop_front().or_else(|| own.fresh.pop_front());
        let forgotten = oldest.and_then(|oldest| self.all.remove(&oldest));
        let bytes = forgotten.map_or(had, |place| place.key.len() + BESIDE);
        self.bytes = self.bytes.saturating_sub(bytes);
        own.bytes = had.saturating_sub(bytes);
        if own.bytes > 0 {
            self.by_bytes.insert((own.bytes, owner));
        } else {
            self.owners.remove(&owner);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(last: u8) -> Owner {
        Owner::From(Origin::V4([192, 0, 2, last]))
    }

    #[test]
    fn a_scan_that_goes_on_is_remembered_however_many_steps_others_take() {
        let scans = Scans::default();
        let slow = scans.remember(&from(1), 0, b"slow");
        let mut cursor = 0;
        for step in 0..2 * MOST / BESIDE {
            cursor = scans.remember(&from(1), cursor, format!("{step}").as_bytes());
        }
        assert_eq!(scans.passed(slow).as_deref(), Some(&b"slow"[..]));
        assert!(scans.passed(cursor).is_some() && scans.passed(cursor + 1).is_none());
        assert!(scans.lock().bytes <= MOST);
    }

    #[test]
    fn a_step_that_is_made_once_more_takes_no_other_place() {
        let scans = Scans::default();
        let first = scans.remember(&from(1), 0, b"k");
        let second = scans.remember(&from(1), first, b"l");
        assert_eq!(scans.remember(&from(1), first, b"l"), second);
        assert_ne!(scans.remember(&from(2), first, b"l"), second, "another's place is his");
        assert_eq!(
            (scans.passed(first).as_deref(), scans.passed(second).as_deref()),
            (Some(&b"k"[..]), Some(&b"l"[..]))
        );
    }

    #[test]
    fn who_begins_without_end_takes_a_bounded_memory_and_nobody_elses() {
        let scans = Scans::default();
        let (long, holder) = (vec![b'k'; 32_000], Owner::Holder("holder".into()));
        let others = [(from(1), 1), (holder, 100)].map(|(owner, len)| scans.remember(&owner, 0, &vec![b'o'; len]));
        let key = |step: usize| [&long[..], &step.to_be_bytes()].concat();
        let first = scans.remember(&from(2), 0, &long);
        for step in 0..1_000 {
            scans.remember(&from(2), 0, &key(step));
        }
        for step in 0..2 * MOST / BESIDE {
            scans.remember(&from(3), 0, &step.to_be_bytes());
        }
        assert!(others.iter().all(|cursor| scans.passed(*cursor).is_some()), "they have least");
        assert!(scans.passed(first).is_none(), "the oldest went");
        let places = scans.lock();
        assert!(places.bytes <= MOST && places.bytes > MOST - 33_000);
        assert_eq!(places.bytes, places.owners.values().map(|own| own.bytes).sum::<usize>());
        assert_eq!(places.all.len(), places.owners.values().map(|own| own.fresh.len() + own.used.len()).sum::<usize>());
        assert_eq!(places.owners.len(), places.by_bytes.len());
    }
}
