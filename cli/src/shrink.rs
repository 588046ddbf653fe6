//! `boltkv shrink`: a server's file made smaller while the server goes on.

use std::io::{self, Write as _};

use clap::Args;
use indicatif::{BinaryBytes, HumanCount};
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::file::{Progress, json_line};
use crate::remote::Remote;

/// Make the file of a running server smaller
///
/// What was deleted leaves free pages in the file, which are used again. This gives them back to the system: pages at the end
/// of the file are moved into free ones before them, a little at a time between other writes, and the file is cut. Interrupted,
/// it leaves a sound file, and what was moved stays moved.
///
/// What an open snapshot can still see (a scan, a backup) is not cut off: run it again later.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv shrink
  boltkv shrink --json | jq .after

With --json: {\"before\":BYTES,\"after\":BYTES,\"moved\":PAGES}. A file that no server has open is made smaller by \
`boltkv file compact`, which writes it anew.")]
pub(crate) struct Shrink {
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Serialize)]
struct Done {
    before: u64,
    after: u64,
    moved: u64,
}

impl Shrink {
    pub(crate) fn run(&self) -> Outcome {
        let shrunk = self.remote.run(async |client| {
            let progress = Progress::of_pages(0);
            let told = |at: boltkv_client::Shrinking| {
                progress.is_of(at.moved + at.left);
                progress.reach(at.moved);
            };
            Ok(client.shrink(told).await?)
        })?;
        let done = Done { before: shrunk.before, after: shrunk.after, moved: shrunk.moved };
        let mut out = io::stdout().lock();
        let printed = if self.json {
            json_line(&done, &mut out)
        } else {
            let Done { before, after, moved } = done;
            writeln!(
                out,
                "{} before, {} now; {} {} moved",
                BinaryBytes(before),
                BinaryBytes(after),
                HumanCount(moved),
                if moved == 1 { "page" } else { "pages" }
            )
        };
        printed.map_err(|error| Failure::result(&error))
    }
}
