//! `boltkv file repair`: what it prints and with what it exits. What it salvages, the tests of the engine prove.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::common::{peer, run, run_unread};
use boltkv_storage::tools::RawFile;
use boltkv_storage::{Db, Error, Options};
use serde_json::{Value, json};

const PAGE: u64 = 4096;

/// A file with a bucket of some leaves; the answer names its folder's file, and the second of these leaves.
fn make(folder: &Path) -> (PathBuf, u64) {
    let file = folder.join("some.db");
    let db = Options::new().page_size(4096).open(&file).unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        bucket.set_sequence(7)?;
        (0..1000).try_for_each(|number| bucket.put(format!("{number:04}"), [7; 20]))
    })
    .unwrap_or_else(|error: Error| panic!("{error}"));
    db.update(|tx| tx.create_bucket("other")?.put("k", "v")).unwrap();
    let root = db.begin().unwrap().bucket("b").unwrap().root_page().unwrap();
    drop(db);
    let leaf = RawFile::open(&file, None).unwrap().page(root).unwrap().branch_element(1).unwrap().child;
    (file, leaf)
}

fn wreck(file: &Path, page: u64) {
    fs::File::options().write(true).open(file).unwrap().write_all_at(&[0xff; 4096], page * PAGE).unwrap();
}

fn values(file: &Path) -> u64 {
    let db = Options::new().read_only(true).open(file).unwrap();
    assert_eq!(db.check().unwrap(), []);
    let tx = db.begin().unwrap();
    assert_eq!(tx.bucket("b").unwrap().sequence(), 7);
    tx.bucket("b").unwrap().count().unwrap()
}

#[test]
fn a_sound_file_is_written_anew_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (file, _) = make(folder.path());
    let new = folder.path().join("new.db");
    let said = run(args!["file", "repair", &file, "--output", &new]).done_text();
    assert_eq!(said, format!("{}: 2 buckets, 1,001 values, of transaction 3\n", new.display()));
    assert_eq!(values(&new), 1000);
}

#[test]
fn what_was_lost_is_told_by_page_and_keys_and_exits_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let (file, leaf) = make(folder.path());
    wreck(&file, leaf);
    let before = fs::read(&file).unwrap();
    let new = folder.path().join("new.db");
    let ran = run(args!["file", "repair", &file, "--output", &new]);
    let first = ran.text().lines().next().unwrap().to_owned();
    assert!(first.starts_with(&format!("lost: page {leaf}: bucket \"b\", keys from \"0")), "{first}");
    assert!(first.contains(" up to \"0") && first.contains(": its header says that it is page "), "{first}");
    assert!(ran.failed(1).ends_with("some.db: lost: 1 place, in doubt: nothing\n"));
    assert!((800..1000).contains(&values(&new)));
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left behind");
}

#[test]
fn what_was_lost_is_lost_also_where_nobody_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let (file, leaf) = make(folder.path());
    wreck(&file, leaf);
    let said = run_unread(args!["file", "repair", &file, "--output", folder.path().join("new.db")]).failed(1);
    assert!(said.ends_with("some.db: lost: 1 place, in doubt: nothing\n"), "{said}");
    assert!((800..1000).contains(&values(&folder.path().join("new.db"))));
}

#[test]
fn json_has_a_line_for_each_place_and_one_for_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let (file, leaf) = make(folder.path());
    wreck(&file, leaf);
    let new = folder.path().join("new.db");
    let ran = run(args!["file", "repair", "--json", &file, "--output", &new]);
    let lines: Vec<Value> = ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let lost = &lines[0]["lost"];
    assert_eq!((&lost["page"], &lost["path"]), (&json!(leaf), &json!(["Yg=="])));
    assert!(lost["from"].is_string() && lost["up_to"].is_string() && lost["what"].is_string(), "{lost}");
    let repaired = &lines[1]["repaired"];
    assert_eq!((&repaired["lost"], &repaired["doubtful"], &repaired["txid"]), (&json!(1), &json!(0), &json!(3)));
    assert_eq!(repaired["orphans"], json!({"pages": 0, "free_pages_known": true, "bucket": null, "values": 0}));
    // The damaged leaf is the older transaction's, too.
    assert_eq!(repaired["alternative"], json!({"meta": 0, "txid": 2, "lost": 1, "doubtful": 0}));
    assert_eq!(values(&new) + 1, repaired["values"].as_u64().unwrap());
    ran.failed(1);
}

