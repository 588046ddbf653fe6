//! `boltkv file page`: what bbolt prints, what it says of damaged pages, and JSON.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::fs;

use crate::common::files::{ALL, files};
use crate::common::run;
use boltkv_storage::Db;
use boltkv_storage::tools::RawFile;

#[test]
fn pages_are_printed_as_bbolt_does() {
    let Some(files) = files() else { return };
    for name in ALL {
        let file = RawFile::open(files.path(name), None).unwrap();
        // bbolt prints up to the first meta's high-water mark, even if the second is newer; and it prints no page that runs on
        // over nearly all of the file.
        let end = file.meta(0).unwrap().high_water_mark.min(400);
        let mut page = 0;
        while page < end {
            for format in ["auto", "ascii-encoded", "hex", "redacted"] {
                files.same(name, "page", &[page.to_string().into(), "--format-value".into(), format.into()]);
            }
            page += 1 + u64::from(file.page(page).unwrap().header().overflow);
        }
        if file.newest_meta() == file.meta(0) {
            files.same(name, "page", &["--all".into()]);
        }
    }
    files.same("odd", "page", &["2", "0", "3"].map(Into::into));
}

#[test]
fn json_has_a_line_for_each_page_and_each_thing_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let db = Db::open(&file).unwrap();
    db.update(|tx| {
        let mut outer = tx.create_bucket("outer")?;
        outer.set_sequence(7)?;
        outer.create_bucket("inner")?.put("k", "v")?;
        (0..100_u8).try_for_each(|key| outer.put([key], vec![key; 100]))
    })
    .unwrap();
    drop(db);
    let printed = run(args!["file", "page", &file, "--all", "--json"]).done_text();
    let lines: Vec<serde_json::Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let with = |name: &str| lines.iter().filter(|line| !line[name].is_null()).count();
    let info =
        serde_json::from_str::<serde_json::Value>(&run(args!["file", "info", &file, "--json"]).done_text()).unwrap();
    assert_eq!((with("value"), with("version"), with("error")), (100, 2, 0));
    assert_eq!(info["free_pages"], with("free"));
    assert_eq!(lines.iter().filter(|line| line["root"] == 0).count(), 1, "the inline bucket");
    assert!(lines.iter().any(|line| line["key"] == "b3V0ZXI=" && line["sequence"] == 7));
    assert!(with("child") >= 2);
}

#[test]
fn a_damaged_page_is_said_to_be_damaged_and_the_others_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    Db::open(&file).and_then(|db| db.update(|tx| tx.create_bucket("b")?.put("k", "v"))).unwrap();
    let root = RawFile::open(&file, None).unwrap().newest_meta().unwrap().root;
    let mut bytes = fs::read(&file).unwrap();
    // Its element's position.
    bytes[usize::try_from(root * 4096).unwrap() + 16 + 4..][..4].fill(0xff);
    // The checksum of the second meta.
    bytes[4096 + 72] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let ran = run(args!["file", "page", &file, "1", root.to_string(), "2"]);
    let text = ran.text();
    assert!(text.contains("Damaged:    its checksum is "), "{text}");
    assert!(
        text.contains(&format!("Page {root} cannot be printed: page {root} is damaged: element 0 points to")),
        "{text}"
    );
    assert!(text.contains("Page ID:    2\n"), "{text}");
    assert!(ran.failed(1).contains("1 page is damaged"));
}

#[test]
fn a_page_that_the_file_does_not_have_is_a_mistake_of_usage_and_one_that_was_cut_off_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    Db::open(&file).and_then(|db| db.update(|tx| tx.create_bucket("b")?.put("k", "v"))).unwrap();
    let raw = RawFile::open(&file, None).unwrap();
    let (pages, end) = (raw.pages(), raw.end());
    for args in [args!["file", "page", &file, "0", "99"], args!["file", "page-item", &file, "99", "0"]] {
        let said = run(args).failed(2);
        assert!(said.contains(&format!("has no page 99: its pages are 0 to {}", pages - 1)), "{said}");
    }
    let said = run(args!["file", "check", &file, "--from-page", "99"]).failed(2);
    assert!(said.contains("uses no page 99, but 0 to "), "{said}");
    let said = run(args!["file", "check", &file, "--from-page", "1"]).failed(2);
    assert!(said.contains("page 1 is a meta"), "{said}");
    fs::File::options().write(true).open(&file).unwrap().set_len((end - 1) * 4096).unwrap();
    let ran = run(args!["file", "page", &file, (end - 1).to_string()]);
    assert!(ran.text().contains("whole pages"), "{}", ran.text());
    assert!(ran.failed(1).contains("1 page is damaged"));
}

#[test]
fn pages_are_named_or_all_of_them_not_both() {
    assert_eq!(run(args!["file", "page", "a.db"]).code, Some(2));
    assert_eq!(run(args!["file", "page", "a.db", "--all", "1"]).code, Some(2));
    assert_eq!(run(args!["file", "page", "a.db", "one"]).code, Some(2));
}
