//! `boltkv watch`: what is committed on a server, as it comes.

use std::io::{self, Write};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use boltkv_client::{Change, ChangeKind, Error, Path, WatchPosition, Watched};
use boltkv_protocol::text;
use bytes::{Bytes, BytesMut};
use clap::Args;
use serde::Serialize;

use crate::arguments::some_seconds;
use crate::failure::{Failure, Outcome};
use crate::file::json_line;
use crate::moment;
use crate::remote::{InBucket, Remote, bytes_parser};

/// Print what is committed on a server, as it comes
///
/// Every transaction that changes the bucket or anything within it, in order and none left out, once it is on the disk. A
/// line tells its position and time; then comes a line for each change. The first line tells where the watch begins. Where the
/// connection is lost it goes on behind what it has printed; over a restart of the server, too, if that keeps what it needs
/// (`serve --journal-keep`).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv watch
  boltkv watch user: --bucket users/eu --keys-only
  boltkv watch --bucket / --from 5f0c62d1a97be340:1207
  boltkv watch --from oldest --limit 10
  boltkv watch --json | jq -c '.changes[]?'

Lines of changes: PUT BUCKET KEY VALUE; DELETE BUCKET KEY; DELETE-RANGE BUCKET FIRST LAST; CREATE, DROP BUCKET; \
MOVE BUCKET BUCKET; SEQUENCE BUCKET N. With --json a line is a transaction, everything binary in base64:
  {\"position\":\"EPOCH:TXID\"}      where the watch begins
  {\"position\":\"EPOCH:TXID\",\"time\":MS,\"changes\":
   [{\"change\":\"put\",\"bucket\":[\"b64\"],\"key\":\"b64\",\"value\":\"b64\"},…]}
A change is put (of a value that does not fit a frame: size), delete, delete-range (to: the last key), create, drop, move \
(to: its new path), sequence (sequence).

Exit code 1: what is asked for is not kept any more: read the state anew; or the server keeps no journal.")]
pub(crate) struct Watch {
    /// Only keys of the bucket that start so, byte for byte, and buckets in it, with all within
    #[arg(value_name = "PREFIX", value_parser = bytes_parser())]
    prefix: Option<Bytes>,
    /// The same, as a flag
    #[arg(long = "prefix", value_name = "PREFIX", value_parser = bytes_parser(), conflicts_with = "prefix")]
    prefix_flag: Option<Bytes>,
    /// Begin behind this transaction, as an earlier watch has named it, or with the `oldest` that is kept; else from now on
    #[arg(long, value_name = "EPOCH:TXID", value_parser = position)]
    from: Option<From>,
    /// Leave values out
    #[arg(long, short)]
    keys_only: bool,
    /// End after so many transactions
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<u64>,
    /// How long the server may be away before the watch ends
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = some_seconds)]
    patience: Duration,
    /// Print lines of JSON, everything binary in base64
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    bucket: InBucket,
    #[command(flatten)]
    remote: Remote,
}

/// Where to begin.
#[derive(Debug, Clone, Copy)]
enum From {
    Oldest,
    Behind(WatchPosition),
}

fn position(text: &str) -> Result<From, String> {
    if text == "oldest" {
        return Ok(From::Oldest);
    }
    let parsed = text.split_once(':').and_then(|(epoch, txid)| {
        let (epoch, txid) = (u64::from_str_radix(epoch, 16).ok()?, txid.parse().ok()?);
        Some(From::Behind(WatchPosition { epoch, txid }))
    });
    parsed.ok_or_else(|| "a position is EPOCH:TXID, as `boltkv watch` prints it, or `oldest`".into())
}

/// Why a watch has ended, and where another could begin.
fn ended(error: Error) -> Failure {
    let oldest =
        error.oldest_position().map(|oldest| format!("; the oldest position that is kept is {}", shown(oldest)));
    Failure::from(error).followed_by(&oldest.unwrap_or_default())
}

fn shown(WatchPosition { epoch, txid }: WatchPosition) -> String {
    format!("{epoch:016x}:{txid}")
}

impl Watch {
    pub(crate) fn run(&self) -> Outcome {
        self.remote.run(async |client| {
            let mut wanted = client.bucket_at(self.bucket.path.clone()).watch().patience(self.patience);
            wanted = match self.from {
                None => wanted,
                Some(From::Oldest) => wanted.from_oldest(),
                Some(From::Behind(position)) => wanted.after(position),
            };
            if let Some(prefix) = self.prefix.as_ref().or(self.prefix_flag.as_ref()) {
                wanted = wanted.prefix(prefix);
            }
            if self.keys_only {
                wanted = wanted.keys_only();
            }
            let mut watching = wanted.stream().await.map_err(ended)?;
            print(|out| self.print_position(watching.position(), None, out))?;
            let mut left = self.limit.unwrap_or(u64::MAX);
            while left > 0
                && let Some(watched) = watching.next().await
            {
                let watched = watched.map_err(ended)?;
                print(|out| self.print_transaction(&watched, out))?;
                left -= 1;
            }
            Ok(())
        })
    }

    fn print_position(&self, position: WatchPosition, time_ms: Option<u64>, out: &mut Vec<u8>) -> io::Result<()> {
        let position = shown(position);
        if self.json {
            return json_line(&Object { position, ..Object::default() }, out);
        }
        let time = time_ms.map_or_else(|| "the watch begins".into(), moment::shown);
        writeln!(out, "-- {position} {time}")
    }

    fn print_transaction(&self, watched: &Watched, out: &mut Vec<u8>) -> io::Result<()> {
        if self.json {
            let changes = watched.changes.iter().map(|change| ChangeObject::of(change, self.keys_only)).collect();
            let (position, time) = (shown(watched.position), Some(watched.time_ms));
            return json_line(&Object { position, time, changes: Some(changes) }, out);
        }
        self.print_position(watched.position, Some(watched.time_ms), out)?;
        watched.changes.iter().try_for_each(|change| self.print_change(change, out))
    }

    fn print_change(&self, change: &Change, out: &mut Vec<u8>) -> io::Result<()> {
        let Change { kind, path, key, value } = change;
        let bucket = word(path.to_string().as_bytes());
        let own = || bucket_word(path, key);
        match kind {
            ChangeKind::Put if self.keys_only => writeln!(out, "PUT {bucket} {}", word(key)),
            ChangeKind::Put => writeln!(out, "PUT {bucket} {} {}", word(key), value_word(value)),
            ChangeKind::PutTooLarge => {
                writeln!(out, "PUT {bucket} {} ({} bytes)", word(key), change.number().unwrap_or_default())
            }
            ChangeKind::Deleted => writeln!(out, "DELETE {bucket} {}", word(key)),
            ChangeKind::RangeDeleted => writeln!(out, "DELETE-RANGE {bucket} {} {}", word(key), word(value)),
            ChangeKind::BucketCreated => writeln!(out, "CREATE {}", own()),
            ChangeKind::BucketDeleted => writeln!(out, "DROP {}", own()),
            ChangeKind::BucketMoved => {
                let to = change.moved_to().unwrap_or(Path::ROOT);
                writeln!(out, "MOVE {} {}", own(), word(to.to_string().as_bytes()))
            }
            ChangeKind::Sequence => writeln!(out, "SEQUENCE {bucket} {}", change.number().unwrap_or_default()),
        }
    }
}

/// Writes lines all at once: whoever reads them has all of a transaction, or nothing.
fn print(print: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Outcome {
    let mut lines = Vec::new();
    let mut out = io::stdout().lock();
    let printed = print(&mut lines).and_then(|()| out.write_all(&lines)).and_then(|()| out.flush());
    printed.map_err(|error| Failure::stdout(&error))
}

/// A key or a path as the text dialect prints it.
fn word(key: &[u8]) -> String {
    let mut out = BytesMut::new();
    text::write_key(key, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn value_word(value: &[u8]) -> String {
    let mut out = BytesMut::new();
    text::write_value(value, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The path of a bucket in another one.
fn bucket_word(path: &Path, name: &[u8]) -> String {
    match path.child(name) {
        Ok(path) => word(path.to_string().as_bytes()),
        // The server has nothing so deep.
        Err(_) => format!("{} {}", word(path.to_string().as_bytes()), word(name)),
    }
}

#[derive(Default, Serialize)]
struct Object {
    position: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<ChangeObject>>,
}

#[derive(Default, Serialize)]
struct ChangeObject {
    change: &'static str,
    bucket: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<To>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum To {
    Key(String),
    Bucket(Vec<String>),
}

fn names(path: &Path) -> Vec<String> {
    path.names().map(|name| STANDARD.encode(name)).collect()
}

impl ChangeObject {
    fn of(change: &Change, keys_only: bool) -> Self {
        let (key, bucket) = (Some(STANDARD.encode(&change.key)), names(&change.path));
        let of = |change| Self { change, bucket, key, ..Self::default() };
        match change.kind {
            ChangeKind::Put if keys_only => of("put"),
            ChangeKind::Put => Self { value: Some(STANDARD.encode(&change.value)), ..of("put") },
            ChangeKind::PutTooLarge => Self { size: change.number(), ..of("put") },
            ChangeKind::Deleted => of("delete"),
            ChangeKind::RangeDeleted => {
                Self { to: Some(To::Key(STANDARD.encode(&change.value))), ..of("delete-range") }
            }
            ChangeKind::BucketCreated => of("create"),
            ChangeKind::BucketDeleted => of("drop"),
            ChangeKind::BucketMoved => Self { to: change.moved_to().map(|to| To::Bucket(names(&to))), ..of("move") },
            ChangeKind::Sequence => Self { sequence: change.number(), key: None, ..of("sequence") },
        }
    }
}
