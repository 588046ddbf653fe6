//! A node's entries while they are being changed: an ordered sequence in chunks.
//!
//! What was not changed stays a [`Stretch`] of the page it came from. What was is a [`Slot`]; one array of them would
//! make an insert cost as much as the node is long, and a node grows without limit until commit splits it. Chunks of
//! a few hundred bound what an insert moves.

mod slot;
mod sorted;
mod stretch;

use std::cmp::Ordering;

use super::arena::Bytes;
use crate::format::{Between, LeafEntry, Page, PageWriter, prefix, search};
use crate::pages::Run;
pub(crate) use slot::{Content, Slot};
use sorted::{CHUNK, Sorted};
pub(crate) use stretch::Stretch;

/// A stretch is cut where it is changed as long as there are fewer chunks than this; then what is left of it becomes
/// slots, because many short chunks cost more than they save.
const MOST_CUT: usize = 24;

/// A place in a [`Slots`], only good until the next change; or, with chunk 0, in a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) chunk: u32,
    pub(crate) index: u32,
}

/// Entries that follow one another. Never none.
pub(crate) enum Chunk {
    /// As they are in the file.
    Untouched(Stretch),
    Changed(Sorted),
}

impl Chunk {
    fn len(&self) -> usize {
        match self {
            Self::Untouched(stretch) => stretch.len(),
            Self::Changed(slots) => slots.len(),
        }
    }

    /// How its first key stands to `key`, whose prefix is `wanted`.
    fn cmp_first(&self, wanted: u64, key: &[u8], bytes: Bytes<'_>) -> Ordering {
        match self {
            Self::Untouched(stretch) => stretch.key(0, bytes).cmp(key),
            Self::Changed(slots) => slots.get(0).map_or(Ordering::Greater, |slot| slot.cmp(bytes, wanted, key)),
        }
    }

    fn slot(&self, index: usize, bytes: Bytes<'_>) -> Option<Slot> {
        match self {
            Self::Untouched(stretch) => (index < stretch.len()).then(|| stretch.slot(index, bytes)).flatten(),
            Self::Changed(slots) => slots.get(index).copied(),
        }
    }

    fn part(&self, from: usize, to: usize) -> Option<Piece<'_>> {
        match self {
            Self::Untouched(stretch) => stretch.part(from, to).map(Piece::Untouched),
            Self::Changed(slots) => (from < to).then_some(Piece::Changed(slots, from, to)),
        }
    }
}

/// A part of a chunk. Never empty.
#[derive(Clone, Copy)]
enum Piece<'a> {
    Untouched(Stretch),
    /// The slots from one place on, up to another.
    Changed(&'a Sorted, usize, usize),
}

/// An ordered sequence of entries. No chunk is ever empty.
#[derive(Default)]
pub(crate) struct Slots {
    chunks: Vec<Chunk>,
    /// The prefix of each chunk's first key.
    firsts: Vec<u64>,
    len: usize,
}

