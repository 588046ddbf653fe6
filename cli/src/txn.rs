//! `boltkv txn`: lines of the text dialect, done as one transaction.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use boltkv_client::{Client, Error, ErrorCode, Path, TxnPart};
use boltkv_lines::Object;
use boltkv_protocol::text::{self, Queued, QueuedAnswers, TextCommand};
use boltkv_protocol::{MAX_FRAME_LIMIT, NEVER, Reply, Txn};
use bytes::{Bytes, BytesMut};
use clap::Args;
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::remote::{InBucket, Remote};

/// Have several requests done as one transaction: all of them, or none
///
/// A request a line, as the text dialect has them: SET, GET, DELETE, SETNX, CAS, SCAN, BUCKET CREATE and so on; the value of a
/// SET is the rest of its line. Conditions on the state before it are lines, too: `IF ABSENT key`, `IF PRESENT key` and
/// `IF EQUALS key value`; where one does not hold, nothing is done. `BUCKET USE path` goes for the lines after it. Empty lines,
/// and those that begin with `#`, say nothing. A last line without its line end may have been cut off: nothing is sent then.
///
/// Each request sees what those before it did, and what each is answered with is printed in their order, as the text dialect
/// prints it. When the command is done, all of it is on the server's disk. The bucket `default` is made when it is missing and
/// something is written; any other must be there, or be made.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv txn transfer.txt
  printf 'IF EQUALS ada 10\\nSET ada 7\\nSET bob 3\\n' | boltkv txn --bucket accounts
  printf 'GET ada\\nGET bob\\n' | boltkv txn --bucket accounts --json

