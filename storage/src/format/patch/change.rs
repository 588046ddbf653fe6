//! How the order of a patched leaf's entries differs from its page's.

use std::ops::Range;

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Where the order changes: from place `at` on stand the entry that was added, if one was, and then the page's elements
/// from `base` on, up to the next change's place. Before the first change they are as on the page.
///
/// A change that adds nothing has an element behind it: it passes over some that were deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Change {
    at: U16,
    base: U16,
    /// Where the entry lies that was added; 0 for none.
    added: U32,
}

/// Where an entry of a patched leaf is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spot {
    /// On the page: this element.
    Base(usize),
    /// In memory, at this place.
    Added(u32),
}

impl Change {
    pub(super) fn new(at: usize, base: usize, added: u32) -> Self {
        let small = |number: usize| u16::try_from(number).expect("a leaf that is patched is on a page of up to 32 KiB");
        Self { at: small(at).into(), base: small(base).into(), added: added.into() }
    }

    pub(super) fn at(self) -> usize {
        self.at.get().into()
    }

    /// The first element of the page behind it.
    pub(super) fn base(self) -> usize {
        self.base.get().into()
    }

    /// Where the entry lies that was added, if one was.
    pub(crate) fn added(self) -> Option<u32> {
        Some(self.added.get()).filter(|&added| added != 0)
    }

    /// Where the page's elements begin.
    pub(super) fn run_at(self) -> usize {
        self.at() + usize::from(self.added().is_some())
    }

    /// The element that stands at `index`, behind the change.
    fn element(self, index: usize) -> usize {
        self.base() + index - self.run_at()
    }

    fn spot(self, index: usize) -> Spot {
        match self.added() {
            Some(added) if index == self.at() => Spot::Added(added),
            _ => Spot::Base(self.element(index)),
        }
    }
}

/// Where the entry at `index` is, and the place of the next change behind it.
pub(super) fn spot(changes: &[Change], index: usize) -> (Spot, Option<usize>) {
    let behind = changes.partition_point(|change| change.at() <= index);
    let next = changes.get(behind).map(|change| change.at());
    match behind.checked_sub(1) {
        Some(last) => (changes[last].spot(index), next),
        None => (Spot::Base(index), next),
    }
}

/// Where a key stands, or would.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Where an element of the page is that is still there; or between two that still follow one another.
    OfElement(usize),
    /// Among what these changes have added, or behind that, at this index.
    Among(Range<usize>, usize),
}

/// Where a key is in a leaf of `len` entries, of which it is known where it is among the page's elements, or would be.
pub(super) fn where_is(changes: &[Change], len: usize, found: Result<usize, usize>) -> Place {
    let (Ok(element) | Err(element)) = found;
    // Where elements begin that are still there, and from which one on; and the first change behind the ones before them.
    let (mut at, mut base, mut first) = (0, 0, 0);
    for next in 0..=changes.len() {
        let end = changes.get(next).map_or(len, |change| change.at());
        if let elements @ 1.. = end.saturating_sub(at) {
            if element < base || found == Err(base) {
                return Place::Among(first..next, at);
            }
            if element < base + elements {
                return Place::OfElement(at + element - base);
            }
            first = next;
        }
        if let Some(change) = changes.get(next) {
            (at, base) = (change.run_at(), change.base());
        }
    }
    Place::Among(first..changes.len(), len)
}

/// Changes that are being made more.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(super) list: Vec<Change>,
    /// How many entries there are.
    pub(super) len: usize,
}

impl Changes {
    /// As they are, of so many entries.
    pub(super) fn begin(&mut self, list: &[Change], len: usize) {
        self.list.clear();
        self.list.extend_from_slice(list);
        self.len = len;
    }

    /// What stands at `index` is another entry from now on. Like [`Self::insert`], it answers which change it is in.
    pub(super) fn replace(&mut self, index: usize, added: u32) -> usize {
        let next = self.first_after(index);
        let new = |base| Change::new(index, base, added);
        match next.checked_sub(1).map(|last| (last, self.list[last])) {
            Some((last, change)) if change.at() == index => {
                let base = if change.added().is_some() { change.base() } else { change.base() + 1 };
                self.list[last] = new(base);
                last
            }
            Some((_, change)) => {
                self.list.insert(next, new(change.element(index) + 1));
                next
            }
            None => {
                self.list.insert(next, new(index + 1));
                next
            }
        }
    }

