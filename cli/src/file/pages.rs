//! `boltkv file pages`: a table of all pages.

use std::io::{self, Write};

use boltkv_storage::tools::RawFile;
use boltkv_storage::{Error, PageInfo, PageType, Pgid};
use clap::Args;
use serde::{Serialize, Serializer};

use super::output::{Out, Printed, json_line};
use super::progress::Progress;
use super::target::Target;
use crate::failure::{Failure, Outcome};

/// Print a table of all pages: type, elements, pages that they run on over
///
/// Pages that another one runs on over are not listed. Of a file that is too damaged to tell which pages are free, the
/// pages are listed as they lie there (exit code 1).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file pages etcd.db
  boltkv file pages --json etcd.db | jq -c 'select(.type == \"free\")' | wc -l

With --json a line is {\"page\":N,\"type\":\"leaf\",\"count\":N,\"overflow\":N}.")]
pub(crate) struct Pages {
    #[command(flatten)]
    pub(super) target: Target,
    /// Print lines of JSON, one a page
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Serialize)]
struct Row {
    page: Pgid,
    #[serde(rename = "type", serialize_with = "as_shown")]
    page_type: PageType,
    count: u16,
    overflow: u32,
}

impl Pages {
    pub(crate) fn run(&self) -> Outcome {
        let path = self.target.path();
        let error = match self.print_used_and_free() {
            Ok(printed) => return printed,
            Err(error) if error.is_of_journal() || matches!(error, Error::LockTimeout { .. } | Error::Io { .. }) => {
                return Err(self.target.not_opened(&error, None));
            }
            Err(error) => error,
        };
        let file = RawFile::open(path, None).map_err(|error| Failure::open(path, &error))?;
        self.target.print(|out| self.print_as_they_lie(&file, out))?;
        Err(Failure::not_done(format!("{}: which pages are free is not known: {error}", path.display())))
    }

    /// Prints the table; an error where it cannot be told which pages are free, and nothing is printed yet.
    fn print_used_and_free(&self) -> Result<Outcome, Error> {
        let db = self.target.open()?;
        let tx = db.begin()?;
        let infos = {
            let _progress = Progress::doing("looking for free pages");
            tx.page_infos()?
        };
        let progress = Progress::while_printing_pages(db.stats().pages);
        Ok(self.target.print(|out| {
            self.print_head(out)?;
            for info in infos {
                let info = info?;
                if let Some(progress) = &progress {
                    progress.reach(info.id);
                }
                let PageInfo { id: page, page_type, count, overflow, .. } = info;
                self.print_row(&Row { page, page_type, count, overflow }, out)?;
            }
            Ok(())
        }))
    }

    fn print_as_they_lie(&self, file: &RawFile, out: &mut Out) -> Printed {
        self.print_head(out)?;
        let mut page = 0;
        while page < file.end() {
            let header = file.header(page)?;
            // One that is in the wrong place belongs to a page before it, or nobody knows to what.
            let is_page = header.id == page && header.page_type() != PageType::Unknown;
            let row = if is_page {
                Row { page, page_type: header.page_type(), count: header.count, overflow: header.overflow }
            } else {
                Row { page, page_type: PageType::Unknown, count: 0, overflow: 0 }
            };
            self.print_row(&row, out)?;
            let behind = page + 1 + u64::from(row.overflow);
            // A run that goes beyond the end is none: what stands there is looked at page by page.
            page = if behind <= file.end() { behind } else { page + 1 };
        }
        Ok(())
    }

    fn print_head(&self, out: &mut Out) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        out.write_all(b"ID       TYPE       ITEMS  OVRFLW\n======== ========== ====== ======\n")
    }

    fn print_row(&self, row: &Row, out: &mut Out) -> io::Result<()> {
        if self.json {
            return json_line(row, out);
        }
        let Row { page, page_type, count, overflow } = row;
        match (page_type, overflow) {
            (PageType::Free, _) => writeln!(out, "{page:<8} {page_type:<10} {:13}", ""),
            (_, 0) => writeln!(out, "{page:<8} {page_type:<10} {count:<6} {:6}", ""),
            _ => writeln!(out, "{page:<8} {page_type:<10} {count:<6} {overflow:<6}"),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde hands it over")]
fn as_shown<S: Serializer>(page_type: &PageType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(page_type)
}
