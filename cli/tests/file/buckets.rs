//! `boltkv file buckets`: what bbolt prints, and JSON.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use crate::common::files::{ALL, files};
use crate::common::run;
use boltkv_storage::Db;

#[test]
fn names_are_printed_as_bbolt_does() {
    let Some(files) = files() else { return };
    for name in ALL {
        let printed = files.same(name, "buckets", &[]);
        assert_eq!(printed.is_empty(), name.starts_with("empty"), "{name}");
    }
}

#[test]
fn a_name_of_any_bytes_can_be_printed_safely() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    Db::open(&file).and_then(|db| db.update(|tx| tx.create_bucket("\x1b[31m").map(drop))).unwrap();
    assert_eq!(run(args!["file", "buckets", &file]).done(), b"\x1b[31m\n");
    assert_eq!(run(args!["file", "buckets", &file, "--format", "auto"]).done(), b"1b5b33316d\n");
    assert_eq!(run(args!["file", "buckets", &file, "--json"]).done(), b"{\"bucket\":\"G1szMW0=\"}\n");
}

#[test]
fn a_file_that_is_missing_or_none_is_not_opened_and_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("missing.db");
    assert!(run(args!["file", "buckets", &file]).failed(3).contains("missing.db"));
    assert!(!file.exists());
    assert_eq!(run(args!["file", "buckets"]).code, Some(2));
}
