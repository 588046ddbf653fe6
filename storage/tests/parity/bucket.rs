//! What Go's bbolt promises of buckets, by its own tests' list (docs/bbolt-parity.md), where no other test here says it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::assert_check_clean;
use boltkv_storage::{Bucket, Db, Error, MAX_KEY_SIZE, MAX_VALUE_SIZE, Options, TxMut};

fn database() -> Db {
    Options::new().open_in_memory().unwrap()
}

/// One write transaction that is committed, and a clean check after it.
fn write(db: &Db, change: impl FnOnce(&mut TxMut)) {
    let mut tx = db.begin_mut().unwrap();
    change(&mut tx);
    tx.commit().unwrap();
    assert_check_clean(db, "after a commit");
}

/// The keys of a bucket, and whether each is a bucket.
fn keys(bucket: Bucket<'_>) -> Vec<(String, bool)> {
    let entries = bucket.iter().map(Result::unwrap);
    entries.map(|(key, value)| (String::from_utf8(key.to_vec()).unwrap(), value.is_none())).collect()
}

#[test]
fn a_value_is_read_before_and_after_its_commit_and_a_missing_one_never() {
    let db = database();
    write(&db, |tx| {
        let mut bucket = tx.create_bucket("widgets").unwrap();
        bucket.put("foo", "bar").unwrap();
        assert_eq!(bucket.get("foo").unwrap(), Some(&b"bar"[..]));
        assert_eq!(bucket.get("fo").unwrap(), None);
        bucket.put("foo", "baz").unwrap();
        assert_eq!(bucket.get("foo").unwrap(), Some(&b"baz"[..]), "the last of two puts counts");
        bucket.put("empty", "").unwrap();
    });
    let tx = db.begin().unwrap();
    let bucket = tx.bucket("widgets").unwrap();
    assert_eq!(bucket.get("foo").unwrap(), Some(&b"baz"[..]));
    assert_eq!(bucket.get("empty").unwrap(), Some(&b""[..]), "an empty value is a value");
    assert_eq!(bucket.get("food").unwrap(), None);
}

#[test]
fn a_bucket_is_not_taken_for_a_value_nor_a_value_for_a_bucket() {
    let db = database();
    write(&db, |tx| {
        let mut widgets = tx.create_bucket("widgets").unwrap();
        widgets.create_bucket("bucket").unwrap().put("k", "v").unwrap();
        widgets.put("value", "v").unwrap();
        let refused = [
            widgets.get("bucket").map(|_| ()),
            widgets.put("bucket", "v"),
            widgets.delete("bucket").map(|_| ()),
            widgets.bucket("value").map(|_| ()),
            widgets.bucket_mut("value").map(|_| ()),
            widgets.create_bucket("value").map(|_| ()),
            widgets.create_bucket_if_not_exists("value").map(|_| ()),
            widgets.delete_bucket("value"),
        ];
        for (number, result) in refused.into_iter().enumerate() {
            assert!(matches!(result, Err(Error::IncompatibleValue { .. })), "operation {number}: {result:?}");
        }
    });
    let tx = db.begin().unwrap();
    assert_eq!(tx.bucket_path(["widgets", "bucket"]).unwrap().get("k").unwrap(), Some(&b"v"[..]));
    assert_eq!(tx.bucket("widgets").unwrap().get("value").unwrap(), Some(&b"v"[..]));
}

#[test]
fn keys_and_values_of_up_to_some_pages_read_back() {
    let db = database();
    let pair = |number: usize| (vec![b'0'; number * 200], vec![b'X'; (100 - number) * 200]);
    write(&db, |tx| {
        let mut bucket = tx.create_bucket("widgets").unwrap();
        for (key, value) in (1..100).map(pair) {
            bucket.put(key, value).unwrap();
        }
    });
    let tx = db.begin().unwrap();
    let bucket = tx.bucket("widgets").unwrap();
    for (key, value) in (1..100).map(pair) {
        assert_eq!(bucket.get(key).unwrap(), Some(value.as_slice()));
    }
}

