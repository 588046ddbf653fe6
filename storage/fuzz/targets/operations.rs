//! Any sequence of operations, crashes and reopenings on a database in memory: it holds what a tree of ordered maps
//! would, its check is clean, readers see their own state for as long as they live, and a crash leaves the last durable
//! one.
#![no_main]

#[allow(dead_code, reason = "shared with the integration tests, which use all of it")]
#[path = "../../tests/common/model.rs"]
mod model;

use std::collections::VecDeque;

use arbitrary::Arbitrary;
use boltkv_storage::{Db, Durability, Fill, FreelistStored, Options, Result, Savepoint, Tx, TxMut};
use libfuzzer_sys::fuzz_target;
use model::{Model, Refusal};

/// Operations that one case does at the most; more only take longer.
const MOST_OPERATIONS: usize = 200;
/// Readers that are held at a time.
const MOST_READERS: usize = 6;

#[derive(Debug, Arbitrary)]
struct Case {
    freelist: Freelist,
    operations: Vec<Operation>,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Freelist {
    Always,
    Never,
    OnCleanClose,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Operation {
    Create(Place),
    CreateIfMissing(Place),
    Drop(Place),
    Put(Place, u8, u16),
    /// A stretch of two-byte keys: what makes trees grow levels.
    PutMany(Place, u8, u8, u8),
    Delete(Place, u8),
    DeleteMany(Place, u8),
    DeleteByCursor(Place, u8),
    SetSequence(Place, u64),
    NextSequence(Place),
    SetFill(Place, u8),
    Savepoint,
    RollbackTo(u8),
    Commit,
    CommitUnsynced,
    Rollback,
    Sync,
    Shrink,
    Close,
    Crash,
    KeepReader,
    DropReader(u8),
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
    savepoints: Vec<(Savepoint, Model)>,
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
        readers: VecDeque::new(),
    };
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
                let savepoint = self.tx().savepoint();
                self.savepoints.push((savepoint, self.changed.clone()));
            }
            Operation::RollbackTo(which) => self.rollback_to(which),
            Operation::Sync => {
                self.rollback();
                self.db.sync().expect("memory can be synced");
                self.durable = self.committed.clone();
            }
            Operation::Shrink => {
                self.rollback();
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
            change => self.change(change),
        }
    }

    fn tx(&mut self) -> &mut TxMut {
        self.tx.get_or_insert_with(|| self.db.begin_mut().expect("nobody else writes"))
    }

    /// Commits the open transaction, and everything before it where it is synced.
    fn end(&mut self, synced: bool) {
        let Some(tx) = self.tx.take() else { return };
        self.savepoints.clear();
        let durability = if synced { Durability::Always } else { Durability::Never };
        tx.commit_with(durability).expect("there is room");
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
            self.changed = self.committed.clone();
            self.verify();
        }
    }

    fn rollback_to(&mut self, which: u8) {
        if self.savepoints.is_empty() {
            return;
        }
        let at = usize::from(which) % self.savepoints.len();
        self.savepoints.truncate(at + 1);
        let tx = self.tx.as_mut().expect("savepoints are cleared with their transaction");
        let (savepoint, model) = &self.savepoints[at];
        tx.rollback_to(savepoint).expect("it is one of this transaction");
        self.changed = model.clone();
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
        let problems = self.db.check().expect("it can be checked");
        assert!(problems.is_empty(), "{}", problems[0]);
        verify_reader(&self.db.begin().expect("it begins"), &self.committed);
        for (reader, model) in &self.readers {
            verify_reader(reader, model);
        }
    }

    fn change(&mut self, change: Operation) {
        let mut model = std::mem::take(&mut self.changed);
        let expected = change_model(&mut model, change);
        let done = change_database(self.tx(), change).map_err(Refusal::from);
        assert_eq!(done, expected, "{change:?}");
        self.changed = model;
    }
}

fn verify_reader(reader: &Tx, expected: &Model) {
    let seen = Model::load(reader.buckets()).expect("a sound file is read");
    assert!(seen == *expected, "a snapshot is not what it was");
}

fn two_bytes(number: u16) -> [u8; 2] {
    number.to_be_bytes()
}

fn many(from: u8, count: u8) -> impl Iterator<Item = [u8; 2]> {
    (0..u16::from(count)).map(move |number| two_bytes((u16::from(from) << 6) + number))
}

