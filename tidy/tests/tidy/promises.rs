//! Every promise of the documents has a name, and a test that says that it proves it.
//!
//! A promise is named in brackets where it is made, `[wire-len]`; the test that proves it has a comment above it,
//! `// Promises: wire-len, wire-room.`

use std::collections::BTreeMap;
use std::path::Path;

use boltkv_tidy::files;

use crate::nothing;

/// The documents that promise something, and what the names of their promises begin with.
const DOCUMENTS: [(&str, &[&str]); 5] = [
    ("docs/protocol.md", &["wire-", "text-", "resp-"]),
    ("docs/operations.md", &["ops-"]),
    ("docs/backups.md", &["ops-"]),
    ("docs/monitoring.md", &["ops-"]),
    ("docs/deployment.md", &["ops-"]),
];

/// What the comment of a test begins with.
const RUST: &str = "// Promises: ";

/// The same in a script.
const SHELL: &str = "# Promises: ";

/// Scripts that test.
const SCRIPTS: [&str; 1] = ["docker/test"];

/// Promises that no test proves, and why. One that gets a test goes from this list.
const UNPROVEN: [(&str, &str); 0] = [];

#[test]
fn every_promise_is_named_by_a_test_that_proves_it() {
    let made = made();
    let (proven, mut found) = proven();
    for (name, documents) in &made {
        if documents.len() > 1 {
            found.push(format!("[{name}] is made twice: {}", documents.join(", ")));
        }
        let excepted = UNPROVEN.iter().any(|(unproven, _)| unproven == name);
        match (proven.get(name), excepted) {
            (None, false) => found.push(format!("[{name}] of {} is named by no test", documents.join(", "))),
            (Some(tests), true) => found.push(format!("[{name}] is proven by {}: take it out of UNPROVEN", tests[0])),
            _ => {}
        }
    }
    let unmade = proven.iter().filter(|(name, _)| !made.contains_key(*name));
    found.extend(unmade.map(|(name, tests)| format!("{} proves {name}, which no document promises", tests.join(", "))));
    let gone = UNPROVEN.iter().filter(|(name, _)| !made.contains_key(*name));
    found.extend(gone.map(|(name, _)| format!("nobody promises {name}: take it out of UNPROVEN")));
    nothing(&found, "promises and their tests");
}

#[test]
fn what_looks_like_a_promise_is_one() {
    // A document's names begin as they should, so that none is overlooked.
    for (document, starts) in DOCUMENTS {
        for name in bracketed(&files::read(Path::new(document))) {
            assert!(starts.iter().any(|start| name.starts_with(start)), "{document}: [{name}]");
        }
    }
}

/// The promises of all documents, with where each is made.
fn made() -> BTreeMap<String, Vec<String>> {
    let mut made: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (document, _) in DOCUMENTS {
        for name in bracketed(&files::read(Path::new(document))) {
            made.entry(name).or_default().push(document.to_owned());
        }
    }
    made
}

/// Names in brackets outside of code: small letters, with hyphens between them.
fn bracketed(text: &str) -> Vec<String> {
    let parts = text.split("```").step_by(2).flat_map(|prose| prose.split('`').step_by(2));
    let names = parts.flat_map(|prose| prose.split('[').skip(1).filter_map(|rest| rest.split_once(']')));
    // What is followed by a bracket is a link.
    let names = names.filter(|(name, after)| is_name(name) && !after.starts_with('('));
    names.map(|(name, _)| name.to_owned()).collect()
}

fn is_name(name: &str) -> bool {
    name.contains('-')
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-' || letter.is_ascii_digit())
}

/// The promises that tests name, with the files of those tests; and comments that stand above no test.
fn proven() -> (BTreeMap<String, Vec<String>>, Vec<String>) {
    let (mut proven, mut stray) = (BTreeMap::<String, Vec<String>>::new(), Vec::new());
    let mut take = |names: &str, file: &Path| {
        for name in names.trim_end_matches('.').split(", ") {
            proven.entry(name.to_owned()).or_default().push(file.display().to_string());
        }
    };
    for path in files::ending_in("rs") {
        let text = files::read(&path);
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        for (at, names) in lines.iter().enumerate().filter_map(|(at, line)| Some((at, line.strip_prefix(RUST)?))) {
            take(names, &path);
            let next = lines[at + 1..].iter().find(|next| !next.starts_with("//"));
            if !next.is_some_and(|next| next.starts_with("#[")) {
                stray.push(format!("{}:{}: promises stand above a test", path.display(), at + 1));
            }
        }
    }
    for script in SCRIPTS.map(Path::new) {
        files::read(script)
            .lines()
            .filter_map(|line| line.trim().strip_prefix(SHELL))
            .for_each(|names| take(names, script));
    }
    (proven, stray)
}
