//! Random work on a database, the same for the same seed: transactions that make every kind of edit, in nested buckets, small
//! values and some of many pages; rollbacks and savepoints, sync points, readers that are kept for a while, files that shrink,
//! clean closes, and processes that are killed. Where there is a journal, somebody follows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::edit::{Answer, Edit, Parts};
use super::ground::Ground;
use super::model::{BucketPath, Model};
use super::random::Random;
use super::setup::Setup;
use super::watcher::Watcher;
use crate::disk::sim::{Fault, Mark};
use crate::store::{Beside, End};
use crate::{Db, Durability, Error, JournalPosition, Result, Tx, TxMut};

/// Keys that a bucket may have.
const KEYS: usize = 120;
/// Buckets that a database may have, and how deep they are nested.
const MOST_BUCKETS: usize = 7;
const DEEPEST: usize = 3;

/// Work on one disk, and the states that it went through.
pub(super) struct Worker<'a> {
    setup: Setup,
    random: &'a mut Random,
    ground: Ground,
    /// The content at the beginning and after each commit.
    states: Vec<Model>,
    /// The last of them that was promised to be there after a crash.
    durable: usize,
    /// The last of them that the caller was told of.
    acknowledged: usize,
    /// Commits since a sync point.
    unsynced: u64,
    /// Readers, and which state each of them must see.
    readers: Vec<(Tx, usize)>,
}

impl<'a> Worker<'a> {
    /// For a disk that holds `start`.
    pub(super) fn new(setup: Setup, random: &'a mut Random, ground: Ground, start: Model) -> Self {
        let readers = Vec::new();
        Self { setup, random, ground, states: vec![start], durable: 0, acknowledged: 0, unsynced: 0, readers }
    }

    /// Runs so many transactions; returns the states, and the positions that a follower was told of, in their order.
    pub(super) fn run(mut self, transactions: usize) -> (Vec<Model>, Vec<JournalPosition>) {
        let mut positions = Vec::new();
        let mut db = self.open();
        let mut watcher = Watcher::behind_newest(&db, &self.states);
        for _ in 0..transactions {
            if self.random.once_in(6) {
                self.ground.trap().arm(self.random.below(8) as u64, Fault::Killed);
            }
            let alive = self.round(&db);
            if !alive {
                self.readers.clear();
                drop(db);
                db = self.open_after_a_kill();
                watcher = Watcher::behind_newest(&db, &self.states);
                continue;
            }
            self.ground.trap().disarm();
            if let Some((state, position)) = watcher.take(&self.states) {
                self.ground.log().mark(Mark::Told(state));
                positions.push(position);
            }
            if self.random.once_in(15) {
                self.end_readers();
                db.close().expect("nothing fails on this disk");
                self.durable();
                db = self.open();
                watcher = Watcher::behind_newest(&db, &self.states);
            }
        }
        self.end_readers();
        drop(db);
        (self.states, positions)
    }

    /// `false` if the process was killed.
    fn round(&mut self, db: &Db) -> bool {
        if !self.transaction(db) {
            return false;
        }
        if self.setup.journal.is_some() && db.stats().unsynced_commits == 0 {
            self.durable();
        }
        self.read(db);
        if self.random.once_in(8) {
            let synced = if self.random.once_in(2) { db.sync() } else { db.checkpoint() };
            if self.is_killed(synced) {
                return false;
            }
            self.durable();
        }
        if self.random.once_in(6) && !self.checkpoint_beside(db) {
            return false;
        }
        if self.random.once_in(12) {
            let early = self.random.once_in(2);
            let shrunk = if early { db.shrink_telling(|_| false) } else { db.shrink() };
            if self.is_killed(shrunk) {
                return false;
            }
            self.durable();
        }
        true
    }

