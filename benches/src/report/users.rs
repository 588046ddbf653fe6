//! Experiment (c): six ways to store a record.

use anyhow::Result;

use super::page::Page;
use super::plot::{Panel, Series};
use super::{open, rate};
use crate::goal::{Figure, digits, short};
use crate::records::Layout;
use crate::results::Results;
use crate::works::Scale;
use crate::works::users::{FIELD, FIGURES, LOADS, counts, name};

const ABOUT: &str = "\
A user of 15 fields, about 250 bytes, stored in six ways, one user a transaction (`each`) or all in one (`all`), without
syncs but for one after the writes and one after the updates. *Read*: half of them at random, one a transaction;
*ReadMany*: a third of them in a row, in one transaction; *FieldSum*: one field of all; *Update*: one field of half of
them at random, one a transaction. Time for one record, boltkv / Go's bbolt. *Storage*: the bytes of the file at the end,
for one record; *in use*: those of its pages that hold something.";

pub(super) fn section(results: &Results, page: &mut Page) -> Result<()> {
    open(results, "## Experiment (c): six ways to store a record", ABOUT, page);
    let measured = |count: &&u64| !results.contestants(&name("binary", "all", **count)).is_empty();
    for &count in counts(Scale::Large).iter().filter(measured).filter(|count| COUNTS_SHOWN.contains(count)) {
        page.heading(&format!("### {count} records"));
        page.table(&head(), &rows(results, count));
    }
    let panels: Vec<_> =
        Layout::ALL.iter().flat_map(|(_, layout)| LOADS.map(|(_, load)| panel(results, layout, load))).collect();
    page.plot("users", "time to write a record by number of records", &panels)?;
    page.paragraph(&verdict(results));
    Ok(())
}

/// The numbers of records that have a table; the plot has them all.
const COUNTS_SHOWN: [u64; 3] = [1_000, 100_000, 1_000_000];

/// What the file comes to, with what it is.
const STORAGE: [(Figure, &str); 2] = [(Figure::File, "Storage"), (Figure::Used, "in use")];

fn head() -> Vec<&'static str> {
    let mut head = vec!["layout", "load"];
    head.extend(FIGURES.iter().map(|(_, named)| *named));
    head.extend(STORAGE.map(|(_, named)| named));
    head
}

fn rows(results: &Results, count: u64) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (_, layout) in Layout::ALL {
        for (_, load) in LOADS {
            let work = name(layout, load, count);
            let both = |one: &dyn Fn(&str) -> Option<String>| {
                FIELD.map(|engine| one(engine).unwrap_or_else(|| "–".to_owned())).join(" / ")
            };
            let mut row = vec![layout.to_owned(), load.to_owned()];
            for (figure, _) in FIGURES {
                row.push(both(&|engine| Some(short(1.0 / rate(results, &work, engine, figure)?) + "s")));
            }
            for (figure, _) in STORAGE {
                row.push(both(&|engine| {
                    let written = results.of(&work, engine).next()?.costs.get("write")?.operations;
                    #[expect(clippy::cast_precision_loss, reason = "a count of records, far below 2^52")]
                    let each = figure.over(results, &work, engine)?.median / written as f64;
                    Some(short(each) + "B")
                }));
            }
            rows.push(row);
        }
    }
    rows
}

fn panel(results: &Results, layout: &str, load: &str) -> Panel {
    #[expect(clippy::cast_precision_loss, reason = "a count of records, far below 2^52")]
    let line = |engine: &&str| Series {
        contestant: (*engine).to_owned(),
        points: counts(Scale::Large)
            .iter()
            .filter_map(|&count| {
                Some((count as f64, 1.0 / rate(results, &name(layout, load, count), engine, "write")?))
            })
            .collect(),
    };
    let series = FIELD.iter().map(line).collect();
    Panel { title: format!("{layout}, {load}"), x: "records", y: "seconds to write one", series }
}

/// What a bulk load of many keys or of many buckets costs, which hurt most there.
fn verdict(results: &Results) -> String {
    let mut lines = vec![
        "There, nested buckets and a key per field hurt most: 50 and 32 µs a record, loaded all in one, where one value \
         took 2 to 10."
            .to_owned(),
    ];
    for layout in ["nested", "multi-kv", "binary"] {
        let of = |count: u64, engine| rate(results, &name(layout, "all", count), engine, "write");
        let largest =
            counts(Scale::Large).iter().rfind(|count| FIELD.iter().all(|engine| of(**count, engine).is_some()));
        let Some(&count) = largest else { continue };
        if let (Some(ours), Some(theirs)) = (of(count, "boltkv"), of(count, "bbolt")) {
            lines.push(format!(
                "Here, {count} records in one transaction, {layout}: {}s a record, {} × as fast as Go's bbolt.",
                short(1.0 / ours),
                digits(ours / theirs)
            ));
        }
    }
    lines.join("\n")
}
