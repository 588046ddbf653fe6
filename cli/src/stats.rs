//! `boltkv stats`: the server's figures.

use std::io::{self, Write as _};
use std::time::Duration;

use boltkv_client::Client;
use clap::Args;

use crate::arguments::some_seconds;
use crate::failure::{Failure, Outcome};
use crate::remote::Remote;
use crate::rows::as_json;

/// Print the server's figures, a name and a value a line
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv stats
  boltkv stats --json | jq .writes
  boltkv stats --watch            # again every second
  boltkv stats --watch 10s --json

With --json a line is one object: numbers as numbers, everything else as text.")]
pub(crate) struct Stats {
    /// Print them again and again, with a blank line between, until it is interrupted; every second if no time is given
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "1s", value_parser = some_seconds)]
    watch: Option<Duration>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

impl Stats {
    pub(crate) fn run(&self) -> Outcome {
        self.remote.run(async |client| {
            self.print(&client).await?;
            let Some(every) = self.watch else { return Ok(()) };
            let mut ticks = tokio::time::interval(every);
            // The first is at once, and what takes longer than the time is not made up for.
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            ticks.tick().await;
            loop {
                ticks.tick().await;
                if !self.json {
                    writeln!(io::stdout().lock()).map_err(|error| Failure::stdout(&error))?;
                }
                self.print(&client).await?;
            }
        })
    }

    async fn print(&self, client: &Client) -> Outcome {
        let figures = client.stats().await?;
        let text = if self.json { as_json(&figures) } else { as_lines(&figures) };
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| Failure::stdout(&error))
    }
}

pub(crate) fn as_lines(figures: &[(String, String)]) -> String {
    figures.iter().flat_map(|(name, value)| [name, " ", value, "\n"]).collect()
}
