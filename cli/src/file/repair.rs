//! `boltkv file repair`: what a broken file still holds, into a new one.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};

use boltkv_storage::Error;
use boltkv_storage::tools::{
    Orphans, RepairAlternative, RepairEvent, RepairOptions, RepairPlace, RepairRoot, Repaired, RepairedJournal,
};
use clap::Args;
use serde::Serialize;

use super::interrupt::Interrupt;
use super::journal::torn;
use super::output::{Base64, json_line};
use super::progress::Progress;
use super::target::Target;
use super::target::must_be_free;
use crate::arguments::bytes;
use crate::failure::{Failure, Outcome, before_a_verdict, one_line};
use crate::words::counted;

/// Salvage what a broken file still holds, into a new file
///
/// Everything that undamaged pages lead to is in the new file, an ordinary bolt file, under its own bucket and key. What was
/// lost is told page by page, with the keys that it concerns. The broken file is only read; the new one has its name when all
/// of it is on the disk. Pages have no checksums: damage within a value cannot be seen.
///
/// What the journal beside the file records and the file lacks is done again in the new file, as far as it can be read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file repair broken.db --output new.db
  boltkv file repair broken.db --output new.db --orphans
  boltkv file repair broken.db --output older.db --meta 0

With --json each line is an object with one field: \"lost\" or \"doubtful\" for a place ({\"page\", \"path\", \"from\", \"up_to\", \
\"what\"}, names and keys in base64), \"journal_lost\" for what is lost of the journal, \"journal_torn\" where it ends with what is not whole, and at last \"repaired\". Exit code 0: nothing was lost and nothing is in doubt; 1: something \
is, or the new file could not be written; 3: the broken file is none that could be read. A single damaged meta is in doubt: it \
may have been of a later transaction than the newest that is left.

Of a file on a disk that fails, first make a copy, with a tool such as ddrescue that goes on after read errors.")]
pub(crate) struct Repair {
    #[command(flatten)]
    target: Target,
    /// The new file, which must not be there
    #[arg(long, short, value_name = "NEW")]
    output: PathBuf,
    /// Salvage also what nothing leads to, into a bucket `lost+found`; some of it may be old
    #[arg(long)]
    orphans: bool,
    /// Bytes of a page, where the file does not tell
    #[arg(long, value_name = "SIZE", value_parser = bytes::<u32>)]
    page_size: Option<u32>,
    /// Begin with the meta of page 0 or 1, instead of the newest whose root can be read
    #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(u8).range(..=1))]
    meta: Option<u8>,
    /// Begin with this page as the root of all buckets
    #[arg(long, value_name = "PAGE", conflicts_with = "meta")]
    root: Option<u64>,
    /// Print lines of JSON
    #[arg(long)]
    json: bool,
}

/// A line of JSON.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Line<'a> {
    Lost(Place<'a>),
    Doubtful(Place<'a>),
    #[serde(rename = "journal_lost")]
    JournalLost(&'a str),
    #[serde(rename = "journal_torn")]
    JournalTorn {
        file: String,
        offset: u64,
    },
    Repaired(Report<'a>),
}

#[derive(Serialize)]
struct Place<'a> {
    page: u64,
    path: Vec<Base64<'a>>,
    from: Option<Base64<'a>>,
    up_to: Option<Base64<'a>>,
    what: &'a str,
}

#[derive(Serialize)]
struct Report<'a> {
    output: String,
    page_size: u32,
    /// The transaction; nothing where the root was given or looked for.
    txid: Option<u64>,
    root_page: Option<u64>,
    buckets: u64,
    values: u64,
    lost: u64,
    doubtful: u64,
    orphans: OrphansReport<'a>,
    alternative: Option<Alternative>,
    journal: Option<Journal>,
}

#[derive(Serialize)]
struct Journal {
    applied: u64,
    newest: u64,
    lost: u64,
}

#[derive(Serialize)]
struct OrphansReport<'a> {
    pages: u64,
    free_pages_known: bool,
    bucket: Option<&'a str>,
    values: u64,
}

