//! Writes the page of benchmarks from what was measured. What is measured comes out of results, so that the page is
//! replaced by running this again; what people found out goes to pages of notes, which this one only takes in.

mod bars;
mod batches;
mod goals;
mod growth;
mod how;
mod microbench;
mod millions;
mod page;
mod peers;
mod plot;
mod redis;
mod rounds;
mod servers;
mod shell;
mod users;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::goal::short;
use crate::machine::Machine;
use crate::print::TRIAL;
use crate::results::{LeftOut, Results};
use crate::servers::Servers;
use crate::shell::Shell;
use crate::stats::Summary;
use crate::works::Suite;
use page::Page;

/// All suites, in the page's order.
const SUITES: [Suite; 6] = [Suite::Peers, Suite::A, Suite::B, Suite::C, Suite::D, Suite::Growth];

/// Results of either kind, as they are read from a file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Measured {
    /// Works done by engines.
    Works(Results),
    /// A server measured from the shell.
    Shell(Shell),
    /// Servers measured over the network.
    Servers(Servers),
}

/// Writes `benchmarks.md` and the folder of its plots into `docs`. Of several results of a suite the last one counts;
/// of servers the others are told beside it, shorter.
///
/// # Errors
/// Nothing was measured; a file that cannot be written.
pub fn write(measured: &[Measured], docs: &Path) -> Result<()> {
    if measured.is_empty() {
        bail!("there are no results to report");
    }
    let folder = docs.join("benchmarks");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut page = Page { text: String::new(), plots: folder };
    page.heading("# Benchmarks");
    page.paragraph(
        "boltkv's engine beside its peers, on works that others chose. This page is written by\n\
         `cargo run --release -p boltkv-benches -- report`: to change a number, measure again.",
    );
    how::section(measured, &mut page);
    for suite in SUITES {
        let Some(results) = measured.iter().rev().find_map(|measured| measured.works(suite)) else { continue };
        match suite {
            Suite::Peers => peers::section(results, &mut page)?,
            Suite::A => batches::section(results, &mut page)?,
            Suite::B => millions::section(results, &mut page)?,
            Suite::C => users::section(results, &mut page)?,
            Suite::D => microbench::section(results, &mut page)?,
            Suite::Growth => growth::section(results, &mut page)?,
        }
        page.note(&name(suite))?;
        left_out(&results.left_out, &mut page);
    }
    let all_servers: Vec<_> = measured.iter().rev().filter_map(Measured::servers).collect();
    if let Some((servers, others)) = all_servers.split_first() {
        let (of_its_own, elsewhere): (Vec<&Servers>, Vec<_>) =
            others.iter().partition(|servers| servers.is_of_its_own());
        servers::section(servers, &elsewhere, &mut page)?;
        for servers in of_its_own {
            servers::of_its_own(servers, &mut page);
        }
        for servers in elsewhere {
            servers::elsewhere(servers, &mut page);
        }
        page.note("servers")?;
        left_out(&servers.left_out, &mut page);
    }
    if let Some(shell) = measured.iter().rev().find_map(Measured::shell) {
        shell::section(shell, &mut page)?;
        page.note("shell")?;
        left_out(&shell.left_out, &mut page);
    }
    // Measured by hand: these are programs, not engines.
    page.note("files")?;
    page.note("cold")?;
    let text = page.text.trim_end().to_owned() + "\n";
    let file = docs.join("benchmarks.md");
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}

impl Measured {
    fn works(&self, suite: Suite) -> Option<&Results> {
        match self {
            Self::Works(results) if results.suite == suite => Some(results),
            _ => None,
        }
    }

    fn shell(&self) -> Option<&Shell> {
        match self {
            Self::Shell(shell) => Some(shell),
            Self::Works(_) | Self::Servers(_) => None,
        }
    }

    fn servers(&self) -> Option<&Servers> {
        match self {
            Self::Servers(servers) => Some(servers),
            Self::Works(_) | Self::Shell(_) => None,
        }
    }

    /// What was measured, as the table of versions calls it.
    fn name(&self) -> String {
        match self {
            Self::Works(results) => name(results.suite),
            Self::Shell(_) => "shell".to_owned(),
            Self::Servers(_) => "servers".to_owned(),
        }
    }

    fn on(&self) -> (&Machine, &BTreeMap<String, String>) {
        match self {
            Self::Works(results) => (&results.machine, &results.versions),
            Self::Shell(shell) => (&shell.machine, &shell.versions),
            Self::Servers(servers) => (&servers.machine, &servers.versions),
        }
    }
}

fn name(suite: Suite) -> String {
    format!("{suite:?}").to_lowercase()
}

/// A section's first lines: what it is about, the command that measures it again, and how often it was measured.
fn open(results: &Results, heading: &str, about: &str, page: &mut Page) {
    headed((&results.command, results.quick), heading, about, page);
    page.paragraph(&rounds::said(results));
}

