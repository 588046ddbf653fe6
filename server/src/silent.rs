//! The connections that have not said a byte yet, or not who they are, or stand still in a handshake. When there are no places
//! left, the one that has been silent for longest goes, so that strangers who connect and say nothing keep nobody out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::stats::Stats;

/// All silent connections, by the order in which they came.
#[derive(Debug)]
pub(crate) struct SilentOnes {
    most: usize,
    stats: Arc<Stats>,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    next: u64,
    ends: BTreeMap<u64, CancellationToken>,
}

/// A connection counts as silent until this is dropped.
#[derive(Debug)]
pub(crate) struct Silent {
    number: u64,
    all: Arc<SilentOnes>,
}

impl SilentOnes {
    /// None yet, and at most so many. Those that go before they are done are counted.
    pub(crate) fn new(most: usize, stats: Arc<Stats>) -> Self {
        Self { most, stats, places: Mutex::default() }
    }

    /// A connection came, which `end` ends. Where there are more than there may be, the one that came first goes.
    pub(crate) fn add(self: &Arc<Self>, end: CancellationToken) -> Silent {
        let mut places = self.lock();
        let number = places.next;
        places.next += 1;
        places.ends.insert(number, end);
        if places.ends.len() > self.most
            && let Some((_, oldest)) = places.ends.pop_first()
        {
            oldest.cancel();
            self.stats.connection_displaced();
        }
        Silent { number, all: Arc::clone(self) }
    }

    /// Ends the one that has been silent for longest. `false` if there is none.
    pub(crate) fn end_oldest(&self) -> bool {
        let oldest = self.lock().ends.pop_first();
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

impl Drop for Silent {
    fn drop(&mut self) {
        self.all.lock().ends.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: ops-first-byte.
    #[test]
    fn the_one_that_came_first_goes_first_and_who_spoke_stays() {
        let stats = Arc::new(Stats::new());
        let all = Arc::new(SilentOnes::new(3, Arc::clone(&stats)));
        let ends: Vec<_> = (0..3).map(|_| CancellationToken::new()).collect();
        let mut silent: Vec<_> = ends.iter().map(|end| all.add(end.clone())).collect();
        let ended = || ends.iter().map(CancellationToken::is_cancelled).collect::<Vec<_>>();
        drop(silent.remove(0));
        assert!(all.end_oldest());
        assert_eq!(ended(), [false, true, false]);
        assert!(all.end_oldest());
        assert!(!all.end_oldest(), "all are told");
        drop(silent);
        assert_eq!(ended(), [false, true, true]);
        let ends: Vec<_> = (0..4).map(|_| CancellationToken::new()).collect();
        let _silent: Vec<_> = ends.iter().map(|end| all.add(end.clone())).collect();
        assert!(ends[0].is_cancelled() && !ends[1].is_cancelled(), "there are no more than three");
        assert_eq!(stats.displaced(), 3);
    }
}
