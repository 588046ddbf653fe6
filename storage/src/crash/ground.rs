//! What a database lies on here: its file, and the folder of its journal where it keeps one; what a crash may leave of them
//! together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::platters::{Left, Platters};
use super::random::Random;
use super::setup::Setup;
use crate::disk::sim::{FileId, Log, Platter, SimDisk, SimFolder, SimJournalFolder, Trap};
use crate::store::new_database;
use crate::{Db, Options, Result};

const FILE: &str = "db";
const JOURNAL: &str = "db-journal";

/// What a disk holds for certain, by names.
#[derive(Debug, Clone, Default)]
pub(super) struct Files(BTreeMap<PathBuf, Vec<u8>>);

impl Files {
    fn left((names, files): Left) -> Self {
        Self(names.into_iter().map(|(name, id)| (name, files.get(id).cloned().unwrap_or_default())).collect())
    }

    /// A file by itself.
    pub(super) fn only(bytes: Vec<u8>) -> Self {
        Self(BTreeMap::from([(FILE.into(), bytes)]))
    }

    pub(super) fn new_database(setup: &Setup) -> Self {
        Self::only(new_database(&setup.options()).expect("the page size is right"))
    }

    fn names(&self) -> BTreeMap<PathBuf, FileId> {
        self.0.keys().enumerate().map(|(id, name)| (name.clone(), id)).collect()
    }

    fn contents(&self) -> Vec<Vec<u8>> {
        self.0.values().cloned().collect()
    }
}

/// A disk on which a database can be opened again and again.
#[derive(Debug, Clone)]
pub(super) struct Ground {
    folder: Arc<SimFolder>,
    disk: SimDisk,
    openings: Arc<AtomicU64>,
}

impl Ground {
    pub(super) fn new(files: &Files, trap: &Trap) -> Self {
        // No two grounds draw the same numbers.
        static GROUNDS: AtomicU64 = AtomicU64::new(1);
        let folder = SimFolder::new(files.names(), &files.contents(), true, trap);
        let disk = folder.file(Path::new(FILE)).expect("it is among them");
        let openings = GROUNDS.fetch_add(1, Ordering::Relaxed) << 32;
        Self { folder: Arc::new(folder), disk, openings: Arc::new(openings.into()) }
    }

    pub(super) fn open(&self, options: &Options) -> Result<Db> {
        let disk = Arc::new(self.disk.clone());
        if options.journal.is_none() {
            return Db::on_disk(disk, None, options);
        }
        let seed = self.openings.fetch_add(1 << 12, Ordering::Relaxed);
        let journal = SimJournalFolder::new(Arc::clone(&self.folder), Path::new(JOURNAL), seed);
        Db::on_disk_with_journal(disk, Arc::new(journal), options)
    }

    pub(super) fn log(&self) -> &Log {
        self.folder.log()
    }

    pub(super) fn trap(&self) -> &Trap {
        self.disk.trap()
    }
}

impl Platters {
    pub(super) fn of(files: &Files) -> Self {
        Self::new(files.names(), files.contents())
    }

    /// What there is while nothing crashes.
    pub(super) fn newest(&self) -> Files {
        Files::left((self.names.newest(), self.files.iter().map(Platter::newest).collect()))
    }

    /// What crashes may leave, of one file in each way that is worth a look.
    pub(super) fn after_crashes(&self, looked_at: FileId, random: &mut Random) -> Vec<Files> {
        self.crashes(looked_at, random).into_iter().map(Files::left).collect()
    }

    /// The same, of the database's file and of some file of the journal.
    pub(super) fn after_some_crashes(&self, random: &mut Random) -> Vec<Files> {
        let other = random.below(self.files.len());
        let ids = if other == 0 { vec![0] } else { vec![0, other] };
        ids.into_iter().flat_map(|id| self.after_crashes(id, random)).collect()
    }
}
