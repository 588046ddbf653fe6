//! Servers beside each other: rates, what they take, and how boltkv stands to Redis.

use anyhow::Result;

use super::bars::Bar;
use super::page::Page;
use super::{goals, headed};
use crate::goal::{digits, per_second, percent, short};
use crate::servers::{Row, Run, Servers, Who, rows};
use crate::stats::Summary;

const ABOUT: &str = "\
One generator (`boltkv bench`, as a library) asks boltkv, Redis and memcached the same over the loopback, on the same
processors as the servers. All run at once, and each is asked in its turn; the rounds of a row are interleaved. A cell is
the median of the rounds; in brackets the smallest and the largest.

- Keys have 16 bytes, and each is as likely as any other: out of 1,000,000 with values of 100 bytes, out of 100,000 with
  1 KiB, out of 10,000 with 16 KiB.
- *boltkv* serves a file into which every key was put once, in an order that looks random. For each round of a row that
  writes it is made anew, so that it stays fresh. *boltkv, aged* serves one on which three times as many keys as there
  are were overwritten at random after that, and all that rows write comes on top.
- *boltkv, no memory* writes the pages that a group of writes changes with it, and keeps nothing new in memory until a
  checkpoint (`--journal-memory 0`): what that memory is for. Its file is made anew like the fresh one.
- *boltkv, no journal* has every write in the file itself before it answers (`--journal off`): what the journal is for.
- *Redis* has each write on the disk before it answers (`appendonly yes`, `appendfsync always`), and does not rewrite
  its log meanwhile. *memcached* writes nothing down, and takes no part in rows of writes.
- Beside SETs, those come at a rate, the same for all (an open loop); what of it was done stands in the second table.
- Redis has no order of keys: a scan of all is SCAN with COUNT 1000 and an MGET for each step.";

