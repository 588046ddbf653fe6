//! `boltkv file`: commands on a file, one file a command.
//!
//! A command reads its arguments and prints; what it knows about files, `storage` tells it.
//! - `target`: how the file is opened; `holder`: who else has it; `question`: how a server is asked the same
//! - `format`: how keys and values are printed; `output`: standard output and JSON; `progress`: for people who wait
//! - `bbolt`: the same commands as bbolt's calls them
//! - `journal`: what waits beside a file; `waiting`: who has to know that something does
//! - `peek`: reading what another process writes
//! - `interrupt`: what a signal does; `memory`: not to hold a whole file

pub(crate) mod bbolt;
mod bench;
mod bench_work;
mod buckets;
mod check;
mod compact;
mod diff;
mod dump;
mod export;
mod format;
mod get;
pub(crate) mod holder;
mod import;
mod info;
mod inspect;
mod interrupt;
mod journal;
mod keys;
mod listening;
mod memory;
mod output;
mod page;
mod page_item;
mod pages;
mod path;
mod peek;
mod progress;
mod question;
mod repair;
pub(crate) mod restore;
mod stats;
mod surgery;
mod target;
mod tree;
mod waiting;

use clap::Subcommand;
pub(crate) use interrupt::{Interrupt, at_first_signal};
pub(crate) use output::{json_line, number_line};
pub(crate) use progress::Progress;
pub(crate) use target::{must_be_new, must_have_no_journal, same_file};

use crate::failure::Outcome;

/// Look into any bolt file, check it, mend it, copy it
#[derive(Debug, Subcommand)]
pub(crate) enum File {
    Bench(bench::Bench),
    Buckets(buckets::Buckets),
    Check(check::Check),
    Compact(compact::Compact),
    Diff(diff::Diff),
    Dump(dump::Dump),
    Export(export::Export),
    Get(get::Get),
    Import(import::Import),
    Info(info::Info),
    Inspect(inspect::Inspect),
    Journal(journal::Journal),
    Keys(keys::Keys),
    Page(page::Page),
    PageItem(page_item::PageItem),
    Pages(pages::Pages),
    Path(path::Path),
    Peek(peek::Peek),
    Repair(repair::Repair),
    Stats(stats::Stats),
    #[command(subcommand)]
    Surgery(surgery::Surgery),
    Tree(tree::Tree),
}

impl File {
    pub(crate) fn run(&self) -> Outcome {
        match self {
            Self::Bench(bench) => bench.run(),
            Self::Buckets(buckets) => buckets.run(),
            Self::Check(check) => check.run(),
            Self::Compact(compact) => compact.run(),
            Self::Diff(diff) => diff.run(),
            Self::Dump(dump) => dump.run(),
            Self::Export(export) => export.run(),
            Self::Get(get) => get.run(),
            Self::Import(import) => import.run(),
            Self::Info(info) => info.run(),
            Self::Inspect(inspect) => inspect.run(),
            Self::Journal(journal) => journal.run(),
            Self::Keys(keys) => keys.run(),
            Self::Page(page) => page.run(),
            Self::PageItem(item) => item.run(),
            Self::Pages(pages) => pages.run(),
            Self::Path(path) => path.run(),
            Self::Peek(peek) => peek.run(),
            Self::Repair(repair) => repair.run(),
            Self::Stats(stats) => stats.run(),
            Self::Surgery(surgery) => surgery.run(),
            Self::Tree(tree) => tree.run(),
        }
    }
}
