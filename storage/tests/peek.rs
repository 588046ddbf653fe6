//! A file that somebody else has open and writes, read without its lock: what is read is of one transaction.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::fmt::Write as _;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use boltkv_storage::tools::{Peek, PeekState};
use boltkv_storage::{Bucket, Db, Error, FreelistStored, JournalOptions, Options};
use common::peer::peer;
use common::random::Random;
use common::small_file::{PAGE, SmallFile, odd_numbers};

const NONE: &[&str] = &[];

/// How often each file is read while it is written; `BOLTKV_PEEKS=1000000` takes some minutes.
fn peeks() -> u64 {
    std::env::var("BOLTKV_PEEKS").map_or(20_000, |peeks| peeks.parse().unwrap())
}

/// All entries of a bucket, a piece at a time.
fn entries(peek: &mut Peek, bucket: &[Vec<u8>], at_once: usize) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let mut all: Vec<(Vec<u8>, Option<Vec<u8>>)> = Vec::new();
    loop {
        let last = all.last().map(|(key, _)| key.clone());
        let from = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let piece = peek.look(|state| state.entries(bucket, from, at_once)).unwrap().value;
        all.extend(piece.entries);
        if !piece.more {
            return all;
        }
    }
}

/// Everything in a bucket, as the engine has it.
fn expected(bucket: Bucket<'_>) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    bucket.iter().map(Result::unwrap).map(|(key, value)| (key.into(), value.map(Into::into))).collect()
}

fn assert_same(peek: &mut Peek, bucket: Bucket<'_>, path: &mut Vec<Vec<u8>>) {
    let all = expected(bucket);
    for at_once in [0, 100, usize::MAX] {
        assert_eq!(entries(peek, path, at_once), all, "{path:?}, {at_once} bytes at once");
    }
    for (key, value) in all {
        // Places between the keys, too: what is there is found, what is not is not.
        let between = [&key[..], b"\0"].concat();
        let behind = peek.look(|state| state.entries(path, Bound::Included(&between), 0)).unwrap().value.entries;
        assert!(behind.first().is_none_or(|(next, _)| *next > key));
        assert_eq!(peek.look(|state| state.get(path, &between)).unwrap().value, None);
        if value.is_some() {
            assert_eq!(peek.look(|state| state.get(path, &key)).unwrap().value, value);
            continue;
        }
        let refused = peek.look(|state| state.get(path, &key));
        assert!(matches!(refused, Err(Error::IncompatibleValue { is_bucket: true, .. })), "{refused:?}");
        let inner = bucket.bucket(&key).unwrap();
        path.push(key);
        assert_same(peek, inner, path);
        path.pop();
    }
}

#[test]
fn everything_in_a_file_is_as_a_transaction_has_it() {
    let small = SmallFile::new();
    let path = small.write("sound.db", &small.sound);
    let db = Options::new().open(&path).unwrap();
    let tx = db.begin().unwrap();
    let mut peek = Peek::open(&path).unwrap();
    let names: Vec<Vec<u8>> = tx.buckets().map(|name| name.unwrap().0.to_vec()).collect();
    let at_top = entries(&mut peek, &[], 0);
    assert_eq!(at_top, names.iter().map(|name| (name.clone(), None)).collect::<Vec<_>>());
    for name in names {
        let bucket = tx.bucket(&name).unwrap();
        assert_same(&mut peek, bucket, &mut vec![name]);
    }
    let state = peek.look(|state| Ok((state.meta().txid, state.free_pages()?))).unwrap();
    assert_eq!((state.txid, state.value.0), (tx.id(), tx.id()));
    assert_eq!(state.value.1, db.stats().free_pages);
}

#[test]
fn what_is_not_there_has_a_name() {
    let small = SmallFile::new();
    let mut peek = Peek::open(small.write("sound.db", &small.sound)).unwrap();
    let said = |error: Error| error.to_string();
    let missing = peek.look(|state| state.get(&["tree", "none"], b"k")).map_err(said);
    assert_eq!(missing, Err("no bucket \"none\" in bucket \"tree\"".into()));
    let value = peek.look(|state| state.get(&["inline", "key"], b"k")).map_err(said);
    assert_eq!(value, Err("\"key\" in bucket \"inline\" is a value, not a bucket".into()));
    let bucket = peek.look(|state| state.get(NONE, b"tree")).map_err(said);
    assert_eq!(bucket, Err("\"tree\" is a bucket, not a value".into()));
    assert!(matches!(Peek::open(small.write("empty.db", b"")), Err(Error::EmptyFile)));
    assert!(matches!(Peek::open(small.write("text.db", &[b'x'; 3 * PAGE])), Err(Error::NotABoltFile)));
}

/// Each word of each page in turn becomes each of the numbers that break things: an error, or something odd, but no panic
/// and no end of memory.
#[test]
fn no_number_in_a_file_leads_outside_of_it() {
    let small = SmallFile::new();
    let mut refused = 0;
    for at in (0..small.pages() * PAGE).step_by(8).filter(|at| at % PAGE < 64) {
        for number in odd_numbers(small.pages()) {
            let mut bytes = small.sound.clone();
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
            let Ok(mut peek) = Peek::open(small.write("odd.db", &bytes)) else { continue };
            let all = peek.look(|state| {
                let tree = state.entries(&["tree"], Bound::Unbounded, 1 << 20)?;
                let inner = state.entries(&["tree", "k50 inner"], Bound::Included(b"k"), 1 << 20)?;
                let found = (state.get(&["inline"], b"key")?, state.get(&["tree"], b"large")?, state.free_pages()?);
                Ok((tree, inner, found))
            });
            refused += usize::from(all.is_err());
        }
    }
    assert!(refused > 100, "{refused}");
}

