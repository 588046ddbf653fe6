//! `boltkv bench`: how fast a server answers, and how evenly.
//!
//! What asks and measures is the crate `boltkv_load`; here are the options, the order of things (a place of its own is
//! made, loaded, measured and removed), and how it is told: `settings`, `table`, `json`, `live`, `signals`.

mod json;
mod live;
mod settings;
mod signals;
mod table;

use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use boltkv_client::Path;
use boltkv_load::{Error, Limit, Measured, Mix, Op, Order, Server, Target, Work, run};
use clap::{Args, ValueEnum};

use crate::arguments::{Size, seconds, some_seconds};
use crate::failure::{Failure, Outcome, way_in};
use crate::remote::{TokenArgs, path_parser};
use live::Line;
use settings::Range;
use signals::Stop;

/// What was made is tried to be removed so often again, and a pause is so long.
const REMOVALS: usize = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// Measure how fast a server answers, and how evenly
///
/// Loads keys of its own, then runs each test by itself. On boltkv it works in a bucket that it creates and removes again;
/// of Redis, and of boltkv by Redis' protocol, it wants a database that is empty, of memcached an empty cache. It touches nothing else.
///
/// Without --rate each connection asks again when it was answered (a closed loop). With it, requests are due at even
/// intervals, and a latency counts from when its request was due, also where the server kept it from being sent: a stall
/// is charged with all whom it kept waiting.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv bench
  boltkv bench -t get,set,get:80+set:20 -c 50 -P 16 -d 1KiB --keys 1000000
  boltkv bench -t get -n 1000000 --distribution zipfian
  boltkv bench -t set --rate 5000 --duration 60s --plot set.svg
  boltkv bench -t set --load random --age 3     # a file on which was written for long
  boltkv bench --dialect resp -t get,set        # boltkv, asked by Redis' protocol
  boltkv bench --target redis -t get,set        # the same for Redis, on 127.0.0.1:6379

A test is a request (get, set, delete, scan) or a mix of them with shares. Of boltkv a scan asks for --scan-length entries \
from a key on; by Redis' protocol it is SCAN with COUNT and an MGET of what it found. There is no target etcd: its HTTP gateway \
would be measured, not etcd. JSON has times in microseconds.

Exit code 1: some requests failed, or a connection was lost; what was measured is printed all the same. 128 and the \
signal's number, as 130 after Ctrl-C: it was ended early, and what there was is printed.")]
pub(crate) struct Bench {
    /// What to measure, one after another, separated by commas
    #[arg(long = "test", short = 't', value_name = "MIX", value_delimiter = ',', default_value = "set,get")]
    tests: Vec<Mix>,
    /// Which server it is
    #[arg(long, value_enum, default_value = "boltkv")]
    target: Who,
    /// By which protocol boltkv is asked [default: binary]
    #[arg(long, value_enum)]
    dialect: Option<Dialect>,
    #[arg(long, value_name = "ADDRESS", help = WHERE)]
    addr: Option<String>,
    /// Connections
    #[arg(long, short = 'c', value_name = "N", default_value_t = 50)]
    clients: usize,
    /// Requests that each has in flight at once
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1)]
    pipeline: usize,
    /// So many requests each test, instead of a time
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// How long each test takes
    #[arg(long, visible_alias = "test-time", value_name = "TIME", default_value = "5s", value_parser = some_seconds)]
    duration: Duration,
    /// How long each test runs before it counts
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = seconds)]
    warm_up: Duration,
    /// Requests a second of all connections together; the next one does not wait for answers
    #[arg(long, value_name = "N")]
    rate: Option<u64>,
    /// Bytes of a value, or from which to which: 100, 16KiB, 10-4KiB
    #[arg(long = "data-size", short = 'd', value_name = "SIZE", default_value = "100")]
    value_size: Range,
    /// How many keys there are
    #[arg(long, short = 'r', value_name = "N", default_value_t = 100_000)]
    keys: u64,
    /// Bytes of a key, such as key:000000000042; at most 250, as memcached takes them
    #[arg(long, value_name = "SIZE", default_value = "16")]
    key_size: Size,
    /// Which keys are asked for
    #[arg(long, value_enum, default_value = "uniform")]
    distribution: Distribution,
    /// Entries that a scan asks for; 0: all
    #[arg(long, value_name = "N", default_value_t = 100)]
    scan_length: u64,
    /// How keys are loaded before the first test
    #[arg(long, value_enum, default_value = "sequential")]
    load: Load,
    /// So many times as many keys as there are, drawn at random, are written once more after loading
    #[arg(long, value_name = "TIMES", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1000))]
    age: u64,
    /// The bucket that is made, and removed at the end; names separated by `/`. By Redis' protocol there are none: see
    /// --database [default: boltkv-bench]
    #[arg(long, short = 'b', value_name = "PATH", value_parser = path_parser())]
    bucket: Option<Path>,
    /// Of Redis, and of boltkv by its protocol: the number of the database, which has to be empty [default: 0]
    #[arg(long, value_name = "N")]
    database: Option<u32>,
    #[command(flatten)]
    token: TokenArgs,
    /// Leave what was made and loaded, for --reuse
    #[arg(long)]
    keep: bool,
    /// Use what an earlier run with --keep has left: make, load and remove nothing, with --keep and without. SETs and DELETEs
    /// change what is there
    #[arg(long, conflicts_with_all = ["load", "age"])]
    reuse: bool,
    /// Threads that send and receive [default: a quarter of the cores, 1 to 4]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// A connection that owes answers and says nothing for so long is given up
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = some_seconds)]
    timeout: Duration,
    /// The same number draws the same requests
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    /// Draw latencies by percentile, and the rate over time
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