    /// A checkpoint with transactions between its steps. `false` if the process was killed.
    fn checkpoint_beside(&mut self, db: &Db) -> bool {
        let shared = &db.0.shared;
        let turn = shared.turn_to_write();
        let begun = match Beside::begin(shared, &turn) {
            Ok(begun) => begun,
            Err(error) => return !self.is_killed(Err::<(), _>(error)),
        };
        let Some(mut beside) = begun else { return true };
        let ended = loop {
            match beside.write_next() {
                Ok(true) if self.random.once_in(2) && !self.transaction(db) => return false,
                Ok(true) => {}
                Ok(false) => break beside.finish(),
                Err(end) => break Err(end),
            }
        };
        match ended {
            // Another one came before.
            Err(End::Overtaken) => true,
            // Where branches are split into more parts than were reckoned with, `Db` makes one that commits wait for.
            Err(End::Failed(Error::NoSpace { .. })) if self.ground.trap().sprung().is_none() => true,
            Err(End::Failed(error)) => !self.is_killed(Err::<(), _>(error)),
            Ok(()) => {
                self.durable();
                self.ground.trap().sprung().is_none()
            }
        }
    }

    fn open(&self) -> Db {
        self.ground.open(&self.setup.options()).expect("it holds a sound database")
    }

    /// What a killed process has written is there, if not on the disk: the cache of the system has
    /// it. What the next process finds is promised to stay.
    fn open_after_a_kill(&mut self) -> Db {
        // From here on nothing has sprung.
        self.ground.trap().arm(u64::MAX, Fault::Killed);
        self.ground.trap().disarm();
        let db = self.open();
        let tx = db.begin().expect("readers always may");
        let is_seen = |state: &&Model| state.is_seen_in(tx.buckets()).expect("it is whole");
        // A journal is in the system's cache, and a killed process has lost nothing.
        let oldest = if self.setup.journal.is_some() { self.acknowledged } else { self.durable };
        let found = self.states[oldest..].iter().rev().find(is_seen);
        let found = found.expect("it is a state that was promised, or a later one").clone();
        self.ground.log().mark(Mark::Begun);
        self.states.push(found);
        self.acknowledged = self.states.len() - 1;
        self.durable();
        db
    }

    /// What has gone well may have been followed by a checkpoint, in which the process was killed.
    fn is_killed<T>(&self, result: Result<T>) -> bool {
        let killed = self.ground.trap().sprung().is_some();
        result.map_or_else(|error| if killed { true } else { panic!("nothing fails, and still: {error}") }, |_| killed)
    }

    fn newest(&self) -> &Model {
        self.states.last().expect("there is one from the beginning")
    }

    fn durable(&mut self) {
        self.ground.log().mark(Mark::Durable);
        self.durable = self.states.len() - 1;
        self.unsynced = 0;
    }

    /// `false` if the process was killed.
    fn transaction(&mut self, db: &Db) -> bool {
        match self.random.below(8) {
            0 => self.closure(db, |db, change| db.try_update(change)),
            1 => self.closure(db, |db, change| db.try_batch(change)),
            _ => self.steps(db),
        }
    }

    /// A transaction that is one closure, which fails now and then.
    fn closure(&mut self, db: &Db, run: impl FnOnce(&Db, Closure) -> Result<(), Option<Error>>) -> bool {
        let mut model = self.newest().clone();
        let edits = edits(self.random, &mut model);
        let fails = self.random.once_in(3);
        if !fails {
            self.ground.log().mark(Mark::Begun);
        }
        let change = Box::new(move |tx: &mut TxMut| {
            apply(&edits, tx);
            if fails { Err(None) } else { Ok(()) }
        });
        match run(db, change) {
            // A batch is committed for the others in it, too.
            Err(None) => self.ground.trap().sprung().is_none(),
            // One that was to fail has begun no state, wherever the process was killed.
            Err(Some(error)) if fails => !self.is_killed(Err::<(), _>(error)),
            Err(Some(error)) => self.committed(model, Err(error), false),
            Ok(()) => self.committed(model, Ok(()), false),
        }
    }

