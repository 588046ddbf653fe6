//! `boltkv config`: looks at the configuration of a server without starting one.

mod show;

use std::io::{self, Write as _};

use clap::{Args, Subcommand};

use crate::failure::{Failure, Outcome, note};
use crate::serve::layers::{Effective, Flags, defaults};

/// Look at the configuration of a server
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(Box<Check>),
    Show(Box<Show>),
}

/// Say what is wrong with the configuration of a server
///
/// Reads the file, the variables of the environment and the flags as `boltkv serve` does, and says all that is wrong with
/// them. Nothing is opened and nothing listens.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv config check
  boltkv config check --config /etc/boltkv.toml
  boltkv config check --config /etc/boltkv.toml --listen 0.0.0.0

Exit codes: 0 a server would take it, 2 it has mistakes, 3 the configuration file cannot be read.")]
pub(crate) struct Check {
    #[command(flatten)]
    flags: Flags,
}

/// Print the configuration of a server
///
/// Prints all settings that hold, as a file that can be used as one, each with where it comes from. Secrets are not printed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv config show --config /etc/boltkv.toml
  boltkv config show --default > boltkv.toml
  boltkv config show --json | jq '.\"max-frame\".value'

Exit codes: 0 printed, 2 the configuration has mistakes, 3 the configuration file cannot be read.")]
pub(crate) struct Show {
    /// Print a file with every setting, what it does and its default, for whoever begins one; nothing else is looked at
    #[arg(long, conflicts_with = "json")]
    default: bool,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    flags: Flags,
}

impl Command {
    pub(crate) fn run(&self) -> Outcome {
        match self {
            Self::Check(check) => read(&check.flags).map(drop),
            Self::Show(show) => show.run(),
        }
    }
}

impl Show {
    fn run(&self) -> Outcome {
        let text = if self.default {
            show::of_defaults(&defaults())
        } else {
            let effective = read(&self.flags)?;
            if self.json { show::as_json(&effective.values) } else { show::as_toml(&effective.values) }
        };
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| Failure::stdout(&error))
    }
}

/// What a server would be told, with warnings said.
fn read(flags: &Flags) -> Outcome<Effective> {
    let effective = flags.read()?;
    for warning in &effective.warnings {
        note(&format!("warning: {warning}"));
    }
    Ok(effective)
}
