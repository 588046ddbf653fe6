//! Trees of many levels, which long keys make of a few hundred entries: what is removed together goes at once, with the
//! branches above it, and what is put in its place is found; by the commit itself, and when it is done again from a journal.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::common::edit::{Edit, Parts};
use crate::common::model::{BucketPath, Model};
use crate::common::random::Random;
use crate::common::{assert_check_clean, assert_same_dump, committed, copy_as_killed, folder_in_memory};
use boltkv_storage::{Db, Error, JournalOptions, Options, TxMut};

const KEYS: u32 = 300;

/// Long enough for a tree of four levels.
fn key(n: u32) -> Vec<u8> {
    let mut key = format!("k{n:05}").into_bytes();
    key.resize(900, b'x');
    key
}

/// Between this key and the next.
fn behind(n: u32) -> Vec<u8> {
    let mut key = key(n);
    key.push(b'+');
    key
}

fn grown() -> (Db, BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("p")?;
        (0..KEYS).try_for_each(|n| bucket.put(key(n), "v"))
    })
    .unwrap();
    let model = (0..KEYS).map(|n| (key(n), Some(b"v".to_vec()))).collect();
    (db, model)
}

/// The bucket has what the model has, nested buckets as `None`, each with one entry.
fn assert_is(db: &Db, model: &BTreeMap<Vec<u8>, Option<Vec<u8>>>, what: &str) {
    assert_eq!(db.check().unwrap(), [], "{what}");
    let tx = db.begin().unwrap();
    let bucket = tx.bucket("p").unwrap();
    let names = bucket.iter().map(|item| item.unwrap().0.to_vec());
    assert!(names.eq(model.keys().cloned()), "{what}");
    for (key, value) in model {
        let found = match value {
            Some(_) => bucket.get(key).unwrap().map(<[u8]>::to_vec),
            None => bucket.bucket(key).unwrap().get("in").unwrap().map(<[u8]>::to_vec),
        };
        assert_eq!(found, Some(value.clone().unwrap_or_else(|| b"it".to_vec())), "{what}");
    }
}

/// Removes `from..to`, one way or another.
fn remove(tx: &mut TxMut, from: u32, to: u32) -> Result<(), Error> {
    let mut bucket = tx.bucket_mut("p")?;
    if from == 0 {
        (from..to).try_for_each(|_| bucket.pop_first().map(drop))
    } else {
        bucket.delete_range(key(from)..key(to), usize::MAX).map(drop)
    }
}

#[test]
fn what_is_put_where_a_range_was_removed_is_found_by_the_commit() {
    for from in (0..KEYS - 20).step_by(13) {
        for len in [17, 36, 61, 90] {
            let to = (from + len).min(KEYS);
            for at in [from, from + len / 3, to - 2] {
                let what = format!("{from}..{to}, and a bucket behind {at}");
                let (db, mut model) = grown();
                db.update(|tx| {
                    remove(tx, from, to)?;
                    let mut bucket = tx.bucket_mut("p")?;
                    bucket.create_bucket(behind(at))?.put("in", "it")?;
                    bucket.put(key(at), "new")
                })
                .unwrap();
                model.retain(|name, _| !(key(from)..key(to)).contains(name));
                model.extend([(behind(at), None), (key(at), Some(b"new".to_vec()))]);
                assert_is(&db, &model, &what);
                // What was so in one transaction is the ground for the next.
                db.update(|tx| {
                    let mut bucket = tx.bucket_mut("p")?;
                    bucket.bucket_mut(behind(at))?.put("in", "it")?;
                    bucket.delete(key(at)).map(drop)
                })
                .unwrap();
                model.remove(&key(at));
                assert_is(&db, &model, &what);
            }
        }
    }
}

const SEEDS: u64 = 8;
const TRANSACTIONS: usize = 25;

/// Buckets that there may be.
fn paths() -> [BucketPath; 3] {
    [vec![b"p".to_vec()], vec![b"p".to_vec(), behind(7)], vec![b"p".to_vec(), behind(190)]]
}

fn number(random: &mut Random, from: u32, to: u32) -> u32 {
    from + u32::try_from(random.below((to - from) as usize)).unwrap()
}

