//! `boltkv file import`: what comes of good lines and of bad ones.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::common::{Ran, run, run_with_input};
use boltkv_storage::{Db, Error, Options};

fn import(file: &Path, lines: &str) -> Ran {
    run_with_input(args!["file", "import", file], lines.as_bytes())
}

fn export(file: &Path) -> String {
    run(args!["file", "export", file]).done_text()
}

/// A bucket's line, and so many entries' lines; over one batch if there are many.
fn lines(entries: usize) -> String {
    let mut text = String::from("{\"path\":[\"Yg==\"],\"sequence\":5}\n");
    for i in 0..entries {
        let key = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, format!("{i:08}"));
        writeln!(text, r#"{{"path":["Yg=="],"key":"{key}","value":"dmFsdWU="}}"#).unwrap();
    }
    text
}

#[test]
fn what_was_exported_comes_back_over_several_batches() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new.db");
    let text = lines(25_000);
    assert_eq!(import(&file, &text).done_text(), "25,001 lines\n");
    assert!(export(&file) == text, "what was imported is not what is exported");
    run(args!["file", "check", &file]).done();
}

#[test]
fn it_says_how_many_lines_or_records_were_put_in_as_the_import_into_a_server_does() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new.db");
    let import = |option: &[&str], lines: &str| {
        let args = args!["file", "import", &file].into_iter().chain(option.iter().map(Into::into));
        run_with_input(args, lines.as_bytes())
    };
    assert_eq!(import(&["--json"], &lines(10_000)).done_text(), "{\"lines\":10001}\n");
    assert_eq!(import(&["--json"], "").done_text(), "{\"lines\":0}\n");
    assert_eq!(import(&["--json"], "{").failed(1).matches("line 1").count(), 1);
    assert_eq!(import(&[], "").done_text(), "0 lines\n");
    assert_eq!(import(&[], &format!("\n{}\n \n", lines(1))).done_text(), "2 lines\n", "blank ones are not counted");
    let records = "bucket,key,value\n\nb,k,\"v\nw\"\n\n";
    assert_eq!(import(&["--csv"], records).done_text(), "1 record\n");
    assert_eq!(import(&["--csv", "--json"], records).done_text(), "{\"lines\":1}\n");
}

// Promises: ops-export.
#[test]
fn every_kind_of_content_survives_a_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first.db"), folder.path().join("second.db"));
    let db = Options::new().page_size(1024).open(&first).unwrap();
    db.update(|tx| {
        tx.create_bucket([0, 1, 0xff])?.set_sequence(u64::MAX)?;
        let mut bucket = tx.create_bucket("values")?;
        bucket.put("empty", "")?;
        bucket.put("large", vec![0xa5; 1 << 20])?;
        bucket.put(vec![b'k'; 32_768], "the longest key")?;
        bucket.create_bucket("inline")?.put("k", "v")?;
        let mut paged = bucket.create_bucket("paged")?;
        (0..2_000_u32).try_for_each(|i| paged.put(i.to_le_bytes(), i.to_be_bytes()))
    })
    .unwrap_or_else(|error: Error| panic!("{error}"));
    drop(db);

    let text = export(&first);
    import(&second, &text).done();
    assert!(export(&second) == text, "what was imported is not what is exported");
}

#[test]
fn nesting_may_be_deeper_than_a_stack_would_bear() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deep.db");
    let (mut text, mut path) = (String::new(), String::new());
    for depth in 0..1_500 {
        path.push_str(if depth == 0 { r#""Yg==""# } else { r#","Yg==""# });
        writeln!(text, r#"{{"path":[{path}],"sequence":{depth}}}"#).unwrap();
    }
    writeln!(text, r#"{{"path":[{path}],"key":"aw==","value":"dg=="}}"#).unwrap();
    import(&file, &text).done();
    assert!(export(&file) == text, "what was imported is not what is exported");
}

#[test]
fn a_file_that_holds_something_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("old.db");
    let db = Db::open(&file).unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        bucket.put("00000000", "old")?;
        bucket.put("kept", "as it was")
    })
    .unwrap_or_else(|error: Error| panic!("{error}"));
    drop(db);

    import(&file, &lines(1)).done();

    let tx = Options::new().read_only(true).open(&file).unwrap().begin().unwrap();
    let bucket = tx.bucket("b").unwrap();
    assert_eq!(bucket.get("00000000").unwrap(), Some(&b"value"[..]));
    assert_eq!(bucket.get("kept").unwrap(), Some(&b"as it was"[..]));
    assert_eq!(bucket.sequence(), 5);
}

