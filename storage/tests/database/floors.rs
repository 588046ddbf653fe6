//! Each floor of the crate uses only those below it.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::fs;
use std::path::{Path, PathBuf};

/// From the bottom up.
const FLOORS: [&str; 10] = ["base", "disk", "format", "journal", "pages", "tree", "check", "store", "handles", "tools"];

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            files.push(path);
        }
    }
}

#[test]
fn no_floor_uses_one_above_it() {
    let mut upwards = Vec::new();
    for (floor, name) in FLOORS.iter().enumerate() {
        let mut files = Vec::new();
        rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name), &mut files);
        assert!(!files.is_empty(), "there is no floor {name}");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            // Tests may use all of the crate.
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
                let is_used = |above: &&&str| line.contains(&format!("crate::{above}::"));
                if let Some(above) = FLOORS[floor + 1..].iter().find(is_used) {
                    upwards.push(format!("{} uses {above}: {}", file.display(), line.trim()));
                }
            }
        }
    }
    assert!(upwards.is_empty(), "{upwards:#?}");
}
