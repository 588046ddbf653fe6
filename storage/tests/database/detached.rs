//! Deleting a large bucket: it is gone at once, its pages are freed in steps, and none is lost or used too early.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::path::Path;

use crate::common::peer::peer;
use boltkv_storage::{BucketMut, Db, FreelistStored, Options, Result};

/// Neither our check nor bbolt's finds anything wrong with a file that nobody has open.
fn assert_check_clean(file: &Path) {
    let db = Options::new().read_only(true).open(file).unwrap();
    assert_eq!(db.check().unwrap(), []);
    drop(db);
    if let Some(peer) = peer() {
        peer.assert_check_clean(file, "after a bucket was deleted");
    }
}

/// Several thousand pages, in a tree of three levels.
const KEYS: u32 = 20_000;
/// More than are freed at once.
const MOST_AT_ONCE: u64 = 300;
const MODES: [FreelistStored; 2] = [FreelistStored::Always, FreelistStored::OnCleanClose];

fn open(file: &Path, stored: FreelistStored) -> Db {
    Options::new().freelist(stored).open(file).unwrap()
}

fn fill(bucket: &mut BucketMut<'_>, keys: u32) -> Result<()> {
    (0..keys).try_for_each(|n| bucket.put(n.to_be_bytes(), [7; 500]))
}

/// A bucket with a large one and some small ones in it, and another one beside it.
fn loaded(file: &Path, stored: FreelistStored) -> Db {
    let db = open(file, stored);
    db.update(|tx| {
        fill(&mut tx.create_bucket("kept")?, 100)?;
        let mut large = tx.create_bucket("large")?;
        fill(&mut large, KEYS)?;
        for n in 0..10_u32 {
            large.create_bucket([b"small", &n.to_be_bytes()[..]].concat())?.put("k", vec![8; 100 * n as usize])?;
        }
        fill(&mut large.create_bucket("within")?, KEYS)
    })
    .unwrap();
    db
}

fn unused(db: &Db) -> u64 {
    let stats = db.stats();
    stats.free_pages.unwrap() + stats.pending_pages.unwrap()
}

/// Pages that nothing refers to, as whoever opens the file finds them. The file is copied as a crash would leave it.
fn unused_after_crash(file: &Path) -> u64 {
    let copy = file.with_extension("copy");
    std::fs::copy(file, &copy).unwrap();
    assert_check_clean(&copy);
    let db = open(&copy, FreelistStored::Never);
    let stats = db.stats();
    assert!(db.begin().unwrap().bucket("large").is_err());
    stats.free_pages.unwrap()
}

fn put(db: &Db, n: u32) {
    db.update(|tx| tx.bucket_mut("kept")?.put(n.to_be_bytes(), [9; 500])).unwrap();
}

#[test]
fn it_is_gone_at_once_and_its_pages_are_freed_by_the_transactions_that_follow() {
    for stored in MODES {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("db");
        let db = loaded(&file, stored);
        let before = db.stats();
        db.update(|tx| tx.delete_bucket("large")).unwrap();
        let freed = db.stats().commits.pages_freed - before.commits.pages_freed;
        assert!(freed <= MOST_AT_ONCE, "{stored:?}: {freed} pages were freed at once");
        let all = unused_after_crash(&file);
        assert!(all > 5000, "{stored:?}: {all} pages are unused");
        let mut last = unused(&db);
        for n in 0..100_000 {
            put(&db, n % 100);
            let now = unused(&db);
            assert!(now - last < 200, "{stored:?}: {} pages were freed in one step", now - last);
            if now == last {
                break;
            }
            last = now;
        }
        // What the puts took is the tree of the bucket that stayed, and the list.
        assert!(last + 20 >= all, "{stored:?}: {last} pages of {all}");
        assert!(db.stats().pages <= before.pages + 50, "{stored:?}: the file has grown");
        unused_after_crash(&file);
        drop(db);
        assert_check_clean(&file);
        assert_eq!(Db::open(&file).unwrap().check().unwrap(), [], "{stored:?}");
    }
}

