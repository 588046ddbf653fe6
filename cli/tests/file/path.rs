//! `boltkv file path` prints the pages on the way to a key.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::run;
use crate::common::surgery::Table;
use boltkv_storage::tools::RawFile;

#[test]
fn the_way_leads_from_the_root_to_the_leaf_that_holds_the_key() {
    let table = Table::new();
    let said = run(args!["file", "path", &table.source, "data", "40007"]).done_text();
    let pages: Vec<(u64, &str)> =
        said.lines().map(|line| line.split_once(' ').unwrap()).map(|(id, kind)| (id.parse().unwrap(), kind)).collect();
    let types: Vec<&str> = pages.iter().map(|&(_, kind)| kind).collect();
    assert_eq!(types, ["leaf", "branch", "leaf"]);
    let file = RawFile::open(&table.source, None).unwrap();
    assert_eq!(pages[0].0, file.newest_meta().unwrap().root);
    let leaf = file.page(pages[2].0).unwrap();
    assert!((0..leaf.header().count).any(|index| *leaf.leaf_element(index).unwrap().key == b"40007"[..]));

    let said = run(args!["file", "path", "--json", "--parse-format", "hex", &table.source, "data", "3430303037"]);
    let lines: Vec<serde_json::Value> =
        said.done_text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[2], serde_json::json!({"page": pages[2].0, "type": "leaf"}));
}

#[test]
fn a_key_that_is_not_there_has_no_way() {
    let table = Table::new();
    for path in [&["data", "missing"][..], &["missing", "key"], &["data", "40007", "key"], &["missing"]] {
        run(args!["file", "path", &table.source].into_iter().chain(path.iter().map(Into::into))).failed(1);
    }
}
