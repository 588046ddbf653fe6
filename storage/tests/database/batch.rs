//! Changes from many threads share commits; each succeeds or fails by itself.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::sync::{Arc, Barrier, Mutex};

use boltkv_storage::{Db, Error, Options, TxMut};

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

type Called<T> = Box<dyn FnOnce(&Db) -> T + Send>;

/// Has the first of several changes run while the others gather, so that these share a transaction.
fn together<T: Send>(db: &Db, changes: Vec<Called<T>>) -> Vec<T> {
    let tx = db.begin_mut().unwrap();
    std::thread::scope(|scope| {
        let threads: Vec<_> = changes.into_iter().map(|change| scope.spawn(move || change(db))).collect();
        // Some may come later and are a batch of their own: what is asserted holds for them as well.
        std::thread::sleep(std::time::Duration::from_millis(20));
        tx.rollback();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn a_change_that_moves_a_bucket_deletes_in_it_and_fails_leaves_the_file_whole() {
    let db = Options::new().page_size(1024).open_in_memory().unwrap();
    db.update(|tx| {
        tx.create_bucket("to")?;
        let mut large = tx.create_bucket("large")?;
        (0..400_u32).try_for_each(|key| large.put(key.to_be_bytes(), [7; 50]))
    })
    .unwrap();
    let fails: Called<Result<(), Error>> = Box::new(|db| {
        db.batch(|tx| {
            tx.move_bucket("large", &[], &["to"])?;
            let mut large = tx.bucket_mut_path(["to", "large"])?;
            let _ = large.delete_range(.., usize::MAX)?;
            large.put("", "no key")
        })
    });
    let succeeds: Called<Result<(), Error>> = Box::new(|db| db.batch(|tx| tx.bucket_mut("to")?.put("k", "v")));
    let answers = together(&db, vec![fails, succeeds]);
    assert!(matches!(answers.as_slice(), [Err(Error::KeyRequired), Ok(())]), "{answers:?}");
    let tx = db.begin().unwrap();
    assert_eq!(tx.check().unwrap(), []);
    assert_eq!(tx.bucket("large").unwrap().count().unwrap(), 400);
}

#[test]
fn a_callback_that_panics_is_told_to_its_own_caller_only() {
    let db = database();
    let changes = (0..8_u8).map(|number| -> Called<bool> {
        Box::new(move |db| {
            let change = move |tx: &mut TxMut| {
                tx.on_commit(move || {
                    if number % 2 == 1 {
                        std::panic::resume_unwind(Box::new("on purpose"));
                    }
                });
                tx.bucket_mut("b")?.put([number], "v")
            };
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| db.batch(change).unwrap())).is_err()
        })
    });
    let panicked = together(&db, changes.collect());
    assert_eq!(panicked, [false, true, false, true, false, true, false, true]);
    assert_eq!(db.begin().unwrap().bucket("b").unwrap().count().unwrap(), 8, "all are committed");
}

#[test]
fn a_callback_may_call_batch() {
    let db = database();
    let inner = db.clone();
    db.batch(move |tx| {
        tx.on_commit(move || inner.batch(|tx| tx.bucket_mut("b")?.put("inner", "v")).unwrap());
        tx.bucket_mut("b")?.put("outer", "v")
    })
    .unwrap();
    assert_eq!(db.begin().unwrap().bucket("b").unwrap().count().unwrap(), 2);
}

#[test]
fn no_change_can_go_back_to_before_another_one() {
    let db = database();
    let kept = Arc::new(Mutex::new(None));
    let changes = (0..4_u8).map(|number| -> Called<Result<(), Error>> {
        let kept = Arc::clone(&kept);
        Box::new(move |db| {
            db.batch(move |tx| {
                let other = kept.lock().unwrap().replace(tx.savepoint());
                tx.bucket_mut("b")?.put([number], "v")?;
                let gone_back = other.map(|other| tx.rollback_to(&other));
                assert!(matches!(gone_back, None | Some(Err(Error::SavepointNotFound))));
                Ok(())
            })
        })
    });
    together(&db, changes.collect()).into_iter().for_each(Result::unwrap);
    assert_eq!(db.begin().unwrap().bucket("b").unwrap().count().unwrap(), 4);
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