With --json it is {\"txid\":n,\"results\":[…]}, where a result is {\"value\":\"b64\"} (null where there is no such key), \
{\"written\":true}, {\"deleted\":true} (false where there was nothing), {\"count\":n}, {\"number\":n}, {\"sequence\":n}, \
{\"range\":{\"deleted\":n,\"more\":false}}, {\"changed\":true}, {\"expires\":ms} \
or {\"entries\":[…]}, as of `scan --json`.

Exit codes: 1 refused: nothing was done, and the message names the line; 2 a line cannot be used: nothing was sent; 5 a condition does not hold: nothing was \
done; 3 no server was reached: nothing was done; 4 there was no answer, and all of it may be done, or nothing; or it was done, and what came of it could not be printed.")]
pub(crate) struct TxnCommand {
    /// The file with the lines; `-`, or none, is standard input
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print JSON, everything binary in base64
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    bucket: InBucket,
    #[command(flatten)]
    remote: Remote,
}

/// A transaction as it was written.
#[derive(Debug)]
struct Written {
    queued: Queued,
    /// On which line each condition stands, and each request.
    conditions: Vec<usize>,
    requests: Vec<usize>,
}

impl TxnCommand {
    pub(crate) fn run(&self) -> Outcome {
        let Written { queued, conditions, requests } = Written::read(&self.read()?, &self.bucket.path)?;
        let (txn, answers) = queued.into_txn();
        let writes = txn.writes();
        let line_of = |part| match part {
            TxnPart::Condition(at) => conditions.get(usize::from(at)),
            TxnPart::Request(at) => requests.get(usize::from(at)),
        };
        self.remote.run(async |client| {
            let (txid, replies) = execute(&client, txn).await.map_err(|error| {
                let part = error.failed_part();
                let is_condition = error.code() == Some(ErrorCode::ConditionFailed);
                let failure = Failure::write(error);
                let failure = if is_condition { failure.of_a_condition() } else { failure };
                match part.and_then(|part| Some((part, line_of(part)?))) {
                    Some((part, line)) => failure.without_count(part).prefixed(&format!("line {line}")),
                    None => failure,
                }
            })?;
            let printed = if self.json { print_json(txid, replies) } else { print(&answers, replies) };
            printed.map_err(|error| if writes { Failure::result(&error) } else { Failure::stdout(&error) })
        })
    }

    fn read(&self) -> Outcome<Bytes> {
        let named = self.file.as_ref().filter(|file| file.as_os_str() != "-");
        let Some(path) = named else {
            return read_all(io::stdin().lock())
                .map_err(|error| Failure::unreachable(format!("could not read standard input: {error}")));
        };
        let read = File::open(path).and_then(read_all);
        read.map_err(|error| Failure::unreachable(format!("could not read {}: {error}", path.display())))
    }
}

/// Reads all, but no more than any server would take.
fn read_all(from: impl Read) -> io::Result<Bytes> {
    let mut all = Vec::new();
    from.take(MAX_FRAME_LIMIT as u64 + 1).read_to_end(&mut all)?;
    if all.len() > MAX_FRAME_LIMIT {
        let message = format!("it has more than {MAX_FRAME_LIMIT} bytes, which no frame can carry");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(all.into())
}

impl Written {
    /// Reads the lines of a transaction that begins in this bucket.
    fn read(all: &Bytes, bucket: &Path) -> Outcome<Self> {
        let queued = Queued::new(MAX_FRAME_LIMIT);
        let mut written = Self { queued, conditions: Vec::new(), requests: Vec::new() };
        let mut bucket = bucket.clone();
        let lines = all.split_inclusive(|&byte| byte == b'\n');
        for (line, text) in (1..).zip(lines) {
            let Some(text) = text.strip_suffix(b"\n") else {
                let what = "it has no line end, so it may have been cut off, and nothing was sent";
                return Err(Failure::usage(format!("line {line}: {what}")));
            };
            if text.starts_with(b"#") {
                continue;
            }
            let text = all.slice_ref(text.strip_suffix(b"\r").unwrap_or(text));
            let added = match text::parse(&text, &bucket) {
                Ok(Some(command)) => written.add(line, command),
                Ok(None) => continue,
                Err(error) => Err(error.to_string()),
            };
            match added {
                Ok(None) => {}
                Ok(Some(path)) => bucket = path,
                Err(what) => return Err(Failure::usage(format!("line {line}: {what}"))),
            }
        }
        Ok(written)
    }

    /// Adds what a line asks for; the bucket that it goes to, where that is what it says.
    fn add(&mut self, line: usize, command: TextCommand) -> Result<Option<Path>, String> {
        let is_condition = matches!(command, TextCommand::Condition(_));
        match self.queued.add(command).map_err(|error| error.to_string())? {
            None if is_condition => self.conditions.push(line),
            None => self.requests.resize(self.queued.requests(), line),
            Some(TextCommand::Use(path)) => return Ok(Some(path)),
            Some(_) => {
                return Err("this is no part of a transaction, which goes from the first line to the last".into());
            }
        }
        Ok(None)
    }
}

/// Has it done; makes the bucket `default` where it writes and that bucket is missing.
async fn execute(client: &Client, txn: Txn) -> Result<(u64, Vec<Reply>), Error> {
    let not_found = |error: &Error| error.code() == Some(ErrorCode::BucketNotFound);
    match client.execute(txn.clone()).await {
        Err(error) if txn.writes() && not_found(&error) => {
            let default = client.bucket_at(text::default_bucket());
            match default.scan().limit(1).count().await {
                Err(missing) if not_found(&missing) => default.create_if_missing().await?,
                _ => return Err(error),
            };
            client.execute(txn).await
        }
        done => done,
    }
}

fn print(answers: &QueuedAnswers, replies: Vec<Reply>) -> io::Result<()> {
    let mut lines = BytesMut::new();
    answers.write_each(replies, &mut lines);
    write(&lines)
}

fn write(lines: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(lines)?;
    out.flush()
}

/// What came of a transaction, as JSON.
#[derive(Serialize)]
struct Done {
    txid: u64,
    results: Vec<Came>,
}

/// What came of a request, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Came {
    Value(Option<String>),
    Written(bool),
    Deleted(bool),
    Count(u64),
    Number(i64),
    Sequence(u64),
    Range {
        deleted: u64,
        more: bool,
    },
    /// Whether it was changed when a key expires.
    Changed(bool),
    /// When a key expires, in milliseconds since 1970; null: never.
    Expires(Option<u64>),
    Entries(Vec<Object>),
}

fn print_json(txid: u64, replies: Vec<Reply>) -> io::Result<()> {
    let results = replies.into_iter().map(|reply| match reply {
        Reply::Value(value) => Came::Value(Some(STANDARD.encode(value))),
        Reply::Deleted { existed, .. } => Came::Deleted(existed),
        Reply::Count(count) => Came::Count(count),
        Reply::Number { value, .. } => Came::Number(value),
        Reply::Sequence { sequence, .. } => Came::Sequence(sequence),
        Reply::DeletedRange { deleted, more, .. } => Came::Range { deleted, more },
        Reply::ExpirySet { changed, .. } => Came::Changed(changed),
        Reply::ExpiryTime { at, .. } => Came::Expires(Some(at).filter(|at| *at != NEVER)),
        Reply::Entries(entries) => Came::Entries(entries.iter().map(|entry| Object::of(entry, false)).collect()),
        // The only error that is a result: there is no such key.
        Reply::Error(_) => Came::Value(None),
        _ => Came::Written(true),
    });
    let mut line = serde_json::to_vec(&Done { txid, results: results.collect() })?;
    line.push(b'\n');
    write(&line)
}
