//! `boltkv delete`: removes a key.

use bytes::Bytes;
use clap::Args;

use crate::condition::DeleteCondition;
use crate::failure::{Failure, Outcome};
use crate::remote::{InBucket, Remote, bytes_parser};

/// Remove a key
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv delete hello
  boltkv delete --bucket users/eu ada
  boltkv delete lock --if-equals \"$HOSTNAME\"     (only one's own)

Exit code 1: there was no such key, or the condition does not hold.")]
pub(crate) struct Delete {
    /// The key, byte for byte
    #[arg(value_name = "KEY", value_parser = bytes_parser())]
    key: Bytes,
    #[command(flatten)]
    condition: DeleteCondition,
    #[command(flatten)]
    bucket: InBucket,
    #[command(flatten)]
    remote: Remote,
}

impl Delete {
    pub(crate) fn run(&self) -> Outcome {
        let path = self.bucket.of_entries()?;
        let existed = self.remote.run(async |client| {
            let bucket = client.bucket_at(path);
            match bucket.delete_if(&self.key, self.condition.cond()).await {
                Err(error) if self.bucket.is_yet_to_be_made(&error) => Ok(false),
                answer => answer.map(|deleted| deleted.existed).map_err(Failure::write),
            }
        })?;
        if existed { Ok(()) } else { Err(self.bucket.no_key(&self.key)) }
    }
}
