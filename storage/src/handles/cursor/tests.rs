//! Where a cursor stands after every kind of step, over pages and over what a transaction has changed.

use proptest::prelude::*;

use super::*;
use crate::handles::Bucket;
use crate::{Db, Options, TxMut};

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn number(entry: Entry<'_>) -> u32 {
    u32::from_be_bytes(entry.0.try_into().unwrap())
}

/// A committed bucket of the even numbers below `2 * count`: 2,000 take more than 60 leaves in three levels.
fn evens(count: u32) -> Db {
    let db = Options::new().page_size(1024).open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..count).try_for_each(|n| bucket.put(key(2 * n), [1; 10]))
    })
    .unwrap();
    db
}

/// A write transaction that has deleted the numbers from `from` up to `to`.
fn without(db: &Db, from: u32, to: u32) -> TxMut {
    let mut tx = db.begin_mut().unwrap();
    let mut bucket = tx.bucket_mut("b").unwrap();
    for n in from..to {
        bucket.delete(key(n)).unwrap();
    }
    tx
}

fn all_forward(bucket: Bucket<'_>) -> Vec<u32> {
    let mut cursor = bucket.cursor();
    std::iter::from_fn(|| cursor.next().unwrap().map(number)).collect()
}

fn all_backward(bucket: Bucket<'_>) -> Vec<u32> {
    let mut cursor = bucket.cursor();
    std::iter::from_fn(|| cursor.prev().unwrap().map(number)).collect()
}

#[test]
fn steps_past_an_end_answer_nothing_and_stay_on_the_last_entry() {
    let db = evens(1000);
    let tx = db.begin().unwrap();
    let mut cursor = tx.bucket("b").unwrap().cursor();
    assert_eq!(cursor.last().unwrap().map(number), Some(1998));
    assert_eq!((cursor.next().unwrap(), cursor.next().unwrap()), (None, None));
    assert_eq!(cursor.prev().unwrap().map(number), Some(1996));
    assert_eq!(cursor.first().unwrap().map(number), Some(0));
    assert_eq!((cursor.prev().unwrap(), cursor.prev().unwrap()), (None, None));
    assert_eq!(cursor.next().unwrap().map(number), Some(2));
}

#[test]
fn a_seek_past_the_last_key_stands_behind_it() {
    let db = evens(1000);
    let tx = db.begin().unwrap();
    let mut cursor = tx.bucket("b").unwrap().cursor();
    assert_eq!(cursor.seek(key(1999)).unwrap(), None);
    assert_eq!(cursor.next().unwrap(), None);
    assert_eq!(cursor.prev().unwrap().map(number), Some(1998));
    assert_eq!(cursor.prev().unwrap().map(number), Some(1996));
}

#[test]
fn an_empty_bucket_has_nothing_in_any_direction() {
    let db = evens(0);
    let tx = db.begin().unwrap();
    let mut cursor = tx.bucket("b").unwrap().cursor();
    for _ in 0..2 {
        assert_eq!((cursor.next().unwrap(), cursor.prev().unwrap()), (None, None));
        assert_eq!((cursor.first().unwrap(), cursor.last().unwrap()), (None, None));
        assert_eq!(cursor.seek("k").unwrap(), None);
    }
}

#[test]
fn leaves_that_a_transaction_has_emptied_are_stepped_over() {
    let db = evens(2000);
    for (from, to) in [(500, 3500), (0, 3000), (1000, 4000), (0, 3998), (2, 4000)] {
        let tx = without(&db, from, to);
        let bucket = tx.bucket("b").unwrap();
        let mut left: Vec<u32> = (0..4000).step_by(2).filter(|n| !(from..to).contains(n)).collect();
        assert_eq!(all_forward(bucket), left);
        let mut cursor = bucket.cursor();
        assert_eq!(cursor.seek(key(from)).unwrap().map(number), left.iter().copied().find(|&n| n >= to));
        let before = left.iter().copied().rfind(|&n| n < from);
        assert_eq!(cursor.prev().unwrap().map(number), before, "back from the gap {from}..{to}");
        assert_eq!(bucket.cursor().first().unwrap().map(number), left.first().copied());
        assert_eq!(bucket.cursor().last().unwrap().map(number), left.last().copied());
        left.reverse();
        assert_eq!(all_backward(bucket), left);
    }
}

