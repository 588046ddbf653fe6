//! Experiment (d): set, get and delete of values of two sizes.

use anyhow::Result;

use super::page::Page;
use super::plot::{Panel, Series};
use super::{cell, open, rate};
use crate::contestant::ENGINES;
use crate::goal::{Figure, digits};
use crate::results::Results;
use crate::works::Scale;
use crate::works::microbench::{name, sizes};

const FIGURES: [&str; 3] = ["set", "get", "delete"];

pub(super) fn section(results: &Results, page: &mut Page) -> Result<()> {
    let about = "What bugfruit was measured by: random 16-byte keys with random values of 100 bytes, 1,000 a commit, \
                 and of 100,000 bytes,\none a commit, without syncs but for one at the end. Operations a second.";
    open(results, "## Experiment (d): bugfruit's micro-benchmark", about, page);
    for &(bytes, count) in sizes(Scale::Large).iter().filter(|size| measured(results, **size)) {
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
    let panels = FIGURES.map(|figure| panel(results, figure));
    page.plot("microbench", "operations a second by size of values", &panels)?;
    page.paragraph(&verdict(results));
    Ok(())
}

fn measured(results: &Results, (bytes, count): (usize, u64)) -> bool {
    !results.contestants(&name(bytes, count)).is_empty()
}

/// The first number of entries of each size.
#[expect(clippy::cast_precision_loss, reason = "bytes of a value")]
fn panel(results: &Results, figure: &str) -> Panel {
    let firsts = sizes(Scale::Full);
    let line = |engine: &&str| Series {
        contestant: (*engine).to_owned(),
        points: firsts
            .iter()
            .filter_map(|&(bytes, count)| Some((bytes as f64, rate(results, &name(bytes, count), engine, figure)?)))
            .collect(),
    };
    let series = ENGINES.iter().map(line).filter(|line| !line.points.is_empty()).collect();
    Panel { title: figure.to_owned(), x: "bytes of a value", y: "operations a second", series }
}

fn verdict(results: &Results) -> String {
    let mut lines = vec![
        "bugfruit keeps everything in memory and appends to a file: 417 k sets, 583 k deletes and 7.9 M \
                    gets a second on its\nauthor's M1; of large values 10.8 k sets, and 20.9 M gets, which are a \
                    pointer into its memory. Here:\n"
            .to_owned(),
    ];
    for &(bytes, count) in sizes(Scale::Large).iter().filter(|size| measured(results, **size)) {
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
                lines.push(format!("- against {named}, {bytes} bytes, {count} times: {}.", times.join(", ")));
            }
        }
    }
    lines.join("\n")
}
