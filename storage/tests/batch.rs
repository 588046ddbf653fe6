//! Changes from many threads share commits; each succeeds or fails by itself.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::sync::Barrier;

use boltkv_storage::{Db, Error, Options};

fn database() -> Db {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| tx.create_bucket("b").map(|_| ())).unwrap();
    db
}

#[test]
fn every_change_of_many_threads_is_committed() {
    let db = database();
    let start = Barrier::new(8);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (db, start) = (&db, &start);
            scope.spawn(move || {
                start.wait();
                for number in 0..200 {
                    let key = format!("{thread}.{number}");
                    let answer: Result<String, Error> = db.batch(move |tx| {
                        tx.bucket_mut("b")?.put(&key, "v")?;
                        Ok(key)
                    });
                    let tx = db.begin().unwrap();
                    assert!(tx.bucket("b").unwrap().get(answer.unwrap()).unwrap().is_some(), "it is there on return");
                }
            });
        }
    });
    let tx = db.begin().unwrap();
    assert_eq!(tx.bucket("b").unwrap().iter().count(), 1600);
    assert!(tx.id() <= 2 + 1600);
    assert_eq!(tx.check().unwrap(), []);
}

#[test]
fn a_lone_caller_gets_its_own_transaction_at_once() {
    let db = database();
    let before = db.begin().unwrap().id();
    db.batch(|tx| tx.bucket_mut("b")?.put("k", "v")).unwrap();
    assert_eq!(db.begin().unwrap().id(), before + 1);
}

#[test]
fn a_change_that_fails_or_panics_is_undone_and_spoils_no_other() {
    let db = database();
    let start = Barrier::new(12);
    std::thread::scope(|scope| {
        for thread in 0..12 {
            let (db, start) = (&db, &start);
            scope.spawn(move || {
                start.wait();
                for number in 0..50 {
                    let key = format!("{thread}.{number}");
                    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        db.batch(move |tx| {
                            let mut bucket = tx.bucket_mut("b")?;
                            bucket.put(&key, "v")?;
                            match thread % 3 {
                                0 => Ok(()),
                                1 => bucket.put("", "no key"),
                                _ => std::panic::resume_unwind(Box::new("on purpose")),
                            }
                        })
                    }));
                    match (thread % 3, ran) {
                        (0, Ok(Ok(()))) | (1, Ok(Err(Error::KeyRequired))) | (2, Err(_)) => {}
                        (kind, other) => panic!("kind {kind}: {:?}", other.map_err(|_| "a panic")),
                    }
                }
            });
        }
    });
    let tx = db.begin().unwrap();
    let bucket = tx.bucket("b").unwrap();
    assert_eq!(bucket.iter().count(), 4 * 50);
    assert!(bucket.get("3.49").unwrap().is_some() && bucket.get("4.49").unwrap().is_none());
    assert_eq!(tx.check().unwrap(), []);
}

#[test]
fn a_database_that_cannot_be_written_says_so_to_every_caller() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    drop(Db::open(&file).unwrap());
    let db = Options::new().read_only(true).open(&file).unwrap();
    for _ in 0..3 {
        assert!(matches!(db.batch(|_| Ok::<_, Error>(())), Err(Error::ReadOnly)));
    }
}
