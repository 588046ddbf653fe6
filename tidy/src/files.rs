//! Every file of a kind in the repository.
#![expect(clippy::panic, reason = "it serves tests alone: a panic is how they report")]

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold what is built, found or measured, and nothing that is written by hand.
const MADE: [&str; 5] = ["target", "work", "artifacts", "coverage", "corpus"];

/// The repository's folder.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The paths, from the repository's folder on, of all files whose names end in `.` and this, in order.
#[must_use]
pub fn ending_in(extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(Path::new(""), extension, &mut found);
    found.sort();
    found
}

/// What a file holds, by its path from the repository's folder on.
///
/// # Panics
/// It cannot be read as text.
#[must_use]
pub fn read(path: &Path) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn collect(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let all = fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in all {
        let entry = entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let (name, path) = (entry.file_name(), folder.join(entry.file_name()));
        let hidden = name.as_encoded_bytes().starts_with(b".");
        // Links are not followed: what they lead to is looked at where it lies.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !hidden && !MADE.iter().any(|made| name == *made) => {
                collect(&path, extension, found);
            }
            Ok(kind) if kind.is_file() && path.extension().is_some_and(|end| end == extension) => found.push(path),
            _ => {}
        }
    }
}