const WHERE: &str = "Where it listens: HOST:PORT, or HOST for its usual port \
                     [default: 127.0.0.1; of boltkv what BOLTKV_ADDR says, before that]";

/// Which server is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Who {
    Boltkv,
    Redis,
    Memcached,
}

/// By which protocol boltkv is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Dialect {
    /// Its own
    Binary,
    /// That of Redis
    Resp,
}

/// Which keys are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Distribution {
    /// Each as likely as any other
    Uniform,
    /// A few much oftener than the rest, as YCSB has it
    Zipfian,
    /// One after another
    Sequential,
}

/// How keys are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Load {
    /// In their order
    Sequential,
    /// In an order that looks random
    Random,
    /// Not at all: tests begin with nothing there
    None,
}

/// Removes what was made. A server that had no room for the connections of a run has some once it has noticed their end, of which
/// nobody is told.
fn remove(server: &Server) -> Outcome {
    for _ in 0..REMOVALS {
        match server.remove() {
            Err(Error::Refused { .. }) => thread::park_timeout(PAUSE),
            removed => return removed.map_err(failure),
        }
    }
    server.remove().map_err(failure)
}

/// All that a call measures.
struct Report {
    server: Server,
    version: String,
    work: Work,
    /// Loading, and what came after it.
    before: Vec<(&'static str, Measured)>,
    tests: Vec<(Mix, Measured)>,
}

impl Bench {
    pub(crate) fn run(&self) -> Outcome {
        let (server, work) = (self.server()?, self.work());
        // All that can be said without the server is said before it is asked.
        for test in &self.tests {
            let work = Work { mix: *test, ..work.clone() };
            work.check().and_then(|()| server.can(&work)).map_err(failure)?;
        }
        self.plot.as_deref().map_or(Ok(()), settings::may_plot)?;
        let stop = Stop::at_signals()?;
        let version = server.version().map_err(failure)?;
        let mut report = Report { server, version, work, before: Vec::new(), tests: Vec::new() };
        let mut made = report.server.clone();
        if self.reuse {
            report.server.find().map_err(failure)?;
            self.look_for_keys(&report, &stop)?;
        } else {
            made.bucket = report.server.prepare().map_err(|error| self.occupied(error))?;
        }
        let measured = self.measure(&mut report, &stop);
        // Also after a failure: what was made is removed.
        let removed = if self.keep || self.reuse { Ok(()) } else { remove(&made) };
        let told = if report.before.is_empty() && report.tests.is_empty() { Ok(()) } else { self.tell(&report) };
        let left = removed.map_err(|error| error.prefixed(&format!("{} was left as it is", made.place())));
        let and_left = left.as_ref().err().map_or_else(String::new, |error| format!("; {error}"));
        measured.map_err(|error| error.followed_by(&and_left))?;
        told?;
        match report.failed() {
            0 => left.and_then(|()| stop.outcome()),
            failed => Err(Failure::not_done(format!("{failed} requests failed: see above{and_left}"))),
        }
    }

    /// Refuses a place in which none of the keys are: what is there is something else, to which nothing is to be added.
    fn look_for_keys(&self, report: &Report, stop: &Stop) -> Outcome {
        if self.tests.iter().all(|test| [Op::Get, Op::Set, Op::Delete].iter().all(|&op| !test.has(op))) {
            return Ok(());
        }
        let found = run_told(&report.server, &report.work.looking(), stop, "looking for keys")?;
        let missing: u64 = found.of.values().map(|of| of.missing).sum();
        if found.failed() > 0 || missing < found.requests || missing == 0 {
            return Ok(());
        }
        let place = report.server.place();
        Err(Failure::not_done(format!(
            "{place} has none of {missing} keys that were looked for: a run with --keep, and the same --keys and --key-size, \
             leaves them"
        )))
    }

