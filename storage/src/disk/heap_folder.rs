//! A journal's folder on the heap, for who has nothing but its bytes. Compiled for fuzz targets alone.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Disk, HeapDisk, JournalFolder};

/// Segments by their names.
#[derive(Debug, Default)]
pub(crate) struct HeapJournalFolder {
    segments: Mutex<BTreeMap<String, Arc<HeapDisk>>>,
    /// How many numbers were drawn.
    drawn: AtomicU64,
    /// Numbers that are drawn in another life of the same journal differ by it.
    seed: u64,
}

impl HeapJournalFolder {
    pub(crate) fn new(segments: &BTreeMap<String, Vec<u8>>) -> io::Result<Self> {
        let copy = |(name, bytes): (&String, &Vec<u8>)| {
            let disk = HeapDisk::default();
            disk.write_at(bytes, 0)?;
            Ok((name.clone(), Arc::new(disk)))
        };
        let seed = segments.values().fold(0, |sum, bytes| crc32c::crc32c_append(sum, bytes));
        let segments = Mutex::new(segments.iter().map(copy).collect::<io::Result<_>>()?);
        Ok(Self { segments, drawn: AtomicU64::new(0), seed: seed.into() })
    }

    fn segments(&self) -> MutexGuard<'_, BTreeMap<String, Arc<HeapDisk>>> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JournalFolder for HeapJournalFolder {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.segments().keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        let disk = self.segments().get(name).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(disk)
    }

    fn create(&self) -> io::Result<(String, Arc<dyn Disk>)> {
        let mut segments = self.segments();
        let name = (1..u32::MAX).map(|number| format!("segment-{number:06}")).find(|name| !segments.contains_key(name));
        let (name, disk) = (name.ok_or(io::ErrorKind::Other)?, Arc::new(HeapDisk::default()));
        segments.insert(name.clone(), Arc::clone(&disk));
        Ok((name, disk))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.segments().remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn holds(&self, name: &str) -> bool {
        self.segments().contains_key(name)
    }

    fn random(&self) -> io::Result<u64> {
        let drawn = self.drawn.fetch_add(1, Ordering::Relaxed) + 1;
        let mixed = (self.seed << 32 | drawn).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Ok((mixed ^ (mixed >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9))
    }

    fn path(&self) -> &Path {
        Path::new("journal")
    }
}
