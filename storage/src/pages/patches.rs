//! The patches of a snapshot: which of its leaf pages are not in the file as they are now.
//!
//! Each commit has its own, and shares with the one before all that it has not changed: a tree by the bits of a page's id, of
//! which a change copies the way to one place.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::format::{Patch, Pgid};

/// Bits of an id that one part looks at.
const BITS: u32 = 5;
const WIDTH: usize = 1 << BITS;

/// Where a patched leaf is found: by one of its keys, in the bucket of these names.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LeafPlace {
    pub(crate) bucket: Arc<[Box<[u8]>]>,
    pub(crate) key: Box<[u8]>,
}

/// A patch, where its page is found, and its share of the memory that is counted.
pub(crate) struct PlacedPatch {
    patch: Patch,
    pub(crate) place: Arc<LeafPlace>,
    memory: PatchMemory,
    bytes: usize,
}

/// Counts the bytes of all patches of a database, whoever still sees them.
#[derive(Debug, Clone, Default)]
pub(crate) struct PatchMemory(Arc<AtomicUsize>);

impl PatchMemory {
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl PlacedPatch {
    /// Bytes beside the patch's own: of places in the tree and in the writer's list.
    const BESIDE: usize = 128;

    pub(crate) fn new(patch: Patch, place: Arc<LeafPlace>, memory: &PatchMemory) -> Self {
        let bytes = patch.bytes() + size_of::<Self>() + Self::BESIDE + place.key.len();
        memory.0.fetch_add(bytes, Ordering::Relaxed);
        Self { patch, place, memory: memory.clone(), bytes }
    }

    /// The same of a page that is found elsewhere.
    pub(crate) fn placed_at(&self, place: Arc<LeafPlace>) -> Self {
        Self::new(self.patch.clone(), place, &self.memory)
    }

    /// Bytes of memory that it takes, about.
    pub(crate) fn held(&self) -> usize {
        self.bytes
    }
}

impl Drop for PlacedPatch {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Deref for PlacedPatch {
    type Target = Patch;

    fn deref(&self) -> &Patch {
        &self.patch
    }
}

/// Patches by the ids of their pages.
#[derive(Clone, Default)]
pub(crate) struct Patches {
    root: Option<Arc<Part>>,
    /// Parts above one another.
    levels: u32,
}

#[derive(Clone)]
enum Part {
    Upper([Option<Arc<Part>>; WIDTH]),
    Lowest([Option<Arc<PlacedPatch>>; WIDTH]),
}

impl Part {
    fn new(level: u32) -> Self {
        if level == 0 { Self::Lowest(std::array::from_fn(|_| None)) } else { Self::Upper(std::array::from_fn(|_| None)) }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Upper(parts) => parts.iter().all(Option::is_none),
            Self::Lowest(patches) => patches.iter().all(Option::is_none),
        }
    }
}

fn at(id: Pgid, level: u32) -> usize {
    (id >> (BITS * level)) as usize & (WIDTH - 1)
}

impl Patches {
    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Whether ids as high as this one have a place.
    fn reaches(&self, id: Pgid) -> bool {
        let bits = BITS * self.levels;
        bits >= Pgid::BITS || id >> bits == 0
    }

    #[inline]
    pub(crate) fn get(&self, id: Pgid) -> Option<&Arc<PlacedPatch>> {
        let mut part = self.root.as_ref()?;
        if !self.reaches(id) {
            return None;
        }
        let mut level = self.levels - 1;
        loop {
            match &**part {
                Part::Upper(parts) => part = parts[at(id, level)].as_ref()?,
                Part::Lowest(patches) => return patches[at(id, 0)].as_ref(),
            }
            level -= 1;
        }
    }

    pub(crate) fn insert(&mut self, id: Pgid, patch: Arc<PlacedPatch>) {
        while self.root.is_none() || !self.reaches(id) {
            let mut part = Part::new(self.levels);
            if let Part::Upper(parts) = &mut part {
                parts[0] = self.root.take();
            }
            self.root = Some(Arc::new(part));
            self.levels += 1;
        }
        let mut level = self.levels - 1;
        let mut part = self.root.as_mut().map(Arc::make_mut);
        while let Some(Part::Upper(parts)) = part {
            level -= 1;
            part = Some(Arc::make_mut(parts[at(id, level + 1)].get_or_insert_with(|| Arc::new(Part::new(level)))));
        }
        if let Some(Part::Lowest(patches)) = part {
            patches[at(id, 0)] = Some(patch);
        }
    }

    pub(crate) fn remove(&mut self, id: Pgid) -> Option<Arc<PlacedPatch>> {
        self.get(id)?;
        let removed = remove(self.root.as_mut()?, id, self.levels - 1);
        if self.root.as_ref().is_some_and(|root| root.is_empty()) {
            *self = Self::default();
        }
        removed
    }
}

fn remove(part: &mut Arc<Part>, id: Pgid, level: u32) -> Option<Arc<PlacedPatch>> {
    match Arc::make_mut(part) {
        Part::Upper(parts) => {
            let below = &mut parts[at(id, level)];
            let removed = remove(below.as_mut()?, id, level - 1);
            if below.as_ref().is_some_and(|below| below.is_empty()) {
                *below = None;
            }
            removed
        }
        Part::Lowest(patches) => patches[at(id, 0)].take(),
    }
}

impl fmt::Debug for PlacedPatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlacedPatch").field("place", &self.place).finish_non_exhaustive()
    }
}

impl fmt::Debug for Patches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patches").field("levels", &self.levels).finish_non_exhaustive()
    }
}
