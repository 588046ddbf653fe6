//! `boltkv file stats`: what bbolt prints, and JSON.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use crate::common::files::{ALL, files};
use crate::common::run;

#[test]
fn figures_are_printed_as_bbolt_does() {
    let Some(files) = files() else { return };
    for name in ALL {
        files.same(name, "stats", &[]);
        files.same(name, "stats", &["n".into()]);
    }
    let by_place = files.same("mixed", "stats", &["sequence".into()]);
    assert_eq!(run(args!["file", "stats", files.path("mixed"), "--prefix", "sequence"]).done(), by_place);
    assert!(by_place.starts_with(b"Aggregate statistics for 5 buckets\n"));
}

#[test]
fn json_has_the_same_figures() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let db = boltkv_storage::Db::open(&file).unwrap();
    db.update(|tx| {
        tx.create_bucket("ab")?.put("k", "v")?;
        (0..100_u8).try_for_each(|key| tx.create_bucket_if_not_exists("b")?.put([key], vec![0; 100]))
    })
    .unwrap();
    drop(db);
    let figures = |prefix: &str| -> serde_json::Value {
        serde_json::from_str(&run(args!["file", "stats", &file, prefix, "--json"]).done_text()).unwrap()
    };
    let all = figures("");
    assert_eq!((&all["top_level_buckets"], &all["keys"], &all["inline_buckets"]), (&2.into(), &101.into(), &1.into()));
    assert_eq!(figures("a")["keys"], 1);
    assert_eq!(figures("x")["top_level_buckets"], 0);
}