#[test]
fn a_bucket_that_a_transaction_has_emptied_is_empty() {
    let db = evens(2000);
    let tx = without(&db, 0, 4000);
    let bucket = tx.bucket("b").unwrap();
    assert_eq!((all_forward(bucket), all_backward(bucket)), (vec![], vec![]));
    assert_eq!(bucket.cursor().seek(key(77)).unwrap(), None);
}

/// bbolt's trap: there, `Next` after `Delete` could pass over an entry.
#[test]
fn deleting_at_a_cursor_skips_nothing_forward() {
    let db = evens(2000);
    let mut tx = db.begin_mut().unwrap();
    let mut bucket = tx.bucket_mut("b").unwrap();
    let mut cursor = bucket.cursor_mut();
    let mut seen = Vec::new();
    while let Some(found) = cursor.next().unwrap().map(number) {
        seen.push(found);
        if found % 3 != 0 {
            cursor.delete().unwrap();
        }
    }
    assert_eq!(seen, (0..4000).step_by(2).collect::<Vec<_>>());
    assert_eq!(all_forward(tx.bucket("b").unwrap()), (0..4000).step_by(6).collect::<Vec<_>>());
}

#[test]
fn deleting_at_a_cursor_skips_nothing_backward() {
    let db = evens(2000);
    let mut tx = db.begin_mut().unwrap();
    let mut bucket = tx.bucket_mut("b").unwrap();
    let mut cursor = bucket.cursor_mut();
    let mut seen = Vec::new();
    while let Some(found) = cursor.prev().unwrap().map(number) {
        seen.push(found);
        cursor.delete().unwrap();
    }
    assert_eq!(seen, (0..4000).step_by(2).rev().collect::<Vec<_>>());
    assert_eq!(bucket.first().unwrap(), None);
}

#[test]
fn after_a_deletion_a_cursor_stands_between_the_neighbours() {
    let db = evens(1000);
    let mut tx = db.begin_mut().unwrap();
    let mut bucket = tx.bucket_mut("b").unwrap();
    let mut cursor = bucket.cursor_mut();
    cursor.delete().unwrap();
    cursor.seek(key(500)).unwrap();
    cursor.delete().unwrap();
    cursor.delete().unwrap();
    assert_eq!(cursor.next().unwrap().map(number), Some(502));
    cursor.delete().unwrap();
    assert_eq!(cursor.prev().unwrap().map(number), Some(498));
    assert_eq!(cursor.last().unwrap().map(number), Some(1998));
    cursor.delete().unwrap();
    assert_eq!(cursor.next().unwrap(), None);
    assert_eq!(cursor.prev().unwrap().map(number), Some(1996));
    assert_eq!(bucket.count().unwrap(), 997);
}

#[test]
fn a_cursor_does_not_delete_a_bucket_and_stays_on_it() {
    let db = evens(1);
    let mut tx = db.begin_mut().unwrap();
    let mut bucket = tx.bucket_mut("b").unwrap();
    bucket.create_bucket([9]).unwrap();
    let mut cursor = bucket.cursor_mut();
    assert_eq!(cursor.last().unwrap(), Some((&[9][..], None)));
    assert!(matches!(cursor.delete(), Err(Error::IncompatibleValue { is_bucket: true, .. })));
    assert_eq!(cursor.prev().unwrap().map(number), Some(0));
}

#[derive(Debug, Clone, Copy)]
enum Move {
    First,
    Last,
    Next(usize),
    Prev(usize),
    Seek(u32),
    /// Of a cursor that can; otherwise nothing.
    Delete,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        1 => Just(Move::First),
        1 => Just(Move::Last),
        4 => (1..80_usize).prop_map(Move::Next),
        4 => (1..80_usize).prop_map(Move::Prev),
        4 => (0..2100_u32).prop_map(Move::Seek),
        4 => Just(Move::Delete),
    ];
    prop::collection::vec(one, 1..80)
}

/// Where a cursor stands in an ordered vector.
#[derive(Debug, Clone, Copy)]
enum Stand {
    Fresh,
    On(usize),
    /// Before this index; what stood there was deleted, or it is the end.
    Before(usize),
}

