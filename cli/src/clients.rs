//! `boltkv clients`: who is connected to a server, and the end of a connection.

use boltkv_client::ErrorCode;
use clap::{Args, Subcommand};

use crate::failure::{Failure, Outcome};
use crate::remote::Remote;
use crate::rows;

/// List the connections of a server, or end one
///
/// A line for each, in the order in which they came, this one's own included: its id, where it comes from, what it speaks, by
/// which token it was let in, what it calls itself, for how long it has been open and idle, its last command, and how much it
/// has asked for. Never keys or values.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  boltkv clients
  boltkv clients --json | jq 'select(.idle_seconds > 60)'
  boltkv clients kill 17

Where the server has tokens, this needs the right `admin` for everything."
)]
pub(crate) struct Clients {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print JSON, an object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum Command {
    Kill(Kill),
}

/// End connections
///
/// What a client has sent and was not done is refused; a write that the server has taken is done.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv clients kill 17
  boltkv clients kill 17 18 19

Exit codes: 0 they are ended, 1 there is none of that id; those named before it are ended.")]
struct Kill {
    /// Which, as `boltkv clients` tells them
    #[arg(value_name = "ID", required = true)]
    ids: Vec<u64>,
    #[command(flatten)]
    remote: Remote,
}

impl Clients {
    pub(crate) fn run(&self) -> Outcome {
        match &self.command {
            Some(Command::Kill(kill)) => kill.remote.run(async |client| {
                for id in &kill.ids {
                    client.kill(*id).await.map_err(|error| match error.code() {
                        Some(ErrorCode::KeyNotFound) => Failure::not_done(format!("no connection {id}")),
                        _ => error.into(),
                    })?;
                }
                Ok(())
            }),
            None => rows::print(&self.remote.run(async |client| Ok(client.connections().await?))?, self.json),
        }
    }
}