    /// A transaction with all that one can do beside its edits.
    fn steps(&mut self, db: &Db) -> bool {
        let mut tx = match db.begin_mut() {
            Ok(tx) => tx,
            // It was killed where leaves are written, beside the commits.
            Err(error) => return !self.is_killed(Err::<(), _>(error)),
        };
        let mut model = self.newest().clone();
        let called = Arc::<AtomicUsize>::default();
        let call = |tx: &mut TxMut| {
            let called = Arc::clone(&called);
            tx.on_commit(move || {
                called.fetch_add(1, Ordering::Relaxed);
            });
        };
        call(&mut tx);
        self.edit(&mut tx, &mut model);
        if self.random.once_in(4) {
            let savepoint = tx.savepoint();
            call(&mut tx);
            let mut undone = model.clone();
            apply(&moved(self.random, &mut undone), &mut tx);
            self.edit(&mut tx, &mut undone);
            tx.rollback_to(&savepoint).expect("it is this transaction's");
            assert!(model.is_seen_in(tx.buckets()).expect("it is whole"), "the savepoint's state is not what it was");
            tx.forget_savepoints();
            self.edit(&mut tx, &mut model);
        }
        if self.random.once_in(8) {
            tx.rollback();
            return true;
        }
        self.ground.log().mark(Mark::Begun);
        let synced = self.random.once_in(10);
        let committed = if synced { tx.commit_with(Durability::Always) } else { tx.commit() };
        assert_eq!(called.load(Ordering::Relaxed), usize::from(committed.is_ok()), "only the first is to be called");
        self.committed(model, committed.map(drop), synced)
    }

    /// `false` if the process was killed.
    fn committed(&mut self, model: Model, committed: Result<()>, synced: bool) -> bool {
        self.states.push(model);
        let is_committed = committed.is_ok();
        let killed = self.is_killed(committed);
        if is_committed {
            self.acknowledged = self.states.len() - 1;
            self.unsynced += 1;
            if synced || self.setup.is_durable_after(self.unsynced) {
                self.durable();
            }
        }
        !killed
    }

    fn edit(&mut self, tx: &mut TxMut, model: &mut Model) {
        apply(&edits(self.random, model), tx);
    }

    /// Keeps a new reader now and then, and ends an old one.
    fn read(&mut self, db: &Db) {
        if self.random.once_in(4) {
            let tx = db.begin().expect("readers always may");
            self.readers.push((tx, self.states.len() - 1));
        }
        if self.readers.len() > 3 || self.random.once_in(6) {
            self.end_reader();
        }
    }

    fn end_readers(&mut self) {
        while !self.readers.is_empty() {
            self.end_reader();
        }
    }

    fn end_reader(&mut self) {
        if self.readers.is_empty() {
            return;
        }
        let (tx, state) = self.readers.swap_remove(self.random.below(self.readers.len()));
        let is_seen = self.states[state].is_seen_in(tx.buckets()).expect("it is whole");
        assert!(is_seen, "a reader's pages were written over");
    }
}

type Closure = Box<dyn FnOnce(&mut TxMut) -> Result<(), Option<Error>> + Send>;

/// An edit that the model has taken, and what it answered.
pub(super) type Answered = (Edit, Answer);

pub(super) fn apply(edits: &[Answered], tx: &mut TxMut) {
    for (edit, expected) in edits {
        let answer = edit.apply(tx).unwrap_or_else(|error| panic!("{edit:?}: {error}"));
        assert_eq!(answer, *expected, "{edit:?}");
    }
}

/// The edits of one transaction, which are made to the model too.
pub(super) fn edits(random: &mut Random, model: &mut Model) -> Vec<Answered> {
    let count = match random.below(10) {
        0 => 0,
        1 => 40 + random.below(40),
        _ => 1 + random.below(8),
    };
    (0..count).filter_map(|_| taken(some_edit(random, model), model)).collect()
}