impl Slots {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, at: At, bytes: Bytes<'_>) -> Option<Slot> {
        self.chunks.get(at.chunk as usize)?.slot(at.index as usize, bytes)
    }

    /// What the entry at `at` stands for, if this transaction has changed it.
    pub(crate) fn changed(&self, at: At) -> Option<Content> {
        match self.chunks.get(at.chunk as usize)? {
            Chunk::Untouched(_) => None,
            Chunk::Changed(slots) => slots.get(at.index as usize).map(Slot::content),
        }
    }

    /// The entry of a leaf.
    pub(crate) fn entry<'a>(&self, at: At, bytes: Bytes<'a>) -> Option<LeafEntry<'a>> {
        self.get(at, bytes)?.entry(bytes)
    }

    pub(crate) fn first(&self) -> Option<At> {
        (self.len > 0).then_some(At { chunk: 0, index: 0 })
    }

    pub(crate) fn last(&self) -> Option<At> {
        let chunk = self.chunks.len().checked_sub(1)?;
        Some(At { chunk: small(chunk), index: small(self.chunks[chunk].len() - 1) })
    }

    pub(crate) fn next(&self, at: At) -> Option<At> {
        self.settle(At { index: at.index + 1, ..at })
    }

    /// The same, but all of a stretch is passed over at once: nothing in it was changed.
    pub(crate) fn next_changed(&self, at: At) -> Option<At> {
        match self.chunks.get(at.chunk as usize)? {
            Chunk::Untouched(stretch) => self.settle(At { index: small(stretch.len()), ..at }),
            Chunk::Changed(_) => self.next(at),
        }
    }

    pub(crate) fn prev(&self, at: At) -> Option<At> {
        if at.index > 0 {
            return Some(At { index: at.index - 1, ..at });
        }
        let chunk = at.chunk.checked_sub(1)?;
        Some(At { chunk, index: small(self.chunks[chunk as usize].len() - 1) })
    }

    /// The place `count` entries after `at`.
    pub(crate) fn skip(&self, at: At, count: usize) -> Option<At> {
        let (mut chunk, mut index) = (at.chunk as usize, at.index as usize + count);
        while let Some(slots) = self.chunks.get(chunk) {
            if index < slots.len() {
                return Some(self::at(chunk, index));
            }
            (chunk, index) = (chunk + 1, index - slots.len());
        }
        None
    }

    /// Where the entry at `at` is, or, if `at` is past a chunk's end, the one after it.
    pub(crate) fn settle(&self, at: At) -> Option<At> {
        let chunk = self.chunks.get(at.chunk as usize)?;
        if (at.index as usize) < chunk.len() {
            return Some(at);
        }
        self.chunks.get(at.chunk as usize + 1).map(|_| At { chunk: at.chunk + 1, index: 0 })
    }

    /// `Ok`: where `key` stands; `Err`: where it would be inserted, which may be one past a chunk's
    /// end ([`Self::settle`] it before reading there).
    pub(crate) fn search(&self, key: &[u8], bytes: Bytes<'_>) -> Result<At, At> {
        self.search_between(key, Between::ANY, bytes)
    }

    /// The same; `around` is what is known of all keys, by whole prefixes.
    pub(crate) fn search_between(&self, key: &[u8], around: Between, bytes: Bytes<'_>) -> Result<At, At> {
        let wanted = prefix(key);
        let Some(last) = self.firsts.len().checked_sub(1) else { return Err(at(0, 0)) };
        // The last chunk that begins at or before the key.
        let all = 0..self.firsts.len();
        let chunk = search(
            all.clone(),
            Between::prefixes(self.firsts[0], self.firsts[last]).guess(&all, wanted),
            wanted,
            |chunk| Some(self.firsts[chunk]),
            |chunk| Some(self.chunks[chunk].cmp_first(wanted, key, bytes)),
        );
        let chunk = match chunk {
            Some(Err(after)) => after.saturating_sub(1),
            Some(Ok(chunk)) => chunk,
            None => 0,
        };
        let between = match self.firsts.get(chunk + 1) {
            Some(next) => Between::prefixes(self.firsts[chunk], *next),
            None => around.from(self.firsts[chunk]),
        };
        let found = match &self.chunks[chunk] {
            Chunk::Untouched(stretch) => stretch.search(key, between, bytes),
            Chunk::Changed(slots) => slots.search(key, wanted, between, bytes),
        };
        found.map(|index| at(chunk, index)).map_err(|index| at(chunk, index))
    }

    /// What is known of the keys below the child at `at`.
    pub(crate) fn between(&self, at: At, bytes: Bytes<'_>) -> Between {
        let next = self.next(at).and_then(|next| self.get(next, bytes));
        match (self.get(at, bytes), next) {
            (Some(slot), Some(next)) => Between::prefixes(slot.prefix, next.prefix),
            _ => Between::ANY,
        }
    }

    /// Inserts where [`Self::search`] said; `true` if it came after everything that was there.
    pub(crate) fn insert(&mut self, at: At, slot: Slot, bytes: Bytes<'_>) -> bool {
        let last = self.chunks.len().saturating_sub(1);
        let at_end = at.chunk as usize >= last && self.chunks.last().is_none_or(|c| at.index as usize >= c.len());
        let (mut chunk, mut index) = self.make_gap(at, bytes);
        if self.slots_of(chunk).is_full() {
            let cut = if at_end { CHUNK } else { CHUNK / 2 };
            let tail = self.slots_of(chunk).split_off(cut);
            let first = tail.first_prefix().unwrap_or(slot.prefix);
            self.put_chunk(chunk + 1, Chunk::Changed(tail), first);
            if at_end || index > cut {
                (chunk, index) = (chunk + 1, index - cut);
            }
        }
        self.slots_of(chunk).insert(index, slot);
        if index == 0 {
            self.firsts[chunk] = slot.prefix;
        }
        self.len += 1;
        at_end
    }

    /// Appends a slot that comes after all others.
    pub(crate) fn push(&mut self, slot: Slot) {
        match self.chunks.last_mut() {
            Some(Chunk::Changed(slots)) if !slots.is_full() => slots.insert(slots.len(), slot),
            _ => self.put_chunk(self.chunks.len(), Chunk::Changed(Sorted::one(slot)), slot.prefix),
        }
        self.len += 1;
    }

    /// Appends what comes after all others.
    pub(crate) fn push_stretch(&mut self, stretch: Stretch, bytes: Bytes<'_>) {
        self.len += stretch.len();
        self.put_chunk(self.chunks.len(), Chunk::Untouched(stretch), stretch.first_prefix(bytes));
    }

    /// Puts `slot`, which has the same key, in the place of what is at `at`; returns where it now is.
    pub(crate) fn replace(&mut self, at: At, slot: Slot, bytes: Bytes<'_>) -> At {
        let (mut chunk, mut index) = (at.chunk as usize, at.index as usize);
        if let Chunk::Untouched(stretch) = self.chunks[chunk] {
            if self.chunks.len() < MOST_CUT {
                self.cut(chunk, index, index + 1, Some(slot), bytes);
                return self::at(chunk + usize::from(index > 0), 0);
            }
            (chunk, index) = self.take_apart(chunk, stretch, index, bytes);
        }
        self.slots_of(chunk).replace(index, slot);
        self::at(chunk, index)
    }

    pub(crate) fn remove(&mut self, at: At, bytes: Bytes<'_>) -> Option<Slot> {
        let slot = self.get(at, bytes)?;
        let (mut chunk, mut index) = (at.chunk as usize, at.index as usize);
        self.len -= 1;
        if let Chunk::Untouched(stretch) = self.chunks[chunk] {
            if self.chunks.len() < MOST_CUT || index == 0 || index + 1 == stretch.len() {
                self.cut(chunk, index, index + 1, None, bytes);
                return Some(slot);
            }
            (chunk, index) = self.take_apart(chunk, stretch, index, bytes);
        }
        let slots = self.slots_of(chunk);
        slots.remove(index);
        match slots.first_prefix() {
            Some(first) => self.firsts[chunk] = first,
            None => self.take_chunk(chunk),
        }
        Some(slot)
    }

    /// Appends all of `other`.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.len += other.len;
        self.chunks.append(&mut other.chunks);
        self.firsts.append(&mut other.firsts);
    }

    pub(crate) fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// Without what is in it, for another node; memory for a few chunks is kept.
    pub(crate) fn emptied(mut self) -> Self {
        self.chunks.clear();
        self.firsts.clear();
        self.chunks.shrink_to(MOST_CUT);
        self.firsts.shrink_to(MOST_CUT);
        self.len = 0;
        self
    }

    /// Bytes that each entry takes on a page.
    pub(crate) fn sizes<'a>(&'a self, bytes: Bytes<'a>) -> impl Iterator<Item = usize> + 'a {
        self.pieces(At { chunk: 0, index: 0 }, self.len).flat_map(move |piece| {
            let (stretch, slots) = match piece {
                Piece::Untouched(stretch) => (Some(stretch.sizes(bytes)), None),
                Piece::Changed(slots, from, to) => (None, Some(slots.range(from..to).map(Slot::size))),
            };
            stretch.into_iter().flatten().chain(slots.into_iter().flatten())
        })
    }

    pub(crate) fn has_bucket(&self, bytes: Bytes<'_>) -> bool {
        self.chunks.iter().any(|chunk| match chunk {
            Chunk::Untouched(stretch) => stretch.has_bucket(bytes),
            Chunk::Changed(slots) => {
                slots.range(0..slots.len()).any(|slot| matches!(slot.content(), Content::Value { is_bucket: true, .. }))
            }
        })
    }

    /// Whether the `count` entries from `at` on are as they are on the pages `run`, and all that is there.
    pub(crate) fn is_all_of(&self, run: Run, at: At, count: usize, bytes: Bytes<'_>) -> bool {
        match self.chunks.get(at.chunk as usize) {
            Some(Chunk::Untouched(stretch)) => at.index == 0 && stretch.len() == count && stretch.is_all_of(run, bytes),
            _ => false,
        }
    }

    /// Writes `count` entries from `at` on into a page.
    pub(crate) fn write(&self, at: At, count: usize, page: &mut PageWriter<'_>, bytes: Bytes<'_>) {
        for piece in self.pieces(at, count) {
            match piece {
                Piece::Untouched(stretch) => stretch.write(page, bytes),
                Piece::Changed(slots, from, to) => {
                    for slot in slots.range(from..to) {
                        let (key_len, data) = slot.data(bytes);
                        match slot.content() {
                            Content::Value { is_bucket, .. } => page.entry(key_len, data, is_bucket),
                            Content::Page(child) => page.child(data, child),
                            // Commit has given every child its page before it writes their parent.
                            Content::Node(_) => {}
                        }
                    }
                }
            }
        }
    }

    /// The pieces that hold `count` entries from `at` on.
    fn pieces(&self, at: At, count: usize) -> impl Iterator<Item = Piece<'_>> {
        let (mut from, mut left) = (at.index as usize, count);
        self.chunks.iter().skip(at.chunk as usize).map_while(move |chunk| {
            let to = chunk.len().min(from + left);
            let piece = chunk.part(from, to);
            left -= to - from;
            from = 0;
            piece
        })
    }

    fn slots_of(&mut self, chunk: usize) -> &mut Sorted {
        match &mut self.chunks[chunk] {
            Chunk::Changed(slots) => slots,
            Chunk::Untouched(_) => unreachable!("a stretch is cut, or made slots, before it is changed"),
        }
    }

    /// A chunk of slots, and where in it what belongs at `at` is to be inserted.
    fn make_gap(&mut self, at: At, bytes: Bytes<'_>) -> (usize, usize) {
        let (mut chunk, index) = (at.chunk as usize, at.index as usize);
        match self.chunks.get(chunk) {
            Some(Chunk::Changed(_)) => return (chunk, index),
            Some(&Chunk::Untouched(stretch)) if index > 0 => {
                if index < stretch.len() {
                    if self.chunks.len() >= MOST_CUT {
                        return self.take_apart(chunk, stretch, index, bytes);
                    }
                    self.cut(chunk, index, index, None, bytes);
                }
                chunk += 1;
                if index == stretch.len() && matches!(self.chunks.get(chunk), Some(Chunk::Changed(_))) {
                    return (chunk, 0);
                }
            }
            Some(Chunk::Untouched(_)) | None => {}
        }
        self.put_chunk(chunk, Chunk::Changed(Sorted::EMPTY), 0);
        (chunk, 0)
    }

    /// Cuts the entries `from..to` out of a stretch; `slot` takes their place.
    fn cut(&mut self, chunk: usize, from: usize, to: usize, slot: Option<Slot>, bytes: Bytes<'_>) {
        let Chunk::Untouched(stretch) = self.chunks[chunk] else { return };
        let left = stretch.part(0, from).map(|left| (Chunk::Untouched(left), self.firsts[chunk]));
        let slot = slot.map(|slot| (Chunk::Changed(Sorted::one(slot)), slot.prefix));
        let right = stretch.part(to, stretch.len());
        let right = right.map(|right| (Chunk::Untouched(right), right.first_prefix(bytes)));
        let mut at = chunk;
        for (piece, first) in [left, slot, right].into_iter().flatten() {
            if at == chunk {
                (self.chunks[at], self.firsts[at]) = (piece, first);
            } else {
                self.put_chunk(at, piece, first);
            }
            at += 1;
        }
        if at == chunk {
            self.take_chunk(chunk);
        }
    }

    /// Makes slots of a stretch; returns where its entry `index` then is.
    fn take_apart(&mut self, chunk: usize, stretch: Stretch, index: usize, bytes: Bytes<'_>) -> (usize, usize) {
        let slot = |index| stretch.slot(index, bytes).expect("all elements were looked at when the stretch was made");
        let slots: Vec<Slot> = (0..stretch.len()).map(slot).collect();
        let parts = slots.chunks(CHUNK);
        self.firsts.splice(chunk..=chunk, parts.clone().map(|part| part[0].prefix));
        self.chunks.splice(chunk..=chunk, parts.map(|part| Chunk::Changed(Sorted::of(part.to_vec()))));
        (chunk + index / CHUNK, index % CHUNK)
    }

    fn put_chunk(&mut self, at: usize, chunk: Chunk, first: u64) {
        self.chunks.insert(at, chunk);
        self.firsts.insert(at, first);
    }

    fn take_chunk(&mut self, at: usize) {
        self.chunks.remove(at);
        self.firsts.remove(at);
    }

    /// The entries of a page whose data is not packed, as slots.
    pub(crate) fn of_loose_page(page: &Page<'_>, bytes: Bytes<'_>) -> crate::Result<Self> {
        let mut all = Self::default();
        let loc = bytes.loc_of(page.bytes());
        for index in 0..page.len() {
            all.push(Slot::of_page(page, loc, index)?);
        }
        Ok(all)
    }
}

fn at(chunk: usize, index: usize) -> At {
    At { chunk: small(chunk), index: small(index) }
}

fn small(number: usize) -> u32 {
    u32::try_from(number).expect("a node has fewer than 2^32 entries")
}

#[cfg(test)]
mod tests;