fn headed((command, quick): (&str, bool), heading: &str, about: &str, page: &mut Page) {
    page.heading(heading);
    page.paragraph(about);
    page.paragraph(&format!("```sh\n{command}\n```"));
    if quick {
        page.paragraph(&format!("**{TRIAL}**"));
    }
}

fn left_out(out: &[LeftOut], page: &mut Page) {
    let row = |out: &LeftOut| vec![out.work.clone(), out.contestant.clone(), out.why.replace('|', "\\|")];
    let rows: Vec<_> = out.iter().map(row).collect();
    if !rows.is_empty() {
        page.paragraph("Left out:");
        page.table(&["work", "engine", "why"], &rows);
    }
}

/// The median rate of a figure.
fn rate(results: &Results, work: &str, contestant: &str, figure: &str) -> Option<f64> {
    Summary::of(results.rates(work, contestant, figure)).map(|rates| rates.median)
}

/// A rate, with its spread where there were several rounds, for a cell.
fn cell(results: &Results, work: &str, contestant: &str, figure: &str) -> String {
    spread(results, work, contestant, figure, |rates| [rates.median, rates.min, rates.max].map(short))
}

/// What `show` makes of the median, the least and the most of a rate; the median alone where there was one round.
fn spread(
    results: &Results,
    work: &str,
    contestant: &str,
    figure: &str,
    show: impl FnOnce(Summary) -> [String; 3],
) -> String {
    let Some(rates) = Summary::of(results.rates(work, contestant, figure)) else { return "–".to_owned() };
    let [median, min, max] = show(rates);
    if results.of(work, contestant).count() > 1 { format!("{median} ({min}–{max})") } else { median }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{self, Run};
    use crate::work::Cost;
    use crate::works::Scale;

    /// Results in which every contestant does everything, each ten times faster than the one before it.
    fn made_up(suite: Suite) -> Measured {
        let mut runs = Vec::new();
        for entry in suite.entries(Scale::Full) {
            for (speed, name) in entry.field.iter().enumerate() {
                let mut run = Run { work: entry.work.name.clone(), contestant: (*name).to_owned(), ..Run::default() };
                (run.peak_private, run.used, run.file_bytes) = (Some(1 << 20), Some(1 << 20), Some(1 << 21));
                for figure in entry.work.stages.iter().filter_map(|stage| stage.figure.clone()) {
                    let seconds = 0.1_f64.powi(i32::try_from(speed).unwrap());
                    run.add(Cost { figure, operations: 1000, seconds, witness: 0, file_bytes: Some(1 << 21) });
                }
                runs.push(run);
            }
        }
        let left_out =
            vec![LeftOut { work: "w".to_owned(), contestant: "nut".to_owned(), why: "it | cracked".to_owned() }];
        let (command, limit) = ("cargo run".to_owned(), Some(60));
        Measured::Works(Results { suite, command, rounds: Some(1), limit, left_out, ..results::made_up(runs) })
    }

    #[test]
    fn the_page_has_every_suite_with_its_plots_and_what_was_left_out() {
        let docs = tempfile::tempdir().unwrap();
        let mut results: Vec<_> = SUITES.into_iter().map(made_up).collect();
        results.push(Measured::Shell(shell::made_up()));
        results.push(Measured::Servers(crate::servers::Servers { disk_writes: Some(70), ..servers::made_up() }));
        results.push(Measured::Servers(servers::made_up()));
        results.push(Measured::Servers(servers::made_up()));
        write(&results, docs.path()).unwrap();
        let text = fs::read_to_string(docs.path().join("benchmarks.md")).unwrap();
        assert_eq!(text.matches("```sh\n").count(), results.len() - 1, "the command is the same for both");
        assert_eq!(text.matches("### On another machine, of ").count(), 1);
        assert_eq!(text.matches("### On a disk of 70 writes a second").count(), 1);
        assert_eq!(text.matches("given up after 60 s").count(), SUITES.len());
        assert!(text.contains("it \\| cracked") && text.contains("| hyperfine 1.2.3 |"));
        for plot in text.split("](benchmarks/").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(docs.path().join("benchmarks").join(plot).exists(), "{plot}");
        }
    }

    #[test]
    fn notes_are_taken_in_and_nothing_measured_is_an_error() {
        let docs = tempfile::tempdir().unwrap();
        let notes = docs.path().join("benchmarks/notes");
        fs::create_dir_all(&notes).unwrap();
        fs::write(notes.join("peers.md"), "The disk is slow.").unwrap();
        fs::write(notes.join("files.md"), "## Commands on files\n").unwrap();
        assert!(write(&[], docs.path()).is_err());
        write(&[made_up(Suite::Peers)], docs.path()).unwrap();
        let text = fs::read_to_string(docs.path().join("benchmarks.md")).unwrap();
        assert!(text.contains("The disk is slow.") && text.ends_with("\n\n## Commands on files\n"), "{text}");
    }
}
