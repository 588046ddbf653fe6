//! How a write transaction begins; and what the file says from before the first of them until it is closed: that its journal
//! may hold more. So a file whose journal is lost is not taken for the newest state.

use super::durable::{is_full, sync_point};
use super::{Shared, Writer};
use crate::Result;
use crate::format::{Meta, TxId};
use crate::tree::Work;

/// What a sync point is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Wanted {
    /// The file is to hold the newest state.
    #[default]
    State,
    /// It is also to say that its journal may hold more.
    Open,
    /// It is also to say that it holds everything.
    Closed,
}

impl Wanted {
    /// Whether a meta says so.
    pub(super) fn is_said_by(self, meta: &Meta) -> bool {
        match self {
            Self::State => true,
            Self::Open => meta.is_left_open(),
            Self::Closed => !meta.is_left_open(),
        }
    }
}

/// A [sync point](sync_point) that has the file say whether its journal may hold more.
pub(super) fn sync_point_that_says(
    wanted: Wanted,
    shared: &Shared,
    writer: &mut Writer,
    store_freelist: bool,
) -> Result<TxId> {
    writer.wanted = wanted;
    let synced = sync_point(shared, writer, store_freelist);
    writer.wanted = Wanted::State;
    synced
}

impl Writer {
    /// Begins to change the newest state.
    pub(crate) fn begin(&mut self, shared: &Shared) -> Work {
        let mut work = Work::new(shared.readers.current(), std::mem::take(&mut self.spare), shared.options.fill);
        if self.journal.is_some() {
            // What makes the file smaller looks at its pages.
            work.record_effects(self.shrinking == 0);
        }
        work
    }

    /// Has the file say that its journal may hold more, before the first commit that only the journal has, and begins anew on
    /// the state that says so.
    pub(super) fn say_open(&mut self, shared: &Shared, work: &mut Work) -> Result<()> {
        if self.journal.is_none() || self.durable.is_left_open() {
            return Ok(());
        }
        self.spare = work.take_spare();
        let said = sync_point_that_says(Wanted::Open, shared, self, shared.stores_freelist());
        *work = self.begin(shared);
        match said {
            // Without room for that, the next checkpoint says it.
            Err(error) if is_full(&error) => Ok(()),
            said => said.map(drop),
        }
    }

    /// A meta that says which state of the journal it is of, and whether that may hold more.
    pub(super) fn told_of_journal(&self, meta: Meta) -> Meta {
        match &self.journal {
            Some(journal) if self.wanted != Wanted::Closed => meta.left_open(journal.stamp()),
            Some(journal) => meta.left_open(journal.stamp()).closed(),
            None => meta.closed(),
        }
    }
}
