//! `peers`: measures boltkv's engine beside every peer. What it does is in the library; here is only its command line.

use std::io::Write as _;
use std::num::{NonZeroU64, NonZeroUsize};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use boltkv_benches::contestant::Contestant;
use boltkv_benches::measure::{self, Plan};
use boltkv_benches::report::Measured;
use boltkv_benches::work::Told;
use boltkv_benches::works::{Scale, Suite};
use boltkv_benches::{cold, crowds, print, results, servers, shell};
use clap::{Args, Parser, Subcommand};
use serde::Serialize;

/// Measures boltkv's engine beside every peer.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the table of works, in interleaved rounds, each engine in a process of its own.
    Peers(Measure),
    /// Run one of the experiments, in the same way.
    Experiments {
        /// Which.
        suite: Suite,
        #[command(flatten)]
        measure: Measure,
    },
    /// Measure what grows with the number of entries, and how.
    Growth(Measure),
    /// Measure a server from the shell, with hyperfine and nc, on an empty file and one of 1 MB and of 1 GB.
    Shell(FromShell),
    /// Measure servers over the network: boltkv on a fresh and on an aged file, Redis, memcached.
    Servers(OverNetwork),
    /// Measure a server on a file that is not in memory: GETs, and a PING beside them.
    Cold(OfCold),
    /// Measure what clients wait beside crowds and floods of others.
    Crowds(Crowds),
    /// Write docs/benchmarks.md and its plots from what was measured.
    Report {
        /// Results that `--json` kept. [default: every .json in docs/benchmarks]
        #[arg(long, value_name = "FILE")]
        from: Vec<PathBuf>,
        /// Where the page goes.
        #[arg(long, default_value = "docs", value_name = "FOLDER")]
        docs: PathBuf,
    },
    /// Do one work on one engine; the work is on standard input.
    #[command(hide = true)]
    Worker { contestant: Contestant, folder: PathBuf },
}

#[derive(Debug, Args)]
struct Measure {
    /// Only works of these names, or whose names begin so; separated by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only these engines; separated by commas.
    #[arg(long, value_delimiter = ',')]
    engines: Vec<String>,
    /// A hundredth of the work, once: to see that all of it runs.
    #[arg(long)]
    quick: bool,
    /// Sizes that take hours and gigabytes, too, in one round: up to 10 million entries.
    #[arg(long, conflicts_with = "quick")]
    large: bool,
    /// How often each engine does each work. [default: 5, experiments 3, with --quick 1]
    #[arg(long)]
    rounds: Option<NonZeroUsize>,
    /// Keep what was measured in this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where the databases are made; on the disk to be measured. [default: the system's folder for such]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Seconds after which a run is given up. [default: 180, experiments 120, with --large 1200 but for c]
    #[arg(long)]
    limit: Option<NonZeroU64>,
}

