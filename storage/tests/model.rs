//! Whatever is done to a database, it holds and answers what a tree of ordered maps would: through nested buckets,
//! refusals, cursors both ways, ranges, commits, rollbacks and reopenings; and its check is clean after every commit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use boltkv_storage::{Db, Durability, Savepoint, Tx, TxMut};
use common::alone::{Outcome, alone, done};
use common::edit::{Edit, Parts};
use common::model::{BucketPath, MAX_KEY, Model, Refusal};
use common::setup::Setup;
use common::steps::{range, walk};
use common::trace::open_bucket;
use common::{assert_check_clean, assert_same_dump, committed, content, content_of_writer};
use proptest::collection::vec;
use proptest::prelude::*;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that read well when a case fails: one letter, repeated.
#[derive(Clone, Copy, Debug)]
struct Run(u8, usize);

impl Run {
    fn bytes(self) -> Vec<u8> {
        vec![self.0; self.1]
    }
}

/// Keys and bucket names: few and short, so that they meet; some long, some that are refused.
type Key = Run;

#[derive(Clone, Debug)]
enum Op {
    Create(Vec<Key>),
    CreateIfMissing(Vec<Key>),
    Drop(Vec<Key>),
    Put(Vec<Key>, Key, Run),
    /// A stretch of two-byte keys at once: what makes trees grow levels.
    PutMany(Vec<Key>, u8, u8, Run),
    Delete(Vec<Key>, Key),
    /// Every so-manyth entry of the bucket.
    DeleteMany(Vec<Key>, usize),
    /// Of any kind, with these parts.
    Edit(usize, EditParts),
    /// In a transaction of its own, which ends with an error where that is asked for.
    Update(usize, EditParts, bool),
    Batch(usize, EditParts, bool),
    OnCommit,
    Savepoint,
    RollbackTo(usize),
    /// All these as one among others of the same transaction, taken back together where that is asked for.
    Together(Vec<(usize, EditParts)>, bool),
    /// A bucket is moved and changed after a savepoint that is gone back to; in a new transaction where that is asked for.
    Undone([usize; 2], Vec<(usize, EditParts)>, bool),
    CommitUnsynced,
    Sync,
    Checkpoint,
    Shrink,
    Get(Vec<Key>, Key),
    /// From the key sought (or an end), one step for each: true is forward.
    Walk(Vec<Key>, Option<Key>, Vec<bool>),
    /// Taken from the front where true, from the back where false.
    Range(Vec<Key>, Bound<Key>, Bound<Key>, Vec<bool>),
    Prefix(Vec<Key>, Key),
    Commit,
    Rollback,
    Reopen,
    Close,
    /// A read transaction, held until the end or the next reopening.
    KeepSnapshot,
}

/// What an edit is made of.
#[derive(Clone, Debug)]
struct EditParts(Vec<Key>, Vec<Key>, Key, Key, Run, u64);

impl EditParts {
    fn edit(&self, kind: usize) -> Edit {
        Edit::of_kind(kind, self.parts())
    }

    fn parts(&self) -> Parts {
        let Self(path, to, key, other_key, value, number) = self;
        let (key, other_key) = (key.bytes(), other_key.bytes());
        Parts { path: bytes(path), to: bytes(to), key, other_key, value: value.bytes(), number: *number }
    }
}

fn kind() -> impl Strategy<Value = usize> {
    0..Edit::KINDS
}

fn parts() -> impl Strategy<Value = EditParts> {
    let number = prop_oneof![any::<u64>(), Just(u64::MAX)];
    (path(), path(), key(), key(), value(), number)
        .prop_map(|(path, to, key, other_key, value, number)| EditParts(path, to, key, other_key, value, number))
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![
        30 => (b'a'..=b'f', 1..4_usize).prop_map(|(letter, len)| Run(letter, len)),
        3 => (b'a'..=b'f', 100..3000_usize).prop_map(|(letter, len)| Run(letter, len)),
        1 => prop_oneof![Just(0), Just(MAX_KEY), Just(MAX_KEY + 1)].prop_map(|len| Run(b'k', len)),
    ]
}

