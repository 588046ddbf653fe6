//! A file whose values are replaced over and over, by values of the same size, grows to some size and no further.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use crate::common::random::Random;
use boltkv_storage::{Db, FreelistStored, Options};

const ENTRIES: usize = 12_000;
/// Small, so that the list of free pages is long for what is in the file.
const PAGE_SIZE: u32 = 1024;
/// The keys of one commit, in turns: a lone client's, some clients', a batch.
const AT_ONCE: [usize; 6] = [1, 40, 10, 1, 100, 1000];

fn key(n: usize) -> [u8; 8] {
    (n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

/// In the order that the keys do not have, in several commits: every page of it is written more than once.
fn loaded(stored: FreelistStored) -> Db {
    let db = Options::new().freelist(stored).page_size(PAGE_SIZE).open_in_memory().unwrap();
    db.update(|tx| tx.create_bucket("b").map(drop)).unwrap();
    for from in (0..ENTRIES).step_by(1200) {
        db.update(|tx| {
            let mut bucket = tx.bucket_mut("b")?;
            (from..from + 1200).try_for_each(|n| bucket.put(key(n), [7; 100]))
        })
        .unwrap();
    }
    db
}

/// Replaces values at random, as many as there are `times` over; returns the pages of the file.
fn overwrite(db: &Db, times: usize, random: &mut Random) -> u64 {
    let mut left = ENTRIES * times;
    for &at_once in AT_ONCE.iter().cycle() {
        if left == 0 {
            break;
        }
        let now = at_once.min(left);
        left -= now;
        db.update(|tx| {
            let mut bucket = tx.bucket_mut("b")?;
            (0..now).try_for_each(|_| bucket.put(key(random.below(ENTRIES)), [8; 100]))
        })
        .unwrap();
    }
    db.stats().pages
}

#[test]
fn a_file_under_overwrites_levels_off_wherever_the_free_pages_are_listed() {
    for stored in [FreelistStored::Always, FreelistStored::OnCleanClose, FreelistStored::Never] {
        let db = loaded(stored);
        let fresh = db.stats().pages;
        let mut random = Random::new(7);
        let after = overwrite(&db, 3, &mut random);
        assert!(after * 10 <= fresh * 21, "{stored:?}: {after} pages, {fresh} when it was loaded");
        let later = overwrite(&db, 3, &mut random);
        // A commit that happens to take more pages than any before it may still want a few.
        assert!(later * 100 <= after * 102, "{stored:?}: {later} pages after twice as much, {after} before");
        assert_eq!(db.check().unwrap(), []);
    }
}
