//! A range answers what an ordered map would, from either end and up to where the ends meet.

use std::ops::Bound::{Excluded, Included, Unbounded};

use proptest::prelude::*;

use super::*;
use crate::handles::Bucket;
use crate::{Db, Options};

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn number(entry: Result<Entry<'_>>) -> u32 {
    u32::from_be_bytes(entry.unwrap().0.try_into().unwrap())
}

/// A committed bucket of the even numbers below `2 * count`.
fn evens(count: u32) -> Db {
    let db = Options::new().page_size(1024).open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..count).try_for_each(|n| bucket.put(key(2 * n), [1; 10]))
    })
    .unwrap();
    db
}

fn range(bucket: Bucket<'_>, low: Bound<u32>, high: Bound<u32>) -> Range<'_> {
    let (low, high) = (low.map(key), high.map(key));
    bucket.range((low.as_ref().map(|key| &key[..]), high.as_ref().map(|key| &key[..])))
}

/// What lies between the bounds, by the meaning of the words.
fn between(all: &[u32], low: Bound<u32>, high: Bound<u32>) -> Vec<u32> {
    all.iter().copied().filter(|n| std::ops::RangeBounds::contains(&(low, high), n)).collect()
}

fn bounds_around(number: u32) -> [Bound<u32>; 3] {
    [Unbounded, Included(number), Excluded(number)]
}

#[test]
fn a_prefix_ends_before_the_next_string_of_its_length() {
    assert_eq!(prefix_bounds(b"ab").1, Excluded(b"ac".to_vec()));
    assert_eq!(prefix_bounds(b"a\xff").1, Excluded(b"b".to_vec()));
    assert_eq!(prefix_bounds(b"\xff\xff").1, Unbounded);
    assert_eq!(prefix_bounds(b""), (Unbounded, Unbounded));
}

#[test]
fn every_kind_of_range_over_every_kind_of_bytes_is_taken() {
    let db = Options::new().open_in_memory().unwrap();
    let mut tx = db.begin_mut().unwrap();
    let mut bucket = tx.create_bucket("b").unwrap();
    for key in ["a", "b", "c", "d"] {
        bucket.put(key, "").unwrap();
    }
    let text = |range: Range<'_>| -> String {
        range.map(|entry| String::from_utf8(entry.unwrap().0.to_vec()).unwrap()).collect()
    };
    assert_eq!(text(bucket.range(..)), "abcd");
    assert_eq!(text(bucket.range("b".."d")), "bc");
    assert_eq!(text(bucket.range(String::from("b")..)), "bcd");
    assert_eq!(text(bucket.range(..b"c")), "ab");
    assert_eq!(text(bucket.range([b'b']..=[b'd'])), "bcd");
    assert_eq!(text(bucket.range(..=vec![b'b'])), "ab");
    assert_eq!(text(bucket.range((Excluded(&b"a"[..]), Unbounded))), "bcd");
    assert_eq!(bucket.delete_range("b"..="c", usize::MAX).unwrap().count, 2);
    assert_eq!(text(bucket.range(..)), "ad");
}

#[test]
fn every_kind_of_bound_holds_from_both_ends() {
    let db = evens(600);
    let all: Vec<u32> = (0..1200).step_by(2).collect();
    let tx = db.begin().unwrap();
    let bucket = tx.bucket("b").unwrap();
    // On a key, between two, before all, behind all.
    let numbers = [0, 1, 2, 400, 401, 1198, 1199, 5000];
    for low in numbers.into_iter().flat_map(bounds_around) {
        for high in numbers.into_iter().flat_map(bounds_around) {
            let expected = between(&all, low, high);
            let forward: Vec<u32> = range(bucket, low, high).map(number).collect();
            assert_eq!(forward, expected, "{low:?}..{high:?}");
            let mut backward: Vec<u32> = range(bucket, low, high).rev().map(number).collect();
            backward.reverse();
            assert_eq!(backward, expected, "{low:?}..{high:?}, backwards");
        }
    }
}

