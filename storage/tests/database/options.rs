//! Options and figures: each does what its documentation says.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::time::Duration;

use boltkv_storage::{Advice, Db, Error, Options};

fn fill(db: &Db, keys: u32) {
    db.update(|tx| {
        let mut bucket = tx.create_bucket_if_not_exists("b")?;
        (0..keys).try_for_each(|key| bucket.put(key.to_be_bytes(), [1; 100]))
    })
    .unwrap();
}

#[test]
fn stats_say_what_commits_did_and_who_reads() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path().join("db")).unwrap();
    let fresh = db.stats();
    assert_eq!((fresh.txid, fresh.pages, fresh.free_pages, fresh.commits.count), (1, 4, Some(0), 0));
    fill(&db, 1000);
    let filled = db.stats();
    assert_eq!((filled.txid, filled.commits.count, filled.commits.syncs), (2, 1, 2));
    assert!(filled.commits.splits > 20 && filled.commits.spills > filled.commits.splits);
    assert_eq!(filled.commits.pages_allocated, filled.pages - 4);
    assert_eq!((filled.commits.pages_freed, filled.pending_pages), (2, Some(2)));
    assert!(filled.commits.bytes_written >= 4096 * filled.commits.pages_allocated);
    assert!(filled.commits.sync_time > Duration::ZERO && filled.commits.time >= filled.commits.sync_time);
    assert!((filled.commits.sync_time / 2..filled.commits.sync_time).contains(&filled.commits.sync_longest), "of two");
    let readers = [db.begin().unwrap(), db.begin().unwrap()];
    assert_eq!(db.stats().open_readers, 2);
    assert_eq!(db.stats().oldest_reader_age, None, "they see the newest state");
    db.update(|tx| tx.bucket_mut("b")?.delete(6u32.to_be_bytes())).unwrap();
    assert!(db.stats().oldest_reader_age.is_some());
    let newer = db.begin().unwrap();
    assert_eq!(db.stats().open_readers, 3);
    let open = db.begin_mut().unwrap();
    assert!(db.stats().free_pages.is_some(), "also while a write transaction is open");
    drop((open, readers, newer));
    assert_eq!((db.stats().open_readers, db.stats().oldest_reader_age), (0, None));
    db.update(|tx| tx.bucket_mut("b")?.delete(5u32.to_be_bytes())).unwrap();
    assert_eq!(db.stats().commits.rebalances, 2);
}

#[test]
fn without_statistics_commits_are_not_counted() {
    let db = Options::new().statistics(false).open_in_memory().unwrap();
    fill(&db, 10);
    assert_eq!(db.stats().commits, boltkv_storage::CommitStats::default());
    assert_eq!(db.stats().txid, 2);
}

#[test]
fn a_read_only_database_tells_its_free_pages_if_the_freelist_was_pre_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Db::open(&file).unwrap();
    fill(&db, 100);
    drop(db);
    let free =
        |pre_load| Options::new().read_only(true).pre_load_freelist(pre_load).open(&file).unwrap().stats().free_pages;
    assert_eq!((free(false), free(true)), (None, Some(2)));
}

#[test]
fn a_strict_database_refuses_a_commit_that_would_leave_damage() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Db::open(&file).unwrap();
    fill(&db, 2000);
    let root = db.begin().unwrap().id();
    drop(db);
    // The last data page that was written is a leaf: its first key no longer belongs there.
    let mut bytes = std::fs::read(&file).unwrap();
    let leaf =
        (4..bytes.len() / 4096).find(|page| bytes[page * 4096 + 8] == 2 && bytes[page * 4096 + 10] > 10).unwrap();
    let key =
        leaf * 4096 + 16 + 16 * usize::from(u16::from_le_bytes([bytes[leaf * 4096 + 10], bytes[leaf * 4096 + 11]]));
    bytes[key] = 0xFF;
    std::fs::write(&file, bytes).unwrap();
    let strict = Options::new().strict(true).open(&file).unwrap();
    let refused = strict.update(|tx| tx.create_bucket("other").map(|_| ()));
    assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
    assert_eq!(strict.begin().unwrap().id(), root, "nothing was committed");
}

#[test]
fn maps_of_any_kind_and_size_show_the_same_content() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let options = [
        Options::new().populate(true),
        Options::new().advice(Advice::Normal),
        Options::new().initial_map_size(1 << 30).page_size(1024),
        Options::new().mlock(true),
    ];
    for (number, options) in options.into_iter().enumerate() {
        let db = options.open(&file).unwrap();
        fill(&db, 3000 * (1 + u32::try_from(number).unwrap()));
        assert_eq!(db.begin().unwrap().bucket("b").unwrap().iter().count(), 3000 * (1 + number));
        assert_eq!(db.check().unwrap(), []);
    }
}

#[test]
fn callbacks_are_called_after_a_commit_in_order_and_never_after_a_rollback() {
    let db = Options::new().open_in_memory().unwrap();
    let (sender, called) = std::sync::mpsc::channel();
    for committed in [false, true] {
        let mut tx = db.begin_mut().unwrap();
        for number in 0..2 {
            let (sender, db) = (sender.clone(), db.clone());
            // A write transaction can be begun in one: the one before is over.
            tx.on_commit(move || sender.send((number, db.begin_mut().unwrap().id())).unwrap());
        }
        if committed {
            tx.commit().unwrap();
        }
    }
    assert_eq!(called.try_iter().collect::<Vec<_>>(), [(0, 3), (1, 3)]);
}