#[derive(Serialize)]
struct Alternative {
    meta: u8,
    txid: u64,
    lost: u64,
    doubtful: u64,
}

impl Repair {
    pub(crate) fn run(&self) -> Outcome {
        must_be_free(&self.output)?;
        let _interrupt = Interrupt::writing(&self.output)?;
        let mut printer =
            Printer { json: self.json, out: BufWriter::new(io::stdout().lock()), bar: None, failed: None };
        let repaired = self.options().repair(self.target.path(), &self.output, |event| printer.event(&event));
        let last = match &repaired {
            Ok(repaired) => printer.finish(|out| self.report(repaired, out)),
            Err(_) => printer.finish(|_| Ok(())),
        };
        let Repaired { lost, doubtful, .. } = repaired.map_err(|error| self.not_done(&error))?;
        before_a_verdict(last.map_err(|error| Failure::stdout(&error)))?;
        if lost + doubtful == 0 {
            return Ok(());
        }
        let file = self.target.path().display();
        Err(Failure::not_done(format!("{file}: lost: {}, in doubt: {}", places(lost), places(doubtful))))
    }

    fn options(&self) -> RepairOptions {
        let mut options = RepairOptions::new().orphans(self.orphans).timeout(self.target.timeout());
        if let Some(bytes) = self.page_size {
            options = options.page_size(bytes);
        }
        if let Some(slot) = self.meta {
            options = options.meta(slot);
        }
        if let Some(page) = self.root {
            options = options.root_page(page);
        }
        options
    }

    /// The failure of a repair that has no result: of which of the two files it is.
    fn not_done(&self, error: &Error) -> Failure {
        match error {
            Error::InvalidPageSize { .. } => Failure::usage(error.to_string()),
            Error::NotABoltFile | Error::EmptyFile | Error::FileTooShort { .. } | Error::LockTimeout { .. } => {
                self.target.not_opened(error, None)
            }
            Error::Io { path: Some(path), .. } if path == self.target.path() => self.target.not_opened(error, None),
            _ => Failure::storage(&self.output, error),
        }
    }

    fn report(&self, repaired: &Repaired, out: &mut impl Write) -> io::Result<()> {
        if self.json {
            return json_line(&Line::Repaired(Report::new(&self.output, repaired)), out);
        }
        let output = one_line(&self.output.display().to_string());
        let Repaired { buckets, values, root, root_page, .. } = repaired;
        let from = match (root, root_page) {
            (RepairRoot::Meta { txid }, _) => format!("of transaction {txid}"),
            (RepairRoot::JournalMeta { txid }, _) => {
                format!("of transaction {txid}, whose meta is damaged in the file and whole in its journal")
            }
            (RepairRoot::Found { candidates: 0 }, _) | (_, None) => "for there is no root".to_owned(),
            (RepairRoot::Found { candidates }, Some(page)) => {
                format!("from page {page} on, one of {candidates} that look like a root (--root takes another)")
            }
            (_, Some(page)) => format!("from page {page} on"),
        };
        let (buckets, values) = (counted(*buckets, "bucket"), counted(*values, "value"));
        writeln!(out, "{output}: {buckets}, {values}, {from}")?;
        if let Some(RepairedJournal { applied: applied @ 1.., newest, .. }) = repaired.journal {
            writeln!(out, "of its journal: {} up to {newest}", counted(applied, "transaction"))?;
        }
        report_orphans(&repaired.orphans, out)?;
        if let Some(RepairAlternative { meta, txid, lost, doubtful, .. }) = repaired.alternative {
            let (lost, doubtful) = (places(lost), places(doubtful));
            writeln!(out, "with --meta {meta}, of transaction {txid}: lost: {lost}, in doubt: {doubtful}")?;
        }
        Ok(())
    }
}

