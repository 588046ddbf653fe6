//! What every floor uses: the numbers of pages and transactions, and errors.

mod error;
mod error_kind;
mod excerpt;
pub(crate) mod shared;
mod words;

pub use error::{Error, Result};
pub use excerpt::BucketPath;
pub(crate) use excerpt::Excerpt;

/// A page's number: it starts at byte `id * page_size` of the file.
pub type Pgid = u64;

/// A transaction's number. The first write transaction on a new file is number 2.
pub type TxId = u64;
