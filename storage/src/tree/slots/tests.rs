//! The chunks behave as one vector would, far beyond the size of one, whether they began as a page or as nothing.

use proptest::prelude::*;

use super::*;
use crate::format::{ELEMENT, PAGE_HEADER, Pgid};
use crate::tree::arena::Arena;
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
        Slot::new(key, self.arena.push(key, b""), Content::Page(page))
    }

    /// The slots of a branch page with these children.
    fn page(&mut self, children: &[(Vec<u8>, Pgid)]) -> Slots {
        let mut slots = Slots::default();
        if children.is_empty() {
            return slots;
        }
        let page = self.arena.push(&branch(children), b"");
        let len = branch(children).len();
        self.with(|bytes| {
            let page = Page::parse(0, bytes.at(page, len)).unwrap();
            let (stretch, size) = Stretch::of_page(&page, bytes).unwrap();
            assert_eq!(size, len - PAGE_HEADER);
            slots.push_stretch(stretch, bytes);
        });
        slots
    }

    /// Runs `look` with what resolves keys.
    fn with<T>(&self, look: impl FnOnce(Bytes<'_>) -> T) -> T {
        let tx = self.db.begin().unwrap();
        look(Bytes { pages: tx.source().pages, arena: &self.arena })
    }

    /// The slots are what `model` lists, seen from all sides.
    fn assert_whole(&self, slots: &Slots, model: &[(Vec<u8>, Pgid)]) {
        let expected: Vec<Pgid> = model.iter().map(|(_, page)| *page).collect();
        let places = places(slots);
        let mut backwards: Vec<At> = std::iter::successors(slots.last(), |&at| slots.prev(at)).collect();
        backwards.reverse();
        assert_eq!(places, backwards);
        assert_eq!(slots.len(), model.len());
        assert!(slots.chunks.iter().all(|chunk| chunk.len() > 0), "no chunk is empty");
        self.with(|bytes| {
            assert_eq!(pages(slots, bytes), expected);
            let sizes: Vec<usize> = model.iter().map(|(key, _)| ELEMENT + key.len()).collect();
            assert_eq!(slots.sizes(bytes).collect::<Vec<_>>(), sizes);
            for (chunk, first) in slots.chunks.iter().zip(&slots.firsts) {
                assert_eq!(prefix(chunk.slot(0, bytes).unwrap().key(bytes)), *first);
            }
            for (from, to) in [(0, model.len()), (1, model.len()), (model.len() / 3, model.len() / 2)] {
                let Some(part) = model.get(from..to).filter(|part| !part.is_empty()) else { continue };
                let expected = branch(part);
                let mut page = vec![0; expected.len()];
                let mut writer = PageWriter::branch(&mut page, 0, 0, part.len());
                slots.write(places[from], part.len(), &mut writer, bytes);
                assert!(page == expected, "{from}..{to} of {}", model.len());
            }
        });
    }
}

/// A branch page, written child by child.
fn branch(children: &[(Vec<u8>, Pgid)]) -> Vec<u8> {
    let data: usize = children.iter().map(|(key, _)| ELEMENT + key.len()).sum();
    let mut page = vec![0; PAGE_HEADER + data];
    let mut writer = PageWriter::branch(&mut page, 0, 0, children.len());
    for (key, child) in children {
        writer.child(key, *child);
    }
    page
}

/// What a slot is, to compare it.
fn page(slot: &Slot) -> Pgid {
    match slot.content() {
        Content::Page(page) => page,
        other => panic!("not one of this test: {other:?}"),
    }
}

/// What is at a place.
fn page_at(slots: &Slots, at: At, bytes: Bytes<'_>) -> Option<Pgid> {
    slots.get(at, bytes).as_ref().map(page)
}

fn pages(slots: &Slots, bytes: Bytes<'_>) -> Vec<Pgid> {
    places(slots).into_iter().filter_map(|at| page_at(slots, at, bytes)).collect()
}

/// All places, from the first by `next`.
fn places(slots: &Slots) -> Vec<At> {
    std::iter::successors(slots.first(), |&at| slots.next(at)).collect()
}

