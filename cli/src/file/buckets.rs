//! `boltkv file buckets`: the names of the buckets at the top.

use std::io::{self, IsTerminal as _};

use clap::Args;
use serde::Serialize;

use super::format::Format;
use super::output::{Base64, json_line};
use super::progress::Progress;
use super::target::Target;
use crate::failure::{Failure, Outcome};

/// Print the names of the buckets at the top
///
/// One name a line, in the order of the file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file buckets etcd.db
  boltkv file buckets --json etcd.db | jq -r '.bucket | @base64d'

With --json each line is {\"bucket\":\"b64\"}. Buckets within buckets: `boltkv file tree`.")]
pub(crate) struct Buckets {
    #[command(flatten)]
    pub(super) target: Target,
    /// How a name is printed [default: bytes, as bbolt does; on a terminal: auto]
    #[arg(long, short, value_enum, conflicts_with = "json")]
    pub(super) format: Option<Format>,
    /// Print lines of JSON, the names in base64
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    bucket: Base64<'a>,
}

impl Buckets {
    pub(crate) fn run(&self) -> Outcome {
        let db = self.target.open_to_read(Some("boltkv bucket list"))?;
        let tx = db.begin().map_err(|error| Failure::storage(self.target.path(), &error))?;
        let format = self.format.unwrap_or(if io::stdout().is_terminal() { Format::Auto } else { Format::Bytes });
        let _progress = Progress::while_printing("reading names");
        self.target.print(|out| {
            for found in tx.buckets() {
                let (name, _) = found?;
                if self.json {
                    json_line(&Line { bucket: Base64(name) }, out)?;
                } else {
                    format.write_line(name, out)?;
                }
            }
            Ok(())
        })
    }
}