fn value() -> impl Strategy<Value = Run> {
    let len = prop_oneof![
        2 => Just(0_usize),
        10 => 1..60_usize,
        4 => 60..1500_usize,
        1 => 1500..20_000_usize,
    ];
    (any::<u8>(), len).prop_map(|(byte, len)| Run(byte, len))
}

/// Mostly of few short names, so that a path often leads to a bucket.
fn path() -> impl Strategy<Value = Vec<Key>> {
    let name = prop_oneof![
        20 => (b'a'..=b'b').prop_map(|letter| Run(letter, 1)),
        1 => key(),
    ];
    prop_oneof![
        4 => vec(name.clone(), 1..=1),
        3 => vec(name.clone(), 2..=2),
        1 => vec(name, 3..=4),
    ]
}

fn bound() -> impl Strategy<Value = Bound<Key>> {
    prop_oneof![key().prop_map(Bound::Included), key().prop_map(Bound::Excluded), Just(Bound::Unbounded),]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => path().prop_map(Op::Create),
        6 => path().prop_map(Op::CreateIfMissing),
        1 => path().prop_map(Op::Drop),
        12 => (path(), key(), value()).prop_map(|(path, key, value)| Op::Put(path, key, value)),
        5 => (path(), any::<u8>(), 1..200_u8, value())
            .prop_map(|(path, first, count, value)| Op::PutMany(path, first, count, value)),
        6 => (path(), key()).prop_map(|(path, key)| Op::Delete(path, key)),
        3 => (path(), 1..4_usize).prop_map(|(path, every)| Op::DeleteMany(path, every)),
        15 => (kind(), parts()).prop_map(|(kind, parts)| Op::Edit(kind, parts)),
        1 => (kind(), parts(), any::<bool>()).prop_map(|(kind, parts, fails)| Op::Update(kind, parts, fails)),
        1 => (kind(), parts(), any::<bool>()).prop_map(|(kind, parts, fails)| Op::Batch(kind, parts, fails)),
        2 => Just(Op::OnCommit),
        4 => Just(Op::Savepoint),
        4 => any::<usize>().prop_map(Op::RollbackTo),
        6 => (vec((kind(), parts()), 1..6), any::<bool>()).prop_map(|(edits, fails)| Op::Together(edits, fails)),
        6 => (any::<[usize; 2]>(), vec((kind(), parts()), 1..8), any::<bool>())
            .prop_map(|(which, then, anew)| Op::Undone(which, then, anew)),
        1 => Just(Op::CommitUnsynced),
        1 => Just(Op::Sync),
        1 => Just(Op::Checkpoint),
        1 => Just(Op::Shrink),
        1 => Just(Op::Close),
        5 => (path(), key()).prop_map(|(path, key)| Op::Get(path, key)),
        5 => (path(), proptest::option::of(key()), vec(any::<bool>(), 0..30))
            .prop_map(|(path, from, steps)| Op::Walk(path, from, steps)),
        5 => (path(), bound(), bound(), vec(any::<bool>(), 0..30))
            .prop_map(|(path, from, to, ends)| Op::Range(path, from, to, ends)),
        2 => (path(), key()).prop_map(|(path, key)| Op::Prefix(path, key)),
        5 => Just(Op::Commit),
        1 => Just(Op::Rollback),
        2 => Just(Op::Reopen),
        1 => Just(Op::KeepSnapshot),
    ]
}

fn setup() -> impl Strategy<Value = Setup> {
    let fill = prop_oneof![Just(None), Just(Some(0.5)), Just(Some(0.1)), Just(Some(1.0)),];
    let page_size = prop_oneof![2 => Just(1024_u32), 1 => Just(4096_u32)];
    let sides = (page_size, any::<bool>(), fill, any::<bool>());
    sides.prop_map(|(page_size, freelist_stored, fill, journal)| Setup { page_size, freelist_stored, fill, journal })
}

/// A moderate number of cases, unless `PROPTEST_CASES` asks for another.
fn config() -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 96;
    }
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_file_behaves_as_a_tree_of_maps(setup in setup(), ops in vec(op(), 1..120)) {
        let folder = tempfile::tempdir().unwrap();
        Machine::run(setup, Some(folder.path().join("model.db")), &ops);
    }

    #[test]
    fn a_database_in_memory_behaves_as_a_tree_of_maps(setup in setup(), ops in vec(op(), 1..120)) {
        Machine::run(setup, None, &ops);
    }
}

