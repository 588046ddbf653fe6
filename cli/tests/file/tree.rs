//! `boltkv file tree`: the drawing, its levels, and JSON.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::path::{Path, PathBuf};

use crate::common::files::make_deep;
use crate::common::run;
use boltkv_storage::Options;
use tempfile::TempDir;

/// Inline buckets, larger ones, three levels, a name that cannot be printed.
fn make() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let db = Options::new().page_size(1024).open(&file).unwrap();
    db.update(|tx| {
        let mut users = tx.create_bucket("users")?;
        let mut eu = users.create_bucket("eu")?;
        eu.create_bucket("admins")?.put("ada", "lovelace")?;
        eu.create_bucket([0xff])?.put("k", "v")?;
        users.create_bucket("us")?.set_sequence(3)?;
        let mut log = tx.create_bucket("log")?;
        (0..1000_u32).try_for_each(|n| log.put(n.to_be_bytes(), [7; 10]))
    })
    .unwrap();
    (folder, file)
}

fn drawing(file: &Path, more: &[&str]) -> String {
    let printed = run(args!["file", "tree", file].into_iter().chain(more.iter().map(Into::into))).done_text();
    printed.replace(&file.display().to_string(), "FILE")
}

#[test]
fn buckets_are_drawn_with_their_own_figures() {
    let (_folder, file) = make();
    assert_eq!(
        drawing(&file, &[]),
        "FILE: 0 keys, 2 buckets, 1 page (1.00 KiB)
├── log: 1,000 keys, 32 pages (32.00 KiB)
└── users: 0 keys, 2 buckets, 1 page (1.00 KiB)
    ├── eu: 0 keys, 2 buckets, 1 page (1.00 KiB)
    │   ├── admins: 1 key, inline
    │   └── ff: 1 key, inline
    └── us: 0 keys, inline, sequence 3

1,002 keys, 6 buckets in 35 pages (35.00 KiB)
"
    );
}

#[test]
fn what_lies_below_the_last_level_is_added_to_it() {
    let (_folder, file) = make();
    assert_eq!(
        drawing(&file, &["--depth", "1"]),
        "FILE: 0 keys, 2 buckets, 1 page (1.00 KiB)
├── log: 1,000 keys, 32 pages (32.00 KiB)
└── users: 2 keys, 4 buckets, 2 pages (2.00 KiB)

1,002 keys, 6 buckets in 35 pages (35.00 KiB)
"
    );
    assert_eq!(run(args!["file", "tree", &file, "--depth", "0"]).code, Some(2));
}

#[test]
fn a_part_of_the_tree_can_be_drawn() {
    let (_folder, file) = make();
    assert_eq!(
        drawing(&file, &["users", "eu"]),
        "eu: 0 keys, 2 buckets, 1 page (1.00 KiB)
├── admins: 1 key, inline
└── ff: 1 key, inline

2 keys, 2 buckets in 1 page (1.00 KiB)
"
    );
    assert!(run(args!["file", "tree", &file, "users", "asia"]).failed(1).contains("no bucket \"asia\""));
}

#[test]
fn json_has_a_line_for_each_bucket() {
    let (_folder, file) = make();
    let lines = drawing(&file, &["--json", "--depth", "2"]);
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let depths: Vec<_> = lines.iter().map(|line| line["depth"].as_u64().unwrap()).collect();
    assert_eq!(depths, [0, 1, 1, 2, 2]);
    assert_eq!(
        lines[3],
        serde_json::json!({"depth": 2, "bucket": "ZXU=", "keys": 2, "buckets": 2, "pages": 1, "bytes": 1024, "sequence": 0})
    );
}

/// A drawing as deep as the file would be wider than any disk.
#[test]
fn buckets_nested_very_deep_are_drawn_to_a_depth_that_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deep.db");
    make_deep(&file, 2000);
    let drawn = drawing(&file, &[]);
    assert_eq!(drawn.lines().count(), 1 + 16 + 2);
    assert!(drawn.contains(&format!("\n{}└── even: 0 keys, 1,984 buckets", " ".repeat(15 * 4))), "{drawn}");
}