#[test]
fn what_nothing_leads_to_is_told_and_salvaged_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (file, _) = make(folder.path());
    let root = Db::open(&file).unwrap().begin().unwrap().bucket("b").unwrap().root_page().unwrap();
    wreck(&file, root);
    let new = |name| folder.path().join(name);
    let ran = run(args!["file", "repair", &file, "--output", new("without.db")]);
    assert!(ran.text().contains(": --orphans salvages what they hold\n"), "{}", ran.text());
    assert_eq!(values(&new("without.db")), 0);
    ran.failed(1);
    let ran = run(args!["file", "repair", &file, "--orphans", "--output", new("with.db")]);
    assert!(ran.text().contains(": 1,000 values, in the bucket lost+found\n"), "{}", ran.text());
    ran.failed(1);
}

#[test]
fn another_meta_another_root_and_a_page_size_can_be_given() {
    let folder = tempfile::tempdir().unwrap();
    let (file, _) = make(folder.path());
    let root = RawFile::open(&file, None).unwrap().newest_meta().unwrap().root.to_string();
    let repair = |number: u32, more: &[&str]| {
        let new = folder.path().join(format!("new-{number}.db"));
        let mut args = args!["file", "repair", &file, "--output", new].to_vec();
        args.extend(more.iter().map(Into::into));
        run(args)
    };
    assert!(repair(0, &["--meta", "0"]).done_text().contains("1 bucket, 1,000 values, of transaction 2"));
    assert!(repair(1, &["--root", &root]).done_text().contains(&format!("from page {root} on")));
    assert!(repair(2, &["--page-size", "4096"]).done_text().contains("1,001 values"));
    for (number, wrong) in [(3, ["--page-size", "1000"]), (4, ["--meta", "2"]), (5, ["--root", "x"])] {
        assert_eq!(repair(number, &wrong).code, Some(2), "{wrong:?}");
    }
    fs::File::options().write(true).open(&file).unwrap().write_all_at(&[0; 8192], 0).unwrap();
    let ran = repair(6, &[]);
    assert!(ran.text().starts_with("lost: page ") && ran.text().contains("that look like a root"), "{}", ran.text());
    ran.failed(1);
}

#[test]
fn a_file_that_is_there_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (file, _) = make(folder.path());
    let there = folder.path().join("there");
    fs::write(&there, "kept").unwrap();
    for output in [&there, &file] {
        let before = fs::read(output).unwrap();
        let said = run(args!["file", "repair", &file, "--output", output]).failed(2);
        assert!(said.contains("is there already"), "{said}");
        assert_eq!(fs::read(output).unwrap(), before);
    }
    let said = run(args!["file", "repair", &file, "--output", folder.path().join("no/such/folder")]).failed(1);
    assert!(said.contains("no/such/folder: No such file"), "the name that was asked for: {said}");
}

#[test]
fn what_cannot_be_read_as_a_bolt_file_could_not_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    fs::write(&text, "no database\n".repeat(1000)).unwrap();
    let missing = folder.path().join("missing.db");
    let new = folder.path().join("new.db");
    for (path, why) in [(&text, "not a bolt file"), (&missing, "No such file")] {
        let said = run(args!["file", "repair", path, "--output", &new]).failed(3);
        assert!(said.contains(why) && said.contains(path.to_str().unwrap()), "{said}");
    }
    let (file, _) = make(folder.path());
    let _held = Db::open(&file).unwrap();
    let said = run(args!["file", "repair", &file, "--timeout", "0.1", "--output", &new]).failed(3);
    assert!(said.contains("locked by another process"), "{said}");
    assert!(!new.exists());
}

#[boltkv_needs::program("go")]
#[test]
fn a_file_that_go_made_comes_out_whole_for_go() {
    let Some(peer) = peer::peer() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (theirs, ours) = (folder.path().join("theirs.db"), folder.path().join("ours.db"));
    peer.make_mixed(&theirs);
    run(args!["file", "repair", &theirs, "--output", &ours]).done();
    assert!(peer.dump(&theirs) == peer.dump(&ours), "the dumps differ");
    peer.assert_check_clean(&ours);
}
