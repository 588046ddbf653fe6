//! The check can begin at a page, prints keys as it is told to, and stops when it has seen enough; and no walk over a
//! file whose pages are shared, or whose inline buckets overlap, goes on for ever.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use boltkv_storage::{Bucket, CheckOptions, Db, Error, Options, PageType};
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: usize = 4096;

/// Some levels of inline buckets: each has two, which lie in the same bytes.
const OVERLAPPING: usize = 60;

fn read_only(file: &Path) -> Db {
    Options::new().read_only(true).open(file).unwrap()
}

fn flipped(key: &[u8]) -> String {
    format!("<{}>", key.iter().rev().map(|&byte| char::from(byte)).collect::<String>())
}

/// A file with a bucket of some pages, and one in it that has pages of its own.
fn nested(folder: &Path) -> PathBuf {
    let file = folder.join("nested");
    let db = Options::new().page_size(4096).open(&file).unwrap();
    db.update(|tx| {
        let mut outer = tx.create_bucket("outer")?;
        for number in 0..100 {
            outer.put(format!("{number:04}"), [0; 100])?;
        }
        let mut inner = outer.create_bucket("inner")?;
        (0..2000).try_for_each(|number| inner.put(format!("{number:04}"), "value"))
    })
    .unwrap();
    file
}

/// Changes bytes of a file.
fn patch(file: &Path, at: usize, bytes: &[u8]) {
    let mut content = fs::read(file).unwrap();
    content[at..at + bytes.len()].copy_from_slice(bytes);
    fs::write(file, content).unwrap();
}

fn place(page: u64) -> usize {
    usize::try_from(page).unwrap() * PAGE
}

#[test]
fn a_check_can_begin_at_a_buckets_root() {
    let folder = tempfile::tempdir().unwrap();
    let db = read_only(&nested(folder.path()));
    let tx = db.begin().unwrap();
    let outer = tx.bucket("outer").unwrap();
    for bucket in [outer, outer.bucket("inner").unwrap()] {
        let options = CheckOptions::new().from_page(bucket.root_page().unwrap());
        assert_eq!(tx.check_with(&options).unwrap(), []);
    }
    for page in [0, 1, tx.size() / 4096, u64::MAX] {
        let problems = tx.check_with(&CheckOptions::new().from_page(page)).unwrap();
        assert_eq!(problems.len(), 1, "page {page}: {problems:?}");
    }
}

#[test]
fn a_damaged_leaf_is_found_from_itself_and_its_branch_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = nested(folder.path());
    let (root, leaves) = {
        let db = read_only(&file);
        let tx = db.begin().unwrap();
        let root = tx.bucket("outer").unwrap().root_page().unwrap();
        let pages = tx.page_infos().unwrap().map(Result::unwrap);
        let leaves: Vec<u64> = pages.filter(|page| page.page_type == PageType::Leaf).map(|page| page.id).collect();
        (root, leaves)
    };
    let damaged = leaves[2];
    // The first and the second element change places.
    let mut bytes = fs::read(&file).unwrap();
    let elements = place(damaged) + 16;
    let (first, second) = bytes[elements..elements + 32].split_at_mut(16);
    first[8..].swap_with_slice(&mut second[8..]);
    let positions = |bytes: &[u8]| u32::from_le_bytes(bytes[4..8].try_into().unwrap());
    let (one, two) = (positions(first), positions(second));
    first[4..8].copy_from_slice(&(two + 16).to_le_bytes());
    second[4..8].copy_from_slice(&(one - 16).to_le_bytes());
    fs::write(&file, bytes).unwrap();

    let db = read_only(&file);
    let tx = db.begin().unwrap();
    let from = |page: u64| tx.check_with(&CheckOptions::new().from_page(page).print_key(flipped)).unwrap();
    // The root bucket's leaf and the outer bucket's lead to it, no other does.
    let (sound, leading): (Vec<u64>, Vec<u64>) =
        leaves.into_iter().filter(|&leaf| leaf != damaged).partition(|&leaf| from(leaf).is_empty());
    assert!(sound.len() > 10 && leading.len() == 2, "{sound:?} and {leading:?}");
    let problems = from(damaged);
    assert!(problems.iter().all(|problem| problem.page == damaged), "{problems:?}");
    assert!(problems[0].what.contains('<') && problems[0].what.contains('>'), "{problems:?}");
    let all = tx.check().unwrap();
    assert!(all.iter().any(|problem| problem.page == damaged), "{all:?}");
    assert!(!from(root).is_empty());
}

#[test]
fn a_check_stops_when_it_has_found_enough() {
    let folder = tempfile::tempdir().unwrap();
    let file = nested(folder.path());
    let root = read_only(&file).begin().unwrap().bucket("outer").unwrap().root_page().unwrap();
    // The bucket's root has no valid type: all below it is lost.
    patch(&file, place(root) + 8, &[0xFF, 0xFF]);
    let db = read_only(&file);
    let tx = db.begin().unwrap();
    assert!(tx.check().unwrap().len() > 5);
    for most in [1, 3] {
        assert_eq!(tx.check_with(&CheckOptions::new().most_problems(most)).unwrap().len(), most);
    }
}