    /// An entry stands at `index` from now on, before what stood there.
    pub(super) fn insert(&mut self, index: usize, added: u32) -> usize {
        let next = self.list.partition_point(|change| change.at() < index);
        self.list[next..].iter_mut().for_each(|change| change.at += 1);
        self.len += 1;
        let base = next.checked_sub(1).map_or(index, |last| self.list[last].element(index));
        self.list.insert(next, Change::new(index, base, added));
        next
    }

    /// What stands at `index` is gone from now on.
    pub(super) fn remove(&mut self, index: usize) {
        let mut next = self.first_after(index);
        let cut = match next.checked_sub(1).map(|last| (last, self.list[last])) {
            Some((last, change)) if change.at() == index => {
                self.list.remove(last);
                next = last;
                if change.added().is_some() { change.base() } else { change.base() + 1 }
            }
            Some((_, change)) => change.element(index) + 1,
            None => index + 1,
        };
        self.list[next..].iter_mut().for_each(|change| change.at -= 1);
        self.len -= 1;
        // Nothing of the page may follow here, or just what would without a change.
        let end = self.list.get(next).map_or(self.len, |change| change.at());
        let usual = next.checked_sub(1).map_or(index, |last| self.list[last].element(index));
        if end > index && cut != usual {
            self.list.insert(next, Change::new(index, cut, 0));
        }
    }

    /// The first change behind `index`.
    fn first_after(&self, index: usize) -> usize {
        self.list.partition_point(|change| change.at() <= index)
    }
}

/// Changes of a leaf of `len` entries that began from one with the changes `old`, as they are from the page to which that
/// one was written: its entries are that page's elements. Into `rebased`, which is empty.
pub(super) fn rebase(new: &[Change], len: usize, old: &[Change], old_len: usize, rebased: &mut Vec<Change>) {
    // The element that follows what was said so far.
    let mut next = 0;
    let mut follows_added = false;
    for index in 0..len {
        let was = spot(new, index).0;
        match (place_of(was, old, old_len), was) {
            (Some(element), _) => {
                match rebased.last_mut().filter(|_| follows_added) {
                    Some(added) => *added = Change::new(added.at(), element, added.added.get()),
                    None if element != next => rebased.push(Change::new(index, element, 0)),
                    None => {}
                }
                (next, follows_added) = (element + 1, false);
            }
            (None, Spot::Added(added)) => {
                rebased.push(Change::new(index, next, added));
                follows_added = true;
            }
            // An element that was gone does not come back.
            (None, Spot::Base(_)) => debug_assert!(false, "{new:?} do not follow {old:?}"),
        }
    }
}

