//! Any sequence of operations, crashes and reopenings on a database in memory: it holds what a tree of ordered maps
//! would, its check is clean, readers see their own state for as long as they live, and a crash leaves the last durable
//! one.
#![no_main]

#[path = "../../storage/tests/common/alone.rs"]
mod alone;
#[path = "../../storage/tests/common/cursor_steps.rs"]
mod cursor_steps;
#[path = "../../storage/tests/common/edit.rs"]
mod edit;
#[allow(dead_code, reason = "shared with the integration tests, which use all of it")]
#[path = "../../storage/tests/common/model.rs"]
mod model;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alone::{Outcome, alone, done};
use arbitrary::Arbitrary;
use boltkv_storage::{Db, Durability, FreelistStored, Options, Savepoint, Tx, TxMut};
use edit::{Edit, Parts};
use libfuzzer_sys::fuzz_target;
use model::{Model, Refusal};

/// Operations that one case does at the most; more only take longer.
const MOST_OPERATIONS: usize = 200;
/// With so many savepoints, all are let go before there is another.
const MOST_SAVEPOINTS: usize = 8;
/// Buckets that have grown before the first operation, and hundreds of entries that each has at the most.
const MOST_GROWN: usize = 3;
const MOST_HUNDREDS: u8 = 3;
/// Readers that are held at a time.
const MOST_READERS: usize = 6;

#[derive(Debug, Arbitrary)]
struct Case {
    freelist: Freelist,
    /// What is committed before the first operation.
    start: [Grown; MOST_GROWN],
    operations: Vec<Operation>,
}

/// A bucket whose tree has levels, from a few bytes: by single operations a case would seldom come so far.
#[derive(Debug, Clone, Copy, Arbitrary)]
struct Grown {
    place: Place,
    /// In hundreds; 0: there is no such bucket.
    entries: u8,
    value_bytes: u8,
}

