//! A repair of files whose pages lead in circles, to each other or into each other; and of pages that nothing leads to.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::content_of_file;
use crate::common::generator::Generator;
use crate::common::model::Model;
use crate::common::salvage::values;
use crate::common::setup::Setup;
use boltkv_storage::tools::{RepairEvent, RepairOptions, Repaired};
use boltkv_storage::{Db, Options, Tx};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: usize = 1024;

/// A file with two buckets of many pages, the second with one in it, and with free pages.
fn make(folder: &Path) -> PathBuf {
    let file = folder.join("made.db");
    let db = Options::new().page_size(1024).open(&file).unwrap();
    db.update(|tx| {
        let mut first = tx.create_bucket("first")?;
        (0..400).try_for_each(|number| first.put(format!("{number:04}"), "first"))?;
        let mut second = tx.create_bucket("second")?;
        (0..400).try_for_each(|number| second.put(format!("{number:04}"), "second"))?;
        let mut inner = second.create_bucket("inner")?;
        inner.set_sequence(7)?;
        (0..400).try_for_each(|number| inner.put(format!("{number:04}"), "inner"))
    })
    .unwrap();
    db.update(|tx| tx.bucket_mut("first")?.put("0000", "changed")).unwrap();
    file
}

fn root_of(file: &Path, path: &[&str]) -> u64 {
    let db = Options::new().read_only(true).open(file).unwrap();
    let tx: Tx = db.begin().unwrap();
    tx.bucket_path(path).unwrap().root_page().unwrap()
}

fn place(page: u64) -> usize {
    usize::try_from(page).unwrap() * PAGE
}

/// The children that a branch names.
fn children(file: &Path, branch: u64) -> Vec<u64> {
    let bytes = fs::read(file).unwrap();
    let count = u16::from_le_bytes(bytes[place(branch) + 10..][..2].try_into().unwrap());
    let child = |index| u64::from_le_bytes(bytes[place(branch) + 24 + 16 * index..][..8].try_into().unwrap());
    (0..usize::from(count)).map(child).collect()
}

fn patch(file: &Path, at: usize, new: &[u8]) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at..at + new.len()].copy_from_slice(new);
    fs::write(file, bytes).unwrap();
}

/// Has the entry of a bucket name another page.
fn lead(file: &Path, bucket: &str, from: u64, to: u64) {
    let bytes = fs::read(file).unwrap();
    let entry = [bucket.as_bytes(), &from.to_le_bytes()].concat();
    let places: Vec<usize> = (0..bytes.len() - entry.len()).filter(|&at| bytes[at..].starts_with(&entry)).collect();
    assert_ne!(places, []);
    for at in places {
        patch(file, at + bucket.len(), &to.to_le_bytes());
    }
}

fn repair(options: &RepairOptions, broken: &Path) -> (Repaired, Model, Vec<String>) {
    let result = broken.with_extension("repaired");
    let _ = fs::remove_file(&result);
    let mut said = Vec::new();
    let repaired = options.repair(broken, &result, |event| match event {
        RepairEvent::Lost(place) => said.push(format!("lost: {place}")),
        RepairEvent::Doubtful(place) => said.push(format!("doubtful: {place}")),
        _ => {}
    });
    let content = content_of_file(&result);
    assert_eq!(Db::open(&result).unwrap().check().unwrap(), []);
    (repaired.unwrap(), content, said)
}

/// Writes zeros over whatever is or was a freelist.
fn lose_freelist(file: &Path) {
    let bytes = fs::read(file).unwrap();
    for page in (2..bytes.len() / PAGE).filter(|page| bytes[page * PAGE + 8] == 0x10) {
        patch(file, page * PAGE, &[0; PAGE]);
    }
}

/// Keys with their values, of one bucket.
fn entries(content: &Model, path: &[&str]) -> usize {
    let path: Vec<Vec<u8>> = path.iter().map(|name| name.as_bytes().to_vec()).collect();
    content.bucket(&path).map_or(0, |bucket| bucket.entries().filter(|(_, value)| value.is_some()).count())
}

