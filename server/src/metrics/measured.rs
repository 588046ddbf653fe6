//! All that is read at one moment for the metrics.

use std::path::Path;
use std::time::Duration;

use boltkv_storage::{JournalFigures, Stats};
use rustix::fs::{stat, statvfs};

use super::process::Process;
use crate::shared::Shared;

/// What a server is like at a moment.
#[derive(Debug)]
pub(super) struct Measured<'a> {
    pub(super) shared: &'a Shared,
    pub(super) database: Stats,
    pub(super) process: Process,
    /// How many snapshots clients hold open, and for how long the oldest is.
    pub(super) snapshots: (usize, Duration),
    /// For how long the next key to be removed has been due.
    pub(super) expiry_lag: Duration,
    /// Bytes that the file takes of its name's length; `None` for a database in memory.
    pub(super) file_bytes: Option<u64>,
    /// Bytes that are free where the file is, and where its journal is.
    pub(super) free_bytes: [(&'static str, Option<u64>); 2],
}

impl<'a> Measured<'a> {
    pub(super) fn now(shared: &'a Shared) -> Self {
        let executor = &shared.executor;
        let db = executor.db();
        Self {
            shared,
            database: db.stats(),
            process: Process::now(),
            snapshots: executor.snapshots().figures(),
            expiry_lag: executor.expiry_lag().unwrap_or_default(),
            file_bytes: db.path().and_then(length),
            free_bytes: [("file", db.path().and_then(free)), ("journal", db.journal().and_then(free))],
        }
    }

    /// The journal's figures, where there is one.
    pub(super) const fn journal(&self) -> Option<&JournalFigures> {
        self.database.journal.as_ref()
    }

    /// The database's figures, where it is written.
    pub(super) fn written(&self) -> Option<&Stats> {
        (!self.shared.executor.is_read_only()).then_some(&self.database)
    }
}

fn length(file: &Path) -> Option<u64> {
    u64::try_from(stat(file).ok()?.st_size).ok()
}

/// For those who are not root.
fn free(path: &Path) -> Option<u64> {
    let system = statvfs(path).ok()?;
    system.f_bavail.checked_mul(system.f_frsize)
}
