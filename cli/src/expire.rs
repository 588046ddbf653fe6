//! `boltkv expire`, `ttl` and `persist`: when keys expire.

use std::io::{self, Write as _};
use std::time::Duration;

use boltkv_client::{Bucket, Error, ExpireCond, ExpireTo, ExpirySet, Lifetime};
use clap::Args;

use crate::arguments::key_seconds;
use crate::failure::{Failure, Outcome};
use crate::moment;
use crate::remote::OneKey;

/// Have a key be gone after a time, or at one
///
/// The key may be that of a value, or of a bucket within the bucket, which then goes with all that is in it. Setting a value
/// again has it stay.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv expire session:4711 30m
  boltkv expire --bucket users eu 90d
  boltkv expire offer --at 2030-01-01T00:00:00Z

Exit codes: 1 there is no such key; 4 there was no answer: it may have been done or not.")]
pub(crate) struct Expire {
    /// After how long, such as 10s, 5m, 2h or 30d, by the server's clock; seconds where there is no unit
    #[arg(value_name = "TIME", index = 2, value_parser = key_seconds, required_unless_present = "at")]
    after: Option<Duration>,
    /// At this time, such as 2030-01-01T00:00:00Z, 2030-01-01 in UTC, or 1893456000 in seconds since 1970; one that is
    /// past removes the key
    #[arg(long, value_name = "TIME", value_parser = moment::point, conflicts_with = "after")]
    at: Option<u64>,
    #[command(flatten)]
    of: OneKey,
}

/// Have a key never expire
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv persist session:4711

Exit codes: 1 there is no such key, or it did not expire anyhow; 4 there was no answer: it may have been done or not.")]
pub(crate) struct Persist {
    #[command(flatten)]
    of: OneKey,
}

/// Print how long a key is there: seconds, or `never` for one that does not expire
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv ttl session:4711          # 1799.204
  boltkv ttl session:4711 --at     # 2026-11-24T12:30:00.000Z

With --json: {\"ttl\":1799.204}, or with --at {\"at\":\"2026-11-24T12:30:00.000Z\"}; null where it does not expire. Exit \
code 1: there is no such key.")]
pub(crate) struct Ttl {
    /// Print when it expires, by the server's clock
    #[arg(long)]
    at: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    of: OneKey,
}

impl Expire {
    pub(crate) fn run(&self) -> Outcome {
        let after = self.after.map(|after| ExpireTo::In(u64::try_from(after.as_millis()).unwrap_or(u64::MAX)));
        let Some(to) = self.at.map(ExpireTo::At).or(after) else { return Err(Failure::usage("no time")) };
        if set(&self.of, to)? { Ok(()) } else { Err(self.of.bucket.no_key(&self.of.key)) }
    }
}

impl Persist {
    pub(crate) fn run(&self) -> Outcome {
        if set(&self.of, ExpireTo::Never)? {
            return Ok(());
        }
        let what = format!("{} does not expire, or is not there", self.of.bucket.named(&self.of.key));
        Err(Failure::not_done(what))
    }
}

/// Whether it was done.
fn set(OneKey { key, bucket, remote }: &OneKey, to: ExpireTo) -> Outcome<bool> {
    let path = bucket.of_entries()?;
    remote.run(async |client| {
        let done: Result<ExpirySet, Error> = client.bucket_at(path).set_expiry(key, to, ExpireCond::Always).await;
        match done {
            Err(error) if bucket.is_yet_to_be_made(&error) => Ok(false),
            done => Ok(done.map_err(Failure::write)?.changed),
        }
    })
}

impl Ttl {
    pub(crate) fn run(&self) -> Outcome {
        let OneKey { key, bucket, remote } = &self.of;
        let path = bucket.of_entries()?;
        let found = remote.run(async |client| {
            let its: Bucket = client.bucket_at(path);
            bucket.or_empty(its.lifetime(key).await, None)
        })?;
        let shown = match found {
            None => return Err(bucket.no_key(key)),
            Some(Lifetime::Forever) => None,
            Some(Lifetime::Until { at_ms, .. }) if self.at => Some(moment::shown(at_ms)),
            Some(Lifetime::Until { left, .. }) => Some(format!("{:.3}", left.as_secs_f64())),
        };
        let mut out = io::stdout().lock();
        let printed = match shown.as_deref() {
            shown if !self.json => writeln!(out, "{}", shown.unwrap_or("never")),
            Some(moment) if self.at => writeln!(out, "{{\"at\":\"{moment}\"}}"),
            Some(seconds) => writeln!(out, "{{\"ttl\":{seconds}}}"),
            None => writeln!(out, "{{\"{}\":null}}", if self.at { "at" } else { "ttl" }),
        };
        printed.map_err(|error| Failure::stdout(&error))
    }
}
