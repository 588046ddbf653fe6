//! `boltkv file surgery meta validate` says of each meta page whether it is sound.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::run;
use crate::common::surgery::Table;

#[boltkv_needs::program("go")]
#[test]
fn two_sound_meta_pages_are_valid_as_for_bbolt() {
    let table = Table::new();
    let said = run(args!["file", "surgery", "meta", "validate", &table.source]).done_text();
    assert_eq!(said, "meta page 0 is valid: transaction 12\nmeta page 1 is valid: transaction 11\n");
    let Some(bbolt) = crate::common::peer::bbolt() else { return };
    let theirs = bbolt.run(args!["surgery", "meta", "validate", &table.source]);
    assert_eq!(theirs.text().matches("is valid!").count(), 2, "{}", theirs.text());
}

#[test]
fn a_damaged_meta_page_is_named_with_what_is_wrong() {
    let table = Table::new();
    let sound = std::fs::read(&table.source).unwrap();
    for (at, why) in [(16, "magic number"), (20, "version"), (64, "its checksum does not match")] {
        let mut bytes = sound.clone();
        bytes[4096 + at] ^= 1;
        std::fs::write(&table.source, bytes).unwrap();
        let ran = run(args!["file", "surgery", "meta", "validate", &table.source]);
        let lines: Vec<String> = ran.text().lines().map(str::to_owned).collect();
        assert_eq!(lines[0], "meta page 0 is valid: transaction 12");
        assert!(lines[1].starts_with("meta page 1 is not valid: ") && lines[1].contains(why), "{lines:?}");
        ran.failed(1);
        if let Some(bbolt) = crate::common::peer::bbolt() {
            let theirs = bbolt.run(args!["surgery", "meta", "validate", &table.source]).text();
            assert!(theirs.contains("page 0 is valid") && theirs.contains("page 1 isn't valid"), "{theirs}");
        }
    }
}

#[test]
fn what_is_wrong_is_said_in_json() {
    let table = Table::new();
    let mut bytes = std::fs::read(&table.source).unwrap();
    for meta in [0, 4096] {
        bytes[meta + 64] ^= 1;
    }
    std::fs::write(&table.source, bytes).unwrap();
    let ran = run(args!["file", "surgery", "meta", "validate", "--json", &table.source]);
    let lines: Vec<serde_json::Value> = ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[1]["meta_page"], &lines[1]["valid"]), (&1.into(), &false.into()));
    ran.failed(1);
}
