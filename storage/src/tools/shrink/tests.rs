//! What shrinking leaves: everything, sound, and in less room.

use std::rc::Rc;

use super::Nested;
use crate::{Db, Options};

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// 2,000 keys in two buckets, one of which is deleted again.
fn half_empty(db: &Db) {
    db.update(|tx| {
        tx.create_bucket("gone")?.put("large", vec![1; 400_000])?;
        let mut kept = tx.create_bucket("kept")?;
        for number in 0..2000 {
            kept.put(key(number), vec![2; 100])?;
        }
        let mut inner = kept.create_bucket("inner")?;
        for number in 0..500 {
            inner.put(key(number), vec![3; 200])?;
        }
        inner.put("overflow", vec![4; 20_000])
    })
    .unwrap();
    db.update(|tx| tx.delete_bucket("gone")).unwrap();
}

fn assert_all_there(db: &Db) {
    let tx = db.begin().unwrap();
    let kept = tx.bucket("kept").unwrap();
    assert_eq!(kept.iter().count(), 2001);
    let inner = kept.bucket("inner").unwrap();
    assert!((0..500).all(|number| inner.get(key(number)).unwrap() == Some(&[3; 200])));
    assert_eq!(inner.get("overflow").unwrap().map(<[u8]>::len), Some(20_000));
    assert_eq!(tx.check().unwrap(), []);
}

/// With one meta damaged, the other one must still lead to everything.
fn assert_either_meta_opens(file: &std::path::Path) {
    for meta in 0..2 {
        let mut bytes = std::fs::read(file).unwrap();
        bytes[meta * 4096 + 20] ^= 0xFF;
        let damaged = file.with_extension("damaged");
        std::fs::write(&damaged, bytes).unwrap();
        // The older one may say that a journal may hold more.
        let alone = crate::JournalOptions::new().discard(true);
        assert_all_there(&crate::Options::new().journal(alone).open(&damaged).unwrap());
    }
}

#[test]
fn a_half_empty_file_becomes_about_as_small_as_what_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Db::open(&file).unwrap();
    half_empty(&db);
    let used = 4096 * (db.stats().pages - db.stats().free_pages.unwrap() - db.stats().pending_pages.unwrap());
    let shrunk = db.shrink().unwrap();
    assert_eq!(shrunk.after, std::fs::metadata(&file).unwrap().len());
    assert!(shrunk.after < shrunk.before && shrunk.after <= used + 16 * 4096, "{shrunk:?}, {used} used");
    assert_all_there(&db);
    let again = db.shrink().unwrap();
    assert!(again.after <= shrunk.after, "{again:?} after {shrunk:?}");
    drop(db);
    let db = Db::open(&file).unwrap();
    assert_all_there(&db);
    db.update(|tx| tx.create_bucket("more")?.put("k", vec![0; 1_000_000])).unwrap();
    assert_all_there(&db);
}

#[test]
fn either_meta_alone_opens_the_file_that_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Db::open(&file).unwrap();
    half_empty(&db);
    db.shrink().unwrap();
    drop(db);
    assert_either_meta_opens(&file);
}

#[test]
fn commits_that_are_not_synced_are_taken_along() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Options::new().durability(crate::Durability::Never).open(&file).unwrap();
    half_empty(&db);
    let shrunk = db.shrink().unwrap();
    assert!(shrunk.after < shrunk.before, "{shrunk:?}");
    assert_either_meta_opens(&file);
}

#[test]
fn it_tells_how_far_it_is_and_ends_when_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Options::new().journal(crate::JournalOptions::new()).open(&file).unwrap();
    half_empty(&db);
    db.update(|tx| {
        let mut kept = tx.bucket_mut("kept")?;
        (0..9000_u32).try_for_each(|number| kept.put(number.to_le_bytes(), vec![5; 900]))
    })
    .unwrap();
    db.update(|tx| {
        let mut kept = tx.bucket_mut("kept")?;
        (0..9000_u32).filter(|number| number % 4 > 0).try_for_each(|number| kept.delete(number.to_le_bytes()).map(drop))
    })
    .unwrap();
    let mut told = Vec::new();
    let ended = db
        .shrink_telling(|at| {
            told.push(at);
            false
        })
        .unwrap();
    assert_eq!((told.len(), ended.moved), (1, told[0].moved));
    assert!(ended.moved > 0 && told[0].left > 0 && ended.after <= ended.before, "{ended:?} {told:?}");
    told.clear();
    let shrunk = db
        .shrink_telling(|at| {
            told.push(at);
            true
        })
        .unwrap();
    assert!(shrunk.after < ended.after, "{shrunk:?}");
    assert!(told.len() > 1 && told.is_sorted_by_key(|at| at.moved), "{told:?}");
    assert_eq!(told.last().unwrap().moved, shrunk.moved);
    assert_eq!(db.begin().unwrap().check().unwrap(), []);
}

#[test]
fn meanwhile_a_commit_of_others_is_one_sync_of_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Options::new().journal(crate::JournalOptions::new()).open(&file).unwrap();
    half_empty(&db);
    let mut syncs = Vec::new();
    let shrunk = db
        .shrink_telling(|_| {
            let before = db.stats().commits.syncs;
            db.update(|tx| tx.bucket_mut("kept")?.put(key(7), vec![2; 100])).unwrap();
            syncs.push(db.stats().commits.syncs - before);
            true
        })
        .unwrap();
    assert!(!syncs.is_empty() && syncs.iter().all(|&syncs| syncs == 1), "{syncs:?}");
    assert!(shrunk.after < shrunk.before, "{shrunk:?}");
    assert_all_there(&db);
    db.close().unwrap();
    assert_either_meta_opens(&file);
}

#[test]
fn what_a_reader_can_see_is_not_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Db::open(&file).unwrap();
    half_empty(&db);
    let reader = db.begin().unwrap();
    let shrunk = db.shrink().unwrap();
    assert!(shrunk.after >= reader.size());
    assert_eq!(reader.bucket("kept").unwrap().iter().flatten().count(), 2001);
    assert_eq!(reader.check().unwrap(), []);
    drop(reader);
    let later = db.shrink().unwrap();
    assert!(later.after < shrunk.after, "{later:?} after {shrunk:?}");
    assert_all_there(&db);
}

#[test]
fn buckets_nested_deeper_than_a_stack_is_are_let_go() {
    let nest = |parent, _| Some(Rc::new(Nested::new(parent, Vec::new())));
    let deepest = (0..=1_000_000).fold(None, nest);
    assert_eq!(deepest.as_ref().map(|bucket| bucket.depth), Some(1_000_000));
    drop(deepest);
}

#[test]
fn a_database_in_memory_can_be_shrunk_too() {
    let db = Options::new().open_in_memory().unwrap();
    half_empty(&db);
    let shrunk = db.shrink().unwrap();
    assert!(shrunk.after < shrunk.before);
    assert_all_there(&db);
    half_empty_again(&db);
    assert_all_there(&db);
}

fn half_empty_again(db: &Db) {
    db.update(|tx| tx.create_bucket("more")?.put("large", vec![1; 300_000])).unwrap();
    db.update(|tx| tx.delete_bucket("more")).unwrap();
}
