//! What the integration tests share: a model of a database's content, traces of changes that both this engine and Go's
//! bbolt can replay, and the Go program at the other end. Nothing here may know more of the engine than its public API.
#![allow(dead_code, unreachable_pub, reason = "every test binary compiles all of this and uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "test code: a panic is how it reports"
)]

pub mod alone;
pub mod cursor_steps;
pub mod edit;
pub mod followed;
pub mod generator;
pub mod model;
pub mod peer;
pub mod random;
pub mod salvage;
pub mod setup;
pub mod small_file;
pub mod steps;
pub mod trace;

use boltkv_storage::{Db, Error, Tx, TxMut};
use model::{Model, hash};
use std::path::Path;

/// A folder for small files of which many are made one after the other: in memory, where there is such a place, so that
/// nobody waits for the disk.
pub fn folder_in_memory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.unwrap()
}

/// Makes a bucket with a thousand more in it, one within the other, and puts `k` = `v` into the innermost; returns its
/// path.
pub fn nest_a_thousand_deep(db: &Db) -> Vec<&'static str> {
    let mut tx = db.begin_mut().unwrap();
    let mut path = vec!["b"];
    tx.create_bucket("b").unwrap();
    for _ in 0..1000 {
        tx.bucket_mut_path(&path).unwrap().create_bucket("b").unwrap();
        path.push("b");
    }
    tx.bucket_mut_path(&path).unwrap().put("k", "v").unwrap();
    tx.commit().unwrap();
    path
}

/// Opens a file that other threads open and close.
pub fn open_when_closed(file: &Path) -> Db {
    for _ in 0..60_000 {
        match Db::open(file) {
            Err(Error::AlreadyOpen { .. }) => std::thread::sleep(std::time::Duration::from_millis(1)),
            opened => return opened.unwrap(),
        }
    }
    panic!("nobody closes it");
}

/// Copies an open file and its journal, as a kill would leave them.
pub fn copy_as_killed(file: &Path, to: &Path) {
    let journal = |file: &Path| file.with_file_name(format!("{}-journal", file.file_name().unwrap().display()));
    std::fs::create_dir_all(journal(to)).unwrap();
    for old in std::fs::read_dir(journal(to)).unwrap() {
        std::fs::remove_file(old.unwrap().path()).unwrap();
    }
    std::fs::copy(file, to).unwrap();
    for segment in std::fs::read_dir(journal(file)).unwrap() {
        let segment = segment.unwrap();
        std::fs::copy(segment.path(), journal(to).join(segment.file_name())).unwrap();
    }
}

/// All that a read transaction sees.
pub fn content(tx: &Tx) -> Model {
    Model::load(tx.buckets()).expect("a sound file is read without an error")
}

/// All that a write transaction sees, its own changes included.
pub fn content_of_writer(tx: &TxMut) -> Model {
    Model::load(tx.buckets()).expect("a sound file is read without an error")
}

/// All that is committed in a database.
pub fn committed(db: &Db) -> Model {
    content(&db.begin().unwrap())
}

/// All that is in a file, opened as a reader does.
pub fn content_of_file(file: &Path) -> Model {
    let db = boltkv_storage::Options::new().read_only(true).open(file).unwrap();
    committed(&db)
}

/// A hash of a whole file: 64-bit FNV-1a.
pub fn file_hash(file: &Path) -> u64 {
    hash(&std::fs::read(file).unwrap())
}

/// Fails unless the engine's own check finds nothing wrong.
pub fn assert_check_clean(db: &Db, what: &str) {
    let problems = db.check().unwrap();
    let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "{what}: check found {shown:#?}");
}

/// Fails, showing the first line that differs, unless two dumps are equal.
pub fn assert_same_dump(left: &str, right: &str, what: &str) {
    if left == right {
        return;
    }
    let lines = left.lines().zip(right.lines()).enumerate();
    let different = lines.into_iter().find(|(_, (a, b))| a != b);
    let (left_count, right_count) = (left.lines().count(), right.lines().count());
    match different {
        Some((number, (a, b))) => {
            panic!("{what}: the dumps differ at line {number}:\n  {a}\n  {b}")
        }
        None => panic!("{what}: one dump ends early: {left_count} lines and {right_count}"),
    }
}
