//! What works on whole files, on top of the handles.
//!
//! - `bucket_stats`, `inspect`: how buckets and pages are filled
//! - `backup`: a snapshot as a file of its own; `compact`: a database written anew; `repair`: what a broken file still
//!   holds, written anew; `rewrite`: what both write through
//! - `restore`: a backup, and what a journal records beyond it, as a file of any state between
//! - `shrink`: making a file smaller while it is in use
//! - `journal`: what lies in a journal, and whether it fits its file
//! - `peek`: reading a file that another process writes, without its lock
//! - `raw`: pages as they lie in a file, which need not open; `surgery`: single pages changed, on a copy

mod backup;
pub(crate) mod bucket_stats;
mod compact;
pub(crate) mod inspect;
pub(crate) mod journal;
mod peek;
mod raw;
mod repair;
mod restore;
mod rewrite;
pub(crate) mod shrink;
mod surgery;

pub use crate::format::MetaFields;
pub use journal::{FileJournal, JournalEntry, JournalEntryKind, JournalSegment, JournalState};
pub use peek::{Peek, PeekState, Peeked, PeekedEntries};
pub use raw::{RawBranchElement, RawFile, RawHeader, RawLeafElement, RawPage};
pub use repair::{
    Orphans, RepairAlternative, RepairEvent, RepairOptions, RepairPlace, RepairRoot, Repaired, RepairedJournal,
};
pub use restore::{Restore, RestoreMoment, RestoreTo, Restored};
pub use surgery::{Abandoned, Cleared, Copied, MetaChange, MetaUpdated, Rebuilt, Reverted, Surgery};
