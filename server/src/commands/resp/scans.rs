//! Where SCAN and HSCAN go on: a client is given a number, which stands for the last key that it was told.
//!
//! Keys have an order, and a number of 64 bits cannot say where in it a scan is; so the server remembers. What it remembers is
//! bounded: where there are too many places, those go first from which somebody has gone on already, then the oldest.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// The most places, and the most bytes of their keys.
const MOST: usize = 65_536;
const MOST_BYTES: usize = 8 << 20;

/// The places of all scans.
#[derive(Debug)]
pub(crate) struct Scans(Mutex<Places>);

#[derive(Debug)]
struct Places {
    last: u64,
    keys: HashMap<u64, Bytes>,
    bytes: usize,
    /// Those from which nobody has gone on, the oldest first; and those from which somebody has.
    fresh: VecDeque<u64>,
    used: VecDeque<u64>,
}

impl Default for Scans {
    fn default() -> Self {
        // Drawn, so that a number of the server before this one is hardly ever taken for one of this.
        let last = RandomState::new().hash_one(0) >> 16;
        let (fresh, used) = (VecDeque::new(), VecDeque::new());
        Self(Mutex::new(Places { last, keys: HashMap::new(), bytes: 0, fresh, used }))
    }
}

impl Scans {
    /// The last key that was told, where this number says so.
    pub(super) fn passed(&self, cursor: u64) -> Option<Bytes> {
        self.lock().keys.get(&cursor).cloned()
    }

    /// A number for a scan that has told all keys up to this one, and came here from `before`.
    pub(super) fn remember(&self, before: u64, passed: &[u8]) -> u64 {
        let mut places = self.lock();
        places.last += 1;
        let cursor = places.last;
        places.keys.insert(cursor, Bytes::copy_from_slice(passed));
        places.bytes += passed.len();
        places.fresh.push_back(cursor);
        places.use_up(before);
        places.keep_bounds();
        cursor
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        // Nothing that holds it can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    /// Somebody has gone on from there; he may ask once more, if he has not got the answer.
    fn use_up(&mut self, cursor: u64) {
        // A scan goes on soon, so that it is found near the end.
        if let Some(at) = self.fresh.iter().rposition(|one| *one == cursor) {
            self.fresh.remove(at);
            self.used.push_back(cursor);
        }
    }

    fn keep_bounds(&mut self) {
        while self.keys.len() > MOST || self.bytes > MOST_BYTES {
            let Some(oldest) = self.used.pop_front().or_else(|| self.fresh.pop_front()) else { return };
            if let Some(key) = self.keys.remove(&oldest) {
                self.bytes -= key.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_that_goes_on_is_remembered_however_many_steps_others_take() {
        let scans = Scans::default();
        let slow = scans.remember(0, b"slow");
        let mut cursor = 0;
        for step in 0..2 * MOST {
            cursor = scans.remember(cursor, format!("{step}").as_bytes());
        }
        assert_eq!(scans.passed(slow).as_deref(), Some(&b"slow"[..]));
        assert!(scans.passed(cursor).is_some() && scans.passed(cursor + 1).is_none());
        assert!(scans.lock().keys.len() <= MOST);
    }

    #[test]
    fn who_begins_without_end_takes_a_bounded_memory() {
        let scans = Scans::default();
        let key = vec![b'k'; 32_000];
        let first = scans.remember(0, &key);
        for _ in 0..1_000 {
            scans.remember(0, &key);
        }
        let places = scans.lock();
        assert!(places.bytes <= MOST_BYTES && places.keys.len() == places.fresh.len());
        assert!(!places.keys.contains_key(&first), "the oldest went");
    }
}
