//! What every floor uses: the numbers of pages and transactions, and errors.

mod error;

pub(crate) use error::Excerpt;
pub use error::{BucketPath, Error, Result};

/// A page's number: it starts at byte `id * page_size` of the file.
pub type Pgid = u64;

/// A transaction's number. The first write transaction on a new file is number 2.
pub type TxId = u64;
