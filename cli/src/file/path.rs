//! `boltkv file path`: the pages on the way to a key.

use std::io::Write as _;

use boltkv_storage::tools::RawFile;
use bytes::Bytes;
use clap::Args;
use serde::Serialize;

use super::format::ParseFormat;
use super::output::json_line;
use super::target::Target;
use crate::failure::{Failure, Outcome};
use crate::remote::bytes_parser;

/// Print the pages on the way to a key
///
/// From the root page of the file through the trees of its buckets to the leaf that holds the key, one page a line: its
/// number and its type. A bucket that lies inline, in the page of its own entry, adds none.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file path etcd.db meta term
  boltkv file path app.db users eu                 # the entry of a bucket
  boltkv file path --parse-format hex etcd.db key 00000000000000025f0000000000000000

Exit code 1: there is no such key.")]
pub(crate) struct Path {
    #[command(flatten)]
    target: Target,
    /// The names of the buckets from the top down, and at last a key, or a bucket
    #[arg(value_names = ["BUCKET", "KEY"], num_args = 1.., required = true, value_parser = bytes_parser())]
    names: Vec<Bytes>,
    /// How the key is given
    #[arg(long, value_enum, default_value = "ascii-encoded")]
    parse_format: ParseFormat,
    /// Print lines of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    page: u64,
    r#type: String,
}

impl Path {
    pub(crate) fn run(&self) -> Outcome {
        let mut names = self.names.clone();
        if let Some(key) = names.last_mut() {
            let parsed = self.parse_format.parse(key);
            *key = parsed.map_err(|why| Failure::usage(format!("the key: {why}")))?.into();
        }
        let db = self.target.open_to_read(None)?;
        let failed = |error| Failure::storage(self.target.path(), &error);
        let tx = db.begin().map_err(failed)?;
        let Some(pages) = tx.pages_to(&names).map_err(failed)? else {
            return Err(Failure::not_done(format!("{}: there is no such key", self.target.path().display())));
        };
        let file = RawFile::open(self.target.path(), None).map_err(failed)?;
        self.target.print(|out| {
            for page in pages {
                let r#type = file.header(page)?.page_type().to_string();
                if self.json {
                    json_line(&Line { page, r#type }, out)?;
                } else {
                    writeln!(out, "{page} {type}")?;
                }
            }
            Ok(())
        })
    }
}
