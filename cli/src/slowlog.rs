//! `boltkv slowlog`: the requests of a server that took long.

use std::num::NonZeroU32;

use clap::Args;

use crate::failure::Outcome;
use crate::remote::Remote;
use crate::rows;

/// Print the newest requests of a server that took long
///
/// The newest first: when, how long from its last byte to its reply, what it was and what came of it, and whose it was. Never
/// keys or values. Which are slow, `serve --slow` says, and how many are kept `--slow-log`. Reads that were answered together
/// are one line: `requests` of them, under the last one's name.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv slowlog
  boltkv slowlog -n 10 --json | jq .took_us
  boltkv slowlog --reset

Where the server has tokens, this needs the right `admin` for everything.")]
pub(crate) struct SlowLog {
    /// At most so many; all without it
    #[arg(short = 'n', long, value_name = "N")]
    most: Option<NonZeroU32>,
    /// Print JSON, an object a line
    #[arg(long)]
    json: bool,
    /// Forget them instead
    #[arg(long, conflicts_with_all = ["most", "json"])]
    reset: bool,
    #[command(flatten)]
    remote: Remote,
}

impl SlowLog {
    pub(crate) fn run(&self) -> Outcome {
        if self.reset {
            return self.remote.run(async |client| Ok(client.reset_slow_log().await?));
        }
        rows::print(&self.remote.run(async |client| Ok(client.slow_log(self.most).await?))?, self.json)
    }
}
