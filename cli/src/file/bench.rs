//! `boltkv file bench`: how fast this machine writes and reads a bolt file, in the figures of bbolt's own bench.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use boltkv_storage::{Db, Durability, Error, Options};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::bench_work::{Measured, Work, WriteMode};
use super::interrupt::Interrupt;
use super::output::json_line;
use super::progress::Progress;
use super::target::must_be_free;
use crate::arguments::bytes;
use crate::failure::{Failure, Outcome};

/// Measure how fast this machine writes and reads a bolt file
///
/// Writes a new file, which is removed at the end, then reads it, again and again for at least a second. Flags and figures
/// are those of `bbolt bench`, so that the two can be compared on one machine. Keys are numbers of four bytes, with zeros
/// behind them; random ones are the same in every run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file bench
  boltkv file bench --count 100000 --batch-size 100 --path /data/bench.db   # on that disk
  boltkv file bench --count 1000000 --write-mode rnd --read-mode rnd --no-sync")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag by itself")]
pub(crate) struct Bench {
    /// How many values are written
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) count: u32,
    /// How many values a transaction writes; divides the count. 0: all
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) batch_size: u32,
    /// Bytes of a key
    #[arg(long, value_name = "BYTES", default_value_t = 8, value_parser = clap::value_parser!(u32).range(4..=32_768))]
    pub(super) key_size: u32,
    /// Bytes of a value
    #[arg(long, value_name = "BYTES", default_value_t = 32, value_parser = clap::value_parser!(u32).range(0..=0x7fff_fffe))]
    pub(super) value_size: u32,
    /// In which order keys are written, into one bucket or each transaction into a new one within it
    #[arg(long, value_enum, default_value = "seq")]
    pub(super) write_mode: WriteMode,
    /// In which order they are read
    #[arg(long, value_enum, default_value = "seq")]
    pub(super) read_mode: ReadMode,
    /// The file to be written. One that is there is not touched [default: one in the folder for temporary files]
    #[arg(long, value_name = "FILE")]
    pub(super) path: Option<PathBuf>,
    /// Keep the file, and say on standard error where it is
    #[arg(long)]
    pub(super) work: bool,
    /// Do not sync a transaction before it counts as committed
    #[arg(long)]
    pub(super) no_sync: bool,
    /// How full pages are left that are split [default: as the server leaves them, full where keys only grow; bbolt: 0.5]
    #[arg(long, value_name = "0.1…1.0")]
    pub(super) fill_percent: Option<f64>,
    /// Bytes of a page
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = bytes::<u32>)]
    pub(super) page_size: u32,
    /// Bytes of the file that are mapped from the start
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = bytes::<u64>)]
    pub(super) initial_mmap_size: u64,
    /// Print as Go's benchmarks do, for tools that read that
    #[arg(long, conflicts_with = "json")]
    pub(super) gobench_output: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(super) json: bool,
    /// Says on standard error what it is at, as bbolt's command does.
    #[arg(skip)]
    pub(super) as_bbolt: bool,
}

/// In which order keys are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ReadMode {
    /// By cursors
    Seq,
    /// One by one, shuffled
    Rnd,
}

#[derive(Serialize)]
struct Figures {
    ops: u64,
    seconds: f64,
    ops_per_second: f64,
}

#[derive(Serialize)]
struct Report {
    write: Figures,
    read: Figures,
}

impl Bench {
    pub(crate) fn run(&self) -> Outcome {
        let batch_size = if self.batch_size == 0 { self.count } else { self.batch_size };
        if !self.count.is_multiple_of(batch_size) {
            return Err(Failure::usage(format!("{} values do not make whole batches of {batch_size}", self.count)));
        }
        if self.fill_percent.is_some_and(|fill| !(0.1..=1.0).contains(&fill)) {
            return Err(Failure::usage("--fill-percent is from 0.1 to 1.0"));
        }
        let interrupt = Interrupt::new(|| "nothing was measured".into())?;
        let Some(path) = &self.path else {
            let folder = tempfile::Builder::new().prefix("boltkv-bench-").tempdir();
            let mut folder = folder.map_err(|error| Failure::not_done(format!("no folder for the file: {error}")))?;
            folder.disable_cleanup(self.work);
            if !self.work {
                interrupt.remove(folder.path());
            }
            return self.run_in(&folder.path().join("bench.db"), batch_size, &interrupt);
        };
        must_be_free(path)?;
        if !self.work {
            interrupt.remove(path);
        }
        self.run_in(path, batch_size, &interrupt)
    }