#[test]
fn a_hundred_thousand_appends_go_into_two_transactions() {
    let db = database();
    for half in 0..2_u32 {
        write(&db, |tx| {
            let mut bucket = tx.create_bucket_if_not_exists("widgets").unwrap();
            for number in half * 50_000..(half + 1) * 50_000 {
                bucket.put(number.to_be_bytes(), [0; 500]).unwrap();
            }
        });
    }
    let tx = db.begin().unwrap();
    assert_eq!(tx.bucket("widgets").unwrap().iter().count(), 100_000);
}

#[test]
fn deleting_is_seen_before_and_after_the_commit_and_a_missing_key_is_no_error() {
    let db = database();
    write(&db, |tx| {
        let mut bucket = tx.create_bucket("widgets").unwrap();
        bucket.create_bucket("nested").unwrap();
        bucket.put("foo", "bar").unwrap();
        bucket.put("kept", "v").unwrap();
        assert!(bucket.delete("foo").unwrap());
        assert_eq!(bucket.get("foo").unwrap(), None);
    });
    write(&db, |tx| {
        let mut bucket = tx.bucket_mut("widgets").unwrap();
        assert!(!bucket.delete("foo").unwrap());
        assert!(bucket.bucket("nested").is_ok());
    });
    let tx = db.begin().unwrap();
    assert_eq!(keys(tx.bucket("widgets").unwrap()), [("kept".to_owned(), false), ("nested".to_owned(), true)]);
}

#[test]
fn a_bucket_that_loses_all_its_pages_is_empty_and_gives_them_back() {
    let db = database();
    write(&db, |tx| {
        let mut bucket = tx.create_bucket("widgets").unwrap();
        (0..100_u32).for_each(|number| bucket.put(number.to_string(), [b'*'; 1024]).unwrap());
    });
    write(&db, |tx| {
        let mut bucket = tx.bucket_mut("widgets").unwrap();
        (0..100_u32).for_each(|number| assert!(bucket.delete(number.to_string()).unwrap()));
    });
    let tx = db.begin().unwrap();
    assert_eq!(tx.bucket("widgets").unwrap().iter().count(), 0);
    let stats = db.stats();
    let unused = stats.free_pages.unwrap() + stats.pending_pages.unwrap();
    // In use: two metas, the freelist, the root bucket's leaf; the empty bucket lies in it.
    assert_eq!(stats.pages - unused, 4, "{stats:?}");
}

#[test]
fn nested_buckets_are_changed_by_later_transactions() {
    let db = database();
    write(&db, |tx| {
        let mut widgets = tx.create_bucket("widgets").unwrap();
        widgets.create_bucket("foo").unwrap();
        widgets.put("bar", "0000").unwrap();
    });
    write(&db, |tx| tx.bucket_mut("widgets").unwrap().put("bar", "xxxx").unwrap());
    // So much that the parent's root splits.
    write(&db, |tx| {
        let mut widgets = tx.bucket_mut("widgets").unwrap();
        (0..10_000_u32).for_each(|number| widgets.put(number.to_string(), number.to_string()).unwrap());
    });
    write(&db, |tx| tx.bucket_mut_path(["widgets", "foo"]).unwrap().put("baz", "yyyy").unwrap());

    let tx = db.begin().unwrap();
    let widgets = tx.bucket("widgets").unwrap();
    assert_eq!(widgets.bucket("foo").unwrap().get("baz").unwrap(), Some(&b"yyyy"[..]));
    assert_eq!(widgets.get("bar").unwrap(), Some(&b"xxxx"[..]));
    for number in 0..10_000_u32 {
        assert_eq!(widgets.get(number.to_string()).unwrap(), Some(number.to_string().as_bytes()));
    }
}

#[test]
fn a_deleted_bucket_takes_those_inside_along_before_and_after_their_commit() {
    let db = database();
    let create = |tx: &mut TxMut| {
        let mut widgets = tx.create_bucket("widgets").unwrap();
        let mut foo = widgets.create_bucket("foo").unwrap();
        foo.create_bucket("bar").unwrap().put("baz", "bat").unwrap();
    };
    write(&db, |tx| {
        create(tx);
        tx.bucket_mut("widgets").unwrap().delete_bucket("foo").unwrap();
        assert!(matches!(tx.bucket_path(["widgets", "foo"]), Err(Error::BucketNotFound { .. })));
        tx.delete_bucket("widgets").unwrap();
    });
    write(&db, create);
    write(&db, |tx| tx.delete_bucket("widgets").unwrap());
    assert!(matches!(db.begin().unwrap().bucket("widgets"), Err(Error::BucketNotFound { .. })));
}

