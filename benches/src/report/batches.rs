//! Experiment (a): loads by batch size.

use anyhow::Result;

use super::page::Page;
use super::plot::{Panel, Series};
use super::{cell, open, rate};
use crate::goal::digits;
use crate::results::Results;
use crate::works::batches::{BATCHES, COUNTS, FIELD, KINDS, load, reads};

pub(super) fn section(results: &Results, page: &mut Page) -> Result<()> {
    let about = "What bbolt-rs was measured by: loads in one bucket (`seq`, `rnd`) or in a nested bucket a batch \
                 (`-nest`), in order or at\nrandom, a commit every *batch* entries; then all entries in order and at \
                 random. Entries a second.";
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

/// The article's open question, answered: whether large random batches collapse.
fn verdict(results: &Results) -> String {
    let [Some(count), Some(small), Some(large)] = [COUNTS.last(), BATCHES.first(), BATCHES.last()] else {
        return String::new();
    };
    let change = |name| {
        let of = |batch| rate(results, &load("rnd", *count, batch), name, "put");
        Some(of(*large)? / of(*small)?)
    };
    let mut lines = vec![
        "Their open question was why random writes collapse as the batch grows: a node's entries are one \
                    ordered array until the\ncommit, and each insert moves half of it. In boltkv they are kept in \
                    chunks of a few hundred."
            .to_owned(),
    ];
    for name in FIELD {
        if let Some(change) = change(name) {
            lines.push(format!("With {large} a commit, {name} is {} times as fast as with {small}.", digits(change)));
        }
    }
    lines.join("\n")
}
