//! `boltkv file peek FILE scan`: the entries of a bucket.

use std::io::Write as _;
use std::ops::Bound;

use boltkv_client::{self as client, EntryKind};
use boltkv_lines::Style;
use bytes::{Bytes, BytesMut};
use clap::Args;

use super::super::output::{json_line, stdout};
use super::pieces::{Entry, Pieces};
use crate::failure::{Failure, Outcome};
use crate::remote::bytes_parser;

/// Print the entries of a bucket, in key order
///
/// They are printed as `boltkv scan` does: `key value` a line; a bucket within the bucket is `name/`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file peek meta.db scan v1 --keys-only
  boltkv file peek app.db scan users eu --prefix ada
  boltkv file peek app.db scan users --from b --to c --limit 10
  boltkv file peek --json app.db scan users | jq -r 'select(.key) | .key | @base64d'

With --json a line is {\"key\":\"b64\",\"value\":\"b64\"} or {\"bucket\":\"b64\"}; the last one says how it was read: \
{\"pieces\":N,\"first_txid\":N,\"last_txid\":N}.")]
pub(super) struct Scan {
    /// The bucket: its name, or the names from the top down; without one, the buckets at the top
    #[arg(value_name = "BUCKET", value_parser = bytes_parser())]
    bucket: Vec<Bytes>,
    /// Only keys that start so, byte for byte
    #[arg(long, value_name = "PREFIX", value_parser = bytes_parser(), conflicts_with_all = ["from", "to"])]
    prefix: Option<Bytes>,
    /// From this key on
    #[arg(long, value_name = "KEY", value_parser = bytes_parser())]
    from: Option<Bytes>,
    /// Up to this key, which is not among them
    #[arg(long, value_name = "KEY", value_parser = bytes_parser())]
    to: Option<Bytes>,
    /// At most so many entries
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<u64>,
    /// Print keys only
    #[arg(long, short)]
    keys_only: bool,
}

impl Scan {
    pub(super) fn run(&self, pieces: &mut Pieces<'_>, json: bool) -> Outcome {
        let bucket: Vec<Vec<u8>> = self.bucket.iter().map(|name| name.to_vec()).collect();
        let style = match (json, self.keys_only) {
            (true, keys_only) => Style::Json { keys_only },
            (false, true) => Style::Keys,
            (false, false) => Style::Entries,
        };
        let failed = |error| Failure::stdout(&error);
        let from = self.prefix.as_ref().or(self.from.as_ref());
        let from = from.map_or(Bound::Unbounded, |from| Bound::Included(from.to_vec()));
        let (mut out, mut line, mut left) = (stdout(), BytesMut::new(), self.limit.unwrap_or(u64::MAX));
        let read = pieces.each(&bucket, from, |entry| {
            if left == 0 || self.is_behind(&entry.0) {
                return Ok(false);
            }
            left -= 1;
            line.clear();
            style.print(&shown(entry), &mut line).and_then(|()| out.write_all(&line)).map_err(failed)?;
            Ok(true)
        });
        // What came before an error is printed, too.
        if json && read.is_ok() {
            json_line(&pieces.read(), &mut out).map_err(failed)?;
        }
        out.flush().map_err(failed)?;
        pieces.say();
        read
    }

    /// Whether a key is behind all that are wanted.
    fn is_behind(&self, key: &[u8]) -> bool {
        self.prefix.as_ref().is_some_and(|prefix| !key.starts_with(prefix))
            || self.to.as_ref().is_some_and(|to| key >= &to[..])
    }
}

fn shown((key, value): Entry) -> client::Entry {
    let kind = if value.is_some() { EntryKind::Value } else { EntryKind::Bucket };
    client::Entry { kind, key: key.into(), value: value.unwrap_or_default().into() }
}
