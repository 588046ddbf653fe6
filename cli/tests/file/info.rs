//! `boltkv file info`: what bbolt prints and more, of damaged files too, and JSON.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::fs;
use std::os::unix::fs::FileExt as _;

use crate::common::files::{ALL, files};
use crate::common::run;
use boltkv_storage::{Db, FreelistStored, Options};

#[test]
fn the_first_line_is_bbolts() {
    let Some(files) = files() else { return };
    for name in ALL {
        let theirs = files.bbolt.run(args!["info", files.path(name)]);
        let ours = run(args!["file", "info", files.path(name)]).done();
        assert!(ours.starts_with(&theirs.stdout), "{name}: {}", String::from_utf8_lossy(&ours));
        assert!(theirs.stdout.starts_with(b"Page Size: "), "{name}");
    }
}

#[test]
fn a_sound_file_is_told_in_text_and_json() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    Options::new().page_size(1024).open(&file).and_then(|db| db.update(|tx| tx.create_bucket("b").map(drop))).unwrap();
    let len = fs::metadata(&file).unwrap().len();
    let printed = run(args!["file", "info", &file]).done_text();
    assert_eq!(
        printed,
        format!(
            "Page Size: 1024
File Size: {len} bytes
Meta 0: transaction 2, root page 4, freelist page 5, high-water mark 6, in use
Meta 1: transaction 1, root page 3, freelist page 2, high-water mark 4, valid
Transaction: 2
Pages: 6
Free Pages: 2
Buckets at the Top: 1
"
        )
    );
    let json: serde_json::Value =
        serde_json::from_str(&run(args!["file", "info", &file, "--json"]).done_text()).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "page_size": 1024, "file_size": len, "txid": 2, "pages": 6, "free_pages": 2, "in_doubt": null, "buckets": 1,
            "metas": [
                {"txid": 2, "root": 4, "freelist": 5, "high_water_mark": 6, "in_use": true, "fault": null},
                {"txid": 1, "root": 3, "freelist": 2, "high_water_mark": 4, "in_use": false, "fault": null},
            ],
        })
    );
}

#[test]
fn a_freelist_that_is_not_stored_is_counted_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let db = Options::new().freelist(FreelistStored::Never).open(&file).unwrap();
    db.update(|tx| tx.create_bucket("b").map(drop)).unwrap();
    drop(db);
    let printed = run(args!["file", "info", &file]).done_text();
    assert!(printed.contains("freelist not stored") && printed.contains("Free Pages: "), "{printed}");
}

#[test]
fn of_a_file_that_does_not_open_is_told_what_can_be_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    drop(Db::open(&file).unwrap());
    let spoil = |at: u64| fs::File::options().write(true).open(&file).unwrap().write_all_at(&[9], at).unwrap();
    spoil(4096 + 72);
    let printed = run(args!["file", "info", &file]).done_text();
    assert!(
        printed
            .contains("Meta 1: transaction 1, root page 3, freelist page 2, high-water mark 4, damaged: its checksum")
    );
    assert!(printed.contains("Transaction: 0\n"), "{printed}");
    spoil(16);
    let ran = run(args!["file", "info", &file]);
    assert!(
        ran.text().starts_with("Page Size: 4096\n") && ran.text().contains("its magic number is 0x"),
        "{}",
        ran.text()
    );
    assert!(!ran.text().contains("Free Pages"), "{}", ran.text());
    let said = ran.failed(1);
    assert!(said.contains("meta 0: its magic number is 0x") && said.contains("meta 1: its checksum is "), "{said}");
    fs::write(&file, "no database\n".repeat(1000)).unwrap();
    assert!(run(args!["file", "info", &file]).failed(3).contains("not a bolt file"));
    fs::write(&file, "").unwrap();
    for command in ["info", "check", "buckets", "pages"] {
        let said = run(args!["file", command, &file]).failed(3);
        assert!(said.contains("the file is empty") && !said.contains("--page-size"), "{command}: {said}");
    }
}
