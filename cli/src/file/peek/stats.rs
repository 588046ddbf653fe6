//! `boltkv file peek FILE stats`: how large the file is, and what is in it.

use std::io::Write as _;

use clap::Args;
use indicatif::{BinaryBytes, HumanCount};
use serde::Serialize;

use super::super::output::{json_line, print};
use super::super::progress::Progress;
use super::pieces::{Pieces, Read};
use super::tree::each_bucket;
use crate::failure::Outcome;

/// Print how large the file is, how much of it is free, and how many buckets and keys are in it
///
/// Reads the whole file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file peek app.db stats
  boltkv file peek --json app.db stats | jq .keys")]
pub(super) struct Stats {}

/// What is said, in the shape of its JSON.
#[derive(Serialize)]
struct Report {
    page_size: u32,
    /// Bytes.
    file_size: u64,
    /// Below the high-water mark.
    pages: u64,
    /// Nothing where the freelist is not stored.
    free_pages: Option<u64>,
    buckets: u64,
    keys: u64,
    /// Bytes of keys, values and names.
    bytes: u64,
    #[serde(flatten)]
    read: Read,
}

impl Stats {
    #[expect(clippy::unused_self, reason = "as its like")]
    pub(super) fn run(&self, pieces: &mut Pieces<'_>, json: bool) -> Outcome {
        let page_size = pieces.page_size();
        let (in_file, pages, free_pages) =
            pieces.look(|state| Ok((state.pages(), state.meta().high_water_mark, state.free_pages()?)))?;
        let (mut buckets, mut keys, mut bytes) = (0, 0, 0);
        {
            let _progress = Progress::doing("reading buckets");
            each_bucket(pieces, |_, content| {
                buckets += content.buckets;
                keys += content.keys;
                bytes += content.bytes;
                Ok(())
            })?;
        }
        let file_size = in_file * u64::from(page_size);
        let report = Report { page_size, file_size, pages, free_pages, buckets, keys, bytes, read: pieces.read() };
        print(pieces.path(), |out| {
            if json {
                return Ok(json_line(&report, out)?);
            }
            writeln!(out, "page size     {page_size} bytes")?;
            writeln!(out, "file size     {}", BinaryBytes(file_size))?;
            match free_pages {
                Some(free) => writeln!(out, "pages         {pages}, {free} of them free")?,
                None => writeln!(out, "pages         {pages}; which are free is not stored")?,
            }
            writeln!(out, "transaction   {}", report.read.last_txid)?;
            writeln!(out, "buckets       {}", HumanCount(buckets))?;
            writeln!(out, "keys          {}", HumanCount(keys))?;
            writeln!(out, "content       {}", BinaryBytes(bytes))?;
            Ok(())
        })?;
        pieces.say();
        Ok(())
    }
}
