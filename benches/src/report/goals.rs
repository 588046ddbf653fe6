//! What is asked of a server beyond its rates: the worst of its answers, age, memory; and its reads beside writes.

use anyhow::Result;
use boltkv_load::NOTABLE_STEAL;

use super::bars::Bar;
use super::page::Page;
use crate::goal::{digits, percent, short};
use crate::servers::{Run, Servers, Who};
use crate::stats::Summary;

const ABOUT: &str = "\
Beyond the rates. Latencies stand to Redis' in the same round; rates on the aged file to those on the fresh one, with keys
new in memory to those without that memory; memory is what the server has for itself; the longest wait for an answer to a
SET is that of all rounds, with whatever checkpoints were in them.";

const BESIDE: &str = "\
Reads beside writes: GETs of 8 connections, alone and beside durable SETs of 50 others, as many a second of both. Redis does
one thing after the other, its syncs among them, so that GETs wait for them, and the more writes there are, the longer;
boltkv's readers wait for no writer, and have fewer answers only for what writes take of the processors.";

/// The rows of that, and how readers take them.
const READERS: [(&str, &str); 4] = [
    ("get-8", "alone"),
    ("get-8-beside-set", "beside 4,000/s"),
    ("get-8-beside-20k", "beside 20,000/s"),
    ("get-8-beside-60k", "beside 60,000/s"),
];

/// A goal, and what was measured of it.
struct Goal {
    what: &'static str,
    /// `None` where its rows were not measured.
    seen: fn(&Servers) -> Option<f64>,
    is_met: fn(f64) -> bool,
    bar: &'static str,
    show: fn(f64) -> String,
    /// Where it is of the slowest answers: those to this row.
    slowest_of: Option<&'static str>,
}

impl Goal {
    const fn slowest_of(self, row: &'static str) -> Self {
        Self { slowest_of: Some(row), ..self }
    }
}

const GOALS: [Goal; 20] = [
    times("p99 of GET, 50", |of| latency(of, "get-50", |run| run.p99), |seen| seen <= 1.0, "≤ 1 × Redis")
        .slowest_of("get-50"),
    times("p99 of durable SET, 50", |of| latency(of, "set-50", |run| run.p99), |seen| seen <= 1.0, "≤ 1 × Redis")
        .slowest_of("set-50"),
    times("p99.9 of GET, 8", |of| latency(of, "get-8", |run| run.p999), |seen| seen <= 1.5, "≤ 1.5 × Redis")
        .slowest_of("get-8"),
    times("durable SET, 1 connection, aged", |of| age(of, "set-1"), |seen| seen >= 0.9, "≥ 0.9 × fresh"),
    times("durable SET, 50, aged", |of| age(of, "set-50"), |seen| seen >= 0.9, "≥ 0.9 × fresh"),
    times("durable SET, 50, 16 in flight each, aged", |of| age(of, "set-50x16"), |seen| seen >= 0.9, "≥ 0.9 × fresh"),
    times("durable SET of 1 KiB, aged", |of| age(of, "set-1k"), |seen| seen >= 0.9, "≥ 0.9 × fresh"),
    times("durable SET of 16 KiB, aged", |of| age(of, "set-16k"), |seen| seen >= 0.9, "≥ 0.9 × fresh"),
    times("aged file and journal, in bytes", growth, |seen| seen <= 2.1, "≤ 2.1 × loaded"),
    in_mebibytes("memory, GETs of 50", |of| memory(of, "get-50", Who::Fresh), |seen| seen <= 24.0, "≤ 24 MiB"),
    in_mebibytes("memory, durable SETs of 50", |of| memory(of, "set-50", Who::Fresh), |seen| seen <= 64.0, "≤ 64 MiB"),
    in_mebibytes("the same, aged", |of| memory(of, "set-50", Who::Aged), |seen| seen <= 64.0, "≤ 64 MiB"),
    seconds("p99.9 of durable SET, 50", |of| p999(of, "set-50"), |seen| seen <= 0.01, "≤ 10 ms").slowest_of("set-50"),
    seconds("the longest wait for a durable SET, 50", |of| longest(of, "set-50"), |seen| seen <= 0.05, "≤ 50 ms")
        .slowest_of("set-50"),
    seconds("p99.9 of durable SET, 50, 16 in flight each", |of| p999(of, "set-50x16"), |seen| seen <= 0.01, "≤ 10 ms")
        .slowest_of("set-50x16"),
    seconds(
        "the longest wait for a durable SET, 50, 16 in flight each",
        |of| longest(of, "set-50x16"),
        |seen| seen <= 0.05,
        "≤ 50 ms",
    )
    .slowest_of("set-50x16"),
    times("bytes to the disk a durable SET, 50", bytes, |seen| seen <= 0.3, "≤ 0.3 × without memory"),
    times("GET, 1 connection, 80,000 keys new", |of| new(of, "half-get-1"), |seen| seen >= 0.95, WITHOUT),
    times("GET, 50, 80,000 keys new", |of| new(of, "half-get-50"), |seen| seen >= 0.95, WITHOUT),
    times("full scan, 80,000 keys new", |of| new(of, "half-scan"), |seen| seen >= 0.95, WITHOUT),
];

