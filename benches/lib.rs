//! What the benchmarks share: databases filled with the keys of `docs/benchmarks.md`.

use std::path::Path;

use boltkv_storage::{Db, Durability, Error, Options, Result};

/// Bytes of a value.
pub const VALUE: [u8; 32] = [0xB5; 32];

/// The name of the bucket that everything goes to.
pub const BUCKET: &[u8] = b"bench";

/// Opens a new database in `file` that syncs only on demand, so that the engine is measured and not
/// the disk.
///
/// # Errors
/// As [`Options::open`].
pub fn unsynced(file: &Path) -> Result<Db> {
    Options::new().durability(Durability::Never).open(file)
}

/// Key number `n` of a sequence: 8 bytes, ascending.
#[must_use]
pub fn sequential(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

/// Key number `n` of a random sequence: 8 bytes, each number another key.
#[must_use]
pub fn random(n: u64) -> [u8; 8] {
    // The finalizer of splitmix64: a bijection, so that no key comes twice.
    let mut x = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (x ^ (x >> 31)).to_be_bytes()
}

/// Puts the keys `key(0)..key(count)`, a commit every `batch` of them.
///
/// # Errors
/// As the engine's.
pub fn load(db: &Db, count: u64, batch: u64, key: impl Fn(u64) -> [u8; 8]) -> Result<()> {
    for start in (0..count).step_by(usize::try_from(batch).unwrap_or(usize::MAX)) {
        db.update(|tx| {
            let mut bucket = tx.create_bucket_if_not_exists(BUCKET)?;
            (start..count.min(start + batch)).try_for_each(|n| bucket.put(key(n), VALUE))?;
            Ok::<_, Error>(())
        })?;
    }
    Ok(())
}
