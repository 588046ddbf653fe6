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
A user of 15 fields, about 250 bytes, stored in six ways, one user a transaction (`each`) or all in one (`all`),
without syncs ([worth what?](#how-it-is-measured)) but for one after the writes and one after the updates. *made*: the
record made as keys and values, and not stored: so much of *Write* is the language's and the encoding's, not the
engine's; reading decodes, too. *Read*: half of them at random, one a transaction; *ReadMany*: a third of them in a
row, in one transaction; *FieldSum*: one field of all; *Update*: one field of half of them at random, one a
transaction. Time for one record, boltkv / Go's bbolt; medians. *Storage*: the bytes of the file at the end, for one
record; *in use*: those of its pages that hold something.";

pub(super) fn section(results: &Results, page: &mut Page) -> Result<()> {
    open(results, "## Experiment (c): six ways to store a record", ABOUT, page);
    let measured = |count: &&u64| !results.contestants(&name("binary", "all", **count)).is_empty();
    for &count in counts(Scale::Large).iter().filter(measured).filter(|count| COUNTS_SHOWN.contains(count)) {
        page.heading(&format!("### {count} records"));
        page.table(&head(), &rows(results, count));
    }
    let write =
        |load| move |(_, layout): &(_, &'static str)| panel(results, layout, load, ("write", "seconds to write one"));
    let panels: Vec<_> = LOADS.iter().flat_map(|(_, load)| Layout::ALL.iter().map(write(load))).collect();
    page.plot("users", "time to write a record by number of records", &panels)?;
    for (figure, file, does, what) in LATER {
        let later = |(_, layout): &(_, &'static str)| panel(results, layout, "all", (figure, does));
        let panels: Vec<_> = Layout::ALL.iter().map(later).collect();
        page.plot(file, what, &panels)?;
    }
    let storage = |(_, layout): &(_, &'static str)| storage_panel(results, layout);
    let panels: Vec<_> = Layout::ALL.iter().map(storage).collect();
    page.plot("users-storage", "bytes of the file for a record by number of records", &panels)?;
    page.paragraph(&verdict(results));
    Ok(())
}

/// What comes after the writes and has a plot: the figure, the plot's file, its axis, and what it shows.
const LATER: [(&str, &str, &str, &str); 4] = [
    ("read", "users-read", "seconds to read one", "time to read a record by number of records"),
    ("read-many", "users-read-many", "seconds to read one", "time to read a record among many by number of records"),
    ("field-sum", "users-field-sum", "seconds for one", "time to read a field of a record by number of records"),
    ("update", "users-update", "seconds to update one", "time to update a field of a record by number of records"),
];

/// The numbers of records that have a table; the plots have them all.
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
                row.push(both(&|engine| Some(short(each(results, figure, &work, engine)?) + "B")));
            }
            rows.push(row);
        }
    }
    rows
}

/// Bytes for a record.
#[expect(clippy::cast_precision_loss, reason = "a count of records, far below 2^52")]
fn each(results: &Results, figure: Figure, work: &str, engine: &str) -> Option<f64> {
    let written = results.of(work, engine).next()?.costs.get("write")?.operations;
    Some(figure.over(results, work, engine)?.median / written as f64)
}

fn panel(results: &Results, layout: &str, load: &str, (figure, does): (&str, &'static str)) -> Panel {
    let of = |work: &str, engine: &str| Some(1.0 / rate(results, work, engine, figure)?);
    Panel { title: format!("{layout}, {load}"), x: "records", y: does, series: lines(layout, load, of) }
}

fn storage_panel(results: &Results, layout: &str) -> Panel {
    let of = |work: &str, engine: &str| each(results, Figure::File, work, engine);
    Panel { title: format!("{layout}, all"), x: "records", y: "bytes for one", series: lines(layout, "all", of) }
}

/// A line for each engine, over the numbers of records.
#[expect(clippy::cast_precision_loss, reason = "a count of records, far below 2^52")]
fn lines(layout: &str, load: &str, of: impl Fn(&str, &str) -> Option<f64>) -> Vec<Series> {
    let point = |count: u64, engine: &str| Some((count as f64, of(&name(layout, load, count), engine)?));
    let line = |engine: &&str| Series {
        contestant: (*engine).to_owned(),
        points: counts(Scale::Large).iter().filter_map(|&count| point(count, engine)).collect(),
    };
    FIELD.iter().map(line).collect()
}

/// What theirs came to, and each task over all layouts, for the largest number of records that both did.
fn verdict(results: &Results) -> String {
    let mut lines = vec![THEIRS.to_owned()];
    for (_, load) in LOADS {
        let works = |count: u64| Layout::ALL.map(|(_, layout)| (layout, name(layout, load, count)));
        let both = |work: &str| FIELD.iter().all(|engine| rate(results, work, engine, "write").is_some());
        let Some(&count) = counts(Scale::Large).iter().rfind(|count| works(**count).iter().all(|(_, work)| both(work)))
        else {
            continue;
        };
        lines.push(format!(
            "\nHere, {count} records, the most that both loaded in every layout, {}:\n",
            if load == "all" { "all in one" } else { "one by one" }
        ));
        lines.extend(FIGURES.iter().filter_map(|(figure, named)| {
            let times = works(count).map(|(layout, work)| {
                let [ours, theirs] = FIELD.map(|engine| rate(results, &work, engine, figure));
                Some(format!("{layout} {}", digits(ours? / theirs?)))
            });
            let times: Vec<_> = times.into_iter().collect::<Option<_>>()?;
            let than = if *figure == "make" { "Go" } else { "Go's bbolt" };
            Some(format!("- {named}, times as fast as {than}: {}", times.join(", ")))
        }));
    }
    lines.join("\n")
}

const THEIRS: &str = "\
Theirs: 30 to 50 µs a record, one a transaction; 2 to 10 µs all in one, but 50 µs as nested buckets and 32 µs as a key a
field. Go's gob, in whose place MessagePack stands here, took 3 to 4 times as long to read as JSON; nested buckets and
keys per field made the largest files, binary ones were half of the next best.";
