//! `boltkv file diff`: what it finds, how it prints it, with what it exits.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::common::{peer, run, run_unread};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use boltkv_storage::tools::RawFile;
use boltkv_storage::{BucketMut, Db, Error, TxMut};
use serde_json::{Value as Json, json};

fn make(file: &Path, write: impl FnOnce(&mut TxMut) -> Result<(), Error>) -> PathBuf {
    Db::open(file).unwrap().update(write).unwrap();
    file.to_owned()
}

/// Two files with a difference of every sort.
fn two(folder: &Path) -> (PathBuf, PathBuf) {
    let old = make(&folder.join("old.db"), |tx| {
        let mut users = tx.create_bucket("users")?;
        users.put("ada", "lovelace")?;
        users.put("bob", "marley")?;
        users.put("same", "same")?;
        users.create_bucket("eu")?.put("k", "v")?;
        users.create_bucket("x")?.set_sequence(3)?;
        tx.create_bucket("gone")?.put("k", [0xff])
    });
    let new = make(&folder.join("new.db"), |tx| {
        let mut users = tx.create_bucket("users")?;
        users.set_sequence(7)?;
        users.put("bob", "dylan")?;
        users.put("eu", "a value now")?;
        users.put("same", "same")?;
        users.create_bucket("x")?.set_sequence(3)?;
        users.put("zoe", "")
    });
    (old, new)
}

const DIFFERENT: &str = "\
- gone/
- gone/ k = ff
~ users/ sequence = 0 -> 7
- users/ ada = lovelace
~ users/ bob = marley -> dylan
+ users/ eu = a value now
- users/eu/
- users/eu/ k = v
+ users/ zoe = \n";

#[test]
fn files_differ_also_where_nobody_reads_how() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = two(folder.path());
    assert!(run_unread(args!["file", "diff", &old, &new]).failed(1).contains("only in "));
    run_unread(args!["file", "diff", &old, &old]).done();
    // More than is held back until the end.
    let large = make(&folder.path().join("large.db"), |tx| tx.create_bucket("b")?.put("k", vec![7; 100_000]));
    let said = run_unread(args!["file", "diff", &old, &large]).failed(1);
    assert!(said.ends_with("large.db differ\n"), "{said}");
}

#[test]
fn every_difference_is_a_line_in_the_order_of_the_keys() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = two(folder.path());
    let ran = run(args!["file", "diff", &old, &new]);
    assert_eq!(ran.text(), DIFFERENT);
    let summary = format!("boltkv: only in {}: 5, only in {}: 2, changed: 2\n", old.display(), new.display());
    assert_eq!(ran.failed(1), summary);
    let back: String = run(args!["file", "diff", "--keys-only", &new, &old]).text();
    assert!(back.starts_with("+ gone/\n+ gone/ k\n~ users/ sequence = 7 -> 0\n+ users/ ada\n"), "{back}");
    let brief = run(args!["file", "diff", "--brief", &old, &new]);
    assert_eq!(brief.text(), "");
    assert_eq!(brief.failed(1), summary);
    let hex = run(args!["file", "diff", "--format", "hex", &old, &new]).text();
    assert!(hex.contains("\n~ 7573657273/ 626f62 = 6d61726c6579 -> 64796c616e\n"), "{hex}");
}

#[test]
fn json_has_an_object_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = two(folder.path());
    let ran = run(args!["file", "diff", "--json", &old, &new]);
    let lines: Vec<Json> = ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), DIFFERENT.lines().count());
    assert_eq!(lines[0], json!({"change": "-", "path": ["Z29uZQ=="], "old_sequence": 0}));
    assert_eq!(lines[1], json!({"change": "-", "path": ["Z29uZQ=="], "key": "aw==", "old": "/w=="}));
    assert_eq!(lines[2], json!({"change": "~", "path": ["dXNlcnM="], "old_sequence": 0, "new_sequence": 7}));
    let bob = json!({"change": "~", "path": ["dXNlcnM="], "key": "Ym9i", "old": "bWFybGV5", "new": "ZHlsYW4="});
    assert_eq!(lines[4], bob);
    let keys = run(args!["file", "diff", "--json", "--keys-only", &old, &new]).text();
    assert!(!keys.contains("\"old\"") && !keys.contains("\"new\""), "{keys}");
}