    /// Runs on a file that is not there, and will not be.
    fn run_in(&self, path: &Path, batch_size: u32, interrupt: &Interrupt) -> Outcome {
        let measured = self.measure(path, batch_size, interrupt);
        if self.work {
            // If standard error is closed, the file is where it was told to be.
            let _ = writeln!(io::stderr(), "work: {}", path.display());
        } else {
            // It may not have come to be.
            let _ = std::fs::remove_file(path);
        }
        let (write, read) = measured?;
        self.print(write, read).map_err(|error| Failure::stdout(&error))
    }

    fn measure(&self, path: &Path, batch_size: u32, interrupt: &Interrupt) -> Outcome<(Measured, Measured)> {
        let durability = if self.no_sync { Durability::Never } else { Durability::Always };
        let options = Options::new().page_size(self.page_size).initial_map_size(self.initial_mmap_size);
        let opened = interrupt.undisturbed(|| options.durability(durability).open(path));
        let db: Db = opened.map_err(|error| match error {
            Error::InvalidPageSize { .. } => Failure::usage(error.to_string()),
            error => Failure::open(path, &error),
        })?;
        let work = Work {
            count: self.count,
            batch_size,
            key_size: self.key_size as usize,
            value: vec![0; self.value_size as usize],
            write_mode: self.write_mode,
            fill: self.fill_percent,
        };
        let failed = |error| Failure::storage(path, &error);
        self.say("starting write benchmark.");
        let progress = Progress::doing("writing");
        let start = Instant::now();
        let written = work.write(&db).map_err(failed)?;
        let write = Measured { ops: u64::from(self.count), took: start.elapsed() };
        self.say("starting read benchmark.");
        drop(progress);
        let _progress = Progress::doing("reading");
        let read = match self.read_mode {
            ReadMode::Seq => work.read_in_order(&db),
            ReadMode::Rnd => work.read_at_random(&db, written),
        };
        Ok((write, read.map_err(failed)?))
    }

    fn say(&self, what: &str) {
        if self.as_bbolt {
            // If standard error is closed, it works without a word.
            let _ = writeln!(io::stderr(), "{what}");
        }
    }

    fn print(&self, write: Measured, read: Measured) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            return json_line(&Report { write: write.into(), read: read.into() }, &mut out);
        }
        for (name, measured) in [("Write", write), ("Read", read)] {
            let Measured { ops, took } = measured;
            let each = measured.each();
            if self.gobench_output {
                let nanos = took.as_secs_f64() * 1e9 / measured.ops_as_f64();
                writeln!(out, "{:<14}\t{ops:8}\t{nanos:10.1} ns/op", format!("Benchmark{name}"))?;
            } else {
                let rate = Figures::from(measured).ops_per_second;
                writeln!(out, "# {name}\t{ops}(ops)\t{took:?}\t({each:?}/op)\t({rate:.0} op/sec)")?;
            }
        }
        writeln!(out)
    }
}

impl Measured {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    fn ops_as_f64(self) -> f64 {
        self.ops.max(1) as f64
    }

    fn each(self) -> Duration {
        Duration::from_secs_f64(self.took.as_secs_f64() / self.ops_as_f64())
    }
}

impl From<Measured> for Figures {
    fn from(measured: Measured) -> Self {
        let seconds = measured.took.as_secs_f64();
        Self { ops: measured.ops, seconds, ops_per_second: measured.ops_as_f64() / seconds.max(f64::MIN_POSITIVE) }
    }
}
