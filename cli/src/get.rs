//! `boltkv get`: the values of keys.

use std::collections::VecDeque;
use std::io::{self, BufWriter, IsTerminal as _, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use boltkv_client::{Bucket, Error};
use boltkv_protocol::text;
use bytes::{Bytes, BytesMut};
use clap::Args;
use serde::Serialize;
use tokio::task::JoinHandle;

use crate::failure::{Failure, Outcome, before_a_verdict};
use crate::remote::{InBucket, Remote, bytes_parser};

/// So many keys are asked for at once: enough to hide the way to the server, few enough for large values.
const AT_ONCE: usize = 16;

/// Print the values of keys
///
/// The value of one key is written as it is, byte for byte; only on a terminal a line end is added where there is none. The
/// values of several keys are written a line each, in the order of the keys: what would not fit a line as it is, is quoted and
/// escaped, and `(nil)` stands for a key that is not there. Each is read by itself, not all at one moment.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv get hello
  boltkv get --bucket users/eu ada
  boltkv get photo > photo.jpg
  boltkv get red green blue
  boltkv get --json red green | jq -r '.value | select(.) | @base64d'

With --json each line is {\"key\":\"b64\",\"value\":\"b64\"}; \"value\" is null where there is no such key.

Exit code 1: one of the keys is not there.")]
pub(crate) struct Get {
    /// The keys, byte for byte
    #[arg(value_name = "KEY", value_parser = bytes_parser(), required = true)]
    keys: Vec<Bytes>,
    /// Print lines of JSON, everything binary in base64
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    bucket: InBucket,
    #[command(flatten)]
    remote: Remote,
}

impl Get {
    pub(crate) fn run(&self) -> Outcome {
        let path = self.bucket.of_entries()?;
        self.remote.run(async |client| {
            let bucket = client.bucket_at(path);
            match self.keys.as_slice() {
                [key] if !self.json => {
                    let value = self.bucket.or_empty(bucket.get(key).await, None)?;
                    let value = value.ok_or_else(|| self.bucket.no_key(key))?;
                    print_alone(&value).map_err(|error| Failure::stdout(&error))
                }
                keys => self.print_each(&bucket, keys).await,
            }
        })
    }

    /// Prints a line for each key, and then says which were not there.
    async fn print_each(&self, bucket: &Bucket, keys: &[Bytes]) -> Outcome {
        let mut out = BufWriter::new(io::stdout().lock());
        let mut missing = Vec::new();
        let mut asked: VecDeque<JoinHandle<Result<Option<Bytes>, Error>>> = VecDeque::new();
        let mut to_ask = keys.iter();
        for key in keys {
            for next in to_ask.by_ref().take(AT_ONCE - asked.len()) {
                let (bucket, next) = (bucket.clone(), next.clone());
                asked.push_back(tokio::spawn(async move { bucket.get(next).await }));
            }
            let Some(answer) = asked.pop_front() else { break };
            let answer = answer.await.map_err(|error| Failure::not_done(format!("could not ask: {error}")))?;
            let value = self.bucket.or_empty(answer, None)?;
            if value.is_none() {
                missing.push(key);
            }
            let printed = self.print_line(key, value.as_deref(), &mut out);
            before_a_verdict(printed.map_err(|error| Failure::stdout(&error)))?;
        }
        before_a_verdict(out.flush().map_err(|error| Failure::stdout(&error)))?;
        match missing.as_slice() {
            [] => Ok(()),
            missing => Err(self.bucket.no_keys(missing)),
        }
    }

    fn print_line(&self, key: &[u8], value: Option<&[u8]>, out: &mut impl Write) -> io::Result<()> {
        if self.json {
            let line = Line { key: STANDARD.encode(key), value: value.map(|value| STANDARD.encode(value)) };
            serde_json::to_writer(&mut *out, &line)?;
        } else if let Some(value) = value {
            let mut line = BytesMut::new();
            text::write_value(value, &mut line);
            out.write_all(&line)?;
        } else {
            out.write_all(text::NIL.as_bytes())?;
        }
        out.write_all(b"\n")
    }
}

#[derive(Serialize)]
struct Line {
    key: String,
    value: Option<String>,
}

fn print_alone(value: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(value)?;
    if io::stdout().is_terminal() && !value.ends_with(b"\n") {
        out.write_all(b"\n")?;
    }
    out.flush()
}
