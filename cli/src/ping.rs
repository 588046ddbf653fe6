//! `boltkv ping`: asks a server whether it is there.

use std::io::{self, Write as _};

use clap::Args;

use crate::failure::{Failure, Outcome};
use crate::remote::Remote;

/// Ask the server whether it is there
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv ping
  boltkv ping --addr db.internal:7878 --timeout 1")]
pub(crate) struct Ping {
    /// Print a JSON object: {"pong":true}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

impl Ping {
    pub(crate) fn run(&self) -> Outcome {
        self.remote.run(async |client| Ok(client.ping().await?))?;
        let answer = if self.json { "{\"pong\":true}" } else { "PONG" };
        writeln!(io::stdout().lock(), "{answer}").map_err(|error| Failure::stdout(&error))
    }
}
