//! `boltkv file inspect`: what bbolt prints, and the same on one line.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use crate::common::files::{ALL, files, make_deep};
use crate::common::run;
use boltkv_storage::Db;

#[test]
fn the_tree_is_printed_as_bbolt_does_and_on_one_line() {
    let Some(files) = files() else { return };
    let odd = files.path("odd names");
    Db::open(&odd)
        .and_then(|db| {
            db.update(|tx| {
                let names: [&[u8]; 7] = [
                    b"<a> & \"b\" \\",
                    b"\x00\x08\x0c\n\r\t\x1f\x7f",
                    b"caf\xc3",
                    b"\xe2\x82",
                    "ö\u{2028}".as_bytes(),
                    &[255; 3],
                    "😀\u{fffd}".as_bytes(),
                ];
                names.iter().try_for_each(|name| tx.create_bucket(name)?.create_bucket("inner")?.put("k", "v"))
            })
        })
        .unwrap();
    for name in ALL.iter().chain(&["odd names"]) {
        let tree: serde_json::Value = serde_json::from_slice(&files.same(name, "inspect", &[])).unwrap();
        let line = run(args!["file", "inspect", files.path(name), "--json"]).done_text();
        assert_eq!(line.lines().count(), 1);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), tree, "{name}");
    }
}

/// Deeper than a stack would bear.
#[test]
fn buckets_nested_twenty_thousand_deep_are_printed() {
    const DEEP: usize = 20_000;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deep.db");
    make_deep(&file, DEEP);
    let text = run(args!["file", "inspect", &file, "--json"]).done_text();
    assert_eq!(text.matches("\",\"keyN\":0").count(), DEEP + 1);
    assert!(text.ends_with(&format!("{{\"name\":\"even\",\"keyN\":0}}{}\n", "]}".repeat(DEEP))));
}
