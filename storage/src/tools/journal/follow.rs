//! Following an open database: what is committed, as soon as no crash can take it back.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::CommittedTransaction;
use crate::journal::{Follow, JournalPosition, Tail};
use crate::{Db, Error, Result};

/// Who follows an open database from a position on: every transaction, in order, from the journal as far back as that is kept,
/// and then as they come. A transaction is handed over once it is synced, and read transactions see it: what a crash can take
/// back, nobody is told.
///
/// It waits for nobody, and nobody waits for it: a follower that is slower than the journal is kept loses its place. As a
/// read transaction does with the file, it keeps the journal's folder locked when the database is closed.
///
/// ```
/// # fn main() -> boltkv_storage::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("app.db");
/// use boltkv_storage::{JournalOptions, Options};
///
/// let db = Options::new().journal(JournalOptions::new()).open(&path)?;
/// let now = db.durable_position().expect("a journal is kept");
/// db.update(|tx| tx.create_bucket("users")?.put("ada", "lovelace"))?;
/// let mut follower = db.follow(now)?;
/// let mut changes = 0;
/// while let Some(transaction) = follower.next()? {
///     transaction.changes(|_| Ok::<_, boltkv_storage::Error>(changes += 1))?;
/// }
/// assert_eq!(changes, 2);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Follower {
    follow: Follow,
    stop: Arc<AtomicBool>,
}

/// Ends a follower's waiting, from another thread.
#[derive(Debug, Clone)]
pub struct FollowerStop {
    tail: Arc<Tail>,
    stop: Arc<AtomicBool>,
}

impl Db {
    /// The newest transaction that no crash takes back; `None` where no journal is kept.
    #[must_use]
    pub fn durable_position(&self) -> Option<JournalPosition> {
        self.tail().map(|tail| tail.newest())
    }

    /// The position behind which everything can be followed; `None` where no journal is kept.
    ///
    /// # Errors
    /// [`Error::JournalIo`]; [`Error::JournalDamaged`].
    pub fn oldest_position(&self) -> Result<Option<JournalPosition>> {
        self.tail().map(|tail| tail.oldest()).transpose()
    }

    /// Follows what is committed behind a position. Of each segment that is kept, the header is read.
    ///
    /// # Errors
    /// [`Error::JournalNotKept`]; [`Error::JournalGap`] where what is behind it is not kept any more, or a crash took the
    /// position back, or it is another journal's; [`Error::JournalIo`]; [`Error::JournalDamaged`].
    pub fn follow(&self, after: JournalPosition) -> Result<Follower> {
        let tail = self.tail().ok_or(Error::JournalNotKept)?;
        Ok(Follower { follow: Follow::behind(tail, after)?, stop: Arc::default() })
    }
}

impl Follower {
    /// The next transaction; `None` where there is none yet that no crash takes back.
    ///
    /// # Errors
    /// [`Error::JournalGap`] where it is not kept any more: the follower was too slow. [`Error::JournalIo`];
    /// [`Error::JournalDamaged`].
    #[expect(clippy::should_implement_trait, reason = "what it hands over borrows from it")]
    pub fn next(&mut self) -> Result<Option<CommittedTransaction<'_>>> {
        let Some((record, kept)) = self.follow.next()? else { return Ok(None) };
        Ok(Some(CommittedTransaction::new(record, kept.folder(), Some(kept))))
    }

    /// How far it is: that of the last transaction handed over, or of an opening since.
    #[must_use]
    pub const fn position(&self) -> JournalPosition {
        self.follow.position()
    }

    /// Blocks until there may be a next transaction, or until it is stopped, or so much time has passed; whether there may be
    /// one.
    #[must_use]
    pub fn wait(&self, most: Option<Duration>) -> bool {
        self.follow.wait(&self.stop, most)
    }

    /// What ends its waiting.
    #[must_use]
    pub fn stopper(&self) -> FollowerStop {
        FollowerStop { tail: Arc::clone(self.follow.tail()), stop: Arc::clone(&self.stop) }
    }
}

impl FollowerStop {
    /// Ends the waiting that goes on, and all later waiting, at once.
    pub fn stop(&self) {
        self.tail.stop(&self.stop);
    }
}
