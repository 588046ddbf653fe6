//! `boltkv file surgery revert-meta-page` goes back by one transaction, as bbolt does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::surgery::{Table, entries};

#[test]
fn the_copy_is_bbolts() {
    Table::new().same(&["revert-meta-page"], &[]);
}

#[test]
fn the_copy_is_at_the_transaction_before() {
    let table = Table::new();
    let said = table.run(&["revert-meta-page"], &[]).done_text();
    assert!(said.ends_with("as transaction 11 left it; transaction 12 is taken back\n"), "{said}");
    assert_eq!((entries(&table.source), entries(&table.output)), (2001, 2000));
    crate::common::run(args!["file", "check", &table.output]).done();
}

#[test]
fn what_was_done_is_said_in_json() {
    let table = Table::new();
    let said = table.run(&["revert-meta-page"], &["--json"]).done();
    let said: serde_json::Value = serde_json::from_slice(&said).unwrap();
    assert_eq!(said, serde_json::json!({"meta_page": 0, "txid": 11, "lost": 12}));
}

#[test]
fn a_file_that_is_there_is_not_replaced() {
    let table = Table::new();
    std::fs::write(&table.output, "precious").unwrap();
    let said = table.run(&["revert-meta-page"], &[]).failed(2);
    assert!(said.contains("output.db is there already"), "{said}");
    assert_eq!(std::fs::read(&table.output).unwrap(), b"precious");
}

#[test]
fn a_source_that_is_missing_locked_or_no_bolt_file_could_not_be_opened() {
    let table = Table::new();
    let held = boltkv_storage::Db::open(&table.source).unwrap();
    let said = table.fails(3, &["revert-meta-page"], &["--timeout", "0.1"]);
    assert!(said.contains("locked by another process"), "{said}");
    drop(held);
    std::fs::write(&table.source, "no database\n".repeat(1000)).unwrap();
    let said = table.fails(3, &["revert-meta-page"], &[]);
    assert!(said.contains("not a bolt file"), "{said}");
    let missing = table.folder.path().join("missing.db");
    crate::common::run(args!["file", "surgery", "revert-meta-page", missing, "--output", &table.output]).failed(3);
}