/// A bucket moved, and edits in it: first, often, one that takes whole leaves away.
pub(super) fn moved(random: &mut Random, model: &mut Model) -> Vec<Answered> {
    let mut kinds = [(); 4].map(|()| random.below(Edit::KINDS));
    if random.once_in(2) {
        kinds[0] = Edit::DELETE_RANGE;
    }
    let then: Vec<_> = kinds.into_iter().map(|kind| (kind, parts(random, Vec::new(), Vec::new()))).collect();
    let which = [(); 2].map(|()| random.below(MOST_BUCKETS * MOST_BUCKETS));
    Edit::of_moved(model, which, then).into_iter().filter_map(|edit| taken(edit, model)).collect()
}

/// The edit with its answer, if the model takes it.
fn taken(edit: Edit, model: &mut Model) -> Option<Answered> {
    // One that is refused may have been made in part.
    let mut changed = model.clone();
    let answer = edit.apply_to_model(&mut changed).ok()?;
    *model = changed;
    Some((edit, answer))
}

fn some_edit(random: &mut Random, model: &Model) -> Edit {
    let paths = model.bucket_paths();
    if paths.is_empty() || (paths.len() < MOST_BUCKETS && random.once_in(12)) {
        return Edit::Create(new_path(random, &paths));
    }
    let path = paths[random.below(paths.len())].clone();
    let old_key = model.bucket(&path).ok().and_then(|bucket| bucket.some_key(random.next()));
    match (random.below(100), old_key) {
        (0..=14, _) => any_edit(random, path, &paths),
        (15..=17, _) if model.bucket(&path).is_ok_and(|bucket| bucket.items.len() < KEYS) => many(random, path),
        (15..=40, Some(key)) => Edit::Delete(path, key),
        (41..=55, Some(key)) => Edit::Put(path, key, value(random)),
        _ => Edit::Put(path, key(random), value(random)),
    }
}

/// What makes trees grow levels; only small ones, because each crash point is compared with the model.
fn many(random: &mut Random, path: BucketPath) -> Edit {
    let (key, [count, len, ..]) = (key(random), random.next().to_le_bytes());
    Edit::PutMany(path, key, count % 100, random.bytes((len % 40).into()))
}

/// Each kind comes up; what makes much of the content go, not often.
fn any_edit(random: &mut Random, path: BucketPath, paths: &[BucketPath]) -> Edit {
    let to = paths[random.below(paths.len())].clone();
    let parts = parts(random, path, to);
    match Edit::of_kind(random.below(Edit::KINDS), parts) {
        Edit::Drop(path) | Edit::DeleteMany(path, _) if random.once_in(2) => Edit::Open(path),
        Edit::DeleteRange(path, low, high, limit) => Edit::DeleteRange(path, low, high, limit.min(40)),
        edit => edit,
    }
}

fn parts(random: &mut Random, path: BucketPath, to: BucketPath) -> Parts {
    let (key, other_key) = (key(random), key(random));
    Parts { path, to, key, other_key, value: value(random), number: random.next() }
}

fn key(random: &mut Random) -> Vec<u8> {
    format!("{:05}", random.below(KEYS)).into()
}

/// Bucket names are no keys that values have.
fn new_path(random: &mut Random, paths: &[BucketPath]) -> BucketPath {
    let above = if paths.is_empty() || random.once_in(2) { &[][..] } else { &paths[random.below(paths.len())] };
    let mut path = above[..above.len().min(DEEPEST - 1)].to_vec();
    path.push(format!("bucket {}", random.below(MOST_BUCKETS)).into_bytes());
    path
}

fn value(random: &mut Random) -> Vec<u8> {
    let len = match random.below(100) {
        0..=9 => 0,
        10..=17 => random.below(900),
        18 => random.below(12_000),
        _ => random.below(60),
    };
    random.bytes(len)
}
