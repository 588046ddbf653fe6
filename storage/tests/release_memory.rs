//! Memory of the map that is given back is no longer held, and what is read after it is the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use boltkv_storage::{CheckOptions, Options, Tx};
use std::fs;
use std::path::Path;

const ENTRIES: u32 = 4000;
const VALUE: usize = 3000;

fn read_all(tx: &Tx) -> u64 {
    let bucket = tx.bucket("b").unwrap();
    let entries = bucket.iter().map(|entry| entry.unwrap().1.unwrap());
    entries.map(|value| value.iter().map(|&byte| u64::from(byte)).sum::<u64>()).sum()
}

/// Bytes of a file that this process holds mapped and in memory; `None` where the system does not tell.
fn held(file: &Path) -> Option<u64> {
    let maps = fs::read_to_string("/proc/self/smaps").ok()?;
    let mut lines = maps.lines();
    let mut held = 0;
    while let Some(line) = lines.next() {
        if line.ends_with(file.to_str().unwrap()) {
            let rss = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
            held += rss.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024;
        }
    }
    Some(held)
}

#[test]
fn what_is_given_back_is_not_held_and_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large.db");
    let db = Options::new().open(&file).unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..ENTRIES).try_for_each(|number| bucket.put(number.to_be_bytes(), [7; VALUE]))
    })
    .unwrap();
    drop(db);
    // Mapped under its own name: a new file is mapped under the one that it had at first.
    let db = Options::new().open(&file).unwrap();
    let tx = db.begin().unwrap();
    let (other, bytes) = (db.begin().unwrap(), u64::from(ENTRIES) * VALUE as u64);
    assert_eq!(read_all(&tx), 7 * bytes);
    let before = held(&file);
    tx.release_memory();
    if let (Some(before), Some(after)) = (before, held(&file)) {
        assert!(before > bytes && after < bytes / 10, "{before} bytes held before, {after} after");
    }
    assert_eq!((read_all(&tx), read_all(&other)), (7 * bytes, 7 * bytes));
    // Also in the middle of a walk by several threads.
    let options = CheckOptions::new().threads(3);
    let give_back = |pages: u64| {
        if pages.is_multiple_of(500) {
            tx.release_memory();
        }
    };
    assert_eq!(tx.check_with(&options.progress(&give_back)).unwrap(), []);
}

#[test]
fn a_database_in_memory_keeps_what_it_has() {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| tx.create_bucket("b")?.put("k", [7; VALUE])).unwrap();
    let tx = db.begin().unwrap();
    tx.release_memory();
    assert_eq!(read_all(&tx), 7 * VALUE as u64);
}
