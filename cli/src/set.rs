//! `boltkv set`: puts a value under a key.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::time::Duration;

use boltkv_client::{Bucket, Cond, Error, Expiry, Written};
use boltkv_protocol::MAX_FRAME_LIMIT;
use bytes::Bytes;
use clap::Args;

use crate::arguments::key_lifetime;
use crate::condition::SetCondition;
use crate::failure::{Failure, Outcome};
use crate::moment;
use crate::remote::{InBucket, Remote, bytes_parser};

/// Put a value under a key
///
/// The value comes from the command line, from a file, or from standard input; it may hold any bytes, and is stored as it
/// is. When the command is done, the value is on the server's disk. The bucket `default` is made when it is missing; any
/// other must be there.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv set hello world
  boltkv set --bucket users/eu ada Lovelace
  boltkv set photo --file photo.jpg
  tar c docs | boltkv set docs.tar -
  boltkv set empty ''
  boltkv set lock \"$HOSTNAME\" --if-absent
  boltkv set counter 8 --if-equals 7
  boltkv set session:4711 ada --ttl 30m

Exit codes: 1 refused, or the condition does not hold: nothing was written; 3 no server was reached: \
nothing was written; 4 there was no answer: the value may be stored or not.")]
pub(crate) struct Set {
    /// The key, byte for byte
    #[arg(value_name = "KEY", value_parser = bytes_parser())]
    key: Bytes,
    /// The value; `-` reads it from standard input, and `''` is the empty one
    #[arg(value_name = "VALUE", allow_negative_numbers = true)]
    value: Option<OsString>,
    /// Read the value from this file; `-` is standard input
    #[arg(long, short, value_name = "FILE", conflicts_with = "value")]
    file: Option<PathBuf>,
    #[command(flatten)]
    condition: SetCondition,
    /// The key is gone after this long, such as 10s, 5m or 30d, by the server's clock; without this it stays
    #[arg(long, value_name = "TIME", value_parser = key_lifetime)]
    ttl: Option<Duration>,
    /// The key is gone from this time on, such as 2030-01-01T00:00:00Z, 2030-01-01 in UTC, or 1893456000 in seconds since 1970
    #[arg(long, value_name = "TIME", value_parser = moment::point, conflicts_with = "ttl")]
    expires: Option<u64>,
    #[command(flatten)]
    bucket: InBucket,
    #[command(flatten)]
    remote: Remote,
}

impl Set {
    pub(crate) fn run(&self) -> Outcome {
        let value = self.read_value()?;
        let path = self.bucket.of_entries()?;
        self.remote.run(async |client| {
            let bucket = client.bucket_at(path);
            self.store(&bucket, value).await
        })
    }

    async fn store(&self, bucket: &Bucket, value: Bytes) -> Outcome {
        let cond = self.condition.cond();
        let stored = match self.set(bucket, &value, cond.clone()).await {
            Err(error) if self.bucket.is_yet_to_be_made(&error) => {
                // A bucket that is only made to hold nothing is not made.
                if matches!(cond, Cond::IfPresent | Cond::IfEquals(_)) {
                    return Err(self.bucket.no_key(&self.key));
                }
                bucket.create_if_missing().await.map_err(Failure::write)?;
                self.set(bucket, &value, cond).await
            }
            other => other,
        };
        stored.map(drop).map_err(Failure::write)
    }

    async fn set(&self, bucket: &Bucket, value: &Bytes, cond: Cond) -> Result<Written, Error> {
        let ttl = self.ttl.map(|ttl| Expiry::In(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)));
        match self.expires.map(Expiry::At).or(ttl) {
            Some(expiry) => bucket.set_expiring(&self.key, value, cond, expiry).await,
            None => bucket.set_if(&self.key, value, cond).await,
        }
    }

    fn read_value(&self) -> Outcome<Bytes> {
        match (&self.file, &self.value) {
            (Some(path), _) if path.as_os_str() != "-" => {
                let failed = |error| Failure::unreachable(format!("could not read {}: {error}", path.display()));
                read_all(File::open(path).map_err(failed)?, failed)
            }
            (None, Some(value)) if value != "-" => Ok(value.clone().into_vec().into()),
            (None, None) => Err(Failure::usage(
                "no value: write it behind the key ('' is the empty one), `-` to read it from standard input, or --file FILE",
            )),
            _ => read_all(io::stdin().lock(), |error| {
                Failure::unreachable(format!("could not read standard input: {error}"))
            }),
        }
    }
}

/// Reads a value, but no more of it than any server would take.
fn read_all(from: impl Read, failed: impl Fn(io::Error) -> Failure) -> Outcome<Bytes> {
    let mut value = Vec::new();
    from.take(MAX_FRAME_LIMIT as u64 + 1).read_to_end(&mut value).map_err(failed)?;
    if value.len() > MAX_FRAME_LIMIT {
        return Err(Failure::not_done(format!(
            "VALUE_TOO_LARGE: the value has more than {MAX_FRAME_LIMIT} bytes, which no frame can carry"
        )));
    }
    Ok(value.into())
}
