//! The leaves that are patched, as the writer knows them: which they are, in the order in which they are written anew.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::commit::{Sync, ids_used_up, write};
use super::durable::begin;
use super::{Shared, Writer};
use crate::format::Pgid;
use crate::pages::{LeafPlace, PatchMemory, Patches, PlacedPatch, Run};
use crate::tree::{Effect, EffectsReader, Keeping, Work};
use crate::{Error, Result};

/// Bytes of patches from which on the file is brought up to date, so that there are fewer.
const MANY: usize = 16 << 20;
/// Leaves that are written anew at a time, while commits wait.
const AT_ONCE: usize = if cfg!(test) { 2 } else { 256 };
/// Bytes of patches, those that only readers see among them, from which on no more are made.
const MOST: usize = 2 * MANY;

/// A patched page, and how many bytes its patch has.
#[derive(Debug, Clone, Copy)]
struct Held {
    page: Pgid,
    bytes: usize,
}

/// By where they are found.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    all: BTreeMap<Arc<LeafPlace>, Held>,
    bytes: usize,
}

impl Places {
    fn insert(&mut self, page: Pgid, patch: &PlacedPatch) {
        let held = Held { page, bytes: patch.held() };
        self.bytes += held.bytes;
        self.bytes -= self.all.insert(Arc::clone(&patch.place), held).map_or(0, |before| before.bytes);
    }

    fn remove(&mut self, place: &LeafPlace, page: Pgid) {
        if self.all.get(place).is_some_and(|held| held.page == page) {
            self.bytes -= self.all.remove(place).map_or(0, |held| held.bytes);
        }
    }

