//! How a write transaction begins; and what the file says from before the first of them until it is closed: that its journal
//! may hold more. So a file whose journal is lost is not taken for the newest state.

use super::durable::{is_full, sync_point};
use super::{Shared, Writer};
use crate::Result;
use crate::format::{Meta, TxId};
use crate::tree::Work;

/// What the durable meta says of the file, or is to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Word {
    /// Whatever it is: of a journal that is not this one, for example.
    #[default]
    Any,
    /// The journal that is kept may hold more.
    Open,
    /// The file holds everything.
    Closed,
}

impl Word {
    /// What a meta says that was just written, or was found where nothing is known of the journal that it speaks of.
    pub(super) fn of(meta: &Meta, is_ours: bool) -> Self {
        match meta.is_left_open() {
            false => Self::Closed,
            true if is_ours => Self::Open,
            true => Self::Any,
        }
    }
}

/// A [sync point](sync_point) that has the file say whether its journal may hold more.
pub(super) fn sync_point_that_says(
    wanted: Word,
    shared: &Shared,
    writer: &mut Writer,
    store_freelist: bool,
) -> Result<TxId> {
    writer.wanted = wanted;
    let synced = sync_point(shared, writer, store_freelist);
    writer.wanted = Word::Any;
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

    /// Has the file say that this journal may hold more, before the first commit that only the journal has, and begins anew on
    /// the state that says so. No other journal knows that state: what one records that was kept before, or given up, does not
    /// come back.
    pub(super) fn say_open(&mut self, shared: &Shared, work: &mut Work) -> Result<()> {
        if self.journal.is_none() || self.says == Word::Open {
            return Ok(());
        }
        self.spare = work.take_spare();
        let said = sync_point_that_says(Word::Open, shared, self, shared.stores_freelist());
        *work = self.begin(shared);
        match said {
            // Without room for that, the next checkpoint says it.
            Err(error) if is_full(&error) => Ok(()),
            said => said.map(drop),
        }
    }

    /// Whether the durable meta says what it is to say.
    pub(super) fn says_what_is_wanted(&self) -> bool {
        self.wanted == Word::Any || self.wanted == self.says
    }

    /// This meta is on the disk, with all that was written until then; the newest commit has this number.
    pub(super) fn note_durable(&mut self, meta: Meta, newest: TxId) {
        self.freelist.synced(newest);
        self.older_mark = std::mem::replace(&mut self.durable, meta).mark;
        self.says = Word::of(&meta, true);
    }

    /// A meta that says which state of the journal it is of, and whether that may hold more.
    pub(super) fn told_of_journal(&self, meta: Meta) -> Meta {
        match &self.journal {
            Some(journal) if self.wanted != Word::Closed => meta.left_open(journal.stamp()),
            Some(journal) => meta.left_open(journal.stamp()).closed(),
            None => meta.closed(),
        }
    }
}
