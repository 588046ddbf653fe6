//! The map: the crate's only unsafe code.
//!
//! A [`Map`] hands out byte slices of memory that is written while the map lives: by `pwrite` to
//! the mapped file, or by [`Region::write`] in an in-memory database. That is sound because of one
//! rule, which the rest of the engine keeps:
//!
//! > **A page that is reachable from a registered snapshot is not written while that snapshot is
//! > registered**, and slices are taken only of such pages, for no longer than the snapshot lives.
//!
//! Who keeps it: pages are written only at commit, and only pages that the freelist handed out or
//! that lie above the high-water mark. The freelist hands out a page only when no registered reader
//! can reach it (`pages/freelist`), the writer's own base snapshot is the newest one, whose pages are
//! never free before the next commit is published, and meta pages are never read through the map.
//! A slice borrows the map, a map is owned by a snapshot, and a snapshot is held by the transaction
//! that lends the slice. No reference ever spans more than one page's run.
//!
//! A state that is written to the file beside the commits (`store/beside`) is read like a snapshot that is registered: the
//! freelist has its number for as long as it is, whatever else comes to the file meanwhile.
//!
//! The pages of a large bucket that was deleted are read after the newest snapshot has lost them
//! (`store/detached.rs`), by who has the writer: nobody writes any page meanwhile.
//!
//! A [`Region`] that patches of leaves lie in (`pages/recents.rs`) is written from its begin to its end; who reads there has
//! found the place in a table in which the writer put it after it had written it, and takes slices of what lies before the
//! end of that. It begins anew only once nobody else has it.
//!
//! A file that is only looked at (`repair`) has no snapshot: it is locked for as long, so that nobody
//! writes it at all.
//!
//! What the rule cannot cover is another program that writes or truncates the file in spite of its
//! lock. That is the same for every database that maps its file, and documented in `Db::open`.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;
use std::{fmt, fs, io};

use memmap2::{MmapOptions, MmapRaw};

use super::{Advice, MapOptions};

/// Has the system write what it has of a part of a file and the disk has not, and waits for it. Where it cannot, nothing is
/// done.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn write_back(file: &fs::File, offset: u64, len: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    const ALL: u32 = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else { return Ok(()) };
    // SAFETY: the descriptor is open for as long as the file is borrowed; no memory of this process is concerned.
    if unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, ALL) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error
            if matches!(
                error.raw_os_error(),
                Some(libc::ENOSYS | libc::EINVAL | libc::ESPIPE | libc::EPERM | libc::EINTR)
            ) =>
        {
            Ok(())
        }
        error => Err(error),
    }
}

/// A run of memory that mirrors the disk's first bytes.
pub(crate) struct Map {
    base: *const u8,
    len: usize,
    /// Keeps `base..base + len` valid.
    memory: Memory,
}

enum Memory {
    File(MmapRaw),
    Heap(Arc<Region>),
}

// SAFETY: `base` points into memory that `memory` owns and that any thread may read; the module's
// rule excludes writes to bytes that are being read.
unsafe impl Send for Map {}
// SAFETY: as for `Send`; a shared `Map` only reads.
unsafe impl Sync for Map {}

impl Map {
    /// Maps the first `len` bytes of `file` for reading.
    pub(crate) fn of_file(file: &fs::File, len: usize, how: MapOptions) -> io::Result<Self> {
        let mut options = MmapOptions::new();
        options.len(len);
        if how.populate {
            options.populate();
        }
        let map = options.map_raw_read_only(file)?;
        if how.advice == Advice::Random {
            // A hint: where the system does not know it, reads are as right as without.
            let _ = map.advise(memmap2::Advice::Random);
        }
        Ok(Self { base: map.as_ptr(), len, memory: Memory::File(map) })
    }

    /// The first `len` bytes of a region, which has at least as many.
    pub(crate) fn of_region(region: Arc<Region>, len: usize) -> Self {
        assert!(len <= region.len(), "a region is grown before it is mapped");
        Self { base: region.base.as_ptr(), len, memory: Memory::Heap(region) }
    }

    /// Whether it is one of `region`.
    pub(crate) fn is_of(&self, region: &Arc<Region>) -> bool {
        matches!(&self.memory, Memory::Heap(own) if Arc::ptr_eq(own, region))
    }

