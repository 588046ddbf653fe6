//! A file that may not grow: what is refused, what it keeps room for, and that it is never stuck.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::path::Path;

use crate::common::{assert_check_clean, committed};
use boltkv_storage::{Db, Durability, Error, JournalOptions, Options, Result};

const MAX: u64 = 2 << 20;
const RESERVE: u64 = 128 << 10;

fn limited() -> Options {
    Options::new().page_size(4096).max_size(MAX).max_size_reserve(RESERVE)
}

fn put(db: &Db, key: u32, len: usize) -> Result<()> {
    db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(key.to_be_bytes(), vec![7; len]))
}

fn delete(db: &Db, key: u32) -> Result<()> {
    db.update(|tx| tx.bucket_mut("b")?.delete(key.to_be_bytes()).map(drop))
}

/// As a server does it: what was freed since the last checkpoint is brought back before a refusal counts.
fn or_after_a_checkpoint(db: &Db, write: impl Fn() -> Result<()>) -> Result<()> {
    match write() {
        Err(Error::MaxSizeReached { .. }) => {
            db.checkpoint().unwrap();
            write()
        }
        done => done,
    }
}

/// Puts until there is no room; how many.
fn fill(db: &Db, len: usize) -> u32 {
    for key in 0.. {
        match or_after_a_checkpoint(db, || put(db, key, len)) {
            Ok(()) => assert!(key < 1 << 16, "it has no end"),
            Err(Error::MaxSizeReached { max: Some(MAX) }) => return key,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("there are more numbers than room")
}

fn len(file: &Path) -> u64 {
    file.metadata().unwrap().len()
}

#[test]
fn a_full_file_is_emptied_by_deletions_and_filled_again() {
    let folder = tempfile::tempdir().unwrap();
    let quick = || limited().durability(Durability::Never);
    for (case, (options, value)) in
        [(quick(), 700), (quick(), 20_000), (quick().journal(JournalOptions::new()), 700)].into_iter().enumerate()
    {
        let file = folder.path().join(case.to_string());
        let db = options.clone().open(&file).unwrap();
        empty_and_fill_again(&db, value);
        let before = committed(&db);
        db.close().unwrap();
        assert!(len(&file) <= MAX, "{}", len(&file));
        let db = options.open(&file).unwrap();
        assert_eq!(committed(&db), before);
        or_after_a_checkpoint(&db, || db.update(|tx| tx.delete_bucket("b"))).unwrap();
        assert!(fill(&db, value) > 10);
    }
}

#[test]
fn so_is_one_of_which_every_commit_is_synced() {
    for value in [100, 3000, 20_000] {
        empty_and_fill_again(&limited().open_in_memory().unwrap(), value);
    }
}

fn empty_and_fill_again(db: &Db, value: usize) {
    let keys = fill(db, value);
    for round in 0..2 {
        assert!(u64::from(keys) * value as u64 > MAX / 3, "{keys} of {value}");
        // What takes no more than it frees is no addition.
        or_after_a_checkpoint(db, || put(db, keys / 2, value)).unwrap();
        for key in 0..keys {
            let done = or_after_a_checkpoint(db, || delete(db, key));
            done.unwrap_or_else(|error| panic!("round {round}, {key} of {keys}: {error}"));
        }
        let again = fill(db, value);
        assert!(again >= keys * 9 / 10, "{again} find room after {keys}");
        assert_check_clean(db, "full");
    }
}

#[test]
fn what_is_kept_for_deletions_lets_them_be_done_also_while_a_reader_keeps_all_pages() {
    let while_read = |reserve| {
        let db = limited().max_size_reserve(reserve).open_in_memory().unwrap();
        let keys = fill(&db, 3000);
        let reader = db.begin().unwrap();
        let done = (0..keys).take_while(|&key| delete(&db, key).is_ok()).count();
        assert_eq!(reader.bucket("b").unwrap().get(0_u32.to_be_bytes()).unwrap().map(<[u8]>::len), Some(3000));
        drop(reader);
        let emptied = (0..keys).all(|key| delete(&db, key).is_ok());
        assert_check_clean(&db, "emptied");
        (done, emptied)
    };
    let (done, emptied) = while_read(RESERVE);
    assert!(done >= 4 && emptied, "{done} while it was read");
    let (fewer, emptied) = while_read(0);
    assert!(fewer < done && emptied, "{fewer} without room for them, {done} with it");
}

#[test]
fn what_a_journal_has_is_done_again_whatever_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let (file, copy) = (folder.path().join("db"), folder.path().join("copy"));
    let journal = || Options::new().page_size(4096).journal(JournalOptions::new());
    let db = journal().open(&file).unwrap();
    put(&db, 0, 1).unwrap();
    db.checkpoint().unwrap();
    for key in 1..300 {
        put(&db, key, 20_000).unwrap();
    }
    let before = committed(&db);
    // As a killed process leaves them.
    std::fs::copy(&file, &copy).unwrap();
    let (from, to) = (folder.path().join("db-journal"), folder.path().join("copy-journal"));
    std::fs::create_dir(&to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    let db = journal().max_size(MAX).max_size_reserve(RESERVE).open(&copy).unwrap();
    assert_eq!(committed(&db), before);
    assert_eq!(db.stats().max_size, Some(MAX));
    assert!(matches!(put(&db, 300, 8 << 20), Err(Error::MaxSizeReached { .. })));
    db.update(|tx| tx.delete_bucket("b")).unwrap();
    db.close().unwrap();
}

#[test]
fn a_file_that_is_larger_already_and_has_no_free_page_is_emptied_by_deletions() {
    let folder = tempfile::tempdir().unwrap();
    let (loose, tight) = (folder.path().join("loose"), folder.path().join("tight"));
    let db = Options::new().page_size(4096).open(&loose).unwrap();
    for key in 0..200 {
        put(&db, key, 30_000).unwrap();
    }
    db.begin().unwrap().compact_to_file(&tight, 0o600, u64::MAX, &mut |_| ()).unwrap();
    // No room behind the last page, as where a file was copied with its size cut.
    let used = Db::open(&tight).unwrap().stats().pages * 4096;
    std::fs::File::options().write(true).open(&tight).unwrap().set_len(used).unwrap();
    for journal in [false, true] {
        let file = folder.path().join(format!("{journal}"));
        std::fs::copy(&tight, &file).unwrap();
        let options = if journal { limited().journal(JournalOptions::new()) } else { limited() };
        let db = options.open(&file).unwrap();
        assert!(matches!(put(&db, 1000, 30_000), Err(Error::MaxSizeReached { max: Some(MAX) })));
        for key in 0..200 {
            or_after_a_checkpoint(&db, || delete(&db, key)).unwrap();
            assert!(len(&file) <= used + RESERVE, "{key}: {} after {used}", len(&file));
        }
        assert_check_clean(&db, "emptied");
        db.shrink().unwrap();
        assert!(len(&file) <= MAX, "{}", len(&file));
        put(&db, 1, 30_000).unwrap();
    }
}

/// What is in memory needs pages, and a checkpoint is what frees some: it takes what there is, and is not refused for the want
/// of more.
#[test]
fn a_full_file_with_leaves_in_memory_goes_on_after_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let db = limited().journal(JournalOptions::new().memory(1 << 20)).open(folder.path().join("a.db")).unwrap();
    (0..9000).for_each(|key| put(&db, key, 100).unwrap());
    let mut refused = 0;
    for n in 0..24_000 {
        let key = n * 31 % 9000;
        if let Err(error) = put(&db, key, 100) {
            assert!(matches!(error, Error::MaxSizeReached { .. }), "{error}");
            refused += 1;
            db.checkpoint().unwrap();
            put(&db, key, 100).unwrap();
        }
    }
    assert!(refused > 0, "the file is to be full now and then");
    assert_check_clean(&db, "after it was full");
}

/// What a journal has beyond the file is done again within the limit that it was written under.
#[test]
fn a_crash_does_not_make_the_file_larger_than_it_may_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("0.db");
    let journal = JournalOptions::new().memory(64 << 10).checkpoint_size(16 << 20);
    let options = Options::new().page_size(1024).max_size(8 << 20).journal(journal).durability(Durability::Never);
    let key = |number: u32| number.wrapping_mul(0x9E37_79B1).to_be_bytes();
    let db = options.open(&path).unwrap();
    let all = (0..20_000).map(key);
    db.update(|tx| {
        all.map(|key| (key, [0; 100])).try_for_each(|(k, v)| tx.create_bucket_if_not_exists("b")?.put(k, v))
    })
    .unwrap();
    db.checkpoint().unwrap();
    let mut db = db;
    let mut file = path;
    for round in 1..5_u8 {
        for first in 0..2000 {
            let keys = (0..10).map(|number| key((first * 7 + number * 1999) % 20_000));
            let put = || db.update(|tx| keys.clone().try_for_each(|key| tx.bucket_mut("b")?.put(key, [round; 100])));
            or_after_a_checkpoint(&db, put).unwrap();
        }
        let killed = folder.path().join(format!("{round}.db"));
        crate::common::copy_as_killed(&file, &killed);
        (db, file) = (options.open(&killed).unwrap(), killed);
        let len = file.metadata().unwrap().len();
        assert!(len <= 8 << 20, "{len} bytes after crash {round}");
    }
    assert_check_clean(&db, "after the last");
}
