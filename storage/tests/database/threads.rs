//! A thread that cannot be started is an error of opening, and leaves nothing half opened.
//!
//! A child process runs the test again with stacks for its threads that no address space has room for, so that the system
//! refuses each of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::assert_check_clean;
use boltkv_storage::{Db, Durability, Error, JournalOptions, Options};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Where the child finds the files to open.
const FOLDER: &str = "BOLTKV_TEST_THREADS_FOLDER";
const NAME: &str = "threads::a_database_whose_thread_cannot_be_started_is_not_opened_and_loses_nothing";
/// So many bytes of stack that no process can have them.
const STACK: u64 = 1 << 60;

/// In every way in which a database has a thread that syncs.
fn with_a_thread() -> [(&'static str, Options); 2] {
    let every = Durability::Interval { every: Duration::from_secs(3600), commits: u64::MAX };
    [("interval", Options::new().durability(every)), ("journal", Options::new().journal(JournalOptions::new()))]
}

fn put(db: &Db, key: &str) {
    db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(key, "value")).unwrap();
}

fn assert_has(db: &Db, keys: &[&str]) {
    let tx = db.begin().unwrap();
    for key in keys {
        assert_eq!(tx.bucket("b").unwrap().get(key).unwrap(), Some(&b"value"[..]), "{key}");
    }
    drop(tx);
    assert_check_clean(db, "after a thread was refused");
}

/// A file of which a killed process has left a journal with what the file lacks.
fn killed(folder: &Path, name: &str, options: &Options) -> PathBuf {
    let (alive, killed) = (folder.join(format!("{name}-alive.db")), folder.join(format!("{name}.db")));
    let db = options.open(&alive).unwrap();
    put(&db, "before");
    // With a journal, that is what is synced.
    db.sync().unwrap();
    std::fs::copy(&alive, &killed).unwrap();
    if let Ok(segments) = std::fs::read_dir(folder.join(format!("{name}-alive.db-journal"))) {
        let copy = folder.join(format!("{name}.db-journal"));
        std::fs::create_dir(&copy).unwrap();
        for segment in segments {
            let segment = segment.unwrap();
            std::fs::copy(segment.path(), copy.join(segment.file_name())).unwrap();
        }
    }
    killed
}

/// In a process that can start no thread.
fn is_refused(file: &Path, options: &Options) {
    // Twice: the first leaves no lock that would refuse the second.
    for _ in 0..2 {
        match options.open(file).map(drop) {
            Err(Error::Io { op: "start the thread that syncs", .. }) => {}
            other => panic!("{}: {other:?}", file.display()),
        }
    }
}

#[test]
fn a_database_whose_thread_cannot_be_started_is_not_opened_and_loses_nothing() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        assert!(std::thread::Builder::new().spawn(|| {}).is_err(), "this process can start threads");
        for (name, options) in with_a_thread() {
            is_refused(&PathBuf::from(&folder).join(format!("{name}.db")), &options);
        }
        return;
    }
    let folder = crate::common::folder_in_memory();
    for (name, options) in with_a_thread() {
        let _ = killed(folder.path(), name, &options);
    }
    let waits = Db::open(folder.path().join("journal.db")).map(drop);
    assert!(matches!(waits, Err(Error::JournalWaits { .. })), "{waits:?}");
    let mut child = Command::new(std::env::current_exe().unwrap());
    // With one at a time, a test runs on the process' first thread.
    child.args(["--exact", NAME, "--nocapture", "--test-threads=1"]);
    let output = child.env(FOLDER, folder.path()).env("RUST_MIN_STACK", STACK.to_string()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    for (name, options) in with_a_thread() {
        let file = folder.path().join(format!("{name}.db"));
        let db = options.open(&file).unwrap();
        put(&db, "after");
        assert_has(&db, &["before", "after"]);
        db.close().unwrap();
        assert_has(&Db::open(&file).unwrap(), &["before", "after"]);
    }
}
