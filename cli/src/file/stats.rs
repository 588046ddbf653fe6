//! `boltkv file stats`: how many pages, bytes and keys the buckets have.

use std::io::Write as _;

use boltkv_storage::BucketStats;
use bytes::Bytes;
use clap::Args;
use serde::Serialize;

use super::memory::Memory;
use super::output::{Out, Printed, json_line};
use super::progress::Progress;
use super::target::Target;
use crate::failure::{Failure, Outcome};
use crate::remote::bytes_parser;

/// Count pages, bytes and keys of all buckets, or of some at the top
///
/// Reads every page of these buckets, and of those in them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file stats etcd.db
  boltkv file stats etcd.db auth             # auth, authRevision, authRoles, authUsers
  boltkv file stats --json etcd.db | jq .keys")]
pub(crate) struct Stats {
    #[command(flatten)]
    pub(super) target: Target,
    /// Only buckets at the top whose names start so
    #[arg(value_name = "PREFIX", value_parser = bytes_parser())]
    pub(super) prefix: Option<Bytes>,
    /// The same, as a flag
    #[arg(long = "prefix", value_name = "PREFIX", value_parser = bytes_parser(), conflicts_with = "prefix")]
    pub(super) prefix_flag: Option<Bytes>,
    /// Print one JSON object instead
    #[arg(long)]
    pub(super) json: bool,
}

/// What is counted, in the shape of its JSON.
#[derive(Serialize)]
struct Report {
    /// Buckets at the top that are counted, with all in them.
    top_level_buckets: u64,
    branch_pages: u64,
    branch_overflow_pages: u64,
    leaf_pages: u64,
    leaf_overflow_pages: u64,
    keys: u64,
    depth: u64,
    branch_alloc: u64,
    branch_inuse: u64,
    leaf_alloc: u64,
    leaf_inuse: u64,
    buckets: u64,
    inline_buckets: u64,
    inline_bucket_inuse: u64,
}

impl Stats {
    pub(crate) fn run(&self) -> Outcome {
        let db = self.target.open_to_read(Some("boltkv bucket stat"))?;
        let failed = |error| Failure::storage(self.target.path(), &error);
        let prefix = self.prefix.as_ref().or(self.prefix_flag.as_ref());
        let tx = db.begin().map_err(failed)?;
        let report = {
            let progress = Progress::of_bytes(tx.size());
            let memory = Memory::new(&tx);
            let reached = |bytes| {
                progress.reach(bytes);
                memory.has_read(bytes);
            };
            let (count, stats) = tx.bucket_stats(prefix.map_or(&[][..], Bytes::as_ref), &reached).map_err(failed)?;
            Report::new(count, &stats)
        };
        self.target.print(|out| if self.json { Ok(json_line(&report, out)?) } else { report.print(out) })
    }
}

impl Report {
    fn new(top_level_buckets: u64, stats: &BucketStats) -> Self {
        Self {
            top_level_buckets,
            branch_pages: stats.branch_pages,
            branch_overflow_pages: stats.branch_overflow_pages,
            leaf_pages: stats.leaf_pages,
            leaf_overflow_pages: stats.leaf_overflow_pages,
            keys: stats.keys,
            depth: stats.depth,
            branch_alloc: stats.branch_alloc,
            branch_inuse: stats.branch_inuse,
            leaf_alloc: stats.leaf_alloc,
            leaf_inuse: stats.leaf_inuse,
            buckets: stats.buckets,
            inline_buckets: stats.inline_buckets,
            inline_bucket_inuse: stats.inline_bucket_inuse,
        }
    }

    /// As bbolt prints it, to the byte: there are scripts that read it.
    fn print(&self, out: &mut Out) -> Printed {
        let used = |used, all| format!("{used} ({}%)", percent(used, all));
        writeln!(out, "Aggregate statistics for {} buckets\n", self.top_level_buckets)?;
        writeln!(out, "Page count statistics")?;
        writeln!(out, "\tNumber of logical branch pages: {}", self.branch_pages)?;
        writeln!(out, "\tNumber of physical branch overflow pages: {}", self.branch_overflow_pages)?;
        writeln!(out, "\tNumber of logical leaf pages: {}", self.leaf_pages)?;
        writeln!(out, "\tNumber of physical leaf overflow pages: {}", self.leaf_overflow_pages)?;
        writeln!(out, "Tree statistics")?;
        writeln!(out, "\tNumber of keys/value pairs: {}", self.keys)?;
        writeln!(out, "\tNumber of levels in B+tree: {}", self.depth)?;
        writeln!(out, "Page size utilization")?;
        writeln!(out, "\tBytes allocated for physical branch pages: {}", self.branch_alloc)?;
        writeln!(out, "\tBytes actually used for branch data: {}", used(self.branch_inuse, self.branch_alloc))?;
        writeln!(out, "\tBytes allocated for physical leaf pages: {}", self.leaf_alloc)?;
        writeln!(out, "\tBytes actually used for leaf data: {}", used(self.leaf_inuse, self.leaf_alloc))?;
        writeln!(out, "Bucket statistics")?;
        writeln!(out, "\tTotal number of buckets: {}", self.buckets)?;
        writeln!(out, "\tTotal number on inlined buckets: {}", used(self.inline_buckets, self.buckets))?;
        writeln!(out, "\tBytes used for inlined buckets: {}", used(self.inline_bucket_inuse, self.leaf_inuse))?;
        Ok(())
    }
}

/// A percentage as bbolt computes it: in single precision, cut to a whole number.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as bbolt does it; what is shown is at most 100 and a few"
)]
fn percent(part: u64, all: u64) -> u64 {
    if all == 0 { 0 } else { (part as f32 * 100.0 / all as f32) as u64 }
}