fn change_model(model: &mut Model, change: Operation) -> Result<u64, Refusal> {
    match change {
        Operation::Create(place) => model.create(&place.path()).map(|()| 0),
        Operation::CreateIfMissing(place) => model.create_if_missing(&place.path()).map(|()| 0),
        Operation::Drop(place) => model.drop_bucket(&place.path()).map(|()| 0),
        Operation::Put(place, key, word) => model.put(&place.path(), &[key], &value(word)).map(|()| 0),
        Operation::PutMany(place, from, count, byte) => {
            model.bucket(&place.path())?;
            for key in many(from, count) {
                model.put(&place.path(), &key, &[byte; 20])?;
            }
            Ok(0)
        }
        Operation::Delete(place, key) => model.delete(&place.path(), &[key]).map(u64::from),
        Operation::DeleteMany(place, step) => {
            let keys = values_of(model.bucket(&place.path())?, step);
            for key in &keys {
                model.delete(&place.path(), key)?;
            }
            Ok(0)
        }
        Operation::DeleteByCursor(place, key) => {
            let bucket = model.bucket(&place.path())?;
            let found = bucket.items.range(vec![key]..).next().map(|(key, _)| key.clone());
            match found {
                Some(key) => model.delete(&place.path(), &key).map(u64::from),
                None => Ok(0),
            }
        }
        Operation::SetSequence(place, number) => model.set_sequence(&place.path(), number).map(|()| 0),
        Operation::NextSequence(place) => model.next_sequence(&place.path()),
        Operation::SetFill(place, _) => model.bucket(&place.path()).map(|_| 0),
        _ => Ok(0),
    }
}

/// Every so-manyth value's key, of long buckets and short ones.
fn values_of(bucket: &Model, step: u8) -> Vec<Vec<u8>> {
    let values = bucket.entries().filter(|(_, value)| value.is_some());
    values.step_by(1 + usize::from(step % 8)).map(|(key, _)| key.to_vec()).collect()
}

fn change_database(tx: &mut TxMut, change: Operation) -> Result<u64> {
    match change {
        Operation::Create(place) => {
            let path = place.path();
            match path.split_last() {
                Some((name, [])) => tx.create_bucket(name).map(|_| 0),
                Some((name, above)) => tx.bucket_mut_path(above)?.create_bucket(name).map(|_| 0),
                None => Ok(0),
            }
        }
        Operation::CreateIfMissing(place) => {
            let path = place.path();
            match path.split_last() {
                Some((name, [])) => tx.create_bucket_if_not_exists(name).map(|_| 0),
                Some((name, above)) => tx.bucket_mut_path(above)?.create_bucket_if_not_exists(name).map(|_| 0),
                None => Ok(0),
            }
        }
        Operation::Drop(place) => {
            let path = place.path();
            match path.split_last() {
                Some((name, [])) => tx.delete_bucket(name).map(|()| 0),
                Some((name, above)) => tx.bucket_mut_path(above)?.delete_bucket(name).map(|()| 0),
                None => Ok(0),
            }
        }
        Operation::Put(place, key, word) => tx.bucket_mut_path(place.path())?.put([key], value(word)).map(|()| 0),
        Operation::PutMany(place, from, count, byte) => {
            let mut bucket = tx.bucket_mut_path(place.path())?;
            many(from, count).try_for_each(|key| bucket.put(key, [byte; 20])).map(|()| 0)
        }
        Operation::Delete(place, key) => tx.bucket_mut_path(place.path())?.delete([key]).map(u64::from),
        Operation::DeleteMany(place, step) => {
            let mut bucket = tx.bucket_mut_path(place.path())?;
            let all: Result<Vec<(Vec<u8>, bool)>> =
                bucket.iter().map(|entry| entry.map(|(key, value)| (key.to_vec(), value.is_some()))).collect();
            let values = all?.into_iter().filter(|(_, value)| *value).step_by(1 + usize::from(step % 8));
            for (key, _) in values {
                bucket.delete(key)?;
            }
            Ok(0)
        }
        Operation::DeleteByCursor(place, key) => {
            let mut bucket = tx.bucket_mut_path(place.path())?;
            let mut cursor = bucket.cursor_mut();
            let found = cursor.seek([key])?.is_some();
            cursor.delete()?;
            Ok(u64::from(found))
        }
        Operation::SetSequence(place, number) => tx.bucket_mut_path(place.path())?.set_sequence(number).map(|()| 0),
        Operation::NextSequence(place) => tx.bucket_mut_path(place.path())?.next_sequence(),
        Operation::SetFill(place, percent) => {
            let part = f64::from(percent) / 100.0;
            tx.bucket_mut_path(place.path())?.set_fill(Fill::Percent(part));
            Ok(0)
        }
        _ => Ok(0),
    }
}
