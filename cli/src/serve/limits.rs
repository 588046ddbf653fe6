//! The limits of a server, as arguments. What they may be, the server says.

use std::thread::available_parallelism;
use std::time::Duration;

use boltkv_server::{Config, Limits};
use clap::Args;
use tracing::warn;

use crate::arguments::{MOST_TIME, Size, seconds};
use crate::failure::{Failure, Outcome};

/// More threads than any machine has processors for.
const MOST_WORKERS: i64 = 1024;

/// How much of anything a server takes, and for how long. Sizes are in bytes or have a unit, times in seconds.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct LimitArgs {
    /// Threads that serve connections, beside the writer's and those that wait for the disk: half of them all connections,
    /// the others only such as send many requests at once. Default: as many as there are processors
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
    /// The longest that a snapshot is held open without being used
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = seconds)]
    max_lease: Duration,
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
    /// How long a new connection may say nothing; 0: for ever
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = seconds)]
    first_byte_timeout: Duration,
    /// How long a request that has begun to arrive may stand still, and with a second for every 16 KiB in all; 0: for ever
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = seconds)]
    request_timeout: Duration,
    /// How long a client may take nothing of its replies, and of large ones with a second for every 16 KiB in all; 0: for
    /// ever
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = seconds)]
    reply_timeout: Duration,
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

    pub(super) fn apply(&self, config: &mut Config) -> Outcome {
        let limits = &mut config.limits;
        limits.max_connections = self.max_connections;
        limits.max_frame = fitting("--max-frame", self.max_frame)?;
        limits.max_in_flight = self.max_in_flight;
        limits.max_streams = self.max_streams;
        limits.max_backups = self.max_backups;
        limits.max_watches = self.max_watches;
        limits.max_snapshots = self.max_snapshots;
        limits.queue_requests = self.queue_requests;
        limits.queue_bytes = fitting("--queue-bytes", self.queue_bytes)?;
        limits.burst_threads = self.threads() / 2;
        limits.memory = self.memory.map(|size| fitting("--memory", size)).transpose()?;
        let timeouts = &mut config.timeouts;
        timeouts.first_byte = never_if_zero(self.first_byte_timeout);
        timeouts.request = never_if_zero(self.request_timeout);
        timeouts.reply = never_if_zero(self.reply_timeout);
        timeouts.longest_snapshot_lease = self.max_lease;
        Ok(())
    }

    /// Warns where `--queue-bytes` was given and is more than the memory allows. The default is cut without a word.
    pub(super) fn warn_of_cut_queue(&self, config: &Config) {
        let (asked, used) = (self.queue_bytes, Size(config.limits.queue_share().into()));
        if used.0 < asked.0 && asked.0 != u64::from(Limits::default().queue_bytes) {
            warn!("--queue-bytes is {asked}, of which {used} are used: a quarter of --memory");
        }
    }
}

fn never_if_zero(time: Duration) -> Duration {
    if time.is_zero() { MOST_TIME } else { time }
}

/// A size as the number that the server keeps it in.
fn fitting<T: TryFrom<u64>>(option: &str, size: Size) -> Outcome<T> {
    let most = 8 * size_of::<T>();
    T::try_from(size.0).map_err(|_| Failure::usage(format!("{option} is {size}, which is not below 2^{most} bytes")))
}
