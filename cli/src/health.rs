//! `boltkv health`: for whoever watches over a server, such as a container's `HEALTHCHECK`.

use std::io::{self, Write as _};

use boltkv_client::ErrorCode;
use clap::Args;

use crate::failure::{Failure, Outcome, before_a_verdict, note};
use crate::remote::Remote;

/// Exit with 0 if the server does its work, with 1 if not
///
/// Prints nothing where all is well. One that answers, but whose disk has failed, so that it can write no more until it is
/// started again, is not well. A server that says it has too many connections, or asks for a token, is alive: exit
/// code 0, and a word on standard error.
#[derive(Debug, Args)]
#[command(mut_arg("timeout", |timeout| timeout.default_value("3s")))]
#[command(after_help = "Examples:
  boltkv health
  HEALTHCHECK CMD [\"/boltkv\", \"health\"]     (in a Dockerfile)")]
pub(crate) struct Health {
    /// Print a JSON object: {"healthy":true}, or false with exit code 1
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

impl Health {
    pub(crate) fn run(&self) -> Outcome {
        // A health check knows two exit codes only: whatever is wrong is 1.
        let answer = self.remote.try_run(async |client| match client {
            Ok(client) => {
                client.ping().await?;
                check_writable(&client.stats().await.unwrap_or_default())
            }
            Err(error) if matches!(error.code(), Some(ErrorCode::Overloaded | ErrorCode::Unauthenticated)) => {
                // To restart it would end what keeps it busy, and let nobody in.
                note(&format!("it answers: {error}"));
                Ok(())
            }
            Err(error) => Err(error.into()),
        });
        if self.json {
            let printed = writeln!(io::stdout().lock(), "{{\"healthy\":{}}}", answer.is_ok());
            before_a_verdict(printed.map_err(|error| Failure::stdout(&error)))?;
        }
        answer.map_err(Failure::into_not_done)
    }
}

/// Fails where the server was not told to refuse writes, and cannot do any. One that does not say is healthy: it has
/// answered before.
fn check_writable(figures: &[(String, String)]) -> Outcome {
    let is_zero = |wanted: &str| figures.iter().any(|(name, value)| name == wanted && value == "0");
    if is_zero("writable") && is_zero("read_only") {
        let what = "the server answers, but writes have failed (its log says why): it can write no more until it is started again";
        return Err(Failure::not_done(what));
    }
    Ok(())
}
