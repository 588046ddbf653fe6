//! A database in memory becomes as large as one in a file, and shrinks as well.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use boltkv_storage::Options;

/// Bytes of a value: what a commit adds.
const VALUE: usize = 1 << 20;

#[test]
fn what_is_committed_is_there_however_far_the_database_grows() {
    // Past 16 MiB it grows by more than it needs, past its map before its map does: at 48 MiB for the first time.
    let db = Options::new().open_in_memory().unwrap();
    let value = |n: u8| vec![n; VALUE];
    for n in 0..140_u8 {
        db.update(|tx| tx.create_bucket_if_not_exists("b")?.put([n], value(n))).unwrap();
        let tx = db.begin().unwrap();
        let bucket = tx.bucket("b").unwrap();
        assert!((0..=n).all(|n| bucket.get([n]).unwrap() == Some(&value(n)[..])), "after {n}");
        if n % 10 == 0 {
            assert_eq!(tx.check().unwrap(), [], "after {n}");
        }
    }
    db.update(|tx| tx.delete_bucket("b")).unwrap();
    let shrunk = db.shrink().unwrap();
    assert!(shrunk.before > 140 * VALUE as u64 && shrunk.after < VALUE as u64, "{shrunk:?}");
    assert_eq!(db.check().unwrap(), []);
}
