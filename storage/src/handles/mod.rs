//! What people hold: the database, its transactions, buckets, cursors and ranges.

mod batch;
mod bucket;
mod bulk;
#[cfg(fuzzing)]
mod bytes;
mod callbacks;
mod cursor;
mod db;
mod delete_many;
mod handle;
#[cfg(all(test, loom))]
mod interleavings;
mod key_range;
mod open;
mod range;
mod resident;
mod tx;

pub use bucket::{Bucket, BucketMut, Buckets, Deleted};
#[cfg(fuzzing)]
pub use bytes::SegmentBytes;
pub use cursor::{Cursor, CursorMut, Entry};
pub use db::Db;
pub use handle::{BucketHandle, Walk};
pub use key_range::KeyRange;
pub use range::Range;
pub use tx::{Tx, TxMut};