const COSTS: &str = "\
What that took. The processor is the server's, a request, in microseconds, with all that ran beside it; the generator's
is its own. Syncs are flushes of the disk a second, by whomever; a disk that keeps nothing
in a cache of its own is told of none. A group is how many requests boltkv's writer took at
once. Bytes are what the server gave to the disk, a request. Memory is the most that it had for itself (`RssAnon`),
which of Redis and memcached are all the keys that rows ask for, those of 1 KiB and 16 KiB, too.
Stolen is the share of all processors' time that the host of this virtual machine kept from it ([what that
does](bench.md#what-is-told)): nobody is answered meanwhile, and the slowest answers are those that it fell on.
Latencies are in a closed loop, medians of the rounds but for the longest, which is that of all of them.";

const AGED: &str = "\
The bars are what was measured here, with their spread; the dots are medians of the other machines and disks, which are told
below, each beside the Redis on it. The axis is logarithmic: left of the line Redis is ahead. The next picture has the bars
again, beside those of the aged file; rows have the names that `--only` takes.";

/// Bars of boltkv, of boltkv with an aged file, and of others.
const KINDS: [Who; 2] = [Who::Fresh, Who::Aged];

pub(super) fn section(servers: &Servers, elsewhere: &[&Servers], page: &mut Page) -> Result<()> {
    let command = format!("cargo build --release -p boltkv\n{}", servers.command);
    headed((&command, servers.quick), "## Servers", ABOUT, page);
    let rounds = servers.rounds;
    page.paragraph(&format!(
        "Requests a second; of scans, entries. {rounds} rounds of {} s, or of three scans.",
        digits(servers.seconds)
    ));
    rate_table(servers, page);
    page.beside_redis(
        "servers-redis",
        "rates as so many times those of Redis, here and elsewhere",
        servers,
        elsewhere,
    )?;
    page.paragraph(AGED);
    page.bars("servers", "rates as so many times those of Redis", "times Redis' rate", &bars(servers))?;
    goals::section(servers, page)?;
    page.paragraph(&files(servers));
    page.paragraph(COSTS);
    costs(servers, page);
    Ok(())
}

/// What each row came to with each server.
fn rate_table(servers: &Servers, page: &mut Page) {
    let head: Vec<_> = ["work"].into_iter().chain(Who::ALL.map(Who::title)).chain(["× Redis", "bar", "aim"]).collect();
    let measured = rows().iter().filter(|row| servers.runs.iter().any(|run| run.row == row.name));
    page.table(&head, &measured.map(|row| rates(servers, row)).collect::<Vec<_>>());
}

fn costs(servers: &Servers, page: &mut Page) {
    let head = [
        "work",
        "server",
        "processor",
        "generator",
        "syncs/s",
        "group",
        "bytes",
        "memory",
        "stolen",
        "SETs beside",
        "p50",
        "p99",
        "p99.9",
        "longest",
        "errors",
    ];
    let costs = rows().iter().flat_map(|row| Who::ALL.into_iter().filter_map(|who| cost(servers, row, who)));
    page.table(&head, &costs.collect::<Vec<_>>());
}

/// What was measured for long, or out of other keys.
pub(super) fn of_its_own(servers: &Servers, page: &mut Page) {
    let (millions, seconds) = (servers.keys / 1_000_000, servers.seconds);
    page.heading(&format!("### Out of {millions} million keys, {seconds:.0} s on end"));
    page.paragraph(&format!(
        "With the checkpoints that come in so much time. Rounds: {}, by {}.\n\n```sh\n{}\n```",
        servers.rounds,
        measured_by(servers),
        servers.command
    ));
    rate_table(servers, page);
    goals::table(servers, page);
    costs(servers, page);
}

/// What was measured, on which machine, and when.
fn measured_by(servers: &Servers) -> String {
    let machine = &servers.machine;
    format!(
        "boltkv {} on {}, {} threads, {} synced writes of 4 KiB a second{}, on {}",
        machine.commit,
        machine.processor,
        machine.threads,
        machine.syncs,
        if servers.disk_writes.is_some() { " without that limit" } else { "" },
        machine.day
    )
}

/// What was measured on another machine, or on a disk that does less: how the rates stand to Redis' there.
pub(super) fn elsewhere(servers: &Servers, page: &mut Page) {
    let machine = &servers.machine;
    match servers.disk_writes {
        None => page.heading(&format!("### On another machine, of {} synced writes a second", machine.syncs)),
        Some(writes) => {
            page.heading(&format!("### On a disk of {writes} writes a second"));
            page.paragraph(&format!(
                "As clouds rent them out: while a server is measured the system lets it write {writes} times a second, and a \
                 sync is one or two of that.\n\n```sh\n{}\n```",
                servers.command
            ));
        }
    }
    page.paragraph(&format!(
        "The same by {}; {} rounds. Processor: the server's, a request, in microseconds. The slowest hundredth of boltkv's \
         answers beside Redis', and the share of the processors' time that was stolen from each, where it is known.",
        measured_by(servers),
        servers.rounds
    ));
    let kinds = [Who::Fresh, Who::Aged, Who::Redis];
    let cells = |row: &Row| {
        let median = |who: Who, of: fn(&Run) -> f64| {
            servers.summary(row.name, who.title(), |run| Some(of(run))).map(|found| found.median)
        };
        median(Who::Fresh, |run| run.rate)?;
        let mut cells = vec![row.title.to_owned()];
        cells.extend(kinds.map(|who| median(who, |run| run.rate).map_or_else(dash, short)));
        cells.extend([Who::Fresh, Who::Aged].map(|who| {
            beside_redis(servers, row, who, |run| run.rate).map_or_else(dash, |ratio| spread(ratio, digits))
        }));
        cells.extend(kinds.map(|who| median(who, |run| run.cpu * 1e6).map_or_else(dash, digits)));
        let slowest = beside_redis(servers, row, Who::Fresh, |run| run.p99);
        cells.push(slowest.map_or_else(dash, |ratio| spread(ratio, digits)));
        let stolen = |who: Who| servers.stolen(row.name, who.title()).map_or_else(dash, percent);
        cells.extend([Who::Fresh, Who::Redis].map(stolen));
        Some(cells)
    };
    let head = [
        "work",
        "boltkv",
        "aged",
        "Redis",
        "× Redis",
        "aged",
        "processor",
        "aged",
        "Redis",
        "p99 × Redis",
        "stolen",
        "Redis",
    ];
    page.table(&head, &rows().iter().filter_map(cells).collect::<Vec<_>>());
}

fn rates(servers: &Servers, row: &Row) -> Vec<String> {
    let rate = |who: Who| {
        let rates = servers.summary(row.name, who.title(), |run| Some(run.rate));
        rates.map_or_else(dash, |rates| spread(rates, short))
    };
    let ratio = beside_redis(servers, row, Who::Fresh, |run| run.rate);
    let mut cells = vec![row.title.to_owned()];
    cells.extend(Who::ALL.map(rate));
    cells.push(ratio.map_or_else(dash, |ratio| spread(ratio, digits)));
    cells.extend([row.bar, row.aim].map(|goal| format!("{goal} ×")));
    cells
}

fn cost(servers: &Servers, row: &Row, who: Who) -> Option<Vec<String>> {
    let median = |of: fn(&Run) -> Option<f64>| servers.summary(row.name, who.title(), of).map(|found| found.median);
    let cell = |of: fn(&Run) -> Option<f64>, show: fn(f64) -> String| median(of).map_or_else(dash, show);
    let micros = |seconds: f64| digits(seconds * 1e6);
    let time = |seconds: f64| format!("{}s", short(seconds));
    median(|run| Some(run.rate))?;
    let longest = servers.summary(row.name, who.title(), |run| Some(run.longest))?.max;
    #[expect(clippy::cast_precision_loss, reason = "counts, far below 2^52")]
    let failed = servers.summary(row.name, who.title(), |run| Some(run.failed as f64))?.max;
    #[expect(clippy::cast_precision_loss, reason = "bytes, far below 2^52")]
    let memory = |run: &Run| run.memory.map(|bytes| bytes as f64 / f64::from(1 << 20));
    Some(vec![
        row.title.to_owned(),
        who.title().to_owned(),
        cell(|run| Some(run.cpu), micros),
        cell(|run| Some(run.generator_cpu), micros),
        cell(|run| run.syncs, plain),
        cell(|run| run.group, digits),
        cell(|run| run.bytes, plain),
        cell(memory, |mebibytes| format!("{} MiB", digits(mebibytes))),
        cell(|run| run.stolen, percent),
        cell(|run| run.beside, per_second),
        cell(|run| Some(run.p50), time),
        cell(|run| Some(run.p99), time),
        cell(|run| Some(run.p999), time),
        time(longest),
        if failed > 0.0 { short(failed) } else { dash() },
    ])
}

/// A figure of a server as so many times that of Redis.
pub(super) fn beside_redis(servers: &Servers, row: &Row, who: Who, of: fn(&Run) -> f64) -> Option<Summary> {
    servers.ratio(row.name, [who, Who::Redis].map(Who::title), of)
}

fn bars(servers: &Servers) -> Vec<Bar> {
    let bar = |row: &Row, (kind, who): (usize, Who)| {
        let ratio = beside_redis(servers, row, who, |run| run.rate)?;
        let spread = (ratio.max - ratio.min) / 2.0;
        Some(Bar { name: format!("{}: {who}", row.name), value: ratio.median, spread, kind })
    };
    rows().iter().flat_map(|row| KINDS.into_iter().enumerate().filter_map(move |kind| bar(row, kind))).collect()
}

/// How the aged files have grown, and what their writes make of the fresh ones'.
fn files(servers: &Servers) -> String {
    let Some(growth) = goals::growth(servers).map(digits) else { return String::new() };
    let ratio = |row: &Row| {
        let ratio = servers.ratio(row.name, [Who::Aged, Who::Fresh].map(Who::title), |run| run.rate)?;
        Some(format!("{} {} ×", row.title, digits(ratio.median)))
    };
    let ratios: Vec<_> = rows().iter().filter(|row| row.writes).filter_map(ratio).collect();
    format!(
        "The aged file is {growth} × as long as it was when it was loaded, its journal, free pages and all ([how much of \
         it is in use](operations.md#what-is-new-stays-in-memory)). Rates on it beside the fresh one's: {}.",
        ratios.join("; ")
    )
}

fn spread(of: Summary, show: fn(f64) -> String) -> String {
    let [median, min, max] = [of.median, of.min, of.max].map(show);
    if (of.max - of.min).abs() > 0.0 { format!("{median} ({min}–{max})") } else { median }
}

/// A number that may be 0.
fn plain(value: f64) -> String {
    if value > 0.0 { short(value) } else { "0".to_owned() }
}

fn dash() -> String {
    "–".to_owned()
}

#[cfg(test)]
pub(super) fn made_up() -> Servers {
    use crate::machine::Machine;
    use crate::servers::Files;

    let run = |row: &Row, who: Who, rate: f64| Run {
        row: row.name.to_owned(),
        server: who.title().to_owned(),
        rate,
        p50: 0.001,
        p99: 0.002,
        p999: 0.003,
        longest: 0.2,
        failed: 0,
        cpu: 1e-5,
        generator_cpu: 5e-6,
        syncs: Some(100.0),
        bytes: None,
        group: Some(20.0),
        memory: Some(8 << 20),
        beside: None,
        stolen: Some(0.02),
    };
    let rates = [(Who::Fresh, 200.0), (Who::Aged, 190.0), (Who::Redis, 100.0)];
    let runs = rows().iter().flat_map(|row| rates.map(|(who, rate)| run(row, who, rate)));
    Servers {
        machine: Machine::default(),
        command: "cargo run".to_owned(),
        quick: false,
        rounds: 1,
        seconds: 5.0,
        keys: crate::servers::KEYS,
        disk_writes: None,
        versions: std::iter::once(("Redis".to_owned(), "Redis 7.0".to_owned())).collect(),
        runs: runs.collect(),
        files: vec![Files { server: Who::Aged.title().to_owned(), loaded: 100, aged: 180 }],
        left_out: vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_rates_its_ratio_and_its_goals() {
        let row = rows().iter().find(|row| row.name == "set-50").unwrap();
        let cells = rates(&made_up(), row);
        assert_eq!(cells[1..], ["200", "190", "–", "–", "100", "–", "2.00", "1.1 ×", "1.5 ×"]);
        assert_eq!(cost(&made_up(), row, Who::Memcached), None);
        let cost = cost(&made_up(), row, Who::Redis).unwrap();
        assert_eq!(cost[2..9], ["10.0", "5.00", "100", "20.0", "–", "8.00 MiB", "2.0 %"]);
    }

    #[test]
    fn what_age_does_is_told() {
        let text = files(&made_up());
        assert!(text.contains("is 1.80 × as long") && text.contains("durable SET, 50 0.95 ×"), "{text}");
        assert_eq!(files(&Servers { files: vec![], ..made_up() }), "");
    }
}
