//! `boltkv file surgery meta update` sets fields of a meta, as bbolt does, and refuses what is no field or value.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::surgery::{Table, entries};
use boltkv_storage::tools::{MetaFields, RawFile};

fn meta(table: &Table, page: u64) -> MetaFields {
    RawFile::open(&table.output, Some(4096)).unwrap().meta(page).unwrap()
}

#[test]
fn the_copy_is_bbolts_whatever_is_set() {
    let table = Table::new();
    let cases = [
        "root:50",
        "freelist:40",
        "pgid:600",
        "root:45,freelist:46",
        "pgid:256,freelist:47",
        "root:43,freelist:62,pgid:256",
    ];
    for fields in cases {
        for page in ["0", "1"] {
            table.same(&["meta", "update"], &["--meta-page", page, "--fields", fields]);
        }
    }
    table.same(&["meta", "update"], &["--fields", "root:16", "--fields", "freelist:8", "--fields", "root:17"]);
    table.same(&["meta", "update"], &["--meta-page", "1", "--fields", "pageSize:8192"]);
    table.same(&["meta", "update"], &[]);
}

#[test]
fn a_meta_with_a_wrong_checksum_is_made_valid_as_bbolt_makes_it() {
    let table = Table::new();
    let mut bytes = std::fs::read(&table.source).unwrap();
    bytes[4096 + 72] ^= 1;
    std::fs::write(&table.source, bytes).unwrap();
    let Some(said) = table.same(&["meta", "update"], &["--meta-page", "1"]) else { return };
    assert!(said.contains("meta page 1 is changed"), "{said}");
}

#[test]
fn what_was_set_is_said_in_json() {
    let table = Table::new();
    let flags = ["--meta-page", "1", "--fields", "freelist:none,pgid:77,pageSize:8192", "--json"];
    let said: serde_json::Value = serde_json::from_slice(&table.run(&["meta", "update"], &flags).done()).unwrap();
    assert_eq!((&said["meta_page"], &said["pgid"], &said["page_size"]), (&1.into(), &77.into(), &8192.into()));
    assert!(said["freelist"].is_null() && said["changed"] == true, "{said}");
    assert_eq!(meta(&table, 1).high_water_mark, 77);
    std::fs::remove_file(&table.output).unwrap();
    let said = table.run(&["meta", "update"], &flags[..4]).done_text();
    assert!(said.contains("its page size 8192 is not that of meta page 0: 4096"), "{said}");
}

#[test]
fn both_meta_pages_can_be_written_anew() {
    let table = Table::new();
    let lost = RawFile::open(&table.source, None).unwrap().newest_meta().unwrap();
    let count = entries(&table.source);
    let mut bytes = std::fs::read(&table.source).unwrap();
    bytes[..8192].fill(0);
    std::fs::write(&table.source, bytes).unwrap();
    let fields = format!("pageSize:4096,root:{},freelist:none,pgid:{}", lost.root, lost.high_water_mark);
    let said = table.fails(3, &["meta", "update"], &["--fields", &fields]);
    assert!(said.contains("not a bolt file"), "{said}");
    table.run(&["meta", "update"], &["--fields", &fields, "--page-size", "4096"]).done();
    assert_eq!(entries(&table.output), count);
}

#[test]
fn what_is_no_field_or_no_value_is_refused() {
    let table = Table::new();
    for fields in
        ["root", "root:", "root:x", "root:-1", "txid:3", "root:1:2", "pageSize:4294967296", "pageSize:1000", ""]
    {
        table.fails(2, &["meta", "update"], &["--fields", fields]);
    }
    table.fails(2, &["meta", "update"], &["--meta-page", "2", "--fields", "root:3"]);
}