/// Keys of 1 to 12 bytes that agree in their first bytes, with zeros at their ends: what prefixes could confuse.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(0..3_u8, 1..12),
        (0..5000_u32).prop_map(|number| [&b"common "[..], &number.to_be_bytes()].concat()),
        (0..5000_u16).prop_map(|number| number.to_be_bytes().to_vec()),
    ]
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Put,
    Remove,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn changes_are_those_of_an_ordered_vector(
        loaded in prop::collection::btree_set(key(), 0..400),
        steps in prop::collection::vec((key(), prop_oneof![4 => Just(Step::Put), 1 => Just(Step::Remove)]), 1..2000),
        seldom in 1..200_usize,
    ) {
        let mut bench = Bench::new();
        let mut model: Vec<(Vec<u8>, Pgid)> = loaded.into_iter().zip(10_000..).collect();
        let mut slots = bench.page(&model);
        for (number, (key, step)) in steps.into_iter().enumerate() {
            if number % seldom == 0 {
                bench.assert_whole(&slots, &model);
            }
            let expected = model.binary_search_by(|(found, _)| found.cmp(&key));
            let found = bench.with(|bytes| slots.search(&key, bytes));
            prop_assert_eq!(found.is_ok(), expected.is_ok(), "{:?}", key);
            let slot = bench.slot(&key, number as u64);
            bench.with(|bytes| match (found, expected, step) {
                (Err(at), Err(index), Step::Put) => {
                    assert_eq!(slots.insert(at, slot, bytes), index == model.len(), "appended?");
                    model.insert(index, (key, number as u64));
                }
                (Ok(at), Ok(index), Step::Put) => {
                    assert_eq!(page_at(&slots, at, bytes), Some(model[index].1));
                    let at = slots.replace(at, slot, bytes);
                    assert_eq!(page_at(&slots, at, bytes), Some(number as u64));
                    model[index].1 = number as u64;
                }
                (Ok(at), Ok(index), Step::Remove) => {
                    assert_eq!(slots.remove(at, bytes).as_ref().map(page), Some(model.remove(index).1));
                }
                (Err(at), Err(index), Step::Remove) => {
                    let after = slots.settle(at).and_then(|at| page_at(&slots, at, bytes));
                    assert_eq!(after, model.get(index).map(|(_, page)| *page));
                }
                _ => unreachable!("compared above"),
            });
        }
        bench.assert_whole(&slots, &model);
    }

    #[test]
    fn skipping_counts_as_a_vector_does(len in 0..2000_u64, from in 0..2000_usize, by in 0..2000_usize) {
        let mut bench = Bench::new();
        let model = numbered(0..len);
        let slots = all(&mut bench, &model);
        bench.assert_whole(&slots, &model);
        if let Some(&at) = places(&slots).get(from) {
            let skipped = slots.skip(at, by).and_then(|at| bench.with(|bytes| page_at(&slots, at, bytes)));
            prop_assert_eq!(skipped, model.get(from + by).map(|(_, page)| *page));
        }
    }
}

fn numbered(numbers: std::ops::Range<u64>) -> Vec<(Vec<u8>, Pgid)> {
    numbers.map(|n| (n.to_be_bytes().to_vec(), n)).collect()
}

fn all(bench: &mut Bench, model: &[(Vec<u8>, Pgid)]) -> Slots {
    let mut slots = Slots::default();
    for (key, page) in model {
        slots.push(bench.slot(key, *page));
    }
    slots
}

#[test]
fn slots_that_come_in_order_fill_their_chunks() {
    let slots = all(&mut Bench::new(), &numbered(0..1025));
    assert_eq!(slots.chunks.iter().map(Chunk::len).collect::<Vec<_>>(), [256, 256, 256, 256, 1]);
}

#[test]
fn slots_that_come_backwards_stay_in_order_and_the_last_removal_leaves_nothing() {
    let mut bench = Bench::new();
    let mut slots = Slots::default();
    for number in (0..2000_u64).rev() {
        let slot = bench.slot(&number.to_be_bytes(), number);
        bench.with(|bytes| {
            let at = slots.search(&number.to_be_bytes(), bytes).unwrap_err();
            slots.insert(at, slot, bytes);
        });
    }
    bench.assert_whole(&slots, &numbered(0..2000));
    for expected in 0..2000 {
        let first = slots.first().unwrap();
        let removed = bench.with(|bytes| slots.remove(first, bytes));
        assert_eq!(removed.as_ref().map(page), Some(expected));
    }
    bench.assert_whole(&slots, &[]);
    assert_eq!((slots.first(), slots.last()), (None, None));
}

#[test]
fn appended_slots_are_found_where_they_are() {
    let mut bench = Bench::new();
    let model = numbered(0..900);
    let mut left = all(&mut bench, &model[..300]);
    let right = bench.page(&model[300..]);
    left.append(right);
    left.append(Slots::default());
    bench.assert_whole(&left, &model);
    for (key, number) in model {
        let found = bench.with(|bytes| page_at(&left, left.search(&key, bytes).unwrap(), bytes));
        assert_eq!(found, Some(number));
    }
}

#[test]
fn keys_that_differ_only_in_trailing_zeros_are_told_apart() {
    let keys: [&[u8]; 7] =
        [b"a", b"a\0", b"a\0\0", b"a\0\0\0\0\0\0\0", b"a\0\0\0\0\0\0\0\0", b"a\0\0\0\0\0\0\0\x01", b"b"];
    let mut sorted: Vec<(Vec<u8>, Pgid)> = keys.into_iter().map(<[u8]>::to_vec).zip(0..).collect();
    sorted.sort();
    let mut bench = Bench::new();
    for slots in [all(&mut bench, &sorted), bench.page(&sorted)] {
        for (key, number) in &sorted {
            let found = bench.with(|bytes| page_at(&slots, slots.search(key, bytes).unwrap(), bytes));
            assert_eq!(found, Some(*number), "{key:?}");
        }
        assert!(bench.with(|bytes| slots.search(b"a\0\0\0", bytes)).is_err());
    }
}
