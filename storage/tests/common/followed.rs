//! Changes that are followed by their journal, and a model that they are made to.

use std::ops::Bound;
use std::path::{Path, PathBuf};

use boltkv_storage::{
    CommittedTransaction, Db, Durability, Error, JournalChange, JournalEffect, JournalKeep, JournalOptions, Options,
    TxId,
};

use super::edit::{Edit, Parts};
use super::model::Model;
use super::random::Random;

/// A journal of small segments, kept for so long.
pub fn options(keep: JournalKeep) -> Options {
    // Without memory: writing leaves anew takes numbers of its own, between those that are counted.
    let journal = JournalOptions::new().checkpoint_size(JournalOptions::LEAST_CHECKPOINT_SIZE).memory(0).keep(keep);
    Options::new().journal(journal)
}

/// For ever.
pub const ALL: JournalKeep = JournalKeep::Bytes(1 << 30);

/// Where the journal of a file lies.
pub fn journal_of(file: &Path) -> PathBuf {
    file.with_extension("db-journal")
}

/// A transaction of one or a few edits of any kind.
pub fn change(db: &Db, random: &mut Random) -> TxId {
    let mut tx = db.begin_mut().unwrap();
    for _ in 0..=random.below(3) {
        let names = |random: &mut Random| -> Vec<Vec<u8>> {
            (0..=random.below(2)).map(|_| vec![b"abc"[random.below(3)]]).collect()
        };
        let key = |random: &mut Random| vec![b'a' + u8::try_from(random.below(6)).unwrap(); 1 + random.below(3)];
        let parts = Parts {
            path: names(random),
            to: names(random),
            key: key(random),
            other_key: key(random),
            value: vec![b'v'; random.below(1500)],
            number: random.below(1000) as u64,
        };
        // What is refused changes nothing.
        let _ = Edit::of_kind(random.below(Edit::KINDS), parts).apply(&mut tx);
    }
    let durability = if random.once_in(2) { Durability::Always } else { Durability::Never };
    tx.commit_with(durability).unwrap()
}

/// Puts a key; the transaction's number.
pub fn put(db: &Db, key: &str) -> TxId {
    db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(key, key)).unwrap();
    db.begin().unwrap().id()
}

/// Does to a model what a transaction has done.
pub fn follow(model: &mut Model, transaction: CommittedTransaction<'_>) {
    try_follow(model, transaction).unwrap();
}

/// The same, where a record may not be kept any more while it is read.
pub fn try_follow(model: &mut Model, transaction: CommittedTransaction<'_>) -> boltkv_storage::Result<()> {
    let owned = |path: &[&[u8]]| -> Vec<Vec<u8>> { path.iter().map(|name| name.to_vec()).collect() };
    let within = |path: &[&[u8]], name: &[u8]| -> Vec<Vec<u8>> {
        let mut path = owned(path);
        path.push(name.to_vec());
        path
    };
    let each = |&JournalEffect { path, change }: &JournalEffect<'_>| {
        match change {
            JournalChange::Put { key, value } => model.put(&owned(path), key, value).unwrap(),
            JournalChange::Deleted { key } => assert!(model.delete(&owned(path), key).unwrap()),
            JournalChange::RangeDeleted { first, last } => {
                let bounds = (Bound::Included(first), Bound::Included(last));
                model.delete_range(&owned(path), bounds, usize::MAX).unwrap();
            }
            JournalChange::BucketCreated { name } => model.create(&within(path, name)).unwrap(),
            JournalChange::BucketDeleted { name } => model.drop_bucket(&within(path, name)).unwrap(),
            JournalChange::BucketMoved { name, to } => {
                let (its_name, to) = to.split_last().unwrap();
                model.move_bucket(&within(path, name), &owned(to), its_name).unwrap();
            }
            JournalChange::Sequence { sequence } => model.set_sequence(&owned(path), sequence).unwrap(),
            other => panic!("{other:?}"),
        }
        Ok::<_, Error>(())
    };
    transaction.changes(each)
}
