//! What small transactions cost beyond their time: system calls, which the disk sees, and allocations.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use allocation_counter::measure;
use boltkv_storage::{Db, FreelistStored, Options};

const ENTRIES: u32 = 20_000;
const COMMITS: u32 = 500;

fn key(n: u32) -> [u8; 4] {
    n.wrapping_mul(0x9E37_79B1).to_be_bytes()
}

/// A tree of three levels, and pages that were freed.
fn loaded(folder: &tempfile::TempDir, stored: FreelistStored) -> Db {
    let db = Options::new().freelist(stored).open(folder.path().join("db")).unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..ENTRIES).try_for_each(|n| bucket.put(key(n), [7; 100]))
    })
    .unwrap();
    // The first commits after a load get the memory that the next ones keep.
    (0..50).for_each(|n| put(&db, n));
    db
}

fn put(db: &Db, n: u32) {
    db.update(|tx| tx.bucket_mut("b")?.put(key(n % ENTRIES), [8; 100])).unwrap();
}

#[test]
fn a_commit_of_one_put_is_two_syncs_and_few_writes() {
    for stored in [FreelistStored::Always, FreelistStored::OnCleanClose, FreelistStored::Never] {
        let folder = tempfile::tempdir().unwrap();
        let db = loaded(&folder, stored);
        let before = db.stats().commits;
        (0..COMMITS).for_each(|n| put(&db, n));
        let after = db.stats().commits;
        assert_eq!(after.syncs - before.syncs, 2 * u64::from(COMMITS), "{stored:?}");
        // The way to the leaf lies in one run, the leaf with it or elsewhere; the meta is one more.
        let writes = after.writes - before.writes;
        assert!(writes <= 4 * u64::from(COMMITS), "{stored:?}: {writes} writes in {COMMITS} commits");
    }
}

#[test]
fn a_commit_of_one_put_allocates_nothing() {
    for stored in [FreelistStored::Always, FreelistStored::OnCleanClose, FreelistStored::Never] {
        let folder = tempfile::tempdir().unwrap();
        let db = loaded(&folder, stored);
        let allocated = measure(|| (0..COMMITS).for_each(|n| put(&db, n)));
        assert_eq!(allocated.count_total, 0, "{stored:?}");
    }
}

/// Keys that are not there, on ways that begin with pages and on ways that begin with nodes.
#[test]
fn to_delete_what_is_not_there_writes_no_page() {
    let folder = tempfile::tempdir().unwrap();
    let db = loaded(&folder, FreelistStored::OnCleanClose);
    let pages = |missing: u32| {
        let before = db.stats().commits.pages_allocated;
        db.update(|tx| {
            let mut bucket = tx.bucket_mut("b")?;
            bucket.put(key(1), [9; 100])?;
            (0..missing).try_for_each(|n| bucket.delete([&key(n)[..], b"-"].concat()).map(|was| assert!(!was)))
        })
        .unwrap();
        db.stats().commits.pages_allocated - before
    };
    assert_eq!(pages(0), pages(ENTRIES));
}

/// So many buckets, each in the one before, behind pages that are free.
fn nested(levels: u32) -> Db {
    let db = Options::new().page_size(1024).open_in_memory().unwrap();
    db.update(|tx| tx.create_bucket("gone")?.put("large", vec![1; 2048 * levels as usize])).unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?.handle();
        for _ in 1..levels {
            bucket = tx.at_mut(bucket)?.create_bucket("b")?.handle();
        }
        tx.at_mut(bucket)?.put("k", [2; 500])
    })
    .unwrap();
    db.update(|tx| tx.delete_bucket("gone")).unwrap();
    db
}

#[test]
fn to_shrink_nested_buckets_costs_as_much_more_as_there_are_more() {
    let costs = [4000, 16_000].map(|levels| {
        let db = nested(levels);
        let before = db.stats();
        let allocated = measure(|| assert!(db.shrink().unwrap().moved >= u64::from(levels)));
        let after = db.stats();
        assert!(after.pages < before.pages - u64::from(levels), "{levels}");
        (allocated.count_total, after.commits.bytes_written - before.commits.bytes_written)
    });
    let [(few, little), (many, much)] = costs;
    assert!(many < 6 * few && much < 6 * little, "four times as many levels: {costs:?}");
}

#[test]
fn a_get_in_a_transaction_of_its_own_allocates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let db = loaded(&folder, FreelistStored::Always);
    let get = |n: u32| assert!(db.view(|tx| tx.bucket("b")?.get(key(n)).map(|value| value.is_some())).unwrap());
    get(0);
    assert_eq!(measure(|| (0..COMMITS).for_each(get)).count_total, 0);
}
