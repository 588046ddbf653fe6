//! SCAN and HSCAN: some entries, and where to go on.

use std::ops::Bound;

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{RespCommand, Writer};
use bytes::Bytes;

use super::failure::Failure;
use super::glob;
use super::keyspace::{Keyspace, kind_of};
use super::number;
use super::scans::Scans;
use super::work::Call;
use crate::commands::expiry::Shown;
use boltkv_protocol::resp::names::said;

/// Entries that are looked at where the client does not say how many, and at most.
const USUAL: usize = 10;
const MOST: usize = 10_000;

/// What is asked for.
struct Asked<'a> {
    cursor: u64,
    pattern: Option<&'a [u8]>,
    count: usize,
    kind: Option<Vec<u8>>,
}

/// Answers one.
pub(super) fn answer(keyspace: &Keyspace<'_>, call: &Call, scans: &Scans, out: &mut Writer<'_>) -> Result<(), Failure> {
    let is_hash = call.spec.command == RespCommand::HScan;
    let at = if is_hash { 2 } else { 1 };
    let cursor = match std::str::from_utf8(call.args.word(at)) {
        // As Redis has it.
        Ok("") => Some(0),
        Ok(word) => word.parse().ok(),
        Err(_) => None,
    };
    let cursor = cursor.ok_or_else(|| Failure::new(ErrorCode::Malformed, "ERR invalid cursor"))?;
    let shown = if is_hash { keyspace.hash(call.args.word(1))? } else { keyspace.shown };
    if is_hash && shown.is_none() {
        // Whatever else is said is not looked at, as Redis does not.
        write(0, &[], is_hash, out);
        return Ok(());
    }
    let asked = parse(call, at + 1, cursor)?;
    let passed = match asked.cursor {
        // Where there is nothing, there is no place in it.
        _ if shown.is_none() => None,
        0 => None,
        cursor => Some(scans.passed(cursor).ok_or_else(forgotten)?),
    };
    let (found, last) = look(keyspace, shown.as_ref(), &asked, passed, is_hash)?;
    let next = match (last, &call.owner) {
        (Some(last), Some(owner)) => scans.remember(owner, asked.cursor, last),
        _ => 0,
    };
    write(next, &found, is_hash, out);
    Ok(())
}

fn write(next: u64, found: &[(&[u8], &[u8])], is_hash: bool, out: &mut Writer<'_>) {
    out.array(2);
    out.bulk(next.to_string().as_bytes());
    out.array(if is_hash { 2 * found.len() } else { found.len() });
    for (key, value) in found {
        out.bulk(said(key));
        if is_hash {
            out.bulk(value);
        }
    }
}

fn forgotten() -> Failure {
    let line = "ERR invalid cursor: the server has forgotten where this scan was; begin again";
    Failure::new(ErrorCode::SnapshotExpired, line)
}

/// The options, from the word at `at` on.
fn parse(call: &Call, at: usize, cursor: u64) -> Result<Asked<'_>, Failure> {
    let (args, mut at) = (&call.args, at);
    let mut asked = Asked { cursor, pattern: None, count: USUAL, kind: None };
    while at < args.len() {
        let value = args.get(at + 1).ok_or_else(Failure::syntax)?;
        match args.word(at).to_ascii_lowercase().as_slice() {
            b"match" => {
                glob::check(value)?;
                asked.pattern = Some(value).filter(|pattern| *pattern != b"*");
            }
            b"count" => {
                let count = number::integer(value)?;
                asked.count = usize::try_from(count).ok().filter(|count| *count > 0).ok_or_else(Failure::syntax)?;
            }
            b"type" if call.spec.command == RespCommand::Scan => asked.kind = Some(value.to_ascii_lowercase()),
            _ => return Err(Failure::syntax()),
        }
        at += 2;
    }
    asked.count = asked.count.min(MOST);
    Ok(asked)
}

/// Entries, each a key with its value.
type Found<'s> = Vec<(&'s [u8], &'s [u8])>;

/// What was found among the next entries, and the last of these, unless there are no more.
fn look<'s>(
    keyspace: &Keyspace<'s>,
    shown: Option<&Shown<'s>>,
    asked: &Asked<'_>,
    passed: Option<Bytes>,
    is_hash: bool,
) -> Result<(Found<'s>, Option<&'s [u8]>), Failure> {
    let mut found = Vec::new();
    let Some(shown) = shown else { return Ok((found, None)) };
    let from = passed.map_or(Bound::Unbounded, Bound::Excluded);
    let (mut last, mut work) = (None, 0);
    for (looked_at, entry) in shown.bucket.range((from, Bound::Unbounded)).enumerate() {
        let (key, value) = entry?;
        // A step of few entries may be as much work as one of many.
        work += asked.pattern.map_or(1, |pattern| glob::work(pattern, key));
        if looked_at == asked.count || looked_at > 0 && work > MOST as u64 {
            return Ok((found, last));
        }
        last = Some(key);
        let is_meant = asked.pattern.is_none_or(|pattern| glob::matches(pattern, said(key)));
        if !is_meant || shown.is_past(key, &keyspace.moment)? {
            continue;
        }
        if is_hash {
            found.push((key, value.ok_or_else(Failure::wrong_type)?));
        } else if is_of(keyspace, asked, key)? {
            found.push((key, &[]));
        }
    }
    Ok((found, None))
}

fn is_of(keyspace: &Keyspace<'_>, asked: &Asked<'_>, key: &[u8]) -> Result<bool, Failure> {
    let Some(kind) = &asked.kind else { return Ok(true) };
    Ok(match keyspace.find(key)? {
        None => false,
        Some(held) => kind_of(&held)?.as_bytes() == kind,
    })
}
