//! `boltkv file page-item`: what bbolt prints, and JSON.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::ffi::OsString;

use crate::common::files::files;
use crate::common::run;
use boltkv_storage::tools::RawFile;
use boltkv_storage::{Db, PageType};

#[test]
fn elements_are_printed_as_bbolt_does() {
    let Some(files) = files() else { return };
    for name in ["odd", "inline", "nested"] {
        let file = RawFile::open(files.path(name), None).unwrap();
        for page in (2..file.end()).filter(|&page| file.header(page).unwrap().page_type() == PageType::Leaf) {
            for item in 0..file.header(page).unwrap().count.min(30) {
                let place = [OsString::from(page.to_string()), item.to_string().into()];
                let with =
                    |flags: &[&str]| place.iter().cloned().chain(flags.iter().map(Into::into)).collect::<Vec<_>>();
                files.same(name, "page-item", &place);
                files.same(name, "page-item", &with(&["--key-only", "--format", "hex"]));
                files.same(name, "page-item", &with(&["--value-only", "--format", "ascii-encoded"]));
            }
        }
    }
}

#[test]
fn json_has_what_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    Db::open(&file).and_then(|db| db.update(|tx| tx.create_bucket("b").map(drop))).unwrap();
    let root = RawFile::open(&file, None).unwrap().newest_meta().unwrap().root.to_string();
    let printed = run(args!["file", "page-item", &file, &root, "0", "--json", "--key-only"]).done_text();
    assert_eq!(printed, format!("{{\"page\":{root},\"item\":0,\"flags\":1,\"key\":\"Yg==\"}}\n"));
}

#[test]
fn what_is_no_element_of_a_leaf_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    drop(Db::open(&file).unwrap());
    assert!(run(args!["file", "page-item", &file, "3", "0"]).failed(1).contains("0 elements, and none with index 0"));
    assert!(run(args!["file", "page-item", &file, "0", "0"]).failed(1).contains("no leaf page: its type is meta"));
    assert!(run(args!["file", "page-item", &file, "4", "0"]).failed(2).contains("no page 4: its pages are 0 to 3"));
    for args in [["3", "0", "--key-only", "--value-only"].as_slice(), &["3"], &[], &["3", "70000"]] {
        assert_eq!(run(["file", "page-item", "a.db"].iter().chain(args)).code, Some(2), "{args:?}");
    }
}
