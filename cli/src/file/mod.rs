//! `boltkv file`: commands on a file, one file a command.
//!
//! A command reads its arguments and prints; what it knows about files, `storage` tells it.
//! - `target`: how the file is opened; `holder`: who else has it
//! - `format`: how keys and values are printed; `within`: how a bucket is named; `output`: standard output and JSON; `progress`: for people who wait

mod bench;
mod bench_work;
mod buckets;
mod check;
mod compact;
mod dump;
mod export;
mod format;
mod get;
mod holder;
mod import;
mod keys;
mod line;
mod output;
mod page_item;
mod path;
mod progress;
mod surgery;
mod target;
mod within;

use clap::Subcommand;
use target::{RawTarget, Target};

use crate::failure::Outcome;

/// Look into a bolt file, check it, export and import it
#[derive(Debug, Subcommand)]
pub(crate) enum File {
    Bench(bench::Bench),
    Buckets(buckets::Buckets),
    Check(check::Check),
    Compact(compact::Compact),
    Dump(dump::Dump),
    Export(export::Export),
    Get(get::Get),
    Import(import::Import),
    Keys(keys::Keys),
    PageItem(page_item::PageItem),
    Path(path::Path),
    #[command(subcommand)]
    Surgery(surgery::Surgery),
}

impl File {
    pub(crate) fn run(&self) -> Outcome {
        match self {
            Self::Bench(bench) => bench.run(),
            Self::Buckets(buckets) => buckets.run(),
            Self::Check(check) => check.run(),
            Self::Compact(compact) => compact.run(),
            Self::Dump(dump) => dump.run(),
            Self::Export(export) => export.run(),
            Self::Get(get) => get.run(),
            Self::Import(import) => import.run(),
            Self::Keys(keys) => keys.run(),
            Self::PageItem(item) => item.run(),
            Self::Path(path) => path.run(),
            Self::Surgery(surgery) => surgery.run(),
        }
    }
}