const WITHOUT: &str = "≥ 0.95 × without memory";

const fn times(
    what: &'static str,
    seen: fn(&Servers) -> Option<f64>,
    is_met: fn(f64) -> bool,
    bar: &'static str,
) -> Goal {
    Goal { what, seen, is_met, bar, show: |ratio| format!("{} ×", digits(ratio)), slowest_of: None }
}

const fn in_mebibytes(
    what: &'static str,
    seen: fn(&Servers) -> Option<f64>,
    is_met: fn(f64) -> bool,
    bar: &'static str,
) -> Goal {
    Goal { what, seen, is_met, bar, show: |size| format!("{} MiB", digits(size)), slowest_of: None }
}

const fn seconds(
    what: &'static str,
    seen: fn(&Servers) -> Option<f64>,
    is_met: fn(f64) -> bool,
    bar: &'static str,
) -> Goal {
    Goal { what, seen, is_met, bar, show: |seconds| format!("{}s", short(seconds)), slowest_of: None }
}

/// A figure as so many times that of another server in the same round.
fn beside_other(servers: &Servers, row: &str, both: [Who; 2], of: impl Fn(&Run) -> f64) -> Option<f64> {
    Some(servers.ratio(row, both.map(Who::title), of)?.median)
}

fn latency(servers: &Servers, row: &str, of: fn(&Run) -> f64) -> Option<f64> {
    beside_other(servers, row, [Who::Fresh, Who::Redis], of)
}

fn age(servers: &Servers, row: &str) -> Option<f64> {
    beside_other(servers, row, [Who::Aged, Who::Fresh], |run| run.rate)
}

/// A row of reads beside the same without memory for what is new.
fn new(servers: &Servers, row: &str) -> Option<f64> {
    beside_other(servers, row, [Who::Fresh, Who::NoMemory], |run| run.rate)
}

/// What a SET brings to the disk beside one without memory for what is new.
/// A run of a few seconds has no checkpoint in it, or little else.
fn bytes(servers: &Servers) -> Option<f64> {
    if !servers.is_of_its_own() {
        return None;
    }
    beside_other(servers, "set-50", [Who::Fresh, Who::NoMemory], |run| run.bytes.unwrap_or(f64::NAN))
}

fn p999(servers: &Servers, row: &str) -> Option<f64> {
    Some(servers.summary(row, Who::Fresh.title(), |run| Some(run.p999))?.median)
}

fn longest(servers: &Servers, row: &str) -> Option<f64> {
    Some(servers.summary(row, Who::Fresh.title(), |run| Some(run.longest))?.max)
}

#[expect(clippy::cast_precision_loss, reason = "bytes, far below 2^52")]
fn memory(servers: &Servers, row: &str, who: Who) -> Option<f64> {
    let bytes = |run: &Run| run.memory.map(|bytes| bytes as f64);
    Some(servers.summary(row, who.title(), bytes)?.max / f64::from(1 << 20))
}

/// How many times as long as when it was loaded the aged file is, with its journal.
#[expect(clippy::cast_precision_loss, reason = "bytes, far below 2^52")]
pub(super) fn growth(servers: &Servers) -> Option<f64> {
    let aged = servers.files.iter().find(|files| files.server == Who::Aged.title())?;
    Some(aged.aged as f64 / aged.loaded.max(1) as f64)
}

pub(super) fn section(servers: &Servers, page: &mut Page) -> Result<()> {
    if GOALS.iter().any(|goal| (goal.seen)(servers).is_some()) {
        page.paragraph(ABOUT);
        table(servers, page);
    }
    let beside = beside(servers);
    if !beside.is_empty() {
        page.paragraph(BESIDE);
        page.bars("servers-beside", "GETs of 8 connections, alone and beside SETs", "GETs a second", &beside)?;
        if let Some(most) = most(servers) {
            page.paragraph(&most);
        }
    }
    Ok(())
}

/// What was measured of the goals.
pub(super) fn table(servers: &Servers, page: &mut Page) {
    let rows: Vec<_> = GOALS.iter().filter_map(|goal| cells(goal, servers)).collect();
    page.table(&["goal", "seen", "bar", ""], &rows);
}

