//! How long anything may take, as settings.

use std::time::Duration;

use boltkv_server::Config;
use clap::Args;

use crate::arguments::{MOST_TIME, milliseconds, seconds};

/// How long a server waits for anything. A number alone is seconds, of the text dialect's linger milliseconds.
#[derive(Debug, Args)]
#[command(next_help_heading = "Timeouts")]
pub(super) struct TimeoutArgs {
    /// How long to wait for a file that another process has open, such as 5s or 200ms; a number alone is seconds
    #[arg(long, visible_alias = "timeout", value_name = "TIME", default_value = "5s", value_parser = seconds)]
    lock_timeout: Duration,
    /// How long a new connection may say nothing; 0: for ever
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = seconds)]
    first_byte_timeout: Duration,
    /// How long a new binary connection may take, from connecting to the end of its HELLO; 0: for ever
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = seconds)]
    hello_timeout: Duration,
    /// How long a connection may be open without a byte either way while nothing is done for it; 0: for ever
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = seconds)]
    idle_timeout: Duration,
    /// How long a request that has begun to arrive may stand still, and with a second for every 16 KiB in all; 0: for ever
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = seconds)]
    request_timeout: Duration,
    /// How long a client may take nothing of its replies, and of large ones with a second for every 16 KiB in all; 0: for
    /// ever
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = seconds)]
    reply_timeout: Duration,
    /// How long a client may take nothing of a scan, backup or watch, or give no credit, before it is given up (a scan a fifth
    /// of it where it keeps memory or room that writes need); 0: for ever
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = seconds)]
    stream_timeout: Duration,
    /// How long a snapshot is held open without being used, where its client does not say
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = seconds)]
    snapshot_lease: Duration,
    /// The longest that a snapshot is held open without being used, whatever its client says
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = seconds)]
    max_lease: Duration,
    /// How long after its last reply the server ends a text connection that looks like a one-shot `nc`; a number alone is
    /// milliseconds; 0: never
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = milliseconds)]
    text_linger: Duration,
    /// How long a request takes at least that is kept as a slow one; a number alone is milliseconds
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = milliseconds)]
    slow: Duration,
}

impl TimeoutArgs {
    pub(super) fn apply(&self, config: &mut Config) {
        let timeouts = &mut config.timeouts;
        timeouts.lock = self.lock_timeout;
        timeouts.first_byte = never_if_zero(self.first_byte_timeout);
        timeouts.hello = never_if_zero(self.hello_timeout);
        timeouts.idle = never_if_zero(self.idle_timeout);
        timeouts.request = never_if_zero(self.request_timeout);
        timeouts.reply = never_if_zero(self.reply_timeout);
        timeouts.stream_stall = never_if_zero(self.stream_timeout);
        timeouts.snapshot_lease = self.snapshot_lease;
        timeouts.longest_snapshot_lease = self.max_lease;
        timeouts.text_linger = self.text_linger;
        timeouts.slow = self.slow;
    }
}

/// For settings of which 0 means that there is no end.
pub(super) fn never_if_zero(time: Duration) -> Duration {
    if time.is_zero() { MOST_TIME } else { time }
}
