//! What the public API can change is changed by every random driver: the model test, the fuzz target and the crash
//! simulation. A new way to change a database that is missing in one of them fails here, by its name.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::edit::{Edit, Parts};
use std::collections::BTreeMap;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Where each driver's operations are; all of them make the edits.
const DRIVERS: [(&str, &[&str]); 3] = [
    ("the model test", &["tests/model.rs", EDITS, STEPS]),
    ("the fuzz target", &["../fuzz/targets/operations.rs", EDITS, STEPS]),
    ("the crash simulation", &["src/crash/workload.rs", EDITS, STEPS]),
];
const EDITS: &str = "tests/common/edit.rs";
const STEPS: &str = "tests/common/cursor_steps.rs";

/// What of a `Db` changes nothing in it, or only calls what has `try_` before its name, or has `checkpoint` done elsewhere.
const NOT_OF_ITS_OWN: [&str; 23] = [
    "update",
    "batch",
    "begin",
    "begin_checkpointed",
    "view",
    "try_view",
    "check",
    "checkpoint_soon",
    "displaced",
    "path",
    "is_read_only",
    "page_size",
    "stats",
    "bytes",
    "damaged_meta",
    "durability",
    "durable_position",
    "failure",
    "follow",
    "is_all_in_journal",
    "oldest_position",
    "journal",
    "journal_bytes",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The type that an `impl` block is of, where it is not one of a trait.
fn type_of_impl(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let name = rest.trim_start_matches(|c: char| c != ' ').trim_start();
    (!line.contains(" for ")).then(|| name.split(['<', ' ']).next()).flatten()
}

/// The public methods that change a database or a transaction, by name, with how many types have one of that name.
fn mutators() -> BTreeMap<String, usize> {
    let mut files = Vec::new();
    rust_files(&root().join("src"), &mut files);
    let mut found = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(file).unwrap();
        let mut in_impl_of = None;
        for (at, line) in text.lines().enumerate() {
            match line {
                "}" => in_impl_of = None,
                line if line.starts_with("impl") => in_impl_of = type_of_impl(line),
                _ => {}
            }
            let Some(signature) = line.strip_prefix("    pub fn ") else { continue };
            let name = signature.split(['(', '<']).next().unwrap().to_owned();
            // Long signatures go on over some lines.
            let whole: String = text.lines().skip(at).take_while(|line| !line.ends_with('}')).take(8).collect();
            let whole = whole.split('{').next().unwrap();
            let takes =
                |receiver: &str| whole.contains(&format!("({receiver}")) || whole.contains(&format!("  {receiver}"));
            let owns = takes("self") || takes("mut self") || takes("&mut self");
            let changes = match in_impl_of {
                Some("TxMut" | "BucketMut" | "CursorMut") => owns,
                Some("Db") => (owns || takes("&self")) && !NOT_OF_ITS_OWN.contains(&name.as_str()),
                _ => false,
            };
            if changes {
                *found.entry(name).or_default() += 1;
            }
        }
    }
    found
}

#[test]
fn every_public_mutator_is_in_every_random_driver() {
    let mutators = mutators();
    for known in [
        "put",
        "move_bucket",
        "move_bucket_as",
        "pop_first",
        "delete_range",
        "rollback_to",
        "on_commit",
        "try_batch",
        "set_fill",
    ] {
        assert!(mutators.contains_key(known), "{known} is not found among {mutators:?}");
    }
    let mut missing = Vec::new();
    for (driver, files) in DRIVERS {
        let text: String = files.iter().map(|file| fs::read_to_string(root().join(file)).unwrap()).collect();
        for (name, types) in &mutators {
            let calls = text.matches(&format!(".{name}(")).count();
            if calls < *types {
                missing.push(format!("{driver} calls `{name}` {calls} times, and {types} types have it"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_kind_of_edit_has_a_number() {
    let parts = || Parts {
        path: vec![b"a".to_vec()],
        to: Vec::new(),
        key: b"k".to_vec(),
        other_key: b"l".to_vec(),
        value: Vec::new(),
        number: 0,
    };
    let kinds: HashSet<_> =
        (0..Edit::KINDS).map(|kind| std::mem::discriminant(&Edit::of_kind(kind, parts()))).collect();
    assert_eq!(kinds.len(), Edit::KINDS);
    let source = fs::read_to_string(root().join(EDITS)).unwrap();
    let variants = source.split("pub enum Edit {").nth(1).and_then(|rest| rest.split("\n}").next()).unwrap();
    let variants = variants.lines().filter(|line| line.trim_start().starts_with(char::is_uppercase)).count();
    assert_eq!(variants, Edit::KINDS, "a kind that has no number is in no driver");
}
