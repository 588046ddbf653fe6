//! `boltkv file peek`: reading a file that another process has open, without its lock.

mod get;
mod pieces;
mod scan;
mod stats;
mod tree;

use std::path::PathBuf;

use boltkv_storage as storage;
use clap::{Args, Subcommand};

use self::pieces::Pieces;
use super::waiting;
use crate::failure::{Failure, Outcome};

/// Read a file without its lock, also one that others have open and write
///
/// What etcd, containerd or a boltkv server holds can be looked at while it works: nothing is locked, nothing is written,
/// and nobody waits. What one look reads is of one transaction, or is read again. What takes longer than the other process
/// leaves time for is read in pieces, each of one transaction; a line on standard error says so, and of which they are.
/// A file that nobody has open is read in the same way.
///
/// Shown is what lies in the file. A boltkv server with a journal has newer writes in that: ask the server for them. Where
/// a key or bucket is not found and a journal may hold it, the error says so.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file peek /var/lib/etcd/member/snap/db get meta consistent_index --format hex
  boltkv file peek meta.db scan v1 --keys-only
  boltkv file peek meta.db tree
  boltkv file peek --json app.db stats | jq .keys

Exit code 1: there is no such key or bucket, or the file changes too fast for even the smallest look.")]
pub(crate) struct Peek {
    /// The bolt file
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Print JSON, everything binary in base64
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Get(get::Get),
    Scan(scan::Scan),
    Stats(stats::Stats),
    Tree(tree::Tree),
}

impl Peek {
    pub(crate) fn run(&self) -> Outcome {
        let elsewhere = waiting::note_of_journal(&self.path);
        let peek = storage::tools::Peek::open(&self.path).map_err(|error| Failure::open(&self.path, &error))?;
        let mut pieces = Pieces::new(peek, &self.path, elsewhere);
        match &self.what {
            What::Get(get) => get.run(&mut pieces, self.json),
            What::Scan(scan) => scan.run(&mut pieces, self.json),
            What::Stats(stats) => stats.run(&mut pieces, self.json),
            What::Tree(tree) => tree.run(&mut pieces, self.json),
        }
    }
}
