//! Experiment (a): loads by batch size.

use anyhow::Result;

use super::page::Page;
use super::plot::{Panel, Series};
use super::{cell, open, rate};
use crate::goal::digits;
use crate::results::Results;
use crate::stats::Summary;
use crate::works::batches::{BATCHES, COUNTS, FIELD, KINDS, load, reads};

pub(super) fn section(results: &Results, page: &mut Page) -> Result<()> {
    let about = "What bbolt-rs was measured by: loads in one bucket (`seq`, `rnd`) or in a nested bucket a batch \
                 (`-nest`), in order or at\nrandom, a commit every *batch* entries; then all entries in order and at \
                 random, for a second or so,\nfrom a bucket of consecutive integers that one commit has \
                 loaded. Entries a second.";
    open(results, "## Experiment (a): bolts by batch size", about, page);
    for count in COUNTS {
        page.heading(&format!("### {count} entries"));
        let mut rows = Vec::new();
        for (kind, ..) in KINDS {
            for batch in BATCHES.into_iter().filter(|batch| *batch <= count) {
                let mut row = vec![kind.to_owned(), batch.to_string()];
                row.extend(FIELD.iter().map(|name| cell(results, &load(kind, count, batch), name, "put")));
                rows.push(row);
            }
        }
        for figure in ["seq", "rnd"] {
            let mut row = vec![format!("read {figure}"), String::new()];
            row.extend(FIELD.iter().map(|name| cell(results, &reads(count), name, figure)));
            rows.push(row);
        }
        page.table(&[&["load", "batch"], &FIELD[..]].concat(), &rows);
        let panels = KINDS.map(|(kind, ..)| panel(results, kind, count));
        page.plot(&format!("batches-{count}"), "entries a second by batch size", &panels)?;
    }
    page.paragraph(&verdict(results));
    Ok(())
}

fn panel(results: &Results, kind: &str, count: u64) -> Panel {
    #[expect(clippy::cast_precision_loss, reason = "a batch, far below 2^52")]
    let line = |name: &&str| Series {
        contestant: (*name).to_owned(),
        points: BATCHES
            .iter()
            .filter_map(|&batch| Some((batch as f64, rate(results, &load(kind, count, batch), name, "put")?)))
            .collect(),
    };
    let series = FIELD.iter().map(line).collect();
    Panel { title: format!("{kind}, {count} entries"), x: "entries a commit", y: "entries a second", series }
}

/// What theirs came to, what ours does beside it, and the article's open question.
fn verdict(results: &Results) -> String {
    let Some(&count) = COUNTS.last() else { return String::new() };
    let mut lines = vec![THEIRS.to_owned()];
    let rivals = &FIELD[1..];
    for (kind, ..) in KINDS {
        let batches: Vec<_> = BATCHES.iter().map(|&batch| load(kind, count, batch)).collect();
        let works: Vec<_> = batches.iter().map(String::as_str).collect();
        lines.extend(beside(results, kind, &works, "put", rivals));
    }
    for (figure, named) in [("seq", "read seq"), ("rnd", "read rnd")] {
        lines.extend(beside(results, named, &[&reads(count)], figure, rivals));
    }
    lines.push(QUESTION.to_owned());
    let [Some(small), Some(large)] = [BATCHES.first(), BATCHES.last()] else { return String::new() };
    let change = |name: &&str| {
        let of = |batch| rate(results, &load("rnd", count, batch), name, "put");
        Some(format!("{name} {} ×", digits(of(*large)? / of(*small)?)))
    };
    let changes: Vec<_> = FIELD.iter().filter_map(change).collect();
    if !changes.is_empty() {
        let of = format!("The rate of random writes with {large} a commit, over that with {small}");
        lines.push(format!("{of}: {}.", changes.join(", ")));
    }
    lines.join("\n")
}

const THEIRS: &str = "\
Theirs, a million entries on a laptop of 2018, bbolt-rs and in brackets Go's bbolt: seq 652 k/s (454 k), seq-nest 768 k
(534 k), rnd 117 k (90 k), rnd-nest 96 k (91 k); read in order 53 M/s (48 M), at random 1.25 M/s (0.68 M).
Here, a million entries, boltkv's rate over the others', from the batch where it is least to the one where it is most:\n";

const QUESTION: &str = "
Their open question was why random writes collapse as the batch grows: a node's entries are one ordered array until the
commit, and each insert moves half of it. In boltkv they are kept in chunks of a few hundred, so that a larger batch only
has more entries a page to share the page's costs.";

/// A line: boltkv's rate over each rival's, the least and the most of some works.
fn beside(results: &Results, what: &str, works: &[&str], figure: &str, rivals: &[&str]) -> Option<String> {
    let over = |rival: &&str| {
        let ratio = |work: &&str| Some(rate(results, work, "boltkv", figure)? / rate(results, work, rival, figure)?);
        let ratios = Summary::of(works.iter().filter_map(ratio))?;
        let [min, max] = [ratios.min, ratios.max].map(digits);
        let times = if works.len() == 1 { min } else { format!("{min} to {max}") };
        Some(format!("{times} × {rival}"))
    };
    let over: Vec<_> = rivals.iter().filter_map(over).collect();
    (!over.is_empty()).then(|| format!("- {what}: {}", over.join(", ")))
}