    /// Keeps the first `len` bytes, which the disk must have, in memory until the map goes.
    pub(crate) fn lock(&self, len: usize) -> io::Result<()> {
        let len = len.min(self.len);
        // SAFETY: the range is inside the map; locking pages changes nothing that Rust can see.
        unsafe { rustix::mm::mlock(self.base.cast_mut().cast(), len) }.map_err(Into::into)
    }

    /// Gives back the memory that the process holds of a mapped file.
    pub(crate) fn release(&self) {
        if let Memory::File(map) = &self.memory {
            // A hint: where it cannot be followed (the map is locked in memory), nothing changes.
            // SAFETY: the map is shared with the file and never written through: what is given back
            // is read from the file again, the same bytes in the same place.
            let _ = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        }
    }

    /// Bytes that the map covers. The disk may have fewer.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where the map begins, to compute the offset of a slice that it handed out.
    pub(crate) fn base_address(&self) -> usize {
        self.base.addr()
    }

    /// Asks the processor to fetch `len` bytes from `offset`, so that it need not wait for one line of them after the
    /// other. A hint: on other processors, and outside of the map, it does nothing.
    #[inline]
    pub(crate) fn prefetch(&self, offset: u64, len: usize) {
        if let Some(start) = usize::try_from(offset).ok().filter(|&start| start < self.len) {
            fetch(self.base.wrapping_add(start), len.min(self.len - start));
        }
    }

    /// Asks the system to read `len` bytes from `offset` ahead, of a mapped file. A hint, as [`Self::prefetch`]; it does
    /// not wait for them.
    pub(crate) fn read_ahead(&self, offset: u64, len: usize) {
        let Memory::File(map) = &self.memory else { return };
        if let Some(start) = usize::try_from(offset).ok().filter(|&start| start < self.len) {
            let _ = map.advise_range(memmap2::Advice::WillNeed, start, len.min(self.len - start));
        }
    }

    /// Whether `len` bytes from `offset` are in memory, so that reading them does not wait for the disk. `true` where the
    /// system does not tell, and of what is outside of the map.
    pub(crate) fn is_resident(&self, offset: u64, len: usize) -> bool {
        let Memory::File(_) = &self.memory else { return true };
        let Some(start) = usize::try_from(offset).ok().filter(|&start| start < self.len) else { return true };
        let page = rustix::param::page_size();
        let end = start + len.min(self.len - start);
        let mut resident = [0; 64];
        (start / page * page..end).step_by(resident.len() * page).all(|start| {
            let pages = (end - start).div_ceil(page).min(resident.len());
            let len = (pages * page).min(self.len - start);
            // SAFETY: the range begins on a page of the system's and is inside the map; it is only asked about. There is a
            // byte of `resident` for each of its pages.
            let asked = unsafe { libc::mincore(self.base.add(start).cast_mut().cast(), len, resident.as_mut_ptr()) };
            asked != 0 || resident[..pages].iter().all(|state| state & 1 == 1)
        })
    }

    /// `len` bytes from `offset`, or `None` where they are not all inside the map.
    ///
    /// They must lie on one run of pages that is reachable from a registered snapshot (see the
    /// module's rule), and so below the end of the disk.
    pub(crate) fn bytes(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(len)?;
        if end > self.len {
            return None;
        }
        // SAFETY: `start..end` is inside the map, whose memory lives as long as `self`; by the
        // module's rule nobody writes these bytes while the slice lives. `u8` has no invalid values.
        Some(unsafe { std::slice::from_raw_parts(self.base.add(start), len) })
    }
}

/// Asks the processor to fetch what will be looked at soon: see [`Map::prefetch`].
#[inline]
pub(crate) fn prefetch<T>(soon: &[T]) {
    fetch(soon.as_ptr().cast(), size_of_val(soon));
}

/// Fetches `len` bytes from `start` on, line by line.
#[inline]
fn fetch(start: *const u8, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // Every look-up comes by here: a range with steps takes four times as many instructions.
        let mut line = 0;
        while line < len {
            // SAFETY: a prefetch reads nothing that the program could see, and is dropped where the memory cannot be read.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(line).cast()) }
            line += 64;
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (start, len);
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map").field("len", &self.len).finish_non_exhaustive()
    }
}

