//! Figures about a database.

use crate::format::{Pgid, TxId};

/// Figures about the newest snapshot, and who uses the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The newest transaction.
    pub txid: TxId,
    /// Bytes of a page.
    pub page_size: u32,
    /// The high-water mark: pages that the file uses or has used, the metas included.
    pub pages: Pgid,
    /// Pages that the next commit can use; `None` while a write transaction is open, or read-only.
    pub free_pages: Option<u64>,
    /// Pages that are free once the readers that can see them have ended; `None` as above.
    pub pending_pages: Option<u64>,
    /// Read transactions that are open.
    pub open_readers: usize,
}
