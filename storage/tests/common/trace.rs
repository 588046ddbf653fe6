//! Traces: the same changes, in the same transactions, for this engine, for Go's bbolt and for the model.

use super::model::{BucketPath, Model, hex};
use super::setup::Setup;
use boltkv_storage::{BucketMut, Result, TxMut};
use std::fmt;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Fine if the bucket is there.
    Create(BucketPath),
    /// With all in it.
    Drop(BucketPath),
    Put(BucketPath, Vec<u8>, Vec<u8>),
    Delete(BucketPath, Vec<u8>),
    Sequence(BucketPath, u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Begin,
    Commit,
    Rollback,
    /// Close the file and open it again.
    Reopen,
    Change(Change),
}

/// Its `Display` is the text that the Go program reads.
#[derive(Clone, Debug, Default)]
pub struct Trace(pub Vec<Step>);

impl Trace {
    /// Adds a transaction that commits.
    pub fn commit(&mut self, changes: impl IntoIterator<Item = Change>) {
        self.transaction(changes, Step::Commit);
    }

    /// Adds a transaction that is taken back.
    pub fn rollback(&mut self, changes: impl IntoIterator<Item = Change>) {
        self.transaction(changes, Step::Rollback);
    }

    pub fn reopen(&mut self) {
        self.0.push(Step::Reopen);
    }

    fn transaction(&mut self, changes: impl IntoIterator<Item = Change>, end: Step) {
        self.0.push(Step::Begin);
        self.0.extend(changes.into_iter().map(Step::Change));
        self.0.push(end);
    }

    /// Replays the trace on a file, which is made when it is missing.
    pub fn replay(&self, file: &Path, setup: &Setup) -> Result<()> {
        let mut db = setup.options().open(file)?;
        let mut tx = None;
        for step in &self.0 {
            match step {
                Step::Begin => tx = Some(db.begin_mut()?),
                Step::Commit => {
                    tx.take().expect("a transaction").commit()?;
                }
                Step::Rollback => tx.take().expect("a transaction").rollback(),
                Step::Reopen => {
                    drop(db);
                    db = setup.options().open(file)?;
                }
                Step::Change(change) => change.apply(tx.as_mut().expect("a transaction"), setup)?,
            }
        }
        Ok(())
    }

    /// Replays the trace on a model.
    pub fn replay_on_model(&self, model: &mut Model) {
        let mut working = model.clone();
        for step in &self.0 {
            match step {
                Step::Commit => model.clone_from(&working),
                Step::Begin | Step::Rollback => working.clone_from(model),
                Step::Reopen => {}
                Step::Change(change) => change.apply_to_model(&mut working),
            }
        }
    }
}

impl Change {
    pub fn apply(&self, tx: &mut TxMut, setup: &Setup) -> Result<()> {
        match self {
            Self::Create(path) => match path.as_slice() {
                [name] => tx.create_bucket_if_not_exists(name).map(drop),
                [above @ .., name] => open_bucket(tx, above, setup)?.create_bucket_if_not_exists(name).map(drop),
                [] => panic!("a bucket has a name"),
            },
            Self::Drop(path) => match path.as_slice() {
                [name] => tx.delete_bucket(name),
                [above @ .., name] => open_bucket(tx, above, setup)?.delete_bucket(name),
                [] => panic!("a bucket has a name"),
            },
            Self::Put(path, key, value) => open_bucket(tx, path, setup)?.put(key, value),
            Self::Delete(path, key) => open_bucket(tx, path, setup)?.delete(key).map(drop),
            Self::Sequence(path, number) => open_bucket(tx, path, setup)?.set_sequence(*number),
        }
    }

    pub fn apply_to_model(&self, model: &mut Model) {
        match self {
            Self::Create(path) => model.create_if_missing(path),
            Self::Drop(path) => model.drop_bucket(path),
            Self::Put(path, key, value) => model.put(path, key, value),
            Self::Delete(path, key) => model.delete(path, key).map(drop),
            Self::Sequence(path, number) => model.set_sequence(path, *number),
        }
        .expect("a trace holds only what can be done");
    }
}

/// Opens a bucket, and sets the fill of every bucket on the way: it lasts only as long as the transaction.
pub fn open_bucket<'tx>(tx: &'tx mut TxMut, path: &[Vec<u8>], setup: &Setup) -> Result<BucketMut<'tx>> {
    for depth in 1..path.len() {
        tx.bucket_mut_path(&path[..depth])?.set_fill(setup.fill());
    }
    let mut bucket = tx.bucket_mut_path(path)?;
    bucket.set_fill(setup.fill());
    Ok(bucket)
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin => f.write_str("begin"),
            Self::Commit => f.write_str("commit"),
            Self::Rollback => f.write_str("rollback"),
            Self::Reopen => f.write_str("reopen"),
            Self::Change(change) => change.fmt(f),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |path: &BucketPath| {
            let names: Vec<String> = path.iter().map(|name| hex(name)).collect();
            names.join("/")
        };
        match self {
            Self::Create(path) => write!(f, "create {}", joined(path)),
            Self::Drop(path) => write!(f, "drop {}", joined(path)),
            Self::Put(path, key, value) if value.is_empty() => {
                write!(f, "put {} {} -", joined(path), hex(key))
            }
            Self::Put(path, key, value) => {
                write!(f, "put {} {} {}", joined(path), hex(key), hex(value))
            }
            Self::Delete(path, key) => write!(f, "delete {} {}", joined(path), hex(key)),
            Self::Sequence(path, number) => write!(f, "sequence {} {number}", joined(path)),
        }
    }
}