/// Every walk over a damaged file must come to an end; whether with data or with an error is its own affair.
fn walk_everything(file: &Path) {
    let db = read_only(file);
    let tx = db.begin().unwrap();
    assert_ne!(tx.check().unwrap(), []);
    let _ = tx.inspect();
    let bucket = tx.bucket("outer").unwrap();
    let _ = (bucket.stats(), bucket.count(), bucket.inspect());
    let _ = tx.page_infos().unwrap().map(Result::unwrap).count();
    let target = Options::new().open_in_memory().unwrap();
    let compacted = tx.compact_into(&target, 10_000);
    assert!(matches!(compacted, Err(Error::Corrupt { .. })), "{compacted:?}");
    drop((tx, db));
    let db = Db::open(file).unwrap();
    let mut tx = db.begin_mut().unwrap();
    let _ = tx.bucket_mut("outer").unwrap().delete_range(.., usize::MAX);
    let _ = tx.bucket_mut("outer").unwrap().pop_first();
    let deleted = tx.delete_bucket("outer");
    assert!(matches!(deleted, Err(Error::Corrupt { .. })), "{deleted:?}");
}

fn assert_corrupt<T: std::fmt::Debug>(result: &boltkv_storage::Result<T>) {
    assert!(matches!(result, Err(Error::Corrupt { .. })), "{result:?}");
}

#[test]
fn a_bucket_that_contains_itself_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = nested(folder.path());
    let (outer, inner) = {
        let db = read_only(&file);
        let tx = db.begin().unwrap();
        let outer = tx.bucket("outer").unwrap();
        (outer.root_page().unwrap(), outer.bucket("inner").unwrap().root_page().unwrap())
    };
    let bytes = fs::read(&file).unwrap();
    let header: Vec<u8> = [inner.to_le_bytes(), [0; 8]].concat();
    let entry: Vec<u8> = [&b"inner"[..], &header].concat();
    for at in (0..bytes.len() - entry.len()).filter(|&at| bytes[at..].starts_with(&entry)) {
        patch(&file, at + 5, &outer.to_le_bytes());
    }
    walk_everything(&file);
    let db = read_only(&file);
    let tx = db.begin().unwrap();
    let bucket = tx.bucket("outer").unwrap();
    assert_corrupt(&bucket.stats());
    assert_corrupt(&bucket.inspect());
}

/// The value of a bucket: its header, and an inline page with two elements whose keys differ and whose
/// values are one and the same: the next level.
fn overlapping(levels: usize) -> Vec<u8> {
    let mut value = vec![0; 16];
    let inner = if levels > 1 { overlapping(levels - 1) } else { Vec::new() };
    let count = if levels > 1 { 2_u16 } else { 0 };
    value.extend([0; 8]);
    value.extend(2_u16.to_le_bytes());
    value.extend(count.to_le_bytes());
    value.extend([0; 4]);
    // The first key begins one byte earlier than the second, with the last byte of the elements: 0.
    for (pos, key) in [(31_u32, 2_u32), (16, 1)].into_iter().take(count.into()) {
        for field in [1, pos, key, u32::try_from(inner.len()).unwrap()] {
            value.extend(field.to_le_bytes());
        }
    }
    if levels > 1 {
        value.push(b'k');
    }
    value.extend(inner);
    value
}

#[test]
fn inline_buckets_that_lie_in_each_others_bytes_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("overlapping");
    let root = {
        let db = Options::new().page_size(4096).open(&file).unwrap();
        db.update(|tx| tx.create_bucket("outer")?.put("k", overlapping(OVERLAPPING))).unwrap();
        db.begin().unwrap().bucket("outer").unwrap().root_page().unwrap()
    };
    // The value becomes a bucket.
    patch(&file, place(root) + 16, &1_u32.to_le_bytes());
    walk_everything(&file);
    let db = read_only(&file);
    let tx = db.begin().unwrap();
    let outer: Bucket<'_> = tx.bucket("outer").unwrap();
    assert_eq!(outer.bucket("k").unwrap().count().unwrap(), 2);
    assert_corrupt(&outer.inspect());
}

#[test]
fn two_branches_that_share_a_leaf_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = nested(folder.path());
    let inner = {
        let db = read_only(&file);
        let tx = db.begin().unwrap();
        tx.bucket_path(["outer", "inner"]).unwrap().root_page().unwrap()
    };
    let bytes = fs::read(&file).unwrap();
    let first_child = bytes[place(inner) + 24..place(inner) + 32].to_vec();
    let count = u16::from_le_bytes(bytes[place(inner) + 10..place(inner) + 12].try_into().unwrap());
    for index in 0..usize::from(count) {
        patch(&file, place(inner) + 24 + 16 * index, &first_child);
    }
    walk_everything(&file);
}
