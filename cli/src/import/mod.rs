//! `boltkv import`: into the file of a running server, an export's lines or what a Redis has.
//!
//! `lines` puts lines in, `times` the times that are among them; `redis` copies a Redis.

mod lines;
mod redis;
mod times;

use std::path::PathBuf;

use boltkv_client::{Error, ErrorCode};
use clap::Args;

use crate::failure::Outcome;
use crate::lines::Input;
use crate::remote::Remote;
use redis::RedisArgs;

/// A transaction has at most so many lines, or changes, because all other writes wait for it,
const BATCH: usize = 1_000;
/// and no further one once they have so many bytes.
const BATCH_BYTES: u64 = 1 << 20;

/// Put the lines of an export, or what a Redis has, into the file of a running server
///
/// Reads what `boltkv export` and `boltkv file export` write: buckets that are missing are made, their sequences set, entries
/// put, nothing deleted. A bucket's line must come before what is in it, but for `default`, which is made when it is missing.
/// Lines are put in 1,000 (or 1 MiB) at a time, each time as one transaction. Blank lines are passed over, and not counted: not in messages, and not by --skip. A server that is restarted, or busy, is waited for, as long as --timeout. The first line that
/// cannot be used ends it: then all lines before that one are there, nothing of it or after it is, and the message says how
/// many they were. To import the same lines again does no harm, but to times: keys whose times an export of a file has are
/// given these at the end; lines of `boltkv export` have none, and keys that they put never expire, also those that did before.
///
/// With --from-redis a running Redis is copied, or whatever speaks its protocol: its strings and hashes, with the times at
/// which they expire. Database 0 goes into the bucket `default`, 1 into `db1`; a hash is a bucket within. What is there
/// already, and equal, is not written again, so that a copy that was interrupted goes on by the same command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv import everything.jsonl
  boltkv export --addr old:7878 | boltkv import --addr new:7878
  boltkv import --skip 52000 everything.jsonl   # goes on behind what a message has said is there
  boltkv import --csv users.csv
  boltkv import --from-redis 127.0.0.1:6379
  boltkv import --from-redis redis://10.0.0.5 --redis-db all --redis-password-file redis.pass
  boltkv import --from-redis rediss://db.example.org --redis-tls-ca ca.pem

Exit codes: 1 a line that cannot be used, keys that boltkv cannot hold, or a refusal; 3 a server was away for too long; \
4 it is not known whether the lines that the message names are there: the same import, or --skip, goes on")]
pub(crate) struct Import {
    /// What to read; `-`, or none, is standard input
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Read comma-separated values: a header that names the columns bucket, key and value (and sequence, base64), then a
    /// record for each entry or bucket
    #[arg(long)]
    csv: bool,
    /// Pass over the first so many lines (of CSV: records) that are not blank, which are there already, or cannot be used
    #[arg(long, value_name = "LINES", default_value_t = 0)]
    skip: u64,
    #[command(flatten)]
    redis: RedisArgs,
    /// Say as a JSON object what was put in: {"lines":N}, of CSV records, or how the databases of a Redis fared
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

impl Import {
    pub(crate) fn run(&self) -> Outcome {
        if let Some(from) = self.redis.from()? {
            return self.copy_redis(from);
        }
        let mut input = Input::open(self.file.as_deref(), self.csv)?;
        self.remote.run(async |client| self.import(&client, &mut input).await)
    }
}

/// Whether what was not done, or may have been, is tried again: to put the same in twice does no harm.
fn may_be_sent_again(error: &Error) -> bool {
    match error.code() {
        Some(ErrorCode::NoSpace | ErrorCode::StorageFailed) => false,
        _ => error.is_passing() || error.is_outcome_unknown(),
    }
}
