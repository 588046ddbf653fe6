//! `boltkv file info`: what sort of file it is.

use std::io::{self, Write};
use std::path::Path;

use boltkv_storage::tools::{MetaFields, RawFile};
use boltkv_storage::{Error, Stats};
use clap::Args;
use serde::Serialize;

use super::output::{Out, Printed, json_line};
use super::progress::Progress;
use super::target::Target;
use crate::failure::{Failure, Outcome};

/// Print the size of the file's pages, its metas, and how much of it is in use
///
/// Of a file that is too damaged to be opened, or whose journal waits to be applied, all that can be told is printed (exit
/// code 1).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file info etcd.db
  boltkv file info --json etcd.db | jq .free_pages")]
pub(crate) struct Info {
    #[command(flatten)]
    target: Target,
    /// Print one JSON object instead
    #[arg(long)]
    json: bool,
}

/// What is said, in the shape of its JSON.
#[derive(Serialize)]
struct Report {
    page_size: u32,
    /// Bytes.
    file_size: u64,
    metas: [Meta; 2],
    /// Nothing where the file does not open.
    #[serde(flatten)]
    opened: Option<Opened>,
}

#[derive(Serialize)]
struct Meta {
    /// Nothing where the file ends before it.
    #[serde(flatten)]
    fields: Option<Fields>,
    in_use: bool,
    /// Why it is not valid.
    fault: Option<String>,
}

#[derive(Serialize)]
struct Fields {
    txid: u64,
    root: u64,
    /// Nothing where the freelist is not stored.
    freelist: Option<u64>,
    high_water_mark: u64,
}

#[derive(Serialize)]
struct Opened {
    txid: u64,
    /// Below the high-water mark.
    pages: u64,
    free_pages: u64,
    /// At the top.
    buckets: u64,
    /// Why a later transaction may be lost; nothing where both metas are whole.
    in_doubt: Option<String>,
}

impl Info {
    pub(crate) fn run(&self) -> Outcome {
        let path = self.target.path();
        let opened = self.look_inside();
        if let Err(error @ (Error::LockTimeout { .. } | Error::Io { .. })) = &opened {
            return Err(self.target.not_opened(error, Some("boltkv stats")));
        }
        let file = RawFile::open(path, None).map_err(|error| Failure::open(path, &error))?;
        let (opened, failure) = match opened {
            Ok(opened) => (Some(opened), None),
            Err(error) => (None, Some(error)),
        };
        let report = Report::new(&file, opened);
        self.target.print(|out| if self.json { Ok(json_line(&report, out)?) } else { report.print(out) })?;
        failure.map_or(Ok(()), |error| Err(report.failure(path, &error)))
    }

    /// What only a file that opens can tell.
    fn look_inside(&self) -> Result<Opened, Error> {
        let _progress = Progress::doing("looking for free pages");
        let db = self.target.open_with_freelist()?;
        let Stats { txid, pages, free_pages, .. } = db.stats();
        let buckets = db.begin()?.buckets().try_fold(0, |count, found| found.map(|_| count + 1))?;
        let in_doubt = db.damaged_meta().map(|meta| meta.to_string());
        Ok(Opened { txid, pages, free_pages: free_pages.unwrap_or(0), buckets, in_doubt })
    }
}

impl Report {
    fn new(file: &RawFile, opened: Option<Opened>) -> Self {
        let newest = file.newest_meta();
        let metas = [0, 1].map(|page| Meta::new(file.meta(page), newest));
        Self { page_size: file.page_size(), file_size: file.len(), metas, opened }
    }

    /// Why it does not open: where neither meta is valid, what is wrong with each.
    fn failure(&self, path: &Path, error: &Error) -> Failure {
        match self.metas.each_ref().map(|meta| meta.fault.as_deref()) {
            [Some(first), Some(second)] => {
                let what = format!("neither meta is valid: meta 0: {first}; meta 1: {second}");
                Failure::not_done(format!("{}: {what}", path.display()))
            }
            _ => Failure::storage(path, error),
        }
    }

    fn print(&self, out: &mut Out) -> Printed {
        // The first line is all that bbolt prints: scripts look for it.
        writeln!(out, "Page Size: {}", self.page_size)?;
        writeln!(out, "File Size: {} bytes", self.file_size)?;
        for (page, meta) in self.metas.iter().enumerate() {
            write!(out, "Meta {page}: ")?;
            meta.print(out)?;
        }
        if let Some(Opened { txid, pages, free_pages, buckets, in_doubt }) = &self.opened {
            writeln!(out, "Transaction: {txid}")?;
            writeln!(out, "Pages: {pages}")?;
            writeln!(out, "Free Pages: {free_pages}")?;
            writeln!(out, "Buckets at the Top: {buckets}")?;
            if let Some(why) = in_doubt {
                writeln!(out, "In Doubt: {why}")?;
            }
        }
        Ok(())
    }
}

impl Meta {
    fn new(fields: Option<MetaFields>, newest: Option<MetaFields>) -> Self {
        let fault = fields.map_or_else(|| Some("the file ends before it".into()), |fields| fault_of(&fields));
        let in_use = fields.is_some() && fields == newest;
        Self { fields: fields.map(Fields::from), in_use, fault }
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        if let Some(Fields { txid, root, freelist, high_water_mark }) = &self.fields {
            write!(out, "transaction {txid}, root page {root}, ")?;
            match freelist {
                Some(page) => write!(out, "freelist page {page}, ")?,
                None => write!(out, "freelist not stored, ")?,
            }
            write!(out, "high-water mark {high_water_mark}, ")?;
        }
        match &self.fault {
            Some(fault) => writeln!(out, "damaged: {fault}"),
            None if self.in_use => writeln!(out, "in use"),
            None => writeln!(out, "valid"),
        }
    }
}

impl From<MetaFields> for Fields {
    fn from(meta: MetaFields) -> Self {
        let freelist = meta.stores_freelist().then_some(meta.freelist);
        Self { txid: meta.txid, root: meta.root, freelist, high_water_mark: meta.high_water_mark }
    }
}

/// Why one meta is not valid; the engine's errors speak of the file, and of both.
pub(super) fn fault_of(meta: &MetaFields) -> Option<String> {
    Some(match meta.fault()? {
        Error::NotABoltFile => format!("its magic number is {:#010x}", meta.magic),
        Error::ChecksumMismatch => {
            format!("its checksum is {:016x}, and should be {:016x}", meta.checksum, meta.computed_checksum())
        }
        other => other.to_string(),
    })
}
