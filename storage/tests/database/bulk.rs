//! Deleting ranges, taking from the front, counting and visiting do what they would do to an ordered map.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::{assert_check_clean, committed, content_of_writer};
use boltkv_storage::{Db, Error, Options};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;

fn database() -> Db {
    Options::new().page_size(1024).open_in_memory().unwrap()
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// A committed bucket with so many values.
fn with_values(count: u32) -> Db {
    let db = database();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..count).try_for_each(|number| bucket.put(key(number), [7; 20]))
    })
    .unwrap();
    db
}

#[test]
fn a_range_is_deleted_and_the_rest_stays() {
    let db = with_values(5000);
    db.update(|tx| {
        let mut bucket = tx.bucket_mut("b")?;
        let deleted = bucket.delete_range(&key(100)[..]..&key(4900)[..], usize::MAX)?;
        assert_eq!((deleted.count, deleted.more), (4800, false));
        assert_eq!(bucket.count()?, 200);
        assert_eq!(bucket.first()?.unwrap().0, key(0));
        assert_eq!(bucket.range(&key(100)[..]..).next().unwrap()?.0, key(4900));
        Ok::<_, Error>(())
    })
    .unwrap();
    assert_check_clean(&db, "after the deletion");
    assert_eq!(db.begin().unwrap().bucket("b").unwrap().count().unwrap(), 200);
}

#[test]
fn a_limit_stops_a_deletion_and_says_so() {
    let db = with_values(1000);
    let mut tx = db.begin_mut().unwrap();
    let mut bucket = tx.bucket_mut("b").unwrap();
    let mut left = 1000;
    for limit in [0, 1, 256, 257, 400] {
        let deleted = bucket.delete_range(.., limit).unwrap();
        left -= limit;
        assert_eq!((deleted.count, deleted.more), (limit, true), "limit {limit}");
    }
    let last = bucket.delete_range(.., left).unwrap();
    assert_eq!((last.count, last.more), (left, false));
    assert_eq!(bucket.count().unwrap(), 0);
    bucket.put("again", "v").unwrap();
    tx.commit().unwrap();
    assert_check_clean(&db, "after everything went");
}

#[test]
fn a_bucket_in_the_range_is_an_error_and_nothing_is_deleted() {
    let db = with_values(2000);
    let mut tx = db.begin_mut().unwrap();
    let mut bucket = tx.bucket_mut("b").unwrap();
    bucket.create_bucket([0, 0, 5, 1, 1]).unwrap();
    let before = bucket.count().unwrap();
    let result = bucket.delete_range(.., usize::MAX);
    assert!(matches!(result, Err(Error::IncompatibleValue { is_bucket: true, .. })), "{result:?}");
    assert_eq!(bucket.count().unwrap(), before);
    // What lies before it can go.
    let deleted = bucket.delete_range(..&[0, 0, 5, 1][..], usize::MAX).unwrap();
    assert_eq!(deleted.count, 0x501);
    assert_eq!(bucket.delete_range(&[0, 0, 5, 1, 1, 0][..].., 3).unwrap().count, 3);
    while let Ok(Some(_)) = bucket.pop_first() {}
    assert!(matches!(bucket.pop_first(), Ok(None) | Err(Error::IncompatibleValue { .. })));
}

#[test]
fn a_queue_is_emptied_from_the_front_while_it_is_filled_at_the_back() {
    let db = with_values(3000);
    let mut next = 0;
    for _ in 0..3 {
        let mut tx = db.begin_mut().unwrap();
        let mut bucket = tx.bucket_mut("b").unwrap();
        for _ in 0..2500 {
            let (found, value) = bucket.pop_first().unwrap().unwrap();
            assert_eq!((&found[..], &value[..]), (&key(next)[..], &[7; 20][..]));
            bucket.put(key(next + 3000), [7; 20]).unwrap();
            next += 1;
        }
        assert_eq!(bucket.count().unwrap(), 3000);
        tx.commit().unwrap();
        assert_check_clean(&db, "after a commit");
    }
}

#[test]
fn the_front_that_is_a_bucket_is_not_taken() {
    let db = database();
    let mut tx = db.begin_mut().unwrap();
    let mut bucket = tx.create_bucket("b").unwrap();
    assert_eq!(bucket.pop_first().unwrap(), None);
    bucket.create_bucket("inner").unwrap();
    assert!(matches!(bucket.pop_first(), Err(Error::IncompatibleValue { is_bucket: true, .. })));
    assert_eq!(bucket.count().unwrap(), 1);
}

