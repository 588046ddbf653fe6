//! What a database tells of its journal.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::time::Duration;

use boltkv_storage::{Durability, JournalOptions, Options, Tx};

#[test]
fn the_figures_tell_every_sync_and_every_file() {
    let folder = tempfile::tempdir().unwrap();
    let journal = JournalOptions::new().checkpoint_size(256 << 10);
    let options = Options::new().journal(journal).durability(Durability::Never);
    let db = options.open(folder.path().join("app.db")).unwrap();
    db.update(|tx| tx.create_bucket("b")?.put("a", "1")).unwrap();
    let before = db.stats().commits.syncs;
    db.sync().unwrap();
    assert_eq!(db.stats().commits.syncs, before + 1, "one that is no commit's");
    let journal = || db.stats().journal.unwrap();
    assert_eq!(journal().checkpoint_size, 256 << 10);
    let files = || std::fs::read_dir(folder.path().join("app.db-journal")).unwrap().count() as u64;
    // One may be about to be made, by a thread; it counts from the next commit on.
    let told = (0..10_000).any(|_| {
        std::thread::sleep(Duration::from_millis(1));
        db.update(|tx| tx.bucket_mut("b")?.put("a", "1")).unwrap();
        files() == journal().segments
    });
    assert!(told, "{} files, told are {}", files(), journal().segments);
}

/// How many pages opening allocates, for a journal in which each leaf is changed many times.
#[test]
fn opening_writes_each_leaf_for_many_of_its_changes() {
    for durability in [Durability::Never, Durability::Interval { every: Duration::from_millis(10), commits: 1000 }] {
        let (allocated, leaves) = pages_of_opening(durability);
        let bound = leaves * 3 / 2;
        assert!(allocated < bound, "{allocated} pages for {leaves} leaves, each of which was changed thirty times");
    }
}

/// How many pages an opening allocates, and how many leaves there are.
fn pages_of_opening(durability: Durability) -> (u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let journal = JournalOptions::new().memory(64 << 20).checkpoint_size(1 << 30);
    let options = Options::new().journal(journal).durability(durability);
    let db = options.open(&path).unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..6000_u32).try_for_each(|key| bucket.put(key.to_be_bytes(), [0; 1000]))
    })
    .unwrap();
    db.checkpoint().unwrap();
    let leaves = db.view(|tx| Ok(tx.bucket("b")?.stats()?.leaf_pages)).unwrap();
    for round in 1..6 {
        let values = |key: u32| (key.to_be_bytes(), [round; 1000]);
        for keys in 0..6_u32 {
            let keys = (0..1000).map(|key| key * 6 + keys);
            db.update(|tx| keys.map(values).try_for_each(|(key, value)| tx.bucket_mut("b")?.put(key, value))).unwrap();
        }
    }
    let killed = folder.path().join("killed.db");
    crate::common::copy_as_killed(&path, &killed);
    let db = options.open(&killed).unwrap();
    let values =
        |tx: &Tx| Ok(tx.bucket("b")?.iter().filter(|entry| entry.as_ref().unwrap().1.unwrap()[0] == 5).count());
    assert_eq!(db.view(values).unwrap(), 6000);
    let (replayed, allocated) = (db.stats().journal.unwrap().replayed, db.stats().commits.pages_allocated);
    assert!(replayed >= 30, "{replayed}");
    (allocated, leaves)
}
