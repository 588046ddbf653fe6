//! What all who look at keys' times share: by which clock they expire, and whether any does, for who would otherwise look that
//! up for each request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use boltkv_storage::{Db, Result};

use super::view::found;
use super::{Clock, OWN};

/// How keys of a database expire. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Expiration {
    pub(crate) clock: Clock,
    any: Arc<AtomicBool>,
}

impl Expiration {
    /// By this clock. Only where nobody else can write to the database it is believed that none of its keys has a time.
    pub(crate) fn of(db: &Db, clock: Clock, is_ours: bool) -> Result<Self> {
        let any = !is_ours || found(db.begin()?.bucket(OWN))?.is_some();
        Ok(Self { clock, any: Arc::new(any.into()) })
    }

    /// A time is about to be committed. Noted before: who takes a snapshot, and asks [`Self::any`] after that, is told of all
    /// that is in it.
    pub(crate) fn note_time(&self) {
        self.any.store(true, Ordering::Release);
    }

    /// Whether a key may have a time. Once one has had one, it stays so.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }
}