/// Where in a leaf of `len` entries this one stands, if it does.
fn place_of(spot: Spot, changes: &[Change], len: usize) -> Option<usize> {
    let element = match spot {
        Spot::Added(added) => {
            return changes.iter().find(|change| change.added() == Some(added)).map(|change| change.at());
        }
        Spot::Base(element) => element,
    };
    let (mut at, mut base) = (0, 0);
    for next in 0..=changes.len() {
        let end = changes.get(next).map_or(len, |change| change.at());
        if (base..base + end.saturating_sub(at)).contains(&element) {
            return Some(at + element - base);
        }
        if let Some(change) = changes.get(next) {
            (at, base) = (change.run_at(), change.base());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, without what Miri keeps from tests.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap_or(0) % end
        }
    }

    fn step(changes: &mut Changes, model: &mut Vec<Spot>, number: u32, random: &mut Numbers) {
        match (random.below(3), model.len()) {
            (0, len) => {
                let index = random.below(len + 1);
                let which = changes.insert(index, number);
                assert_eq!(changes.list[which].added(), Some(number));
                model.insert(index, Spot::Added(number));
            }
            (_, 0) => {}
            (1, len) => {
                let index = random.below(len);
                let which = changes.replace(index, number);
                assert_eq!(changes.list[which].added(), Some(number));
                model[index] = Spot::Added(number);
            }
            (_, len) => {
                let index = random.below(len);
                changes.remove(index);
                model.remove(index);
            }
        }
    }

    /// A leaf as it is on its page.
    fn written(random: &mut Numbers) -> (Changes, Vec<Spot>) {
        let elements = random.below(12);
        let mut changes = Changes::default();
        changes.begin(&[], elements);
        (changes, (0..elements).map(Spot::Base).collect())
    }

    #[test]
    fn changes_that_are_rebased_lead_to_the_same_entries() {
        for seed in 0..if cfg!(miri) { 5 } else { 2000 } {
            let mut random = Numbers(seed);
            let (mut changes, mut model) = written(&mut random);
            let mut number = 0;
            let mut steps = |changes: &mut Changes, model: &mut Vec<Spot>, random: &mut Numbers| {
                for _ in 0..random.below(25) {
                    number += 1;
                    step(changes, model, number, random);
                }
            };
            steps(&mut changes, &mut model, &mut random);
            let (old, copied) = (changes.list.clone(), model.clone());
            steps(&mut changes, &mut model, &mut random);
            let mut list = Vec::new();
            rebase(&changes.list, changes.len, &old, copied.len(), &mut list);
            let mut rebased = Changes { list, len: changes.len };
            let told = |changes: &Changes| -> Vec<Spot> {
                let all = (0..changes.len).map(|index| match spot(&changes.list, index).0 {
                    Spot::Base(element) => copied[element],
                    added @ Spot::Added(_) => added,
                });
                all.collect()
            };
            assert_eq!(told(&rebased), model, "seed {seed}");
            // And they can be changed on.
            let on_copy = |spot: &Spot| copied.iter().position(|other| other == spot).map_or(*spot, Spot::Base);
            let mut model: Vec<Spot> = model.iter().map(on_copy).collect();
            steps(&mut rebased, &mut model, &mut random);
            let told: Vec<_> = (0..rebased.len).map(|index| spot(&rebased.list, index).0).collect();
            assert_eq!(told, model, "seed {seed}");
        }
    }

    /// Of a key before `element` and behind the one before that.
    fn all_that_was_added_is_looked_at(changes: &Changes, model: &[Spot], element: usize) {
        let is = |spot: &Spot, holds: &dyn Fn(usize) -> bool| matches!(spot, Spot::Base(other) if holds(*other));
        let begin = model.iter().rposition(|spot| is(spot, &|other| other < element)).map_or(0, |last| last + 1);
        let end = model.iter().position(|spot| is(spot, &|other| other >= element)).unwrap_or(model.len());
        match where_is(&changes.list, changes.len, Err(element)) {
            Place::OfElement(index) => assert_eq!((begin, end), (index, index)),
            Place::Among(among, behind) => {
                let ats =
                    changes.list[among].iter().filter(|change| change.added().is_some()).map(|change| change.at());
                assert_eq!((ats.collect::<Vec<_>>(), behind), ((begin..end).collect(), end));
            }
        }
    }

    #[test]
    fn changes_say_what_a_list_would_hold() {
        for seed in 0..if cfg!(miri) { 1 } else { 2000 } {
            let mut random = Numbers(seed);
            let (mut changes, mut model) = written(&mut random);
            let elements = model.len();
            for number in 1..60 {
                step(&mut changes, &mut model, number, &mut random);
                let told: Vec<_> = (0..changes.len).map(|index| spot(&changes.list, index).0).collect();
                assert_eq!(told, model, "seed {seed}");
                let ats: Vec<_> = changes.list.iter().map(|change| change.at()).collect();
                assert!(ats.is_sorted_by(|one, other| one < other), "seed {seed}: {changes:?}");
                for (index, change) in changes.list.iter().enumerate() {
                    let end = changes.list.get(index + 1).map_or(changes.len, |change| change.at());
                    let is_empty = change.added().is_none() && end == change.at();
                    assert!(!is_empty, "seed {seed}: an empty run: {changes:?}");
                }
                for element in 0..elements {
                    let place = where_is(&changes.list, changes.len, Ok(element));
                    let stays = model.iter().position(|&spot| spot == Spot::Base(element));
                    assert_eq!(stays.is_none(), matches!(place, Place::Among(..)), "seed {seed}: {element}");
                    assert!(stays.is_none_or(|index| place == Place::OfElement(index)), "seed {seed}: {element}");
                }
                for element in 0..=elements {
                    all_that_was_added_is_looked_at(&changes, &model, element);
                }
            }
        }
    }
}
