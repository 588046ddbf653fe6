//! `boltkv file peek FILE get`: the value of a key.

use bytes::Bytes;
use clap::Args;
use serde::Serialize;

use super::super::format::{Format, ParseFormat, quoted};
use super::super::output::{Base64, json_line, print};
use super::pieces::Pieces;
use crate::failure::{Failure, Outcome};
use crate::remote::bytes_parser;

/// Print the value of a key
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file peek etcd.db get meta consistent_index --format hex
  boltkv file peek app.db get users eu ada        # from the bucket eu within the bucket users

With --json: {\"key\":\"b64\",\"value\":\"b64\",\"txid\":N}. Exit code 1: there is no such key.")]
pub(super) struct Get {
    /// The bucket, as its name or the names from the top down; and the key in it
    #[arg(value_names = ["BUCKET", "KEY"], num_args = 2.., required = true, value_parser = bytes_parser())]
    names: Vec<Bytes>,
    /// How the key is given
    #[arg(long, value_enum, default_value = "ascii-encoded")]
    parse_format: ParseFormat,
    /// How the value is printed, with a line end behind it
    #[arg(long, value_enum, default_value = "auto", conflicts_with = "json")]
    format: Format,
}

#[derive(Serialize)]
struct Found<'a> {
    key: Base64<'a>,
    value: Base64<'a>,
    txid: u64,
}

impl Get {
    pub(super) fn run(&self, pieces: &mut Pieces<'_>, json: bool) -> Outcome {
        let Some((key, bucket)) = self.names.split_last() else {
            return Err(Failure::usage("a bucket and a key are needed"));
        };
        let key = self.parse_format.parse(key).map_err(|why| Failure::usage(format!("the key: {why}")))?;
        let Some(value) = pieces.look(|state| state.get(bucket, &key))? else {
            return Err(pieces.not_found(&format!("key {}", quoted(&key))));
        };
        let txid = pieces.read().last_txid;
        print(pieces.path(), |out| {
            if json {
                json_line(&Found { key: Base64(&key), value: Base64(&value), txid }, out)?;
            } else {
                self.format.write_line(&value, out)?;
            }
            Ok(())
        })
    }
}