#[test]
fn a_deleted_bucket_of_many_pages_gives_them_all_back() {
    let db = database();
    write(&db, |tx| {
        let mut widgets = tx.create_bucket("widgets").unwrap();
        let mut foo = widgets.create_bucket("foo").unwrap();
        (0..1000_u32).for_each(|number| foo.put(number.to_string(), format!("{number:0100}")).unwrap());
    });
    write(&db, |tx| tx.delete_bucket("widgets").unwrap());
    let stats = db.stats();
    assert_eq!(stats.pages - stats.free_pages.unwrap() - stats.pending_pages.unwrap(), 4, "{stats:?}");
}

#[test]
fn a_sequence_counts_for_its_own_bucket_and_is_committed_even_if_nothing_else_changes() {
    let db = database();
    write(&db, |tx| {
        let mut widgets = tx.create_bucket("widgets").unwrap();
        assert_eq!(widgets.sequence(), 0);
        assert_eq!((widgets.next_sequence().unwrap(), widgets.next_sequence().unwrap()), (1, 2));
        assert_eq!(tx.create_bucket("woojits").unwrap().next_sequence().unwrap(), 1);
    });
    write(&db, |tx| assert_eq!(tx.bucket_mut("widgets").unwrap().next_sequence().unwrap(), 3));
    write(&db, |tx| tx.bucket_mut("woojits").unwrap().set_sequence(1000).unwrap());
    let tx = db.begin().unwrap();
    assert_eq!(tx.bucket("widgets").unwrap().sequence(), 3);
    assert_eq!(tx.bucket("woojits").unwrap().sequence(), 1000);
}

#[test]
fn iteration_gives_values_and_buckets_in_key_order_and_stops_where_its_user_stops() {
    let db = database();
    let entries = [("bar", false), ("baz", false), ("csubbucket", true), ("foo", false), ("zsubbucket", true)];
    let expected = entries.map(|(key, is_bucket)| (key.to_owned(), is_bucket));
    let names =
        |bucket: Bucket<'_>| -> Vec<Vec<u8>> { bucket.buckets().map(|found| found.unwrap().0.to_vec()).collect() };
    write(&db, |tx| {
        let mut bucket = tx.create_bucket("widgets").unwrap();
        for key in ["foo", "baz", "bar"] {
            bucket.put(key, "v").unwrap();
        }
        bucket.create_bucket("zsubbucket").unwrap();
        bucket.create_bucket("csubbucket").unwrap();
        assert_eq!(keys(bucket.as_bucket()), expected);
        assert_eq!(names(bucket.as_bucket()), [b"csubbucket", b"zsubbucket"]);
        tx.create_bucket("values").unwrap().put("k", "v").unwrap();
    });
    let tx = db.begin().unwrap();
    let bucket = tx.bucket("widgets").unwrap();
    assert_eq!(keys(bucket), expected);
    assert_eq!(names(bucket), [b"csubbucket", b"zsubbucket"]);
    assert!(names(tx.bucket("values").unwrap()).is_empty());

    let mut seen = 0;
    let stopped = bucket.iter().try_for_each(|entry| {
        seen += 1;
        if entry.unwrap().0 == b"baz" { Err("marker") } else { Ok(()) }
    });
    assert_eq!((stopped, seen), (Err("marker"), 2));
}

#[test]
fn keys_and_values_outside_of_the_limits_are_refused_and_those_at_them_taken() {
    let db = database();
    write(&db, |tx| {
        let mut bucket = tx.create_bucket("widgets").unwrap();
        assert!(matches!(bucket.put("", "bar"), Err(Error::KeyRequired)));
        let long = vec![1; MAX_KEY_SIZE + 1];
        assert!(
            matches!(bucket.put(&long, "bar"), Err(Error::KeyTooLarge { len, max: MAX_KEY_SIZE }) if len == long.len())
        );
        bucket.put(&long[1..], "bar").unwrap();
        let huge = vec![0; MAX_VALUE_SIZE + 1];
        assert!(matches!(bucket.put("foo", &huge), Err(Error::ValueTooLarge { max: MAX_VALUE_SIZE, .. })));
        assert_eq!(bucket.iter().count(), 1);
    });
}