/// A database and the models of what it should hold.
struct Machine {
    setup: Setup,
    /// `None` is in memory.
    file: Option<PathBuf>,
    db: Db,
    tx: Option<TxMut>,
    /// What is committed.
    committed: Model,
    /// What the open write transaction sees.
    working: Model,
    snapshots: Vec<(Tx, Model)>,
    /// Of the open transaction, each with what there was, and how many callbacks.
    savepoints: Vec<(Savepoint, Model, usize)>,
    /// Callbacks of the open transaction, those of all that were committed, and those that were called.
    callbacks: usize,
    to_be_called: usize,
    called: Arc<AtomicUsize>,
}

impl Machine {
    fn run(setup: Setup, file: Option<PathBuf>, ops: &[Op]) {
        let mut machine = Self {
            setup,
            db: Self::open(&setup, file.as_ref()),
            file,
            tx: None,
            committed: Model::default(),
            working: Model::default(),
            snapshots: Vec::new(),
            savepoints: Vec::new(),
            callbacks: 0,
            to_be_called: 0,
            called: Arc::default(),
        };
        for op in ops {
            machine.apply(op);
        }
        machine.commit(true);
        machine.reopen();
    }

    fn open(setup: &Setup, file: Option<&PathBuf>) -> Db {
        match file {
            Some(file) => setup.options().open(file).unwrap(),
            None => setup.options().open_in_memory().unwrap(),
        }
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Commit => self.commit(true),
            Op::CommitUnsynced => self.commit(false),
            Op::Rollback => self.rollback(),
            Op::Reopen => self.reopen(),
            Op::Close => {
                self.commit(true);
                self.db.clone().close().unwrap();
                self.reopen();
            }
            Op::Sync => {
                self.commit(false);
                self.db.sync().unwrap();
            }
            Op::Checkpoint => {
                self.commit(false);
                self.db.checkpoint().unwrap();
            }
            Op::Shrink => {
                self.commit(true);
                self.db.shrink_telling(|_| false).unwrap();
                self.verify("after a shrinking that was ended early");
                self.db.shrink().unwrap();
                self.verify("after shrinking");
            }
            Op::RollbackTo(which) => self.rollback_to(*which),
            Op::Update(kind, parts, fails) => {
                self.alone(&parts.edit(*kind), *fails, |db, edit| db.try_update(|tx| done(edit.apply(tx), *fails)));
            }
            Op::Batch(kind, parts, fails) => {
                let fails = *fails;
                self.alone(&parts.edit(*kind), fails, |db, edit| {
                    let edit = edit.clone();
                    db.try_batch(move |tx| done(edit.apply(tx), fails))
                });
            }
            Op::Undone(which, then, anew) => {
                if *anew {
                    self.commit(true);
                }
                self.work(&Op::Savepoint);
                let then = then.iter().map(|(kind, parts)| (*kind, parts.parts()));
                for edit in Edit::of_moved(&self.working, *which, then) {
                    self.edit(&edit);
                }
                self.rollback_to(self.savepoints.len() - 1);
            }
            Op::KeepSnapshot => {
                let snapshot = (self.db.begin().unwrap(), self.committed.clone());
                self.snapshots.push(snapshot);
            }
            in_transaction => self.work(in_transaction),
        }
    }

    /// Does what is done in a write transaction, which begins where there is none.
    fn work(&mut self, op: &Op) {
        if self.tx.is_none() {
            self.tx = Some(self.db.begin_mut().unwrap());
            self.working = self.committed.clone();
        }
        let tx = self.tx.as_mut().unwrap();
        match op {
            Op::Savepoint => self.savepoints.push((tx.savepoint(), self.working.clone(), self.callbacks)),
            Op::OnCommit => {
                let called = Arc::clone(&self.called);
                tx.on_commit(move || {
                    called.fetch_add(1, Ordering::Relaxed);
                });
                self.callbacks += 1;
            }
            Op::Edit(kind, parts) => {
                self.edit(&parts.edit(*kind));
            }
            Op::Together(edits, fails) => {
                self.work(&Op::Savepoint);
                for (kind, parts) in edits {
                    self.edit(&parts.edit(*kind));
                }
                if *fails {
                    self.rollback_to(self.savepoints.len() - 1);
                }
                self.savepoints.clear();
                self.tx.as_mut().unwrap().forget_savepoints();
            }
            change_or_read => {
                change(change_or_read, tx, &mut self.working, &self.setup);
                read(change_or_read, tx, &self.working);
            }
        }
    }

    /// In the transaction that there is.
    fn edit(&mut self, edit: &Edit) {
        let done = refused(edit.apply(self.tx.as_mut().unwrap()));
        assert_eq!(done, edit.apply_to_model(&mut self.working), "{edit:?}");
    }

    fn commit(&mut self, synced: bool) {
        let Some(tx) = self.tx.take() else { return };
        self.savepoints.clear();
        self.to_be_called += std::mem::take(&mut self.callbacks);
        assert_same_dump(&content_of_writer(&tx).dump(), &self.working.dump(), "the write transaction");
        let before = self.db.begin().unwrap().id();
        let committed = if synced { tx.commit() } else { tx.commit_with(Durability::Never) };
        assert!(committed.unwrap() > before);
        self.committed = std::mem::take(&mut self.working);
        self.verify("after a commit");
    }

    fn verify(&self, what: &str) {
        assert_same_dump(&committed(&self.db).dump(), &self.committed.dump(), what);
        assert_check_clean(&self.db, what);
        assert_eq!(self.called.load(Ordering::Relaxed), self.to_be_called, "callbacks of what was committed");
    }

    fn rollback_to(&mut self, which: usize) {
        let Some(tx) = self.tx.as_mut().filter(|_| !self.savepoints.is_empty()) else { return };
        self.savepoints.truncate(which % self.savepoints.len() + 1);
        let (savepoint, model, callbacks) = self.savepoints.last().unwrap();
        tx.rollback_to(savepoint).unwrap();
        (self.working, self.callbacks) = (model.clone(), *callbacks);
        assert_same_dump(&content_of_writer(tx).dump(), &self.working.dump(), "what a savepoint has brought back");
    }

    /// Makes an edit in a transaction of its own.
    fn alone(&mut self, edit: &Edit, fails: bool, act: impl FnOnce(&Db, &Edit) -> Outcome) {
        self.commit(true);
        alone(&self.db, &mut self.committed, edit, fails, act);
        self.verify("after an edit by itself");
    }

    fn rollback(&mut self) {
        let Some(tx) = self.tx.take() else { return };
        tx.rollback();
        self.savepoints.clear();
        self.callbacks = 0;
        assert_same_dump(&committed(&self.db).dump(), &self.committed.dump(), "a read after the rollback");
    }

    /// What is not committed goes; a database in memory stays open.
    fn reopen(&mut self) {
        for (tx, model) in self.snapshots.drain(..) {
            assert_same_dump(&content(&tx).dump(), &model.dump(), "a kept snapshot");
        }
        self.tx = None;
        self.savepoints.clear();
        self.callbacks = 0;
        if self.file.is_some() {
            // The file's lock must be free before it is opened again: something else takes its place meanwhile.
            self.db = Self::open(&self.setup, None);
            self.db = Self::open(&self.setup, self.file.as_ref());
        }
        assert_same_dump(&committed(&self.db).dump(), &self.committed.dump(), "a read after reopening");
        assert_check_clean(&self.db, "after reopening");
    }
}

