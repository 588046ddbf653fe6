//! Random work on a database, the same for the same seed: transactions that put, overwrite and
//! delete, in nested buckets, small values and some of many pages; rollbacks and savepoints, sync
//! points, readers that are kept for a while, files that shrink, clean closes, and processes that are
//! killed.

use std::sync::Arc;
use std::time::Duration;

use super::model::{BucketPath, Change, Model};
use super::random::Random;
use crate::disk::sim::{Fault, Mark, SimDisk};
use crate::{Db, Durability, FreelistStored, Options, Result, Tx, TxMut};

/// Keys that a bucket may have.
const KEYS: usize = 120;
/// Buckets that a database may have, and how deep they are nested.
const MOST_BUCKETS: usize = 7;
const DEEPEST: usize = 3;
/// So long that no test lives to see a sync that nobody asked for.
const NEVER_IN_A_TEST: Duration = Duration::from_secs(24 * 3600);

/// How a database is made and opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setup {
    pub(super) page_size: u32,
    pub(super) freelist: FreelistStored,
    pub(super) durability: Durability,
}

/// Every so many commits one is synced, and none because of the time.
pub(super) fn every(commits: u64) -> Durability {
    Durability::Interval { every: NEVER_IN_A_TEST, commits }
}

impl Setup {
    /// Each combination comes up; small pages come up most, because they show the most.
    pub(super) fn random(random: &mut Random) -> Self {
        let freelist = [FreelistStored::Always, FreelistStored::Never, FreelistStored::OnCleanClose];
        let interval = every(2 + random.below(4) as u64);
        Self {
            page_size: [1024, 1024, 1024, 2048, 4096][random.below(5)],
            freelist: freelist[random.below(3)],
            durability: [Durability::Always, Durability::Always, interval, Durability::Never][random.below(4)],
        }
    }

    pub(super) fn options(&self) -> Options {
        Options::new().page_size(self.page_size).freelist(self.freelist).durability(self.durability)
    }

    /// Whether the last of so many commits since a sync point is promised to be durable.
    pub(super) fn is_durable_after(&self, commits: u64) -> bool {
        match self.durability {
            Durability::Always => true,
            Durability::Interval { commits: every, .. } => commits >= every,
            Durability::Never => false,
        }
    }
}

/// Work on one disk, and the states that it went through.
pub(super) struct Worker<'a> {
    setup: Setup,
    random: &'a mut Random,
    disk: SimDisk,
    /// The content at the beginning and after each commit.
    states: Vec<Model>,
    /// The last of them that was promised to be there after a crash.
    durable: usize,
    /// Commits since a sync point.
    unsynced: u64,
    /// Readers, and which state each of them must see.
    readers: Vec<(Tx, usize)>,
}

impl<'a> Worker<'a> {
    /// For a disk that holds `start`.
    pub(super) fn new(setup: Setup, random: &'a mut Random, disk: SimDisk, start: Model) -> Self {
        Self { setup, random, disk, states: vec![start], durable: 0, unsynced: 0, readers: Vec::new() }
    }

    /// Runs so many transactions; returns the states.
    pub(super) fn run(mut self, transactions: usize) -> Vec<Model> {
        let mut db = self.open();
        for _ in 0..transactions {
            if self.random.once_in(6) {
                self.disk.trap().arm(self.random.below(8) as u64, Fault::Killed);
            }
            let alive = self.round(&db);
            if !alive {
                self.readers.clear();
                drop(db);
                db = self.open_after_a_kill();
                continue;
            }
            self.disk.trap().disarm();
            if self.random.once_in(15) {
                self.end_readers();
                db.close().expect("nothing fails on this disk");
                self.durable();
                db = self.open();
            }
        }
        self.end_readers();
        drop(db);
        self.states
    }

    /// `false` if the process was killed.
    fn round(&mut self, db: &Db) -> bool {
        if !self.transaction(db) {
            return false;
        }
        self.read(db);
        if self.random.once_in(8) {
            if self.is_killed(db.sync()) {
                return false;
            }
            self.durable();
        }
        if self.random.once_in(12) {
            if self.is_killed(db.shrink()) {
                return false;
            }
            self.durable();
        }
        true
    }

    fn open(&self) -> Db {
        Db::on_disk(Arc::new(self.disk.clone()), None, &self.setup.options()).expect("it holds a sound database")
    }

