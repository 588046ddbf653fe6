//! What came of a repair.

#[cfg(doc)]
use super::RepairOptions;
use crate::TxId;
use crate::format::Pgid;

/// Which root a repair began with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RepairRoot {
    /// The one of a meta that is whole.
    Meta {
        /// Its transaction.
        txid: TxId,
    },
    /// The one of a meta that is damaged in the file, and that its journal has: nothing is lost by that.
    JournalMeta {
        /// Its transaction.
        txid: TxId,
    },
    /// The one that was asked for with [`RepairOptions::root_page`].
    Given,
    /// No meta was of any use. This many pages look like a root, among them older states of it; the
    /// one that leads to most was taken. 0: none does, and there is no root.
    Found {
        /// Pages that look like a root.
        candidates: usize,
    },
}

/// Pages that nothing leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Orphans {
    /// Pages that hold something and that nothing leads to.
    pub pages: u64,
    /// Whether the freelist could be read. Where not, pages that are free are among them, with what
    /// they held before they became so.
    pub free_pages_known: bool,
    /// The bucket at the top of the result that has what they hold, if that was asked for and there
    /// is any.
    pub bucket: Option<String>,
    /// Values in it.
    pub values: u64,
}

/// What a repair would come to that begins with the other meta; [`RepairOptions::meta`] has it do so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairAlternative {
    /// The meta's page: 0 or 1.
    pub meta: u8,
    /// Its transaction.
    pub txid: TxId,
    /// Places where something would be lost.
    pub lost: u64,
    /// Places where something would be in doubt.
    pub doubtful: u64,
}

/// What of a file's journal is in the result of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairedJournal {
    /// Transactions that the file does not hold and the journal records, and that were done again.
    pub applied: u64,
    /// The newest one of them, or else the one that the file holds.
    pub newest: TxId,
    /// Places where something of it was lost.
    pub lost: u64,
}

/// What came of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// The page size, in bytes, found or given.
    pub page_size: u32,
    /// With which root it began.
    pub root: RepairRoot,
    /// That root's page; `None` where there was none to be found.
    pub root_page: Option<Pgid>,
    /// Buckets in the result, those of orphans not among them.
    pub buckets: u64,
    /// Values in the result, those of orphans not among them.
    pub values: u64,
    /// Places where something was lost, those of the journal among them.
    pub lost: u64,
    /// Places where something was taken that may not belong there, or not be all.
    pub doubtful: u64,
    /// Pages that nothing leads to.
    pub orphans: Orphans,
    /// Where something was lost: what the other meta leads to, if its root can be read.
    pub alternative: Option<RepairAlternative>,
    /// What became of the file's journal, where there is one with anything in it.
    pub journal: Option<RepairedJournal>,
}
