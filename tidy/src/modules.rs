//! Which file leads to which: by `mod name;`, by `#[path = "…"]`, from the files that cargo starts at.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::files;
use crate::source;

/// Where a file is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// In tests, benchmarks, examples or fuzz targets only.
    Test,
    /// In the library or the program.
    Product,
}

/// Every file that something leads to, from the repository's folder on, with where it is used.
#[must_use]
pub fn reached() -> BTreeMap<PathBuf, Use> {
    let mut reached = BTreeMap::new();
    for file in files::ending_in("rs") {
        if let Some(used) = is_start(&file) {
            follow(&file, true, used, &mut reached);
        }
    }
    for manifest in files::ending_in("toml").iter().filter(|path| path.ends_with("Cargo.toml")) {
        let folder = manifest.parent().unwrap_or(Path::new(""));
        for target in files::read(manifest).lines().filter_map(target) {
            follow(&folder.join(target), true, Use::Test, &mut reached);
        }
    }
    reached
}

/// The file that a target's `path` names; dependencies name folders.
fn target(line: &str) -> Option<&str> {
    line.strip_prefix("path = \"")?.strip_suffix('"').filter(|path| Path::new(path).extension().is_some())
}

/// Whether cargo starts at a file by itself, and for what.
fn is_start(file: &Path) -> Option<Use> {
    let names: Vec<_> = file.iter().map(|name| name.to_str().unwrap_or_default()).collect();
    match names.as_slice() {
        [.., "src", "lib.rs" | "main.rs"] => Some(Use::Product),
        [_, "tests" | "benches" | "examples", _] | [_, "tests" | "benches" | "examples", _, "main.rs"] => {
            Some(Use::Test)
        }
        _ => None,
    }
}

fn follow(file: &Path, start: bool, used: Use, reached: &mut BTreeMap<PathBuf, Use>) {
    if reached.get(file).is_some_and(|known| *known >= used) || !files::root().join(file).is_file() {
        return;
    }
    reached.insert(file.to_owned(), used);
    let text = files::read(file);
    let code = source::code(&text);
    let folder = file.parent().unwrap_or(Path::new(""));
    let inner = if start || file.ends_with("mod.rs") { folder.to_owned() } else { file.with_extension("") };
    for module in declared(&code, &text) {
        let used = if module.test { Use::Test } else { used };
        let at = module.path.map(|path| vec![resolved(&folder.join(path))]);
        let inner = inner.join(module.name);
        for file in at.unwrap_or_else(|| vec![inner.with_extension("rs"), inner.join("mod.rs")]) {
            follow(&file, false, used, reached);
        }
    }
}

/// A `mod name;`.
struct Declared<'t> {
    name: &'t str,
    path: Option<&'t str>,
    test: bool,
}

/// The modules that a file declares without a body.
fn declared<'t>(code: &'t str, text: &'t str) -> impl Iterator<Item = Declared<'t>> {
    code.match_indices("mod ").filter_map(move |(at, word)| {
        let before = &code[..at];
        let after = &code[at + word.len()..];
        let name = &after[..after.find(|next: char| !next.is_alphanumeric() && next != '_')?];
        let is_word = before.bytes().last().is_none_or(|byte| byte.is_ascii_whitespace());
        if !is_word || name.is_empty() || !after[name.len()..].starts_with(';') {
            return None;
        }
        let attributes = before.rfind([';', '}']).map_or(0, |end| end + 1);
        let path = code[attributes..at].find("#[path = \"").map(|found| {
            let path = &text[attributes + found + "#[path = \"".len()..];
            &path[..path.find('"').unwrap_or(0)]
        });
        let tested = ["cfg(test)", "cfg(all(test,"].iter().any(|only| before[attributes..].contains(only));
        Some(Declared { name, path, test: tested })
    })
}

/// A path without its `..`.
fn resolved(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut all, part| {
        match part {
            Component::ParentDir => drop(all.pop()),
            part => all.push(part),
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_with_where_they_are_used_and_lie() {
        let text = "mod a;\n#[cfg(test)]\nmod b;\n#[path = \"../c.rs\"]\npub(crate) mod c;\nmod d { }\n// mod e;\n";
        let code = source::code(text);
        let found: Vec<_> = declared(&code, text).map(|module| (module.name, module.path, module.test)).collect();
        assert_eq!(found, [("a", None, false), ("b", None, true), ("c", Some("../c.rs"), false)]);
    }

    #[test]
    fn a_path_is_resolved_without_the_file_system() {
        assert_eq!(resolved(Path::new("storage/src/crash/../../tests/x.rs")), Path::new("storage/tests/x.rs"));
    }
}
