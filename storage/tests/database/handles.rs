//! Handles: buckets of one transaction are read and written in turn; a handle that is good no longer is an error.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::assert_check_clean;
use boltkv_storage::{Db, Error, Options, TxMut};

fn db() -> Db {
    let db = Options::new().page_size(1024).open_in_memory().unwrap();
    db.update(|tx| {
        let mut from = tx.create_bucket("from")?;
        (0..1000_u32).try_for_each(|n| from.put(n.to_be_bytes(), n.to_le_bytes()))?;
        from.create_bucket("within").map(drop)
    })
    .unwrap();
    db
}

fn keys(tx: &TxMut, bucket: &str) -> Vec<Vec<u8>> {
    tx.bucket(bucket).unwrap().iter().map(|entry| entry.unwrap().0.to_vec()).collect()
}

#[test]
fn a_walk_through_one_bucket_feeds_another_and_sees_what_the_transaction_has_changed() {
    let db = db();
    let mut tx = db.begin_mut().unwrap();
    let from = tx.bucket_mut("from").unwrap().handle();
    let to = tx.create_bucket("to").unwrap().handle();
    tx.at_mut(from).unwrap().put(500_u32.to_be_bytes(), "changed").unwrap();
    tx.at_mut(from).unwrap().delete(501_u32.to_be_bytes()).unwrap();
    let mut walk = from.walk(10_u32.to_be_bytes()..);
    let (mut values, mut buckets) = (0, 0);
    while let Some((key, value)) = walk.next(&tx).unwrap() {
        match value {
            Some(value) => tx.at_mut(to).unwrap().put(key, value).unwrap(),
            None => assert_eq!(key, b"within"),
        }
        values += u32::from(value.is_some());
        buckets += u32::from(value.is_none());
    }
    assert_eq!((values, buckets), (989, 1));
    assert_eq!(tx.bucket("to").unwrap().get(500_u32.to_be_bytes()).unwrap(), Some(&b"changed"[..]));
    tx.commit().unwrap();
    assert_eq!(db.begin().unwrap().bucket("to").unwrap().count().unwrap(), 989);
    assert_check_clean(&db, "after a walk");
}

#[test]
fn a_walk_keeps_its_bounds_and_goes_on_wherever_its_own_bucket_was_changed() {
    let db = Options::new().open_in_memory().unwrap();
    let mut tx = db.begin_mut().unwrap();
    let mut bucket = tx.create_bucket("b").unwrap();
    for key in ["b", "d", "f", "h"] {
        bucket.put(key, "").unwrap();
    }
    let handle = bucket.handle();
    let mut walk = handle.walk("b".."h");
    let mut step = |tx: &mut TxMut, put: &str, delete: &str| {
        let key = walk.next(tx).unwrap().map(|(key, _)| String::from_utf8(key.to_vec()).unwrap());
        tx.at_mut(handle).unwrap().put(put, "").unwrap();
        tx.at_mut(handle).unwrap().delete(delete).unwrap();
        key
    };
    // What it stands on may go, as may what comes next; what is put behind it is not come by, what is ahead is.
    assert_eq!(step(&mut tx, "a", "b").as_deref(), Some("b"));
    assert_eq!(step(&mut tx, "e", "f").as_deref(), Some("d"));
    assert_eq!(step(&mut tx, "c", "-").as_deref(), Some("e"));
    assert_eq!(step(&mut tx, "g", "-"), None);
    assert_eq!(step(&mut tx, "z", "-").as_deref(), Some("g"), "there is more now");
    assert_eq!(keys(&tx, "b"), [b"a", b"c", b"d", b"e", b"g", b"h", b"z"].map(|key| key.to_vec()));
    for (walked, expected) in [(handle.walk(..="c"), 2), (handle.walk("c".."c"), 0), (handle.walk(..), 7)] {
        let mut walk = walked;
        let count = std::iter::from_fn(|| walk.next(&tx).unwrap().map(drop)).count();
        assert_eq!(count, expected);
    }
}

#[test]
fn a_parent_is_read_while_a_bucket_in_it_is_written() {
    let db = db();
    let mut tx = db.begin_mut().unwrap();
    let mut parent = tx.bucket_mut("from").unwrap();
    let child = parent.bucket_mut("within").unwrap().handle();
    let parent = parent.handle();
    let mut walk = parent.walk(..);
    while let Some((key, value)) = walk.next(&tx).unwrap() {
        tx.at_mut(child).unwrap().put(key, value.unwrap_or(b"a bucket")).unwrap();
    }
    assert_eq!(tx.at(parent).unwrap().bucket("within").unwrap().count().unwrap(), 1001);
    tx.commit().unwrap();
    assert_check_clean(&db, "after writes to a bucket below the one that was read");
}

#[test]
fn a_handle_of_another_transaction_is_refused_also_of_one_that_was_rolled_back() {
    let (db, other) = (db(), db());
    let mut tx = db.begin_mut().unwrap();
    let handle = tx.bucket_mut("from").unwrap().handle();
    let mut foreign = other.begin_mut().unwrap();
    assert!(matches!(foreign.at(handle), Err(Error::ForeignHandle)));
    tx.rollback();
    let mut tx = db.begin_mut().unwrap();
    assert!(matches!(tx.at_mut(handle), Err(Error::ForeignHandle)));
    assert!(matches!(handle.walk(..).next(&tx), Err(Error::ForeignHandle)));
    let again = tx.bucket_mut("from").unwrap().handle();
    assert_ne!(handle, again);
    assert!(matches!(foreign.at_mut(again), Err(Error::ForeignHandle)));
}

#[test]
fn a_handle_follows_its_bucket_and_not_its_name() {
    let db = db();
    let mut tx = db.begin_mut().unwrap();
    let mut from = tx.bucket_mut("from").unwrap();
    let within = from.bucket_mut("within").unwrap().handle();
    let from = from.handle();
    let before = tx.savepoint();

    tx.create_bucket("elsewhere").unwrap();
    tx.move_bucket("within", &["from"], &["elsewhere"]).unwrap();
    tx.at_mut(within).unwrap().put("moved", "").unwrap();
    assert_eq!(tx.bucket_path(["elsewhere", "within"]).unwrap().count().unwrap(), 1);

    tx.delete_bucket("from").unwrap();
    assert!(tx.at(within).is_ok(), "it was moved out before");
    let error = tx.at_mut(from).unwrap_err();
    assert!(matches!(error, Error::BucketNotFound { .. }), "{error}");
    assert_eq!(error.to_string(), "no bucket \"from\"");
    tx.bucket_mut("elsewhere").unwrap().delete_bucket("within").unwrap();
    assert_eq!(tx.at(within).unwrap_err().to_string(), "no bucket \"within\" in bucket \"elsewhere\"");

    let made_anew = tx.create_bucket("from").unwrap().handle();
    assert_ne!(made_anew, from);
    assert!(tx.at(from).is_err(), "the one of that name is another bucket");

    tx.rollback_to(&before).unwrap();
    assert!(tx.at(made_anew).is_err(), "it was never made");
    assert_eq!(tx.at(from).unwrap().count().unwrap(), 1001);
    tx.at_mut(within).unwrap().put("back", "").unwrap();
    assert_eq!(tx.bucket_path(["from", "within"]).unwrap().first().unwrap(), Some((&b"back"[..], Some(&b""[..]))));
    tx.commit().unwrap();
    assert_check_clean(&db, "after a savepoint was gone back to");
}
