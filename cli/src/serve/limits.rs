//! The limits of a server, as settings. What they may be, the server says.

use std::thread::available_parallelism;

use boltkv_server::{Config, Error, Limits};
use clap::Args;
use tracing::warn;

use super::settings::Wrong;
use crate::arguments::Size;

/// More threads than any machine has processors for.
const MOST_WORKERS: i64 = 1024;

/// How much of anything a server takes. Sizes are in bytes or have a unit.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct LimitArgs {
    /// The size that the file does not grow past; 1MiB or more. Writes that find no room are refused with `NO_SPACE`, deletions
    /// make some. The journal is not counted
    #[arg(long, value_name = "SIZE", value_parser = max_size)]
    max_size: Option<Size>,
    /// Threads that serve connections, beside the writer's, those that wait for the disk, and up to four for connections that
    /// write alone: half of them all connections, the others such as send many requests at once, and one in 24 of those
    /// that read. Default: as many as there are processors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MOST_WORKERS))]
    workers: Option<u16>,
    /// Open connections
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_connections)]
    max_connections: usize,
    /// The longest frame either way, and so about the longest value; 64KiB to 128MiB
    #[arg(long, value_name = "SIZE", default_value_t = Size::of(Limits::default().max_frame))]
    max_frame: Size,
    /// Unanswered requests of one connection
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_in_flight)]
    max_in_flight: u32,
    /// Scans that one connection may have open
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_streams)]
    max_streams: u32,
    /// Backups under way, of all connections; 0: none
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_backups)]
    max_backups: u32,
    /// Watches under way, of all connections; 0: none
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_watches)]
    max_watches: u32,
    /// Snapshots that clients hold open, of all connections; 0: none
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_snapshots)]
    max_snapshots: u32,
    /// Snapshots that one connection may hold open
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_connection_snapshots)]
    max_connection_snapshots: u32,
    /// Slow requests that are kept for `boltkv slowlog`; 0: none
    #[arg(long, value_name = "N", default_value_t = Limits::default().slow_log)]
    slow_log: u32,
    /// Writes that wait to be written, of all connections
    #[arg(long, value_name = "N", default_value_t = Limits::default().queue_requests)]
    queue_requests: usize,
    /// Bytes of all that these writes hold: paths, keys, values, conditions; at most a quarter of `--memory`
    #[arg(long, value_name = "SIZE", default_value_t = Size(Limits::default().queue_bytes.into()))]
    queue_bytes: Size,
    /// What large requests and replies may take of memory, of all connections; at least four frames. Default: a quarter of
    /// the memory there is, limits of containers respected
    #[arg(long, value_name = "SIZE")]
    memory: Option<Size>,
}

impl LimitArgs {
    /// How many threads serve all connections. They wait for nothing: reads that would wait for the disk are put aside. As
    /// many as there are processors would only take these from each other, from the writer and from the system's network.
    pub(super) fn workers(&self) -> usize {
        self.threads().div_ceil(2)
    }

    fn threads(&self) -> usize {
        self.workers.map_or_else(|| available_parallelism().map_or(1, usize::from), usize::from)
    }

    pub(super) fn apply(&self, config: &mut Config, wrong: &mut Vec<Wrong>) {
        config.max_size = self.max_size.map(|Size(bytes)| bytes);
        let limits = &mut config.limits;
        limits.max_connections = self.max_connections;
        limits.max_in_flight = self.max_in_flight;
        limits.max_streams = self.max_streams;
        limits.max_backups = self.max_backups;
        limits.slow_log = self.slow_log;
        limits.max_watches = self.max_watches;
        limits.max_snapshots = self.max_snapshots;
        limits.max_connection_snapshots = self.max_connection_snapshots;
        limits.queue_requests = self.queue_requests;
        limits.burst_threads = self.threads() / 2;
        let mut set = |result: Result<(), Wrong>| wrong.extend(result.err());
        set(fitting("max-frame", self.max_frame).map(|bytes| limits.max_frame = bytes));
        set(fitting("queue-bytes", self.queue_bytes).map(|bytes| limits.queue_bytes = bytes));
        set(self.memory.map_or(Ok(()), |size| fitting("memory", size).map(|bytes| limits.memory = Some(bytes))));
        wrong.extend(limits.out_of_bounds().iter().filter_map(out_of_bounds));
    }

    /// Warns where `--queue-bytes` was given and is more than the memory allows. The default is cut without a word.
    pub(super) fn warn_of_cut_queue(&self, config: &Config) {
        let (asked, used) = (self.queue_bytes, Size(config.limits.queue_share().into()));
        if used.0 < asked.0 && asked.0 != u64::from(Limits::default().queue_bytes) {
            warn!("--queue-bytes is {asked}, of which {used} are used: a quarter of --memory");
        }
    }
}

/// The least limit: what is kept of it for deletions has room for some.
const LEAST_MAX_SIZE: Size = Size(1 << 20);

fn max_size(text: &str) -> Result<Size, String> {
    let size: Size = text.parse()?;
    if size.0 < LEAST_MAX_SIZE.0 { Err(format!("less than {LEAST_MAX_SIZE}")) } else { Ok(size) }
}

/// A size as the number that the server keeps it in.
fn fitting<T: TryFrom<u64>>(option: &'static str, size: Size) -> Result<T, Wrong> {
    let most = 8 * size_of::<T>();
    T::try_from(size.0).map_err(|_| Wrong::new(option, format!("is {size}, which is not below 2^{most} bytes")))
}

/// What the server says of a limit, in the units in which it is set.
fn out_of_bounds(error: &Error) -> Option<Wrong> {
    let Error::Limit { name, value, min, max } = *error else { return None };
    // Fields are named as their options, but for this one.
    let option = if name == "burst_threads" { "workers".into() } else { name.replace('_', "-") };
    let why = if ["max_frame", "queue_bytes", "memory"].contains(&name) {
        // A most that is no whole number of KiB is hard to read: the next number may be one; the one below it is within it.
        let [value, min, max, beyond] = [value, min, max - max % 1024, max.saturating_add(1)].map(Size::of);
        if beyond.0.is_multiple_of(1024) {
            format!("is {value}, but must be {min} at least, and less than {beyond}")
        } else {
            format!("is {value}, but must lie between {min} and {max}")
        }
    } else {
        format!("is {value}, but must lie between {min} and {max}")
    };
    Some(Wrong::new(option, why))
}