fn bytes(path: &[Key]) -> BucketPath {
    path.iter().map(|name| name.bytes()).collect()
}

fn refused<T>(result: boltkv_storage::Result<T>) -> Result<T, Refusal> {
    result.map_err(Refusal::from)
}

/// Makes the change that an operation is, if it is one, here and in the model: the answers must agree.
fn change(op: &Op, tx: &mut TxMut, model: &mut Model, setup: &Setup) {
    match op {
        Op::Create(path) => {
            let path = bytes(path);
            assert_eq!(create(tx, &path, setup), model.create(&path));
        }
        Op::CreateIfMissing(path) => {
            // All the way down, as far as it goes.
            let path = bytes(path);
            for depth in 1..=path.len() {
                let here = &path[..depth];
                let answer = create_if_missing(tx, here, setup);
                assert_eq!(answer, model.create_if_missing(here));
            }
        }
        Op::Drop(path) => {
            let path = bytes(path);
            assert_eq!(drop_bucket(tx, &path, setup), model.drop_bucket(&path));
        }
        Op::Put(path, key, value) => put(tx, model, setup, path, &key.bytes(), &value.bytes()),
        Op::PutMany(path, first, count, value) => {
            for n in 0..*count {
                let key = [b'a' + n % 6, first.wrapping_add(n)];
                put(tx, model, setup, path, &key, &value.bytes());
            }
        }
        Op::Delete(path, key) => delete(tx, model, setup, path, &key.bytes()),
        Op::DeleteMany(path, every) => {
            let Ok(bucket) = model.bucket(&bytes(path)) else {
                return;
            };
            let keys = bucket.items.keys().step_by(*every).cloned();
            for key in keys.collect::<Vec<_>>() {
                delete(tx, model, setup, path, &key);
            }
        }
        _ => {}
    }
}

