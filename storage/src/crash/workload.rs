//! Random work on a database, the same for the same seed: transactions that make every kind of edit, in nested buckets, small
//! values and some of many pages; rollbacks and savepoints, sync points, readers that are kept for a while, files that shrink,
//! clean closes, and processes that are killed. Where there is a journal, somebody follows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::edits::{apply, edits, in_longest, moved};
use super::ground::Ground;
use super::model::Model;
use super::random::Random;
use super::setup::Setup;
use super::watcher::Watcher;
use crate::disk::sim::{Fault, Mark};
use crate::store::{Beside, End};
use crate::{Db, Durability, Error, JournalPosition, Result, Tx, TxMut};

/// Small transactions that fill a bucket, and those before a checkpoint beside others.
const TO_LOAD: usize = 8;
const SMALL_ONES: usize = 4;

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
    /// Whether transactions change a few entries each.
    is_small: bool,
    /// Checkpoints that were made beside transactions.
    beside: usize,
}

/// What the thread that syncs does while much is written; whether it could.
pub(super) fn checkpoint_beside(db: &Db) -> Result<bool> {
    let shared = &db.0.shared;
    shared.checkpoint_beside(&shared.turn_to_write())
}

/// What was done.
pub(super) struct Done {
    /// The content at the beginning and after each commit.
    pub(super) states: Vec<Model>,
    /// What a follower was told of, in its order.
    pub(super) positions: Vec<JournalPosition>,
    /// Checkpoints that were made beside transactions.
    pub(super) beside: usize,
}

impl<'a> Worker<'a> {
    /// For a disk that holds `start`.
    pub(super) fn new(setup: Setup, random: &'a mut Random, ground: Ground, start: Model) -> Self {
        let readers = Vec::new();
        let states = vec![start];
        Self {
            setup,
            random,
            ground,
            states,
            durable: 0,
            acknowledged: 0,
            unsynced: 0,
            readers,
            is_small: false,
            beside: 0,
        }
    }

    /// Runs so many transactions.
    pub(super) fn run(mut self, transactions: usize) -> Done {
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
        Done { states: self.states, positions, beside: self.beside }
    }

    /// Fills a bucket of several pages, and closes.
    pub(super) fn load(mut self) -> Model {
        let db = self.open();
        for _ in 0..TO_LOAD {
            assert!(self.small(&db), "nobody kills it");
        }
        db.close().expect("nothing fails on this disk");
        self.newest().clone()
    }

    /// Small transactions, and so many checkpoints beside others.
    pub(super) fn run_beside(mut self, checkpoints: usize) -> Done {
        self.is_small = true;
        let db = self.open();
        for _ in 0..checkpoints {
            for _ in 0..SMALL_ONES {
                assert!(self.small(&db), "nobody kills it");
            }
            self.read(&db);
            assert!(self.checkpoint_beside(&db), "nobody kills it");
            assert!(self.small(&db), "nobody kills it");
        }
        self.end_readers();
        drop(db);
        Done { states: self.states, positions: Vec::new(), beside: self.beside }
    }

    /// A transaction that changes a few entries. `false` if the process was killed.
    fn small(&mut self, db: &Db) -> bool {
        let mut model = self.newest().clone();
        let mut tx = db.begin_mut().expect("nothing fails on this disk");
        apply(&in_longest(self.random, &mut model), &mut tx);
        self.ground.log().mark(Mark::Begun);
        let committed = tx.commit();
        self.committed(model, committed.map(drop), false)
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
                self.beside += 1;
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
            _ if self.is_small => self.small(db),
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