#[test]
fn visiting_stops_at_the_first_error_of_the_visitor() {
    let db = database();
    db.update(|tx| {
        for name in ["a", "b", "c"] {
            let mut bucket = tx.create_bucket(name)?;
            bucket.put("value", "v")?;
            bucket.create_bucket("inner")?;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
    let tx = db.begin().unwrap();
    let mut seen = Vec::new();
    let stopped = tx.for_each(|name, bucket| {
        seen.push(name);
        bucket.for_each(|key, value| {
            assert_eq!(value.is_none(), key == b"inner");
            Ok::<_, Error>(())
        })?;
        bucket.for_each_bucket(|name, _| if name == b"inner" { Ok(()) } else { Err(Error::KeyRequired) })?;
        if name == b"b" { Err(Error::SequenceExhausted) } else { Ok(()) }
    });
    assert!(matches!(stopped, Err(Error::SequenceExhausted)));
    assert_eq!(seen, [b"a", b"b"]);
    let bucket = tx.bucket("a").unwrap();
    assert_eq!(bucket.first().unwrap(), Some((&b"inner"[..], None)));
    assert_eq!(bucket.last().unwrap(), Some((&b"value"[..], Some(&b"v"[..]))));
    assert_eq!(bucket.count().unwrap(), 2);
}

#[derive(Debug, Clone)]
enum Step {
    Put(u32, u32),
    Delete(u32),
    DeleteRange(Bound<u32>, Bound<u32>, usize),
    Pop(usize),
}

fn bound() -> impl Strategy<Value = Bound<u32>> {
    prop_oneof![
        Just(Bound::Unbounded),
        (0..2000_u32).prop_map(Bound::Included),
        (0..2000_u32).prop_map(Bound::Excluded)
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let limit = prop_oneof![Just(usize::MAX), 0..600_usize];
    prop_oneof![
        2 => (0..2000_u32, 1..300_u32).prop_map(|(from, count)| Step::Put(from, count)),
        1 => (0..2000_u32).prop_map(Step::Delete),
        2 => (bound(), bound(), limit).prop_map(|(low, high, limit)| Step::DeleteRange(low, high, limit)),
        1 => (0..400_usize).prop_map(Step::Pop),
    ]
}

type Map = BTreeMap<[u8; 4], [u8; 20]>;

fn within(low: Bound<u32>, high: Bound<u32>, key: [u8; 4]) -> bool {
    let number = u32::from_be_bytes(key);
    std::ops::RangeBounds::contains(&(low, high), &number)
}

/// Does a step here and on the map, and compares what they answer.
fn run(step: &Step, bucket: &mut boltkv_storage::BucketMut<'_>, map: &mut Map) {
    match *step {
        Step::Put(from, count) => {
            for number in from..from + count {
                bucket.put(key(number), [1; 20]).unwrap();
                map.insert(key(number), [1; 20]);
            }
        }
        Step::Delete(number) => {
            assert_eq!(bucket.delete(key(number)).unwrap(), map.remove(&key(number)).is_some());
        }
        Step::DeleteRange(low, high, limit) => {
            let doomed: Vec<_> = map.keys().copied().filter(|&key| within(low, high, key)).collect();
            let (low, high) = (low.map(key), high.map(key));
            let bounds = (low.as_ref().map(|k| &k[..]), high.as_ref().map(|k| &k[..]));
            let deleted = bucket.delete_range(bounds, limit).unwrap();
            assert_eq!((deleted.count, deleted.more), (doomed.len().min(limit), doomed.len() > limit));
            for key in doomed.iter().take(limit) {
                map.remove(key);
            }
        }
        Step::Pop(count) => {
            for _ in 0..count {
                let popped = bucket.pop_first().unwrap();
                assert_eq!(popped, map.pop_first().map(|(key, value)| (key.to_vec(), value.to_vec())));
            }
        }
    }
}

fn assert_same(bucket: boltkv_storage::Bucket<'_>, map: &Map) {
    let entries = map.iter().map(|(key, value)| (&key[..], Some(&value[..])));
    assert!(bucket.iter().map(Result::unwrap).eq(entries.clone()), "the entries differ");
    assert!(bucket.iter().rev().map(Result::unwrap).eq(entries.rev()), "the entries differ, backwards");
    assert_eq!(bucket.count().unwrap(), map.len() as u64);
}

proptest! {
    #[test]
    fn ranges_and_fronts_that_are_deleted_leave_what_a_map_would_hold(
        transactions in prop::collection::vec(
            (prop::collection::vec(step(), 1..8), prop::collection::vec(step(), 0..5)), 1..4)
    ) {
        let db = with_values(0);
        let mut map = Map::new();
        for (kept, undone) in transactions {
            let mut tx = db.begin_mut().unwrap();
            let mut bucket = tx.bucket_mut("b").unwrap();
            for step in &kept {
                run(step, &mut bucket, &mut map);
            }
            assert_same(bucket.as_bucket(), &map);
            let before = content_of_writer(&tx);
            let savepoint = tx.savepoint();
            let (mut bucket, mut discarded) = (tx.bucket_mut("b").unwrap(), map.clone());
            for step in &undone {
                run(step, &mut bucket, &mut discarded);
            }
            tx.rollback_to(&savepoint).unwrap();
            prop_assert_eq!(&content_of_writer(&tx), &before);
            tx.commit().unwrap();
            prop_assert_eq!(&committed(&db), &before);
            assert_same(db.begin().unwrap().bucket("b").unwrap(), &map);
            assert_check_clean(&db, "after a commit");
        }
    }
}
