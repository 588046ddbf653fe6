//! `boltkv file keys`: the keys of a bucket.

use bytes::Bytes;
use clap::Args;
use serde::Serialize;

use super::format::Format;
use super::memory::Memory;
use super::output::{Base64, json_line};
use super::progress::Progress;
use super::question::path_to_ask;
use super::target::Target;
use crate::failure::{Failure, Outcome};
use crate::remote::bytes_parser;

/// Print the keys of a bucket, in their order
///
/// One key a line; the names of buckets within the bucket are among them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file keys etcd.db meta
  boltkv file keys app.db users eu              # the bucket eu within the bucket users
  boltkv file keys --format hex etcd.db key | head
  boltkv file keys --json etcd.db meta | jq -r '.key | @base64d'

With --json a line is {\"key\":\"b64\"}, or {\"bucket\":\"b64\"} for a bucket.")]
pub(crate) struct Keys {
    #[command(flatten)]
    pub(super) target: Target,
    /// The bucket: its name, or the names from the top down
    #[arg(value_name = "BUCKET", required = true, value_parser = bytes_parser())]
    pub(super) bucket: Vec<Bytes>,
    /// How a key is printed
    #[arg(long, short, value_enum, default_value = "auto", conflicts_with = "json")]
    pub(super) format: Format,
    /// Print lines of JSON, the keys in base64
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Line<'a> {
    Key(Base64<'a>),
    Bucket(Base64<'a>),
}

impl Keys {
    pub(crate) fn run(&self) -> Outcome {
        let ask = path_to_ask(&self.bucket).map(|path| format!("boltkv scan --keys-only --bucket {path}"));
        let db = self.target.open_to_read(ask.as_deref())?;
        let failed = |error| Failure::storage(self.target.path(), &error);
        let tx = db.begin().map_err(failed)?;
        let bucket = tx.bucket_path(&self.bucket).map_err(failed)?;
        let _progress = Progress::while_printing("reading keys");
        let memory = Memory::new(&tx);
        self.target.print(|out| {
            let (mut cursor, mut read) = (bucket.cursor(), 0);
            while let Some((key, value)) = cursor.next()? {
                read += (key.len() + value.map_or(0, <[u8]>::len)) as u64;
                memory.has_read(read);
                match (self.json, value) {
                    (false, _) => self.format.write_line(key, out)?,
                    (true, Some(_)) => json_line(&Line::Key(Base64(key)), out)?,
                    (true, None) => json_line(&Line::Bucket(Base64(key)), out)?,
                }
            }
            Ok(())
        })
    }
}
