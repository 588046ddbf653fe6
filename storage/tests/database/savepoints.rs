//! A write transaction that is taken back to a savepoint is as it was there, and commits as if the rest had never been.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "test code: a panic is how it reports")]

use crate::common::{assert_check_clean, committed, content_of_writer};
use boltkv_storage::{Db, Error, Fill, Options, TxMut};
use proptest::prelude::*;
use std::sync::mpsc::channel;

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

/// Two buckets at the top, and one in the first of them that takes many pages.
fn database_with_a_large_bucket() -> Db {
    let db = database();
    db.update(|tx| {
        tx.create_bucket("to")?;
        let mut from = tx.create_bucket("from")?;
        let mut large = from.create_bucket("large")?;
        (0..400_u32).try_for_each(|key| large.put(key.to_be_bytes(), [7; 50]))
    })
    .unwrap();
    db
}

/// Does `change` after a savepoint, goes back, and commits: everything must be as before, in the file too.
fn is_as_before(change: impl FnOnce(&mut TxMut)) {
    let db = database_with_a_large_bucket();
    let before = committed(&db);
    let mut tx = db.begin_mut().unwrap();
    let savepoint = tx.savepoint();
    change(&mut tx);
    tx.rollback_to(&savepoint).unwrap();
    assert_eq!(content_of_writer(&tx), before);
    tx.create_bucket("other").unwrap();
    tx.commit().unwrap();
    assert_check_clean(&db, "after the commit");
    db.update(|tx| tx.delete_bucket("other")).unwrap();
    assert_eq!(committed(&db), before);
    assert_check_clean(&db, "after another commit");
}

const MOVED: [&str; 2] = ["to", "large"];

#[test]
fn what_was_deleted_from_a_bucket_that_was_moved_is_back() {
    is_as_before(|tx| {
        tx.move_bucket("large", &["from"], &["to"]).unwrap();
        let deleted = tx.bucket_mut_path(MOVED).unwrap().delete_range(.., usize::MAX).unwrap();
        assert_eq!(deleted.count, 400);
    });
    is_as_before(|tx| {
        tx.move_bucket("large", &["from"], &["to"]).unwrap();
        let mut large = tx.bucket_mut_path(MOVED).unwrap();
        while large.pop_first().unwrap().is_some() {}
        large.put("other", "value").unwrap();
    });
    is_as_before(|tx| {
        tx.move_bucket("large", &["from"], &["to"]).unwrap();
        tx.bucket_mut_path(MOVED).unwrap().pop_first().unwrap();
        tx.move_bucket::<&str>("large", &["to"], &[]).unwrap();
        let first_half = ..&200_u32.to_be_bytes()[..];
        let _ = tx.bucket_mut("large").unwrap().delete_range(first_half, usize::MAX).unwrap();
        tx.delete_bucket("large").unwrap();
        tx.delete_bucket("to").unwrap();
    });
}

#[test]
fn the_leaves_of_what_is_deleted_and_comes_back_are_those_there_were() {
    let db = database_with_a_large_bucket();
    let leaves = || {
        let tx = db.begin().unwrap();
        tx.bucket_path(["from", "large"]).unwrap().stats().unwrap().leaf_pages
    };
    let before = leaves();
    let mut tx = db.begin_mut().unwrap();
    let savepoint = tx.savepoint();
    let _ = tx.bucket_mut_path(["from", "large"]).unwrap().delete_range(.., 399).unwrap();
    tx.rollback_to(&savepoint).unwrap();
    tx.commit().unwrap();
    assert_eq!(leaves(), before);
    assert_check_clean(&db, "after the commit");
}

#[test]
fn how_full_pages_are_left_is_undone() {
    let leaves = |undone: bool| {
        let db = database();
        let mut tx = db.begin_mut().unwrap();
        tx.create_bucket("b").unwrap();
        if undone {
            let savepoint = tx.savepoint();
            tx.bucket_mut("b").unwrap().set_fill(Fill::Percent(0.1));
            tx.rollback_to(&savepoint).unwrap();
        }
        let mut bucket = tx.bucket_mut("b").unwrap();
        (0..400_u32).try_for_each(|key| bucket.put(key.to_be_bytes(), [7; 50])).unwrap();
        tx.commit().unwrap();
        db.begin().unwrap().bucket("b").unwrap().stats().unwrap().leaf_pages
    };
    assert_eq!(leaves(true), leaves(false));
}

#[test]
fn what_was_to_be_called_after_the_commit_goes_with_its_change() {
    let db = database();
    let mut tx = db.begin_mut().unwrap();
    let (called, calls) = channel();
    let call = |name: &'static str| {
        let called = called.clone();
        move || called.send(name).unwrap()
    };
    tx.on_commit(call("before"));
    let savepoint = tx.savepoint();
    tx.on_commit(call("undone"));
    tx.rollback_to(&savepoint).unwrap();
    tx.on_commit(call("undone, too"));
    tx.rollback_to(&savepoint).unwrap();
    tx.on_commit(call("after"));
    tx.commit().unwrap();
    assert_eq!(calls.try_iter().collect::<Vec<_>>(), ["before", "after"]);
}

#[test]
fn a_callback_that_panics_keeps_no_other_from_being_called() {
    let db = database();
    let mut tx = db.begin_mut().unwrap();
    let (called, calls) = channel();
    tx.create_bucket("b").unwrap();
    tx.on_commit(|| std::panic::resume_unwind(Box::new("on purpose")));
    tx.on_commit(move || called.send(()).unwrap());
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tx.commit()));
    assert!(ran.is_err());
    assert_eq!(calls.try_iter().count(), 1);
    assert!(db.begin().unwrap().bucket("b").is_ok(), "it was committed before");
    db.update(|tx| tx.delete_bucket("b")).unwrap();
}

#[derive(Debug, Clone)]
enum Step {
    Move(Vec<u8>, Vec<u8>),
    DeleteRange(Vec<u8>, u8, usize),
    PopFirst(Vec<u8>, usize),
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
        3 => (path(), path()).prop_map(|(from, to)| Step::Move(from, to)),
        2 => (path(), any::<u8>(), 1..200_usize).prop_map(|(p, k, most)| Step::DeleteRange(p, k, most)),
        2 => (path(), 1..20_usize).prop_map(|(p, count)| Step::PopFirst(p, count)),
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
        Step::Move(from, to) => {
            let (name, above) = from.split_last().unwrap();
            let _ = tx.move_bucket([b'B', *name], &names(above), &names(to));
        }
        Step::DeleteRange(path, key, most) => {
            if let Ok(mut bucket) = tx.bucket_mut_path(names(path)) {
                let _ = bucket.delete_range(&[*key][..].., *most);
            }
        }
        Step::PopFirst(path, count) => {
            if let Ok(mut bucket) = tx.bucket_mut_path(names(path)) {
                for _ in 0..*count {
                    let _ = bucket.pop_first();
                }
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
        db.update(|tx| {
            for name in b'a'..b'd' {
                let mut top = tx.create_bucket([b'B', name])?;
                let mut bucket = top.create_bucket([b'B', name])?;
                (0..60_u8).try_for_each(|key| bucket.put([key], [key; 50]))?;
            }
            for step in &base {
                apply(tx, step);
            }
            Ok::<_, Error>(())
        }).unwrap();
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
