//! A folder as the disk has it: its names, and its files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::losses::losses;
use super::random::Random;
use crate::disk::sim::{Event, FileId, Loss, NameOp, Names, Platter};

/// What a folder holds after a crash.
pub(super) type Left = (BTreeMap<PathBuf, FileId>, Vec<Vec<u8>>);

#[derive(Debug, Clone)]
pub(super) struct Platters {
    pub(super) names: Names,
    pub(super) files: Vec<Platter>,
}

impl Platters {
    /// All of this is there for certain.
    pub(super) fn new(names: BTreeMap<PathBuf, FileId>, contents: Vec<Vec<u8>>) -> Self {
        Self { names: Names::new(names), files: contents.into_iter().map(Platter::new).collect() }
    }

    pub(super) fn happens(&mut self, event: Event) {
        match event {
            Event::File(id, change) => self.file(id).push(change),
            Event::SyncFile(id) => self.file(id).sync(),
            Event::SyncChange(id) => self.file(id).sync_change(),
            Event::Name(op) => {
                // A file may have its name before anything is written to it.
                if let NameOp::Bind(_, id) = op {
                    self.file(id);
                }
                self.names.push(op);
            }
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

    /// Ways in which a crash may go now, all files together: one file loses something in each of the ways that are worth a
    /// look, and the others in one of theirs, or nothing, or all that was not synced.
    pub(super) fn crashes(&self, looked_at: FileId, random: &mut Random) -> Vec<Left> {
        let ways: Vec<Vec<Loss>> = self.files.iter().map(|file| ways(file, random)).collect();
        let names = self.names.after_each_crash();
        let here = ways.get(looked_at).map_or(1, |ways| ways.len().max(1));
        let crash = |way: usize| {
            let files = self.files.iter().zip(&ways).enumerate().map(|(id, (file, ways))| match random.below(4) {
                _ if ways.is_empty() => file.synced().to_vec(),
                _ if id == looked_at => file.after(&ways[way]),
                0 => file.newest(),
                1 => file.synced().to_vec(),
                _ => file.after(&ways[random.below(ways.len())]),
            });
            let files = files.collect();
            (names[random.below(names.len())].clone(), files)
        };
        (0..here).map(crash).collect()
    }
}

/// Ways in which a crash may treat a file; none where all of it is on the disk.
fn ways(file: &Platter, random: &mut Random) -> Vec<Loss> {
    if file.pieces() == 0 { Vec::new() } else { losses(file, random) }
}
