//! What Go's bbolt promises of databases, by its own tests' list (docs/bbolt-parity.md), where no other test here says it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::common::assert_check_clean;
use boltkv_storage::{Db, Error, FreelistStored, Options};

fn put(db: &Db, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
    db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(key, value)).unwrap();
}

fn get(db: &Db, key: &str) -> Option<Vec<u8>> {
    db.begin().unwrap().bucket("b").unwrap().get(key).unwrap().map(<[u8]>::to_vec)
}

fn len(file: &Path) -> u64 {
    fs::metadata(file).unwrap().len()
}

#[test]
fn a_new_file_knows_its_path_and_is_sound_when_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    for _ in 0..2 {
        let db = Db::open(&file).unwrap();
        assert_eq!(db.path(), Some(file.as_path()));
        assert!(!db.is_read_only());
        assert_check_clean(&db, "a new file");
        db.close().unwrap();
    }
}

#[test]
fn many_threads_open_and_close_one_file_in_turns() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..3 {
                    let db = crate::common::open_when_closed(&file);
                    let number = db.update(|tx| tx.create_bucket_if_not_exists("b")?.next_sequence()).unwrap();
                    assert!(number <= 24);
                }
            });
        }
    });
    let db = Db::open(&file).unwrap();
    assert_eq!(db.begin().unwrap().bucket("b").unwrap().sequence(), 24);
}

#[test]
fn a_path_that_leads_nowhere_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for path in [Path::new(""), &folder.path().join("missing").join("db")] {
        assert!(matches!(Db::open(path), Err(Error::Io { .. })), "{}", path.display());
    }
}

#[test]
fn the_second_meta_gives_the_page_size_where_the_first_is_spoilt() {
    let folder = tempfile::tempdir().unwrap();
    for power in 0..15 {
        let page_size = 1024_u32 << power;
        let file = folder.path().join(power.to_string());
        drop(Options::new().page_size(page_size).open(&file).unwrap());
        let mut bytes = fs::read(&file).unwrap();
        bytes[16 + 32] ^= 1;
        fs::write(&file, bytes).unwrap();
        let db = Db::open(&file).unwrap();
        assert_eq!(db.page_size(), page_size as usize);
        assert_check_clean(&db, "opened by its second meta");
    }
}

#[test]
fn opening_a_file_and_a_small_write_do_not_make_it_grow() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Db::open(&file).unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..10_000_u32).try_for_each(|number| bucket.put(number.to_be_bytes(), [0; 1000]))
    })
    .unwrap();
    db.close().unwrap();
    let before = len(&file);
    let db = Db::open(&file).unwrap();
    assert_eq!(len(&file), before);
    put(&db, [0], [0]);
    db.close().unwrap();
    assert!(len(&file) <= before + 5 * 4096, "{before} and then {}", len(&file));
}

#[test]
#[ignore = "writes 1.1 GiB"]
fn opening_a_file_of_more_than_a_gib_and_a_small_write_do_not_make_it_grow() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Db::open(&file).unwrap();
    for number in 0..18_u32 {
        put(&db, number.to_be_bytes(), vec![7; 64 << 20]);
    }
    db.close().unwrap();
    let before = len(&file);
    assert!(before > 1 << 30);
    let db = Db::open(&file).unwrap();
    put(&db, [0], [0]);
    assert_check_clean(&db, "beyond a GiB");
    db.close().unwrap();
    assert!(len(&file) <= before + 5 * 4096, "{before} and then {}", len(&file));
}

#[test]
fn a_read_only_database_reads_and_refuses_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Db::open(&file).unwrap();
    put(&db, "foo", "bar");
    db.close().unwrap();
    let before = fs::read(&file).unwrap();
    let db = Options::new().read_only(true).open(&file).unwrap();
    assert!(db.is_read_only());
    assert_eq!(get(&db, "foo").as_deref(), Some(&b"bar"[..]));
    assert!(matches!(db.begin_mut(), Err(Error::ReadOnly)));
    assert!(matches!(db.update(|tx| tx.create_bucket("x").map(|_| ())), Err(Error::ReadOnly)));
    assert!(matches!(db.sync(), Err(Error::ReadOnly)));
    db.close().unwrap();
    assert!(fs::read(&file).unwrap() == before, "the file was touched");
}

