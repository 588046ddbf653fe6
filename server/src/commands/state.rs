//! What requests look at: a snapshot, or what the writer's transaction has made of it so far.

use boltkv_protocol::Path;
use boltkv_storage::{Bucket, Cursor, Result, Tx, TxMut};

/// A state of the database, with all that is stored in it. What is to be seen of it is [`View`](super::expiry::View)'s to say.
pub(crate) trait State {
    /// The bucket of that name at the top.
    fn top(&self, name: &[u8]) -> Result<Bucket<'_>>;

    /// The bucket at a path.
    fn bucket_at(&self, path: &Path) -> Result<Bucket<'_>>;

    /// A cursor over a bucket, or over the root, which holds buckets only.
    fn cursor_at(&self, path: &Path) -> Result<Cursor<'_>>;
}

impl State for Tx {
    fn top(&self, name: &[u8]) -> Result<Bucket<'_>> {
        self.bucket(name)
    }

    fn bucket_at(&self, path: &Path) -> Result<Bucket<'_>> {
        self.bucket_path(path.names())
    }

    fn cursor_at(&self, path: &Path) -> Result<Cursor<'_>> {
        if path.is_root() { Ok(self.cursor()) } else { Ok(self.bucket_path(path.names())?.cursor()) }
    }
}

impl State for TxMut {
    fn top(&self, name: &[u8]) -> Result<Bucket<'_>> {
        self.bucket(name)
    }

    fn bucket_at(&self, path: &Path) -> Result<Bucket<'_>> {
        self.bucket_path(path.names())
    }

    fn cursor_at(&self, path: &Path) -> Result<Cursor<'_>> {
        if path.is_root() { Ok(self.cursor()) } else { Ok(self.bucket_path(path.names())?.cursor()) }
    }
}
