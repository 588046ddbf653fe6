//! `boltkv health`: for whoever watches over a server, such as a container's `HEALTHCHECK`.

use clap::Args;

use crate::failure::{Failure, Outcome};
use crate::remote::Remote;

/// Exit with 0 if the server answers, with 1 if not
///
/// Prints nothing where all is well.
#[derive(Debug, Args)]
#[command(mut_arg("timeout", |timeout| timeout.default_value("3")))]
#[command(after_help = "Examples:
  boltkv health
  HEALTHCHECK CMD [\"/boltkv\", \"health\"]     (in a Dockerfile)")]
pub(crate) struct Health {
    #[command(flatten)]
    remote: Remote,
}

impl Health {
    pub(crate) fn run(&self) -> Outcome {
        // A health check knows two exit codes only: whatever is wrong is 1.
        self.remote.run(async |client| Ok(client.ping().await?)).map_err(Failure::into_not_done)
    }
}
