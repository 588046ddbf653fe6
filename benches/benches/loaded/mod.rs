//! Databases to measure on, without syncs. Nothing here is timed by itself.

use boltkv_benches::data::Keys;
use boltkv_storage::{Db, Durability, Error, Options};
use tempfile::TempDir;

/// Entries of a loaded database.
pub(crate) const KEYS: u64 = 1_000_000;
pub(crate) const VALUE: [u8; 32] = [0xB5; 32];
pub(crate) const BUCKET: &str = "bench";

/// An empty database.
pub(crate) fn unsynced(folder: &TempDir) -> Db {
    Options::new().durability(Durability::Never).open(folder.path().join("db")).expect("a new file opens")
}

/// Puts the first `count` entries, `batch` of them a commit.
pub(crate) fn load(db: &Db, keys: Keys, count: u64, batch: usize) {
    for start in (0..count).step_by(batch) {
        db.update(|tx| {
            let mut bucket = tx.create_bucket_if_not_exists(BUCKET)?;
            (start..count).take(batch).try_for_each(|n| bucket.put(keys.key(n), VALUE))?;
            Ok::<_, Error>(())
        })
        .expect("the disk has room");
    }
}