impl Grown {
    fn edits(self) -> impl Iterator<Item = Edit> {
        let path = self.place.path();
        let hundreds = self.entries % (MOST_HUNDREDS + 1);
        let depth = if hundreds == 0 { 0 } else { path.len() };
        let above: Vec<_> = (1..=depth).map(|depth| Edit::CreateIfMissing(path[..depth].to_vec())).collect();
        // Between them is room for the letters of other keys.
        let letters = (0..hundreds).map(|number| vec![b'0' + 8 * number]);
        let value = vec![self.entries; self.value_bytes.into()];
        above.into_iter().chain(letters.map(move |letter| Edit::PutMany(path.clone(), letter, 100, value.clone())))
    }
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Freelist {
    Always,
    Never,
    OnCleanClose,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Operation {
    Edit(Change),
    /// In a transaction of its own, which ends with an error where that is asked for.
    Update(Change, bool),
    Batch(Change, bool),
    OnCommit,
    Savepoint,
    RollbackTo(u8),
    /// A bucket is moved and changed after a savepoint that is gone back to.
    Undone(u8, u8, [Change; 4]),
    Commit,
    CommitUnsynced,
    Rollback,
    Sync,
    Checkpoint,
    Shrink,
    Close,
    Crash,
    KeepReader,
    DropReader(u8),
}

#[derive(Debug, Clone, Copy, Arbitrary)]
struct Change {
    kind: u8,
    place: Place,
    to: Place,
    key: u8,
    other_key: u8,
    word: u16,
    number: u64,
}

impl Change {
    fn edit(self) -> Edit {
        Edit::of_kind(self.kind.into(), self.parts())
    }

    fn parts(self) -> Parts {
        Parts {
            path: self.place.path(),
            to: self.to.path(),
            key: vec![self.key],
            other_key: vec![self.other_key],
            value: value(self.word),
            number: self.number,
        }
    }
}

/// One of few buckets, so that they meet: up to three names deep.
#[derive(Debug, Clone, Copy, Arbitrary)]
struct Place(u8);

impl Place {
    fn path(self) -> Vec<Vec<u8>> {
        let names = [self.0 & 3, (self.0 >> 2) & 3, (self.0 >> 4) & 3];
        let depth = 1 + usize::from(self.0 >> 6) % 3;
        names[..depth].iter().map(|&name| vec![b'a' + name]).collect()
    }
}

/// A value of up to some pages; most are short, some fill a page by themselves.
fn value(word: u16) -> Vec<u8> {
    let len = match word % 16 {
        0 => word / 8,
        1..=5 => word % 900,
        _ => word % 120,
    };
    vec![word.to_le_bytes()[0]; len.into()]
}

struct Run {
    options: Options,
    db: Db,
    /// What a crash leaves, what readers see, and what the open write transaction has made of it.
    durable: Model,
    committed: Model,
    changed: Model,
    tx: Option<TxMut>,
    /// Each with what there was, and how many callbacks.
    savepoints: Vec<(Savepoint, Model, u64)>,
    /// Callbacks of the open transaction, those of all that were committed, and those that were called.
    callbacks: u64,
    to_be_called: u64,
    called: Arc<AtomicU64>,
    readers: VecDeque<(Tx, Model)>,
}

fuzz_target!(|case: Case| {
    let freelist = match case.freelist {
        Freelist::Always => FreelistStored::Always,
        Freelist::Never => FreelistStored::Never,
        Freelist::OnCleanClose => FreelistStored::OnCleanClose,
    };
    let options = Options::new().page_size(1024).freelist(freelist);
    let db = options.open_in_memory().expect("a new database opens");
    let mut run = Run {
        options,
        db,
        durable: Model::default(),
        committed: Model::default(),
        changed: Model::default(),
        tx: None,
        savepoints: Vec::new(),
        callbacks: 0,
        to_be_called: 0,
        called: Arc::default(),
        readers: VecDeque::new(),
    };
    for edit in case.start.into_iter().flat_map(Grown::edits) {
        run.change(&edit);
    }
    run.end(true);
    for &operation in case.operations.iter().take(MOST_OPERATIONS) {
        run.perform(operation);
    }
    run.end(true);
    run.reopen(true);
    run.reopen(false);
});

impl Run {
    fn perform(&mut self, operation: Operation) {
        match operation {
            Operation::Commit => self.end(true),
            Operation::CommitUnsynced => self.end(false),
            Operation::Rollback => self.rollback(),
            Operation::Savepoint => {
                if self.savepoints.len() >= MOST_SAVEPOINTS {
                    self.savepoints.clear();
                    self.tx().forget_savepoints();
                }
                let savepoint = self.tx().savepoint();
                self.savepoints.push((savepoint, self.changed.clone(), self.callbacks));
            }
            Operation::RollbackTo(which) => self.rollback_to(which),
            Operation::Undone(which, to, changes) => {
                self.perform(Operation::Savepoint);
                let then = changes.into_iter().map(|change| (change.kind.into(), change.parts()));
                for edit in Edit::of_moved(&self.changed, [which.into(), to.into()], then) {
                    self.change(&edit);
                }
                self.rollback_to_last();
            }
            Operation::Sync => {
                self.rollback();
                self.db.sync().expect("memory can be synced");
                self.durable = self.committed.clone();
            }
            Operation::Checkpoint => {
                self.rollback();
                self.db.checkpoint().expect("memory can be synced");
                self.durable = self.committed.clone();
            }
            Operation::Shrink => {
                self.rollback();
                // Begun, and ended after the first step; then to its end.
                self.db.shrink_telling(|_| false).expect("a sound file can be shrunk");
                self.verify();
                self.db.shrink().expect("a sound file can be shrunk");
                // Where there was nothing to move, it has synced nothing.
                self.db.sync().expect("memory can be synced");
                self.durable = self.committed.clone();
                self.verify();
            }
            Operation::Close => self.reopen(true),
            Operation::Crash => self.reopen(false),
            Operation::KeepReader => {
                self.readers.push_back((self.db.begin().expect("it begins"), self.committed.clone()));
                if self.readers.len() > MOST_READERS {
                    self.drop_reader(0);
                }
            }
            Operation::DropReader(which) => self.drop_reader(which.into()),
            Operation::OnCommit => {
                let called = Arc::clone(&self.called);
                self.tx().on_commit(move || {
                    called.fetch_add(1, Ordering::Relaxed);
                });
                self.callbacks += 1;
            }
            Operation::Edit(change) => self.change(&change.edit()),
            Operation::Update(change, fails) => {
                let edit = change.edit();
                self.alone(&edit, fails, |db, edit| db.try_update(|tx| done(edit.apply(tx), fails)));
            }
            Operation::Batch(change, fails) => {
                let edit = change.edit();
                self.alone(&edit, fails, |db, edit| {
                    let edit = edit.clone();
                    db.try_batch(move |tx| done(edit.apply(tx), fails))
                });
            }
        }
    }

    fn tx(&mut self) -> &mut TxMut {
        self.tx.get_or_insert_with(|| self.db.begin_mut().expect("nobody else writes"))
    }

    /// Commits the open transaction, and everything before it where it is synced.
    fn end(&mut self, synced: bool) {
        let Some(tx) = self.tx.take() else { return };
        self.savepoints.clear();
        self.to_be_called += std::mem::take(&mut self.callbacks);
        let committed = if synced { tx.commit() } else { tx.commit_with(Durability::Never) };
        committed.expect("there is room");
        self.committed = self.changed.clone();
        if synced {
            self.durable = self.committed.clone();
        }
        self.verify();
    }

    fn rollback(&mut self) {
        if let Some(tx) = self.tx.take() {
            tx.rollback();
            self.savepoints.clear();
            self.callbacks = 0;
            self.changed = self.committed.clone();
            self.verify();
        }
    }

    fn rollback_to(&mut self, which: u8) {
        if self.savepoints.is_empty() {
            return;
        }
        self.savepoints.truncate(usize::from(which) % self.savepoints.len() + 1);
        self.rollback_to_last();
    }

    fn rollback_to_last(&mut self) {
        let tx = self.tx.as_mut().expect("savepoints are cleared with their transaction");
        let (savepoint, model, callbacks) = self.savepoints.last().expect("there is one");
        tx.rollback_to(savepoint).expect("it is one of this transaction");
        (self.changed, self.callbacks) = (model.clone(), *callbacks);
        let seen = Model::load(tx.buckets()).expect("a sound file is read");
        assert!(seen == self.changed, "the savepoint's state is not what it was");
    }

    /// Opens what a clean close, or a crash, leaves.
    fn reopen(&mut self, cleanly: bool) {
        if cleanly {
            self.rollback();
            self.db.clone().close().expect("it can be synced");
            self.durable = self.committed.clone();
        }
        let transaction = self.tx.take();
        if transaction.is_some() {
            self.savepoints.clear();
            self.callbacks = 0;
        }
        drop(transaction);
        let bytes = self.db.bytes().expect("memory can be read");
        self.readers.clear();
        self.db = self.options.open_bytes(&bytes).expect("what is left opens");
        self.committed = self.durable.clone();
        self.changed = self.durable.clone();
        self.verify();
    }

    fn drop_reader(&mut self, which: usize) {
        if !self.readers.is_empty()
            && let Some((reader, model)) = self.readers.remove(which % self.readers.len())
        {
            verify_reader(&reader, &model);
        }
    }

    fn verify(&self) {
        assert_eq!(self.called.load(Ordering::Relaxed), self.to_be_called, "callbacks of what was committed");
        let problems = self.db.check().expect("it can be checked");
        assert!(problems.is_empty(), "{}", problems[0]);
        verify_reader(&self.db.begin().expect("it begins"), &self.committed);
        for (reader, model) in &self.readers {
            verify_reader(reader, model);
        }
    }

    fn change(&mut self, edit: &Edit) {
        let expected = edit.apply_to_model(&mut self.changed);
        let done = edit.apply(self.tx()).map_err(Refusal::from);
        assert_eq!(done, expected, "{edit:?}");
    }

    /// Makes an edit in a transaction of its own.
    fn alone(&mut self, edit: &Edit, fails: bool, act: impl FnOnce(&Db, &Edit) -> Outcome) {
        self.end(true);
        if alone(&self.db, &mut self.committed, edit, fails, act) {
            self.durable = self.committed.clone();
        }
        self.changed = self.committed.clone();
        self.verify();
    }
}

fn verify_reader(reader: &Tx, expected: &Model) {
    let seen = Model::load(reader.buckets()).expect("a sound file is read");
    assert!(seen == *expected, "a snapshot is not what it was");
}
