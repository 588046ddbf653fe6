//! A simulated folder: files by name, and what a crash may leave of the names.
//!
//! Names that were changed since the folder was synced come through a crash one by one, in any
//! selection; a rename comes wholly or not at all.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Call, Event, FileId, Log, SimDisk, Trap};
use crate::Result;
use crate::disk::Folder;

/// A change of names.
#[derive(Debug, Clone)]
pub(crate) enum NameOp {
    Bind(PathBuf, FileId),
    Rename(PathBuf, PathBuf, FileId),
    Unbind(PathBuf),
}

/// The names of a folder as the disk has them: those for certain, and what is on its way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    synced: BTreeMap<PathBuf, FileId>,
    pending: Vec<NameOp>,
}

impl Names {
    pub(crate) fn new(synced: BTreeMap<PathBuf, FileId>) -> Self {
        Self { synced, pending: Vec::new() }
    }

    pub(crate) fn push(&mut self, op: NameOp) {
        self.pending.push(op);
    }

    pub(crate) fn sync(&mut self) {
        *self = Self::new(self.newest());
    }

    /// What the folder holds while nothing crashes.
    pub(crate) fn newest(&self) -> BTreeMap<PathBuf, FileId> {
        self.after(|_| true)
    }

    /// What the folder may hold after a crash: with each selection of the changes, from none to all.
    pub(crate) fn after_each_crash(&self) -> Vec<BTreeMap<PathBuf, FileId>> {
        let selections = 0..1_u32 << self.pending.len();
        selections.map(|kept| self.after(|op| kept & (1 << op) != 0)).collect()
    }

    fn after(&self, kept: impl Fn(usize) -> bool) -> BTreeMap<PathBuf, FileId> {
        let mut names = self.synced.clone();
        for (_, op) in self.pending.iter().enumerate().filter(|(at, _)| kept(*at)) {
            apply(&mut names, op);
        }
        names
    }
}

fn apply(names: &mut BTreeMap<PathBuf, FileId>, op: &NameOp) {
    match op {
        NameOp::Bind(name, file) => {
            names.insert(name.clone(), *file);
        }
        NameOp::Rename(from, to, file) => {
            names.remove(from);
            names.insert(to.clone(), *file);
        }
        NameOp::Unbind(name) => {
            names.remove(name);
        }
    }
}

/// A folder whose every change is logged, together with those of its files.
#[derive(Debug)]
pub(crate) struct SimFolder {
    state: Mutex<State>,
    log: Log,
    trap: Trap,
    has_links: bool,
}

#[derive(Debug)]
struct State {
    names: BTreeMap<PathBuf, FileId>,
    files: Vec<SimDisk>,
}

impl SimFolder {
    /// A folder that holds these files for certain; on some file systems there are no hard links.
    /// Bytes that a file may have.
    pub(super) fn max_len(&self) -> Option<u64> {
        self.trap.max_len()
    }

    pub(crate) fn new(names: BTreeMap<PathBuf, FileId>, contents: &[Vec<u8>], has_links: bool, trap: &Trap) -> Self {
        let log = Log::default();
        let file = |(id, bytes): (FileId, &Vec<u8>)| SimDisk::with_log(id, bytes, log.clone(), trap.clone());
        let files = contents.iter().enumerate().map(file).collect();
        Self { state: Mutex::new(State { names, files }), log, trap: trap.clone(), has_links }
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// The names of all files.
    pub(crate) fn names(&self) -> io::Result<Vec<PathBuf>> {
        self.trap.call(Call::Folder)?;
        Ok(self.state().names.keys().cloned().collect())
    }

    /// A file, without a call to the folder.
    pub(crate) fn file(&self, name: &Path) -> Option<SimDisk> {
        let state = self.state();
        state.names.get(name).map(|&id| state.files[id].clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, state: &mut State, op: NameOp) {
        apply(&mut state.names, &op);
        self.log.push(Event::Name(op));
    }
}

fn named(state: &State, name: &Path) -> io::Result<FileId> {
    state.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
}

impl Folder for SimFolder {
    type File = SimDisk;

    fn open(&self, name: &Path, _write: bool) -> io::Result<SimDisk> {
        self.trap.call(Call::Folder)?;
        let state = self.state();
        Ok(state.files[named(&state, name)?].clone())
    }

    /// Nobody else is there.
    fn lock(&self, _: &SimDisk, _: &Path, _shared: bool, _: Option<Duration>) -> Result<bool> {
        Ok(true)
    }

    fn mode(&self, _: &SimDisk) -> io::Result<u32> {
        Ok(0o600)
    }

    fn create(&self, name: &Path, _mode: u32) -> io::Result<SimDisk> {
        self.trap.call(Call::Folder)?;
        let mut state = self.state();
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let id = state.files.len();
        let file = SimDisk::with_log(id, &[], self.log.clone(), self.trap.clone());
        state.files.push(file.clone());
        self.change(&mut state, NameOp::Bind(name.into(), id));
        Ok(file)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.trap.call(Call::Folder)?;
        let mut state = self.state();
        if !self.has_links {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if state.names.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let id = named(&state, from)?;
        self.change(&mut state, NameOp::Bind(to.into(), id));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.trap.call(Call::Folder)?;
        let mut state = self.state();
        let id = named(&state, from)?;
        self.change(&mut state, NameOp::Rename(from.into(), to.into(), id));
        Ok(())
    }

    fn remove(&self, name: &Path) -> io::Result<()> {
        self.trap.call(Call::Folder)?;
        let mut state = self.state();
        let id = named(&state, name)?;
        self.change(&mut state, NameOp::Unbind(name.into()));
        if !state.names.values().any(|&other| other == id) {
            state.files[id].blocks.give_from(0, &self.trap);
        }
        Ok(())
    }

    fn sync(&self, _of: &Path) -> io::Result<()> {
        self.trap.call(Call::Folder)?;
        self.log.push(Event::SyncFolder);
        Ok(())
    }
}
