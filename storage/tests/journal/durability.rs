//! What a crash would leave, in each durability mode: a copy of the file is what a killed process leaves behind, because
//! nothing but the file outlasts it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::path::Path;
use std::time::{Duration, Instant};

use boltkv_storage::{Db, Durability, Error, FreelistStored, Options, Tx};

/// The keys of bucket `b` in a copy of the file, which is checked.
fn after_a_crash(file: &Path) -> Vec<String> {
    let copy = file.with_extension("copy");
    std::fs::copy(file, &copy).unwrap();
    let db = Db::open(&copy).unwrap();
    assert_eq!(db.check().unwrap(), []);
    keys(&db)
}

fn keys(db: &Db) -> Vec<String> {
    keys_of(&db.begin().unwrap())
}

fn keys_of(tx: &Tx) -> Vec<String> {
    match tx.bucket("b") {
        Ok(bucket) => bucket.iter().map(|entry| String::from_utf8_lossy(entry.unwrap().0).into_owned()).collect(),
        Err(Error::BucketNotFound { .. }) => Vec::new(),
        Err(other) => panic!("{other}"),
    }
}

fn put(db: &Db, key: &str) -> u64 {
    let mut tx = db.begin_mut().unwrap();
    tx.create_bucket_if_not_exists("b").unwrap().put(key, vec![7; 3000]).unwrap();
    tx.commit().unwrap()
}

#[test]
fn a_commit_that_always_syncs_is_in_the_file_when_it_returns() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Db::open(&file).unwrap();
    put(&db, "a");
    assert_eq!(after_a_crash(&file), ["a"]);
}

#[test]
fn without_syncs_readers_see_every_commit_and_the_file_the_last_sync_point() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Options::new().durability(Durability::Never).open(&file).unwrap();
    for key in ["a", "b", "c"] {
        put(&db, key);
    }
    assert_eq!(keys(&db), ["a", "b", "c"]);
    assert_eq!(after_a_crash(&file), [""; 0]);
    let synced = db.sync().unwrap();
    assert_eq!(after_a_crash(&file), ["a", "b", "c"]);
    assert_eq!(db.sync().unwrap(), synced, "nothing is left to sync");
    assert_eq!(put(&db, "d"), synced + 1);
    assert_eq!(after_a_crash(&file), ["a", "b", "c"]);
    drop(db);
    assert_eq!(after_a_crash(&file), ["a", "b", "c", "d"], "closing is a sync point");
}

#[test]
fn a_reader_keeps_the_file_locked_but_does_not_put_off_the_close() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let open = || Options::new().durability(Durability::Never).timeout(Duration::from_millis(20)).open(&file);
    let db = open().unwrap();
    put(&db, "seen");
    let reader = db.begin().unwrap();
    put(&db, "later");
    drop(db);
    assert_eq!(after_a_crash(&file), ["later", "seen"], "dropping the last handle is a sync point");
    assert!(matches!(open(), Err(Error::AlreadyOpen { .. })));
    assert_eq!(keys_of(&reader), ["seen"]);
    assert_eq!(reader.write_to(&mut Vec::new()).unwrap(), reader.size(), "the file is still open");
    drop(reader);
    assert_eq!(keys(&open().unwrap()), ["later", "seen"]);
}

#[test]
fn the_durable_state_outlives_any_number_of_unsynced_commits() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Options::new().durability(Durability::Never).open(&file).unwrap();
    put(&db, "kept");
    db.sync().unwrap();
    for round in 0..200 {
        put(&db, &format!("k{}", round % 7));
        if round % 20 == 0 {
            assert_eq!(after_a_crash(&file), ["kept"], "round {round}");
        }
    }
    let stats = db.stats();
    assert!(stats.pages < 60, "pages allocated and freed since the sync point are used again: {stats:?}");
    db.sync().unwrap();
    assert_eq!(after_a_crash(&file).len(), 8);
    assert_eq!(db.check().unwrap(), []);
}

#[test]
fn a_synced_commit_takes_the_unsynced_ones_before_it_along() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Db::open(&file).unwrap();
    for (round, unsynced) in [0, 1, 2, 3, 4].into_iter().enumerate() {
        for number in 0..unsynced {
            let mut tx = db.begin_mut().unwrap();
            tx.create_bucket_if_not_exists("b").unwrap().put(format!("{round}.{number}"), "").unwrap();
            tx.commit_with(Durability::Never).unwrap();
        }
        let id = put(&db, &format!("{round}.x"));
        assert_eq!(db.begin().unwrap().id(), id);
        assert_eq!(after_a_crash(&file), keys(&db), "round {round}");
    }
}