/// Zeroed heap memory that plays the role of the mapped file: one writer, many readers, kept apart
/// by the module's rule.
pub(crate) struct Region {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the region owns its memory; access from several threads is governed by the module's rule.
unsafe impl Send for Region {}
// SAFETY: as for `Send`.
unsafe impl Sync for Region {}

impl Region {
    /// `len` zeroed bytes; `len` is not 0.
    pub(crate) fn new(len: usize) -> io::Result<Arc<Self>> {
        let layout = Layout::from_size_align(len, 16).map_err(io::Error::other)?;
        assert!(layout.size() > 0, "an empty region is never asked for");
        // SAFETY: the layout has a size above 0.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Arc::new(Self { base, layout }))
    }

    pub(crate) fn len(&self) -> usize {
        self.layout.size()
    }

    /// Copies `data` to `offset`.
    ///
    /// # Panics
    /// Where it does not fit: the caller grows the region first.
    pub(crate) fn write(&self, offset: usize, data: &[u8]) {
        let end = offset.checked_add(data.len());
        assert!(end.is_some_and(|end| end <= self.len()), "a region is grown before it is written");
        // SAFETY: the target is inside the region's memory and cannot overlap `data`: by the
        // module's rule no slice of the bytes being written exists. One writer at a time: the
        // engine has one write transaction, and `HeapDisk` writes under its lock.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), self.base.as_ptr().add(offset), data.len()) }
    }

    /// Copies bytes from `offset` into `buf`; the caller is the only writer, or excludes it.
    pub(crate) fn read(&self, offset: usize, buf: &mut [u8]) {
        let end = offset.checked_add(buf.len());
        assert!(end.is_some_and(|end| end <= self.len()), "reads are cut to the region's length");
        // SAFETY: the source is inside the region's memory, `buf` is elsewhere, and nobody writes.
        unsafe { std::ptr::copy_nonoverlapping(self.base.as_ptr().add(offset), buf.as_mut_ptr(), buf.len()) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, freed nowhere else.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}

/// Has loom notice bytes that are written while they may be read, by cells that stand for them and have nothing in them.
#[cfg(all(test, loom))]
pub(super) struct Looks(Vec<loom::cell::UnsafeCell<()>>);

// SAFETY: what is in the cells is never touched; loom runs one thread at a time.
#[cfg(all(test, loom))]
unsafe impl Sync for Looks {}

#[cfg(all(test, loom))]
impl Looks {
    pub(super) fn new(cells: usize) -> Self {
        Self((0..cells).map(|_| loom::cell::UnsafeCell::new(())).collect())
    }

    /// Somebody reads what so many cells from one on stand for, as far as there are any.
    #[track_caller]
    pub(super) fn read(&self, first: usize, cells: usize) {
        self.0.iter().skip(first).take(cells).for_each(|cell| cell.with(|_| ()));
    }

    /// The writer writes it.
    #[track_caller]
    pub(super) fn written(&self, first: usize, cells: usize) {
        self.0.iter().skip(first).take(cells).for_each(|cell| cell.with_mut(|_| ()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_stays_as_it_is_while_other_bytes_are_written() {
        let region = Region::new(64).unwrap();
        region.write(0, b"kept");
        let map = Map::of_region(Arc::clone(&region), 64);
        let kept = map.bytes(0, 4).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| region.write(32, b"new"));
            assert_eq!(kept, b"kept");
        });
        drop(region);
        assert_eq!(map.bytes(32, 3).unwrap(), b"new");
        assert_eq!(kept, b"kept");
    }

    #[test]
    fn nothing_outside_of_the_map_is_handed_out() {
        let map = Map::of_region(Region::new(64).unwrap(), 48);
        assert!(map.bytes(0, 48).is_some());
        assert!(map.bytes(48, 0).is_some());
        assert!(map.bytes(40, 9).is_none());
        assert!(map.bytes(u64::MAX, 2).is_none());
        assert!(map.bytes(8, usize::MAX).is_none());
    }
}
