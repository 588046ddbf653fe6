//! What Go's bbolt promises of transactions and of its check, by its own tests' list (docs/bbolt-parity.md), where no
//! other test here says it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::path::Path;

use crate::common::assert_check_clean;
use boltkv_storage::{Db, Error, FreelistStored, MAX_KEY_SIZE, Options, TxMut};

const PAGE: usize = 4096;

fn database() -> Db {
    Options::new().open_in_memory().unwrap()
}

fn write(db: &Db, change: impl FnOnce(&mut TxMut)) {
    let mut tx = db.begin_mut().unwrap();
    change(&mut tx);
    tx.commit().unwrap();
}

fn is_missing<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::BucketNotFound { .. }))
}

#[test]
fn a_created_bucket_is_there_at_once_and_in_later_transactions() {
    let db = database();
    write(&db, |tx| {
        assert!(is_missing(&tx.bucket("widgets")));
        tx.create_bucket("widgets").unwrap();
        assert!(tx.bucket("widgets").is_ok());
        assert!(matches!(tx.create_bucket("widgets"), Err(Error::BucketExists { .. })));
        tx.create_bucket_if_not_exists("widgets").unwrap().put("k", "v").unwrap();
        tx.create_bucket_if_not_exists("woojits").unwrap();
    });
    let tx = db.begin().unwrap();
    assert_eq!(tx.bucket("widgets").unwrap().get("k").unwrap(), Some(&b"v"[..]));
    assert!(tx.bucket("woojits").is_ok());
    assert!(is_missing(&tx.bucket("wootjits")));
}

#[test]
fn a_bucket_needs_a_name_of_a_keys_length() {
    let db = database();
    write(&db, |tx| {
        let long = vec![1; MAX_KEY_SIZE + 1];
        assert!(matches!(tx.create_bucket(""), Err(Error::BucketNameRequired)));
        assert!(matches!(tx.create_bucket_if_not_exists(""), Err(Error::BucketNameRequired)));
        assert!(matches!(tx.create_bucket(&long), Err(Error::KeyTooLarge { .. })));
        tx.create_bucket(&long[1..]).unwrap();
        assert_eq!(tx.buckets().count(), 1);
    });
}

#[test]
fn a_deleted_bucket_is_gone_and_one_of_its_name_starts_anew() {
    let db = database();
    write(&db, |tx| {
        let mut widgets = tx.create_bucket("widgets").unwrap();
        widgets.put("foo", "bar").unwrap();
        widgets.set_sequence(7).unwrap();
    });
    write(&db, |tx| {
        tx.delete_bucket("widgets").unwrap();
        assert!(is_missing(&tx.bucket("widgets")));
        assert!(is_missing(&tx.delete_bucket("widgets")));
    });
    write(&db, |tx| {
        let widgets = tx.create_bucket("widgets").unwrap();
        assert_eq!(widgets.get("foo").unwrap(), None);
        assert_eq!(widgets.sequence(), 0);
    });
    assert_check_clean(&db, "a bucket deleted and made again");
}

#[test]
fn the_top_level_buckets_are_walked_in_order_until_their_user_stops() {
    let db = database();
    write(&db, |tx| {
        for name in ["woojits", "widgets"] {
            tx.create_bucket(name).unwrap();
        }
        let mut cursor = tx.cursor();
        assert_eq!(cursor.first().unwrap(), Some((&b"widgets"[..], None)));
        assert_eq!(cursor.next().unwrap(), Some((&b"woojits"[..], None)));
        assert_eq!(cursor.next().unwrap(), None);
    });
    let tx = db.begin().unwrap();
    let names: Vec<Vec<u8>> = tx.buckets().map(|found| found.unwrap().0.to_vec()).collect();
    assert_eq!(names, [b"widgets", b"woojits"]);
    let stopped = tx.buckets().try_for_each(|found| Err(found.unwrap().0.to_vec()));
    assert_eq!(stopped, Err(b"widgets".to_vec()));
}

