//! Cursors and iterators that stay open in the middle of buckets while these are deleted, made again under the same names and
//! written anew: each tells its snapshot, to both sides, whatever memory and file do with it meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use boltkv_storage::{Cursor, Db, Durability, JournalOptions, Options, Range, Tx};

use super::common::edit::Edit;
use super::common::model::{Item, Model};
use super::common::random::Random;
use super::common::{assert_check_clean, committed, folder_in_memory};
use super::{Done, number};

/// The buckets that are deleted and made again, the outermost of which has the others in it.
const NESTED: [&[&str]; 3] = [&["outer"], &["outer", "inner"], &["outer", "inner", "innermost"]];
const NESTED_KEYS: usize = 400;

fn nested(which: usize) -> Vec<Vec<u8>> {
    NESTED[which].iter().map(|name| name.as_bytes().to_vec()).collect()
}

/// A cursor and an iterator that stand in the middle of a bucket, and what they have to tell.
struct Held<'tx> {
    entries: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    cursor: Cursor<'tx>,
    /// Where the cursor stands.
    at: usize,
    range: Range<'tx>,
    /// What the iterator has not told yet.
    left: std::ops::Range<usize>,
    is_forward: bool,
    reversals: usize,
}

impl<'tx> Held<'tx> {
    fn new(tx: &'tx Tx, model: &Model, which: usize, random: &mut Random) -> Self {
        let path = nested(which);
        let entries = model.bucket(&path).unwrap().items.iter().map(|(key, item)| match item {
            Item::Value(value) => (key.clone(), Some(value.clone())),
            Item::Bucket(_) => (key.clone(), None),
        });
        let entries: Vec<_> = entries.collect();
        let bucket = path[1..].iter().fold(tx.bucket(&path[0]).unwrap(), |bucket, name| bucket.bucket(name).unwrap());
        let (mut cursor, at) = (bucket.cursor(), entries.len() / 4 + random.below(entries.len() / 2));
        let found = cursor.seek(&entries[at].0).unwrap();
        assert!(found.is_some_and(|(key, value)| (key, value) == entry(&entries[at])));
        let mut held =
            Self { left: 0..entries.len(), entries, cursor, at, range: bucket.iter(), is_forward: true, reversals: 0 };
        (0..random.below(50)).for_each(|_| held.iterate(random.once_in(2)));
        held
    }

    /// A step of the cursor, now and then in the other direction than before; at an end it stays where it is.
    fn step(&mut self, random: &mut Random) {
        if random.once_in(7) {
            self.is_forward = !self.is_forward;
            self.reversals += 1;
        }
        let told = if self.is_forward { self.cursor.next() } else { self.cursor.prev() }.unwrap();
        let next = if self.is_forward { self.at.checked_add(1) } else { self.at.checked_sub(1) };
        let next = next.filter(|&next| next < self.entries.len());
        assert_eq!(told, next.map(|next| entry(&self.entries[next])), "the cursor tells something else");
        self.at = next.unwrap_or(self.at);
    }

    /// A step of the iterator, from either end.
    fn iterate(&mut self, from_begin: bool) {
        let told = if from_begin { self.range.next() } else { self.range.next_back() };
        let next = if from_begin { self.left.next() } else { self.left.next_back() };
        let told = told.transpose().unwrap();
        assert_eq!(told, next.map(|next| entry(&self.entries[next])), "the iterator tells something else");
    }
}

fn entry((key, value): &(Vec<u8>, Option<Vec<u8>>)) -> (&[u8], Option<&[u8]>) {
    (key, value.as_deref())
}

/// Keeps cursors and iterators open in each of the nested buckets of a state while the writer goes on, and takes a few steps
/// after each of some transactions; then goes through all that is left.
fn hold_cursors((tx, model): &(Tx, Model), transactions: &AtomicU64, is_done: &AtomicBool, random: &mut Random) {
    let mut held: Vec<_> = (0..NESTED.len()).map(|which| Held::new(tx, model, which, random)).collect();
    for _ in 0..2 + random.below(12) {
        let seen = transactions.load(Ordering::Relaxed);
        while transactions.load(Ordering::Relaxed) == seen && !is_done.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_micros(200));
        }
        for held in &mut held {
            (0..random.below(40)).for_each(|_| held.step(random));
            (0..random.below(6)).for_each(|_| held.iterate(random.once_in(2)));
        }
    }
    for mut held in held {
        // Wherever it stands, it can turn at both ends, too.
        (0..2 * held.entries.len()).for_each(|_| held.step(random));
        (0..=held.left.len()).for_each(|_| held.iterate(random.once_in(2)));
        assert!(held.reversals > 0 && held.left.is_empty());
    }
    assert!(model.is_seen_in(tx.buckets()).unwrap(), "transaction {} sees another state", tx.id());
}

