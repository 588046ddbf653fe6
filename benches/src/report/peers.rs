//! The table, and where its goals stand.

use anyhow::Result;

use super::page::Page;
use super::plot::Rows;
use super::{open, rate};
use crate::contestant::ENGINES;
use crate::goal::{Figure, Row, digits, short};
use crate::print;
use crate::results::Results;
use crate::works::{Entry, Scale, Suite};

const ABOUT: &str = "\
Keys of 8 bytes and values of 32, a million entries, commits synced, where a row says nothing else. *Bar*: what must
hold; *aim*: where we are going. An engine's name stands for its defaults, which for boltkv and Go's bbolt is a freelist
that every commit stores; with `+on-close` it is stored when the file is closed, with `+not-stored` never. With
`+journal` a commit is durable by its record in a journal, and the freelist is stored at checkpoints. fjall syncs its
journal with `fdatasync` (`PersistMode::SyncData`) in each commit.
Rows that say \"no sync\" compare promises that differ: see above.";

/// How the aims were read that say something else, or less, than a row does.
const READING: &str = "\
That an insert's cost is to be flat is read as: between the sizes of transactions where it is least and most, its time
differs by at most two times (≤ 2), its instructions by one and a half (≤ 1.5). One aim has no row: a million deletes as
fast as Sanakirja's cannot be compared: Sanakirja syncs each of the thousand commits, and nobody else does there.";

pub(super) fn section(results: &Results, page: &mut Page) -> Result<()> {
    open(results, "## The table", ABOUT, page);
    let entries = Suite::Peers.entries(if results.quick { Scale::Quick } else { Scale::Full });
    let rows: Vec<_> = entries.iter().flat_map(|entry| entry.rows.iter().map(move |row| (entry, row))).collect();
    // What nobody was measured in is named below, where it has a bar.
    let shown = rows.iter().filter(|(entry, row)| entry.field.iter().any(|name| measured(results, entry, row, name)));
    let cells: Vec<_> = shown.map(|(entry, row)| cells(results, entry, row)).collect();
    page.table(&["work", "boltkv", "Go bbolt", "LMDB", "others", "bar", "aim"], &cells);
    let ratios = ratios(results, &rows);
    if !ratios.is_empty() {
        page.paragraph("The rates over those of Go's bbolt, in the setting that a row's bar compares with:");
        page.dots("peers", "rates over those of Go's bbolt", &ratios)?;
    }
    inserts(results, &rows, page);
    page.paragraph(&bars(results, &rows));
    page.heading("### Where the aims stand");
    page.paragraph(&aims(results, &rows));
    page.paragraph(READING);
    Ok(())
}

/// What the rows of random inserts compare: the time of one, by how many a transaction has.
fn inserts(results: &Results, rows: &[(&Entry, &Row)], page: &mut Page) {
    let sizes = rows.iter().find_map(|(entry, row)| match row.figure {
        Figure::Growth(sizes) if entry.work.name == "flat" => Some(sizes),
        _ => None,
    });
    let Some(sizes) = sizes else { return };
    let time = |engine: &str, size| Some(short(1.0 / rate(results, "flat", engine, size)?) + "s");
    let row = |engine: &str| {
        let times = sizes.iter().map(|size| time(engine, size).unwrap_or_else(|| "–".to_owned()));
        std::iter::once(engine.to_owned()).chain(times).collect::<Vec<_>>()
    };
    let rows: Vec<_> = results.contestants("flat").into_iter().map(row).collect();
    if !rows.is_empty() {
        page.paragraph(
            "What one insert takes in the rows of random inserts, with its share of the commit: the median of the \
             rounds. Each transaction\nstarts from an empty bucket; 1k is done a hundred times, 10k ten times.",
        );
        page.table(&[&["inserts a transaction"], sizes].concat(), &rows);
    }
}

fn measured(results: &Results, entry: &Entry, row: &Row, contestant: &str) -> bool {
    row.figure.over(results, &entry.work.name, contestant).is_some()
}

