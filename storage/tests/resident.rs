//! What a look-up would read can be looked for in memory, and brought there, without changing what it answers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs::File;
use std::path::Path;

use boltkv_storage::{Db, Durability, Error, Options};
use rustix::fs::{Advice, fadvise};

const KEYS: u64 = 20_000;

fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

/// Small values on several levels, one of many pages, and a bucket within the bucket.
fn make(path: &Path) {
    let db = Options::new().durability(Durability::Never).page_size(4096).open(path).unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..KEYS).try_for_each(|n| bucket.put(key(n), [7; 200]))?;
        bucket.put("large", vec![9; 300_000])?;
        bucket.create_bucket("inline")?.put("k", "v")
    })
    .unwrap();
    db.close().unwrap();
}

/// Has the system drop what it keeps of the file, which nobody has open. Not everywhere does it: see [`make_cold`].
fn evict(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
}

/// A file of which little is in memory; `None` where files are always in memory, as in a folder of that kind.
fn make_cold(path: &Path) -> Option<Db> {
    make(path);
    evict(path);
    let db = Db::open(path).unwrap();
    let is_cold = {
        let tx = db.begin().unwrap();
        let bucket = tx.bucket("b").unwrap();
        (0..KEYS).filter(|n| !bucket.is_resident(key(*n))).count() > 0
    };
    if !is_cold {
        let _ = std::io::Write::write_all(&mut std::io::stderr(), b"skipped: files stay in memory here\n");
    }
    is_cold.then_some(db)
}

#[test]
fn what_was_brought_in_is_there_and_is_what_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let Some(db) = make_cold(&folder.path().join("test.db")) else { return };
    let tx = db.begin().unwrap();
    let bucket = tx.bucket("b").unwrap();
    let wanted: Vec<_> = (0..KEYS).step_by(10).map(key).collect();
    let is_cold = |key: &[u8; 8]| !bucket.is_resident(key);
    assert!(wanted.iter().any(is_cold));
    bucket.fault_in(&wanted);
    let dropped = wanted.iter().filter(|key| is_cold(key)).count();
    assert!(dropped < wanted.len() / 10, "{dropped} of {} are not there", wanted.len());
    assert!(wanted.iter().all(|key| bucket.get(key).unwrap() == Some(&[7; 200])));
    let others = (0..KEYS).filter(|n| n % 10 != 0).map(key).filter(is_cold).count();
    assert!(others > 0, "nothing is read that nobody asked for");
}

#[test]
fn a_value_of_many_pages_is_brought_in_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let Some(db) = make_cold(&folder.path().join("test.db")) else { return };
    let tx = db.begin().unwrap();
    let bucket = tx.bucket("b").unwrap();
    assert!(!bucket.is_resident("large"));
    bucket.fault_in(&["large"]);
    assert!(bucket.is_resident("large"));
    assert_eq!(bucket.get("large").unwrap(), Some(vec![9; 300_000].as_slice()));
}

#[test]
fn a_snapshot_brings_in_its_own_pages_whatever_was_written_since() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.db");
    make(&path);
    let db = Db::open(&path).unwrap();
    let old = db.begin().unwrap();
    db.update(|tx| {
        let mut bucket = tx.bucket_mut("b")?;
        (0..KEYS).step_by(3).try_for_each(|n| bucket.put(key(n), [8; 200]))?;
        bucket.delete("large").map(drop)
    })
    .unwrap();
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    let new = db.begin().unwrap();
    for (tx, value, large) in [(&old, [7; 200], true), (&new, [8; 200], false)] {
        let bucket = tx.bucket("b").unwrap();
        bucket.prefetch(&keys);
        bucket.fault_in(&keys);
        bucket.fault_in(&["large"]);
        assert!((0..KEYS).step_by(3).all(|n| bucket.get(key(n)).unwrap() == Some(&value)));
        assert_eq!(bucket.get("large").unwrap().is_some(), large);
    }
}

#[test]
fn what_lies_in_memory_or_nowhere_is_not_waited_for() {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        bucket.create_bucket("inline")?.put("k", "v")?;
        (0..1000).try_for_each(|n| bucket.put(key(n), [7; 200]))?;
        // What this transaction has changed lies in no page.
        let read = bucket.as_bucket();
        assert!(read.is_resident(key(1)));
        read.fault_in(&[key(1), key(2)]);
        read.prefetch(&[key(1), key(2)]);
        assert_eq!(read.get(key(1))?, Some(&[7; 200][..]));
        Ok::<_, Error>(())
    })
    .unwrap();
    let tx = db.begin().unwrap();
    let bucket = tx.bucket("b").unwrap();
    let inline = bucket.bucket("inline").unwrap();
    for (bucket, key) in [(bucket, &key(3)[..]), (bucket, b""), (bucket, &[0xff; 400]), (inline, b"k"), (inline, b"?")]
    {
        assert!(bucket.is_resident(key));
        bucket.fault_in(&[key, key]);
        bucket.prefetch(&[key, key]);
        bucket.fault_in(&[] as &[&[u8]]);
        bucket.prefetch(&[] as &[&[u8]]);
    }
}

#[test]
fn a_backup_gives_back_what_was_not_in_memory_before_it_and_leaves_what_was() {
    let folder = tempfile::tempdir().unwrap();
    let Some(db) = make_cold(&folder.path().join("test.db")) else { return };
    let tx = db.begin().unwrap();
    let bucket = tx.bucket("b").unwrap();
    let hot: Vec<_> = (0..KEYS).step_by(100).map(key).collect();
    assert!(hot.iter().all(|key| bucket.get(key).unwrap().is_some()));
    let cold = || (0..KEYS).filter(|n| !bucket.is_resident(key(*n))).count();
    let before = cold();
    tx.write_to(&mut std::io::sink()).unwrap();
    assert!(cold() * 10 >= before * 9, "of {before} that were not there, {} are", before - cold());
    assert!(hot.iter().all(|key| bucket.is_resident(key)), "what is in use stays");
}
