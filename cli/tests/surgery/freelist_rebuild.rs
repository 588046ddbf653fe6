//! `boltkv file surgery freelist rebuild` stores a freelist where there was none, as bbolt does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::surgery::Table;
use boltkv_storage::FreelistStored;

#[test]
fn the_copy_is_bbolts() {
    Table::with(FreelistStored::Never).same(&["freelist", "rebuild"], &[]);
}

#[test]
fn a_freelist_that_was_abandoned_is_rebuilt_and_the_file_is_sound() {
    let table = Table::new();
    table.run(&["freelist", "abandon"], &[]).done();
    let rebuilt = table.folder.path().join("rebuilt.db");
    let said =
        crate::common::run(args!["file", "surgery", "freelist", "rebuild", &table.output, "-o", &rebuilt, "--json"]);
    let said: serde_json::Value = serde_json::from_slice(&said.done()).unwrap();
    assert!(said["free_pages"].as_u64().unwrap() > 2, "{said}");
    crate::common::run(args!["file", "check", &rebuilt]).done();
    let file = boltkv_storage::tools::RawFile::open(&rebuilt, None).unwrap();
    assert!(file.newest_meta().unwrap().stores_freelist());
}

#[test]
fn a_freelist_that_is_stored_is_not_rebuilt() {
    let said = Table::new().fails(1, &["freelist", "rebuild"], &[]);
    assert!(said.contains("stores a freelist already"), "{said}");
}
