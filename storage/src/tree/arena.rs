//! Where a write transaction keeps the bytes it was given, and how it refers to bytes at all.

use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

use crate::pages::Pages;
use crate::pages::Run;

/// Bytes of the first chunk: most transactions are small. Each further one has twice as many, up to [`MOST_DOUBLED`].
/// A longer piece gets a chunk of its own.
const FIRST_CHUNK: usize = 1 << 12;
const MOST_DOUBLED: usize = 1 << 18;
/// So many chunks are not on huge pages: two of the longest are among them.
const SMALL_CHUNKS: usize = 8;
/// Bytes of each chunk after these: a huge page.
const HUGE: usize = 1 << 21;
/// Most bytes that are kept from one transaction to the next.
const KEPT: usize = HUGE;
/// Set in a [`Loc`] that lies in the arena.
const IN_ARENA: u64 = 1 << 63;
const OFFSET_BITS: u32 = 32;

/// Where bytes lie: in the base snapshot's map or in the transaction's arena. Small, and without a
/// lifetime: who resolves it has both at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loc(u64);

impl Loc {
    /// A place for no bytes.
    pub(crate) const EMPTY: Self = Self(0);

    /// The place `by` bytes further on in the same piece.
    pub(crate) fn plus(self, by: usize) -> Self {
        Self(self.0 + by as u64)
    }
}

/// Keys and values that were put in this transaction. It only grows: what is overwritten stays
/// until the transaction ends, so that an undo can point to it.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    chunks: Vec<Chunk>,
}

/// Memory of which the first `len` bytes are taken.
#[derive(Debug)]
struct Chunk {
    memory: Memory,
    len: usize,
}

/// Zeroed memory.
#[derive(Debug)]
enum Memory {
    Heap(Vec<u8>),
    /// On a huge page where the system has some and aligns such memory (Linux from 6.7 on): one fault instead of 512,
    /// and a commit that reads what lies in it in another order seldom waits for an address to be looked up.
    Huge(MmapMut),
}

impl Memory {
    fn new(len: usize) -> Self {
        if len != HUGE || cfg!(miri) {
            return Self::Heap(vec![0; len]);
        }
        MmapMut::map_anon(len).map_or_else(
            |_| Self::Heap(vec![0; len]),
            |map| {
                #[cfg(target_os = "linux")]
                // A hint: where the system does not know it, the memory is as good as any other.
                let _ = map.advise(memmap2::Advice::HugePage);
                Self::Huge(map)
            },
        )
    }
}

impl Deref for Memory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Heap(bytes) => bytes,
            Self::Huge(map) => map,
        }
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Heap(bytes) => bytes,
            Self::Huge(map) => map,
        }
    }
}

impl Chunk {
    fn room(&self) -> usize {
        self.memory.len() - self.len
    }

    fn push(&mut self, bytes: &[u8]) {
        self.memory[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

impl Arena {
    /// Bytes that it holds.
    pub(crate) fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len).sum()
    }

    /// The arena of the next transaction: nothing is in it, and what memory it keeps need not be asked for again.
    pub(crate) fn emptied(mut self) -> Self {
        self.chunks.drain(..self.chunks.len().saturating_sub(1));
        self.chunks.retain(|chunk| chunk.memory.len() <= KEPT);
        self.chunks.shrink_to(SMALL_CHUNKS);
        self.chunks.iter_mut().for_each(|chunk| chunk.len = 0);
        self
    }

    /// Copies a key in, and its value right behind it. Together they may be up to 2^32 - 1 bytes long, twice what a
    /// value may have.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Loc {
        let len = key.len() + value.len();
        if self.chunks.last().is_none_or(|chunk| chunk.room() < len) {
            let size = match self.chunks.len() {
                number if number < SMALL_CHUNKS => (FIRST_CHUNK << number).min(MOST_DOUBLED),
                _ => HUGE,
            };
            self.chunks.push(Chunk { memory: Memory::new(len.max(size)), len: 0 });
        }
        let number = self.chunks.len() - 1;
        let chunk = &mut self.chunks[number];
        let offset = chunk.len as u64;
        chunk.push(key);
        chunk.push(value);
        Loc(IN_ARENA | (number as u64) << OFFSET_BITS | offset)
    }
}

/// Both places that a [`Loc`] can lead to.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a> {
    pub(crate) pages: Pages<'a>,
    pub(crate) arena: &'a Arena,
}

impl<'a> Bytes<'a> {
    /// Where `slice` lies, which is part of a page in the map or of a piece in the arena.
    pub(crate) fn loc_of(&self, slice: &[u8]) -> Loc {
        if let Some(offset) = self.pages.offset_of(slice) {
            return Loc(offset);
        }
        let address = slice.as_ptr().addr();
        let newest_first = self.arena.chunks.iter().enumerate().rev();
        let found = newest_first.filter_map(|(number, chunk)| {
            let offset = address.checked_sub(chunk.memory.as_ptr().addr())?;
            (offset + slice.len() <= chunk.len)
                .then_some(Loc(IN_ARENA | (number as u64) << OFFSET_BITS | offset as u64))
        });
        found.into_iter().next().expect("a transaction's bytes lie in its map or in its arena")
    }

    /// Whether `len` bytes from `loc` on are those of the pages `run`.
    pub(crate) fn is_run(&self, loc: Loc, len: usize, run: Run) -> bool {
        let page_size = self.pages.page_size() as u64;
        (loc.0, len as u64) == (run.start * page_size, run.len * page_size)
    }

    pub(crate) fn at(&self, loc: Loc, len: usize) -> &'a [u8] {
        if loc.0 & IN_ARENA == 0 {
            return self.pages.at(loc.0, len);
        }
        let chunk = (loc.0 & !IN_ARENA) >> OFFSET_BITS;
        let offset = (loc.0 & u64::from(u32::MAX)) as usize;
        &self.arena.chunks[chunk as usize].memory[offset..offset + len]
    }
}
