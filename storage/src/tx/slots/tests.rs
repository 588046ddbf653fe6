//! The chunks behave as one vector would, far beyond the size of one.

use proptest::prelude::*;

use super::*;
use crate::tx::arena::Arena;
use crate::{Db, Options};

/// Resolves keys, which the tests keep in the arena.
struct Bench {
    db: Db,
    arena: Arena,
}

impl Bench {
    fn new() -> Self {
        Self { db: Options::new().open_in_memory().unwrap(), arena: Arena::default() }
    }

    fn slot(&mut self, key: &[u8], page: Pgid) -> Slot {
        Slot::new(key, self.arena.push(key), Content::Page(page))
    }

    /// Runs `look` with what resolves keys.
    fn with<T>(&self, look: impl FnOnce(Bytes<'_>) -> T) -> T {
        let tx = self.db.begin().unwrap();
        look(Bytes { pages: tx.source().pages, arena: &self.arena })
    }
}

/// What a slot is, to compare it.
fn page(slot: &Slot) -> Pgid {
    match slot.content {
        Content::Page(page) => page,
        other => panic!("not one of this test: {other:?}"),
    }
}

fn pages(slots: &Slots) -> Vec<Pgid> {
    slots.iter().map(page).collect()
}

/// All places, from the first by `next`.
fn places(slots: &Slots) -> Vec<At> {
    std::iter::successors(slots.first(), |&at| slots.next(at)).collect()
}

fn assert_whole(slots: &Slots, model: &[Pgid]) {
    assert_eq!(pages(slots), model);
    assert_eq!(slots.len(), model.len());
    assert!(slots.chunks.iter().all(|chunk| (1..=CHUNK).contains(&chunk.len())), "no chunk is empty or too long");
    let places = places(slots);
    let mut backwards: Vec<At> = std::iter::successors(slots.last(), |&at| slots.prev(at)).collect();
    backwards.reverse();
    assert_eq!(places, backwards);
    assert!(places.iter().map(|&at| page(slots.get(at).unwrap())).eq(model.iter().copied()));
}

/// Keys of 1 to 12 bytes that agree in their first bytes, with zeros at their ends: what prefixes could confuse.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(0..3_u8, 1..12),
        (0..5000_u32).prop_map(|number| [&b"common "[..], &number.to_be_bytes()].concat()),
        (0..5000_u16).prop_map(|number| number.to_be_bytes().to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn inserts_and_removals_are_those_of_an_ordered_vector(
        steps in prop::collection::vec((key(), prop::bool::weighted(0.8)), 1500..2500)
    ) {
        let mut bench = Bench::new();
        let mut slots = Slots::default();
        let mut model: Vec<(Vec<u8>, Pgid)> = Vec::new();
        for (number, (key, insert)) in steps.into_iter().enumerate() {
            let expected = model.binary_search_by(|(found, _)| found.cmp(&key));
            let found = bench.with(|bytes| slots.search(&key, bytes));
            prop_assert_eq!(found.is_ok(), expected.is_ok(), "{:?}", key);
            match (found, expected) {
                (Err(at), Err(index)) if insert => {
                    let slot = bench.slot(&key, number as u64);
                    let appended = slots.insert(at, slot);
                    prop_assert_eq!(appended, index == model.len());
                    model.insert(index, (key, number as u64));
                }
                (Ok(at), Ok(index)) if !insert => {
                    prop_assert_eq!(page(&slots.remove(at)), model.remove(index).1);
                }
                (Ok(at), Ok(index)) => prop_assert_eq!(page(slots.get(at).unwrap()), model[index].1),
                (Err(at), Err(index)) => {
                    let after = slots.settle(at).and_then(|at| slots.get(at)).map(page);
                    prop_assert_eq!(after, model.get(index).map(|(_, page)| *page));
                }
                _ => unreachable!("compared above"),
            }
        }
        let expected: Vec<Pgid> = model.iter().map(|(_, page)| *page).collect();
        assert_whole(&slots, &expected);
    }

    #[test]
    fn skipping_and_going_on_from_a_place_count_as_a_vector_does(len in 0..2000_usize, from in 0..2000_usize, by in 0..2000_usize) {
        let mut bench = Bench::new();
        let slots: Slots = (0..len).map(|n| bench.slot(&(n as u64).to_be_bytes(), n as u64)).collect();
        let expected: Vec<Pgid> = (0..len as u64).collect();
        assert_whole(&slots, &expected);
        if let Some(&at) = places(&slots).get(from) {
            let skipped = slots.skip(at, by).and_then(|at| slots.get(at)).map(page);
            prop_assert_eq!(skipped, expected.get(from + by).copied());
            prop_assert!(slots.iter_from(at).map(page).eq(expected[from..].iter().copied()));
        }
    }
}

#[test]
fn slots_that_come_in_order_fill_their_chunks() {
    let mut bench = Bench::new();
    let slots: Slots = (0..1025_u64).map(|n| bench.slot(&n.to_be_bytes(), n)).collect();
    assert_eq!(slots.chunks.iter().map(Vec::len).collect::<Vec<_>>(), [256, 256, 256, 256, 1]);
}

#[test]
fn slots_that_come_backwards_stay_in_order_and_the_last_removal_leaves_nothing() {
    let mut bench = Bench::new();
    let mut slots = Slots::default();
    for number in (0..2000_u64).rev() {
        let slot = bench.slot(&number.to_be_bytes(), number);
        let at = bench.with(|bytes| slots.search(&number.to_be_bytes(), bytes)).unwrap_err();
        slots.insert(at, slot);
    }
    assert_whole(&slots, &(0..2000).collect::<Vec<_>>());
    for expected in 0..2000 {
        let first = slots.first().unwrap();
        assert_eq!(page(&slots.remove(first)), expected);
    }
    assert_whole(&slots, &[]);
    assert_eq!((slots.first(), slots.last()), (None, None));
}

#[test]
fn appended_slots_are_found_where_they_are() {
    let mut bench = Bench::new();
    let mut left: Slots = (0..300_u64).map(|n| bench.slot(&n.to_be_bytes(), n)).collect();
    let right: Slots = (300..900_u64).map(|n| bench.slot(&n.to_be_bytes(), n)).collect();
    left.append(right);
    left.append(Slots::default());
    assert_whole(&left, &(0..900).collect::<Vec<_>>());
    for number in 0..900_u64 {
        let at = bench.with(|bytes| left.search(&number.to_be_bytes(), bytes)).unwrap();
        assert_eq!(page(left.get(at).unwrap()), number);
    }
}

#[test]
fn keys_that_differ_only_in_trailing_zeros_are_told_apart() {
    let keys: [&[u8]; 7] =
        [b"a", b"a\0", b"a\0\0", b"a\0\0\0\0\0\0\0", b"a\0\0\0\0\0\0\0\0", b"a\0\0\0\0\0\0\0\x01", b"b"];
    let mut bench = Bench::new();
    let slots: Slots = keys.into_iter().zip(0..).map(|(key, n)| bench.slot(key, n)).collect();
    for (key, number) in keys.into_iter().zip(0..) {
        let at = bench.with(|bytes| slots.search(key, bytes)).unwrap();
        assert_eq!(page(slots.get(at).unwrap()), number, "{key:?}");
    }
    assert!(bench.with(|bytes| slots.search(b"a\0\0\0", bytes)).is_err());
}
