//! Churn for a while, with readers of all ages: the file's size, the process's memory and its open files level off.
//!
//! Some ten seconds as it stands; `BOLTKV_SOAK_SECONDS` makes it as long as one likes. It measures its own process, and
//! so has no second test beside it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use boltkv_storage::{Db, Durability, FreelistStored, Options, Tx};
use common::assert_check_clean;
use common::random::Random;

/// Keys that there can be at the most.
const KEYS: usize = 3000;
/// Readers held at a time.
const READERS: usize = 16;
/// Transactions of one round, after which the file is opened anew.
const ROUND: usize = 80;
/// Rounds that are left out of account: until then everything still grows to its size.
const WARM_UP: usize = 3;

/// What must level off, each at its highest.
#[derive(Debug, Default, Clone, Copy)]
struct Peak {
    /// Bytes of the file.
    file: u64,
    /// Bytes of memory that is neither file nor map.
    memory: u64,
    open_files: usize,
}

impl Peak {
    fn take(&mut self, file: &Path) {
        self.file = self.file.max(std::fs::metadata(file).unwrap().len());
        self.memory = self.memory.max(anonymous_memory());
        self.open_files = self.open_files.max(std::fs::read_dir("/proc/self/fd").unwrap().count());
    }
}

/// Resident pages that belong to no file, by the fields of statm: all of them less the shared.
fn anonymous_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let fields: Vec<u64> = text.split_whitespace().map(|field| field.parse().unwrap()).collect();
    (fields[1] - fields[2]) * 4096
}

/// A reader, and what it saw when it began.
struct Reader {
    tx: Tx,
    sum: u64,
}

impl Reader {
    fn new(db: &Db) -> Self {
        let tx = db.begin().unwrap();
        let sum = sum(&tx);
        Self { tx, sum }
    }

    fn end(self) {
        assert_eq!(sum(&self.tx), self.sum, "the snapshot of transaction {} has changed", self.tx.id());
    }
}

/// Of every key and value that a transaction sees.
fn sum(tx: &Tx) -> u64 {
    let bucket = tx.bucket("b").unwrap();
    bucket.iter().fold(0, |sum, entry| {
        let (key, value) = entry.unwrap();
        let bytes = key.iter().chain(value.unwrap());
        bytes.fold(sum, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
    })
}

/// One transaction: puts and deletes, values of up to some pages, some of it in a bucket that comes and goes.
fn churn(db: &Db, random: &mut Random) {
    let mut tx = db.begin_mut().unwrap();
    let mut bucket = tx.create_bucket_if_not_exists("b").unwrap();
    for _ in 0..40 {
        let key = u64::try_from(random.below(KEYS)).unwrap().to_be_bytes();
        if random.once_in(3) {
            bucket.delete(key).unwrap();
        } else {
            let len = if random.once_in(50) { random.below(10_000) } else { random.below(300) };
            bucket.put(key, random.bytes(len)).unwrap();
        }
    }
    if random.once_in(20) && tx.bucket("passing").is_ok() {
        tx.delete_bucket("passing").unwrap();
    } else {
        let key = random.bytes(2);
        tx.create_bucket_if_not_exists("passing").unwrap().put(key, [7; 100]).unwrap();
    }
    if random.once_in(15) {
        tx.rollback();
        return;
    }
    let durability = [Durability::Always, Durability::Never][random.below(2)];
    tx.commit_with(durability).unwrap();
}

/// One life of the database: half of the readers go soon after they came, the others stay for any time.
fn round(db: &Db, file: &Path, random: &mut Random, peak: &mut Peak) {
    churn(db, random);
    db.update(|tx| tx.create_bucket_if_not_exists("b").map(|_| ())).unwrap();
    let mut readers: VecDeque<Reader> = VecDeque::new();
    for number in 0..ROUND {
        churn(db, random);
        if random.once_in(4) {
            readers.push_back(Reader::new(db));
        }
        if readers.len() > READERS {
            let at = if random.once_in(2) { readers.len() - 1 } else { random.below(readers.len()) };
            readers.remove(at).unwrap().end();
        }
        if number % 20 == 19 {
            assert_check_clean(db, "amid the churn");
            peak.take(file);
        }
    }
    readers.into_iter().for_each(Reader::end);
}

fn soak(stored: FreelistStored, time: Duration) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("soak.db");
    let mut random = Random::new(1);
    let mut early = Peak::default();
    let mut late = Peak::default();
    let start = Instant::now();
    let mut rounds = 0;
    // Whatever the time allows, there are rounds to compare.
    while rounds < 3 * WARM_UP || start.elapsed() < time {
        let db = Options::new().page_size(1024).freelist(stored).open(&file).unwrap();
        let peak = if rounds < WARM_UP { &mut early } else { &mut late };
        round(&db, &file, &mut random, peak);
        if rounds % 3 == 2 {
            db.shrink().unwrap();
        }
        assert_check_clean(&db, "after a round");
        rounds += 1;
    }
    eprintln!("{rounds} rounds, {stored:?}: at first {early:?}, then {late:?}");
    assert!(late.file <= early.file * 2, "the file grows: {early:?}, {late:?}");
    assert!(late.memory <= early.memory * 2 + (16 << 20), "the memory grows: {early:?}, {late:?}");
    assert!(late.open_files <= early.open_files + 2, "open files are left behind: {early:?}, {late:?}");
    let db = Db::open(&file).unwrap();
    assert_check_clean(&db, "at the end");
}

#[test]
fn under_churn_with_readers_of_all_ages_file_memory_and_open_files_level_off() {
    let seconds = std::env::var("BOLTKV_SOAK_SECONDS").map_or(10, |text| text.parse().unwrap());
    for stored in [FreelistStored::Always, FreelistStored::Never] {
        soak(stored, Duration::from_secs(seconds) / 2);
    }
}
