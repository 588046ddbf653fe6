//! A chunk's slots, so that an insert among them moves little.

use std::cmp::Ordering;
use std::ops::Range;

use super::slot::Slot;
use crate::disk::prefetch;
use crate::format::{Between, search};
use crate::tree::arena::Bytes;

/// Most slots in a chunk, which a byte can count: a full one is cut in half, or, when appended to, followed by a new one.
pub(super) const CHUNK: usize = 256;

/// Slots before a guess where a key may stand; and three times as many behind it, which an insert moves.
const NEAR: usize = 24;

/// Slots in the order of their keys. Most chunks have one, which takes no memory of its own.
pub(crate) struct Sorted(Held);

enum Held {
    Few(Option<Slot>),
    Many(Many),
}

/// What is searched and moved is a prefix and a byte for each; the slots themselves lie in the order they came.
struct Many {
    prefixes: Vec<u64>,
    /// Where in `slots` each is.
    places: Vec<u8>,
    slots: Vec<Slot>,
}

impl Many {
    /// Up to [`CHUNK`] slots, which are in order.
    fn of(slots: Vec<Slot>) -> Self {
        debug_assert!(slots.len() <= CHUNK);
        Self {
            prefixes: slots.iter().map(|slot| slot.prefix).collect(),
            places: (0..=u8::MAX).take(slots.len()).collect(),
            slots,
        }
    }

    fn get(&self, index: usize) -> Option<&Slot> {
        self.places.get(index).map(|place| &self.slots[usize::from(*place)])
    }

    fn insert(&mut self, index: usize, slot: Slot) {
        let place = u8::try_from(self.slots.len()).expect("who inserts has looked whether it is full");
        self.prefixes.insert(index, slot.prefix);
        self.places.insert(index, place);
        self.slots.push(slot);
    }

    fn remove(&mut self, index: usize) {
        self.prefixes.remove(index);
        let place = self.places.remove(index);
        self.slots.swap_remove(place.into());
        // The slot that was last has taken the place of the one that was removed.
        if let Some(moved) = self.places.iter_mut().find(|other| usize::from(**other) == self.slots.len()) {
            *moved = place;
        }
    }

    /// Fetches what a search near `index`, and an insert after it, look at. In a node of a million these waits for memory
    /// would follow one another.
    fn prefetch(&self, index: usize) {
        let around = index.saturating_sub(NEAR)..(index + 3 * NEAR).min(self.slots.len());
        prefetch(&self.prefixes[around.clone()]);
        prefetch(&self.places[around]);
        prefetch(&self.slots[self.slots.len() - 1..]);
    }

    /// Those at the places `within`, in order.
    fn part(&self, within: Range<usize>) -> Self {
        let mut slots = Vec::with_capacity(CHUNK);
        slots.extend(self.places[within].iter().map(|place| self.slots[usize::from(*place)]));
        Self::of(slots)
    }
}

impl Sorted {
    /// None, to which some are added at once.
    pub(super) const EMPTY: Self = Self(Held::Few(None));

    pub(super) fn one(slot: Slot) -> Self {
        Self(Held::Few(Some(slot)))
    }

    /// Up to [`CHUNK`] slots, which are in order.
    pub(super) fn of(slots: Vec<Slot>) -> Self {
        Self(Held::Many(Many::of(slots)))
    }

    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Held::Few(slot) => slot.iter().len(),
            Held::Many(many) => many.slots.len(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() == CHUNK
    }

    pub(super) fn get(&self, index: usize) -> Option<&Slot> {
        match &self.0 {
            Held::Few(slot) => slot.as_ref().filter(|_| index == 0),
            Held::Many(many) => many.get(index),
        }
    }

    pub(super) fn first_prefix(&self) -> Option<u64> {
        self.get(0).map(|slot| slot.prefix)
    }

    /// The slots at the places `within`.
    pub(crate) fn range(&self, within: Range<usize>) -> impl Iterator<Item = &Slot> {
        within.filter_map(|index| self.get(index))
    }

    /// Where `key`, whose prefix is `wanted`, stands, or would stand.
    pub(super) fn search(&self, key: &[u8], wanted: u64, between: Between, bytes: Bytes<'_>) -> Result<usize, usize> {
        let Held::Many(many) = &self.0 else {
            return match self.get(0).map(|slot| slot.cmp(bytes, wanted, key)) {
                Some(Ordering::Equal) => Ok(0),
                Some(Ordering::Less) => Err(1),
                Some(Ordering::Greater) | None => Err(0),
            };
        };
        let all = 0..many.slots.len();
        let guess = between.guess(&all, wanted);
        many.prefetch(guess.unwrap_or(0));
        let found = search(
            all,
            guess,
            wanted,
            |index| Some(many.prefixes[index]),
            |index| many.get(index).map(|slot| slot.cmp(bytes, wanted, key)),
        );
        found.expect("every place has a slot")
    }

    /// Inserts at `index`; there is room.
    pub(super) fn insert(&mut self, index: usize, slot: Slot) {
        match &mut self.0 {
            Held::Few(few @ None) => *few = Some(slot),
            Held::Few(Some(other)) => {
                let slots = if index == 0 { vec![slot, *other] } else { vec![*other, slot] };
                *self = Self::of(slots);
            }
            Held::Many(many) => many.insert(index, slot),
        }
    }

    /// Puts `slot`, which has the same key, at `index`.
    pub(super) fn replace(&mut self, index: usize, slot: Slot) {
        match &mut self.0 {
            Held::Few(few) => *few = Some(slot),
            Held::Many(many) => many.slots[usize::from(many.places[index])] = slot,
        }
    }

    pub(super) fn remove(&mut self, index: usize) {
        match &mut self.0 {
            Held::Few(few) => *few = None,
            Held::Many(many) => many.remove(index),
        }
    }

    /// Cuts off those from `index` on.
    pub(super) fn split_off(&mut self, index: usize) -> Self {
        match &mut self.0 {
            Held::Many(many) if index < many.slots.len() => {
                let right = many.part(index..many.slots.len());
                *many = many.part(0..index);
                Self(Held::Many(right))
            }
            Held::Few(_) | Held::Many(_) => Self::EMPTY,
        }
    }
}
