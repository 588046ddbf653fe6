//! `boltkv file surgery clear-page` empties a page, as bbolt does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::surgery::Table;
use boltkv_storage::PageType;

#[test]
fn the_copy_is_bbolts() {
    let table = Table::new();
    let pages = [table.page(PageType::Leaf, 10), table.page(PageType::Branch, 2), table.long_page(), ("3".into(), 0)];
    for (page, _) in pages {
        table.same(&["clear-page"], &["--pageId", &page]);
    }
}

#[test]
fn what_was_cleared_is_said() {
    let table = Table::new();
    let (branch, count) = table.page(PageType::Branch, 2);
    let said = table.run(&["clear-page"], &["--pageId", &branch]).done_text();
    assert!(said.contains(&format!("page {branch}: {count} elements cleared, 0 left")), "{said}");
    assert!(said.contains("a branch without elements") && said.contains("freelist abandon"), "{said}");
    std::fs::remove_file(&table.output).unwrap();
    let (leaf, count) = table.page(PageType::Leaf, 10);
    let said = table.run(&["clear-page"], &["--page-id", &leaf, "--json"]).done();
    let said: serde_json::Value = serde_json::from_slice(&said).unwrap();
    let page: u64 = leaf.parse().unwrap();
    assert_eq!(said, serde_json::json!({"page": page, "cleared": count, "left": 0, "freelist_in_doubt": false}));
}

#[test]
fn only_a_leaf_or_a_branch_that_is_there_can_be_cleared() {
    let table = Table::new();
    for page in ["0", "1", "-1", "x"] {
        table.fails(2, &["clear-page"], &["--pageId", page]);
    }
    table.fails(2, &["clear-page"], &[]);
    let (freelist, _) = table.page(PageType::Freelist, 0);
    let said = table.fails(1, &["clear-page"], &["--pageId", &freelist]);
    assert!(said.contains("its type is freelist"), "{said}");
    // What is typed wrong is no damage.
    for args in [&["clear-page"][..], &["clear-page-elements", "--from-index", "0", "--to-index", "1"]] {
        let said = table.fails(2, args, &["--pageId", "99999999"]);
        assert!(said.contains("has no page 99999999: its pages are 0 to "), "{said}");
    }
    table.fails(2, &["copy-page"], &["--from-page", "2", "--to-page", "99999999"]);
}
