//! `boltkv file surgery freelist abandon` makes metas that refer to no freelist, as bbolt does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::surgery::{Table, entries};

#[test]
fn the_copy_is_bbolts() {
    let Some(said) = Table::new().same(&["freelist", "abandon"], &[]) else { return };
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn the_copy_opens_and_lost_nothing() {
    let table = Table::new();
    let said = table.run(&["freelist", "abandon"], &["--json"]).done();
    let said: serde_json::Value = serde_json::from_slice(&said).unwrap();
    assert_eq!(said, serde_json::json!({"meta_pages": [0, 1]}));
    let file = boltkv_storage::tools::RawFile::open(&table.output, None).unwrap();
    assert!((0..2).all(|page| !file.meta(page).unwrap().stores_freelist()));
    assert_eq!(entries(&table.output), entries(&table.source));
}

#[test]
fn a_damaged_meta_stays_as_it_is_and_is_named() {
    let table = Table::new();
    let mut bytes = std::fs::read(&table.source).unwrap();
    bytes[4096 + 64] ^= 1;
    std::fs::write(&table.source, bytes).unwrap();
    let said = table.run(&["freelist", "abandon"], &[]).done_text();
    assert!(said.contains("meta page 1 is damaged"), "{said}");
    let file = boltkv_storage::tools::RawFile::open(&table.output, None).unwrap();
    assert!(file.meta(1).unwrap().fault().is_some());
}
