//! `boltkv file get`: the value of a key.

use boltkv_storage::Error;
use bytes::Bytes;
use clap::Args;
use serde::Serialize;

use super::format::{Format, ParseFormat, quoted, write_hex};
use super::output::{Base64, json_line};
use super::question::path_to_ask;
use super::target::Target;
use crate::failure::{Failure, Outcome};
use crate::remote::bytes_parser;
use crate::shell::quoted_for_shell;

/// Print the value of a key
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file get etcd.db meta consistent_index
  boltkv file get app.db users eu ada           # from the bucket eu within the bucket users
  boltkv file get --parse-format hex etcd.db key 00000000000000025f0000000000000000
  boltkv file get --format bytes etcd.db members 8e9e05c52164694d | jq .name

With --json: {\"key\":\"b64\",\"value\":\"b64\"}. Exit code 1: there is no such key.")]
pub(crate) struct Get {
    #[command(flatten)]
    pub(super) target: Target,
    /// The bucket, as its name or the names from the top down; and the key in it
    #[arg(value_names = ["BUCKET", "KEY"], num_args = 2.., required = true, value_parser = bytes_parser())]
    pub(super) names: Vec<Bytes>,
    /// How the key is given
    #[arg(long, value_enum, default_value = "ascii-encoded")]
    pub(super) parse_format: ParseFormat,
    /// How the value is printed, with a line end behind it
    #[arg(long, value_enum, default_value = "auto", conflicts_with = "json")]
    pub(super) format: Format,
    /// Print key and value as a JSON object, in base64
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Serialize)]
struct Found<'a> {
    key: Base64<'a>,
    value: Base64<'a>,
}

impl Get {
    pub(crate) fn run(&self) -> Outcome {
        let Some((key, bucket)) = self.names.split_last().filter(|(_, bucket)| !bucket.is_empty()) else {
            return Err(Failure::usage("a bucket and a key are needed"));
        };
        let key = self.parse_format.parse(key).map_err(|why| Failure::usage(format!("the key: {why}")))?;
        if key.is_empty() {
            return Err(Failure::usage("the key is empty"));
        }
        let db = self.target.open_to_read(question(bucket, &key).as_deref())?;
        let failed = |error| Failure::storage(self.target.path(), &error);
        let tx = db.begin().map_err(failed)?;
        let not_found = |failure: Failure| failure.in_bbolts_words(|_| in_bbolts_words(&key));
        let value = match tx.bucket_path(bucket).map_err(failed)?.get(&key) {
            Ok(Some(value)) => value,
            Ok(None) => {
                let names: Vec<_> = bucket.iter().map(|name| quoted(name)).collect();
                let (key, path, bucket) = (quoted(&key), self.target.path().display(), names.join("/"));
                let message = format!("{path}: no key {key} in bucket {bucket}");
                return Err(not_found(Failure::not_done(message)));
            }
            // To bbolt there is no such key either.
            Err(error @ Error::IncompatibleValue { is_bucket: true, .. }) => return Err(not_found(failed(error))),
            Err(error) => return Err(failed(error)),
        };
        self.target.print(|out| {
            if self.json {
                json_line(&Found { key: Base64(&key), value: Base64(value) }, out)?;
            } else {
                self.format.write_line(value, out)?;
            }
            Ok(())
        })
    }
}

/// What bbolt says where there is no value under a key.
fn in_bbolts_words(key: &[u8]) -> String {
    let mut hex = Vec::new();
    // Writing to memory does not fail.
    let _ = write_hex(key, &mut hex);
    format!("Error key not found for key: {} hex: \"{}\"", quoted(key), String::from_utf8_lossy(&hex))
}

/// The command that asks a server, if the key can stand on a command line, and is not taken for a flag there.
fn question(bucket: &[Bytes], key: &[u8]) -> Option<String> {
    let key = std::str::from_utf8(key).ok().filter(|key| !key.contains('\0') && !key.starts_with('-'))?;
    Some(format!("boltkv get --bucket {} {}", path_to_ask(bucket)?, quoted_for_shell(key)))
}
