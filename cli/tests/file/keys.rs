//! `boltkv file keys`: what bbolt prints, in every format, and JSON.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use crate::common::files::files;
use crate::common::run;

const FORMATS: [&str; 5] = ["auto", "ascii-encoded", "hex", "bytes", "redacted"];

#[test]
fn keys_are_printed_as_bbolt_does_in_every_format() {
    let Some(files) = files() else { return };
    let buckets: [(&str, &[&str]); 9] = [
        ("odd", &["bytes"]),
        ("odd", &["texts"]),
        ("odd", &["größe"]),
        ("inline", &["inline"]),
        ("inline", &["inline", "small 07"]),
        ("nested", &["nested", "level 0", "level 1", "level 2"]),
        ("overflow", &["overflow"]),
        ("mixed", &["random"]),
        ("inline", &["empty"]),
    ];
    for (name, bucket) in buckets {
        for format in FORMATS {
            let args: Vec<_> = bucket.iter().chain(&["--format", format]).map(Into::into).collect();
            let printed = files.same(name, "keys", &args);
            assert_eq!(printed.is_empty(), bucket == ["empty"], "{name} {bucket:?}");
        }
    }
}

#[test]
fn a_bucket_is_found_by_a_name_that_is_no_text_and_json_tells_buckets_from_keys() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let db = boltkv_storage::Db::open(&file).unwrap();
    db.update(|tx| {
        let mut outer = tx.create_bucket([255])?;
        outer.put("k", "v")?;
        outer.create_bucket("z").map(drop)
    })
    .unwrap();
    drop(db);
    let name = std::ffi::OsStr::from_bytes(&[255]);
    let printed = run(args!["file", "keys", &file, name, "--json"]).done_text();
    assert_eq!(printed, "{\"key\":\"aw==\"}\n{\"bucket\":\"eg==\"}\n");
}

#[test]
fn what_is_no_bucket_is_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let db = boltkv_storage::Db::open(&file).unwrap();
    db.update(|tx| tx.create_bucket("a")?.put("k", "v")).unwrap();
    drop(db);
    assert!(run(args!["file", "keys", &file, "b"]).failed(1).contains("no bucket \"b\""));
    assert!(run(args!["file", "keys", &file, "a", "b"]).failed(1).contains("no bucket \"b\""));
    assert!(
        run(args!["file", "keys", &file, "a", "k"]).failed(1).contains(r#""k" in bucket "a" is a value, not a bucket"#)
    );
    assert_eq!(run(args!["file", "keys", &file]).code, Some(2));
}
