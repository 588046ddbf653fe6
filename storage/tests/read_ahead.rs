//! What is read in order is asked of the disk ahead: a scan and a check do not wait for one page after the other.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::fs::{self, File};
use std::path::Path;

use boltkv_storage::{CheckOptions, Db, Options};
use rustix::fs::Advice;

const ENTRIES: u32 = 50_000;

/// More than a thousand leaves, of which the system keeps nothing in memory.
fn cold(path: &Path) -> Db {
    if !path.exists() {
        let db = Db::open(path).unwrap();
        db.update(|tx| {
            let mut bucket = tx.create_bucket("b")?;
            (0..ENTRIES).try_for_each(|n| bucket.put(n.to_be_bytes(), [7; 100]))
        })
        .unwrap();
    }
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    Options::new().read_only(true).open(path).unwrap()
}

/// Pages that this thread has waited for the disk for: the twelfth field of `proc_pid_stat(5)`.
fn waits() -> u64 {
    let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(9).unwrap().parse().unwrap()
}

fn waits_of(work: impl FnOnce()) -> u64 {
    let before = waits();
    work();
    waits() - before
}

#[test]
fn a_scan_and_a_check_wait_for_few_pages_and_gets_for_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");

    let db = cold(&path);
    let gets = waits_of(|| {
        db.view(|tx| {
            let bucket = tx.bucket("b")?;
            (0..ENTRIES)
                .step_by(500)
                .try_for_each(|n| bucket.get(n.to_be_bytes()).map(|value| assert!(value.is_some())))
        })
        .unwrap();
    });
    drop(db);
    if gets == 0 {
        eprintln!("not shown: the file system of {} keeps its files in memory", folder.path().display());
        return;
    }
    assert!(gets >= 100, "a get read pages that nobody asked for: {gets} waits");

    let db = cold(&path);
    let there = waits_of(|| assert_eq!(db.begin().unwrap().bucket("b").unwrap().iter().count(), ENTRIES as usize));
    assert!(there <= 100, "{there} waits of a scan");
    drop(db);

    let db = cold(&path);
    let back = waits_of(|| assert_eq!(db.begin().unwrap().bucket("b").unwrap().iter().rev().count(), ENTRIES as usize));
    assert!(back <= 100, "{back} waits of a scan backwards");
    drop(db);

    let db = cold(&path);
    let one_thread = CheckOptions::new().threads(1);
    let check = waits_of(|| assert_eq!(db.begin().unwrap().check_with(&one_thread).unwrap(), []));
    assert!(check <= 100, "{check} waits of a check");
}
