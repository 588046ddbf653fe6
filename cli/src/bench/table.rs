//! What was measured, as a table for people: what was done, a row a test, and what is not as it should be.

use std::io::{self, Write};
use std::time::Duration;

use boltkv_load::{Limit, Measured, Mix, NOTABLE_STEAL, Op};
use clap::ValueEnum as _;
use clap::builder::PossibleValue;
use hdrhistogram::Histogram;
use indicatif::HumanCount;

use super::{Bench, Load, Report, kinds};
use crate::failure::one_line;
use crate::words::counted;

/// A generator that is busy for more of the time is in the way of the server.
const BUSY: f64 = 0.9;
/// Of what takes less time nothing is said of the processors: to begin keeps the generator busy.
const SHORT: Duration = Duration::from_millis(100);
/// An open loop that sent less was not what was asked for.
const KEPT_UP: f64 = 0.99;
/// So long after it was due the last of some requests may be answered.
const LAST_ANSWER: Duration = Duration::from_millis(100);
const COLUMNS: [&str; 8] = ["requests/s", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"];
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

pub(super) fn print(bench: &Bench, report: &Report, out: &mut impl Write) -> io::Result<()> {
    heading(bench, report, out)?;
    let names = report.tests.iter().map(|(mix, _)| mix.to_string().len());
    let width = names.chain([12]).max().unwrap_or(12);
    writeln!(out)?;
    write!(out, "{:width$}", "")?;
    COLUMNS.iter().try_for_each(|column| write!(out, " {column:>10}"))?;
    writeln!(out)?;
    for (mix, measured) in &report.tests {
        rows(mix, measured, width, out)?;
    }
    for (mix, measured) in &report.tests {
        remarks(&mix.to_string(), measured, report, out)?;
    }
    let place = report.server.place();
    match (bench.keep, bench.reuse) {
        (true, _) => writeln!(out, "\n{place} is kept, for --reuse"),
        (_, true) => writeln!(out, "\n{place} is left as it is"),
        _ => Ok(()),
    }
}

/// What was done.
fn heading(bench: &Bench, report: &Report, out: &mut impl Write) -> io::Result<()> {
    let work = &report.work;
    let (from, to) = (work.value_size.start(), work.value_size.end());
    let values = if from == to { from.to_string() } else { format!("{from} to {to}") };
    writeln!(out, "{} at {}: {}", one_line(&report.version), report.server.addr, report.server.place())?;
    let named = bench.distribution.to_possible_value();
    writeln!(
        out,
        "{} keys of {} bytes, {}, values of {values} bytes",
        HumanCount(work.keys),
        work.key_size,
        named.as_ref().map_or("", PossibleValue::get_name)
    )?;
    for (what, measured) in &report.before {
        let (count, seconds) = (HumanCount(measured.requests), measured.elapsed.as_secs_f64());
        writeln!(out, "{what}: {count} SETs in {seconds:.1} s, {}/s", whole(measured.rate()))?;
        errors(what, measured, out)?;
    }
    if bench.reuse {
        writeln!(out, "nothing was loaded: what was there is used")?;
    } else if bench.load == Load::None {
        writeln!(out, "nothing was loaded")?;
    }
    let pace = work.rate.map_or("closed loop".to_owned(), |rate| format!("{} requests/s due", HumanCount(rate)));
    let limit = match work.limit {
        Limit::Time(time) => format!("{time:?} each"),
        Limit::Requests(count) => format!("{} requests each", HumanCount(count)),
    };
    let warm_up = if bench.warm_up.is_zero() { "no".to_owned() } else { format!("{:?} of", bench.warm_up) };
    let threads = if work.threads == 1 { String::new() } else { format!(", {} threads", work.threads) };
    let connections = counted(many(work.connections), "connection");
    writeln!(out, "{connections}, {} in flight each, {pace}, {limit} after {warm_up} warm-up{threads}", work.pipeline)
}

/// A test's row; of a mix also one for each kind.
fn rows(mix: &Mix, measured: &Measured, width: usize, out: &mut impl Write) -> io::Result<()> {
    let all = measured.latencies().map_err(io::Error::other)?;
    row(&mix.to_string(), Some(measured.rate()), &all, width, out)?;
    for op in kinds(mix) {
        if let Some(of) = measured.of.get(&op) {
            row(&format!("  {op}"), None, &of.latencies, width, out)?;
        }
    }
    Ok(())
}

fn row(
    name: &str,
    rate: Option<f64>,
    latencies: &Histogram<u64>,
    width: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    write!(out, "{name:width$} {:>10}", rate.map_or_else(String::new, whole))?;
    if latencies.is_empty() {
        return writeln!(out, "  nothing was answered");
    }
    let quantiles = QUANTILES.map(|quantile| nanos(latencies.value_at_quantile(quantile)));
    let mean = Duration::try_from_secs_f64(latencies.mean() / 1e9).unwrap_or_default();
    let mean = nanos(u64::try_from(mean.as_nanos()).unwrap_or(u64::MAX));
    let cells = [mean].into_iter().chain(quantiles).chain([nanos(latencies.max())]);
    cells.into_iter().try_for_each(|cell| write!(out, " {cell:>10}"))?;
    writeln!(out)
}

/// What is not in the rows, or casts doubt on them.
fn remarks(test: &str, measured: &Measured, report: &Report, out: &mut impl Write) -> io::Result<()> {
    let entries: u64 = measured.of.values().map(|of| of.entries).sum();
    if entries > 0 {
        let (count, rate) = (HumanCount(entries), whole(measured.entries_rate()));
        writeln!(out, "{test}: scans brought {count} entries, {rate}/s")?;
    }
    for op in [Op::Get, Op::Delete] {
        let missing = measured.of.get(&op).map_or(0, |of| of.missing);
        if missing > 0 {
            writeln!(out, "{test}: {} {op}s found no such key", HumanCount(missing))?;
        }
    }
    errors(test, measured, out)?;
    if measured.requests == 0 && measured.errors.is_empty() {
        let late = measured.latencies().map_err(io::Error::other)?.len();
        all_late(test, late, out)?;
    }
    if measured.interrupted {
        writeln!(out, "{test}: ended by a signal after {:.1} s", measured.elapsed.as_secs_f64())?;
    }
    if measured.unsent > 0 {
        let unsent = HumanCount(measured.unsent);
        writeln!(out, "{test}: {unsent} requests were due and could not be sent; their wait is in the latencies")?;
    }
    if let Some(wanted) = report.work.rate
        && !measured.interrupted
        && is_behind(measured, wanted, report.work.limit)
    {
        let wanted = HumanCount(wanted);
        writeln!(out, "{test}: {wanted} requests/s were due, {} were answered", whole(measured.rate()))?;
    }
    processors(test, measured, report.work.threads, out)
}

/// Where nothing was answered within the time, and so many requests after it.
fn all_late(test: &str, late: u64, out: &mut impl Write) -> io::Result<()> {
    if late == 0 {
        return Ok(());
    }
    let requests = counted(late, "request");
    writeln!(out, "{test}: {requests} answered, all of them after the time was over: a longer --duration finds a rate")
}

/// Whether the generator or the host of this machine was in the way of the server.
fn processors(test: &str, measured: &Measured, threads: usize, out: &mut impl Write) -> io::Result<()> {
    if measured.elapsed <= SHORT {
        return Ok(());
    }
    #[expect(clippy::cast_precision_loss, reason = "a number of threads")]
    let time = measured.elapsed.as_secs_f64() * threads as f64;
    let busy = measured.cpu.as_secs_f64() / time.max(f64::MIN_POSITIVE);
    if busy > BUSY {
        let percent = whole(busy * 100.0);
        writeln!(out, "{test}: the generator was busy for {percent} % of the time; more --threads may find more")?;
    }
    if let Some(stolen) = measured.stolen
        && stolen >= NOTABLE_STEAL
    {
        let percent = stolen * 100.0;
        writeln!(
            out,
            "{test}: the host of this machine kept {percent:.1} % of the processors' time from it (steal); all waited meanwhile"
        )?;
    }
    Ok(())
}

/// Whether less was answered than was due.
#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn is_behind(measured: &Measured, wanted: u64, limit: Limit) -> bool {
    let wanted = wanted as f64;
    match limit {
        Limit::Time(_) => measured.rate() < wanted * KEPT_UP,
        Limit::Requests(count) => {
            measured.elapsed.as_secs_f64() > count as f64 / wanted / KEPT_UP + LAST_ANSWER.as_secs_f64()
        }
    }
}

