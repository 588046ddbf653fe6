//! `boltkv file check`: looks for damage in a file.

use std::io::{self, Write as _};

use boltkv_storage::{CheckOptions, Db, Error, Pgid, Problem};
use clap::Args;
use serde::Serialize;

use super::memory::Memory;
use super::progress::Progress;
use super::target::Target;
use crate::failure::{Failure, Outcome, before_a_verdict};

/// Look for damage: every page must be used once, or free once
///
/// Prints `FILE: ok` and a few figures, or one line for each problem. One of two metas that is damaged is a problem, too: a
/// later transaction than the newest that is left may be lost. A file that is cut, or whose meta pages are damaged,
/// is a problem found (exit code 1); one that is no bolt file, or that cannot be opened, is none (exit code 3).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file check boltkv.db
  boltkv file check --from-page 17 boltkv.db
  boltkv file check --json boltkv.db | jq .problems")]
pub(crate) struct Check {
    #[command(flatten)]
    pub(super) target: Target,
    /// Look only at this page and what it leads to: a bucket's root, or any branch or leaf. Pages that nothing uses are not
    /// found then
    #[arg(long, value_name = "PAGE")]
    pub(super) from_page: Option<Pgid>,
    /// Print one JSON object instead, with the problems in it
    #[arg(long)]
    pub(super) json: bool,
}

/// What the check says, in the shape of its JSON.
#[derive(Serialize)]
struct Report {
    file: String,
    ok: bool,
    /// The snapshot that was looked at; nothing where no meta page could be used.
    #[serde(flatten)]
    snapshot: Option<Snapshot>,
    problems: Vec<Found>,
}

#[derive(Serialize)]
struct Snapshot {
    txid: u64,
    pages: u64,
    page_size: u64,
}

#[derive(Serialize)]
struct Found {
    /// The page that it was found on; nothing for the file as a whole.
    page: Option<Pgid>,
    what: String,
}

impl Check {
    pub(crate) fn run(&self) -> Outcome {
        let report = self.look()?;
        let printed = if self.json { report.print_json() } else { report.print() };
        before_a_verdict(printed.map_err(|error| Failure::stdout(&error)))?;
        match report.problems.len() {
            0 => Ok(()),
            1 => Err(Failure::not_done(format!("{}: 1 problem", report.file))),
            many => Err(Failure::not_done(format!("{}: {many} problems", report.file))),
        }
    }

    fn look(&self) -> Outcome<Report> {
        let db = match self.target.open() {
            Ok(db) => db,
            Err(error) if is_damage(&error) => return Ok(self.report(None, vec![as_found(error)])),
            Err(error) => return Err(self.target.not_opened(&error, Some("boltkv backup --check COPY"))),
        };
        let stats = db.stats();
        if self.from_page == Some(1) {
            let file = self.target.path().display();
            return Err(Failure::usage(format!("{file}: page 1 is a meta; what leads to others begins at page 2")));
        }
        if let Some(page) = self.from_page.filter(|&page| page >= stats.pages) {
            let (file, last) = (self.target.path().display(), stats.pages - 1);
            return Err(Failure::usage(format!("{file} uses no page {page}, but 0 to {last}")));
        }
        let problems = self.problems(&db)?;
        let snapshot = Snapshot { txid: stats.txid, pages: stats.pages, page_size: stats.page_size.into() };
        let damaged = db.damaged_meta().map(|meta| Found { page: Some(meta.page), what: meta.to_string() });
        let found = problems.into_iter().map(|problem| Found { page: Some(problem.page), what: problem.what });
        Ok(self.report(Some(snapshot), damaged.into_iter().chain(found).collect()))
    }

    /// What is wrong with a file that opens.
    pub(super) fn problems(&self, db: &Db) -> Outcome<Vec<Problem>> {
        let failed = |error| Failure::storage(self.target.path(), &error);
        let stats = db.stats();
        let progress = Progress::of_pages(stats.pages);
        let tx = db.begin().map_err(failed)?;
        let memory = Memory::new(&tx);
        let reached = |pages| {
            progress.reach(pages);
            memory.has_read(pages * u64::from(stats.page_size));
        };
        let mut options = CheckOptions::new().progress(&reached);
        // 0 is what bbolt's command takes for the whole file.
        if let Some(page) = self.from_page.filter(|&page| page != 0) {
            options = options.from_page(page);
        }
        tx.check_with(&options).map_err(failed)
    }

    fn report(&self, snapshot: Option<Snapshot>, problems: Vec<Found>) -> Report {
        Report { file: self.target.path().display().to_string(), ok: problems.is_empty(), snapshot, problems }
    }
}

/// Whether a file that does not open is a bolt file that came to harm.
fn is_damage(error: &Error) -> bool {
    matches!(
        error,
        Error::ChecksumMismatch | Error::FileTooShort { .. } | Error::Corrupt { .. } | Error::InvalidPageSize { .. }
    )
}

fn as_found(error: Error) -> Found {
    match error {
        Error::Corrupt { page, what, .. } => Found { page: Some(page), what },
        whole => Found { page: None, what: whole.to_string() },
    }
}

impl Report {
    fn print(&self) -> io::Result<()> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        if let (true, Some(snapshot)) = (self.ok, &self.snapshot) {
            let Snapshot { txid, pages, page_size } = snapshot;
            writeln!(out, "{}: ok (transaction {txid}, {pages} pages of {page_size} bytes)", self.file)?;
        }
        for Found { page, what } in &self.problems {
            match page {
                Some(page) => writeln!(out, "{}: page {page}: {what}", self.file)?,
                None => writeln!(out, "{}: {what}", self.file)?,
            }
        }
        out.flush()
    }

    fn print_json(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        serde_json::to_writer(&mut out, self)?;
        writeln!(out)
    }
}
