//! A database in memory, in small: what every `unsafe` block of the crate has to bear, short enough for Miri
//! (`cargo +nightly miri test -p boltkv-storage --test memory`), which sees each access that the rules of memory forbid.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::sync::mpsc::channel;
use std::thread;

use boltkv_storage::{Db, Durability, Error, FreelistStored, Options, Tx};

fn options() -> Options {
    Options::new().page_size(1024)
}

fn database() -> Db {
    options().open_in_memory().unwrap()
}

/// One commit that puts the version into every value: some pages of them.
fn put_version(db: &Db, version: u8, keys: u8) {
    db.update(|tx| {
        let mut bucket = tx.create_bucket_if_not_exists("b")?;
        (0..keys).try_for_each(|key| bucket.put([key], [version; 200]))
    })
    .unwrap();
}

/// Reads all there is, and fails unless it is one version throughout.
fn assert_version(tx: &Tx, version: u8, keys: usize) {
    let bucket = tx.bucket("b").unwrap();
    let mut count = 0;
    for entry in &bucket {
        assert_eq!(entry.unwrap().1, Some(&[version; 200][..]));
        count += 1;
    }
    assert_eq!(count, keys);
}

fn assert_sound(db: &Db) {
    assert_eq!(db.check().unwrap(), []);
}

#[test]
fn what_is_committed_is_read_changed_and_deleted() {
    let db = database();
    for version in 1..=3 {
        put_version(&db, version, 12);
        assert_version(&db.begin().unwrap(), version, 12);
    }
    db.update(|tx| {
        let mut bucket = tx.bucket_mut("b")?;
        let mut cursor = bucket.cursor_mut();
        while cursor.next()?.is_some() {
            cursor.delete()?;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
    assert_version(&db.begin().unwrap(), 0, 0);
    assert_sound(&db);
}

#[test]
fn a_slice_stays_valid_while_its_pages_are_left_behind_and_the_memory_grows() {
    let db = database();
    put_version(&db, 1, 12);
    let tx = db.begin().unwrap();
    let kept = tx.bucket("b").unwrap().get([3]).unwrap().unwrap();
    for version in 2..5 {
        put_version(&db, version, 12);
    }
    // Larger than what a new database has room for: another region takes its place.
    db.update(|tx| tx.create_bucket("large")?.put("k", vec![7; 40_000])).unwrap();
    assert_eq!(kept, [1; 200]);
    assert_version(&tx, 1, 12);
    drop(tx);
    put_version(&db, 5, 12);
    assert_version(&db.begin().unwrap(), 5, 12);
    assert_sound(&db);
}

#[test]
fn a_reader_in_another_thread_reads_on_while_the_writer_commits_and_the_memory_grows() {
    let db = database();
    put_version(&db, 1, 8);
    let reader = db.begin().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..6 {
                assert_version(&reader, 1, 8);
            }
        });
        for version in 2..6 {
            put_version(&db, version, 8);
        }
        db.update(|tx| tx.create_bucket("large")?.put("k", vec![7; 40_000])).unwrap();
    });
    assert_version(&db.begin().unwrap(), 5, 8);
}

#[test]
fn readers_that_come_and_go_beside_the_writer_each_see_one_version() {
    let db = database();
    put_version(&db, 1, 5);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let tx = db.begin().unwrap();
                    let version = tx.bucket("b").unwrap().get([0]).unwrap().unwrap()[0];
                    assert_version(&tx, version, 5);
                }
            });
        }
        for version in 2..8 {
            put_version(&db, version, 5);
        }
    });
    assert_sound(&db);
}

#[test]
fn a_transaction_moves_to_another_thread_with_what_it_holds() {
    let db = database();
    put_version(&db, 1, 4);
    let (sender, receiver) = channel::<Tx>();
    let reader = thread::spawn(move || receiver.recv().map(|tx| assert_version(&tx, 1, 4)).unwrap());
    let tx = db.begin().unwrap();
    put_version(&db, 2, 4);
    sender.send(tx).unwrap();
    reader.join().unwrap();

    let mut writer = db.begin_mut().unwrap();
    writer.bucket_mut("b").unwrap().put([0], [3; 200]).unwrap();
    thread::spawn(move || writer.commit().unwrap()).join().unwrap();
    assert_eq!(db.begin().unwrap().bucket("b").unwrap().get([0]).unwrap(), Some(&[3; 200][..]));
}

#[test]
fn threads_read_in_one_transaction() {
    let db = database();
    put_version(&db, 1, 4);
    let tx = db.begin().unwrap();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert_version(&tx, 1, 4));
        }
        put_version(&db, 2, 4);
    });
}

#[test]
fn readers_are_counted_whichever_thread_they_began_in_and_end_in() {
    // More than a thread has slots for tokens that are not counted: what it takes beyond them is.
    const EACH: usize = 10;
    let db = database();
    put_version(&db, 1, 4);
    let begin = || (0..EACH).map(|_| db.begin().unwrap()).collect::<Vec<_>>();
    let open = || db.stats().open_readers;
    thread::scope(|scope| {
        let (theirs, others) = (scope.spawn(begin), scope.spawn(begin));
        let (mut theirs, others) = (theirs.join().unwrap(), others.join().unwrap());
        let ours = begin();
        assert_eq!([open(), open()], [3 * EACH; 2], "also those that were counted before");
        theirs.truncate(3);
        assert_eq!(open(), 2 * EACH + 3);
        put_version(&db, 2, 4);
        let newer = begin();
        assert_eq!(open(), 3 * EACH + 3, "of both snapshots");
        scope.spawn(move || drop((others, ours))).join().unwrap();
        assert_eq!(open(), EACH + 3);
        for (txs, version) in [(&theirs, 1), (&newer, 2)] {
            for tx in txs {
                assert_version(tx, version, 4);
            }
        }
        drop((theirs, newer));
        assert_eq!(open(), 0);
    });
    put_version(&db, 3, 4);
    assert_sound(&db);
}

