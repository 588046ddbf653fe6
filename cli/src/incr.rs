//! `boltkv incr`: adds to a number.

use std::io;

use clap::Args;

use crate::failure::{Failure, Outcome};
use crate::file::number_line;
use crate::remote::OneKey;

/// Add to the number that a key's value is, and print what it is now
///
/// The value is decimal text, such as -12, in 64 bits. A key that is not there counts as 0. However many do this at once,
/// nothing is lost. The bucket `default` is made when it is missing; any other must be there.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv incr visits
  boltkv incr --bucket stock apples -3

Exit codes: 1 the value is no number, or it would not fit 64 bits: nothing was written; 4 there was no \
answer: the number may have been changed or not.")]
pub(crate) struct Incr {
    /// What to add
    #[arg(value_name = "DELTA", index = 2, default_value_t = 1, allow_negative_numbers = true)]
    delta: i64,
    /// Print a JSON object: {"value":N}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    of: OneKey,
}

impl Incr {
    pub(crate) fn run(&self) -> Outcome {
        let OneKey { key, bucket, remote } = &self.of;
        let path = bucket.of_entries()?;
        let done = remote.run(async |client| {
            let its = client.bucket_at(path);
            let done = match its.increment(key, self.delta).await {
                Err(error) if bucket.is_yet_to_be_made(&error) => {
                    its.create_if_missing().await.map_err(Failure::write)?;
                    its.increment(key, self.delta).await
                }
                done => done,
            };
            done.map_err(Failure::write)
        })?;
        let printed = number_line(self.json, "value", done.value, &mut io::stdout().lock());
        printed.map_err(|error| Failure::result(&error))
    }
}
