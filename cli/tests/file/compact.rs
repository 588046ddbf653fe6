//! `boltkv file compact` writes all that a file holds into a new one, no larger than what bbolt makes of it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;
use std::path::Path;

use crate::common::{boltkv, run};
use boltkv_storage::{Db, Error};

/// A file of which the most is free.
fn make(file: &Path) {
    let db = Db::open(file).unwrap();
    let written = db.update(|tx| {
        for name in ["kept", "gone"] {
            let mut bucket = tx.create_bucket(name)?;
            (0..3000_u32).try_for_each(|key| bucket.put(key.to_be_bytes(), [7; 100]))?;
        }
        tx.bucket_mut("kept")?.set_sequence(42)
    });
    written.and_then(|()| db.update(|tx| tx.delete_bucket("gone"))).unwrap_or_else(|error: Error| panic!("{error}"));
}

#[test]
fn the_new_file_holds_the_same_is_smaller_and_sound_for_bbolt() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new, theirs) = (folder.path().join("old.db"), folder.path().join("new.db"), folder.path().join("go.db"));
    make(&old);
    let before = fs::read(&old).unwrap();
    let said = run(args!["file", "compact", &old, "-o", &new]).done_text();
    let (from, to) = (before.len() as u64, fs::metadata(&new).unwrap().len());
    #[expect(clippy::cast_precision_loss, reason = "a ratio with two digits")]
    let gain = from as f64 / to as f64;
    assert_eq!(said, format!("{from} -> {to} bytes (gain={gain:.2}x)\n"));
    assert!(fs::read(&old).unwrap() == before, "the old file was changed");
    run(args!["file", "check", &new]).done();
    let export = |file: &Path| run(args!["file", "export", file]).done();
    assert!(export(&old) == export(&new), "the new file holds something else");

    let Some(bbolt) = crate::common::peer::bbolt() else { return };
    let ran = bbolt.run(args!["compact", "-o", &theirs, &old]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.text().starts_with(&format!("{from} -> ")), "{}", ran.text());
    assert!(to <= fs::metadata(&theirs).unwrap().len());
    crate::common::peer::peer().unwrap().assert_check_clean(&new);
}

#[test]
fn flags_are_bbolts_and_json_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old.db"), folder.path().join("new.db"));
    make(&old);
    let line = args!["file", "compact", "--tx-max-size", "0KiB", "--no-sync", "--json", "--output", &new, &old];
    let said: serde_json::Value = serde_json::from_slice(&run(line).done()).unwrap();
    let len = |file: &Path| fs::metadata(file).unwrap().len();
    assert_eq!(said, serde_json::json!({"bytes_before": len(&old), "bytes_after": len(&new)}));
}

#[test]
fn a_name_that_begins_with_a_dash_stands_behind_an_equals_sign_as_the_tip_says() {
    let folder = tempfile::tempdir().unwrap();
    make(&folder.path().join("old.db"));
    let compacted = |output: &[&str]| {
        let args = ["file", "compact", "old.db"].iter().chain(output);
        boltkv(args).current_dir(folder.path()).output().unwrap().status.code()
    };
    assert_eq!(compacted(&["-o", "-x.db"]), Some(2));
    assert_eq!(compacted(&["-o=-x.db"]), Some(0));
    assert!(folder.path().join("-x.db").exists());
}

#[test]
fn an_existing_file_a_damaged_one_and_a_missing_one_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old.db"), folder.path().join("new.db"));
    make(&old);
    fs::write(&new, "precious").unwrap();
    for output in [&new, &old] {
        let said = run(args!["file", "compact", &old, "-o", output]).failed(2);
        assert!(said.contains("is there already"), "{said}");
    }
    assert_eq!(fs::read(&new).unwrap(), b"precious");
    fs::remove_file(&new).unwrap();
    let piped = run(args!["file", "compact", &old, "-o", "-"]).failed(2);
    assert!(piped.contains("has a name") && !Path::new("-").exists(), "{piped}");
    run(args!["file", "compact", &old]).code.filter(|&code| code == 2).unwrap();
    run(args!["file", "compact", folder.path().join("missing.db"), "-o", &new]).failed(3);
    let mut bytes = fs::read(&old).unwrap();
    let leaf = (4..bytes.len() / 4096).rev().find(|page| bytes[page * 4096 + 8] == 2 && bytes[page * 4096 + 10] > 5);
    for page in (4..=leaf.unwrap()).filter(|page| bytes[page * 4096 + 8] == 2).collect::<Vec<_>>() {
        bytes[page * 4096 + 8] = 0xff;
    }
    fs::write(&old, bytes).unwrap();
    let said = run(args!["file", "compact", &old, "-o", &new]).failed(1);
    assert!(said.contains("is damaged"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "something was left");
}

#[test]
fn a_new_file_is_not_put_where_the_journal_of_another_would_be_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old.db"), folder.path().join("new.db"));
    make(&old);
    fs::create_dir(folder.path().join("new.db-journal")).unwrap();
    for line in [
        args!["file", "compact", &old, "-o", &new].to_vec(),
        args!["file", "repair", &old, "-o", &new].to_vec(),
        args!["file", "surgery", "freelist", "abandon", &old, "-o", &new].to_vec(),
    ] {
        let refused = run(line);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains("new.db-journal: it is there, and would be taken for"), "{}", refused.stderr);
        assert!(!new.exists());
    }
}