impl Stand {
    fn next(self, len: usize) -> Option<usize> {
        match self {
            Self::Fresh => Some(0),
            Self::On(at) => Some(at + 1),
            Self::Before(at) => Some(at),
        }
        .filter(|&at| at < len)
    }

    fn prev(self, len: usize) -> Option<usize> {
        match self {
            Self::Fresh => len.checked_sub(1),
            Self::On(at) | Self::Before(at) => at.checked_sub(1),
        }
    }

    /// Goes to `found`, or stays.
    fn go(&mut self, found: Option<usize>) -> Option<usize> {
        *self = found.map_or(*self, Self::On);
        found
    }
}

/// Makes the moves with `step`, and on a vector; both must come to the same entries.
fn follow(model: &mut Vec<u32>, moves: &[Move], can_delete: bool, mut step: impl FnMut(Move) -> Option<u32>) {
    let mut stand = Stand::Fresh;
    for &one in moves {
        let times = if let Move::Next(times) | Move::Prev(times) = one { times } else { 1 };
        for _ in 0..times {
            let found = step(one);
            let expected = match one {
                Move::First => stand.go(Some(0).filter(|_| !model.is_empty())),
                Move::Last => stand.go(model.len().checked_sub(1)),
                Move::Next(_) => stand.go(stand.next(model.len())),
                Move::Prev(_) => stand.go(stand.prev(model.len())),
                Move::Seek(wanted) => {
                    let at = model.partition_point(|&n| n < wanted);
                    stand = Stand::Before(at);
                    stand.go(Some(at).filter(|&at| at < model.len()))
                }
                Move::Delete => {
                    if let (Stand::On(at), true) = (stand, can_delete) {
                        model.remove(at);
                        stand = Stand::Before(at);
                    }
                    None
                }
            };
            assert_eq!(found, expected.map(|at| model[at]), "{one:?}");
        }
    }
}

fn walk(bucket: Bucket<'_>, model: &mut Vec<u32>, moves: &[Move]) {
    let mut cursor = bucket.cursor();
    follow(model, moves, false, |step| {
        let found = match step {
            Move::First => cursor.first(),
            Move::Last => cursor.last(),
            Move::Next(_) => cursor.next(),
            Move::Prev(_) => cursor.prev(),
            Move::Seek(wanted) => cursor.seek(key(wanted)),
            Move::Delete => Ok(None),
        };
        found.unwrap().map(number)
    });
}

fn walk_and_delete(tx: &mut TxMut, model: &mut Vec<u32>, moves: &[Move]) {
    let mut bucket = tx.bucket_mut("b").unwrap();
    let mut cursor = bucket.cursor_mut();
    follow(model, moves, true, |step| {
        let found = match step {
            Move::First => cursor.first(),
            Move::Last => cursor.last(),
            Move::Next(_) => cursor.next(),
            Move::Prev(_) => cursor.prev(),
            Move::Seek(wanted) => cursor.seek(key(wanted)),
            Move::Delete => cursor.delete().map(|()| None),
        };
        found.unwrap().map(number)
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_cursor_goes_where_an_index_into_a_vector_would(
        count in prop_oneof![Just(0), 1..5_u32, 900..1000_u32],
        changes in prop::collection::vec((0..2000_u32, 0..200_u32, any::<bool>()), 0..6),
        moves in moves(),
    ) {
        let db = evens(count);
        let mut model: Vec<u32> = (0..2 * count).step_by(2).collect();
        walk(db.begin().unwrap().bucket("b").unwrap(), &mut model, &moves);
        let mut tx = db.begin_mut().unwrap();
        for (from, many, delete) in changes {
            let mut bucket = tx.bucket_mut("b").unwrap();
            for n in from..from + many {
                if delete {
                    bucket.delete(key(n)).unwrap();
                } else {
                    bucket.put(key(n), "new").unwrap();
                }
            }
            model.retain(|n| !(from..from + many).contains(n));
            if !delete {
                model.extend(from..from + many);
                model.sort_unstable();
            }
        }
        walk(tx.bucket("b").unwrap(), &mut model, &moves);
        walk_and_delete(&mut tx, &mut model, &moves);
        prop_assert_eq!(all_forward(tx.bucket("b").unwrap()), model);
    }
}