fn cells(results: &Results, entry: &Entry, row: &Row) -> Vec<String> {
    let work = &entry.work.name;
    let shown = |contestant: &str| {
        row.figure.over(results, work, contestant).map(|figure| {
            let [median, min, max] = [figure.median, figure.min, figure.max].map(|value| row.figure.show(value));
            format!("{median} ({min} – {max})")
        })
    };
    let others = entry.field.iter().filter(|name| ![row.ours, "bbolt", "lmdb"].contains(name));
    let others = others.filter_map(|name| {
        let median = row.figure.over(results, work, name)?.median;
        Some(format!("{name} {}", row.figure.show(median)))
    });
    let missing = || "–".to_owned();
    let goal = |goal: Option<_>| {
        goal.map_or_else(missing, |goal| {
            format!("{}: {}", print::show(goal, row), print::standing(row, goal, results, work))
        })
    };
    vec![
        row.title.to_owned(),
        shown(row.ours).unwrap_or_else(missing),
        shown("bbolt").unwrap_or_else(missing),
        shown("lmdb").unwrap_or_else(missing),
        others.collect::<Vec<_>>().join(", "),
        goal(row.bar),
        goal(row.aim),
    ]
}

/// In each row of rates, everybody's over Go's bbolt's, in the setting that the row's bar compares with.
fn ratios<'r>(results: &Results, rows: &[(&Entry, &'r Row)]) -> Rows<'r> {
    let rates = rows.iter().filter(|(_, row)| matches!(row.figure, Figure::Rate(_)));
    rates
        .map(|(entry, row)| {
            let of = |name: &str| Some(row.figure.over(results, &entry.work.name, name)?.median);
            let base = row.bar.and_then(|bar| bar.of).filter(|of| of.starts_with("bbolt")).unwrap_or("bbolt");
            let ratio = |engine: &'static str| {
                let named = match engine {
                    "boltkv" => row.ours,
                    "bbolt" => base,
                    other => other,
                };
                Some((engine, of(named)? / of(base)?))
            };
            (row.title, ENGINES.iter().filter_map(|engine| ratio(engine)).collect())
        })
        .filter(|(_, dots): &(_, Vec<_>)| !dots.is_empty())
        .collect()
}

/// Which bars hold, and which of them only by the medians.
fn bars(results: &Results, rows: &[(&Entry, &Row)]) -> String {
    let (mut holding, mut missed, mut unsteady, mut unknown) = (0, Vec::new(), Vec::new(), Vec::new());
    for (entry, row) in rows {
        let Some(bar) = row.bar else { continue };
        match row.standing(bar, results, &entry.work.name) {
            None => unknown.push(format!("- not measured: {}", row.title)),
            Some(standing) if !standing.holds => missed.push(format!("- missed: {}", row.title)),
            Some(standing) => {
                holding += 1;
                if !standing.holds_in_every_round {
                    unsteady.push(format!("- holds, but not in every round: {}", row.title));
                }
            }
        }
    }
    let count = holding + missed.len();
    missed.append(&mut unsteady);
    missed.append(&mut unknown);
    let but = if missed.is_empty() { ".".to_owned() } else { format!(":\n\n{}", missed.join("\n")) };
    format!("{holding} of {count} bars that were measured hold, by the medians{but}")
}

/// Which aims are reached, and how far the others are.
fn aims(results: &Results, rows: &[(&Entry, &Row)]) -> String {
    let (mut reached, mut open, mut unsteady, mut unknown) = (0, Vec::new(), Vec::new(), 0);
    for (entry, row) in rows {
        let Some(aim) = row.aim else { continue };
        match row.standing(aim, results, &entry.work.name) {
            None => unknown += 1,
            Some(standing) if standing.holds => {
                reached += 1;
                if !standing.holds_in_every_round {
                    unsteady.push(format!("- {}", row.title));
                }
            }
            Some(standing) => {
                open.push(format!(
                    "- {}: {}, it is {}",
                    row.title,
                    print::show(aim, row),
                    digits(standing.reached.median)
                ));
            }
        }
    }
    let count = reached + open.len() + unknown;
    let unknown = if unknown > 0 { format!(", {unknown} could not be measured") } else { String::new() };
    let list = |what: &str, rows: &[String]| {
        if rows.is_empty() { String::new() } else { format!("\n\n{what}:\n\n{}", rows.join("\n")) }
    };
    let (others, unsteady) = (list("The others", &open), list("Reached, but not in every round", &unsteady));
    format!("{reached} of {count} aims are reached by the medians{unknown}.{others}{unsteady}")
}
