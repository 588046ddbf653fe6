//! Whatever is in a file, the commands that look into it print what they can and end as they say: no panic, no endless
//! output, one line on standard error.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::fs;
use std::path::Path;

use crate::common::run;
use boltkv_storage::{Error, Options};

const PAGE: usize = 1024;
/// Far more than a sound file of this size prints.
const MOST_PRINTED: usize = 4 << 20;

const COMMANDS: [&[&str]; 14] = [
    &["info"],
    &["buckets"],
    &["keys", "tree"],
    &["get", "tree", "key 20"],
    &["stats"],
    &["pages"],
    &["inspect"],
    &["tree"],
    &["page", "--all"],
    &["page", "--all", "--json"],
    &["page-item", "4", "1"],
    &["dump", "0", "4"],
    &["check"],
    &["export"],
];

/// A small file with branches, nested and inline buckets, a value of several pages, free pages.
fn make(file: &Path) -> Vec<u8> {
    let db = Options::new().page_size(1024).open(file).unwrap();
    db.update(|tx| {
        let mut tree = tx.create_bucket("tree")?;
        (0..60_u32).try_for_each(|key| tree.put(format!("key {key}"), [7; 30]))?;
        tree.create_bucket("inner")?.put("large", vec![1; 3 * PAGE])?;
        tx.create_bucket("inline")?.put("k", "v")
    })
    .and_then(|()| db.update(|tx| tx.bucket_mut("tree")?.delete("key 7").map(drop)))
    .unwrap_or_else(|error: Error| unreachable!("{error}"));
    drop(db);
    fs::read(file).unwrap()
}

/// Damage of every sort, told apart by its number: flipped bits, odd numbers in headers and elements, pages that are zeroed,
/// in the place of another or cut.
fn damage(sound: &[u8], number: usize) -> Vec<u8> {
    const ODD: [u64; 6] = [0, 2, 0xFFFF, 0xFFFF_FFFF, u64::MAX, 0x0001_0001_0001_0001];
    let mut bytes = sound.to_vec();
    let pages = bytes.len() / PAGE;
    let page = number % pages.min(16) * PAGE;
    match number / 16 % 5 {
        0 => bytes[page + number * 31 % PAGE] ^= 1 << (number % 8),
        1 => {
            let at = page + number / 80 * 8 % 64;
            bytes[at..at + 8].copy_from_slice(&ODD[number % ODD.len()].to_le_bytes());
        }
        2 => bytes[page..page + PAGE].fill(0),
        3 => bytes.copy_within(number * 7 % pages * PAGE..(number * 7 % pages + 1) * PAGE, page),
        _ => bytes.truncate(page + number % PAGE),
    }
    bytes
}

#[test]
fn no_damage_makes_a_command_panic_or_print_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let sound = make(&folder.path().join("sound.db"));
    let file = folder.path().join("damaged.db");
    let mut failed = 0;
    for number in 0..160 {
        fs::write(&file, damage(&sound, number)).unwrap();
        // Each damage meets some of the commands, each command each sort of damage.
        for command in COMMANDS.iter().skip(number % 3).step_by(3) {
            let (name, rest) = command.split_first().unwrap();
            let line = args!["file", name, &file].into_iter().chain(rest.iter().map(Into::into));
            let ran = run(line);
            let what = format!("damage {number}, {command:?}: {}", ran.stderr);
            assert!(matches!(ran.code, Some(0 | 1 | 3)), "{what}");
            assert_eq!(ran.stderr.lines().count(), usize::from(ran.code != Some(0)), "{what}");
            assert!(ran.stdout.len() < MOST_PRINTED, "{what}");
            failed += usize::from(ran.code != Some(0));
        }
    }
    assert!(failed > 100, "{failed}: the damage does no harm");
}
