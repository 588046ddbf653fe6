//! A disk on the heap: for in-memory databases, and for tests that must not touch a file (Miri).

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::map::Region;
use super::{Disk, Map};

/// Smallest region: a new database fits.
const MIN_REGION: usize = 1 << 15;

/// Heap memory behind the [`Disk`] trait. A map taken earlier keeps the region it was taken of, as
/// a file's old map does when the file grows.
#[derive(Default)]
pub(crate) struct HeapDisk {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    len: usize,
    region: Option<Arc<Region>>,
}

impl State {
    /// The region, with room for `len` bytes: a larger one takes over what the old one held.
    fn region(&mut self, len: usize) -> io::Result<&Arc<Region>> {
        let large_enough = self.region.as_ref().is_some_and(|region| region.len() >= len);
        if !large_enough {
            let room = len.checked_next_power_of_two().unwrap_or(len).max(MIN_REGION);
            let region = Region::new(room)?;
            if let Some(old) = &self.region {
                let mut page = [0; 4096];
                for start in (0..self.len).step_by(page.len()) {
                    let part = &mut page[..(self.len - start).min(4096)];
                    old.read(start, part);
                    region.write(start, part);
                }
            }
            self.region = Some(region);
        }
        Ok(self.region.as_ref().expect("it was just set"))
    }
}

impl HeapDisk {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // Every change of the state is one assignment after all that can fail: it is whole even
        // where a thread died while holding the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for HeapDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeapDisk").field("len", &self.state().len).finish()
    }
}

impl Disk for HeapDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().len as u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.state();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(state.len);
        let len = buf.len().min(state.len - start);
        if let Some(region) = &state.region {
            region.read(start, &mut buf[..len]);
        }
        Ok(len)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state();
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start.checked_add(data.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        state.region(end)?.write(start, data);
        state.len = state.len.max(end);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let old = state.len;
        let region = state.region(len)?;
        // What is cut off has to read as zeros when the disk grows over it again.
        let zeros = [0; 4096];
        for start in (len..old).step_by(zeros.len()) {
            region.write(start, &zeros[..(old - start).min(zeros.len())]);
        }
        state.len = len;
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn map(&self, len: usize) -> io::Result<Map> {
        let mut state = self.state();
        Ok(Map::of_region(Arc::clone(state.region(len)?), len))
    }

    fn shows(&self, map: &Map) -> bool {
        self.state().region.as_ref().is_some_and(|region| map.is_of(region))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_shows_what_is_written_until_the_disk_outgrows_its_region() {
        let disk = HeapDisk::default();
        let map = disk.map(MIN_REGION).unwrap();
        disk.set_len(MIN_REGION as u64).unwrap();
        assert!(disk.shows(&map));
        disk.set_len(MIN_REGION as u64 + 1).unwrap();
        assert!(!disk.shows(&map));
        assert!(disk.shows(&disk.map(MIN_REGION).unwrap()));
    }

    #[test]
    fn what_was_cut_off_reads_as_zeros_when_the_disk_grows_again() {
        let disk = HeapDisk::default();
        disk.write_at(&[1; 9000], 0).unwrap();
        disk.set_len(10).unwrap();
        disk.set_len(9000).unwrap();
        let mut bytes = [2; 9000];
        assert_eq!(disk.read_at(&mut bytes, 0).unwrap(), 9000);
        assert_eq!((&bytes[..10], &bytes[10..]), (&[1; 10][..], &[0; 8990][..]));
    }
}
