//! The limits of a server, as arguments. What they may be, the server says.

use boltkv_server::{Config, Limits};
use clap::Args;

/// How much of anything a server takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct LimitArgs {
    /// Open connections
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_connections)]
    max_connections: usize,
    /// The longest frame either way, and so about the longest value, in bytes; 64 KiB to 128 MiB
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().max_frame)]
    max_frame: usize,
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
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().queue_bytes)]
    queue_bytes: u32,
}

impl LimitArgs {
    pub(super) fn apply(&self, config: &mut Config) {
        let limits = &mut config.limits;
        limits.max_connections = self.max_connections;
        limits.max_frame = self.max_frame;
        limits.max_in_flight = self.max_in_flight;
        limits.max_streams = self.max_streams;
        limits.queue_requests = self.queue_requests;
        limits.queue_bytes = self.queue_bytes;
    }
}