#[test]
fn a_rolled_back_transaction_leaves_nothing_and_gives_back_the_pages_it_took() {
    let db = database();
    write(&db, |tx| tx.create_bucket("mybucket").unwrap().put("k", "v").unwrap());
    let free = || (db.stats().free_pages, db.stats().pending_pages, db.stats().pages);
    // What the last commit freed is sorted out when the next transaction begins.
    db.begin_mut().unwrap().rollback();
    let before = free();
    for _ in 0..3 {
        let mut tx = db.begin_mut().unwrap();
        tx.bucket_mut("mybucket").unwrap().put("k", vec![7; 100_000]).unwrap();
        tx.create_bucket("other").unwrap();
        tx.rollback();
        assert_eq!(free(), before);
    }
    let tx = db.begin().unwrap();
    assert_eq!(tx.bucket("mybucket").unwrap().get("k").unwrap(), Some(&b"v"[..]));
    assert!(is_missing(&tx.bucket("other")));
}

#[test]
fn readers_of_several_ages_keep_their_states_while_pages_between_them_are_used_again() {
    let db = database();
    let put = |key: &str, value: &str| {
        write(&db, |tx| tx.create_bucket_if_not_exists("b").unwrap().put(key, value).unwrap());
    };
    let get = |tx: &boltkv_storage::Tx, key: &str| {
        tx.bucket("b").unwrap().get(key).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
    };
    put("k1", "v1");
    let first = db.begin().unwrap();
    put("k2", "v2");
    let held: Vec<_> = (0..5)
        .map(|round| {
            put("k3", &format!("v{round}"));
            db.begin().unwrap()
        })
        .collect();
    write(&db, |tx| assert!(tx.bucket_mut("b").unwrap().delete("k1").unwrap()));
    let last = db.begin().unwrap();
    let pending = db.stats().pending_pages.unwrap();
    drop(held);
    put("k4", "v4");
    db.begin_mut().unwrap().rollback();
    assert!(db.stats().pending_pages.unwrap() < pending, "what only the held readers could reach is free");

    assert_eq!((get(&first, "k1"), get(&first, "k2")), (Some("v1".into()), None));
    assert_eq!((get(&last, "k1"), get(&last, "k3")), (None, Some("v4".into())));
    assert_eq!(get(&db.begin().unwrap(), "k4"), Some("v4".into()));
    assert_check_clean(&db, "with readers open");
}

#[test]
fn a_database_that_is_open_read_only_can_be_checked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    for stored in [FreelistStored::Always, FreelistStored::Never] {
        let db = Options::new().freelist(stored).open(&file).unwrap();
        write(&db, |tx| tx.create_bucket_if_not_exists("widgets").unwrap().put("foo", [7; 3000]).unwrap());
        drop(db);
        let db = Options::new().read_only(true).open(&file).unwrap();
        assert_check_clean(&db, "read-only");
        assert!(matches!(db.begin_mut(), Err(Error::ReadOnly)));
    }
}

#[test]
fn a_file_is_lengthened_in_the_same_steps_whether_or_not_the_freelist_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let lengths = [FreelistStored::Always, FreelistStored::Never].map(|stored| {
        let file = folder.path().join(format!("{stored:?}"));
        let db = Options::new().freelist(stored).open(&file).unwrap();
        let mut lengths = Vec::new();
        let mut number = 0_u32;
        while lengths.last().is_none_or(|&len| len <= 16 << 20) {
            write(&db, |tx| {
                let mut bucket = tx.create_bucket_if_not_exists("b").unwrap();
                bucket.put(number.to_be_bytes(), vec![7; 160 << 10]).unwrap();
            });
            number += 1;
            let len = std::fs::metadata(&file).unwrap().len();
            if lengths.last() != Some(&len) {
                lengths.push(len);
            }
        }
        let beyond = lengths.pop().unwrap();
        assert!(lengths.iter().all(|len| len.is_power_of_two()), "{lengths:?}");
        assert!(beyond > 32 << 20, "beyond 16 MiB it grows by 16 MiB more than it needs: {beyond}");
        lengths
    });
    assert_eq!(lengths[0].last(), lengths[1].last());
}

/// A file with one bucket whose root is a branch, and the places of its pages.
struct Branched {
    bytes: Vec<u8>,
    root: usize,
    leaves: Vec<usize>,
}

