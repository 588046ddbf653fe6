//! A crash while a file is created leaves no file, or a good one; and nothing that was committed to
//! a file is lost because its name was not yet on the disk.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::edit::Edit;
use super::explore::sound_state;
use super::ground::Files;
use super::losses::losses;
use super::model::Model;
use super::platters::Platters;
use super::random::Random;
use super::setup::Setup;
use crate::disk::sim::{Event, Fault, FileId, Mark, SimFolder, Trap};
use crate::{Db, Durability, Error, FreelistStored, JournalKeep};

const NAME: &str = "some.db";
/// More calls than creating a file takes.
const MOST_CALLS: u64 = 50;
const SETUP: Setup = Setup {
    page_size: 1024,
    freelist: FreelistStored::Always,
    durability: Durability::Always,
    journal: None,
    keep: JournalKeep::UntilCheckpoint,
    memory: 0,
};

/// What is there before the file is created.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Start {
    Nothing,
    /// The file system has no hard links.
    NothingAndNoLinks,
    /// A file of size 0, which is a new database.
    EmptyFile,
}

const STARTS: [Start; 3] = [Start::Nothing, Start::NothingAndNoLinks, Start::EmptyFile];

impl Start {
    fn files(self) -> (BTreeMap<PathBuf, FileId>, Vec<Vec<u8>>) {
        match self {
            Self::EmptyFile => (BTreeMap::from([(NAME.into(), 0)]), vec![Vec::new()]),
            _ => Default::default(),
        }
    }

    fn folder(self, trap: &Trap) -> SimFolder {
        let (names, contents) = self.files();
        SimFolder::new(names, &contents, self != Self::NothingAndNoLinks, trap)
    }
}

fn open(folder: &SimFolder) -> crate::Result<Db> {
    Db::open_in(folder, Path::new(NAME), &SETUP.options())
}

fn first_commit() -> [Edit; 2] {
    let bucket = vec![b"bucket".to_vec()];
    [Edit::Create(bucket.clone()), Edit::Put(bucket, b"key".to_vec(), b"value".to_vec())]
}

/// Opens the database, which is then promised to be there, and commits to it.
fn open_and_commit(folder: &SimFolder) {
    let db = open(folder).expect("nothing fails any more");
    folder.log().mark(Mark::Durable);
    folder.log().mark(Mark::Begun);
    db.update(|tx| first_commit().iter().try_for_each(|change| change.apply(tx).map(drop)))
        .expect("nothing fails any more");
    folder.log().mark(Mark::Durable);
}

impl Platters {
    /// What the file may be after a crash: `None` where there is none.
    fn after_each_crash(&self, random: &mut Random) -> Vec<Option<Vec<u8>>> {
        let mut outcomes = Vec::new();
        for names in self.names.after_each_crash() {
            match names.get(Path::new(NAME)).map(|&id| self.files.get(id)) {
                None => outcomes.push(None),
                Some(None) => outcomes.push(Some(Vec::new())),
                Some(Some(file)) => {
                    let left = losses(file, random).into_iter().map(|loss| file.after(&loss));
                    outcomes.extend(left.chain([file.newest()]).map(Some));
                }
            }
        }
        outcomes
    }
}

/// Crashes at every moment of a log, and returns the states that were found. State 0 is no database
/// (no file, or an empty one where that may be), 1 an empty database, 2 the first commit.
fn explore(start: Start, may_be_empty: bool, log: Vec<Event>) -> BTreeSet<usize> {
    let (names, contents) = start.files();
    let mut platters = Platters::new(names, contents);
    let mut states = vec![Model::default(), Model::default()];
    for change in first_commit() {
        change.apply_to_model(&mut states[1]).expect("it can be done");
    }
    let mut random = Random::new(1);
    let mut allowed = 0..=1;
    let (hasher, mut seen, mut found) = (RandomState::new(), HashSet::new(), BTreeSet::new());
    for event in log {
        match event {
            Event::Mark(Mark::Begun) => allowed = *allowed.start()..=allowed.end() + 1,
            Event::Mark(Mark::Durable | Mark::Told(_)) => allowed = *allowed.end()..=*allowed.end(),
            _ => {}
        }
        let what = format!("{start:?}, after {event:?}");
        platters.happens(event);
        for file in platters.after_each_crash(&mut random) {
            if !seen.insert(hasher.hash_one((&file, &allowed))) {
                continue;
            }
            let state = match file.as_deref() {
                None => 0,
                Some([]) if may_be_empty => 0,
                Some(bytes) => state_of(bytes, &states, &allowed).unwrap_or_else(|error| panic!("{what}: {error}")),
            };
            assert!(allowed.contains(&state), "{what}: it is state {state}, {allowed:?} are allowed");
            found.insert(state);
            assert_opens(file, &what);
        }
    }
    found
}

fn state_of(bytes: &[u8], states: &[Model], allowed: &RangeInclusive<usize>) -> Result<usize, String> {
    let allowed = allowed.start().saturating_sub(1)..=allowed.end() - 1;
    Ok(sound_state(&Files::only(bytes.to_vec()), SETUP, states, &allowed)? + 1)
}

/// Whatever a crash left: it is opened, or created, the next time.
fn assert_opens(file: Option<Vec<u8>>, what: &str) {
    let names = file.iter().map(|_| (PathBuf::from(NAME), 0)).collect();
    let contents: Vec<Vec<u8>> = file.into_iter().collect();
    let folder = SimFolder::new(names, &contents, true, &Trap::default());
    open(&folder).unwrap_or_else(|error| panic!("{what}: cannot be opened again: {error}"));
}

#[test]
fn a_crash_while_creating_leaves_no_file_or_a_good_one() {
    for start in STARTS {
        let folder = start.folder(&Trap::default());
        open_and_commit(&folder);
        let found = explore(start, start != Start::Nothing, folder.log().take());
        assert!(found.iter().eq(&[0, 1, 2]), "{start:?}: only these states were found: {found:?}");
    }
}

/// The second process finds the file, and cannot know that the first one died before the folder
/// was synced: a power cut could then take the name, with all that was committed since.
#[test]
fn a_commit_outlives_a_creator_that_died_at_any_call() {
    for start in STARTS {
        for call in 0..=MOST_CALLS {
            assert!(call < MOST_CALLS, "creating takes more calls than {MOST_CALLS}");
            let trap = Trap::after(call, Fault::Killed);
            let folder = start.folder(&trap);
            let first = open(&folder);
            let finished = trap.sprung().is_none();
            assert_eq!(first.is_ok(), finished);
            if finished {
                break;
            }
            trap.disarm();
            open_and_commit(&folder);
            explore(start, start != Start::Nothing, folder.log().take());
        }
    }
}

#[test]
fn whatever_call_fails_while_creating_the_file_is_created_the_next_time() {
    for (start, fault) in STARTS.into_iter().flat_map(|start| {
        [Fault::Broken, Fault::BrokenHalfWay, Fault::Full, Fault::FullHalfWay].map(|fault| (start, fault))
    }) {
        for call in 0..=MOST_CALLS {
            assert!(call < MOST_CALLS, "creating takes more calls than {MOST_CALLS}");
            let trap = Trap::after(call, fault);
            let folder = start.folder(&trap);
            match open(&folder) {
                Ok(_) if trap.sprung().is_none() => break,
                // A temporary name that could not be removed harms nobody.
                Ok(_) => {}
                Err(error) => assert!(matches!(error, Error::Io { .. }), "{error}"),
            }
            open_and_commit(&folder);
            // Where linking fails the file is created empty, and filled under its own name.
            explore(start, true, folder.log().take());
        }
    }
}