    /// What a killed process has written is there, if not on the disk: the cache of the system has
    /// it. What the next process finds is promised to stay.
    fn open_after_a_kill(&mut self) -> Db {
        self.disk.trap().disarm();
        let db = self.open();
        let tx = db.begin().expect("readers always may");
        let is_seen = |state: &&Model| state.is_seen_by(&tx).expect("it is whole");
        let found = self.states[self.durable..].iter().rev().find(is_seen);
        let found = found.expect("it is a state that was promised, or a later one").clone();
        self.disk.log().mark(Mark::Begun);
        self.states.push(found);
        self.durable();
        db
    }

    fn is_killed<T>(&self, result: Result<T>) -> bool {
        let killed = self.disk.trap().sprung().is_some();
        result.map_or_else(|error| if killed { true } else { panic!("nothing fails, and still: {error}") }, |_| false)
    }

    fn newest(&self) -> &Model {
        self.states.last().expect("there is one from the beginning")
    }

    fn durable(&mut self) {
        self.disk.log().mark(Mark::Durable);
        self.durable = self.states.len() - 1;
        self.unsynced = 0;
    }

    /// `false` if the process was killed.
    fn transaction(&mut self, db: &Db) -> bool {
        let mut tx = db.begin_mut().expect("no write has failed");
        let mut model = self.newest().clone();
        self.change(&mut tx, &mut model);
        if self.random.once_in(5) {
            let savepoint = tx.savepoint();
            self.change(&mut tx, &mut model.clone());
            tx.rollback_to(&savepoint).expect("it is this transaction's");
            self.change(&mut tx, &mut model);
        }
        if self.random.once_in(8) {
            tx.rollback();
            return true;
        }
        self.disk.log().mark(Mark::Begun);
        let synced = self.random.once_in(10);
        let committed = if synced { tx.commit_with(Durability::Always) } else { tx.commit() };
        self.states.push(model);
        if self.is_killed(committed) {
            return false;
        }
        self.unsynced += 1;
        if synced || self.setup.is_durable_after(self.unsynced) {
            self.durable();
        }
        true
    }

    fn change(&mut self, tx: &mut TxMut, model: &mut Model) {
        for change in changes(self.random, model) {
            change.apply(tx).unwrap_or_else(|error| panic!("{change:?}: {error}"));
        }
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
        assert!(self.states[state].is_seen_by(&tx).expect("it is whole"), "a reader's pages were written over");
    }
}

/// The changes of one transaction, which are made to the model too.
pub(super) fn changes(random: &mut Random, model: &mut Model) -> Vec<Change> {
    let count = match random.below(10) {
        0 => 0,
        1 => 40 + random.below(40),
        _ => 1 + random.below(8),
    };
    let mut changes = Vec::new();
    for _ in 0..count {
        for change in some_changes(random, model) {
            change.apply_to_model(model);
            changes.push(change);
        }
    }
    changes
}

fn some_changes(random: &mut Random, model: &Model) -> Vec<Change> {
    let paths = model.bucket_paths();
    if paths.is_empty() || (paths.len() < MOST_BUCKETS && random.once_in(12)) {
        return new_bucket(random, model, &paths).into_iter().collect();
    }
    let path = paths[random.below(paths.len())].clone();
    let bucket = model.bucket(&path);
    match random.below(100) {
        0 => vec![Change::Drop(path)],
        1 => bucket.keys().filter(|_| random.once_in(2)).map(|key| Change::Delete(path.clone(), key.clone())).collect(),
        2..=5 => vec![Change::Sequence(path, random.next())],
        6..=40 => bucket.some_key(random).map(|key| Change::Delete(path, key)).into_iter().collect(),
        41..=55 => {
            let old = bucket.some_key(random);
            old.map(|key| Change::Put(path, key, value(random))).into_iter().collect()
        }
        _ => vec![Change::Put(path, format!("{:05}", random.below(KEYS)).into(), value(random))],
    }
}

/// Bucket names are no keys that values have.
fn new_bucket(random: &mut Random, model: &Model, paths: &[BucketPath]) -> Option<Change> {
    let mut path =
        if paths.is_empty() || random.once_in(2) { Vec::new() } else { paths[random.below(paths.len())].clone() };
    let name = format!("bucket {}", random.below(MOST_BUCKETS)).into_bytes();
    if path.len() >= DEEPEST || model.bucket(&path).has(&name) {
        return None;
    }
    path.push(name);
    Some(Change::Create(path))
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
