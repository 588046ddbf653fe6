//! Experiment (b): small entries by the million.

use anyhow::Result;

use super::page::Page;
use super::plot::{Panel, Series};
use super::{cell, open, rate};
use crate::goal::{Figure, digits};
use crate::results::Results;
use crate::works::Scale;
use crate::works::millions::{FIELD, KINDS, counts, name};

const FIGURES: [&str; 2] = ["insert", "get"];

pub(super) fn section(results: &Results, page: &mut Page) -> Result<()> {
    let about = "What Sanakirja was measured by: (u64, u64) and (UUID, u64) inserted at random in one transaction \
                 that ends with a sync,\nthen looked up at random. Entries a second. Go's bbolt and its ports are not \
                 here: what random inserts in one transaction\ntake them grows with the square of their \
                 number, which experiment (a) shows.";
    open(results, "## Experiment (b): Sanakirja's millions", about, page);
    let mut rows = Vec::new();
    for (kind, _) in KINDS {
        for figure in FIGURES {
            for &count in counts(Scale::Large).iter().filter(|count| measured(results, kind, **count)) {
                let mut row = vec![format!("{figure} {kind}"), count.to_string()];
                row.extend(FIELD.iter().map(|engine| cell(results, &name(kind, count), engine, figure)));
                rows.push(row);
            }
        }
    }
    for (kind, _) in KINDS {
        for &count in counts(Scale::Large).iter().filter(|count| measured(results, kind, **count)) {
            let mut row = vec![format!("memory an entry, {kind}"), count.to_string()];
            row.extend(FIELD.iter().map(|engine| memory(results, &name(kind, count), engine, count)));
            rows.push(row);
        }
    }
    page.table(&[&["work", "entries"], &FIELD[..]].concat(), &rows);
    let panels: Vec<_> =
        KINDS.iter().flat_map(|(kind, _)| FIGURES.map(|figure| panel(results, kind, figure))).collect();
    page.plot("millions", "entries a second by number of entries", &panels)?;
    page.paragraph(&verdict(results));
    Ok(())
}

/// The most private memory of a process for an entry, in bytes.
#[expect(clippy::cast_precision_loss, reason = "a count of entries, far below 2^52")]
fn memory(results: &Results, work: &str, engine: &str, count: u64) -> String {
    let peak = Figure::PeakPrivate.over(results, work, engine);
    peak.map_or_else(|| "–".to_owned(), |peak| format!("{} B", digits(peak.median / count as f64)))
}

fn measured(results: &Results, kind: &str, count: u64) -> bool {
    !results.contestants(&name(kind, count)).is_empty()
}

fn panel(results: &Results, kind: &str, figure: &str) -> Panel {
    #[expect(clippy::cast_precision_loss, reason = "a count of entries, far below 2^52")]
    let line = |engine: &&str| Series {
        contestant: (*engine).to_owned(),
        points: counts(Scale::Large)
            .iter()
            .filter_map(|&count| Some((count as f64, rate(results, &name(kind, count), engine, figure)?)))
            .collect(),
    };
    let series = FIELD.iter().map(line).collect();
    Panel { title: format!("{figure}, {kind} keys"), x: "entries", y: "entries a second", series }
}

fn verdict(results: &Results) -> String {
    let mut lines = vec!["Theirs was 20 to 50 % ahead of LMDB. Here:\n".to_owned()];
    for (kind, _) in KINDS {
        let largest = counts(Scale::Large).iter().rfind(|count| measured(results, kind, **count));
        let Some(work) = largest.map(|count| name(kind, *count)) else { continue };
        for figure in FIGURES {
            let of = |engine| rate(results, &work, engine, figure);
            if let (Some(ours), Some(lmdb), Some(sanakirja)) = (of("boltkv"), of("lmdb"), of("sanakirja")) {
                lines.push(format!(
                    "- {work}, {figure}: Sanakirja {} × LMDB, boltkv {} × LMDB",
                    digits(sanakirja / lmdb),
                    digits(ours / lmdb)
                ));
            }
        }
    }
    lines.join("\n")
}
