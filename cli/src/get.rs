//! `boltkv get`: the value of a key.

use std::io::{self, IsTerminal as _, Write as _};

use bytes::Bytes;
use clap::Args;

use crate::failure::{Failure, Outcome};
use crate::remote::{InBucket, Remote, bytes_parser};

/// Print the value of a key
///
/// The value is written as it is, byte for byte. Only on a terminal a line end is added where there is none.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv get hello
  boltkv get --bucket users/eu ada
  boltkv get photo > photo.jpg

Exit code 1: there is no such key.")]
pub(crate) struct Get {
    /// The key, byte for byte
    #[arg(value_name = "KEY", value_parser = bytes_parser())]
    key: Bytes,
    #[command(flatten)]
    bucket: InBucket,
    #[command(flatten)]
    remote: Remote,
}

impl Get {
    pub(crate) fn run(&self) -> Outcome {
        let path = self.bucket.of_entries()?;
        let value = self.remote.run(async |client| {
            let bucket = client.bucket_at(path);
            self.bucket.or_empty(bucket.get(&self.key).await, None)
        })?;
        let value = value.ok_or_else(|| self.bucket.no_key(&self.key))?;
        print(&value).map_err(|error| Failure::stdout(&error))
    }
}

fn print(value: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(value)?;
    if io::stdout().is_terminal() && !value.ends_with(b"\n") {
        out.write_all(b"\n")?;
    }
    out.flush()
}
