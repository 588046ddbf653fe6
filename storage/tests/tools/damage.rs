//! Whatever a path leads to, opening, reading and changing it gives data or an error: never a panic, never an endless
//! walk. What only reads, or is refused, leaves the file as it was.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::random::Random;
use crate::common::small_file::{CHECKSUM, MAGIC, PAGE, PAGE_SIZE, SmallFile, TXID, VERSION, odd_numbers, reseal};
use crate::common::{assert_check_clean, committed};
use boltkv_storage::tools::RawFile;
use boltkv_storage::{Bucket, Db, Error, Options, TxMut};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// More entries than any walk of the small file can come to, even where damage makes it see some of them many times.
const WALK_LIMIT: usize = 200_000;

/// Deeper than any bucket of the small file is nested.
const DEPTH_LIMIT: usize = 6;

fn read_only(file: &Path) -> boltkv_storage::Result<Db> {
    Options::new().read_only(true).open(file)
}

/// Reads all that can be read, every way there is; errors are as good as data.
fn read_everything(db: &Db) {
    let _ = db.check();
    let Ok(tx) = db.begin() else { return };
    let mut seen = 0;
    for item in tx.buckets() {
        let Ok((_, bucket)) = item else { break };
        read_bucket(bucket, 0, &mut seen);
    }
    let _ = tx.check();
}

fn read_bucket(bucket: Bucket<'_>, depth: usize, seen: &mut usize) {
    let mut count = |_: &[u8]| {
        *seen += 1;
        assert!(*seen < WALK_LIMIT, "a walk without end");
    };
    let mut inner = Vec::new();
    for entry in &bucket {
        let Ok((key, value)) = entry else { break };
        count(key);
        let _ = bucket.get(key);
        match value {
            Some(value) => drop(value.to_vec()),
            None => inner.extend(bucket.bucket(key).ok()),
        }
    }
    for entry in bucket.iter().rev() {
        let Ok((key, _)) = entry else { break };
        count(key);
    }
    let _ = bucket.is_resident("k4");
    bucket.fault_in(&["k4", "", "not there"]);
    bucket.prefetch(&["k4", "", "not there"]);
    let mut cursor = bucket.cursor();
    let mut found = cursor.seek(b"k4");
    while let Ok(Some((key, _))) = found {
        count(key);
        found = cursor.prev();
    }
    if depth < DEPTH_LIMIT {
        for bucket in inner {
            read_bucket(bucket, depth + 1, seen);
        }
    }
}

/// Opens for writing and tries every kind of change; errors are as good as success.
fn change_everything(file: &Path) {
    let Ok(db) = Db::open(file) else { return };
    if let Ok(mut tx) = db.begin_mut() {
        change_some(&mut tx);
        let _ = tx.commit();
    }
    if let Ok(mut tx) = db.begin_mut() {
        change_some(&mut tx);
    }
    if let Ok(mut tx) = db.begin_mut() {
        let _ = tx.delete_bucket("tree");
        let _ = tx.commit();
    }
    read_everything(&db);
}

fn change_some(tx: &mut TxMut) {
    if let Ok(mut tree) = tx.bucket_mut("tree") {
        let _ = tree.put("k10", vec![1; 200]);
        let _ = tree.put("k555", vec![2; 2000]);
        let _ = tree.next_sequence();
        for n in 15..40 {
            let _ = tree.delete(format!("k{n}"));
        }
        if let Ok(mut inner) = tree.bucket_mut("k50 inner") {
            let _ = inner.put("new", "value");
        }
        let _ = tree.delete_bucket("k70 inline");
    }
    if let Ok(mut inline) = tx.bucket_mut("inline") {
        let _ = inline.put("another", vec![3; 300]);
    }
    if let Ok(mut fresh) = tx.create_bucket_if_not_exists("fresh") {
        let _ = fresh.put("key", vec![4; 5000]);
    }
}

/// Runs a case for each of the given damages, and fails at the end with those that made it panic.
fn none_panics<D: std::fmt::Debug>(damages: impl Iterator<Item = D>, case: impl Fn(&D)) {
    let mut count = 0;
    let panicked: Vec<D> = damages
        .inspect(|_| count += 1)
        .filter(|damage| catch_unwind(AssertUnwindSafe(|| case(damage))).is_err())
        .take(20)
        .collect();
    assert!(panicked.is_empty(), "panics with {panicked:?}");
    assert!(count > 0, "nothing was tried");
}