fn report_orphans(orphans: &Orphans, out: &mut impl Write) -> io::Result<()> {
    let Orphans { pages, free_pages_known, bucket, values, .. } = orphans;
    if *pages == 0 {
        return Ok(());
    }
    let with = if *free_pages_known { "" } else { ", free ones among them" };
    let pages = counted(*pages, "page");
    match bucket {
        Some(bucket) => {
            let values = counted(*values, "value");
            writeln!(out, "nothing leads to {pages}{with}: {values}, in the bucket {bucket}")
        }
        None => writeln!(out, "nothing leads to {pages}{with}: --orphans salvages what they hold"),
    }
}

fn places(count: u64) -> String {
    if count == 0 { "nothing".into() } else { counted(count, "place") }
}

/// Prints what the repair tells while it works. A repair is not given up because nobody reads: the first failure is kept.
struct Printer {
    json: bool,
    out: BufWriter<StdoutLock<'static>>,
    bar: Option<Progress>,
    failed: Option<io::Error>,
}

impl Printer {
    fn event(&mut self, event: &RepairEvent<'_>) {
        let printed = match (event, self.json) {
            (RepairEvent::Lost(place), true) => json_line(&Line::Lost(Place::new(place)), &mut self.out),
            (RepairEvent::Doubtful(place), true) => json_line(&Line::Doubtful(Place::new(place)), &mut self.out),
            (RepairEvent::Lost(place), false) => writeln!(self.out, "lost: {place}"),
            (RepairEvent::Doubtful(place), false) => writeln!(self.out, "in doubt: {place}"),
            (RepairEvent::JournalLost { what }, true) => json_line(&Line::JournalLost(what), &mut self.out),
            (RepairEvent::JournalLost { what }, false) => {
                writeln!(self.out, "lost: of the journal: {}", one_line(what))
            }
            (RepairEvent::JournalTorn { file, offset }, true) => {
                json_line(&Line::JournalTorn { file: file.display().to_string(), offset: *offset }, &mut self.out)
            }
            (RepairEvent::JournalTorn { file, offset }, false) => {
                writeln!(self.out, "{}", one_line(&torn(file, *offset)))
            }
            (RepairEvent::Read { bytes, of }, _) => {
                self.bar.get_or_insert_with(|| Progress::of_bytes(*of)).advance(*bytes);
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(error) = printed {
            self.failed.get_or_insert(error);
        }
    }

    /// Prints what comes last.
    fn finish(mut self, last: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> io::Result<()>) -> io::Result<()> {
        drop(self.bar.take());
        let printed = last(&mut self.out).and_then(|()| self.out.flush());
        self.failed.map_or(printed, Err)
    }
}

impl<'a> Place<'a> {
    fn new(place: &RepairPlace<'a>) -> Self {
        Self {
            page: place.page,
            path: place.path.iter().map(|name| Base64(name)).collect(),
            from: place.from.map(Base64),
            up_to: place.up_to.map(Base64),
            what: place.what,
        }
    }
}

impl<'a> Report<'a> {
    fn new(output: &Path, repaired: &'a Repaired) -> Self {
        let Orphans { pages, free_pages_known, bucket, values, .. } = &repaired.orphans;
        Self {
            output: output.display().to_string(),
            page_size: repaired.page_size,
            txid: match repaired.root {
                RepairRoot::Meta { txid } | RepairRoot::JournalMeta { txid } => Some(txid),
                _ => None,
            },
            root_page: repaired.root_page,
            buckets: repaired.buckets,
            values: repaired.values,
            lost: repaired.lost,
            doubtful: repaired.doubtful,
            orphans: OrphansReport {
                pages: *pages,
                free_pages_known: *free_pages_known,
                bucket: bucket.as_deref(),
                values: *values,
            },
            alternative: repaired.alternative.map(|other| Alternative {
                meta: other.meta,
                txid: other.txid,
                lost: other.lost,
                doubtful: other.doubtful,
            }),
            journal: repaired.journal.map(|journal| Journal {
                applied: journal.applied,
                newest: journal.newest,
                lost: journal.lost,
            }),
        }
    }
}
