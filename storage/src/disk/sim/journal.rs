//! A journal's folder on the simulated disk: its files are in the log of the folder around it, with the database's.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::SimFolder;
use crate::disk::{Disk, Folder as _, JournalFolder};

/// The files of a simulated folder whose names begin with that of the journal's folder.
#[derive(Debug)]
pub(crate) struct SimJournalFolder {
    folder: Arc<SimFolder>,
    path: PathBuf,
    /// The next number that nobody foresees: the same ones for the same seed.
    random: AtomicU64,
}

impl SimJournalFolder {
    pub(crate) fn new(folder: Arc<SimFolder>, path: &Path, seed: u64) -> Self {
        Self { folder, path: path.into(), random: AtomicU64::new(seed) }
    }
}

impl JournalFolder for SimJournalFolder {
    fn list(&self) -> io::Result<Vec<String>> {
        let names = self.folder.names()?;
        let ours = names.iter().filter_map(|name| name.strip_prefix(&self.path).ok());
        Ok(ours.filter_map(|name| name.to_str()).map(str::to_owned).collect())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        Ok(Arc::new(self.folder.open(&self.path.join(name), true)?))
    }

    fn create(&self) -> io::Result<(String, Arc<dyn Disk>)> {
        let names = self.list()?;
        let name = (1..u32::MAX).map(|number| format!("segment-{number}")).find(|name| !names.contains(name));
        let name = name.ok_or(io::ErrorKind::Other)?;
        Ok((name.clone(), Arc::new(self.folder.create(&self.path.join(name), 0o600)?)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(&self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        self.folder.sync(&self.path)
    }

    fn holds(&self, name: &str) -> bool {
        self.folder.file(&self.path.join(name)).is_some()
    }

    fn random(&self) -> io::Result<u64> {
        // A permutation of all numbers, so that none comes twice.
        let next = self.random.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Ok((next ^ (next >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9))
    }

    fn max_len(&self) -> Option<u64> {
        self.folder.max_len()
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