#[boltkv_needs::program("go")]
#[test]
fn files_that_hold_the_same_do_not_differ_however_they_are_built() {
    let Some(peer) = peer::peer() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (theirs, ours) = crate::common::files::made_by_both(&peer, folder.path());
    assert_eq!(run(args!["file", "diff", &theirs, &ours]).done(), b"");
    assert_eq!(run(args!["file", "diff", "--brief", &theirs, &theirs]).done(), b"");
}

#[test]
fn a_file_that_cannot_be_opened_or_read_is_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = two(folder.path());
    let missing = folder.path().join("missing.db");
    for (one, other) in [(&old, &missing), (&missing, &old)] {
        assert!(run(args!["file", "diff", one, other]).failed(3).contains("missing.db"));
    }
    let root = RawFile::open(&new, None).unwrap().newest_meta().unwrap().root;
    fs::File::options().write(true).open(&new).unwrap().write_all_at(&[0xff; 64], root * 4096).unwrap();
    assert!(run(args!["file", "diff", &old, &new]).failed(3).contains("new.db: page "));
    let _held = Db::open(&old).unwrap();
    let said = run(args!["file", "diff", "--timeout", "0.1", &old, &missing]).failed(3);
    assert!(said.contains("locked by another process"), "{said}");
}

#[test]
fn a_bucket_that_contains_itself_has_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("circle.db");
    let db = Db::open(&file).unwrap();
    db.update(|tx| {
        let mut outer = tx.create_bucket("outer")?;
        (0..200).try_for_each(|number: u32| outer.put(number.to_be_bytes(), [0; 20]))?;
        let mut inner = outer.create_bucket("inner")?;
        (0..200).try_for_each(|number: u32| inner.put(number.to_be_bytes(), [1; 20]))
    })
    .unwrap();
    let (outer, inner) = {
        let tx = db.begin().unwrap();
        let root = |path: &[&str]| tx.bucket_path(path).unwrap().root_page().unwrap();
        (root(&["outer"]), root(&["outer", "inner"]))
    };
    drop(db);
    let mut bytes = fs::read(&file).unwrap();
    let entry = [b"inner", &inner.to_le_bytes()[..]].concat();
    for at in (0..bytes.len() - entry.len()).filter(|&at| bytes[at..].starts_with(&entry)).collect::<Vec<_>>() {
        bytes[at + 5..at + 13].copy_from_slice(&outer.to_le_bytes());
    }
    fs::write(&file, bytes).unwrap();
    let said = run(args!["file", "diff", "--brief", &file, &file]).failed(3);
    assert!(said.contains("it leads to more than it can hold"), "{said}");
}

/// What a file holds: the plainest thing that a diff can be compared with.
#[derive(Clone, Default, PartialEq)]
struct Model {
    sequence: u64,
    items: BTreeMap<Vec<u8>, Item>,
}

#[derive(Clone, PartialEq)]
enum Item {
    Value(Vec<u8>),
    Bucket(Model),
}

/// Numbers that are the same for the same seed: Steele, Lea and Flood's `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let len = self.below(most + 1);
        (0..len).map(|_| b"ab\x00\xff"[usize::try_from(self.below(4)).unwrap()]).collect()
    }

    /// Changes some of a bucket, and of those in it. At the top there are only buckets.
    fn change(&mut self, bucket: &mut Model, depth: u64, times: u64) {
        for _ in 0..times {
            let key = [self.bytes(3), b"k".to_vec()].concat();
            match self.below(6) {
                0 => drop(bucket.items.remove(&key)),
                1 if depth > 0 => bucket.sequence = self.below(3),
                2 | 3 if depth < 3 => {
                    let Item::Bucket(inner) = bucket.items.entry(key).or_insert(Item::Bucket(Model::default())) else {
                        continue;
                    };
                    self.change(inner, depth + 1, times / 2);
                }
                _ if depth > 0 => drop(bucket.items.insert(key, Item::Value(self.bytes(9)))),
                _ => {}
            }
        }
    }
}