#[test]
fn empty_and_inverted_ranges_give_nothing_from_either_end() {
    let db = evens(600);
    let tx = db.begin().unwrap();
    let bucket = tx.bucket("b").unwrap();
    let inverted = [
        (Included(500), Excluded(500)),
        (Excluded(500), Included(500)),
        (Excluded(500), Excluded(500)),
        (Excluded(500), Excluded(502)),
        (Included(501), Included(501)),
        (Included(800), Included(200)),
        (Included(5000), Unbounded),
        (Unbounded, Excluded(0)),
    ];
    for (low, high) in inverted {
        for backwards in [false, true] {
            let mut range = range(bucket, low, high);
            for _ in 0..3 {
                let found = if backwards { range.next_back() } else { range.next() };
                assert!(found.is_none(), "{low:?}..{high:?}");
            }
        }
    }
}

#[test]
fn the_ends_meet_wherever_they_come_together() {
    let db = evens(200);
    let tx = db.begin().unwrap();
    let bucket = tx.bucket("b").unwrap();
    let expected = between(&(0..400).step_by(2).collect::<Vec<_>>(), Excluded(99), Included(301));
    for from_front in 0..=expected.len() {
        let mut range = range(bucket, Excluded(99), Included(301));
        let mut found: Vec<u32> = range.by_ref().take(from_front).map(number).collect();
        let mut rest: Vec<u32> = range.by_ref().rev().map(number).collect();
        rest.reverse();
        found.extend(rest);
        assert_eq!(found, expected, "{from_front} from the front");
        assert!(range.next().is_none() && range.next_back().is_none());
    }
}

#[test]
fn buckets_come_without_a_value_and_prefixes_are_ranges() {
    let db = evens(0);
    let mut tx = db.begin_mut().unwrap();
    let mut bucket = tx.bucket_mut("b").unwrap();
    for name in ["a", "ab", "abc", "b"] {
        bucket.put(name, name).unwrap();
    }
    bucket.create_bucket("abd").unwrap();
    bucket.put([0xFF, 0xFF, 1], "last").unwrap();
    let keys = |prefix: &[u8]| bucket.prefix(prefix).map(|entry| entry.unwrap().0.to_vec()).collect::<Vec<_>>();
    assert_eq!(keys(b"ab"), [&b"ab"[..], b"abc", b"abd"]);
    assert_eq!(keys(b"\xff\xff"), [[0xFF, 0xFF, 1]]);
    assert_eq!(keys(b"").len(), 6);
    assert_eq!(bucket.prefix("abd").next().unwrap().unwrap(), (&b"abd"[..], None));
}

fn bound() -> impl Strategy<Value = Bound<u32>> {
    prop_oneof![Just(Unbounded), (0..2100_u32).prop_map(Included), (0..2100_u32).prop_map(Excluded)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_order_of_steps_from_both_ends_answers_each_entry_once(
        count in 0..1000_u32,
        gap in (0..2000_u32, 0..800_u32),
        low in bound(),
        high in bound(),
        from_front in prop::collection::vec(any::<bool>(), 1100),
    ) {
        let db = evens(count);
        let mut tx = db.begin_mut().unwrap();
        let mut bucket = tx.bucket_mut("b").unwrap();
        for n in gap.0..gap.0 + gap.1 {
            bucket.delete(key(n)).unwrap();
        }
        let all: Vec<u32> = (0..2 * count).step_by(2).filter(|n| !(gap.0..gap.0 + gap.1).contains(n)).collect();
        let expected = between(&all, low, high);
        let mut left = expected.iter().copied();
        let mut range = range(bucket.as_bucket(), low, high);
        for front in from_front {
            let (found, expected) = if front { (range.next(), left.next()) } else { (range.next_back(), left.next_back()) };
            prop_assert_eq!(found.map(number), expected);
        }
    }
}
