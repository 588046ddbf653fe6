//! What `Fill::Auto` writes, and what it leaves where it is.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::assert_check_clean;
use boltkv_storage::{Db, Durability, Error, Fill, Options};

const LARGE: usize = 100_000;

fn unsynced(file: &std::path::Path) -> Db {
    Options::new().durability(Durability::Never).open(file).unwrap()
}

/// Bytes that a transaction with one put writes.
fn written_by_put(db: &Db, fill: Fill, key: &str, len: usize) -> u64 {
    let before = db.stats().commits.bytes_written;
    db.update(|tx| {
        let mut bucket = tx.create_bucket_if_not_exists("b")?;
        bucket.set_fill(fill);
        bucket.put(key, vec![7; len])
    })
    .unwrap();
    db.stats().commits.bytes_written - before
}

fn values(db: &Db) -> Vec<(String, usize)> {
    let tx = db.begin().unwrap();
    let bucket = tx.bucket("b").unwrap();
    let entries = bucket.iter().map(|entry| entry.unwrap());
    entries.map(|(key, value)| (String::from_utf8_lossy(key).into_owned(), value.unwrap().len())).collect()
}

#[test]
fn a_large_value_is_not_written_again_when_another_comes_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let db = unsynced(&folder.path().join("db"));
    for key in ["m", "a", "z", "k"] {
        let written = written_by_put(&db, Fill::Auto, key, LARGE);
        assert!((LARGE as u64..LARGE as u64 + 5 * 4096).contains(&written), "{key}: {written} bytes");
        assert_check_clean(&db, key);
    }
    // By bbolt's rule up to four stay in one leaf, which is written as a whole.
    assert!(written_by_put(&db, Fill::Percent(0.5), "l", LARGE) > 2 * LARGE as u64);
    let expected = ["a", "k", "l", "m", "z"].map(|key| (key.to_owned(), LARGE));
    assert_eq!(values(&db), expected);
    db.close().unwrap();
    assert_eq!(values(&Db::open(folder.path().join("db")).unwrap()), expected);
}

#[test]
fn a_value_beside_a_large_one_is_replaced_and_deleted_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let db = unsynced(&folder.path().join("db"));
    written_by_put(&db, Fill::Auto, "large", LARGE);
    for len in [10, 2000, 10] {
        assert!(written_by_put(&db, Fill::Auto, "small", len) < 5 * 4096);
        assert_eq!(values(&db), [("large".to_owned(), LARGE), ("small".to_owned(), len)]);
    }
    db.update(|tx| tx.bucket_mut("b")?.delete("large")).unwrap();
    assert_eq!(values(&db), [("small".to_owned(), 10)]);
    assert_check_clean(&db, "without the large value");
}

#[test]
fn pages_of_large_values_move_when_the_file_shrinks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = unsynced(&file);
    for key in 0..40_u8 {
        db.update(|tx| tx.create_bucket_if_not_exists("b")?.put([key], vec![key; LARGE])).unwrap();
    }
    db.update(|tx| {
        let mut bucket = tx.bucket_mut("b")?;
        (0..30_u8).try_for_each(|key| bucket.delete([key]).map(drop))?;
        Ok::<_, Error>(())
    })
    .unwrap();
    let before = db.stats().pages;
    db.shrink().unwrap();
    assert!(db.stats().pages < before / 2, "{} pages of {before}", db.stats().pages);
    assert_check_clean(&db, "shrunk");
    let tx = db.begin().unwrap();
    let bucket = tx.bucket("b").unwrap();
    assert_eq!(bucket.count().unwrap(), 10);
    assert!((30..40_u8).all(|key| bucket.get([key]).unwrap() == Some(&vec![key; LARGE][..])));
}
