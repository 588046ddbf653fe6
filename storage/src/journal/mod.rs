//! The journal: what was committed and is not in the database's file yet, in segments that are written from their beginning to
//! their end and used again.
//!
//! - `block`: the bytes
//! - `segment`: a file of the journal, and how a new one is made
//! - `append`: writing, by the one writer; `write`: entries, from segment to segment; `spares`: free segments, made ahead; `sync`: what makes it last; `retain`: which segments are used again, and when
//! - `found`: what an opening goes on from; `stats`: figures
//! - `file`: a segment's file while it is read; `log`: what a folder holds, and which segment follows which
//! - `walk`: from entry to entry of a segment
//! - `judge`: from a meta to the records that follow it, which are `waiting`; `forward`: where a tear ends them, and what is damage
//! - `tail`: up to where it may be told to those who follow it; `follow`: following it while it is written
//! - `since`: from a meta that the file once had; `position`: from a transaction; `replay`: these records, one by one; `list`: all that lies in a folder, for people
//!
//! What a record holds is bytes to all of them. `docs/journal.md` has the format and its reasons.

mod append;
mod block;
mod file;
mod follow;
mod forward;
mod found;
mod judge;
mod list;
mod log;
mod newest;
mod position;
mod replay;
mod retain;
mod segment;
mod since;
mod spares;
mod stats;
mod sync;
mod tail;
#[cfg(test)]
mod tests;
mod waiting;
mod walk;
mod write;

use std::path::Path;

use crate::format::{META_BYTES, Meta, PAGE_HEADER};
use crate::{Error, Result};

pub(crate) use append::Journal;
pub(crate) use block::{EntryKind, Header};
pub(crate) use follow::{Follow, Kept};
pub(crate) use list::{Listed, Listing};
pub(crate) use log::{Log, read, scan};
pub(crate) use newest::DamagedPage;
pub use position::JournalPosition;
pub(crate) use replay::Record;
pub use retain::JournalKeep;
pub(crate) use retain::JournalLimits;
pub(crate) use segment::SHORTEST_SEGMENT;
pub(crate) use since::{Stretch, Until};
pub(crate) use sync::PendingSync;
pub(crate) use tail::Tail;
pub(crate) use waiting::Waiting;

/// A meta as it stands in its page, without the page's header.
///
/// Metas are compared whole, but for whether the database was closed, which a backup of it always says: two copies of a file
/// that are given one commit each have the same number.
#[derive(Clone, Copy)]
pub(crate) struct MetaBytes(pub(crate) [u8; 64]);

impl MetaBytes {
    /// The bytes that are written for `meta`.
    pub(crate) fn of(meta: &Meta) -> Self {
        let mut page = [0; META_BYTES];
        meta.write(&mut page);
        Self::on(&page)
    }

    /// The bytes that stand on a meta's page.
    pub(crate) fn on(page: &[u8; META_BYTES]) -> Self {
        let mut bytes = [0; META_BYTES - PAGE_HEADER];
        bytes.copy_from_slice(&page[PAGE_HEADER..]);
        Self(bytes)
    }

    /// The meta, if it is one.
    pub(crate) fn meta(&self) -> Option<Meta> {
        let mut page = [0; META_BYTES];
        page[PAGE_HEADER..].copy_from_slice(&self.0);
        Meta::decode(&page).ok()
    }

    /// The number of its transaction, whatever else it says.
    pub(crate) fn txid(&self) -> u64 {
        let mut txid = [0; 8];
        txid.copy_from_slice(&self.0[48..56]);
        u64::from_le_bytes(txid)
    }
}

impl PartialEq for MetaBytes {
    fn eq(&self, other: &Self) -> bool {
        let closed = |bytes: &Self| bytes.meta().map(Meta::closed);
        self.0 == other.0 || self.txid() == other.txid() && closed(self).is_some_and(|meta| closed(other) == Some(meta))
    }
}

impl Eq for MetaBytes {}

/// Refuses a file with this meta beside no journal that knows it, in the place where that was looked for, if it was left open by
/// who kept one.
pub(crate) fn refuse_missing(meta: &Meta, folder: &Path) -> Result<()> {
    if meta.is_left_open() {
        return Err(Error::JournalMissing { folder: folder.into(), file: meta.txid });
    }
    Ok(())
}

impl std::fmt::Debug for MetaBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MetaBytes of {}", self.txid())
    }
}
