//! What a database lies on here: its file, and the folder of its journal where it keeps one; what a crash may leave of them
//! together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::losses::losses;
use super::random::Random;
use super::workload::Setup;
use crate::disk::sim::{Event, FileId, Log, Names, Platter, SimDisk, SimFolder, SimJournalFolder, Trap};
use crate::store::new_database;
use crate::{Db, Options, Result};

const FILE: &str = "db";
const JOURNAL: &str = "db-journal";

/// What a disk holds for certain, by names.
#[derive(Debug, Clone, Default)]
pub(super) struct Files(BTreeMap<PathBuf, Vec<u8>>);

impl Files {
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

/// All files of a ground as the disk has them.
pub(super) struct Platters {
    names: Names,
    files: Vec<Platter>,
}

impl Platters {
    pub(super) fn new(files: &Files) -> Self {
        Self { names: Names::new(files.names()), files: files.contents().into_iter().map(Platter::new).collect() }
    }

    pub(super) fn happens(&mut self, event: Event) {
        match event {
            Event::File(id, change) => self.file(id).push(change),
            Event::SyncFile(id) => self.file(id).sync(),
            Event::Name(op) => self.names.push(op),
            Event::SyncFolder => self.names.sync(),
            Event::Mark(_) => {}
        }
    }

    fn file(&mut self, id: FileId) -> &mut Platter {
        while self.files.len() <= id {
            self.files.push(Platter::new(Vec::new()));
        }
        &mut self.files[id]
    }

    /// What there is while nothing crashes.
    pub(super) fn newest(&self) -> Files {
        let names = self.names.after_each_crash().pop().unwrap_or_default();
        self.of(&names, Platter::newest)
    }

    /// Ways in which a crash may go now. Each file loses what it may, while the others lose something or nothing.
    pub(super) fn after_crashes(&self, random: &mut Random) -> Vec<Files> {
        let all_names = self.names.after_each_crash();
        let ways: Vec<Vec<_>> = self.files.iter().map(|file| losses_of(file, random)).collect();
        let mut outcomes = Vec::new();
        for (id, of_file) in ways.iter().enumerate() {
            // One that loses nothing is one of the others.
            if of_file.len() == 1 && outcomes.len() + 1 < ways.len() && self.files.len() > 1 {
                continue;
            }
            for loss in of_file {
                let names = &all_names[random.below(all_names.len())];
                let others = random.below(3);
                let mut files = Files::default();
                for (name, &other) in names {
                    let Some(platter) = self.files.get(other) else {
                        files.0.insert(name.clone(), Vec::new());
                        continue;
                    };
                    let theirs = &ways[other];
                    let loss = match others {
                        _ if other == id => loss,
                        0 => &theirs[0],
                        _ => &theirs[random.below(theirs.len())],
                    };
                    files.0.insert(
                        name.clone(),
                        loss.as_ref().map_or_else(|| platter.newest(), |loss| platter.after(loss)),
                    );
                }
                outcomes.push(files);
            }
        }
        outcomes
    }

    fn of(&self, names: &BTreeMap<PathBuf, FileId>, content: impl Fn(&Platter) -> Vec<u8>) -> Files {
        let content = |&id: &FileId| self.files.get(id).map(&content).unwrap_or_default();
        Files(names.iter().map(|(name, id)| (name.clone(), content(id))).collect())
    }
}

/// The first is none.
fn losses_of(file: &Platter, random: &mut Random) -> Vec<Option<crate::disk::sim::Loss>> {
    let some = if file.pieces() == 0 { Vec::new() } else { losses(file, random) };
    std::iter::once(None).chain(some.into_iter().map(Some)).collect()
}
