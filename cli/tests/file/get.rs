//! `boltkv file get`: what bbolt prints, in every format, and JSON.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use crate::common::files::files;
use crate::common::run;

#[test]
fn values_are_printed_as_bbolt_does_in_every_format() {
    let Some(files) = files() else { return };
    let keys: [(&str, &[&str]); 9] = [
        ("odd", &["texts", "größe"]),
        ("odd", &["texts", "tab\t"]),
        ("odd", &["texts", "\"quoted\" \\"]),
        ("odd", &["texts", "\u{e0001}"]),
        ("odd", &["texts", "cut"]),
        ("odd", &["texts", "nothing"]),
        ("inline", &["inline", "small 07", "key 1"]),
        ("nested", &["nested", "level 0", "a key 0"]),
        ("overflow", &["overflow", "large 3"]),
    ];
    for (name, key) in keys {
        for format in ["auto", "ascii-encoded", "hex", "bytes", "redacted"] {
            let args: Vec<_> = key.iter().chain(&["--format", format]).map(Into::into).collect();
            files.same(name, "get", &args);
        }
    }
    for byte in 0..=255_u8 {
        files.same("odd", "get", &["bytes", &format!("{byte:02X}"), "--parse-format", "hex"].map(Into::into));
    }
}

#[test]
fn a_key_that_is_missing_is_not_found_and_a_bucket_is_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let db = boltkv_storage::Db::open(&file).unwrap();
    db.update(|tx| {
        let mut outer = tx.create_bucket("a")?;
        outer.put("k", "v")?;
        outer.create_bucket("b").map(drop)
    })
    .unwrap();
    drop(db);
    assert!(run(args!["file", "get", &file, "a", "x\u{1b}"]).failed(1).contains("no key \"x\\x1b\" in bucket \"a\""));
    assert!(run(args!["file", "get", &file, "x", "k"]).failed(1).contains("no bucket \"x\""));
    assert!(run(args!["file", "get", &file, "a/b", "k"]).failed(1).contains("one by one: `users eu`"));
    assert!(
        run(args!["file", "get", &file, "a", "b"]).failed(1).contains(r#""b" in bucket "a" is a bucket, not a value"#)
    );
    // Called as bbolt it says what that says: there is no such key.
    let bbolt = folder.path().join("bbolt");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_boltkv"), &bbolt).unwrap();
    let ran = std::process::Command::new(bbolt).arg("get").arg(&file).args(["a", "b"]).output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(said.starts_with("Error: Error key not found for key: \"b\" hex: \"62\"\n"), "{said}");
    assert_eq!(run(args!["file", "get", &file, "a", "k", "--json"]).done(), b"{\"key\":\"aw==\",\"value\":\"dg==\"}\n");
}

#[test]
fn what_cannot_be_a_key_is_a_mistake_of_usage() {
    let cases: [(&[&str], &str); 6] = [
        (&["a", ""], "the key is empty"),
        (&["a", "abc", "--parse-format=hex"], "odd number"),
        (&["a", "xy", "--parse-format=hex"], "no hexadecimal digit: 'x'"),
        (&["a"], "Usage"),
        (&[], "Usage"),
        (&["a", "k", "--format=morse"], "morse"),
    ];
    for (args, why) in cases {
        let ran = run(["file", "get", "a.db"].iter().chain(args));
        assert_eq!(ran.code, Some(2), "{args:?}");
        assert!(ran.stderr.contains(why), "{args:?}: {}", ran.stderr);
    }
}