/// Makes the nested buckets from one on, with some of all keys and values that none had before.
fn make(from: usize, random: &mut Random) -> Vec<Edit> {
    let mut edits = Vec::new();
    for which in from..NESTED.len() {
        edits.push(Edit::Create(nested(which)));
        for number in 0..NESTED_KEYS {
            if !random.once_in(5) {
                edits.push(Edit::Put(nested(which), nested_key(number), random.bytes(30)));
            }
        }
    }
    edits
}

/// Deletes a bucket, with those in it, and makes it again under the same name; or puts and deletes around.
fn rewrite(random: &mut Random) -> Vec<Edit> {
    let mut edits = Vec::new();
    if random.once_in(3) {
        let which = random.below(NESTED.len());
        edits.push(Edit::Drop(nested(which)));
        edits.extend(make(which, random));
    }
    for _ in 0..random.below(30) {
        let (path, key) = (nested(random.below(NESTED.len())), nested_key(random.below(NESTED_KEYS)));
        let len = random.below(80);
        edits.push(if random.once_in(3) { Edit::Delete(path, key) } else { Edit::Put(path, key, random.bytes(len)) });
    }
    edits
}

fn commit(edits: &[Edit], db: &Db, model: &mut Model) {
    let mut tx = db.begin_mut().unwrap();
    for edit in edits {
        assert_eq!(edit.apply(&mut tx).ok(), edit.apply_to_model(model).ok(), "{edit:?}");
    }
    tx.commit().unwrap();
}

fn nested_key(number: usize) -> Vec<u8> {
    format!("key {number:05}").into_bytes()
}

#[test]
fn a_cursor_that_stays_open_tells_its_snapshot_whatever_becomes_of_its_bucket() {
    const READERS: usize = 3;
    for seed in 0..number("BOLTKV_PATCH_ROUNDS", 4) {
        let seed = seed + number("BOLTKV_SEED", 1);
        println!("BOLTKV_SEED={seed}");
        let (folder, mut random) = (folder_in_memory(), Random::new(seed));
        let memory = [JournalOptions::LEAST_MEMORY, 64 << 10][random.below(2)];
        let journal = JournalOptions::new().memory(memory).checkpoint_size(64 << 10);
        let page_size = [1024, 4096][random.below(2)];
        let options = Options::new().page_size(page_size).durability(Durability::Never).journal(journal);
        let db = options.open(folder.path().join("db")).unwrap();
        let mut model = Model::default();
        commit(&make(0, &mut random), &db, &mut model);
        let (is_done, transactions) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            let done = Done(&is_done);
            let (db, is_done, transactions) = (&db, &is_done, &transactions);
            scope.spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    db.checkpoint().unwrap();
                    thread::sleep(Duration::from_millis(5));
                }
            });
            let readers: Vec<_> = (0..READERS as u64)
                .map(|reader| {
                    let (states, to_hold) = sync_channel::<(Tx, Model)>(1);
                    let mut random = Random::new(seed ^ reader << 32);
                    let holding = scope.spawn(move || {
                        to_hold.iter().map(|state| hold_cursors(&state, transactions, is_done, &mut random)).count()
                    });
                    (states, holding)
                })
                .collect();
            for _ in 0..150 {
                for (states, holding) in &readers {
                    if !holding.is_finished() {
                        let _ = states.try_send((db.begin().unwrap(), model.clone()));
                    }
                }
                commit(&rewrite(&mut random), db, &mut model);
                transactions.fetch_add(1, Ordering::Relaxed);
            }
            drop(done);
            for (states, holding) in readers {
                drop(states);
                assert!(holding.join().unwrap() > 2, "a reader has hardly held anything");
            }
        });
        assert!(committed(&db) == model);
        assert_check_clean(&db, "what is left");
    }
}
