//! `boltkv file surgery copy-page` writes a page over another, as bbolt does, and no further than the file goes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::surgery::Table;
use boltkv_storage::PageType;

#[test]
fn the_copy_is_bbolts() {
    let table = Table::new();
    let (leaf, _) = table.page(PageType::Leaf, 10);
    let (branch, _) = table.page(PageType::Branch, 2);
    let (long, _) = table.long_page();
    for (from, to) in [("3", "2"), ("0", "1"), (&leaf, "4"), (&branch, &leaf), (&long, "5")] {
        table.same(&["copy-page"], &["--from-page", from, "--to-page", to]);
    }
}

#[test]
fn what_was_done_is_said_and_that_the_freelist_is_in_doubt() {
    let table = Table::new();
    let said = table.run(&["copy-page"], &["--from-page", "3", "--to-page", "2"]).done_text();
    let mut lines = said.lines();
    assert!(lines.next().unwrap().ends_with("output.db: page 3 is copied to page 2"), "{said}");
    assert!(lines.next().unwrap().contains("surgery freelist abandon"), "{said}");
    std::fs::remove_file(&table.output).unwrap();
    let said = table.run(&["copy-page"], &["--json", "--from-page", "3", "--to-page", "2"]).done();
    let said: serde_json::Value = serde_json::from_slice(&said).unwrap();
    assert_eq!(said, serde_json::json!({"from_page": 3, "to_page": 2, "pages": 1, "freelist_in_doubt": true}));
}

#[test]
fn a_page_that_is_not_there_and_a_page_over_itself_are_refused() {
    let table = Table::new();
    let end = (std::fs::metadata(&table.source).unwrap().len() / 4096).to_string();
    for (from, to) in [(end.as_str(), "2"), ("2", end.as_str()), ("18446744073709551615", "2")] {
        let said = table.fails(2, &["copy-page"], &["--from-page", from, "--to-page", to]);
        assert!(said.contains("its pages are 0 to "), "{said}");
    }
    let (long, _) = table.long_page();
    let last = (end.parse::<u64>().unwrap() - 1).to_string();
    table.fails(1, &["copy-page"], &["--from-page", &long, "--to-page", &last]);
    table.fails(2, &["copy-page"], &["--from-page", "3", "--to-page", "3"]);
    for missing in [&["--from-page", "3"], &["--to-page", "3"]] {
        table.fails(2, &["copy-page"], missing);
    }
}
