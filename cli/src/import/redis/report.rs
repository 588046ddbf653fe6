//! What is told of a copy.

use std::collections::BTreeMap;
use std::io::{self, Write};

use boltkv_client::Path;
use boltkv_protocol::text;
use bytes::{Bytes, BytesMut};
use serde::Serialize;

use crate::failure::Failure;

/// So many keys that were left out are named in a message,
const MOST_NAMED: usize = 3;
/// and so many in JSON, of each kind.
const MOST_KEPT: usize = 1_000;

/// How a database has fared.
#[derive(Debug, Serialize)]
pub(super) struct Tally {
    pub(super) database: u32,
    pub(super) bucket: String,
    /// Keys that were put, wholly or in part: strings, hashes, times.
    pub(super) put: u64,
    /// Keys that were there already, and equal.
    pub(super) there: u64,
    /// Keys that were there otherwise, and were left so.
    pub(super) kept: u64,
    /// Keys that were gone before they could be read.
    pub(super) gone: u64,
    /// Fields of hashes that were put.
    pub(super) fields: u64,
    pub(super) left_out: BTreeMap<String, LeftOut>,
    /// How many keys there are at the end, in the Redis and in the bucket.
    pub(super) source_keys: u64,
    pub(super) target_keys: u64,
    /// Whether there are as many in the bucket as there should be.
    pub(super) complete: bool,
    /// Keys that have a time: they may be gone when keys are counted.
    #[serde(skip)]
    pub(super) timed: u64,
    /// How often a hash was put without a field.
    #[serde(skip)]
    in_part: u64,
}

/// Keys that boltkv cannot hold, of one kind.
#[derive(Debug, Default, Serialize)]
pub(super) struct LeftOut {
    count: u64,
    /// The first of them.
    keys: Vec<String>,
}

/// All of a copy.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) databases: Vec<Tally>,
    pub(super) seconds: f64,
}

impl Tally {
    pub(super) fn new(database: u32, bucket: &Path) -> Self {
        Self {
            database,
            bucket: bucket.to_string(),
            put: 0,
            there: 0,
            kept: 0,
            gone: 0,
            fields: 0,
            left_out: BTreeMap::new(),
            source_keys: 0,
            target_keys: 0,
            complete: false,
            timed: 0,
            in_part: 0,
        }
    }

    /// Of a hash, something was left out: its key is there all the same.
    pub(super) fn leave_out_in_part(&mut self, kind: &str, key: &Bytes) {
        self.in_part += 1;
        self.leave_out(kind, key);
    }

    pub(super) fn leave_out(&mut self, kind: &str, key: &Bytes) {
        let left_out = self.left_out.entry(kind.to_owned()).or_default();
        left_out.count += 1;
        if left_out.keys.len() < MOST_KEPT {
            left_out.keys.push(shown(key));
        }
    }

    /// How many keys were left out, wholly or in part.
    pub(super) fn all_left_out(&self) -> u64 {
        self.left_out.values().map(|left_out| left_out.count).sum()
    }

    /// How many keys were left out with all that they have.
    pub(super) fn left_out_whole(&self) -> u64 {
        self.all_left_out().saturating_sub(self.in_part)
    }

    /// Compares how many keys there are now. What expires meanwhile is missing on one side: of the keys that were put, and of
    /// so many that may have been passed over for it.
    pub(super) const fn verify(&mut self, source: u64, target: u64, left_out: u64, passed_over: u64) {
        (self.source_keys, self.target_keys) = (source, target);
        let accounted = target.saturating_add(left_out).saturating_add(self.timed).saturating_add(passed_over);
        self.complete = accounted >= source;
    }
}

impl Report {
    pub(super) fn all_left_out(&self) -> u64 {
        self.databases.iter().map(Tally::all_left_out).sum()
    }

    /// For people, a line for each database.
    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        for tally in &self.databases {
            let Tally { database, bucket, put, there, fields, source_keys, target_keys, .. } = tally;
            write!(out, "database {database} into bucket {bucket}: {put} keys put (fields of hashes: {fields})")?;
            write!(out, ", {there} there already")?;
            for (count, what) in [(tally.kept, "left as they were"), (tally.gone, "gone meanwhile")] {
                if count > 0 {
                    write!(out, ", {count} {what}")?;
                }
            }
            if tally.all_left_out() > 0 {
                write!(out, ", {} left out", tally.all_left_out())?;
            }
            writeln!(out, "; keys of the Redis: {source_keys}, of the bucket: {target_keys}")?;
        }
        if self.databases.is_empty() {
            writeln!(out, "the Redis has no keys")?;
        }
        out.flush()
    }

    /// What keeps the copy from being one, if anything does.
    pub(super) fn failure(&self, may_leave_out: bool) -> Option<Failure> {
        if let Some(short) = self.databases.iter().find(|tally| !tally.complete) {
            let Tally { database, source_keys, target_keys, .. } = short;
            return Some(Failure::not_done(format!(
                "database {database} has {source_keys} keys by now and its bucket {target_keys}: it is written meanwhile; the \
                 same command copies the rest"
            )));
        }
        let left_out = self.all_left_out();
        if left_out == 0 || may_leave_out {
            return None;
        }
        let kinds = self.databases.iter().flat_map(|tally| &tally.left_out);
        let kinds: Vec<_> = kinds.map(|(kind, left_out)| left_out.named(kind)).collect();
        let (what, them) =
            if left_out == 1 { ("1 key was", "it") } else { (&*format!("{left_out} keys were"), "them") };
        let kinds = kinds.join("; ");
        Some(Failure::not_done(format!("{what} left out: {kinds}; --skip-unsupported does without {them}")))
    }
}

impl LeftOut {
    fn named(&self, kind: &str) -> String {
        let names: Vec<_> = self.keys.iter().take(MOST_NAMED).map(String::as_str).collect();
        let more = self.count.saturating_sub(names.len() as u64);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        format!("{kind}: {}{more}", names.join(", "))
    }
}

/// A key for a message: as the text dialect prints it, and cut where it is long.
fn shown(key: &Bytes) -> String {
    const MOST: usize = 100;
    let mut out = BytesMut::new();
    text::write_key(key.get(..MOST).unwrap_or(key), &mut out);
    let cut = if key.len() > MOST { "…" } else { "" };
    format!("{}{cut}", String::from_utf8_lossy(&out))
}
