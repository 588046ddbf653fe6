//! One round of one row with one server: what it answers, and what that takes.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use anyhow::{Context as _, Result};
use boltkv_load::{Limit, Measured, Op, Work, run};

use super::host::Host;
use super::proc::Counters;
use super::rows::Row;
use super::{Plan, Run};
use crate::group::Group;
use crate::process;

/// Of the time that a round takes, so much goes before it to warm up.
const WARM_UP: u32 = 5;

/// How many whole scans are a round.
const SCANS: u64 = 3;

/// Two measurements beside each other: the row's, and the SETs'.
type Both = (Measured, Option<Measured>);

impl Host {
    /// Measures a row once, held to a slow disk where there is one.
    ///
    /// # Errors
    /// The server cannot be made anew, not be held to that disk, or not be asked at all.
    pub(super) fn turn(&mut self, row: &Row, plan: &Plan, disk: Option<&Group>) -> Result<Run> {
        if row.writes && self.who.is_renewed() {
            self.make_anew()?;
        }
        self.prepare(row, plan)?;
        let _held = disk.map(|disk| disk.hold(self.daemon.id())).transpose()?;
        let work = Work {
            mix: row.mix.parse()?,
            connections: row.connections,
            pipeline: row.pipeline,
            scan_length: 0,
            // In a time a scan that lasts as long would be there once or not at all.
            limit: if row.scan { Limit::Requests(SCANS) } else { Limit::Time(plan.time) },
            ..Self::work(row.data, plan)
        };
        let warming = Work { limit: Limit::Time(plan.time / WARM_UP), seed: 3, ..work.clone() };
        let mut memory = None;
        self.both(row, &warming, &mut memory)?;
        let before = (Counters::of(self.daemon.id(), &self.folder), self.groups());
        let (measured, beside) = self.both(row, &work, &mut memory)?;
        let after = (Counters::of(self.daemon.id(), &self.folder), self.groups());
        let all = measured.requests + beside.as_ref().map_or(0, |beside| beside.requests);
        let latencies = measured.latencies()?;
        let at = |quantile| seconds(latencies.value_at_quantile(quantile));
        let each = |of: f64| of / count(all).max(1.0);
        let difference = |of: fn(&Counters) -> Option<f64>| Some(of(&after.0)? - of(&before.0)?);
        let time = measured.elapsed.as_secs_f64();
        Ok(Run {
            row: row.name.to_owned(),
            server: self.who.title().to_owned(),
            rate: if row.scan { measured.entries_rate() } else { measured.rate() },
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            longest: seconds(latencies.max()),
            failed: measured.failed() + beside.as_ref().map_or(0, Measured::failed),
            cpu: each(after.0.cpu - before.0.cpu),
            stolen: measured.stolen,
            generator_cpu: measured.cpu.as_secs_f64() / count(measured.requests).max(1.0),
            syncs: difference(|counters| counters.flushes).map(|flushes| flushes / time),
            bytes: difference(|counters| counters.bytes).map(each),
            group: before.1.zip(after.1).and_then(|(before, after)| {
                let (groups, writes) = (after.0 - before.0, after.1 - before.1);
                (groups > 0.0).then(|| writes / groups)
            }),
            memory,
            beside: beside.map(|beside| beside.rate()),
        })
    }

    /// Does a work, beside SETs where the row has some, and looks how much memory the server has meanwhile.
    fn both(&self, row: &Row, work: &Work, memory: &mut Option<u64>) -> Result<Both> {
        let server = self.server(row.data);
        let stop = AtomicBool::new(false);
        let process = self.daemon.id();
        let mut look = |_| *memory = (*memory).max(process::resident(process).map(|resident| resident.anon));
        let Some(rate) = row.beside else { return Ok((run(&server, work, &stop, &mut look)?, None)) };
        let sets = Work {
            mix: boltkv_load::Mix::only(Op::Set),
            connections: 50,
            rate: Some(rate),
            // It is ended when the row is.
            limit: Limit::Time(super::host::PATIENCE),
            seed: 4,
            ..work.clone()
        };
        thread::scope(|scope| {
            let beside = scope.spawn(|| run(&server, &sets, &stop, &mut |_| {}));
            let measured = run(&server, work, &AtomicBool::new(false), &mut look);
            stop.store(true, Relaxed);
            let beside = beside.join().ok().context("the thread of the SETs beside")?;
            Ok((measured?, Some(beside?)))
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "a time, below 2^53 ns")]
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "a count, far below 2^52")]
fn count(count: u64) -> f64 {
    count as f64
}