#[test]
fn to_import_the_same_again_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("twice.db");
    let text = lines(100);
    import(&file, &text).done();
    import(&file, &text).done();
    assert_eq!(export(&file), text);
}

#[test]
fn a_bad_line_is_named_and_all_before_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("hello", "it is no JSON"),
        ("{", "it is no JSON, or not all of it"),
        (r#"{"path":["Yg=="],"key":"?","value":""}"#, "no base64"),
        (r#"{"path":["Yg=="],"key":"","value":""}"#, "a key must have at least one byte"),
        (r#"{"path":["Yw=="],"key":"aw==","value":""}"#, "no bucket \"c\""),
        (r#"{"path":["Yw==","Yg=="],"sequence":1}"#, "no bucket \"c\""),
        (r#"{"path":["Yg==","MDAwMDAwMDA="],"sequence":1}"#, r#""00000000" in bucket "b" is a value"#),
    ];
    for (at, (bad, why)) in cases.into_iter().enumerate() {
        let file = folder.path().join(format!("{at}.db"));
        // In the second batch, so that the line's number counts what was committed before.
        let before = lines(10_100);
        let said = import(&file, &format!("{before}{bad}\n{}", lines(3))).failed(1);
        assert!(said.contains("standard input, line 10102: ") && said.contains(why), "{bad}: {said}");
        assert!(said.contains("the 10101 lines before it are in "), "{said}");
        assert!(export(&file) == before, "{bad}: what is in the file is not what came before it");
    }
}

#[test]
fn a_last_line_without_its_end_counts_and_half_a_line_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let text = lines(2);
    let whole = folder.path().join("whole.db");
    import(&whole, text.trim_end()).done();
    assert_eq!(export(&whole), text);

    let half = folder.path().join("half.db");
    let said = import(&half, &text[..text.len() - 10]).failed(1);
    assert!(said.contains("line 3: "), "{said}");
    assert_eq!(export(&half), lines(1));
}

#[test]
fn input_is_a_file_and_a_missing_one_leaves_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let (file, input) = (folder.path().join("new.db"), folder.path().join("in.jsonl"));
    let said = run(args!["file", "import", &file, "--input", &input]).failed(3);
    assert!(said.contains("in.jsonl"), "{said}");
    assert!(!file.exists());
    fs::write(&input, lines(3)).unwrap();
    run(args!["file", "import", &file, "--input", &input]).done();
    assert_eq!(export(&file), lines(3));
}

#[test]
fn a_first_line_that_cannot_be_used_leaves_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new.db");
    for first in ["garbage\n", r#"{"path":["Yg=="],"key":"aw==","value":""}"#] {
        let said = import(&file, &format!("{first}\n{}", lines(1))).failed(1);
        assert!(said.contains("standard input, line 1: ") && said.contains("nothing was put into "), "{said}");
        assert!(!file.exists(), "{first}");
    }
    // Of an empty database there is not one line.
    import(&file, "").done();
    assert_eq!(export(&file), "");
}

#[test]
fn a_file_that_another_process_has_open_is_waited_for_and_then_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("busy.db");
    let _held = Db::open(&file).unwrap();
    let said = run(args!["file", "import", "--timeout", "0.1", &file]).failed(3);
    assert!(said.contains("locked by another process"), "{said}");
}

#[test]
fn what_is_no_bolt_file_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    let text = "no database\n".repeat(1000);
    fs::write(&file, &text).unwrap();
    let said = import(&file, &lines(1)).failed(3);
    assert!(said.contains("not a bolt file"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}