/// Takes a range away, and makes a bucket within it: what is in a bucket, the commit puts into its parent.
fn gap(random: &mut Random) -> Vec<Edit> {
    let path = paths()[0].clone();
    let from = number(random, 0, KEYS - 20);
    let to = number(random, from + 10, (from + 90).min(KEYS));
    let within = number(random, from, to);
    let bucket = [&path[..], &[behind(within)]].concat();
    let range = Edit::DeleteRange(path.clone(), Bound::Included(key(from)), Bound::Excluded(key(to)), usize::MAX);
    let put = Edit::Put(bucket.clone(), b"in".to_vec(), b"it".to_vec());
    vec![range, Edit::CreateIfMissing(bucket), put, Edit::Put(path, key(within), b"new".to_vec())]
}

/// Any edit, of keys as long.
fn some_edit(random: &mut Random) -> Edit {
    let paths = paths();
    let path = paths[usize::from(random.once_in(4)) * random.below(3)].clone();
    let (to, kind) = (paths[random.below(3)].clone(), random.below(Edit::KINDS));
    let [key, other_key] = [(); 2].map(|()| key(number(random, 0, KEYS)));
    let parts = Parts { path, to, key, other_key, value: random.bytes(40), number: random.next() };
    match Edit::of_kind(kind, parts) {
        Edit::PutMany(path, key, count, value) => Edit::PutMany(path, key, count % 40, value),
        // What makes most of it go, not so often.
        Edit::DeleteRange(path, from, to, limit) => Edit::DeleteRange(path, from, to, limit.min(30)),
        Edit::Drop(path) if path.len() == 1 => Edit::Open(path),
        edit => edit,
    }
}

/// Makes the bucket anew, with all keys.
fn fill(db: &Db, model: &mut Model) {
    let path = &paths()[0];
    let edits = (0..KEYS).map(|n| Edit::Put(path.clone(), key(n), b"v".to_vec()));
    let anew = [Edit::CreateIfMissing(path.clone()), Edit::Drop(path.clone()), Edit::Create(path.clone())];
    let mut tx = db.begin_mut().unwrap();
    for edit in anew.into_iter().chain(edits) {
        edit.apply(&mut tx).unwrap();
        edit.apply_to_model(model).unwrap();
    }
    tx.commit().unwrap();
}

#[test]
fn whatever_is_done_to_a_deep_tree_it_is_what_was_done_also_from_its_journal() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let folder = folder_in_memory();
        let (file, killed) = (folder.path().join("a.db"), folder.path().join("killed.db"));
        let options = Options::new().journal(JournalOptions::new().checkpoint_size(1 << 20));
        let db = options.clone().open(&file).unwrap();
        let mut model = Model::default();
        for number in 0..TRANSACTIONS {
            let what = format!("seed {seed}, transaction {number}");
            if number % 5 == 0 {
                fill(&db, &mut model);
            }
            let mut tx = db.begin_mut().unwrap();
            let savepoint = tx.savepoint();
            let before = model.clone();
            let mut edits = if random.once_in(2) { gap(&mut random) } else { Vec::new() };
            edits.extend((0..random.below(6)).map(|_| some_edit(&mut random)));
            for edit in edits {
                let mut changed = model.clone();
                // One that is refused may have been made in part.
                if edit.apply_to_model(&mut changed).is_ok() {
                    edit.apply(&mut tx).unwrap_or_else(|error| panic!("{what}: {edit:?}: {error}"));
                    model = changed;
                }
            }
            if random.once_in(5) {
                tx.rollback_to(&savepoint).unwrap();
                model = before;
            }
            tx.commit().unwrap();
            assert_check_clean(&db, &what);
            assert_same_dump(&committed(&db).dump(), &model.dump(), &what);
            if random.once_in(6) {
                copy_as_killed(&file, &killed);
                let again = options.clone().open(&killed).unwrap();
                assert_check_clean(&again, &format!("{what}, from the journal"));
                assert_same_dump(&committed(&again).dump(), &model.dump(), &format!("{what}, from the journal"));
            }
        }
        db.close().unwrap();
    }
}