#[derive(Debug, Args)]
struct FromShell {
    /// How often each command is run. [default: 1000, with --quick 10]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Small files: to see that all of it runs.
    #[arg(long)]
    quick: bool,
    /// Keep what was measured in this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where files are made; on the disk to be measured. [default: the system's folder for such]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// boltkv's program. [default: that beside this one]
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct OverNetwork {
    /// Only rows of these names, or whose names begin so; separated by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only these servers; separated by commas.
    #[arg(long, value_delimiter = ',')]
    servers: Vec<servers::Who>,
    /// Keys of 100 bytes that there are.
    #[arg(long, value_name = "N", default_value_t = servers::KEYS, value_parser = clap::value_parser!(u64).range(100..))]
    keys: u64,
    /// How often each row is measured. [default: 5, with --quick 1]
    #[arg(long)]
    rounds: Option<NonZeroUsize>,
    /// Seconds of each round of a row. [default: 5, with --quick 0.2]
    #[arg(long, value_parser = seconds)]
    seconds: Option<Duration>,
    /// A hundredth of the entries, once: to see that all of it runs.
    #[arg(long)]
    quick: bool,
    /// Keep what was measured in this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where files are made; on the disk to be measured. [default: the system's folder for such]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// While a server is measured its disk does at most so many writes a second, as clouds rent them out. Takes root, and Linux'
    /// control groups.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    disk_writes: Option<u32>,
    /// boltkv's program. [default: that beside this one]
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Crowds {
    /// Only crowds of these names, or whose names begin so; separated by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Seconds that each crowd is there.
    #[arg(long, default_value = "5")]
    seconds: NonZeroU64,
    /// How many a crowd has that stands there.
    #[arg(long, value_name = "N", default_value = "9000")]
    size: NonZeroUsize,
    /// Where files are made; on the disk to be measured. [default: the system's folder for such]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// boltkv's program. [default: that beside this one]
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct OfCold {
    /// Seconds that each load goes on.
    #[arg(long, default_value = "5")]
    seconds: NonZeroU64,
    /// MiB of memory of the control group; the file has ten times as many.
    #[arg(long, value_name = "MIB", default_value = "256")]
    memory: NonZeroU64,
    /// Bytes of a value.
    #[arg(long, value_name = "BYTES", default_value = "900")]
    value: NonZeroUsize,
    /// Where the file is made; on the disk to be measured. [default: the system's folder for such]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// boltkv's program. [default: that beside this one]
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
}

/// Some time, up to an hour.
fn seconds(text: &str) -> Result<Duration> {
    let seconds: f64 = text.parse()?;
    anyhow::ensure!((0.01..=3600.0).contains(&seconds), "from 0.01 to 3600 seconds");
    Ok(Duration::from_secs_f64(seconds))
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Peers(measure) => measure.run(Suite::Peers),
        Command::Experiments { suite, measure } => measure.run(suite),
        Command::Growth(measure) => measure.run(Suite::Growth),
        Command::Shell(shell) => shell.run(),
        Command::Servers(servers) => servers.run(),
        Command::Cold(cold) => cold.run(),
        Command::Crowds(crowds) => crowds.run(),
        Command::Report { from, docs } => report(from, &docs),
        Command::Worker { contestant, folder } => worker(&contestant, &folder),
    }
}

impl Measure {
    fn run(self, suite: Suite) -> Result<()> {
        let scale = match (self.quick, self.large) {
            (true, _) => Scale::Quick,
            (false, true) => Scale::Large,
            (false, false) => Scale::Full,
        };
        let plan = Plan {
            suite,
            entries: measure::choose(suite.entries(scale), &self.only, &self.engines)?,
            rounds: self.rounds.map_or(if self.quick { 1 } else { suite.rounds() }, NonZeroUsize::get),
            limit: Duration::from_secs(self.limit.map_or(suite.limit(scale), NonZeroU64::get)),
            folder: self.folder.unwrap_or_else(std::env::temp_dir),
            scale,
            command: asked(),
            keep: self.json,
        };
        measure::measure(&plan).map(drop)
    }
}

impl FromShell {
    fn run(self) -> Result<()> {
        let plan = shell::Plan {
            runs: self.runs.unwrap_or(if self.quick { 10 } else { 1000 }).into(),
            quick: self.quick,
            server: self.server,
            folder: self.folder.unwrap_or_else(std::env::temp_dir),
            command: asked(),
        };
        let measured = shell::measure(&plan)?;
        announce(&measured, self.json.as_deref(), &print::shell(&measured))
    }
}

impl OverNetwork {
    fn run(self) -> Result<()> {
        let plan = servers::Plan {
            only: self.only,
            servers: self.servers,
            keys: self.keys,
            rounds: self.rounds.map_or(if self.quick { 1 } else { 5 }, NonZeroUsize::get),
            time: self.seconds.unwrap_or(if self.quick { Duration::from_millis(200) } else { Duration::from_secs(5) }),
            quick: self.quick,
            server: self.server,
            folder: self.folder.unwrap_or_else(std::env::temp_dir),
            disk_writes: self.disk_writes,
            command: asked(),
        };
        let measured = servers::measure(&plan)?;
        announce(&measured, self.json.as_deref(), &print::servers(&measured))
    }
}

impl Crowds {
    fn run(self) -> Result<()> {
        let plan = crowds::Plan {
            only: self.only,
            time: Duration::from_secs(self.seconds.get()),
            size: self.size.get(),
            server: self.server,
            folder: self.folder.unwrap_or_else(std::env::temp_dir),
        };
        let mut out = std::io::stdout();
        out.write_all(crowds::HEAD.as_bytes())?;
        crowds::measure(&plan, &mut |row| Ok(out.write_all(crowds::line(row).as_bytes())?))
    }
}

impl OfCold {
    fn run(self) -> Result<()> {
        let plan = cold::Plan {
            time: Duration::from_secs(self.seconds.get()),
            memory: self.memory.get() << 20,
            value: self.value.get(),
            server: self.server,
            folder: self.folder.unwrap_or_else(std::env::temp_dir),
        };
        let measured = cold::measure(&plan)?;
        Ok(write!(std::io::stdout().lock(), "{}", cold::table(&measured))?)
    }
}

/// Prints what was measured, and keeps it where that was asked for.
fn announce(measured: &impl Serialize, json: Option<&Path>, text: &str) -> Result<()> {
    if let Some(file) = json {
        results::write(file, measured)?;
    }
    Ok(write!(std::io::stdout().lock(), "{text}")?)
}

/// The command line, as one would type it.
fn asked() -> String {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    format!("cargo run --release -p boltkv-benches -- {}", arguments.join(" "))
}

fn report(mut from: Vec<PathBuf>, docs: &Path) -> Result<()> {
    if from.is_empty() {
        let folder = docs.join("benchmarks");
        let files = std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        from = files.map(|file| file.map(|file| file.path())).collect::<std::io::Result<_>>()?;
        from.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        from.sort();
    }
    let results = from.iter().map(|file| results::read(file)).collect::<Result<Vec<Measured>>>()?;
    boltkv_benches::report::write(&results, docs)
}

fn worker(contestant: &Contestant, folder: &Path) -> Result<()> {
    let work = serde_json::from_reader(std::io::stdin().lock())?;
    let mut out = std::io::stdout().lock();
    let mut tell = |told: Told| {
        serde_json::to_writer(&mut out, &told)?;
        writeln!(out)?;
        Ok(out.flush()?)
    };
    // A peer that panics has failed as one that returns an error has; how it came there is its own affair.
    std::panic::set_hook(Box::new(|_| {}));
    match std::panic::catch_unwind(AssertUnwindSafe(|| contestant.run(&work, folder, &mut tell))) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => tell(Told::Failed(format!("{error:#}"))),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word");
            tell(Told::Failed(format!("it panicked: {text}")))
        }
    }
}