fn many(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn errors(what: &str, measured: &Measured, out: &mut impl Write) -> io::Result<()> {
    for (error, times) in &measured.errors {
        writeln!(out, "{what}: {} × {}", HumanCount(*times), one_line(error))?;
    }
    if measured.lost > 0 {
        writeln!(out, "{what}: lost, and not made anew: {}", counted(many(measured.lost), "connection"))?;
    }
    Ok(())
}

/// A rate without its fraction.
fn whole(rate: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate, which is not negative")]
    let rate = rate.round() as u64;
    HumanCount(rate).to_string()
}

/// A time in its unit, with three digits.
fn nanos(nanos: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let time = nanos as f64;
    let (value, unit) = match nanos {
        0..1_000_000 => (time / 1e3, "µs"),
        1_000_000..1_000_000_000 => (time / 1e6, "ms"),
        _ => (time / 1e9, "s"),
    };
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_unit() {
        let shown = [400, 9_994, 99_949, 123_456, 1_000_000, 12_340_000, 999_000_000, 61_500_000_000].map(nanos);
        let expected = ["0.40 µs", "9.99 µs", "99.9 µs", "123 µs", "1.00 ms", "12.3 ms", "999 ms", "61.5 s"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn answers_that_all_came_too_late_are_told_of() {
        let said = |late| {
            let mut out = Vec::new();
            all_late("scan", late, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(said(0), "");
        assert!(said(1).starts_with("scan: 1 request answered, all"));
        assert!(said(50).starts_with("scan: 50 requests answered, all"));
    }
}
