//! `boltkv file surgery clear-page-elements` takes elements out of a page, as bbolt does, and only such as are there.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::surgery::Table;
use boltkv_storage::PageType;

fn clear<'a>(page: &'a str, from: &'a str, to: &'a str) -> [&'a str; 6] {
    ["--pageId", page, "--from-index", from, "--to-index", to]
}

#[test]
fn the_copy_is_bbolts_in_leaves_and_branches() {
    let table = Table::new();
    for page_type in [PageType::Leaf, PageType::Branch] {
        let (page, count) = table.page(page_type, 10);
        let (last, count) = ((count - 1).to_string(), count.to_string());
        for (from, to) in
            [("4", "8"), ("4", "-1"), ("0", "-1"), ("0", "7"), ("4", &count), ("0", "1"), ("6", "7"), (&last, &count)]
        {
            table.same(&["clear-page-elements"], &clear(&page, from, to));
        }
    }
}

#[test]
fn the_copy_is_bbolts_where_pages_run_on_over_others() {
    let table = Table::new();
    let (page, count) = table.long_page();
    assert!(count > 2, "the large value shares its page with others");
    let (large, behind) = ((count - 1).to_string(), (count - 2).to_string());
    for (from, to) in [("0", "1"), ("0", large.as_str()), (behind.as_str(), large.as_str()), (large.as_str(), "-1")] {
        table.same(&["clear-page-elements"], &clear(&page, from, to));
    }
}

#[test]
fn elements_that_are_not_there_are_refused() {
    let table = Table::new();
    let (page, count) = table.page(PageType::Leaf, 10);
    let beyond = (count + 1).to_string();
    for (from, to) in [("3", "3"), ("5", "3"), ("0", beyond.as_str()), (beyond.as_str(), "-1"), ("3", "1000000")] {
        let said = table.fails(1, &["clear-page-elements"], &clear(&page, from, to));
        assert!(said.contains(&format!("has {count} elements")), "{said}");
    }
    for (from, to) in [("-1", "4"), ("3", "-2"), ("x", "4")] {
        table.fails(2, &["clear-page-elements"], &clear(&page, from, to));
    }
    for missing in 0..3 {
        let mut flags = clear(&page, "0", "1").to_vec();
        flags.drain(2 * missing..2 * missing + 2);
        table.fails(2, &["clear-page-elements"], &flags);
    }
}

#[test]
fn what_was_cleared_is_said() {
    let table = Table::new();
    let (page, count) = table.page(PageType::Leaf, 10);
    let said = table.run(&["clear-page-elements"], &clear(&page, "6", "7")).done_text();
    assert!(said.ends_with(&format!("output.db: page {page}: 1 element cleared, {} left\n", count - 1)), "{said}");
    crate::common::run(args!["file", "check", &table.output]).done();
}
