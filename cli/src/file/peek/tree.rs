//! `boltkv file peek FILE tree`: the buckets, and what is in them.

use std::collections::VecDeque;
use std::io::Write as _;
use std::ops::Bound;

use clap::Args;
use indicatif::BinaryBytes;
use serde::Serialize;

use super::super::format::Format;
use super::super::output::{Base64, json_line, stdout};
use super::super::progress::Progress;
use super::pieces::{Pieces, behind};
use crate::failure::{Failure, Outcome};
use crate::words::counted;

/// Print the buckets, each with its keys and how many bytes they and their values have
///
/// A bucket stands under the one that it is in, with two blanks more before it. Reads the whole file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file peek meta.db tree
  boltkv file peek --json meta.db tree | jq -c 'select(.keys > 1000)'

With --json a line is a bucket, from the top down, the name in base64:
{\"depth\":N,\"bucket\":\"b64\",\"keys\":N,\"buckets\":N,\"bytes\":N}")]
pub(super) struct Tree {}

/// What is in a bucket, those in it not included.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Content {
    pub(super) keys: u64,
    pub(super) buckets: u64,
    /// Of keys, values and names.
    pub(super) bytes: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    depth: usize,
    bucket: Base64<'a>,
    keys: u64,
    buckets: u64,
    bytes: u64,
}

impl Tree {
    #[expect(clippy::unused_self, reason = "as its like")]
    pub(super) fn run(&self, pieces: &mut Pieces<'_>, json: bool) -> Outcome {
        let mut out = stdout();
        let failed = |error| Failure::stdout(&error);
        let _progress = Progress::while_printing("reading buckets");
        let read = each_bucket(pieces, |path, Content { keys, buckets, bytes }| {
            let Some((name, above)) = path.split_last() else { return Ok(()) };
            let depth = above.len();
            if json {
                return json_line(&Line { depth, bucket: Base64(name), keys, buckets, bytes }, &mut out)
                    .map_err(failed);
            }
            let mut print = || {
                write!(out, "{:1$}", "", 2 * depth)?;
                Format::Auto.write(name, &mut out)?;
                write!(out, ": {}", counted(keys, "key"))?;
                if buckets > 0 {
                    write!(out, ", {}", counted(buckets, "bucket"))?;
                }
                writeln!(out, ", {}", BinaryBytes(bytes))
            };
            print().map_err(failed)
        });
        out.flush().map_err(failed)?;
        pieces.say();
        read
    }
}

/// Reads a bucket; nothing where it is gone.
fn content(pieces: &mut Pieces<'_>, path: &[Vec<u8>]) -> Outcome<Option<Content>> {
    let (mut content, mut from) = (Content::default(), Some(Bound::Unbounded));
    while let Some(next) = from {
        let Some(piece) = pieces.entries_if_there(path, &next)? else { return Ok(None) };
        for (key, value) in &piece.entries {
            content.bytes += (key.len() + value.as_ref().map_or(0, Vec::len)) as u64;
            *if value.is_some() { &mut content.keys } else { &mut content.buckets } += 1;
        }
        from = behind(&piece);
    }
    Ok(Some(content))
}

/// Each bucket that holds others has a page of its own. Where so many more are found than a file has pages, however much it is
/// written meanwhile, some lead to the same pages, and each does so again within them: that would take for ever.
fn expect_no_more_than_pages(holders: u64, pieces: &mut Pieces<'_>) -> Outcome {
    // Looked at seldom.
    if holders < 32 || !holders.is_power_of_two() || holders <= 4 * pieces.look(|state| Ok(state.pages()))? {
        return Ok(());
    }
    let what = "it has more buckets than pages: some share theirs; `boltkv file check` tells which";
    Err(Failure::not_done(what).prefixed(&pieces.path().display().to_string()))
}

/// A bucket whose inner buckets are being visited.
struct Level {
    path: Vec<Vec<u8>>,
    /// The next of them.
    names: VecDeque<Vec<u8>>,
    /// Where the names after these begin.
    from: Option<Bound<Vec<u8>>>,
}

/// Reads all buckets, depth first in the order of their names, and tells of each what is in it; of the root, too, whose path
/// is empty. Buckets that hold others are read twice, a piece at a time, so that their names are not kept. A bucket that is
/// gone by the time that it would be read is left out.
pub(super) fn each_bucket(pieces: &mut Pieces<'_>, mut told: impl FnMut(&[Vec<u8>], Content) -> Outcome) -> Outcome {
    let mut way = Vec::new();
    let mut holders = 0;
    let mut enter = |pieces: &mut Pieces<'_>, way: &mut Vec<Level>, path: Vec<Vec<u8>>| -> Outcome {
        let Some(content) = content(pieces, &path)? else { return Ok(()) };
        told(&path, content)?;
        if content.buckets > 0 {
            holders += 1;
            expect_no_more_than_pages(holders, pieces)?;
            way.push(Level { path, names: VecDeque::new(), from: Some(Bound::Unbounded) });
        }
        Ok(())
    };
    enter(pieces, &mut way, Vec::new())?;
    while let Some(level) = way.last_mut() {
        if let Some(name) = level.names.pop_front() {
            let path = [&level.path[..], &[name]].concat();
            enter(pieces, &mut way, path)?;
        } else if let Some(from) = level.from.take() {
            let Some(piece) = pieces.entries_if_there(&level.path, &from)? else { continue };
            level.from = behind(&piece);
            let buckets = piece.entries.into_iter().filter(|(_, value)| value.is_none());
            level.names.extend(buckets.map(|(name, _)| name));
        } else {
            way.pop();
        }
    }
    Ok(())
}
