//! Shrinking a file ends, and leaves a sound file with all that was in it, however the pages lie.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use boltkv_storage::{Db, FreelistStored, Options};
use common::random::Random;
use common::{assert_check_clean, committed};

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
