//! `boltkv file check`: what it says about sound files, damaged files and other things, and with what it exits.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

use crate::common::linked::Linked;
use crate::common::{Ran, run, run_unread, unread};
use boltkv_storage::tools::RawFile;
use boltkv_storage::{Db, Error};

const PAGE: u64 = 4096;

fn make(file: &Path, entries: u32) {
    let db = Db::open(file).unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..entries).try_for_each(|i| bucket.put(i.to_be_bytes(), [7; 100]))
    })
    .unwrap_or_else(|error: Error| panic!("{error}"));
}

fn check(file: &Path) -> Ran {
    run(args!["file", "check", file])
}

#[test]
fn a_sound_file_is_ok() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sound.db");
    make(&file, 1000);
    let said = check(&file).done_text();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with(&format!("{}: ok (transaction 2, ", file.display())), "{said}");
}

#[test]
fn a_sound_file_is_ok_in_json() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sound.db");
    make(&file, 10);
    let said = run(args!["file", "check", "--json", &file]).done_text();
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(report["file"], file.to_str().unwrap());
    assert_eq!((&report["ok"], &report["txid"], &report["page_size"]), (&true.into(), &2.into(), &PAGE.into()));
    assert_eq!(report["problems"], serde_json::json!([]));
}

// Promises: ops-check.
#[test]
fn damage_is_listed_with_its_page_and_exits_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("damaged.db");
    make(&file, 1000);
    let damaged = damage_the_last_page(&file);

    let ran = check(&file);
    assert!(ran.text().contains(&format!("{}: page {damaged}: ", file.display())), "{}", ran.text());
    let problems = ran.text().lines().count();
    let said = ran.failed(1);
    assert!(said.contains(&format!("{problems} problem")), "{said}");

    let ran = run(args!["file", "check", "--json", &file]);
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(report["ok"], false);
    assert_eq!(report["problems"].as_array().unwrap().len(), problems);
    assert!(report["problems"].as_array().unwrap().iter().any(|found| found["page"] == damaged), "{report}");
    ran.failed(1);
}

#[test]
fn what_is_found_is_found_also_where_nobody_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("damaged.db");
    make(&file, 1000);
    run_unread(args!["file", "check", &file]).done();
    damage_the_last_page(&file);
    for more in [&[][..], &["--json"]] {
        let args = args!["file", "check", &file].into_iter().chain(more.iter().map(Into::into));
        assert!(run_unread(args).failed(1).contains(" problem"));
    }
    let said = unread(Command::new(Linked::new(folder.path()).0).arg("check").arg(&file));
    assert_eq!(said.code, Some(1), "{}", said.stderr);
}

/// Writes nonsense over the last leaf page that is in use, and returns its number.
fn damage_the_last_page(file: &Path) -> u64 {
    const LEAF: u16 = 2;
    let bytes = fs::read(file).unwrap();
    let flags_of = |page: u64| {
        let at = usize::try_from(page * PAGE + 8).unwrap();
        u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
    };
    // The pages of the bucket come before its small parent's, so the largest leaf is one of its own.
    let count_of = |page: u64| {
        let at = usize::try_from(page * PAGE + 10).unwrap();
        u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
    };
    let page = (4..bytes.len() as u64 / PAGE).rev().find(|&page| flags_of(page) == LEAF && count_of(page) > 1).unwrap();
    fs::File::options().write(true).open(file).unwrap().write_all_at(&[0xff; 64], page * PAGE).unwrap();
    page
}

#[test]
fn a_file_that_is_cut_is_a_problem_found() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cut.db");
    make(&file, 1000);
    fs::File::options().write(true).open(&file).unwrap().set_len(3 * PAGE + 100).unwrap();
    let ran = check(&file);
    assert!(ran.text().contains("the file is cut"), "{}", ran.text());
    ran.failed(1);
}

#[test]
fn what_is_no_bolt_file_could_not_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    fs::write(&text, "no database\n".repeat(1000)).unwrap();
    let cases = [
        (text.as_path(), "not a bolt file"),
        (folder.path(), "it is not a regular file"),
        (&folder.path().join("missing.db"), "No such file"),
    ];
    for (path, why) in cases {
        let said = check(path).failed(3);
        assert!(said.contains(why) && said.contains(path.to_str().unwrap()), "{said}");
    }
    assert!(!folder.path().join("missing.db").exists(), "a check makes no file");
}

