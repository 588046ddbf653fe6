//! Why a server could not start or did not end well. What goes wrong with a single request is told to its client only.

use std::io;
use std::path::PathBuf;

use crate::config::Listen;

/// Why a server could not start or did not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address could not be listened on: taken, not this machine's, or not permitted.
    #[error("could not listen on {address}: {source}")]
    Listen {
        /// The address.
        address: Listen,
        /// What the system said.
        source: io::Error,
    },
    /// The database could not be opened.
    #[error("could not open the database: {0}")]
    Open(#[from] boltkv_storage::Error),
    /// The database could not be closed. Everything that was answered is where it was promised to be, in the file or its
    /// journal; what was answered before it was synced may not be.
    #[error("could not close the database: {source}{}", of_journal(*.all_in_journal))]
    Close {
        /// Why not.
        source: boltkv_storage::Error,
        /// Whether all that was committed is in the journal, on the disk, so that the next start has it; `None` where there is
        /// no journal.
        all_in_journal: Option<bool>,
    },
    /// A limit lies outside of what a server can work with.
    #[error("{name} is {value}, but must lie between {min} and {max}")]
    Limit {
        /// The limit's name in [`Limits`](crate::Limits).
        name: &'static str,
        /// What it was set to.
        value: usize,
        /// The least it can be.
        min: usize,
        /// The most it can be.
        max: usize,
    },
    /// A thread could not be started.
    #[error("could not start a thread: {0}")]
    Thread(#[source] io::Error),
    /// A write or a sync failed: the outcome of its transaction is unknown, and no more writes can be done until the file is
    /// opened again. They were answered with `STORAGE_FAILED`.
    #[error("writes failed, and none can be done until the file is opened again: {reason}")]
    WritesFailed {
        /// What failed first.
        reason: String,
    },
    /// Somebody has moved or removed the file while it was served. All is in it, wherever it is.
    #[error("{} was moved or removed while it was served: all is in the file that it was, and only there", file.display())]
    FileGone {
        /// Where it was.
        file: PathBuf,
    },
    /// The writer panicked: a defect. Writes that it had taken were answered with `STORAGE_FAILED`.
    #[error("the writer stopped unexpectedly; writes were refused from then on")]
    WriterStopped,
}

fn of_journal(has_all: Option<bool>) -> &'static str {
    match has_all {
        Some(true) => "; the journal has everything that was committed, and the next start brings the file up to date",
        Some(false) => "; the newest writes may be missing in the journal, too",
        None => "",
    }
}
