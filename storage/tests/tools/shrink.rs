//! Shrinking a file ends, and leaves a sound file with all that was in it, however the pages lie.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::random::Random;
use crate::common::{assert_check_clean, committed};
use boltkv_storage::{Db, FreelistStored, Options};

/// Some transactions that put and delete values of up to a page.
fn churn(db: &Db, random: &mut Random) {
    for _ in 0..2 + random.below(30) {
        let mut tx = db.begin_mut().unwrap();
        let mut bucket = tx.create_bucket_if_not_exists("b").unwrap();
        for _ in 0..=random.below(12) {
            let key = u64::try_from(random.below(60)).unwrap().to_be_bytes();
            if random.once_in(2) {
                bucket.delete(key).unwrap();
            } else {
                let len = random.below(900);
                bucket.put(key, random.bytes(len)).unwrap();
            }
        }
        tx.commit().unwrap();
    }
}

/// A rewrite of a high leaf takes the branches above it along. A low one could come to lie high by that, was moved down
/// again with another leaf in the next round, and so on for ever.
#[test]
fn it_ends_where_pages_that_are_moved_down_push_others_up() {
    for seed in 0..200 {
        for stored in [FreelistStored::Always, FreelistStored::Never] {
            let db = Options::new().page_size(1024).freelist(stored).open_in_memory().unwrap();
            let mut random = Random::new(seed);
            for _ in 0..2 {
                churn(&db, &mut random);
                let before = committed(&db);
                let commits = db.begin().unwrap().id();
                db.shrink().unwrap();
                let commits = db.begin().unwrap().id() - commits;
                assert!(commits < 60, "seed {seed}: {commits} commits for a file of some dozens of pages");
                assert!(committed(&db) == before, "seed {seed}");
                assert_check_clean(&db, "shrunk");
            }
        }
    }
}

#[test]
fn a_clean_close_leaves_the_file_as_small_as_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shrunk.db");
    let db = Options::new().freelist(FreelistStored::OnCleanClose).open(&file).unwrap();
    let key = |number: u32| number.to_be_bytes();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..300).try_for_each(|number| bucket.put(key(number), vec![b'v'; 100_000]))
    })
    .unwrap();
    db.update(|tx| (1..300).try_for_each(|number| tx.bucket_mut("b")?.delete(key(number)).map(drop))).unwrap();
    db.shrink().unwrap();
    let shrunk = std::fs::metadata(&file).unwrap().len();
    assert!(shrunk < 1 << 20, "{shrunk}");
    // The list of free pages has no place yet.
    db.close().unwrap();
    let closed = std::fs::metadata(&file).unwrap().len();
    assert!(closed < shrunk + (1 << 18), "{shrunk} bytes before, {closed} when closed");
    assert_check_clean(&Db::open(&file).unwrap(), "closed");
}
