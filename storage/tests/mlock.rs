//! A file that is kept in memory: it grows, and where the system refuses to lock so much, that is an error which loses
//! nothing.
//!
//! How much a process may lock is its own limit, so that a test runs itself again in a child under `prlimit`, without
//! the privilege to which no limit applies.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use boltkv_storage::{Db, Error, Options};
use common::assert_check_clean;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the child finds the file to open.
const FILE: &str = "BOLTKV_TEST_MLOCK_FILE";

/// The bit of the privilege to lock any amount, in the hexadecimal set that the system tells.
const CAP_IPC_LOCK: u64 = 1 << 14;

fn locked() -> Options {
    Options::new().mlock(true).page_size(4096)
}

fn put(db: &Db, key: &str, value: &[u8]) -> Result<(), Error> {
    db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(key, value))
}

fn value_len(db: &Db, key: &str) -> Option<usize> {
    db.begin().unwrap().bucket("b").unwrap().get(key).unwrap().map(<[u8]>::len)
}

/// Whether this process may lock any amount of memory.
fn is_privileged() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap().trim();
    u64::from_str_radix(effective, 16).unwrap() & CAP_IPC_LOCK != 0
}

/// Bytes that an unprivileged process may lock.
fn limit() -> u64 {
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap_or(u64::MAX)
}

/// In the child: the file to open. Otherwise runs the test `name` in a child that may lock `limit` bytes, and answers
/// `None` once that has passed, or where the tool that limits it is missing.
fn in_child_with_limit(name: &str, limit: u64) -> Option<PathBuf> {
    if let Some(file) = std::env::var_os(FILE) {
        return Some(file.into());
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = if is_privileged() {
        let mut without = Command::new("setpriv");
        without.args(["--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock", "prlimit"]);
        without
    } else {
        Command::new("prlimit")
    };
    command.arg(format!("--memlock={limit}:{limit}")).arg(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(FILE, folder.path().join("db"));
    match command.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.contains("1 passed"), "{said}");
        }
        Err(error) => {
            let required = std::env::var("BOLTKV_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
            assert!(!required, "BOLTKV_REQUIRE_TOOLS=1, but {command:?} does not run: {error}");
            // What `eprintln!` prints of a test that passes is swallowed.
            let _ = std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("skipped: {command:?} does not run: {error}\n"),
            );
        }
    }
    None
}

fn assert_opens_unlocked_with(file: &Path, keys: &[(&str, usize)]) {
    let db = Db::open(file).unwrap();
    for (key, len) in keys {
        assert_eq!(value_len(&db, key), Some(*len), "{key}");
    }
    put(&db, "large", &vec![7; 4 << 20]).unwrap();
    assert_check_clean(&db, "opened without a lock");
}

#[test]
fn a_file_that_may_not_be_locked_does_not_open_and_is_left_as_it_is() {
    let name = "a_file_that_may_not_be_locked_does_not_open_and_is_left_as_it_is";
    let Some(file) = in_child_with_limit(name, 8192) else { return };
    put(&Db::open(&file).unwrap(), "k", b"value").unwrap();
    let before = fs::read(&file).unwrap();
    let refused = locked().open(&file);
    assert!(matches!(refused, Err(Error::Io { op: "lock in memory", .. })), "{refused:?}");
    assert!(fs::read(&file).unwrap() == before);
    assert_opens_unlocked_with(&file, &[("k", 5)]);
}

#[test]
fn a_commit_whose_growth_may_not_be_locked_is_rolled_back_and_smaller_ones_go_on() {
    let name = "a_commit_whose_growth_may_not_be_locked_is_rolled_back_and_smaller_ones_go_on";
    let Some(file) = in_child_with_limit(name, 1 << 20) else { return };
    let db = locked().open(&file).unwrap();
    put(&db, "before", &[1; 1000]).unwrap();
    let reader = db.begin().unwrap();
    for _ in 0..2 {
        let refused = put(&db, "large", &vec![7; 4 << 20]).unwrap_err();
        assert!(matches!(refused, Error::NoSpace { .. }), "{refused:?}");
        assert!(refused.to_string().contains("in memory"), "it says what there is no space in: {refused}");
        put(&db, "after", &[2; 2000]).unwrap();
    }
    assert_eq!(reader.bucket("b").unwrap().get("after").unwrap(), None);
    assert_eq!((value_len(&db, "after"), value_len(&db, "large")), (Some(2000), None));
    assert_check_clean(&db, "after a refused lock");
    drop(reader);
    db.close().unwrap();
    assert_opens_unlocked_with(&file, &[("before", 1000), ("after", 2000)]);
}

#[test]
fn a_locked_file_grows_past_the_step_from_which_it_grows_by_16_mib() {
    // The old map may still be locked while the new one is.
    if !is_privileged() && limit() < 128 << 20 {
        // What `eprintln!` prints of a test that passes is swallowed.
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("skipped: this process may lock no more than {} bytes\n", limit()),
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let db = locked().open(&file).unwrap();
    let mut len = 0;
    for key in ["a", "b", "c"] {
        put(&db, key, &vec![7; 20 << 20]).unwrap();
        let grown = fs::metadata(&file).unwrap().len();
        assert!(grown > len, "{grown} after {len}");
        len = grown;
    }
    let kib = fs::read_to_string("/proc/self/status").unwrap();
    let kib = kib.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap().replace("kB", "");
    // The file may already be longer than its map.
    let used = db.stats().pages * 4096;
    assert!(kib.trim().parse::<u64>().unwrap() * 1024 >= used, "{kib} KiB of {used} bytes are locked");
    assert_check_clean(&db, "locked in memory");
}
