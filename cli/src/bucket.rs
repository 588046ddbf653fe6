//! `boltkv bucket`: what is done to buckets, not to what is in them.

use std::io::{self, Write as _};

use boltkv_client::Path;
use boltkv_lines::Style;
use clap::{Args, Subcommand};

use crate::failure::{Failure, Outcome};
use crate::remote::{Remote, path_parser};
use crate::rows::as_json;
use crate::scan;
use crate::stats::as_lines;

/// Create, delete, move, list and measure buckets, and their sequences
#[derive(Debug, Subcommand)]
pub(crate) enum Bucket {
    Create(Create),
    #[command(visible_alias = "rm")]
    Delete(Delete),
    #[command(visible_alias = "ls")]
    List(List),
    Move(Move),
    Stat(Stat),
    Sequence(Sequence),
    NextSequence(NextSequence),
    SetSequence(SetSequence),
}

/// Create a bucket, and its parents where they are missing
///
/// One that is there already is left as it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv bucket create users/eu
  boltkv bucket create 'a\\/b'     # one bucket, whose name has a slash in it")]
pub(crate) struct Create {
    /// Its names from the top down, separated by `/`; `\/`, `\\` and `\xNN` escape
    #[arg(value_name = "PATH", value_parser = path_parser())]
    path: Path,
    #[command(flatten)]
    remote: Remote,
}

/// Delete a bucket with everything in it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv bucket delete users/eu

Exit code 1: there is no such bucket.")]
pub(crate) struct Delete {
    /// Its names from the top down, separated by `/`; `\/`, `\\` and `\xNN` escape
    #[arg(value_name = "PATH", value_parser = path_parser())]
    path: Path,
    #[command(flatten)]
    remote: Remote,
}

/// List the buckets at the top, or those within a bucket
///
/// One name a line, as it stands in a path: what a script reads here, it can give to `--bucket`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv bucket list
  boltkv bucket list users
  boltkv bucket list --json | jq -r '.bucket | @base64d'

With --json each line is {\"bucket\":\"b64\"}.")]
pub(crate) struct List {
    /// The bucket in which to look
    #[arg(value_name = "PATH", default_value = "/", value_parser = path_parser())]
    path: Path,
    /// Print lines of JSON, the names in base64
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Move a bucket, with everything in it, into another bucket, or give it another name
///
/// The new path is the whole one, with the bucket's name at its end, which may be another. Nothing is copied, however large
/// it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv bucket move inbox/report archive/report
  boltkv bucket move users/eu eu                  # to the top
  boltkv bucket move users/eu users/europe        # another name

Exit code 1: there is no such bucket or parent, or the place is taken.")]
pub(crate) struct Move {
    /// Where it is
    #[arg(value_name = "PATH", value_parser = path_parser())]
    path: Path,
    /// Where it is to be
    #[arg(value_name = "NEW_PATH", value_parser = path_parser())]
    to: Path,
    #[command(flatten)]
    remote: Remote,
}

/// Print a bucket's figures, a name and a number a line
///
/// Its keys, pages and bytes, with those of all buckets in it, as bbolt counts them; `depth` is that of the deepest. The server
/// reads all pages of the bucket for it, while everything else goes on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv bucket stat users
  boltkv bucket stat users --json | jq .keys
  boltkv bucket stat huge --timeout 5m")]
pub(crate) struct Stat {
    /// The bucket
    #[arg(value_name = "PATH", value_parser = path_parser())]
    path: Path,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

impl Stat {
    fn run(&self) -> Outcome {
        let stat = self.remote.run(async |client| Ok(client.bucket_at(self.path.clone()).stat().await?))?;
        let figures = stat.figures().map(|(name, figure)| (name.to_owned(), figure.to_string()));
        let text = if self.json { as_json(&figures) } else { as_lines(&figures) };
        io::stdout().lock().write_all(text.as_bytes()).map_err(|error| Failure::stdout(&error))
    }
}

/// Print a bucket's sequence
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv bucket sequence orders")]
pub(crate) struct Sequence {
    /// The bucket
    #[arg(value_name = "PATH", value_parser = path_parser())]
    path: Path,
    #[command(flatten)]
    remote: Remote,
}

/// Raise a bucket's sequence by one, and print it
///
/// The sequence is a number that is stored with the bucket; nobody else who raises it gets the same.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv bucket next-sequence orders")]
pub(crate) struct NextSequence {
    /// The bucket
    #[arg(value_name = "PATH", value_parser = path_parser())]
    path: Path,
    #[command(flatten)]
    remote: Remote,
}

/// Set a bucket's sequence
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv bucket set-sequence orders 1000")]
pub(crate) struct SetSequence {
    /// The bucket
    #[arg(value_name = "PATH", value_parser = path_parser())]
    path: Path,
    /// What its sequence is to be: the next one raised is one higher
    #[arg(value_name = "N")]
    sequence: u64,
    #[command(flatten)]
    remote: Remote,
}

impl Bucket {
    pub(crate) fn run(&self) -> Outcome {
        match self {
            Self::Create(Create { path, remote }) => remote.run(async |client| {
                client.bucket_at(path.clone()).create_if_missing().await.map(drop).map_err(Failure::write)
            }),
            Self::Delete(Delete { path, remote }) => remote.run(async |client| {
                client.bucket_at(path.clone()).delete_bucket().await.map(drop).map_err(Failure::write)
            }),
            Self::Move(Move { path, to, remote }) => remote
                .run(async |client| client.bucket_at(path.clone()).move_to(to).await.map(drop).map_err(Failure::write)),
            Self::Stat(stat) => stat.run(),
            Self::Sequence(Sequence { path, remote }) => {
                let sequence = remote.run(async |client| Ok(client.bucket_at(path.clone()).sequence().await?))?;
                writeln!(io::stdout().lock(), "{sequence}").map_err(|error| Failure::stdout(&error))
            }
            Self::NextSequence(NextSequence { path, remote }) => {
                let raised = remote
                    .run(async |client| client.bucket_at(path.clone()).next_sequence().await.map_err(Failure::write))?;
                writeln!(io::stdout().lock(), "{}", raised.value).map_err(|error| Failure::result(&error))
            }
            Self::SetSequence(SetSequence { path, sequence, remote }) => remote.run(async |client| {
                client.bucket_at(path.clone()).set_sequence(*sequence).await.map(drop).map_err(Failure::write)
            }),
            Self::List(List { path, json, remote }) => remote.run(async |client| {
                let style = if *json { Style::Json { keys_only: true } } else { Style::Names };
                scan::print(client.bucket_at(path.clone()).buckets().stream().await?, style).await.map(drop)
            }),
        }
    }
}
