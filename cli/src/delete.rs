//! `boltkv delete`: removes a key.

use bytes::Bytes;
use clap::Args;

use crate::failure::Outcome;
use crate::remote::{InBucket, Remote, bytes_parser};

/// Remove a key
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv delete hello
  boltkv delete --bucket users/eu ada

Exit code 1: there was no such key.")]
pub(crate) struct Delete {
    /// The key, byte for byte
    #[arg(value_name = "KEY", value_parser = bytes_parser())]
    key: Bytes,
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
            self.bucket.or_empty(bucket.delete(&self.key).await, false)
        })?;
        if existed { Ok(()) } else { Err(self.bucket.no_key(&self.key)) }
    }
}