fn write(model: &Model, bucket: &mut BucketMut<'_>) -> Result<(), Error> {
    bucket.set_sequence(model.sequence)?;
    for (key, item) in &model.items {
        match item {
            Item::Value(value) => bucket.put(key, value)?,
            Item::Bucket(inner) => write(inner, &mut bucket.create_bucket(key)?)?,
        }
    }
    Ok(())
}

fn write_top(model: &Model, file: &Path) {
    make(file, |tx| {
        for (name, item) in &model.items {
            let Item::Bucket(bucket) = item else { panic!("a value at the top") };
            write(bucket, &mut tx.create_bucket(name)?)?;
        }
        Ok(())
    });
}

/// A line with those fields that there are, the second what was and the third what is.
fn line(path: &[Vec<u8>], fields: [(&str, Option<Json>); 3]) -> Json {
    let change = match (&fields[1].1, &fields[2].1) {
        (Some(_), None) => "-",
        (None, _) => "+",
        (Some(_), Some(_)) => "~",
    };
    let names: Vec<String> = path.iter().map(|name| STANDARD.encode(name)).collect();
    let mut object = json!({"change": change, "path": names});
    for (name, value) in fields {
        if let Some(value) = value {
            object[name] = value;
        }
    }
    object
}

/// The lines that a diff of two models is.
fn expected(path: &[Vec<u8>], old: Option<&Model>, new: Option<&Model>, lines: &mut Vec<Json>) {
    let sequence = |model: Option<&Model>| model.map(|model| model.sequence);
    if sequence(old) != sequence(new) {
        let json = |model| sequence(model).map(Json::from);
        lines.push(line(path, [("key", None), ("old_sequence", json(old)), ("new_sequence", json(new))]));
    }
    let empty = BTreeMap::new();
    let (old, new) = (old.map_or(&empty, |old| &old.items), new.map_or(&empty, |new| &new.items));
    for key in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
        let value = |items: &BTreeMap<_, _>| match items.get(key) {
            Some(Item::Value(value)) => Some(Json::from(STANDARD.encode(value))),
            _ => None,
        };
        if value(old) != value(new) {
            let key = STANDARD.encode(key).into();
            lines.push(line(path, [("key", Some(key)), ("old", value(old)), ("new", value(new))]));
        }
        let bucket = |items: &'_ BTreeMap<Vec<u8>, Item>| match items.get(key) {
            Some(Item::Bucket(bucket)) => Some(bucket.clone()),
            _ => None,
        };
        let (old, new) = (bucket(old), bucket(new));
        if old.is_some() || new.is_some() {
            let path: Vec<Vec<u8>> = path.iter().chain([key]).cloned().collect();
            expected(&path, old.as_ref(), new.as_ref(), lines);
        }
    }
}

#[test]
fn the_difference_of_two_files_is_that_of_what_they_hold() {
    let mut lines_in_all = 0;
    for seed in 0..25 {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one.db"), folder.path().join("other.db"));
        let mut random = Random(seed);
        let mut old = Model::default();
        random.change(&mut old, 0, 40);
        let mut new = old.clone();
        random.change(&mut new, 0, seed);
        write_top(&old, &one);
        write_top(&new, &other);
        let mut lines = Vec::new();
        expected(&[], Some(&old), Some(&new), &mut lines);
        lines_in_all += lines.len();
        let ran = run(args!["file", "diff", "--json", &one, &other]);
        let printed: Vec<Json> = ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(printed, lines, "seed {seed}");
        assert_eq!(ran.code, Some(i32::from(!lines.is_empty())), "seed {seed}");
    }
    assert!(lines_in_all > 300, "{lines_in_all} lines: the models hardly differ");
}