#[test]
fn every_so_many_commits_one_is_a_sync_point() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let durability = Durability::Interval { every: Duration::from_secs(3600), commits: 3 };
    let db = Options::new().durability(durability).open(&file).unwrap();
    let left: Vec<usize> = ["a", "b", "c", "d", "e", "f"]
        .into_iter()
        .map(|key| {
            put(&db, key);
            after_a_crash(&file).len()
        })
        .collect();
    assert_eq!(left, [0, 0, 3, 3, 3, 6]);
}

#[test]
fn after_the_interval_the_last_commit_is_durable_without_another() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let durability = Durability::Interval { every: Duration::from_millis(20), commits: u64::MAX };
    let db = Options::new().durability(durability).open(&file).unwrap();
    put(&db, "a");
    let deadline = Instant::now() + Duration::from_secs(30);
    while after_a_crash(&file).is_empty() {
        assert!(Instant::now() < deadline, "nobody synced");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_is_dropped_while_the_interval_syncs_it_is_in_the_file_and_can_be_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let durability = Durability::Interval { every: Duration::from_millis(1), commits: u64::MAX };
    for round in 0..100 {
        let db = Options::new().durability(durability).open(&file).unwrap();
        put(&db, "first");
        // So that some of them meet the sync of this one.
        std::thread::sleep(Duration::from_micros(900 + 10 * (round % 30)));
        let last = format!("last {round}");
        put(&db, &last);
        drop(db);
        assert!(after_a_crash(&file).contains(&last), "round {round}");
    }
}

#[test]
fn the_freelist_is_stored_by_a_clean_close_alone_if_so_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Options::new().freelist(FreelistStored::OnCleanClose).open(&file).unwrap();
    for key in ["a", "b", "c"] {
        put(&db, key);
    }
    let stored = |file: &Path| {
        let bytes = std::fs::read(file).unwrap();
        let metas = [&bytes[16..80], &bytes[4096 + 16..4096 + 80]];
        let newest = metas.into_iter().max_by_key(|meta| u64::from_le_bytes(meta[48..56].try_into().unwrap()));
        newest.unwrap()[32..40] != [0xFF; 8]
    };
    assert!(!stored(&file));
    assert_eq!(after_a_crash(&file), ["a", "b", "c"]);
    db.close().unwrap();
    assert!(stored(&file));
    assert_eq!(after_a_crash(&file), ["a", "b", "c"]);
}

#[test]
fn a_file_at_its_limit_refuses_what_would_make_it_grow_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Options::new().max_size(64 << 10).open(&file).unwrap();
    put(&db, "a");
    let mut tx = db.begin_mut().unwrap();
    tx.bucket_mut("b").unwrap().put("large", vec![0; 100_000]).unwrap();
    assert!(matches!(tx.commit(), Err(Error::MaxSizeReached { max: Some(65536) })));
    assert!(std::fs::metadata(&file).unwrap().len() <= 64 << 10);
    put(&db, "b");
    assert_eq!(after_a_crash(&file), ["a", "b"]);
}

/// Waits until a crash would leave these keys.
fn wait_for(file: &Path, keys: &[&str]) {
    for _ in 0..3_000 {
        if after_a_crash(file) == keys {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{keys:?} are never synced");
}

fn put_with(db: &Db, key: &str, durability: Durability) {
    let mut tx = db.begin_mut().unwrap();
    tx.create_bucket_if_not_exists("b").unwrap().put(key, "v").unwrap();
    tx.commit_with(durability).unwrap();
}

#[test]
fn a_single_commit_at_an_interval_is_synced_in_time_whatever_the_database_promises() {
    for durability in [Durability::Always, Durability::Never] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("db");
        let db = Options::new().durability(durability).open(&file).unwrap();
        let hours = Durability::Interval { every: Duration::from_secs(36_000), commits: u64::MAX };
        put_with(&db, "not in this test", hours);
        assert_eq!(after_a_crash(&file), [""; 0]);
        // It does not wait for what is due later.
        put_with(&db, "soon", Durability::Interval { every: Duration::from_millis(20), commits: u64::MAX });
        wait_for(&file, &["not in this test", "soon"]);
        put_with(&db, "then", Durability::Interval { every: Duration::from_millis(20), commits: u64::MAX });
        wait_for(&file, &["not in this test", "soon", "then"]);
    }
}

#[test]
fn an_interval_of_no_length_is_always() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let at_once = Durability::Interval { every: Duration::ZERO, commits: u64::MAX };
    let db = Options::new().durability(at_once).open(&file).unwrap();
    put_with(&db, "k", at_once);
    assert_eq!((db.stats().unsynced_commits, after_a_crash(&file)), (0, vec!["k".to_owned()]));
}