fn create(tx: &mut TxMut, path: &[Vec<u8>], setup: &Setup) -> Result<(), Refusal> {
    refused(match path.split_last().unwrap() {
        (name, []) => tx.create_bucket(name).map(drop),
        (name, above) => open_bucket(tx, above, setup).and_then(|mut parent| parent.create_bucket(name).map(drop)),
    })
}

fn create_if_missing(tx: &mut TxMut, path: &[Vec<u8>], setup: &Setup) -> Result<(), Refusal> {
    refused(match path.split_last().unwrap() {
        (name, []) => tx.create_bucket_if_not_exists(name).map(drop),
        (name, above) => {
            open_bucket(tx, above, setup).and_then(|mut parent| parent.create_bucket_if_not_exists(name).map(drop))
        }
    })
}

fn drop_bucket(tx: &mut TxMut, path: &[Vec<u8>], setup: &Setup) -> Result<(), Refusal> {
    refused(match path.split_last().unwrap() {
        (name, []) => tx.delete_bucket(name),
        (name, above) => open_bucket(tx, above, setup).and_then(|mut parent| parent.delete_bucket(name)),
    })
}

fn put(tx: &mut TxMut, model: &mut Model, setup: &Setup, path: &[Key], key: &[u8], value: &[u8]) {
    let path = bytes(path);
    let answer = open_bucket(tx, &path, setup).and_then(|mut bucket| {
        bucket.put(key, value)?;
        assert_eq!(bucket.get(key)?, Some(value), "what was just put");
        Ok(())
    });
    assert_eq!(refused(answer), model.put(&path, key, value));
}

fn delete(tx: &mut TxMut, model: &mut Model, setup: &Setup, path: &[Key], key: &[u8]) {
    let path = bytes(path);
    let answer = open_bucket(tx, &path, setup).and_then(|mut bucket| bucket.delete(key));
    assert_eq!(refused(answer), model.delete(&path, key));
}

/// Asks what an operation asks, if it asks something, here and of the model: the answers must agree.
fn read(op: &Op, tx: &TxMut, model: &Model) {
    let (Op::Get(path, _) | Op::Walk(path, ..) | Op::Range(path, ..) | Op::Prefix(path, _)) = op else {
        return;
    };
    let path = bytes(path);
    let (bucket, expected) = match (refused(tx.bucket_path(&path)), model.bucket(&path)) {
        (Ok(bucket), Ok(expected)) => (bucket, expected),
        (here, there) => return assert_eq!(here.err(), there.err()),
    };
    match op {
        Op::Get(_, key) => {
            assert_eq!(refused(bucket.get(key.bytes())), model.get(&path, &key.bytes()));
        }
        Op::Walk(_, from, steps) => walk(bucket, expected, from.map(Run::bytes), steps),
        Op::Range(_, from, to, ends) => {
            let (from, to) = (from.map(Run::bytes), to.map(Run::bytes));
            range(bucket, expected, (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice)), ends);
        }
        Op::Prefix(_, prefix) => {
            let prefix = prefix.bytes();
            let all = expected.entries().filter(|(key, _)| key.starts_with(&prefix));
            let here: Vec<_> = bucket.prefix(&prefix).map(Result::unwrap).collect();
            assert_eq!(here, all.collect::<Vec<_>>());
        }
        _ => {}
    }
}
