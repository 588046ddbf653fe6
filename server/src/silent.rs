//! The connections that have not said a byte yet, or not who they are, or stand still in a handshake. When there are no places
//! left, whoever has most of them makes room, with the one that has been silent for longest: strangers who connect and say
//! nothing keep nobody out, and of those who come from one address no number keeps out who comes from another.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::peer::Origin;
use crate::stats::Stats;

/// All silent connections.
#[derive(Debug)]
pub(crate) struct SilentOnes {
    most: usize,
    stats: Arc<Stats>,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    next: u64,
    taken: usize,
    /// Whose they are: what ends each, by the order in which they came.
    by_origin: HashMap<Origin, BTreeMap<u64, CancellationToken>>,
    /// By how many they have, and of as many by whose first came last: the last of all makes room.
    by_number: BTreeSet<(usize, Reverse<u64>, Origin)>,
}

/// A connection counts as silent until this is dropped.
#[derive(Debug)]
pub(crate) struct Silent {
    number: u64,
    origin: Origin,
    all: Arc<SilentOnes>,
}

impl SilentOnes {
    /// None yet, and at most so many. Those that go before they are done are counted.
    pub(crate) fn new(most: usize, stats: Arc<Stats>) -> Self {
        Self { most, stats, places: Mutex::default() }
    }

    /// A connection came from there, which `end` ends. Where there are more than there may be, one goes. One that is to go
    /// already, and has not noticed yet, takes no place, and has nobody else go.
    pub(crate) fn add(self: &Arc<Self>, origin: Origin, end: CancellationToken) -> Silent {
        let mut places = self.lock();
        let number = places.next;
        places.next += 1;
        if !end.is_cancelled() {
            places.change(origin, |own| own.insert(number, end));
            if places.taken > self.most {
                self.end_one_of(&mut places);
            }
        }
        Silent { number, origin, all: Arc::clone(self) }
    }

    /// Ends one to make room. `false` if there is none.
    pub(crate) fn end_one(&self) -> bool {
        self.end_one_of(&mut self.lock())
    }

    fn end_one_of(&self, places: &mut Places) -> bool {
        let Some(&(_, _, origin)) = places.by_number.last() else { return false };
        let mut oldest = None;
        places.change(origin, |own| oldest = own.pop_first());
        oldest.is_some_and(|(_, end)| {
            end.cancel();
            self.stats.connection_displaced();
            true
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Places> {
        // Nothing that holds it can panic half way.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    /// Changes which connections are somebody's.
    fn change<T>(&mut self, origin: Origin, change: impl FnOnce(&mut BTreeMap<u64, CancellationToken>) -> T) {
        let own = self.by_origin.entry(origin).or_default();
        if let Some((&first, _)) = own.first_key_value() {
            self.by_number.remove(&(own.len(), Reverse(first), origin));
        }
        self.taken -= own.len();
        change(own);
        self.taken += own.len();
        match own.first_key_value() {
            Some((&first, _)) => drop(self.by_number.insert((own.len(), Reverse(first), origin))),
            None => drop(self.by_origin.remove(&origin)),
        }
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.all.lock().change(self.origin, |own| own.remove(&self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Origin = Origin::Local(None);

    // Promises: ops-first-byte.
    #[test]
    fn the_one_that_came_first_goes_first_and_who_spoke_stays() {
        let stats = Arc::new(Stats::new());
        let all = Arc::new(SilentOnes::new(3, Arc::clone(&stats)));
        let ends: Vec<_> = (0..3).map(|_| CancellationToken::new()).collect();
        let mut silent: Vec<_> = ends.iter().map(|end| all.add(HERE, end.clone())).collect();
        let ended = || ends.iter().map(CancellationToken::is_cancelled).collect::<Vec<_>>();
        drop(silent.remove(0));
        assert!(all.end_one());
        assert_eq!(ended(), [false, true, false]);
        assert!(all.end_one());
        assert!(!all.end_one(), "all are told");
        drop(silent);
        assert_eq!(ended(), [false, true, true]);
        let ends: Vec<_> = (0..4).map(|_| CancellationToken::new()).collect();
        let _silent: Vec<_> = ends.iter().map(|end| all.add(HERE, end.clone())).collect();
        assert!(ends[0].is_cancelled() && !ends[1].is_cancelled(), "there are no more than three");
        assert_eq!(stats.displaced(), 3);
        let gone = all.add(HERE, ends[0].clone());
        assert!(!ends[1].is_cancelled(), "it is to go itself");
        drop(gone);
        assert_eq!(all.lock().taken, 3);
    }

    // Promises: ops-strangers-share.
    #[test]
    fn whoever_has_most_places_makes_room_and_who_comes_from_elsewhere_stays() {
        let stats = Arc::new(Stats::new());
        let all = Arc::new(SilentOnes::new(4, Arc::clone(&stats)));
        let end = CancellationToken::new();
        let other = all.add(Origin::V4([192, 0, 2, 7]), end.clone());
        let crowd: Vec<_> = (0..100).map(|_| all.add(HERE, CancellationToken::new())).collect();
        assert!(!end.is_cancelled(), "it came first, and has one place only");
        let late = (0..3).map(|_| all.add(Origin::V4([192, 0, 2, 8]), CancellationToken::new())).collect::<Vec<_>>();
        assert!(!end.is_cancelled());
        assert_eq!(all.lock().taken, 4);
        assert!(all.end_one() && all.end_one() && all.end_one() && end.is_cancelled(), "of those with one the first");
        drop((other, crowd, late));
        let places = all.lock();
        assert!(places.taken == 0 && places.by_origin.is_empty() && places.by_number.is_empty());
    }
}
