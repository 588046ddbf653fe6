//! The limits of a server, as arguments. What they may be, the server says.

use boltkv_server::{Config, Limits};
use clap::Args;

use crate::arguments::Size;
use crate::failure::{Failure, Outcome};

/// How much of anything a server takes. Sizes are in bytes or have a unit.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct LimitArgs {
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
    /// Writes that wait to be written, of all connections
    #[arg(long, value_name = "N", default_value_t = Limits::default().queue_requests)]
    queue_requests: usize,
    /// Bytes of keys and values that wait to be written
    #[arg(long, value_name = "SIZE", default_value_t = Size(Limits::default().queue_bytes.into()))]
    queue_bytes: Size,
}

impl LimitArgs {
    pub(super) fn apply(&self, config: &mut Config) -> Outcome {
        let limits = &mut config.limits;
        limits.max_connections = self.max_connections;
        limits.max_frame = fitting("--max-frame", self.max_frame)?;
        limits.max_in_flight = self.max_in_flight;
        limits.max_streams = self.max_streams;
        limits.queue_requests = self.queue_requests;
        limits.queue_bytes = fitting("--queue-bytes", self.queue_bytes)?;
        Ok(())
    }
}

/// A size as the number that the server keeps it in.
fn fitting<T: TryFrom<u64>>(option: &str, size: Size) -> Outcome<T> {
    let most = 8 * size_of::<T>();
    T::try_from(size.0).map_err(|_| Failure::usage(format!("{option} is {size}, which is not below 2^{most} bytes")))
}
