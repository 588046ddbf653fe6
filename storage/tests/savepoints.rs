//! A write transaction that is taken back to a savepoint is as it was there, and commits as if the rest had never been.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "test code: a panic is how it reports")]

mod common;

use boltkv_storage::{Db, Error, Options, TxMut};
use common::{assert_check_clean, committed, content_of_writer};
use proptest::prelude::*;

fn database() -> Db {
    Options::new().page_size(1024).open_in_memory().unwrap()
}

#[test]
fn every_kind_of_change_is_undone() {
    let db = database();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        bucket.put("replaced", "old")?;
        bucket.put("deleted", "old")?;
        bucket.set_sequence(7)?;
        bucket.create_bucket("inner")?.put("k", vec![1; 5000])
    })
    .unwrap();
    let before = committed(&db);
    let mut tx = db.begin_mut().unwrap();
    let savepoint = tx.savepoint();
    let mut bucket = tx.bucket_mut("b").unwrap();
    bucket.put("replaced", "new").unwrap();
    bucket.put("inserted", "new").unwrap();
    bucket.delete("deleted").unwrap();
    bucket.next_sequence().unwrap();
    bucket.bucket_mut("inner").unwrap().put("k2", "v").unwrap();
    bucket.delete_bucket("inner").unwrap();
    bucket.create_bucket("inner").unwrap().put("other", "v").unwrap();
    bucket.create_bucket("made").unwrap().create_bucket("deeper").unwrap();
    tx.create_bucket("top").unwrap().put("k", "v").unwrap();
    tx.rollback_to(&savepoint).unwrap();
    assert_eq!(content_of_writer(&tx), before);
    tx.commit().unwrap();
    assert_eq!(committed(&db), before);
    assert_check_clean(&db, "after the commit");
}

#[test]
fn a_savepoint_can_be_gone_back_to_again_but_not_one_made_after_it() {
    let db = database();
    let mut tx = db.begin_mut().unwrap();
    let outer = tx.savepoint();
    tx.create_bucket("b").unwrap();
    let inner = tx.savepoint();
    tx.create_bucket("c").unwrap();
    tx.rollback_to(&outer).unwrap();
    assert!(matches!(tx.rollback_to(&inner), Err(Error::SavepointNotFound)));
    tx.create_bucket("d").unwrap();
    tx.rollback_to(&outer).unwrap();
    assert_eq!(tx.buckets().count(), 0);
    drop(tx);
    let mut other = db.begin_mut().unwrap();
    other.savepoint();
    assert!(matches!(other.rollback_to(&outer), Err(Error::SavepointNotFound)));
}

#[derive(Debug, Clone)]
enum Step {
    Put(Vec<u8>, u8, usize),
    Delete(Vec<u8>, u8),
    Create(Vec<u8>),
    Drop(Vec<u8>),
    Sequence(Vec<u8>, u64),
}

fn path() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(b'a'..b'd', 1..4)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (path(), any::<u8>(), prop_oneof![0usize..50, 200usize..3000]).prop_map(|(p, k, len)| Step::Put(p, k, len)),
        4 => (path(), any::<u8>()).prop_map(|(p, k)| Step::Delete(p, k)),
        2 => path().prop_map(Step::Create),
        1 => path().prop_map(Step::Drop),
        1 => (path(), any::<u64>()).prop_map(|(p, n)| Step::Sequence(p, n)),
    ]
}

/// Applies what can be applied: a step that does not fit the tree is passed over.
fn apply(tx: &mut TxMut, step: &Step) {
    let names = |path: &[u8]| path.iter().map(|&name| vec![b'B', name]).collect::<Vec<_>>();
    match step {
        Step::Put(path, key, len) => {
            if let Ok(mut bucket) = tx.bucket_mut_path(names(path)) {
                bucket.put([*key], vec![*key; *len]).unwrap();
            }
        }
        Step::Delete(path, key) => {
            if let Ok(mut bucket) = tx.bucket_mut_path(names(path)) {
                bucket.delete([*key]).unwrap();
            }
        }
        Step::Create(path) => {
            let names = names(path);
            let (last, parents) = names.split_last().unwrap();
            if parents.is_empty() {
                tx.create_bucket_if_not_exists(last).unwrap();
            } else if let Ok(mut parent) = tx.bucket_mut_path(parents) {
                parent.create_bucket_if_not_exists(last).unwrap();
            }
        }
        Step::Drop(path) => {
            let names = names(path);
            let (last, parents) = names.split_last().unwrap();
            if parents.is_empty() {
                let _ = tx.delete_bucket(last);
            } else if let Ok(mut parent) = tx.bucket_mut_path(parents) {
                let _ = parent.delete_bucket(last);
            }
        }
        Step::Sequence(path, number) => {
            if let Ok(mut bucket) = tx.bucket_mut_path(names(path)) {
                bucket.set_sequence(*number).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn what_is_undone_leaves_no_trace(
        base in prop::collection::vec(step(), 0..60),
        kept in prop::collection::vec(step(), 0..30),
        undone in prop::collection::vec(prop::collection::vec(step(), 1..30), 1..4),
        after in prop::collection::vec(step(), 0..20),
    ) {
        let db = database();
        db.update(|tx| { for step in &base { apply(tx, step); } Ok::<_, Error>(()) }).unwrap();
        let mut tx = db.begin_mut().unwrap();
        for step in &kept { apply(&mut tx, step); }
        let expected = content_of_writer(&tx);
        let savepoint = tx.savepoint();
        for steps in &undone {
            for step in steps { apply(&mut tx, step); }
            tx.rollback_to(&savepoint).unwrap();
            prop_assert_eq!(&content_of_writer(&tx), &expected);
        }
        for step in &after { apply(&mut tx, step); }
        let expected = content_of_writer(&tx);
        tx.commit().unwrap();
        prop_assert_eq!(&committed(&db), &expected);
        assert_check_clean(&db, "after the commit");
    }
}
