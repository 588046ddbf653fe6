//! `boltkv delete-range`: removes many keys.

use std::io;
use std::ops::Bound;

use boltkv_client::{Error, ErrorCode};
use bytes::Bytes;
use clap::{ArgGroup, Args};

use crate::failure::{Failure, Outcome};
use crate::file::number_line;
use crate::remote::{InBucket, Remote, bytes_parser};

/// Remove the keys between two bounds or of a prefix, and print how many they were
///
/// They go from the lowest on, at most 10,000 in one transaction, other writes in between: others may see a part of it
/// done, and what is gone before an error stays so. A bucket among them is an error; it is not removed.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").args(["prefix", "from", "to", "all"]).required(true).multiple(true))]
#[command(after_help = "Examples:
  boltkv delete-range --prefix session:
  boltkv delete-range --bucket log --to 2030-02
  boltkv delete-range --from a --to b --limit 1000

Exit code 1: refused; what was removed before stays so.")]
pub(crate) struct DeleteRange {
    /// Only keys that start so, byte for byte
    #[arg(long, value_name = "PREFIX", value_parser = bytes_parser(), conflicts_with_all = ["from", "to", "all"])]
    prefix: Option<Bytes>,
    /// From this key on
    #[arg(long, value_name = "KEY", value_parser = bytes_parser())]
    from: Option<Bytes>,
    /// Up to this key, which stays
    #[arg(long, value_name = "KEY", value_parser = bytes_parser())]
    to: Option<Bytes>,
    /// All keys of the bucket
    #[arg(long, conflicts_with_all = ["from", "to"])]
    all: bool,
    /// At most so many keys
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<u64>,
    /// Print a JSON object: {"deleted":N}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    bucket: InBucket,
    #[command(flatten)]
    remote: Remote,
}

impl DeleteRange {
    pub(crate) fn run(&self) -> Outcome {
        let path = self.bucket.of_entries()?;
        let deleted = self.remote.run(async |client| {
            let wanted = client.bucket_at(path).delete_range();
            let mut wanted = match &self.prefix {
                Some(prefix) => wanted.prefix(prefix),
                None => wanted.range(
                    self.from.as_ref().map_or(Bound::Unbounded, Bound::Included),
                    self.to.as_ref().map_or(Bound::Unbounded, Bound::Excluded),
                ),
            };
            if let Some(limit) = self.limit {
                wanted = wanted.limit(limit);
            }
            match wanted.run().await {
                Err(error) if self.bucket.is_yet_to_be_made(&error) => Ok(0),
                done => done.map(|done| done.deleted).map_err(refused),
            }
        })?;
        let printed = number_line(self.json, "deleted", deleted, &mut io::stdout().lock());
        printed.map_err(|error| Failure::result(&error))
    }
}

fn refused(error: Error) -> Failure {
    let is_for_a_bucket = error.code() == Some(ErrorCode::IncompatibleValue);
    let hint = if is_for_a_bucket { "; a range removes no bucket: `boltkv bucket delete PATH` does" } else { "" };
    Failure::write(error).followed_by(hint)
}
