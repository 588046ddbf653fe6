//! What Go's bbolt promises of cursors, by its own tests' list (docs/bbolt-parity.md), and random walks that answer here
//! as they do there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::generator::Generator;
use crate::common::model::{Model, hex};
use crate::common::random::Random;
use crate::common::setup::Setup;
use boltkv_storage::{Cursor, Db, Error, Options};

/// A database whose bucket `b` has these keys.
fn database<K: AsRef<[u8]>>(keys: impl IntoIterator<Item = K>) -> Db {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        keys.into_iter().try_for_each(|key| bucket.put(key, [7; 100]))
    })
    .unwrap();
    db
}

fn number(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// The key that a step answered with, as a number.
fn key(entry: Option<boltkv_storage::Entry<'_>>) -> Option<u64> {
    entry.map(|(key, _)| u64::from_be_bytes(key.try_into().unwrap()))
}

/// Steps through the numbers, then ten times past the end.
fn walk(cursor: &mut Cursor<'_>, forward: bool, numbers: impl Iterator<Item = u64>) {
    let past = std::iter::repeat_n(None, 10);
    for expected in numbers.map(Some).chain(past) {
        let found = if forward { cursor.next() } else { cursor.prev() };
        assert_eq!(key(found.unwrap()), expected);
    }
}

#[test]
fn a_cursor_that_has_run_past_an_end_turns_round_from_the_last_entry_there() {
    let db = database((0..1000).map(number));
    let tx = db.begin().unwrap();
    let mut cursor = tx.bucket("b").unwrap().cursor();
    assert_eq!(key(cursor.seek(number(2)).unwrap()), Some(2));
    walk(&mut cursor, true, 3..1000);
    walk(&mut cursor, false, (0..999).rev());
    walk(&mut cursor, true, 1..1000);
    walk(&mut cursor, false, (0..999).rev());
}

#[test]
fn seek_finds_the_key_itself_or_the_next_one() {
    let db = database(["foo", "bar", "baz"]);
    db.update(|tx| tx.bucket_mut("b")?.create_bucket("bkt").map(|_| ())).unwrap();
    let tx = db.begin().unwrap();
    let mut cursor = tx.bucket("b").unwrap().cursor();
    let value = Some(&[7; 100][..]);
    assert_eq!(cursor.seek("bar").unwrap(), Some((&b"bar"[..], value)));
    assert_eq!(cursor.seek("bas").unwrap(), Some((&b"baz"[..], value)));
    assert_eq!(cursor.seek("").unwrap(), Some((&b"bar"[..], value)));
    assert_eq!(cursor.seek("zzz").unwrap(), None);
    assert_eq!(cursor.seek("bkt").unwrap(), Some((&b"bkt"[..], None)), "a bucket has no value");
}

#[test]
fn seek_among_thousands_of_keys_never_goes_back() {
    let db = database((0..10_000).step_by(2).map(number));
    let tx = db.begin().unwrap();
    let mut cursor = tx.bucket("b").unwrap().cursor();
    for sought in 0..10_000_u64 {
        let expected = sought.next_multiple_of(2);
        assert_eq!(key(cursor.seek(number(sought)).unwrap()), (expected < 10_000).then_some(expected));
    }
}

#[test]
fn a_cursor_deletes_what_it_stands_on_skips_nothing_and_refuses_a_bucket() {
    let db = database((0..1000).map(number));
    db.update(|tx| tx.bucket_mut("b")?.create_bucket("sub").map(|_| ())).unwrap();
    let mut tx = db.begin_mut().unwrap();
    let mut bucket = tx.bucket_mut("b").unwrap();
    let mut cursor = bucket.cursor_mut();
    let mut expected = 0;
    let mut at = key(cursor.first().unwrap());
    while let Some(found) = at.filter(|&found| found < 500) {
        assert_eq!(found, expected);
        expected += 1;
        cursor.delete().unwrap();
        at = key(cursor.next().unwrap());
    }
    assert_eq!(at, Some(500));
    assert!(cursor.seek("sub").unwrap().is_some());
    assert!(matches!(cursor.delete(), Err(Error::IncompatibleValue { .. })));
    tx.commit().unwrap();
    assert_eq!(db.begin().unwrap().bucket("b").unwrap().iter().count(), 501);
}

#[test]
fn an_empty_bucket_has_neither_end() {
    let db = database([""; 0]);
    let tx = db.begin().unwrap();
    let mut cursor = tx.bucket("b").unwrap().cursor();
    let steps: [fn(&mut Cursor<'_>) -> bool; 4] = [
        |cursor| cursor.first().unwrap().is_some(),
        |cursor| cursor.last().unwrap().is_some(),
        |cursor| cursor.next().unwrap().is_some(),
        |cursor| cursor.prev().unwrap().is_some(),
    ];
    for step in steps {
        assert!(!step(&mut cursor));
    }
}

#[test]
fn a_single_leaf_is_walked_both_ways_and_again_from_its_end() {
    let db = database([3, 1, 2].map(number));
    let tx = db.begin().unwrap();
    let mut cursor = tx.bucket("b").unwrap().cursor();
    for _ in 0..2 {
        assert_eq!(key(cursor.first().unwrap()), Some(1));
        walk(&mut cursor, true, 2..=3);
        assert_eq!(key(cursor.last().unwrap()), Some(3));
        walk(&mut cursor, false, [2, 1].into_iter());
    }
}

#[test]
fn leaves_that_the_transaction_has_emptied_are_passed_over() {
    let db = database((0..1000).map(number));
    for (gone, left) in [(0..600, 600..1000), (200..1000, 0..200), (300..700, 0..0)] {
        let mut tx = db.begin_mut().unwrap();
        let mut bucket = tx.bucket_mut("b").unwrap();
        for key in gone.clone() {
            assert!(bucket.delete(number(key)).unwrap());
        }
        let left: Vec<u64> = if left.is_empty() { (0..300).chain(700..1000).collect() } else { left.collect() };
        let mut cursor = bucket.cursor();
        walk(&mut cursor, true, left.iter().copied());
        let mut cursor = bucket.cursor();
        walk(&mut cursor, false, left.iter().rev().copied());
        // Rolled back: the next round starts from all of them.
    }
}

#[test]
fn random_entries_and_buckets_are_walked_in_order_both_ways() {
    let mut random = Random::new(7);
    for _ in 0..20 {
        let count = random.below(2000);
        let mut numbers: Vec<u64> = (0..count).map(|_| random.next()).collect();
        let db = database(numbers.iter().copied().map(number));
        db.update(|tx| {
            let mut buckets = tx.create_bucket("buckets")?;
            numbers.iter().take(200).try_for_each(|&name| buckets.create_bucket(number(name)).map(|_| ()))
        })
        .unwrap();
        numbers.truncate(2000);
        let mut names = numbers[..count.min(200)].to_vec();
        numbers.sort_unstable();
        names.sort_unstable();
        let tx = db.begin().unwrap();
        for (bucket, keys) in [("b", &numbers), ("buckets", &names)] {
            let bucket = tx.bucket(bucket).unwrap();
            walk(&mut bucket.cursor(), true, keys.iter().copied());
            walk(&mut bucket.cursor(), false, keys.iter().rev().copied());
        }
    }
}

/// One step of a walk, as the Go program reads it.
fn random_step(random: &mut Random, keys: &[Vec<u8>]) -> String {
    match random.below(20) {
        0 => "first".to_owned(),
        1 => "last".to_owned(),
        2..=4 => {
            let mut sought = keys.get(random.below(keys.len().max(1))).cloned().unwrap_or_default();
            match random.below(4) {
                0 => sought = random.bytes(3),
                1 => sought.push(0),
                _ => {}
            }
            format!("seek:{}", hex(&sought))
        }
        5..=12 => "next".to_owned(),
        _ => "prev".to_owned(),
    }
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// What one step answers here, as the Go program prints it.
fn step(cursor: &mut Cursor<'_>, step: &str) -> String {
    let found = match step {
        "first" => cursor.first(),
        "last" => cursor.last(),
        "next" => cursor.next(),
        "prev" => cursor.prev(),
        seek => cursor.seek(unhex(seek.strip_prefix("seek:").unwrap())),
    };
    match found.unwrap() {
        Some((key, Some(value))) => format!("{} {}", hex(key), value.len()),
        Some((key, None)) => format!("{} bucket", hex(key)),
        None => "nothing".to_owned(),
    }
}

#[boltkv_needs::program("go")]
#[test]
fn random_walks_answer_as_they_do_in_bbolt() {
    let Some(peer) = crate::common::peer::peer() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::new(3);
    for seed in 0..3 {
        let file = folder.path().join(format!("{seed}.db"));
        let mut generator = Generator::new(seed, Model::default());
        let setup = Setup::with_page_size(1024);
        generator.trace(30, 60).replay(&file, &setup).unwrap();
        let db = Options::new().read_only(true).open(&file).unwrap();
        let tx = db.begin().unwrap();
        for path in generator.model.bucket_paths().iter().take(12) {
            let keys: Vec<Vec<u8>> = generator.model.bucket(path).unwrap().items.keys().cloned().collect();
            // bbolt's cursor must be placed before it steps.
            let steps: Vec<String> =
                std::iter::once("first".to_owned()).chain((0..200).map(|_| random_step(&mut random, &keys))).collect();
            let mut cursor = tx.bucket_path(path).unwrap().cursor();
            let here: Vec<String> = steps.iter().map(|text| step(&mut cursor, text)).collect();
            let there = peer.walk(&file, path, &steps);
            for (number, (here, there)) in here.iter().zip(&there).enumerate() {
                assert_eq!(here, there, "step {number} of {:?} in {path:02x?}", &steps[..=number]);
            }
            assert_eq!(here.len(), there.len());
        }
    }
}