#[test]
fn a_crash_or_a_clean_close_on_the_way_leaves_no_page_unaccounted_for() {
    for stored in MODES {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("db");
        let db = loaded(&file, stored);
        db.update(|tx| tx.delete_bucket("large")).unwrap();
        for n in 0..20 {
            put(&db, n);
            db.sync().unwrap();
            unused_after_crash(&file);
        }
        let all = unused_after_crash(&file);
        db.close().unwrap();
        // The list is stored, and whole: the check compares it with what is in use.
        assert_check_clean(&file);
        let db = open(&file, stored);
        assert_eq!(db.check().unwrap(), []);
        assert!(db.stats().free_pages.unwrap() + 20 >= all, "{stored:?}");
    }
}

#[test]
fn a_snapshot_that_sees_it_keeps_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = loaded(&file, FreelistStored::OnCleanClose);
    let reader = db.begin().unwrap();
    db.update(|tx| tx.delete_bucket("large")).unwrap();
    for n in 0..400 {
        put(&db, n % 100);
    }
    assert!(db.stats().pending_pages.unwrap() > 5000, "they wait for the reader");
    db.update(|tx| fill(&mut tx.create_bucket("more")?, KEYS)).unwrap();
    assert_eq!(reader.check().unwrap(), []);
    let large = reader.bucket("large").unwrap();
    assert!(large.bucket("within").unwrap().iter().all(|entry| entry.unwrap().1 == Some(&[7; 500])));
    assert_eq!(large.bucket("within").unwrap().iter().count(), KEYS as usize);
}

#[test]
fn what_is_taken_back_is_not_freed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = loaded(&file, FreelistStored::Always);
    let mut tx = db.begin_mut().unwrap();
    tx.delete_bucket("large").unwrap();
    drop(tx);
    let mut tx = db.begin_mut().unwrap();
    let before = tx.savepoint();
    tx.delete_bucket("large").unwrap();
    tx.rollback_to(&before).unwrap();
    tx.bucket_mut("large").unwrap().put("k", "v").unwrap();
    tx.commit().unwrap();
    for n in 0..200 {
        put(&db, n % 100);
    }
    assert_eq!(db.check().unwrap(), []);
    assert_eq!(db.begin().unwrap().bucket_path(["large", "within"]).unwrap().iter().count(), KEYS as usize);
    drop(db);
    assert_check_clean(&file);
}

#[test]
fn what_was_changed_in_it_before_is_freed_once() {
    for stored in MODES {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("db");
        let db = loaded(&file, stored);
        db.update(|tx| {
            let mut within = tx.bucket_mut_path(["large", "within"])?;
            for n in (0..KEYS).step_by(3) {
                within.delete(n.to_be_bytes())?;
            }
            let _ = within.delete_range(10_000_u32.to_be_bytes()..15_000_u32.to_be_bytes(), usize::MAX)?;
            tx.move_bucket("within", &["large"], &["kept"])?;
            tx.delete_bucket("large")?;
            tx.move_bucket("within", &["kept"], &[])?;
            tx.delete_bucket("within")?;
            fill(&mut tx.create_bucket("large")?, 10)?;
            tx.delete_bucket("large")
        })
        .unwrap();
        let all = unused_after_crash(&file);
        for n in 0..400 {
            put(&db, n % 100);
        }
        assert!(unused(&db) + 20 >= all, "{stored:?}");
        drop(db);
        assert_check_clean(&file);
        assert_eq!(Db::open(&file).unwrap().check().unwrap(), [], "{stored:?}");
    }
}

#[test]
fn a_file_that_is_made_smaller_has_no_room_for_it_left() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = loaded(&file, FreelistStored::Always);
    db.update(|tx| tx.delete_bucket("large")).unwrap();
    let shrunk = db.shrink().unwrap();
    assert!(shrunk.after < 1 << 20, "{shrunk:?}");
    drop(db);
    assert_check_clean(&file);
}
