//! A node's entries while they are being changed: an ordered sequence in chunks.
//!
//! One array would make an insert cost as much as the node is long, and a node grows without limit
//! until commit splits it. Chunks of a few hundred bound what an insert moves.

use std::cmp::Ordering;

use super::NodeId;
use super::arena::{Bytes, Loc};
use crate::format::{LeafEntry, Pgid};

/// Most slots in a chunk; a full one is cut in half, or, when appended to, followed by a new one.
const CHUNK: usize = 256;

/// What a slot stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Leaf: a value, or a bucket's header and inline page.
    Value { loc: Loc, len: u32, is_bucket: bool },
    /// Branch: a child that is as it was.
    Page(Pgid),
    /// Branch: a child that this transaction has taken apart.
    Node(NodeId),
}

/// One entry: where its key lies and what it stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    /// The key's first 8 bytes as a big-endian integer, zeros behind a shorter one: most
    /// comparisons end here, without touching the key.
    prefix: u64,
    key: Loc,
    key_len: u32,
    pub(crate) content: Content,
}

impl Slot {
    pub(crate) fn new(key: &[u8], loc: Loc, content: Content) -> Self {
        let key_len = u32::try_from(key.len()).expect("keys come from pages or are at most 32,768 bytes long");
        Self { prefix: prefix(key), key: loc, key_len, content }
    }

    pub(crate) fn key<'a>(&self, bytes: Bytes<'a>) -> &'a [u8] {
        bytes.at(self.key, self.key_len as usize)
    }

    pub(crate) fn key_len(&self) -> usize {
        self.key_len as usize
    }

    pub(crate) fn value_len(&self) -> usize {
        match self.content {
            Content::Value { len, .. } => len as usize,
            Content::Page(_) | Content::Node(_) => 0,
        }
    }

    /// The entry that it stands for in a leaf.
    pub(crate) fn entry<'a>(&self, bytes: Bytes<'a>) -> Option<LeafEntry<'a>> {
        let Content::Value { loc, len, is_bucket } = self.content else { return None };
        Some(LeafEntry { key: self.key(bytes), value: bytes.at(loc, len as usize), is_bucket })
    }

    /// The same key, standing for something else.
    pub(crate) fn with(self, content: Content) -> Self {
        Self { content, ..self }
    }

    fn cmp(&self, bytes: Bytes<'_>, wanted_prefix: u64, wanted: &[u8]) -> Ordering {
        self.prefix.cmp(&wanted_prefix).then_with(|| {
            if self.key_len <= 8 && wanted.len() <= 8 {
                // Equal prefixes: at most trailing zero bytes differ, which the length counts.
                (self.key_len as usize).cmp(&wanted.len())
            } else {
                self.key(bytes).cmp(wanted)
            }
        })
    }
}

fn prefix(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = key.len().min(8);
    first[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(first)
}

/// A place in a [`Slots`], only good until the next change; or, with chunk 0, in a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) chunk: u32,
    pub(crate) index: u32,
}

/// An ordered sequence of slots. No chunk is ever empty.
#[derive(Default)]
pub(crate) struct Slots {
    chunks: Vec<Vec<Slot>>,
    len: usize,
}

impl Slots {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.chunks.iter().flatten()
    }

    /// The slots from `at` on.
    pub(crate) fn iter_from(&self, at: At) -> impl Iterator<Item = &Slot> {
        let chunk = at.chunk as usize;
        let first = self.chunks.get(chunk).map_or(&[][..], |slots| &slots[at.index as usize..]);
        first.iter().chain(self.chunks.iter().skip(chunk + 1).flatten())
    }

    pub(crate) fn get(&self, at: At) -> Option<&Slot> {
        self.chunks.get(at.chunk as usize)?.get(at.index as usize)
    }

    pub(crate) fn get_mut(&mut self, at: At) -> Option<&mut Slot> {
        self.chunks.get_mut(at.chunk as usize)?.get_mut(at.index as usize)
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
        let next = if self.get(at).is_some() { at } else { At { chunk: at.chunk + 1, index: 0 } };
        self.get(next).map(|_| next)
    }

    /// `Ok`: where `key` stands; `Err`: where it would be inserted, which may be one past a chunk's
    /// end ([`Self::settle`] it before reading there).
    pub(crate) fn search(&self, key: &[u8], bytes: Bytes<'_>) -> Result<At, At> {
        let wanted = prefix(key);
        // The last chunk that begins at or before the key.
        let after = self.chunks.partition_point(|chunk| chunk[0].cmp(bytes, wanted, key).is_le());
        let chunk = after.saturating_sub(1);
        let Some(slots) = self.chunks.get(chunk) else { return Err(At { chunk: 0, index: 0 }) };
        let found = slots.binary_search_by(|slot| slot.cmp(bytes, wanted, key));
        found.map(|index| at(chunk, index)).map_err(|index| at(chunk, index))
    }

    /// Inserts where [`Self::search`] said; `true` if it came after everything that was there.
    pub(crate) fn insert(&mut self, at: At, slot: Slot) -> bool {
        let (mut chunk, mut index) = (at.chunk as usize, at.index as usize);
        self.len += 1;
        if self.chunks.is_empty() {
            self.chunks.push(Vec::new());
        }
        let at_end = chunk + 1 == self.chunks.len() && index == self.chunks[chunk].len();
        if self.chunks[chunk].len() == CHUNK {
            let cut = if at_end { CHUNK } else { CHUNK / 2 };
            let mut tail = Vec::with_capacity(CHUNK);
            tail.extend(self.chunks[chunk].drain(cut..));
            self.chunks.insert(chunk + 1, tail);
            if at_end || index > cut {
                (chunk, index) = (chunk + 1, index - cut);
            }
        }
        self.chunks[chunk].insert(index, slot);
        at_end
    }

    pub(crate) fn push(&mut self, slot: Slot) {
        let end = self.chunks.last().map_or(0, Vec::len);
        self.insert(at(self.chunks.len().saturating_sub(1), end), slot);
    }

    pub(crate) fn remove(&mut self, at: At) -> Slot {
        let chunk = &mut self.chunks[at.chunk as usize];
        let slot = chunk.remove(at.index as usize);
        if chunk.is_empty() {
            self.chunks.remove(at.chunk as usize);
        }
        self.len -= 1;
        slot
    }

    /// Appends all of `other`.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.len += other.len;
        self.chunks.append(&mut other.chunks);
    }
}

impl FromIterator<Slot> for Slots {
    fn from_iter<I: IntoIterator<Item = Slot>>(slots: I) -> Self {
        let mut all = Self::default();
        for slot in slots {
            all.push(slot);
        }
        all
    }
}

fn at(chunk: usize, index: usize) -> At {
    At { chunk: small(chunk), index: small(index) }
}

fn small(number: usize) -> u32 {
    u32::try_from(number).expect("a node has fewer than 2^32 chunks of at most 256 slots")
}

#[cfg(test)]
mod tests;