#[test]
fn larger_pages_make_a_larger_file() {
    let folder = tempfile::tempdir().unwrap();
    let lengths = [8192, 16_384].map(|page_size| {
        let file = folder.path().join(page_size.to_string());
        let db = Options::new().page_size(page_size).open(&file).unwrap();
        assert_eq!(db.page_size(), page_size as usize);
        len(&file)
    });
    assert_eq!(lengths, [4 * 8192, 4 * 16_384]);
}

#[test]
fn the_free_pages_are_the_same_whether_the_list_was_stored_or_is_found_by_walking() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let open = |stored| Options::new().freelist(stored).open(&file).unwrap();
    let db = open(FreelistStored::Never);
    db.update(|tx| (0..100_u32).try_for_each(|name| tx.create_bucket(name.to_string())?.put("k", [0; 8192]))).unwrap();
    db.update(|tx| (0..50_u32).try_for_each(|name| tx.bucket_mut(name.to_string())?.delete("k").map(|_| ()))).unwrap();
    db.close().unwrap();

    let free = |db: &Db| db.stats().free_pages.unwrap();
    let db = open(FreelistStored::Never);
    let found = free(&db);
    assert!(found >= 100, "fifty values of three pages were deleted: {found}");
    db.close().unwrap();
    let db = open(FreelistStored::Always);
    assert_eq!(free(&db), found);
    put(&db, "k", "v");
    assert_check_clean(&db, "the list stored again");
    db.close().unwrap();
    let db = open(FreelistStored::Always);
    assert_check_clean(&db, "the list read again");
    assert!(free(&db) > 90);
}

#[test]
fn a_write_transaction_has_the_number_after_the_last_one() {
    let db = Options::new().open_in_memory().unwrap();
    for _ in 0..3 {
        let before = db.begin().unwrap().id();
        let tx = db.begin_mut().unwrap();
        assert_eq!(tx.id(), before + 1);
        assert_eq!(tx.commit().unwrap(), before + 1);
    }
}

#[test]
fn transactions_outlive_the_handle_that_began_them_and_keep_the_file_locked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let is_locked = || matches!(Options::new().timeout(Duration::ZERO).open(&file), Err(Error::AlreadyOpen { .. }));
    let db = Db::open(&file).unwrap();
    put(&db, "k", "before");
    let reader = db.begin().unwrap();
    db.close().unwrap();
    assert!(is_locked());
    assert_eq!(reader.bucket("b").unwrap().get("k").unwrap(), Some(&b"before"[..]));
    drop(reader);
    assert!(!is_locked());

    let db = Db::open(&file).unwrap();
    let mut writer = db.begin_mut().unwrap();
    drop(db);
    assert!(is_locked());
    writer.bucket_mut("b").unwrap().put("k", "after").unwrap();
    writer.commit().unwrap();
    assert!(!is_locked());
    assert_eq!(get(&Db::open(&file).unwrap(), "k").as_deref(), Some(&b"after"[..]));
}

