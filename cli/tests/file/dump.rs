//! `boltkv file dump`: what bbolt prints, on damaged files too, and JSON.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::fs;

use crate::common::files::{ALL, files};
use crate::common::run;
use boltkv_storage::Options;

#[test]
fn pages_are_dumped_as_bbolt_does() {
    let Some(files) = files() else { return };
    for name in ALL {
        files.same(name, "dump", &["0", "1", "2", "3"].map(Into::into));
    }
    for page in 4..40 {
        files.same("mixed", "dump", &[page.to_string().into()]);
    }
    // Neither looks at anything but the first meta's magic number and page size.
    let mut bytes = fs::read(files.path("odd")).unwrap();
    bytes[80..].fill(7);
    fs::write(files.path("wreck"), &bytes).unwrap();
    files.same("wreck", "dump", &["0", "1", "3"].map(Into::into));
}

#[test]
fn json_has_place_and_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    drop(Options::new().page_size(1024).open(&file).unwrap());
    let printed = run(args!["file", "dump", &file, "2", "3", "--json"]).done_text();
    let lines: Vec<serde_json::Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[1]["page"], &lines[1]["offset"]), (&3.into(), &3072.into()));
    assert!(lines[1]["bytes"].as_str().unwrap().starts_with("AwAAAAAAAAAC"), "{}", lines[1]);
}

#[test]
fn a_page_size_can_be_given_where_no_meta_tells_it_and_no_page_is_beyond_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zeros");
    fs::write(&file, [0; 4096]).unwrap();
    assert!(run(args!["file", "dump", &file, "0"]).failed(3).contains("--page-size 4096"));
    assert_eq!(
        run(args!["file", "dump", &file, "3", "--page-size", "1KiB"]).done_text(),
        format!("0000c00{zeros}\n0000c10 *\n0000ff0{zeros}\n\n", zeros = " 0000".repeat(8))
    );
    assert!(run(args!["file", "dump", &file, "4", "--page-size", "1024"]).failed(2).contains("its pages are 0 to 3"));
    assert!(run(args!["file", "dump", &file, "0", "--page-size", "1000"]).failed(2).contains("page size 1000"));
    assert_eq!(run(args!["file", "dump", &file]).code, Some(2));
}
