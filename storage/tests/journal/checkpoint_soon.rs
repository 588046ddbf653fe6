//! A checkpoint that is asked for, or due, and that nobody waits for.
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

/// The time that was noted for what was committed first is over before that of what comes after the checkpoint.
#[test]
fn one_by_time_comes_also_where_another_came_in_between() {
    let folder = tempfile::tempdir().unwrap();
    let journal = JournalOptions::new().checkpoint_every(Duration::from_millis(300));
    let db = Options::new().journal(journal).open(folder.path().join("db")).unwrap();
    put(&db, 1);
    std::thread::sleep(Duration::from_millis(100));
    db.checkpoint().unwrap();
    put(&db, 2);
    let committed = Instant::now();
    while db.stats().journal.unwrap().since_checkpoint > 0 {
        assert!(committed.elapsed() < PATIENCE, "it comes");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_least_memory_is_some() {
    let folder = tempfile::tempdir().unwrap();
    for memory in [1, JournalOptions::LEAST_MEMORY] {
        let journal = JournalOptions::new().memory(memory);
        let db = Options::new().journal(journal).open(folder.path().join(memory.to_string())).unwrap();
        (0..100_u32)
            .for_each(|key| db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(key.to_be_bytes(), "v")).unwrap());
        assert_eq!(db.begin().unwrap().bucket("b").unwrap().count().unwrap(), 100);
        assert_eq!(db.stats().journal.unwrap().memory, JournalOptions::LEAST_MEMORY as u64);
    }
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