/// What a backup became that was compressed, and what is of another program, nobody is to repair.
#[test]
fn what_has_become_of_a_file_is_told_where_its_first_bytes_tell() {
    let folder = tempfile::tempdir().unwrap();
    for (name, begin, says) in [
        ("a.gz", &b"\x1f\x8b\x08\0"[..], "gzip has made it: `gzip -dc "),
        ("a.zst", b"\x28\xb5\x2f\xfd\x04", "zstd has made it: `zstd -dc "),
        ("a.sqlite", b"SQLite format 3\0\x10", "it is a database of SQLite"),
    ] {
        let file = folder.path().join(name);
        for len in [begin.len(), 20_000] {
            let mut bytes = begin.to_vec();
            bytes.resize(len, 7);
            fs::write(&file, bytes).unwrap();
            let new = folder.path().join("new");
            let repair = run(args!["file", "repair", &file, "--output", &new]);
            let [info, page] =
                [args!["file", "info", &file].to_vec(), args!["file", "page", &file, "0"].to_vec()].map(run);
            for ran in [check(&file), run(args!["serve", "--db", &file]), repair, info, page] {
                let said = ran.failed(3);
                assert!(said.contains("not a bolt file: ") && said.contains(says), "{said}");
                assert!(!said.contains("file repair") && !said.contains("--page-size"), "{said}");
            }
        }
    }
}

#[test]
fn a_file_that_is_being_written_is_waited_for_and_then_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("busy.db");
    let _held = Db::open(&file).unwrap();
    let said = run(args!["file", "check", "--timeout", "0.1", &file]).failed(3);
    assert!(said.contains("locked by another process"), "{said}");
}

#[test]
fn a_file_that_others_read_can_be_checked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("read.db");
    make(&file, 10);
    let _reader = boltkv_storage::Options::new().read_only(true).open(&file).unwrap();
    check(&file).done();
}

#[test]
fn a_check_can_begin_at_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sound.db");
    make(&file, 1000);
    let root = Db::open(&file).unwrap().begin().unwrap().bucket("b").unwrap().root_page().unwrap().to_string();
    let damaged = damage_the_last_page(&file).to_string();
    let from = |page: &str| run(args!["file", "check", "--from-page", page, &file]);
    assert!(from(&root).text().contains(&format!("page {damaged}: ")));
    from(&root).failed(1);
    from(&damaged).failed(1);
    let sound = (3..40).map(|page: u64| page.to_string()).find(|page| from(page).code == Some(0));
    assert!(sound.is_some_and(|page| page != damaged), "no page is sound");
    assert!(from("1").failed(2).contains("page 1 is a meta"));
    // As in bbolt, 0 is the whole file.
    assert_eq!(from("0"), check(&file));
}

/// Two acknowledged writes, and then one byte of the newest meta changed.
fn with_a_damaged_meta(folder: &Path) -> std::path::PathBuf {
    let file = folder.join("doubtful.db");
    make(&file, 10);
    let newest = RawFile::open(&file, None).unwrap().newest_meta().unwrap();
    let at = newest.txid % 2 * PAGE + 40;
    fs::File::options().write(true).open(&file).unwrap().write_all_at(&[0xA5], at).unwrap();
    file
}

#[test]
fn a_damaged_meta_is_told_by_every_command_that_looks_at_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = with_a_damaged_meta(folder.path());
    let what = "meta 0 is damaged: transaction 1 is the newest left, and a later one may be lost";

    let checked = check(&file);
    assert!(checked.text().contains(&format!("page 0: {what}")), "{}", checked.text());
    assert!(checked.failed(1).contains("1 problem"));

    let repaired = run(args!["file", "repair", &file, "--output", folder.path().join("new.db")]);
    assert!(
        repaired.text().contains(&format!("in doubt: page 0: at the top, all keys: {what}")),
        "{}",
        repaired.text()
    );
    assert!(repaired.failed(1).contains("in doubt: 1 place"));

    let info = run(args!["file", "info", &file]).done_text();
    assert!(info.contains(&format!("In Doubt: {what}")), "{info}");
}

#[test]
fn a_server_warns_of_a_damaged_meta_and_its_first_write_clears_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = with_a_damaged_meta(folder.path());
    let server = crate::common::server::Server::start(&file);
    server.run(["bucket", "create", "b"]).done();
    let said = server.stop();
    assert_eq!(said.code, Some(0));
    assert!(said.stderr.contains("meta 0 is damaged: transaction 1 is the newest left"), "{}", said.stderr);
    check(&file).done();
}
