//! `boltkv scan`: the entries of a bucket.

use std::io::{self, Write as _};
use std::ops::Bound;

use boltkv_client as client;
use boltkv_lines::Style;
use boltkv_protocol::text::default_bucket;
use bytes::{Bytes, BytesMut};
use clap::Args;

use crate::failure::{Failure, Outcome, note};
use crate::file::number_line;
use crate::remote::{InBucket, Remote, bytes_parser};
use crate::shell::quoted_for_shell;

/// Print the entries of a bucket, in key order
///
/// One entry a line, `key value`; a bucket within the bucket is `name/`. What would not fit a line as it is, is quoted and
/// escaped. All of it is one snapshot.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv scan
  boltkv scan user: --limit 10
  boltkv scan --bucket users/eu --from ada --to bob
  boltkv scan --count
  boltkv scan --json | jq -r 'select(.key) | .key | @base64d'

With --json a line is one of
  {\"key\":\"b64\",\"value\":\"b64\"}
  {\"key\":\"b64\",\"size\":N}          a value that does not fit a frame
  {\"bucket\":\"b64\"}
  {\"count\":N}                       with --count")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Scan {
    /// Only keys that start so, byte for byte
    #[arg(value_name = "PREFIX", value_parser = bytes_parser(), conflicts_with_all = ["from", "to"])]
    prefix: Option<Bytes>,
    /// The same, as a flag
    #[arg(long = "prefix", value_name = "PREFIX", value_parser = bytes_parser(), conflicts_with_all = ["prefix", "from", "to"])]
    prefix_flag: Option<Bytes>,
    /// From this key on
    #[arg(long, value_name = "KEY", value_parser = bytes_parser())]
    from: Option<Bytes>,
    /// Up to this key, which is not among them
    #[arg(long, value_name = "KEY", value_parser = bytes_parser())]
    to: Option<Bytes>,
    /// At most so many entries
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<u64>,
    /// From the highest key down
    #[arg(long, short)]
    reverse: bool,
    /// Print keys only
    #[arg(long, short, conflicts_with = "count")]
    keys_only: bool,
    /// Print only how many entries there are
    #[arg(long, short)]
    count: bool,
    /// Print lines of JSON, everything binary in base64
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    bucket: InBucket,
    #[command(flatten)]
    remote: Remote,
}

impl Scan {
    pub(crate) fn run(&self) -> Outcome {
        self.remote.run(async |client| {
            let scan = self.wanted(&client);
            let found = if self.count { self.print_count(scan).await? } else { self.print_entries(scan).await? };
            if !found {
                self.say_where_a_bucket_is(&client).await;
            }
            Ok(())
        })
    }

    /// For who has named a bucket where a prefix stands.
    async fn say_where_a_bucket_is(&self, client: &client::Client) {
        let Some(prefix) = self.prefix.as_ref().filter(|_| self.bucket.path == default_bucket()) else { return };
        let Ok(path) = client::Path::parse(prefix) else { return };
        if !path.is_root() && client.bucket_at(path.clone()).sequence().await.is_ok() {
            let command = format!("boltkv scan --bucket {}", quoted_for_shell(path.to_string()));
            note(&format!("no key begins with {path}; the entries of the bucket {path}: `{command}`"));
        }
    }

    fn wanted(&self, client: &client::Client) -> client::Scan {
        let mut scan = client.bucket_at(self.bucket.path.clone()).scan();
        scan = match self.prefix.as_ref().or(self.prefix_flag.as_ref()) {
            Some(prefix) => scan.prefix(prefix),
            None => scan.range(
                self.from.as_ref().map_or(Bound::Unbounded, Bound::Included),
                self.to.as_ref().map_or(Bound::Unbounded, Bound::Excluded),
            ),
        };
        if let Some(limit) = self.limit {
            scan = scan.limit(limit);
        }
        if self.reverse {
            scan = scan.reverse();
        }
        if self.keys_only { scan.keys_only() } else { scan }
    }

    /// As [`print()`].
    async fn print_count(&self, scan: client::Scan) -> Outcome<bool> {
        let count = self.bucket.or_empty(scan.count().await, 0)?;
        let printed = number_line(self.json, "count", count, &mut io::stdout().lock());
        printed.map_err(|error| Failure::stdout(&error))?;
        Ok(count > 0)
    }

    /// As [`print()`].
    async fn print_entries(&self, scan: client::Scan) -> Outcome<bool> {
        match self.bucket.or_empty(scan.stream().await.map(Some), None)? {
            Some(entries) => print(entries, self.style()).await,
            None => Ok(false),
        }
    }

    const fn style(&self) -> Style {
        match (self.json, self.keys_only) {
            (true, keys_only) => Style::Json { keys_only },
            (false, true) => Style::Keys,
            (false, false) => Style::Entries,
        }
    }
}

/// Lines are gathered up to about so many bytes before they are written: as much as a pipe holds.
const GATHERED: usize = 64 * 1024;

/// Prints entries as they come, and answers whether there are any. What came before an error is printed too.
pub(crate) async fn print(mut entries: client::Entries, style: Style) -> Outcome<bool> {
    let mut lines = BytesMut::with_capacity(2 * GATHERED);
    let mut out = io::stdout().lock();
    let mut write = |lines: &mut BytesMut| {
        let written = out.write_all(lines).and_then(|()| out.flush());
        lines.clear();
        written.map_err(|error| Failure::stdout(&error))
    };
    let mut found = false;
    let ended = loop {
        match entries.next().await {
            Some(Ok(entry)) => style.print(&entry, &mut lines).map_err(|error| Failure::stdout(&error))?,
            Some(Err(error)) => break Err(error.into()),
            None => break Ok(found),
        }
        found = true;
        if lines.len() >= GATHERED {
            write(&mut lines)?;
        }
    };
    write(&mut lines)?;
    ended
}