#[test]
fn a_pipe_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for read_only in [false, true] {
        let refused = Options::new().read_only(read_only).open(&pipe).unwrap_err();
        assert!(refused.to_string().contains("not a regular file"), "{refused}");
    }
}

#[test]
fn the_small_file_itself_is_sound() {
    let small = SmallFile::new();
    let db = read_only(&small.write("sound.db", &small.sound)).unwrap();
    assert!(committed(&db) == small.content);
    assert_check_clean(&db, "the sound file");
    read_everything(&db);
}

#[test]
fn a_directory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Db::open(folder.path()), Err(Error::Io { .. })));
    assert!(matches!(read_only(folder.path()), Err(Error::Io { .. })));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_missing_file_is_not_made_by_those_who_only_read_or_were_told_not_to() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("missing.db");
    for options in [Options::new().read_only(true), Options::new().create(false)] {
        match options.open(&file) {
            Err(Error::Io { source, .. }) => {
                assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
            }
            Err(other) => panic!("not an Io error: {other}"),
            Ok(_) => panic!("a missing file was opened"),
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_empty_file_becomes_a_database_for_a_writer_and_is_refused_to_a_reader() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("empty.db");
    fs::write(&file, "").unwrap();
    assert!(matches!(read_only(&file), Err(Error::EmptyFile)));
    assert!(matches!(RawFile::open(&file, None), Err(Error::EmptyFile)));
    assert_eq!(fs::metadata(&file).unwrap().len(), 0);

    let db = Db::open(&file).unwrap();
    assert_check_clean(&db, "a database out of an empty file");
    let mut tx = db.begin_mut().unwrap();
    tx.create_bucket("b").unwrap();
    tx.commit().unwrap();
    drop(db);
    assert_eq!(committed(&read_only(&file).unwrap()).items.len(), 1);
}

#[test]
fn text_is_refused_and_left_as_it_is() {
    let small = SmallFile::new();
    let long = "Call me Ishmael. Some years ago, never mind how long precisely. ".repeat(2000);
    for text in ["x", "no database\n", &long[..5000], &long] {
        let file = small.write("text.db", text.as_bytes());
        for opened in [Db::open(&file), read_only(&file)] {
            assert!(matches!(opened, Err(Error::NotABoltFile)), "{} bytes of text: {:?}", text.len(), opened.err());
        }
        assert_eq!(fs::read(&file).unwrap(), text.as_bytes());
    }
}

#[test]
fn a_file_cut_within_its_pages_is_refused_and_left_as_it_is() {
    let small = SmallFile::new();
    let needed = small.pages() * PAGE;
    for len in (1..=small.sound.len()).step_by(128).chain([needed - 1, needed]) {
        let file = small.write("cut.db", &small.sound[..len]);
        if len < needed {
            assert!(read_only(&file).is_err(), "{len} of {needed} bytes");
            assert!(Db::open(&file).is_err(), "{len} of {needed} bytes");
        } else {
            // Beyond the last page there is only room.
            assert!(committed(&read_only(&file).unwrap()) == small.content);
        }
        assert_eq!(fs::read(&file).unwrap(), &small.sound[..len]);
    }
}

#[test]
fn random_bytes_are_refused_and_left_as_they_are() {
    let small = SmallFile::new();
    let mut random = Random::new(1);
    for _ in 0..300 {
        let len = 1 + random.below(40_000);
        let bytes = random.bytes(len);
        let file = small.write("random.db", &bytes);
        assert!(read_only(&file).is_err());
        assert!(Db::open(&file).is_err());
        assert_eq!(fs::read(&file).unwrap(), bytes);
    }
}

#[test]
fn one_spoilt_meta_is_made_up_for_by_the_other() {
    let small = SmallFile::new();
    let newer = small.newer_meta();
    for spoilt in [0, 1] {
        let mut bytes = small.sound.clone();
        bytes[spoilt * PAGE + TXID] ^= 1;
        let file = small.write("spoilt.db", &bytes);
        let db = read_only(&file).unwrap();
        assert_eq!(committed(&db) == small.content, spoilt != newer);
        assert_eq!(fs::read(&file).unwrap(), bytes);
    }
}

#[test]
fn two_spoilt_metas_are_refused_with_what_is_wrong() {
    let small = SmallFile::new();
    let open_with = |spoil: &dyn Fn(&mut [u8])| {
        let mut bytes = small.sound.clone();
        bytes[..2 * PAGE].chunks_mut(PAGE).for_each(spoil);
        read_only(&small.write("spoilt.db", &bytes)).err()
    };
    let magic = open_with(&|meta| meta[MAGIC] ^= 1);
    assert!(matches!(magic, Some(Error::NotABoltFile)), "{magic:?}");
    let checksum = open_with(&|meta| meta[CHECKSUM] ^= 1);
    assert!(matches!(checksum, Some(Error::ChecksumMismatch)), "{checksum:?}");
    let version = open_with(&|meta| {
        meta[VERSION] = 3;
        reseal(meta);
    });
    assert!(matches!(version, Some(Error::VersionMismatch { .. })), "{version:?}");
}

#[test]
fn metas_with_odd_fields_and_good_checksums_do_no_harm() {
    let small = SmallFile::new();
    let fields = (PAGE_SIZE..CHECKSUM).step_by(4);
    let damages = fields.flat_map(|field| odd_numbers(small.pages()).into_iter().map(move |number| (field, number)));
    none_panics(damages, |&(field, number)| {
        let mut bytes = small.sound.clone();
        // Four bytes or eight: the fields are of both widths.
        let width = if number > u64::from(u32::MAX) { 8 } else { 4 };
        for meta in bytes[..2 * PAGE].chunks_mut(PAGE) {
            meta[field..field + width].copy_from_slice(&number.to_le_bytes()[..width]);
            reseal(meta);
        }
        let file = small.write("odd.db", &bytes);
        if let Ok(db) = read_only(&file) {
            read_everything(&db);
        }
        assert_eq!(fs::read(&file).unwrap(), bytes, "a reader has written");
        change_everything(&file);
    });
}

fn every_byte_flipped(mask: u8) {
    let small = SmallFile::new();
    none_panics(0..small.pages() * PAGE, |&at| {
        let mut bytes = small.sound.clone();
        bytes[at] ^= mask;
        let file = small.write("flipped.db", &bytes);
        if let Ok(db) = read_only(&file) {
            read_everything(&db);
        }
        assert!(fs::read(&file).unwrap() == bytes, "a reader has written");
    });
}

#[test]
fn reading_with_any_byte_off_by_its_lowest_bit_does_no_harm() {
    every_byte_flipped(0x01);
}

#[test]
fn reading_with_any_byte_off_by_its_highest_bit_does_no_harm() {
    every_byte_flipped(0x80);
}

#[test]
fn reading_with_any_byte_inverted_does_no_harm() {
    every_byte_flipped(0xFF);
}

#[test]
fn writing_with_a_byte_off_does_no_harm() {
    let small = SmallFile::new();
    let places = (0..small.pages() * PAGE).step_by(17).zip([0x01, 0x80, 0xFF].into_iter().cycle());
    none_panics(places, |&(at, mask)| {
        let mut bytes = small.sound.clone();
        bytes[at] ^= mask;
        change_everything(&small.write("flipped.db", &bytes));
    });
}

#[test]
fn words_replaced_by_odd_numbers_do_no_harm() {
    let small = SmallFile::new();
    let numbers = odd_numbers(small.pages());
    none_panics(0..800_u64, |&seed| {
        let mut random = Random::new(seed);
        let mut bytes = small.sound.clone();
        for _ in 0..=random.below(3) {
            let width = [2, 4, 8][random.below(3)];
            // Behind the metas, most often in the headers and elements at the start of a page.
            let page = 2 + random.below(small.pages() - 2);
            let within = [16, 128, PAGE][random.below(3)];
            let at = page * PAGE + random.below(within / width) * width;
            let number = numbers[random.below(numbers.len())];
            bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
        }
        let file = small.write("words.db", &bytes);
        if let Ok(db) = read_only(&file) {
            read_everything(&db);
        }
        change_everything(&file);
    });
}

#[test]
fn random_pages_behind_good_metas_do_no_harm() {
    let small = SmallFile::new();
    none_panics(0..300_u64, |&seed| {
        let mut random = Random::new(seed);
        let mut bytes = small.sound.clone();
        for page in 2..small.pages() {
            // Some pages keep their good header, or all of it, so that the walk gets to the others.
            let from = [0, 16, PAGE][random.below(3)];
            let noise = random.bytes(PAGE - from);
            bytes[page * PAGE + from..(page + 1) * PAGE].copy_from_slice(&noise);
        }
        let file = small.write("noise.db", &bytes);
        if let Ok(db) = read_only(&file) {
            read_everything(&db);
        }
        change_everything(&file);
    });
}