#[test]
fn counting_beside_readers_and_the_writer_counts_who_is_there_and_frees_nobodys_pages() {
    let db = database();
    put_version(&db, 1, 4);
    let kept = db.begin().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..6 {
                assert!(db.stats().open_readers >= 1);
            }
        });
        scope.spawn(|| {
            for _ in 0..6 {
                let tx = db.begin().unwrap();
                let version = tx.bucket("b").unwrap().get([0]).unwrap().unwrap()[0];
                assert_version(&tx, version, 4);
            }
        });
        for version in 2..6 {
            put_version(&db, version, 4);
        }
    });
    assert_version(&kept, 1, 4);
    assert_eq!(db.stats().open_readers, 1);
    assert_sound(&db);
}

#[test]
fn buckets_within_buckets_move_out_of_their_parent_and_back() {
    let db = database();
    let path = ["a", "b", "c"];
    db.update(|tx| {
        tx.create_bucket("a")?.create_bucket("b")?.create_bucket("c")?.put("small", "inline")?;
        tx.bucket_mut_path(path)?.set_sequence(9)
    })
    .unwrap();
    db.update(|tx| {
        let mut inner = tx.bucket_mut_path(path)?;
        (0..8_u8).try_for_each(|key| inner.put([key], [key; 300]))
    })
    .unwrap();
    let tx = db.begin().unwrap();
    db.update(|tx| {
        let mut inner = tx.bucket_mut_path(path)?;
        (0..8_u8).try_for_each(|key| inner.delete([key]).map(|_| ()))
    })
    .unwrap();
    assert_eq!(tx.bucket_path(path).unwrap().get([7]).unwrap(), Some(&[7; 300][..]));
    assert_eq!(db.begin().unwrap().bucket_path(path).unwrap().sequence(), 9);
    db.update(|tx| tx.delete_bucket("a")).unwrap();
    assert_eq!(tx.bucket_path(path).unwrap().iter().rev().count(), 9);
    assert_sound(&db);
}

#[test]
fn what_is_rolled_back_leaves_the_pages_and_bytes_that_others_hold() {
    let db = database();
    put_version(&db, 1, 6);
    let mut tx = db.begin_mut().unwrap();
    let mut bucket = tx.bucket_mut("b").unwrap();
    bucket.put([0], [9; 500]).unwrap();
    let before = tx.savepoint();
    let mut bucket = tx.bucket_mut("b").unwrap();
    (0..6_u8).for_each(|key| assert!(bucket.delete([key]).unwrap()));
    bucket.create_bucket("inner").unwrap().put("k", [1; 900]).unwrap();
    tx.rollback_to(&before).unwrap();
    let bucket = tx.bucket("b").unwrap();
    assert_eq!(bucket.get([0]).unwrap(), Some(&[9; 500][..]));
    assert_eq!(bucket.iter().count(), 6);
    tx.rollback();
    assert_version(&db.begin().unwrap(), 1, 6);

    let mut tx = db.begin_mut().unwrap();
    tx.delete_bucket("b").unwrap();
    drop(tx);
    put_version(&db, 2, 6);
    assert_version(&db.begin().unwrap(), 2, 6);
    assert_sound(&db);
}

#[test]
fn threads_whose_changes_share_a_batch_each_get_their_own_answer() {
    let db = database();
    put_version(&db, 1, 1);
    let answers: Vec<u8> = thread::scope(|scope| {
        let callers = (0..3_u8).map(|key| {
            let db = &db;
            scope.spawn(move || db.batch(move |tx| tx.bucket_mut("b")?.put([key], [key; 200]).map(|()| key)))
        });
        callers.collect::<Vec<_>>().into_iter().map(|caller| caller.join().unwrap().unwrap()).collect()
    });
    assert_eq!(answers, [0, 1, 2]);
    assert_eq!(db.begin().unwrap().bucket("b").unwrap().iter().count(), 3);
}

#[test]
fn unsynced_commits_use_again_only_what_neither_a_reader_nor_the_durable_state_holds() {
    let db = options().durability(Durability::Never).freelist(FreelistStored::OnCleanClose).open_in_memory().unwrap();
    put_version(&db, 1, 6);
    db.sync().unwrap();
    let durable = db.begin().unwrap();
    for version in 2..6 {
        put_version(&db, version, 6);
    }
    assert_version(&durable, 1, 6);
    drop(durable);
    db.sync().unwrap();
    put_version(&db, 6, 6);
    assert_version(&db.begin().unwrap(), 6, 6);
    assert_sound(&db);
}

#[test]
fn a_reader_sees_its_pages_while_the_file_shrinks_under_it() {
    let db = database();
    put_version(&db, 1, 12);
    db.update(|tx| tx.create_bucket("large")?.put("k", vec![7; 20_000])).unwrap();
    put_version(&db, 2, 12);
    let reader = db.begin().unwrap();
    db.update(|tx| tx.delete_bucket("large")).unwrap();
    db.shrink().unwrap();
    assert_version(&reader, 2, 12);
    drop(reader);
    db.shrink().unwrap();
    assert_version(&db.begin().unwrap(), 2, 12);
    assert_sound(&db);
}
