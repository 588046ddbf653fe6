//! The table as lines of text, for whoever waits for it.

use std::fmt::Write as _;

use boltkv_load::NOTABLE_STEAL;

use crate::goal::{Figure, Goal, Row, Standing, digits, per_second, percent, short};
use crate::results::Results;
use crate::servers::{Servers, Who, rows};
use crate::shell::Shell;
use crate::stats::Summary;

/// What has to be said of works that were made small.
pub const TRIAL: &str = "A trial run of a hundredth of the work: these numbers say nothing about speed.";

/// What a row came to: a line for each contestant, and where the goals stand.
#[must_use]
pub fn row(row: &Row, results: &Results, work: &str) -> String {
    let mut text = format!("{}\n", row.title);
    let contestants = results.contestants(work);
    for contestant in &contestants {
        let Some(figure) = row.figure.over(results, work, contestant) else { continue };
        let show = |value| row.figure.show(value);
        let _ = write!(text, "  {contestant:<17} {:>10}", show(figure.median));
        let _ = write!(text, "  {:>24}", format!("({} – {})", show(figure.min), show(figure.max)));
        for rival in ["bbolt", "lmdb"].iter().filter(|rival| contestants.contains(rival) && *rival != contestant) {
            if let Some(theirs) = row.figure.over(results, work, rival) {
                let _ = write!(text, "  {:>6} × {rival}", digits(figure.median / theirs.median));
            }
        }
        text.push('\n');
    }
    for (name, goal) in [("bar", row.bar), ("aim", row.aim)] {
        if let Some(goal) = goal {
            let _ = writeln!(text, "  {name} {}: {}", show(goal, row), standing(row, goal, results, work));
        }
    }
    text
}

/// A work without rows: a line for each figure and contestant, and one for the memory of each.
#[must_use]
pub fn work(results: &Results, work: &str) -> String {
    let mut text = format!("{work}\n");
    let contestants = results.contestants(work);
    for figure in results.figures(work) {
        for contestant in &contestants {
            let Some(rate) = Summary::of(results.rates(work, contestant, figure)) else { continue };
            if results.suite.is_shown_as_time() {
                line(&mut text, figure, contestant, rate.inverse(), |seconds| format!("{}s", short(seconds)));
            } else {
                line(&mut text, figure, contestant, rate, per_second);
            }
        }
    }
    for contestant in &contestants {
        let Some(memory) = Figure::PeakPrivate.over(results, work, contestant) else { continue };
        line(&mut text, "private memory", contestant, memory, |bytes| Figure::PeakPrivate.show(bytes));
    }
    text
}

fn line(text: &mut String, figure: &str, contestant: &str, of: Summary, show: impl Fn(f64) -> String) {
    let spread = format!("({} – {})", show(of.min), show(of.max));
    let _ = writeln!(text, "  {figure:<17} {contestant:<17} {:>10}  {spread:>24}", show(of.median));
}

/// What was measured from the shell: a line for each server and command, and what it takes to be there.
#[must_use]
pub fn shell(shell: &Shell) -> String {
    let mut text = String::new();
    for target in &shell.targets {
        let _ = writeln!(text, "{}", target.title());
        for (name, timing) in &target.timings {
            let [median, mean, deviation] =
                [timing.summary.median, timing.mean, timing.deviation].map(|seconds| digits(seconds * 1e3));
            let runs = timing.runs;
            let _ = writeln!(text, "  {name:<17} {median:>6} ms, mean {mean} ± {deviation} ms, {runs} runs");
        }
        if let Some(start) = target.start {
            let _ = writeln!(text, "  {:<17} {:>6} ms", "start", digits(start.median * 1e3));
        }
        if let Some(resident) = target.resident {
            let [anon, file] = [resident.anon, resident.file].map(|bytes| bytes >> 10);
            let _ = writeln!(text, "  {:<17} {anon:>6} KiB of its own, {file} KiB of files", "memory");
        }
    }
    for out in &shell.left_out {
        let _ = writeln!(text, "{} is left out: {}", out.contestant, out.why);
    }
    text
}

/// What was measured of servers: a line for each row and server.
#[must_use]
pub fn servers(servers: &Servers) -> String {
    let mut text = if servers.quick { format!("{TRIAL}\n") } else { String::new() };
    for row in rows() {
        let mut heading = format!("{}\n", row.title);
        for who in Who::ALL.map(Who::title) {
            let Some(rate) = servers.summary(row.name, who, |run| Some(run.rate)) else { continue };
            text.push_str(&std::mem::take(&mut heading));
            let spread = format!("({} – {})", per_second(rate.min), per_second(rate.max));
            let _ = write!(text, "  {who:<12} {:>10}  {spread:>24}", per_second(rate.median));
            let p99 = servers.summary(row.name, who, |run| Some(run.p99)).map_or(0.0, |p99| p99.median);
            let cpu = servers.summary(row.name, who, |run| Some(run.cpu)).map_or(0.0, |cpu| cpu.median);
            let _ = write!(text, "  p99 {:>7}s  {:>5} µs of processor each", short(p99), digits(cpu * 1e6));
            if let Some(ratio) = servers.ratio(row.name, [who, Who::Redis.title()], |run| run.rate) {
                let _ = write!(text, "  {:>5} × Redis", digits(ratio.median));
            }
            if let Some(stolen) = servers.stolen(row.name, who).filter(|stolen| *stolen >= NOTABLE_STEAL) {
                let _ = write!(text, "  {} stolen", percent(stolen));
            }
            let failed: u64 =
                servers.runs.iter().filter(|run| run.row == row.name && run.server == who).map(|run| run.failed).sum();
            if failed > 0 {
                let _ = write!(text, "  {failed} failed");
            }
            text.push('\n');
        }
    }
    for out in &servers.left_out {
        let _ = writeln!(text, "{} is left out: {}", out.contestant, out.why);
    }
    text
}

/// A goal in words.
#[must_use]
pub fn show(goal: Goal, row: &Row) -> String {
    let direction = if row.figure.more_is_better() { "≥" } else { "≤" };
    match goal.of {
        Some(of) => format!("{direction} {} × {of}", goal.times),
        None => format!("{direction} {}", goal.times),
    }
}

/// Whether a goal is reached, in words.
#[must_use]
pub fn standing(row: &Row, goal: Goal, results: &Results, work: &str) -> String {
    let Some(Standing { reached, holds, .. }) = row.standing(goal, results, work) else {
        return "not measured".to_owned();
    };
    let [median, min, max] = [reached.median, reached.min, reached.max].map(digits);
    format!("{}, {median} ({min} – {max})", if holds { "holds" } else { "missed" })
}
