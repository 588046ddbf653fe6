//! The files that are served: distinct entries in key order, written by the engine itself, as fast as it goes.

use std::path::Path;

use anyhow::Result;
use boltkv_storage::{Durability, Error, Options};

use super::results::File;
use crate::data::Values;

/// The bucket that text connections start in.
const BUCKET: &str = "default";

/// Bytes of a value; keys have 16.
const VALUE: usize = 100;

/// Bytes that an entry takes in a page: the element that points to it, key and value.
const ENTRY: u64 = 16 + 16 + VALUE as u64;

/// Entries a commit.
const BATCH: usize = 100_000;

/// Makes a file of about `asked` bytes of entries. It is on the disk at the end, and not before.
///
/// # Errors
/// The engine's.
pub(super) fn make(path: &Path, asked: u64) -> Result<File> {
    let (entries, values) = (asked / ENTRY, Values::new(VALUE));
    Ok(File { asked, entries, bytes: fill(path, entries, |n| values.value(n))? })
}

/// Makes a file of these values, whose keys are their numbers in 16 digits; how long it came to be.
///
/// # Errors
/// As [`make`].
pub(crate) fn fill<V: AsRef<[u8]>>(path: &Path, entries: u64, value: impl Fn(u64) -> V) -> Result<u64> {
    let db = Options::new().durability(Durability::Never).open(path)?;
    for start in (0..entries).step_by(BATCH) {
        db.update(|tx| {
            let mut bucket = tx.create_bucket_if_not_exists(BUCKET)?;
            (start..entries).take(BATCH).try_for_each(|n| bucket.put(format!("{n:016}"), value(n)))?;
            Ok::<_, Error>(())
        })?;
    }
    db.close()?;
    Ok(std::fs::metadata(path)?.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_entries_and_about_its_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made.db");
        let made = make(&path, 1_000_000).unwrap();
        let db = Options::new().read_only(true).open(&path).unwrap();
        let count = db.begin().unwrap().bucket(BUCKET).unwrap().iter().flatten().count();
        assert_eq!(u64::try_from(count).unwrap(), made.entries);
        assert!((1_000_000..3_000_000).contains(&made.bytes), "{}", made.bytes);
    }
}
