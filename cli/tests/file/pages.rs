//! `boltkv file pages`: what bbolt prints, what can be told of damaged files, and JSON.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::fs;

use crate::common::files::{ALL, files};
use crate::common::run;

#[test]
fn pages_are_listed_as_bbolt_does_and_in_json() {
    let Some(files) = files() else { return };
    for name in ALL {
        let table = files.same(name, "pages", &[]);
        let json = run(args!["file", "pages", files.path(name), "--json"]).done_text();
        let table = String::from_utf8(table).unwrap();
        for (row, line) in table.lines().skip(2).zip(json.lines()) {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let row: Vec<_> = row.split_whitespace().collect();
            assert_eq!((row[0], row[1]), (&*line["page"].to_string(), line["type"].as_str().unwrap()));
            let overflow = row.get(3).map_or(0, |overflow| overflow.parse().unwrap());
            assert_eq!(line["overflow"], overflow);
        }
        assert_eq!(table.lines().count(), json.lines().count() + 2);
    }
}

#[test]
fn pages_of_a_file_that_does_not_open_are_listed_as_they_lie() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    drop(boltkv_storage::Db::open(&file).unwrap());
    let mut bytes = fs::read(&file).unwrap();
    for meta in [0, 4096] {
        bytes[meta + 72] ^= 1;
    }
    bytes[3 * 4096] = 9;
    fs::write(&file, &bytes).unwrap();
    let ran = run(args!["file", "pages", &file]);
    let types: Vec<_> = ran.text().lines().skip(2).map(|row| row[9..19].trim().to_owned()).collect();
    assert_eq!(types, ["meta", "meta", "freelist", "unknown"]);
    assert!(ran.failed(1).contains("which pages are free is not known: both meta pages are damaged"));
}

#[test]
fn pages_of_a_file_without_a_freelist_that_can_be_read_are_listed_as_they_lie() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    drop(boltkv_storage::Db::open(&file).unwrap());
    let mut bytes = fs::read(&file).unwrap();
    bytes[2 * 4096 + 8] = 2;
    fs::write(&file, &bytes).unwrap();
    let ran = run(args!["file", "pages", &file, "--json"]);
    assert_eq!(ran.text().lines().count(), 4);
    assert!(ran.failed(1).contains("a freelist page is expected"));
}