    /// Loads, and runs the tests; ends after the one during which a signal came.
    fn measure(&self, report: &mut Report, stop: &Stop) -> Outcome {
        if !self.reuse && self.load != Load::None {
            self.load(report, stop)?;
        }
        for (index, test) in (0..).zip(&self.tests) {
            if stop.is_set() {
                break;
            }
            // With the same draws each test would ask for the keys that the one before it has just changed.
            let work = Work { mix: *test, seed: self.seed.wrapping_add(index), ..report.work.clone() };
            if !self.warm_up.is_zero() {
                let warming = Work { limit: Limit::Time(self.warm_up), ..work.clone() };
                run_told(&report.server, &warming, stop, &format!("{test}, warming up"))?;
            }
            if stop.is_set() {
                break;
            }
            let measured = run_told(&report.server, &work, stop, &test.to_string())?;
            report.tests.push((*test, measured));
        }
        Ok(())
    }

    fn load(&self, report: &mut Report, stop: &Stop) -> Outcome {
        let order = if self.load == Load::Random { Order::Shuffled } else { Order::Sequential };
        let loading = report.work.loading(order);
        report.before.push(("loading", run_told(&report.server, &loading, stop, "loading")?));
        if self.age > 0 && !stop.is_set() {
            let limit = Limit::Requests(self.keys.saturating_mul(self.age));
            let aging = Work { order: Order::Uniform, limit, ..loading };
            report.before.push(("overwriting", run_told(&report.server, &aging, stop, "overwriting")?));
        }
        Ok(())
    }

    fn tell(&self, report: &Report) -> Outcome {
        let mut out = io::stdout().lock();
        let told = if self.json { json::print(report, &mut out) } else { table::print(self, report, &mut out) };
        told.and_then(|()| out.flush()).map_err(|error| Failure::stdout(&error))?;
        self.plot.as_deref().map_or(Ok(()), |file| settings::plot(file, report))
    }

    /// What to do about a place that is there.
    fn occupied(&self, error: Error) -> Failure {
        let Error::Occupied(why) = &error else { return failure(error) };
        let elsewhere = match self.target {
            Who::Boltkv if self.dialect != Some(Dialect::Resp) => "name another by --bucket, or ",
            Who::Boltkv | Who::Redis => "name another by --database, or ",
            Who::Memcached => "",
        };
        Failure::not_done(format!("{why}; {elsewhere}use what a run with --keep has left there by --reuse"))
    }
}

impl Report {
    /// Requests that failed, and connections that were lost.
    fn failed(&self) -> u64 {
        let before = self.before.iter().map(|(_, measured)| measured);
        before.chain(self.tests.iter().map(|(_, measured)| measured)).map(Measured::failed).sum()
    }
}

/// Runs, and shows how far it is to people who watch.
fn run_told(server: &Server, work: &Work, stop: &Stop, what: &str) -> Outcome<Measured> {
    let mut line = Line::new(what, work.limit);
    // The server was there: one that cannot be reached any more is not one that was never asked.
    let failure = |error| match error {
        Error::Impossible(_) | Error::Refused { .. } => failure(error),
        error => Failure::not_done(error.to_string()),
    };
    run(server, work, stop.flag(), &mut |live| line.show(live)).map_err(failure)
}

/// The exit code of what was not measured.
fn failure(error: Error) -> Failure {
    let message = error.to_string();
    match error {
        Error::Connect { source, .. } if source.kind() == io::ErrorKind::TimedOut => {
            Failure::unreachable(format!("{message} (--target says which kind of server it is)"))
        }
        Error::Connect { .. } | Error::Protocol { .. } => Failure::unreachable(message),
        Error::Impossible(_) => Failure::usage(message),
        Error::Refused { why, .. } if why.starts_with("UNAUTHENTICATED") => {
            Failure::not_done(format!("{message}{}", way_in(&why)))
        }
        Error::Refused { why, .. } if why.starts_with("UNSUPPORTED") => {
            Failure::not_done(format!("{message} (--dialect resp asks by Redis' protocol)"))
        }
        Error::Refused { why, .. } if why.starts_with("OVERLOADED") => {
            Failure::not_done(format!("{message}: -c asks with fewer; `serve --max-connections` lets in more"))
        }
        _ => Failure::not_done(message),
    }
}

impl From<Who> for Target {
    fn from(who: Who) -> Self {
        match who {
            Who::Boltkv => Self::Boltkv,
            Who::Redis => Self::Redis,
            Who::Memcached => Self::Memcached,
        }
    }
}

impl From<Dialect> for boltkv_load::Dialect {
    fn from(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Binary => Self::Binary,
            Dialect::Resp => Self::Resp,
        }
    }
}

/// Kinds of requests in a mix, where there are several.
fn kinds(mix: &Mix) -> impl Iterator<Item = Op> {
    let mix = *mix;
    let several = Op::ALL.into_iter().filter(move |op| mix.has(*op)).count() > 1;
    Op::ALL.into_iter().filter(move |op| several && mix.has(*op))
}
