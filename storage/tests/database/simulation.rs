//! Many threads read and write at the same time: every transaction, by its number, saw or left exactly what a history of
//! maps says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::common::assert_check_clean;
use crate::common::random::Random;
use boltkv_storage::{Bucket, Db, FreelistStored, Options};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// What was committed, by the number of the transaction.
#[derive(Default)]
struct History(Mutex<HashMap<u64, Arc<Map>>>);

impl History {
    fn at(&self, txid: u64) -> Arc<Map> {
        Arc::clone(&self.0.lock().unwrap()[&txid])
    }

    fn add(&self, txid: u64, map: Map) {
        self.0.lock().unwrap().insert(txid, Arc::new(map));
    }
}

fn assert_holds(bucket: Bucket<'_>, map: &Map) {
    let mut expected = map.iter();
    for entry in &bucket {
        let (key, value) = entry.unwrap();
        assert_eq!(expected.next(), Some((&key.to_vec(), &value.unwrap().to_vec())));
    }
    assert_eq!(expected.next(), None);
}

/// One transaction: a look at everything, and every third time a change.
fn operate(db: &Db, history: &History, random: &mut Random) {
    if !random.once_in(3) {
        let tx = db.begin().unwrap();
        let map = history.at(tx.id());
        assert_holds(tx.bucket("b").unwrap(), &map);
        for (key, value) in map.iter().take(3) {
            assert_eq!(tx.bucket("b").unwrap().get(key).unwrap(), Some(value.as_slice()));
        }
        return;
    }
    let mut tx = db.begin_mut().unwrap();
    let mut map = Map::clone(&history.at(tx.id() - 1));
    let mut bucket = tx.bucket_mut("b").unwrap();
    for _ in 0..=random.below(20) {
        let oldest = map.keys().next().cloned();
        if let Some(key) = oldest.filter(|_| random.once_in(3)) {
            assert!(bucket.delete(&key).unwrap());
            map.remove(&key);
        } else {
            let (key, len) = (random.bytes(4), random.below(600));
            let value = random.bytes(len);
            bucket.put(&key, &value).unwrap();
            map.insert(key, value);
        }
    }
    assert_holds(bucket.as_bucket(), &map);
    // It must be known before a reader can see the transaction.
    history.add(tx.id(), map);
    tx.commit().unwrap();
}

fn simulate(stored: FreelistStored, threads: u64, operations: usize) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let options = Options::new().page_size(1024).freelist(stored);
    let history = History::default();
    let mut last = Map::default();
    for round in 0..2 {
        let db = options.open(&file).unwrap();
        db.update(|tx| tx.create_bucket_if_not_exists("b").map(|_| ())).unwrap();
        history.add(db.begin().unwrap().id(), last);
        thread::scope(|scope| {
            for number in 0..threads {
                let (db, history) = (&db, &history);
                scope.spawn(move || {
                    let mut random = Random::new(number + 100 * round);
                    for _ in 0..operations {
                        operate(db, history, &mut random);
                    }
                });
            }
        });
        assert_check_clean(&db, "after a round");
        last = Map::clone(&history.at(db.begin().unwrap().id()));
    }
}

#[test]
fn one_thread_agrees_with_the_history() {
    simulate(FreelistStored::Always, 1, 300);
}

#[test]
fn many_threads_agree_with_the_history() {
    simulate(FreelistStored::Always, 10, 60);
    simulate(FreelistStored::Always, 50, 10);
}

#[test]
fn many_threads_agree_with_the_history_where_the_freelist_is_not_stored() {
    simulate(FreelistStored::Never, 1, 100);
    simulate(FreelistStored::Never, 10, 60);
    simulate(FreelistStored::Never, 50, 10);
}