#[test]
fn a_bucket_that_leads_to_itself_ends_there_and_the_rest_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = make(folder.path());
    lead(&file, "inner", root_of(&file, &["second", "inner"]), root_of(&file, &["second"]));
    let (repaired, content, said) = repair(&RepairOptions::new(), &file);
    assert_eq!((entries(&content, &["first"]), entries(&content, &["second"])), (400, 400));
    assert_eq!((entries(&content, &["second", "inner"]), repaired.lost), (0, 1), "{said:?}");
    assert!(said[0].contains(r#"bucket "second" / "inner", all keys: it would contain itself"#), "{said:?}");
}

#[test]
fn a_branch_that_leads_to_one_leaf_many_times_has_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = make(folder.path());
    let root = root_of(&file, &["first"]);
    let leaves = children(&file, root);
    for index in 0..leaves.len() {
        patch(&file, place(root) + 24 + 16 * index, &leaves[0].to_le_bytes());
    }
    let (repaired, content, said) = repair(&RepairOptions::new(), &file);
    assert_eq!(entries(&content, &["second"]), 400);
    assert!((1..400).contains(&entries(&content, &["first"])), "{said:?}");
    assert_eq!(repaired.lost, leaves.len() as u64 - 1, "{said:?}");
}

#[test]
fn a_branch_that_leads_up_ends_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = make(folder.path());
    let root = root_of(&file, &["first"]);
    let leaves = children(&file, root);
    patch(&file, place(root) + 24 + 16, &root.to_le_bytes());
    let (repaired, content, said) = repair(&RepairOptions::new(), &file);
    assert!(entries(&content, &["first"]) > 300 && leaves.len() > 4, "{said:?}");
    assert_eq!(repaired.lost, 1, "{said:?}");
    assert!(said[0].contains("it would contain itself"), "{said:?}");
}

#[test]
fn a_bucket_that_leads_to_another_ones_pages_takes_nothing_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = make(folder.path());
    lead(&file, "first", root_of(&file, &["first"]), root_of(&file, &["second"]));
    let (repaired, content, said) = repair(&RepairOptions::new(), &file);
    // Nobody knows whose it is: both have it, and that is said.
    for bucket in ["first", "second"] {
        assert_eq!((entries(&content, &[bucket]), entries(&content, &[bucket, "inner"])), (400, 400), "{said:?}");
    }
    assert!(repaired.doubtful > 0 && repaired.lost == 0, "{said:?}");
    assert!(said[0].starts_with("doubtful: ") && said[0].contains("two places lead to it"), "{said:?}");
}

/// The value of a bucket: its header, and an inline page with two elements whose keys differ and whose values are one and
/// the same: the next level.
fn overlapping(levels: usize) -> Vec<u8> {
    let inner = if levels > 1 { overlapping(levels - 1) } else { Vec::new() };
    let elements: &[(u32, u32)] = if levels > 1 { &[(31, 2), (16, 1)] } else { &[] };
    let mut value = vec![0; 24];
    value.extend(2_u16.to_le_bytes());
    value.extend(u16::try_from(elements.len()).unwrap().to_le_bytes());
    value.extend([0; 4]);
    for (pos, key) in elements {
        for field in [1, *pos, *key, u32::try_from(inner.len()).unwrap()] {
            value.extend(field.to_le_bytes());
        }
    }
    value.extend(elements.first().map(|_| b'k'));
    value.extend(inner);
    value
}

#[test]
fn inline_buckets_that_lie_in_each_others_bytes_are_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("overlapping.db");
    let db = Options::new().page_size(1024).open(&file).unwrap();
    db.update(|tx| tx.create_bucket("outer")?.put("k", overlapping(60))).unwrap();
    drop(db);
    // The value becomes a bucket.
    patch(&file, place(root_of(&file, &["outer"])) + 16, &1_u32.to_le_bytes());
    let (repaired, _, said) = repair(&RepairOptions::new(), &file);
    assert_eq!((repaired.buckets, repaired.lost), (2, 1), "{said:?}");
}

