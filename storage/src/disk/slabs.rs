//! Memory in slabs of one size. A slab is filled from its begin to its end; readers have slabs for as long as they look at
//! what is there, and who fills them takes those again that nobody has.

use std::fmt;
use std::io;
use std::sync::Arc;

use super::{Map, Region};
use crate::base::shared;

/// What places in slabs are multiples of, in bytes.
pub(crate) const UNIT: usize = 8;
/// A place is the slab's slot, and how many units into it.
const SLOT_SHIFT: u32 = 20;
const INSIDE: u32 = (1 << SLOT_SHIFT) - 1;
/// Bits of a place.
pub(crate) const PLACE_BITS: u32 = 27;
/// Slabs whose slots fit a place.
pub(crate) const MOST_SLABS: usize = 1 << (PLACE_BITS - SLOT_SHIFT);
/// The longest slab, all of whose places fit, in bytes.
pub(crate) const LONGEST_SLAB: usize = UNIT << SLOT_SHIFT;

/// The place at an offset, which is a multiple of [`UNIT`], of the slab in a slot.
pub(crate) fn place(slot: u8, offset: usize) -> u32 {
    let units = u32::try_from(offset / UNIT).expect("an offset is inside of a slab");
    u32::from(slot) << SLOT_SHIFT | units
}

/// The slot of the slab that a place is in.
pub(crate) fn slot_of(place: u32) -> u8 {
    u8::try_from(place >> SLOT_SHIFT).unwrap_or(u8::MAX)
}

/// One slab.
pub(crate) struct Slab {
    region: Arc<Region>,
    map: Map,
    /// For the model tests: who looks where it is written.
    #[cfg(all(test, loom))]
    looks: super::map::Looks,
}

impl Slab {
    /// One of so many bytes, up to [`LONGEST_SLAB`].
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let region = Region::new(bytes.min(LONGEST_SLAB))?;
        Ok(Self {
            map: Map::of_region(Arc::clone(&region), region.len()),
            #[cfg(all(test, loom))]
            looks: super::map::Looks::new(region.len().div_ceil(UNIT)),
            region,
        })
    }

    /// Writes what nobody looks at yet. There is one writer.
    pub(crate) fn write(&self, offset: usize, data: &[u8]) {
        #[cfg(all(test, loom))]
        self.looks.written(offset / UNIT, data.len().div_ceil(UNIT));
        self.region.write(offset, data);
    }
}

impl fmt::Debug for Slab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab").field("bytes", &self.map.len()).finish_non_exhaustive()
    }
}

/// Slabs by their slots.
#[derive(Clone)]
pub(crate) struct Slabs(Box<[Option<shared::Arc<Slab>>]>);

impl Slabs {
    pub(crate) fn new(slabs: Vec<Option<shared::Arc<Slab>>>) -> Self {
        Self(slabs.into())
    }

    /// All but those in these slots.
    pub(crate) fn without(&self, slots: &[u8]) -> Self {
        let mut slabs = self.0.clone();
        for &slot in slots {
            slabs[usize::from(slot)] = None;
        }
        Self(slabs)
    }

    /// `len` bytes from a place on, which were written before it was told.
    #[inline]
    pub(crate) fn bytes(&self, place: u32, len: usize) -> Option<&[u8]> {
        let slab = self.slab(place)?;
        #[cfg(all(test, loom))]
        slab.looks.read((place & INSIDE) as usize, len.div_ceil(UNIT));
        slab.map.bytes(offset(place), len)
    }

    /// What is at a place will be read soon.
    pub(crate) fn prefetch(&self, place: u32, len: usize) {
        if let Some(slab) = self.slab(place) {
            slab.map.prefetch(offset(place), len);
        }
    }

    #[inline]
    fn slab(&self, place: u32) -> Option<&Slab> {
        self.0.get((place >> SLOT_SHIFT) as usize)?.as_deref()
    }
}

fn offset(place: u32) -> u64 {
    u64::from(place & INSIDE) * UNIT as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lead_to_their_slabs_and_nowhere_else() {
        let slabs: Vec<_> = (0..2).map(|_| shared::Arc::new(Slab::new(64).unwrap())).collect();
        slabs[1].write(16, b"here");
        let slabs = Slabs::new(vec![Some(shared::Arc::clone(&slabs[0])), None, Some(shared::Arc::clone(&slabs[1]))]);
        assert_eq!(slabs.bytes(place(2, 16), 4), Some(&b"here"[..]));
        assert_eq!(slabs.bytes(place(0, 16), 4), Some(&[0; 4][..]));
        assert_eq!(slabs.bytes(place(2, 56), 9), None);
        assert_eq!([1, 3].map(|slot| slabs.bytes(place(slot, 0), 1)), [None, None]);
    }
}
