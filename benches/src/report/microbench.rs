//! Experiment (d): set, get and delete of values of two sizes.

use anyhow::Result;

use super::page::Page;
use super::plot::Rows;
use super::{cell, open, rate};
use crate::goal::{Figure, digits};
use crate::results::Results;
use crate::works::Scale;
use crate::works::microbench::{name, sizes};

const FIGURES: [&str; 3] = ["set", "get", "delete"];

pub(super) fn section(results: &Results, page: &mut Page) -> Result<()> {
    let about = "What bugfruit was measured by: random 16-byte keys with random values of 100 bytes, 1,000 a commit, \
                 and of 100,000 bytes,\none a commit, without syncs but for one after all sets and one after all \
                 deletes. Gets are at random, as many as entries,\nbut a million of the large ones. What \"without \
                 syncs\" is worth differs: see [how it is measured](#how-it-is-measured).\nOperations a second.";
    open(results, "## Experiment (d): bugfruit's micro-benchmark", about, page);
    for (bytes, count) in measured_sizes(results) {
        let work = name(bytes, count);
        page.heading(&format!("### {count} values of {bytes} bytes"));
        let rows: Vec<_> = results
            .contestants(&work)
            .iter()
            .map(|engine| {
                let mut row = vec![(*engine).to_owned()];
                row.extend(FIGURES.iter().map(|figure| cell(results, &work, engine, figure)));
                row.push(
                    Figure::File
                        .over(results, &work, engine)
                        .map_or("–".to_owned(), |file| Figure::File.show(file.median)),
                );
                row
            })
            .collect();
        page.table(&[&["engine"], &FIGURES[..], &["file at the end"]].concat(), &rows);
    }
    let titles: Vec<_> = measured_sizes(results).flat_map(titles).collect();
    let rows: Rows<'_> =
        titles.iter().map(|(title, work, figure)| (title.as_str(), dots(results, work, figure))).collect();
    page.paragraph("The rates over those of Go's bbolt:");
    page.dots("microbench", "operations a second over those of Go's bbolt", &rows)?;
    page.paragraph(&verdict(results));
    Ok(())
}

fn measured_sizes(results: &Results) -> impl Iterator<Item = (usize, u64)> {
    let measured = |size: &(usize, u64)| !results.contestants(&name(size.0, size.1)).is_empty();
    sizes(Scale::Large).iter().copied().filter(measured)
}

/// The rows of the plot for a size: what is seen, with its work and figure.
fn titles((bytes, count): (usize, u64)) -> [(String, String, &'static str); 3] {
    FIGURES.map(|figure| (format!("{figure}, {count} values of {bytes} bytes"), name(bytes, count), figure))
}

/// Everyone's rate over that of Go's bbolt.
fn dots<'r>(results: &'r Results, work: &str, figure: &str) -> Vec<(&'r str, f64)> {
    let Some(bbolt) = rate(results, work, "bbolt", figure) else { return Vec::new() };
    let dot = |engine| Some((engine, rate(results, work, engine, figure)? / bbolt));
    results.contestants(work).into_iter().filter_map(dot).collect()
}

fn verdict(results: &Results) -> String {
    let mut lines = vec![
        "bugfruit keeps everything in memory and appends to a file: 417 k sets, 583 k deletes and 7.9 M \
                    gets a second on its\nauthor's M1; of large values 10.8 k sets, and 20.9 M gets, which are a \
                    pointer into its memory. Here:\n"
            .to_owned(),
    ];
    for (bytes, count) in measured_sizes(results) {
        let work = name(bytes, count);
        let of = |engine, figure| rate(results, &work, engine, figure);
        let times = |rival| {
            FIGURES
                .iter()
                .map(|figure| Some(format!("{figure} {} ×", digits(of("boltkv", figure)? / of(rival, figure)?))))
                .collect::<Option<Vec<_>>>()
        };
        for (rival, named) in [("bbolt", "Go's bbolt"), ("lmdb", "LMDB")] {
            if let Some(times) = times(rival) {
                lines.push(format!("- against {named}, {count} values of {bytes} bytes: {}.", times.join(", ")));
            }
        }
    }
    lines.join("\n")
}
