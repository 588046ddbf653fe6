//! What was measured, as one JSON object. `docs/bench.md` describes it; fields are added, never changed.

use std::collections::BTreeMap;
use std::io::{self, Write};

use boltkv_load::{Limit, Measured, Mix, Target};
use hdrhistogram::Histogram;
use serde::Serialize;

use super::{Report, kinds};

/// The version of this form.
const FORM: u32 = 1;

#[derive(Serialize)]
struct Object<'a> {
    form: u32,
    boltkv: &'static str,
    target: &'static str,
    dialect: Option<&'static str>,
    server: &'a str,
    addr: &'a str,
    place: String,
    settings: Settings,
    before: Vec<Test>,
    tests: Vec<Test>,
}

#[derive(Serialize)]
struct Settings {
    keys: u64,
    key_size: usize,
    value_size: [usize; 2],
    order: String,
    scan_length: u64,
    connections: usize,
    pipeline: usize,
    threads: usize,
    rate: Option<u64>,
    requests: Option<u64>,
    seconds: Option<f64>,
    seed: u64,
}

#[derive(Serialize)]
struct Test {
    name: String,
    seconds: f64,
    requests: u64,
    requests_per_second: f64,
    latency_us: Latency,
    missing: u64,
    entries: u64,
    entries_per_second: f64,
    errors: BTreeMap<String, u64>,
    lost_connections: usize,
    unsent: u64,
    interrupted: bool,
    generator_cpu_seconds: f64,
    stolen: Option<f64>,
    by_request: BTreeMap<&'static str, Kind>,
    slices: Slices,
}

#[derive(Serialize)]
struct Kind {
    requests: u64,
    missing: u64,
    entries: u64,
    latency_us: Latency,
}

#[derive(Serialize)]
struct Latency {
    count: u64,
    mean: f64,
    min: f64,
    p50: f64,
    p90: f64,
    p95: f64,
    p99: f64,
    #[serde(rename = "p99.9")]
    p999: f64,
    #[serde(rename = "p99.99")]
    p9999: f64,
    max: f64,
}

#[derive(Serialize)]
struct Slices {
    seconds: f64,
    requests: Vec<u64>,
    longest_us: Vec<f64>,
}

pub(super) fn print(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let (server, work) = (&report.server, &report.work);
    let before = report.before.iter().map(|(what, measured)| test((*what).to_owned(), None, measured));
    let tests = report.tests.iter().map(|(mix, measured)| test(mix.to_string(), Some(mix), measured));
    let object = Object {
        form: FORM,
        boltkv: env!("CARGO_PKG_VERSION"),
        target: server.target.name(),
        dialect: (server.target == Target::Boltkv).then(|| server.dialect.name()),
        server: &report.version,
        addr: &server.addr,
        place: server.place(),
        settings: Settings {
            keys: work.keys,
            key_size: work.key_size,
            value_size: [*work.value_size.start(), *work.value_size.end()],
            order: format!("{:?}", work.order).to_lowercase(),
            scan_length: work.scan_length,
            connections: work.connections,
            pipeline: work.pipeline,
            threads: work.threads,
            rate: work.rate,
            requests: if let Limit::Requests(requests) = work.limit { Some(requests) } else { None },
            seconds: if let Limit::Time(time) = work.limit { Some(time.as_secs_f64()) } else { None },
            seed: work.seed,
        },
        before: before.collect::<io::Result<_>>()?,
        tests: tests.collect::<io::Result<_>>()?,
    };
    serde_json::to_writer(&mut *out, &object)?;
    writeln!(out)
}

fn test(name: String, mix: Option<&Mix>, measured: &Measured) -> io::Result<Test> {
    let of = |op| measured.of.get(&op).map(|of| (op.name(), of));
    let by_request = mix.into_iter().flat_map(kinds).filter_map(of).map(|(kind, of)| {
        let (requests, latency_us) = (of.latencies.len(), latency(&of.latencies));
        (kind, Kind { requests, missing: of.missing, entries: of.entries, latency_us })
    });
    let slices = measured.series.slices();
    Ok(Test {
        name,
        seconds: measured.elapsed.as_secs_f64(),
        requests: measured.requests,
        requests_per_second: measured.rate(),
        latency_us: latency(&measured.latencies().map_err(io::Error::other)?),
        missing: measured.of.values().map(|of| of.missing).sum(),
        entries: measured.of.values().map(|of| of.entries).sum(),
        entries_per_second: measured.entries_rate(),
        errors: measured.errors.clone(),
        lost_connections: measured.lost,
        unsent: measured.unsent,
        interrupted: measured.interrupted,
        generator_cpu_seconds: measured.cpu.as_secs_f64(),
        stolen: measured.stolen,
        by_request: by_request.collect(),
        slices: Slices {
            seconds: measured.series.width().as_secs_f64(),
            requests: slices.iter().map(|slice| slice.answered).collect(),
            longest_us: slices.iter().map(|slice| micros(slice.longest)).collect(),
        },
    })
}

fn latency(latencies: &Histogram<u64>) -> Latency {
    let at = |quantile| micros(latencies.value_at_quantile(quantile));
    Latency {
        count: latencies.len(),
        mean: latencies.mean() / 1e3,
        min: micros(latencies.min()),
        p50: at(0.5),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
        p9999: at(0.9999),
        max: micros(latencies.max()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a time, below 2^53 ns")]
fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}