/// How far ahead of Redis any server could be there: what is asked alone is the most that can be asked beside something.
fn most(servers: &Servers) -> Option<String> {
    let ((alone, _), rows) = READERS.split_first()?;
    let alone = Who::ALL.into_iter().filter_map(|who| rate(servers, alone, who)).map(|rate| rate.median);
    let alone = alone.reduce(f64::max)?;
    let beside = rows.iter().filter_map(|(row, how)| Some((how, rate(servers, row, Who::Redis)?.median)));
    let most: Vec<_> = beside.map(|(how, rate)| format!("{how} {} ×", digits(alone / rate))).collect();
    (!most.is_empty()).then(|| {
        format!(
            "How many times those of Redis that is depends on what a sync takes, for which Redis' GETs wait: on a quick disk \
             that is little. More GETs than alone nobody can have beside SETs; those alone, of whoever has most of them, are \
             here to Redis' {}.",
            most.join(", "),
        )
    })
}

fn rate(servers: &Servers, row: &str, who: Who) -> Option<Summary> {
    servers.summary(row, who.title(), |run| Some(run.rate))
}

fn cells(goal: &Goal, servers: &Servers) -> Option<Vec<String>> {
    let seen = (goal.seen)(servers)?;
    let verdict = if (goal.is_met)(seen) { "holds" } else { "**does not hold**" };
    let stolen = goal.slowest_of.and_then(|row| stolen(servers, row)).unwrap_or_default();
    Some(vec![goal.what.to_owned(), (goal.show)(seen), goal.bar.to_owned(), format!("{verdict}{stolen}")])
}

/// How long the machine stood still in a row, where that is long enough to be what its slowest answers waited for.
fn stolen(servers: &Servers, row: &str) -> Option<String> {
    let [own, others] = [servers.stolen(row, Who::Fresh.title())?, servers.stolen(row, Who::Redis.title())?];
    let is_notable = own.max(others) >= NOTABLE_STEAL;
    is_notable.then(|| format!("; {} of the time was stolen, {} of Redis'", percent(own), percent(others)))
}

/// Those rows that were measured with both; none where nothing was measured beside SETs.
fn beside(servers: &Servers) -> Vec<Bar> {
    let both = [Who::Fresh, Who::Redis];
    let is_measured = |row: &str| both.iter().all(|&who| rate(servers, row, who).is_some());
    if !READERS[1..].iter().any(|(row, _)| is_measured(row)) {
        return Vec::new();
    }
    let mut bars = Vec::new();
    for (kind, who) in both.into_iter().enumerate() {
        for (row, how) in READERS.into_iter().filter(|(row, _)| is_measured(row)) {
            let name = format!("{who}, {how}");
            let bar = |rate: Summary| Bar { name, value: rate.median, spread: (rate.max - rate.min) / 2.0, kind };
            bars.extend(rate(servers, row, who).map(bar));
        }
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::super::servers::made_up;
    use super::*;

    #[test]
    fn a_goal_is_told_to_hold_or_not_and_left_out_where_nothing_was_measured() {
        let mut servers = made_up();
        let verdict = |servers: &Servers, what: &str| {
            let goal = GOALS.iter().find(|goal| goal.what == what).unwrap();
            cells(goal, servers).map(|cells| cells[1..].join(" "))
        };
        let stolen = "; 2.0 % of the time was stolen, 2.0 % of Redis'";
        assert_eq!(verdict(&servers, "p99 of GET, 50").unwrap(), format!("1.00 × ≤ 1 × Redis holds{stolen}"));
        assert_eq!(verdict(&servers, "durable SET, 50, aged").unwrap(), "0.95 × ≥ 0.9 × fresh holds");
        assert_eq!(verdict(&servers, "aged file and journal, in bytes").unwrap(), "1.80 × ≤ 2.1 × loaded holds");
        assert_eq!(verdict(&servers, "memory, GETs of 50").unwrap(), "8.00 MiB ≤ 24 MiB holds");
        for run in servers.runs.iter_mut().filter(|run| run.server == Who::Fresh.title()) {
            (run.longest, run.p99) = (0.3, 0.01);
        }
        servers.runs.iter_mut().for_each(|run| run.stolen = Some(0.009));
        let waits = "the longest wait for a durable SET, 50";
        assert_eq!(verdict(&servers, waits).unwrap(), "300ms ≤ 50 ms **does not hold**");
        assert_eq!(verdict(&servers, "p99 of GET, 50").unwrap(), "5.00 × ≤ 1 × Redis **does not hold**");
        assert_eq!(beside(&servers).len(), 8);
        assert!(most(&servers).unwrap().contains("beside 4,000/s 2.00 ×"), "{:?}", most(&servers));
        servers.runs.retain(|run| run.row != "get-8-beside-60k" || run.server == Who::Fresh.title());
        assert_eq!(beside(&servers).len(), 6, "who was measured alone is compared with nobody");
        servers.runs.retain(|run| !run.row.starts_with("get-8-beside"));
        assert!(beside(&servers).is_empty() && servers.runs.iter().any(|run| run.row == "get-8"));
        servers.runs.clear();
        assert_eq!((verdict(&servers, waits), beside(&servers).len()), (None, 0));
    }
}