#[test]
fn a_value_among_the_buckets_at_the_top_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let file = make(folder.path());
    let root = {
        let db = Options::new().read_only(true).open(&file).unwrap();
        let bytes = fs::read(&file).unwrap();
        let newest = usize::try_from(db.begin().unwrap().id() % 2).unwrap();
        u64::from_le_bytes(bytes[newest * PAGE + 32..][..8].try_into().unwrap())
    };
    patch(&file, place(root) + 16, &0_u32.to_le_bytes());
    let (repaired, content, said) = repair(&RepairOptions::new(), &file);
    assert_eq!((repaired.lost, entries(&content, &["second"])), (1, 400));
    assert!(said[0].contains(r#"at the top, key "first": a value among the buckets"#), "{said:?}");
}

#[test]
fn what_nothing_leads_to_goes_into_a_bucket_of_its_own_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = make(folder.path());
    let db = Db::open(&file).unwrap();
    db.update(|tx| tx.create_bucket("lost+found")?.put("mine", "stays")).unwrap();
    drop(db);
    let sound = content_of_file(&file);
    // The root of one bucket is gone; its leaves are as they were.
    let root = root_of(&file, &["second", "inner"]);
    patch(&file, place(root), &[0xFF; PAGE]);

    let (repaired, content, said) = repair(&RepairOptions::new(), &file);
    assert_eq!((repaired.lost, entries(&content, &["second", "inner"])), (1, 0), "{said:?}");
    assert!(repaired.orphans.pages > 3 && repaired.orphans.free_pages_known);
    assert_eq!((repaired.orphans.bucket, repaired.orphans.values), (None, 0));

    let (repaired, content, _) = repair(&RepairOptions::new().orphans(true), &file);
    assert_eq!((repaired.orphans.bucket.as_deref(), repaired.orphans.values), (Some("lost+found 2"), 400));
    let (mut salvaged, kept): (Vec<_>, Vec<_>) =
        values(&content).into_iter().partition(|((path, _), _)| path[0] == b"lost+found 2");
    assert!(salvaged.iter().all(|((path, _), value)| path[1].starts_with(b"page ") && value == b"inner"));
    salvaged.sort_by(|((_, one), _), ((_, other), _)| one.cmp(other));
    let keys: Vec<String> = salvaged.iter().map(|((_, key), _)| String::from_utf8(key.clone()).unwrap()).collect();
    assert_eq!(keys, (0..400).map(|number| format!("{number:04}")).collect::<Vec<_>>());
    let expected = values(&sound).into_iter().filter(|((path, _), _)| path.last().unwrap() != b"inner");
    assert_eq!(kept, expected.collect::<Vec<_>>());
}

#[test]
fn free_pages_are_no_orphans() {
    let folder = tempfile::tempdir().unwrap();
    let file = make(folder.path());
    let db = Db::open(&file).unwrap();
    db.update(|tx| tx.delete_bucket("first")).unwrap();
    drop(db);
    let sound = content_of_file(&file);
    let (repaired, content, _) = repair(&RepairOptions::new().orphans(true), &file);
    assert_eq!((repaired.orphans.pages, content), (0, sound.clone()));
    // Without a freelist nobody can tell.
    lose_freelist(&file);
    let (repaired, content, _) = repair(&RepairOptions::new().orphans(true), &file);
    assert!(!repaired.orphans.free_pages_known && repaired.orphans.values >= 400);
    let live: BTreeSet<_> = values(&content).into_iter().filter(|((path, _), _)| path[0] != b"lost+found").collect();
    assert_eq!(live, values(&sound).into_iter().collect());
}

#[test]
fn old_branches_do_not_make_orphans_of_what_is_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let file = make(folder.path());
    lose_freelist(&file);
    let (repaired, _, said) = repair(&RepairOptions::new().orphans(true), &file);
    // The last transaction has changed one leaf of 400 entries' and the branch above it.
    assert!(!repaired.orphans.free_pages_known && repaired.orphans.pages >= 2, "{repaired:?}");
    assert!((1..100).contains(&repaired.orphans.values), "{repaired:?}");
    assert_eq!((repaired.values, said.len()), (1200, 0), "{said:?}");
}

#[test]
fn whatever_the_engine_has_written_comes_out_whole_and_without_doubt() {
    let folder = tempfile::tempdir().unwrap();
    for (seed, fill) in [(1, Some(0.5)), (2, None), (3, Some(1.0)), (4, None)] {
        let file = folder.path().join(format!("{seed}.db"));
        let setup = Setup { fill, ..Setup::with_page_size(1024) };
        let mut generator = Generator::new(seed, Model::default());
        generator.trace(60, 120).replay(&file, &setup).unwrap();
        let (repaired, content, said) = repair(&RepairOptions::new(), &file);
        assert_eq!((repaired.lost, repaired.doubtful, said.len()), (0, 0, 0), "seed {seed}: {said:?}");
        assert_eq!(content, generator.model, "seed {seed}");
    }
}