fn u64_at(bytes: &[u8], at: usize) -> usize {
    usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap()
}

impl Branched {
    fn new(folder: &Path) -> Self {
        let file = folder.join("sound.db");
        let db = Options::new().page_size(4096).open(&file).unwrap();
        write(&db, |tx| {
            let mut bucket = tx.create_bucket("data").unwrap();
            (0..100_u32).for_each(|number| bucket.put(format!("{number:04}"), [0; 100]).unwrap());
        });
        drop(db);
        let bytes = std::fs::read(&file).unwrap();
        // The only branch page of the file.
        let root = (2..bytes.len() / PAGE).find(|page| bytes[page * PAGE + 8] == 1).unwrap();
        let count = usize::from(bytes[root * PAGE + 10]);
        let leaves = (0..count).map(|slot| u64_at(&bytes, root * PAGE + 16 + slot * 16 + 8)).collect();
        Self { bytes, root, leaves }
    }

    /// What the check finds after the damage.
    fn problems(&self, folder: &Path, damage: impl FnOnce(&mut [u8])) -> Vec<String> {
        let mut bytes = self.bytes.clone();
        damage(&mut bytes);
        let file = folder.join("damaged.db");
        std::fs::write(&file, bytes).unwrap();
        let db = Options::new().read_only(true).open(&file).unwrap();
        db.check().unwrap().iter().map(ToString::to_string).collect()
    }
}

#[test]
fn check_names_the_page_whose_keys_are_out_of_order_and_no_sound_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = Branched::new(folder.path());
    assert!(file.leaves.len() > 2);
    assert!(file.problems(folder.path(), |_| {}).is_empty());
    for &victim in &file.leaves {
        let problems = file.problems(folder.path(), |bytes| {
            let element = victim * PAGE + 16 + 16;
            let pos = u32::from_le_bytes(bytes[element + 4..element + 8].try_into().unwrap());
            let key = element + pos as usize;
            bytes[key] = 0;
        });
        assert!(!problems.is_empty(), "page {victim}");
        assert!(problems.iter().all(|problem| problem.contains(&format!("page {victim}"))), "{victim}: {problems:?}");
    }
}

#[test]
fn check_reports_a_root_of_no_known_type_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = Branched::new(folder.path());
    let problems = file.problems(folder.path(), |bytes| bytes[file.root * PAGE + 8] = 0);
    assert!(problems.iter().any(|problem| problem.contains(&format!("page {}", file.root))), "{problems:?}");
    // Its leaves can no more be reached.
    assert!(problems.len() > 1, "{problems:?}");
}

#[test]
fn check_reports_a_page_that_is_not_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = Branched::new(folder.path());
    let (first, second) = (file.leaves[0], file.leaves[1]);
    let problems = file.problems(folder.path(), |bytes| {
        bytes.copy_within(second * PAGE..(second + 1) * PAGE, first * PAGE);
    });
    assert!(problems.iter().any(|problem| problem.contains(&format!("page {first}"))), "{problems:?}");
}

#[test]
fn check_reports_a_leaf_that_was_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let file = Branched::new(folder.path());
    for &victim in &file.leaves {
        let problems = file.problems(folder.path(), |bytes| bytes[victim * PAGE + 16..][..40].fill(0xff));
        assert!(problems.iter().any(|problem| problem.contains(&format!("page {victim}"))), "{victim}: {problems:?}");
    }
}

#[test]
fn keys_are_copied_when_they_are_put() {
    let db = database();
    write(&db, |tx| {
        let mut bucket = tx.create_bucket("b").unwrap();
        let mut key = *b"00000000";
        for number in [10_u64, 3, 7, 1] {
            key.copy_from_slice(&number.to_be_bytes());
            bucket.put(key, key).unwrap();
            // What becomes of the caller's bytes is nothing to the tree.
            key.fill(0xff);
        }
    });
    let tx = db.begin().unwrap();
    let keys: Vec<u64> =
        tx.bucket("b").unwrap().iter().map(|entry| u64_at(entry.unwrap().0, 0) as u64).map(u64::swap_bytes).collect();
    assert_eq!(keys, [1, 3, 7, 10]);
    assert_check_clean(&db, "keys put from one buffer");
}