/// What each transaction of the writers leaves; see `tests/go/churn.go`.
fn churn_once(db: &Db, number: u64, random: &mut Random, count: &mut u64) -> Result<(), Error> {
    db.update(|tx| {
        let mut churn = tx.create_bucket_if_not_exists("churn")?;
        for _ in 0..30 {
            let key = format!("c{:04}", random.below(2000));
            *count -= u64::from(churn.delete(&key)?);
            if random.below(2) == 0 {
                *count += 1;
                let value = key.clone() + &"v".repeat(random.below(60) * random.below(60));
                churn.put(&key, &value)?;
            }
        }
        let mut marks = tx.create_bucket_if_not_exists("marks")?;
        (0..10).try_for_each(|mark| marks.put(format!("m{mark}"), number.to_string()))?;
        marks.put("count", count.to_string())?;
        tx.create_bucket_if_not_exists("deep")?.create_bucket_if_not_exists("inner")?.put("mark", number.to_string())
    })
}

/// The number that a value is. While a file changes, a look at it may find anything: then it is done again.
fn number(value: Option<Vec<u8>>) -> Option<u64> {
    String::from_utf8(value?).ok()?.parse().ok()
}

/// One look at many places: they are of one transaction. `all` counts every key, which not every writer leaves time for.
fn assert_of_one_transaction(state: &PeekState<'_>, all: bool) -> Result<(Option<u64>, String), Error> {
    let mut wrong = String::new();
    let first = number(state.get(&["marks"], b"m0")?);
    for (bucket, key) in [(&["marks"][..], "m5"), (&["marks"], "m9"), (&["deep", "inner"], "mark")] {
        let other = number(state.get(bucket, key.as_bytes())?);
        if other != first {
            let _ = write!(wrong, "{key} is of {other:?}, m0 of {first:?}; ");
        }
    }
    let (some, at_once) = if all { (Bound::Unbounded, usize::MAX) } else { (Bound::Included(&b"c1"[..]), 4000) };
    let churn = state.entries(&["churn"], some, at_once)?.entries;
    let count = number(state.get(&["marks"], b"count")?);
    if all && Some(churn.len() as u64) != count {
        let _ = write!(wrong, "{} keys, not {count:?}; ", churn.len());
    }
    for (key, value) in &churn {
        if !value.as_ref().is_some_and(|value| value.starts_with(key)) {
            let _ = write!(wrong, "the value of {} is another's; ", key.escape_ascii());
        }
    }
    if !churn.is_sorted_by(|one, other| one.0 < other.0) {
        wrong.push_str("keys are not in order; ");
    }
    Ok((first, wrong))
}

/// Reads a file that is being written, until that many transactions were seen: never anything wrong, and never
/// backwards. Returns how many it saw; on a disk where the writer is slow it looks longer, though not for ever.
fn peek_at(file: &Path, least: u64) -> u64 {
    let mut peek = Peek::open(file).unwrap();
    let (mut before, mut seen) = (0, 0);
    for round in 0..100 * peeks() {
        if round >= peeks() && seen >= least {
            break;
        }
        // A look that a busy writer leaves no time for is told as such, and never answered wrongly.
        let looked = match peek.look(|state| assert_of_one_transaction(state, round % 64 == 0)) {
            Ok(looked) => looked,
            Err(Error::FileChanging { .. }) if round % 64 == 0 => continue,
            Err(error) => panic!("{error}"),
        };
        let (number, wrong) = looked.value;
        assert_eq!(wrong, "", "transaction {}", looked.txid);
        let number = number.unwrap();
        assert!(number >= before, "{number} after {before}");
        seen += u64::from(number > before);
        before = number;
    }
    seen
}

#[boltkv_needs::program("go")]
#[test]
fn a_file_that_bbolt_writes_is_read_in_whole_states() {
    let Some(peer) = peer() else { return };
    for flags in [&[][..], &["--no-freelist"], &["--freelist=hashmap", "--page-size=1024"]] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("churn.db");
        let writing = peer.churn(&file, flags);
        let seen = peek_at(&file, 11);
        drop(writing);
        assert!(seen > 10, "{flags:?}: it was written {seen} times");
        peer.assert_check_clean(&file, "after it was read");
    }
}

#[test]
fn a_file_that_this_engine_writes_is_read_in_whole_states() {
    let journal = JournalOptions::new().checkpoint_size(1 << 20);
    let plain = Options::new();
    let modes = [
        ("list stored", plain.clone()),
        ("list stored on a clean close", plain.clone().freelist(FreelistStored::OnCleanClose)),
        ("with a journal", plain.journal(journal)),
    ];
    for (name, options) in modes {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("churn.db");
        let db = options.open(&file).unwrap();
        let (mut random, mut count) = (Random::new(7), 0);
        churn_once(&db, 0, &mut random, &mut count).unwrap();
        drop(db);
        let db = options.open(&file).unwrap();
        let ended = AtomicBool::new(false);
        let seen = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for number in 1.. {
                    if ended.load(Ordering::Relaxed) {
                        return;
                    }
                    churn_once(&db, number, &mut random, &mut count).unwrap();
                    if number % 64 == 0 {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
            });
            let seen = std::panic::catch_unwind(|| peek_at(&file, 2));
            ended.store(true, Ordering::Relaxed);
            writer.join().unwrap();
            seen.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        // With a journal a state comes into the file by a checkpoint only.
        assert!(seen > 1, "{name}: of {} transactions {seen} were seen", db.stats().txid);
    }
}
