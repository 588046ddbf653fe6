//! The snapshots that clients hold open: how many there may be, and since when each is.
//!
//! A snapshot keeps all pages of its state from being used again, so the file grows while others write. What that costs is
//! bounded by their number and by how long their connections hold them; that is the session's to see to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use boltkv_protocol::{ErrorCode, ErrorReply};
use boltkv_storage::{Db, Tx};

use super::refusal::refusal;

/// The snapshots of all connections.
#[derive(Debug)]
pub(crate) struct Snapshots {
    most: usize,
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    last_id: u64,
    /// When each was opened. A higher id is a later one.
    since: BTreeMap<u64, Instant>,
}

/// A snapshot that is open until it is dropped.
#[derive(Debug)]
pub(crate) struct NamedSnapshot {
    state: Arc<Tx>,
    place: Place,
}

/// One among those that may be open.
#[derive(Debug)]
struct Place {
    id: u64,
    open: Arc<Mutex<Open>>,
}

impl Snapshots {
    /// At most so many at a time.
    pub(crate) fn new(most: u32) -> Self {
        Self { most: most as usize, open: Arc::default() }
    }

    /// How many are open, and for how long the oldest is.
    pub(crate) fn figures(&self) -> (usize, Duration) {
        let open = lock(&self.open);
        let oldest = open.since.first_key_value().map_or(Duration::ZERO, |(_, since)| since.elapsed());
        (open.since.len(), oldest)
    }

    /// Opens one, of the newest state.
    pub(crate) fn open(&self, db: &Db) -> Result<NamedSnapshot, ErrorReply> {
        let place = self.place()?;
        let state = Arc::new(db.begin().map_err(refusal)?);
        Ok(NamedSnapshot { state, place })
    }

    fn place(&self) -> Result<Place, ErrorReply> {
        let mut open = lock(&self.open);
        if open.since.len() >= self.most {
            return Err(self.too_many());
        }
        open.last_id += 1;
        let id = open.last_id;
        open.since.insert(id, Instant::now());
        drop(open);
        Ok(Place { id, open: Arc::clone(&self.open) })
    }

    fn too_many(&self) -> ErrorReply {
        let message = match self.most {
            0 => "the server holds no snapshots open (--max-snapshots)".to_owned(),
            most => format!("{most} snapshots are open, and the server holds no more (--max-snapshots)"),
        };
        ErrorReply::new(ErrorCode::Overloaded, message)
    }
}

impl NamedSnapshot {
    /// The number by which its connection names it; no other snapshot of the server ever has it.
    pub(crate) const fn id(&self) -> u64 {
        self.place.id
    }

    /// The state, for whoever reads it: it stays when the snapshot is closed meanwhile.
    pub(crate) const fn state(&self) -> &Arc<Tx> {
        &self.state
    }

    /// Whether something is being read from it.
    pub(crate) fn is_read(&self) -> bool {
        Arc::strong_count(&self.state) > 1
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.open).since.remove(&self.id);
    }
}

/// Nothing that is done under the lock can leave it half done.
fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use boltkv_storage::Options;

    use super::*;

    #[test]
    fn a_place_is_free_again_when_its_snapshot_is_dropped_and_an_id_is_not() {
        let db = Options::new().open_in_memory().unwrap();
        let snapshots = Snapshots::new(2);
        let (first, second) = (snapshots.open(&db).unwrap(), snapshots.open(&db).unwrap());
        let error = snapshots.open(&db).unwrap_err();
        assert_eq!(error.code, ErrorCode::Overloaded);
        assert!(
            error.message.contains("2 snapshots") && error.message.contains("--max-snapshots"),
            "{}",
            error.message
        );
        assert_eq!(db.stats().open_readers, 2);
        let before = [first.id(), second.id()];
        drop(first);
        assert_eq!((snapshots.figures().0, db.stats().open_readers), (1, 1));
        let third = snapshots.open(&db).unwrap();
        assert!(!before.contains(&third.id()));
        assert!(!third.is_read());
        let reading = Arc::clone(third.state());
        assert!(third.is_read());
        drop(third);
        assert_eq!((snapshots.figures().0, db.stats().open_readers), (1, 2), "it is still read");
        drop(reading);
        assert!(Snapshots::new(0).open(&db).is_err());
    }
}