    /// Takes out all that are in the bucket of this path, or in one within it.
    fn take_below(&mut self, path: &[Box<[u8]>]) -> Vec<(Arc<LeafPlace>, Pgid)> {
        let first = Arc::new(LeafPlace { bucket: path.into(), key: Box::default() });
        let below = self.all.range(first..).take_while(|(place, _)| place.bucket.starts_with(path));
        let below: Vec<_> = below.map(|(place, held)| (Arc::clone(place), held.page)).collect();
        below.iter().for_each(|(place, page)| self.remove(place, *page));
        below
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Patched {
    places: Places,
    memory: PatchMemory,
    /// Up to where they were written anew since that was begun.
    written_up_to: Option<Arc<LeafPlace>>,
}

impl Patched {
    /// Whether there are so many that there should soon be fewer.
    pub(crate) fn are_many(&self) -> bool {
        self.places.bytes >= MANY
    }

    fn len(&self) -> usize {
        self.places.all.len()
    }

    /// For a commit that may make more of them; nothing, where that would be too many.
    pub(super) fn keeping(&self) -> Option<Keeping> {
        let keeping = || Keeping::new(self.memory.clone(), self.written_up_to.clone());
        (self.memory.bytes() < MOST).then(keeping)
    }

    /// The next leaves that are to be written anew, at most so many.
    fn next(&self, most: usize) -> Vec<(Arc<LeafPlace>, Pgid)> {
        let from = self.written_up_to.as_ref().map_or(Bound::Unbounded, |place| Bound::Excluded(Arc::clone(place)));
        let next = self.places.all.range((from, Bound::Unbounded));
        next.take(most).map(|(place, held)| (Arc::clone(place), held.page)).collect()
    }

    /// Has the commit write the next leaves anew, at most so many; where the last of them is found.
    fn take_in_next(&self, work: &mut Work, most: usize) -> Result<Option<Arc<LeafPlace>>> {
        let next = self.next(most);
        next.iter().try_for_each(|(place, page)| work.take_in(place, *page))?;
        Ok(next.into_iter().next_back().map(|(place, _)| place))
    }

    /// Has the commit write all of them anew.
    pub(super) fn take_in_all(&mut self, work: &mut Work) -> Result<()> {
        self.places.all.iter().try_for_each(|(place, held)| work.take_in(place, held.page))
    }

    /// What a commit that failed has changed of them.
    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    pub(super) fn put_back(&mut self, places: Places) {
        self.places = places;
    }

    /// The file is up to date.
    pub(super) fn all_written(&mut self) {
        self.written_up_to = None;
    }

    /// A commit has moved or deleted buckets: what is in them is found elsewhere, or not at all.
    fn follow(&mut self, effects: &[u8], patches: &mut Patches) -> Result<()> {
        let mut buckets: Vec<Vec<Box<[u8]>>> = vec![Vec::new()];
        let within = |buckets: &[Vec<Box<[u8]>>], number: u32, name: &[u8]| {
            let mut path = buckets.get(number as usize).cloned().unwrap_or_default();
            path.push(name.into());
            path
        };
        for effect in EffectsReader::new(effects) {
            match effect.map_err(|error| Error::corrupt(0, error.what))? {
                Effect::Path { within: above, name } | Effect::Created { within: above, name } => {
                    buckets.push(within(&buckets, above, name));
                }
                Effect::BucketDeleted { within: above, name } => drop(self.places.take_below(&within(&buckets, above, name))),
                Effect::Moved { from, name, to, its_name } => {
                    let (from, to) = (within(&buckets, from, name), within(&buckets, to, its_name));
                    for (place, page) in self.places.take_below(&from) {
                        let names = to.iter().chain(&place.bucket[from.len()..]).cloned().collect();
                        let place = Arc::new(LeafPlace { bucket: names, key: place.key.clone() });
                        if let Some(patch) = patches.get(page).map(|patch| Arc::new(patch.placed_at(place))) {
                            self.places.insert(page, &patch);
                            patches.insert(page, patch);
                        }
                    }
                }
                Effect::Put { .. } | Effect::Deleted { .. } | Effect::RangeDeleted { .. } | Effect::Sequence { .. } => {}
            }
        }
        Ok(())
    }
}

impl Writer {
    /// The patches of the state that a commit makes, which has freed and taken these pages.
    pub(super) fn patches_after(&mut self, work: &Work, taken: &[Run]) -> Result<Patches> {
        let mut patches = work.base.patches.clone();
        if !patches.is_empty() {
            if work.has_reshaped() {
                work.with_effects(|pieces| self.patched.follow(&pieces.concat(), &mut patches))?;
            }
            for id in work.freed.iter().chain(taken).flat_map(|run| run.start..run.start + run.len) {
                if let Some(patch) = patches.remove(id) {
                    self.patched.places.remove(&patch.place, id);
                }
            }
        }
        for (page, patch) in work.keeping.iter().flat_map(|keeping| &keeping.kept) {
            match patch {
                Some(patch) => {
                    self.patched.places.insert(*page, patch);
                    patches.insert(*page, Arc::clone(patch));
                }
                None => {
                    if let Some(patch) = patches.remove(*page) {
                        self.patched.places.remove(&patch.place, *page);
                    }
                }
            }
        }
        Ok(patches)
    }
}

impl Shared {
    /// Writes the leaves that have patches anew, a few at a time and in their order, while commits go on: what is left for the
    /// checkpoint is little. Leaves behind are not patched again meanwhile.
    pub(super) fn write_patched(&self) -> Result<()> {
        let mut left = self.writer.with(|writer| writer.patched.len());
        while left > 0 {
            left -= AT_ONCE.min(left);
            if !self.writer.with(|writer| write_next(self, writer))? {
                break;
            }
        }
        Ok(())
    }
}

/// Writes some leaves that have patches anew; `false` where none is left.
fn write_next(shared: &Shared, writer: &mut Writer) -> Result<bool> {
    shared.check_usable()?;
    let mut work = begin(shared, writer)?;
    let Some(place) = writer.patched.take_in_next(&mut work, AT_ONCE)? else {
        writer.spare = work.take_spare();
        return Ok(false);
    };
    let txid = work.base.meta.txid.checked_add(1).ok_or_else(ids_used_up)?;
    write(&mut work, txid, shared, writer, Sync::Later)?;
    writer.patched.written_up_to = Some(place);
    writer.spare = work.take_spare();
    Ok(true)
}