#[test]
fn update_commits_what_returns_and_undoes_what_fails_or_panics() {
    let db = Options::new().open_in_memory().unwrap();
    put(&db, "k", "kept");
    let failed: Result<(), Error> = db.update(|tx| {
        tx.bucket_mut("b")?.put("k", "lost")?;
        Err(Error::KeyRequired)
    });
    assert!(matches!(failed, Err(Error::KeyRequired)));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        db.update(|tx| -> Result<(), Error> {
            tx.bucket_mut("b")?.put("k", "lost")?;
            panic!("omg")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(get(&db, "k").as_deref(), Some(&b"kept"[..]));
    put(&db, "k", "the writer is free again");
    assert_check_clean(&db, "after a panic");
}

#[test]
fn view_hands_on_an_error_and_a_panic_and_its_reader_is_gone() {
    let db = Options::new().open_in_memory().unwrap();
    let failed: Result<(), Error> = db.view(|_| Err(Error::KeyRequired));
    assert!(matches!(failed, Err(Error::KeyRequired)));
    let panicked = catch_unwind(AssertUnwindSafe(|| db.view(|_| -> Result<(), Error> { panic!("omg") })));
    assert!(panicked.is_err());
    assert_eq!(db.stats().open_readers, 0);
}

#[test]
fn after_the_first_commit_two_pages_wait_for_the_next_transaction() {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| tx.create_bucket("widgets").map(|_| ())).unwrap();
    let stats = db.stats();
    assert_eq!((stats.free_pages, stats.pending_pages), (Some(0), Some(2)), "{stats:?}");
}

#[test]
fn a_file_that_is_beyond_its_limit_opens_and_stays_as_long_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = Db::open(&file).unwrap();
    put(&db, "large", vec![7; 3 << 20]);
    put(&db, "large", "");
    db.close().unwrap();
    let before = len(&file);
    let db = Options::new().max_size(1).open(&file).unwrap();
    put(&db, "small", "fits into the free pages");
    let refused = db.update(|tx| tx.bucket_mut("b")?.put("large", vec![7; 8 << 20]));
    assert!(matches!(refused, Err(Error::MaxSizeReached { max: Some(1) })), "{refused:?}");
    put(&db, "small", "again");
    assert_check_clean(&db, "beyond its limit");
    db.close().unwrap();
    assert_eq!(len(&file), before);
}

#[test]
fn a_map_larger_than_the_limit_changes_neither_opening_nor_growing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    put(&Db::open(&file).unwrap(), "large", vec![7; 2 << 20]);
    let before = len(&file);
    let beyond = Options::new().max_size(1).initial_map_size(2 * before).open(&file).unwrap();
    assert_eq!(beyond.begin().unwrap().bucket("b").unwrap().get("large").unwrap().map(<[u8]>::len), Some(2 << 20));
    drop(beyond);
    assert_eq!(len(&file), before, "neither opening nor mapping makes it grow");
    let limit = 8 << 20;
    let db = Options::new().max_size(limit).initial_map_size(2 * limit).open(&file).unwrap();
    for _ in 0..2 {
        let refused = db.update(|tx| tx.bucket_mut("b")?.put("larger", vec![7; 7 << 20]));
        assert!(matches!(refused, Err(Error::MaxSizeReached { max: Some(max) }) if max == limit), "{refused:?}");
        put(&db, "small", "fits");
    }
    assert_check_clean(&db, "at its limit, under a larger map");
    db.close().unwrap();
    assert!(len(&file) <= limit, "{}", len(&file));
}

#[test]
fn a_value_of_256_mib_is_committed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let huge = 256 << 20;
    put(&Db::open(&file).unwrap(), "huge", vec![7; huge]);
    let db = Db::open(&file).unwrap();
    let tx = db.begin().unwrap();
    let value = tx.bucket("b").unwrap().get("huge").unwrap().unwrap();
    assert_eq!((value.len(), value[0], value[huge - 1]), (huge, 7, 7));
    assert_check_clean(&db, "a huge value");
}

#[test]
fn many_databases_are_written_in_one_process() {
    let folder = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for number in 0..30_u32 {
            let file = folder.path().join(number.to_string());
            scope.spawn(move || {
                let db = Db::open(&file).unwrap();
                for key in 0..5_u32 {
                    put(&db, key.to_be_bytes(), [7; 100]);
                }
                assert_check_clean(&db, "one of many");
            });
        }
    });
}
