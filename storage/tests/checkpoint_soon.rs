//! A checkpoint that is asked for, and that nobody waits for.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::time::{Duration, Instant};

use boltkv_storage::{Db, JournalOptions, Options};

const PATIENCE: Duration = Duration::from_secs(30);

fn put(db: &Db, key: u32) {
    db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(key.to_be_bytes(), vec![7; 3000])).unwrap();
}

#[test]
fn it_comes_soon_and_pages_that_were_free_since_the_last_can_be_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Options::new().journal(JournalOptions::new()).open(&file).unwrap();
    (0..50).for_each(|key| put(&db, key));
    let figures = || db.stats().journal.unwrap();
    let before = figures().checkpoints;
    assert!(figures().since_checkpoint > 0);
    db.checkpoint_soon();
    let asked = Instant::now();
    while figures().checkpoints == before {
        assert!(asked.elapsed() < PATIENCE, "it comes");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(figures().since_checkpoint, 0);
    let done = figures().checkpoints;
    db.checkpoint_soon();
    put(&db, 1);
    assert_eq!(figures().checkpoints, done, "there was nothing to do");
    assert_eq!(db.check().unwrap(), []);
}

#[test]
fn without_a_journal_it_is_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Db::open(&file).unwrap();
    put(&db, 1);
    db.checkpoint_soon();
    drop(db);
    Options::new().read_only(true).open(&file).unwrap().checkpoint_soon();
}
