//! Prose in documents is wrapped, so that it can be read in a terminal and a change of it in a diff.

use std::path::{Path, PathBuf};

use boltkv_tidy::files;

use crate::nothing;

/// Characters that a line of prose may have.
const WIDEST: usize = 120;

#[test]
fn prose_is_wrapped() {
    let mut found = Vec::new();
    for path in files::ending_in("md") {
        for (number, line) in prose(&files::read(&path)).filter(|(_, line)| line.chars().count() > WIDEST) {
            let width = line.chars().count();
            found.push(format!("{}:{number}: {width} columns, may have {WIDEST}", path.display()));
        }
    }
    nothing(&found, "lines that are too long: wrap them");
}

/// The numbered lines of a document that are no table, no code, and can be wrapped: a link alone cannot.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !fence && !code && !line.starts_with('|') && line.trim().contains(' ') && !line.starts_with("![")
    })
}

/// A block of code that was wrapped as prose begins with its first line, or ends with its last one.
#[test]
fn what_begins_and_ends_code_stands_alone() {
    let mut found = Vec::new();
    for path in files::ending_in("md") {
        let text = files::read(&path);
        let fences = (1..).zip(text.lines()).filter(|(_, line)| line.contains("```"));
        let words = |line: &str| line.trim_start().starts_with("```") && !line.trim_start()[3..].contains([' ', '`']);
        found.extend(fences.filter(|(_, line)| !words(line)).map(|(number, _)| format!("{}:{number}", path.display())));
    }
    nothing(&found, "lines with the beginning or the end of code and something else: give it a line of its own");
}

#[test]
fn every_link_within_the_repository_leads_somewhere() {
    let mut found = Vec::new();
    for path in files::ending_in("md") {
        let text = files::read(&path);
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://") && !link.contains(' ')) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().unwrap_or(Path::new("")).join(file),
            };
            if !leads(&target, place) {
                found.push(format!("{}: {link}", path.display()));
            }
        }
    }
    nothing(&found, "links that lead nowhere");
}

/// Whether a file is there and, where a place in it is named, a heading of that name.
fn leads(target: &PathBuf, place: &str) -> bool {
    if !files::root().join(target).exists() {
        return false;
    }
    let names = |heading: &str| {
        let kept = heading.trim_start_matches('#').trim().to_lowercase();
        let kept: String = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect();
        kept.replace(' ', "-") == place
    };
    place.is_empty() || files::read(target).lines().any(|line| line.starts_with('#') && names(line))
}
