//! `docs/bbolt-parity.md` is true: every test of ours that it names exists, and it names every test of bbolt.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const STORAGE: &str = env!("CARGO_MANIFEST_DIR");
/// As the Go module's folder names it.
const BBOLT: &str = "go.etcd.io/bbolt@v1.5.0";
/// What a row that names no test of ours begins with.
const REASONS: [&str; 2] = ["does not apply: ", "does not compile: "];

/// bbolt's tests by file, each with what the document says of it.
fn document() -> BTreeMap<String, Vec<(String, String)>> {
    let text = fs::read_to_string(Path::new(STORAGE).join("../docs/bbolt-parity.md")).unwrap();
    let mut files: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let mut file = None;
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("### `") {
            file = Some(heading.split('`').next().unwrap().to_owned());
        } else if let Some(row) = line.strip_prefix("| `") {
            let (name, rest) = row.split_once("` | ").unwrap();
            let rest = rest.strip_suffix(" |").unwrap();
            let file = file.clone().expect("every table has a file above it");
            files.entry(file).or_default().push((name.to_owned(), rest.to_owned()));
        }
    }
    files
}

/// The tests of ours that a text names, as file and function.
fn ours(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split('`').filter_map(|part| part.split_once("::"))
}

/// Whether a file has a function of that name.
fn has_test(file: &Path, name: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.contains("#[test]") && text.contains(&format!("fn {name}(")))
}

#[test]
fn every_test_of_ours_that_is_named_exists() {
    let mut missing = Vec::new();
    for (_, says) in document().into_values().flatten() {
        for (file, name) in ours(&says) {
            if !has_test(&Path::new(STORAGE).join(file), name) {
                missing.push(format!("{file}::{name}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_row_names_a_test_or_a_reason() {
    for (name, says) in document().into_values().flatten() {
        let reasoned = REASONS.iter().any(|reason| says.starts_with(reason) && says.len() > reason.len());
        assert!(reasoned || ours(&says).next().is_some(), "{name}: {says}");
    }
}

/// bbolt's source, where the Go tools have it.
fn source() -> Result<PathBuf, String> {
    let asked = Command::new("go").args(["env", "GOMODCACHE"]).output().map_err(|error| error.to_string())?;
    let folder = PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim()).join(BBOLT);
    if folder.is_dir() { Ok(folder) } else { Err(format!("there is no {}", folder.display())) }
}

/// Every test function below a folder, by file.
fn tests_below(folder: &Path, root: &Path, found: &mut BTreeMap<String, Vec<String>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_below(&path, root, found);
        } else if path.to_str().unwrap().ends_with("_test.go") {
            let text = fs::read_to_string(&path).unwrap();
            let names = text.lines().filter_map(|line| line.strip_prefix("func Test"));
            let names: Vec<String> = names.map(|rest| format!("Test{}", rest.split('(').next().unwrap())).collect();
            if !names.is_empty() {
                found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned(), names);
            }
        }
    }
}

#[boltkv_needs::program("go")]
#[test]
fn every_test_of_bbolt_is_named_once() {
    let folder = match source() {
        Ok(folder) => folder,
        Err(why) => {
            let required = std::env::var("BOLTKV_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
            assert!(!required, "BOLTKV_REQUIRE_TOOLS=1, but there is no source of bbolt: {why}");
            // What `eprintln!` prints of a test that passes is swallowed.
            let _ =
                std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("skipped: no source of bbolt: {why}\n"));
            return;
        }
    };
    let mut theirs = BTreeMap::new();
    tests_below(&folder, &folder, &mut theirs);
    let named: BTreeMap<String, Vec<String>> =
        document().into_iter().map(|(file, rows)| (file, rows.into_iter().map(|(name, _)| name).collect())).collect();
    assert_eq!(theirs.values().map(Vec::len).sum::<usize>(), 283);
    for (file, names) in &theirs {
        assert_eq!(named.get(file), Some(names), "{file}");
    }
    assert_eq!(named.len(), theirs.len());
}
